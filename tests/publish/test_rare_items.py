"""Items of few raters, the noise of all items, and the catalogue, in whole publications."""

import csv
import json
import math
import os
import random
import stat
from pathlib import Path
from statistics import NormalDist

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing import kept_key
from kgather._publishing.early import LOADED_ITEMS
from kgather._publishing.publish import Published, publish
from kgather._settings.publication import PublishSettings

K = 6


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 people; ten items that many rated, one for each number of raters from 1 to 14, and one person's ten."""
    drawn = random.Random(3)
    lines = [(user, item) for user in range(120) for item in range(10) if drawn.random() < 0.6]
    lines += [(user, 100 + count) for count in range(1, 15) for user in drawn.sample(range(120), count)]
    lines += [(7, 200 + place) for place in range(10)]
    file = tmp_path_factory.mktemp("rare") / "ratings.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["user_id", "item_id", "rating"])
        writer.writerows((user, item, drawn.randint(1, 5)) for user, item in lines)
    return file


def table(published: Published, query: str) -> list[tuple]:
    with duckdb.connect(published.work_database, read_only=True) as con:
        return con.sql(query).fetchall()


def item_vectors(published: Published) -> dict[int, np.ndarray]:
    rows = pq.read_table(published.folder / "item_vectors.parquet").to_pylist()
    return {row["item_id"]: np.array([row["level"], *row["factor"]]) for row in rows}


def noise(published: Published) -> list[tuple]:
    """What was added to each item's level and factors: (item_code, level, factors)."""
    return table(published, "select code, level, factor from int_kgather__factors where side = 'noise' order by code")


def in_counts(published: Published) -> list[tuple]:
    return table(published, "select item_code, raters from int_kgather__item_noise order by item_code")


def test_no_two_items_of_one_person_are_parallel_or_equal(publish_to, ratings: Path) -> None:
    vectors = item_vectors(publish_to(ratings, k=K, cells="low_rank"))
    own = [vectors[item] for item in range(200, 210)]
    assert len({tuple(vector) for vector in own}) == 10
    directions = np.array([vector[1:] / np.linalg.norm(vector[1:]) for vector in own])
    cosines = np.abs(directions @ directions.T)[np.triu_indices(10, 1)]
    assert (cosines < 0.9999).all()
    assert cosines.mean() < 0.8  # of directions drawn at random in three dimensions: a half


def test_the_columns_of_one_person_are_not_equal(publish_to, ratings: Path) -> None:
    cells: dict[int, list] = {}
    for row in pq.read_table(publish_to(ratings, k=K).folder / "ratings.parquet").to_pylist():
        cells.setdefault(row["item_id"], []).append((row["group_id"], row["rating"]))
    looks = {item: tuple(sorted(column)) for item, column in cells.items()}
    # Two of them may be by chance, with two decimals and few groups.
    assert len({looks[item] for item in range(200, 210)}) >= 9


def test_padded_cells_of_rare_items_are_what_is_predicted(publish_to, ratings: Path) -> None:
    """A rating of an item that few rated would stand out of its group's predictions."""
    published = publish_to(ratings, k=K, homogenize="padded")
    found = table(
        published,
        f"""
        select max(abs(predicted.rating - shown.rating))
        from kg_predicted(
          'int_kgather__cells', 'int_kgather__group_vectors', 'int_kgather__item_factors', 1.0, 5.0
        ) as predicted
        join read_parquet('{published.folder}/ratings.parquet') as shown using (group_id, item_id)
        join int_kgather__items as items using (item_id)
        group by items.raters <= {K}
        order by items.raters <= {K}
        """,
    )
    assert found[0][0] > 0.1  # items of many raters: ratings enter
    assert found[1][0] < 0.0051


@pytest.mark.parametrize(
    "other", [{"seed": 5}, {"k": 12, "min_raters": K}, {"homogenize": "padded"}, {"cells": "all"}, {"outliers": 1.0}]
)
def test_the_noise_is_the_same_whatever_is_published_of_the_data(publish_to, ratings: Path, other: dict) -> None:
    first, second = publish_to(ratings, k=K, cells="low_rank"), publish_to(ratings, **{"k": K, **other})
    assert in_counts(first) == in_counts(second)
    for (code, level, factors), (same, again, factors_again) in zip(noise(first), noise(second), strict=True):
        assert code == same
        assert again == pytest.approx(level, abs=1e-5)
        # How far a rating reaches in factors hangs on how long those of users are, which other seeds move a little.
        assert factors_again == pytest.approx(factors, rel=0.2, abs=0.01)


@pytest.mark.parametrize("other", [{"rank": 2}, {"solver_options": {"regularization": 8.0}}])
def test_what_is_learnt_otherwise_has_other_noise(publish_to, ratings: Path, other: dict) -> None:
    first, second = (
        np.array([row[1] for row in noise(publish_to(ratings, **{"k": K, "cells": "low_rank", **choice}))])
        for choice in ({}, other)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.6
    assert not set(first) & set(second)


def test_other_ratings_have_other_noise(publish_to, ratings: Path, tmp_path: Path) -> None:
    lines = ratings.read_text().splitlines()
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("\n".join(lines[:-1]) + "\n")
    first = {row[0]: row[1] for row in noise(publish_to(ratings, k=K, cells="low_rank"))}
    second = {row[0]: row[1] for row in noise(publish_to(fewer, k=K, cells="low_rank"))}
    assert not set(first.values()) & set(second.values())


def test_the_same_ratings_in_another_order_have_the_same_noise(publish_to, ratings: Path, tmp_path: Path) -> None:
    head, *lines = ratings.read_text().splitlines()
    random.Random(1).shuffle(lines)
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("\n".join([head, *lines]) + "\n")
    one, other = publish_to(mixed, k=K), publish_to(ratings, k=K)
    assert noise(one) == noise(other)
    assert in_counts(one) == in_counts(other)


def test_what_is_released_is_what_was_learnt_and_its_noise(publish_to, ratings: Path) -> None:
    published = publish_to(ratings, k=K, cells="low_rank")
    shown = table(published, "select code, level from int_kgather__factors where side = 'shown' order by code")
    learnt = dict(table(published, "select code, level from int_kgather__factors where side = 'item'"))
    added = {row[0]: row[1] for row in noise(published)}
    raters = dict(table(published, "select item_code, raters from int_kgather__items"))
    [(sd,)] = table(published, "select stddev_pop(rating) from stg_kgather__ratings")
    vectors = item_vectors(published)
    ids = dict(table(published, "select item_code, item_id from int_kgather__items"))
    for code, level in shown:
        assert vectors[ids[code]][0] == pytest.approx(level, abs=0.00051)
        assert level == pytest.approx(learnt[code] + added[code], abs=1e-5)
        # Five standard deviations of what was asked for.
        assert abs(added[code]) < 5 * 2 * sd * min(0.5, 1.8 / (raters[code] + 1) + 0.35 * (raters[code] < 2 * K))


def test_the_audit_measures_what_is_promised_of_items(publish_to, ratings: Path) -> None:
    said = {check.check: check for check in publish_to(ratings, k=K).audit.checks}
    own = said["items with fewer than 6 raters that have a vector of their own"]
    assert (own.promised, own.measured, own.passed) == (0, 0, True)
    assert said["items of the release without noise in their vectors"].passed
    assert said["shown ratings with more decimals than they are worth"].passed
    bare = {check.check: check for check in publish_to(ratings, k=K, item_noise=0.0).audit.checks}
    without = bare["items of the release without noise in their vectors"]
    assert without.promised is None
    assert without.measured == 34


def test_rare_items_may_be_left_out(publish_to, ratings: Path) -> None:
    published = publish_to(ratings, k=K, rare_items="drop")
    there = {row["item_id"] for row in pq.read_table(published.folder / "ratings.parquet").to_pylist()}
    assert set(range(10)) <= there
    # By counts with noise of scale 2: of twelve items with one rater hardly any has six or more.
    assert len(there & {101, *range(200, 210)}) <= 3
    raters = dict(table(published, "select item_code, raters from int_kgather__items"))
    counts = dict(in_counts(published))
    ids = dict(table(published, "select item_code, item_id from int_kgather__items"))
    assert there == {ids[code] for code, own in raters.items() if own + 2 * counts[code] >= K}


def test_top_items_are_chosen_by_noisy_counts(publish_to, ratings: Path) -> None:
    published = publish_to(ratings, k=K, cells="top 12")
    there = {row["item_id"] for row in pq.read_table(published.folder / "ratings.parquet").to_pylist()}
    listed = table(
        published,
        "select item_id from int_kgather__items join int_kgather__item_noise as noise using (item_code) "
        "order by int_kgather__items.raters + noise.raters desc limit 12",
    )
    assert there == {item for (item,) in listed}


def test_a_release_does_not_show_the_key_nor_the_noise(publish_to, ratings: Path) -> None:
    published = publish_to(ratings, k=K, cells="low_rank")
    [(key,)] = table(published, "select key from int_kgather__noise_key")
    drawn = [row[1] for row in noise(published)]
    for file in published.folder.iterdir():
        content = file.read_bytes()
        assert key not in content
        assert key.hex().encode() not in content
    with duckdb.connect(published.folder / "release.duckdb", read_only=True) as con:
        names = {name for (name,) in con.sql("select table_name from duckdb_tables()").fetchall()}
    assert not [name for name in names if "noise" in name]
    assert drawn


# The catalogue ------------------------------------------------------------------------------------------------------


def test_a_catalogue_says_which_items_there_are(publish_to, ratings: Path, tmp_path: Path) -> None:
    listed = tmp_path / "items.txt"
    listed.write_text("\n".join(map(str, [*range(10), *range(101, 115), *range(200, 210), 900, 901])) + "\n")
    published = publish_to(ratings, k=K, cells="low_rank", load={"items": str(listed)})
    vectors = item_vectors(published)
    assert len(vectors) == 36
    assert {900, 901} <= vectors.keys()
    # What somebody rated has the noise that it has without a catalogue.
    alone = publish_to(ratings, k=K, cells="low_rank")
    for item, vector in item_vectors(alone).items():
        assert vectors[item] == pytest.approx(vector, abs=0.0011)
    assert json.loads((published.folder / "audit.json").read_text())["read"]["catalogue"] == {"items": 36}


@pytest.mark.slow
def test_ratings_of_items_that_are_not_listed_are_rejected(ratings: Path, tmp_path: Path) -> None:
    listed = tmp_path / "items.csv"
    listed.write_text("movieId,title\n" + "".join(f"{item},x\n" for item in range(10)))
    settings = PublishSettings(k=K, max_rejected_share=1.0)
    published = publish([str(ratings)], tmp_path / "out", settings, LoadOptions(items=str(listed)))
    reasons = published.audit.counts["rejected_by_reason"]
    assert reasons == {"item is not in the catalogue": sum(range(1, 15)) + 10}
    with pytest.raises(InputError, match="item is not in the catalogue"):
        publish([str(ratings)], tmp_path / "none", PublishSettings(k=K), LoadOptions(items=str(listed)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "item_id\n1\n 2 \n3.0\n"),
        ("b.csv", "name,item\nx,1\ny,2\nz,3\n"),
        ("c.tsv", "movie\ttitle\n1\tx, y\n2\tz\n3\tw\n"),
    ],
)
def test_catalogues_are_read_as_people_write_them(tmp_path: Path, name: str, content: str) -> None:
    from kgather._loaders import load

    (tmp_path / name).write_text(content)
    (tmp_path / "r.csv").write_text("user_id,item_id,rating\n1,1,3\n2,2,4\n")
    with duckdb.connect() as con:
        loaded = load(con, [str(tmp_path / "r.csv")], LoadOptions(items=str(tmp_path / name)))
        assert loaded.catalogue is not None
        assert con.sql("from loaded.items order by 1").fetchall() == [(1,), (2,), (3,)]


def test_a_catalogue_of_texts_makes_ids_texts(tmp_path: Path) -> None:
    from kgather._loaders import load

    (tmp_path / "items.txt").write_text("1\n2\nB07\n")
    (tmp_path / "r.csv").write_text("user_id,item_id,rating\n1,1,3\n2,2,4\n")
    with duckdb.connect() as con:
        loaded = load(con, [str(tmp_path / "r.csv")], LoadOptions(items=str(tmp_path / "items.txt")))
        assert loaded.item_id_type == "VARCHAR"
        assert con.sql("select item_id from loaded.ratings order by 1").fetchall() == [("1",), ("2",)]


@pytest.mark.parametrize("content", ["", "\n\n", "item_id\n"])
def test_an_empty_catalogue_is_refused(tmp_path: Path, content: str) -> None:
    from kgather._loaders import load

    (tmp_path / "items.txt").write_text(content)
    (tmp_path / "r.csv").write_text("user_id,item_id,rating\n1,1,3\n2,2,4\n")
    with duckdb.connect() as con, pytest.raises(InputError):
        load(con, [str(tmp_path / "r.csv")], LoadOptions(items=str(tmp_path / "items.txt")))


# A proven item side --------------------------------------------------------------------------------------------------


def proven(publish_to, ratings: Path, tmp_path: Path, **settings: object) -> Published:
    listed = tmp_path / "all.txt"
    listed.write_text("\n".join(map(str, [*range(10), *range(101, 115), *range(200, 210)])) + "\n")
    asked = {"k": K, "cells": "low_rank", "scale": [1, 5, 1], "items": LOADED_ITEMS, "item_epsilon": 2.0, **settings}
    return publish_to(ratings, load={"items": str(listed)}, **asked)


def test_the_accounting_of_a_proven_item_side_adds_up(publish_to, ratings: Path, tmp_path: Path) -> None:
    said = json.loads((proven(publish_to, ratings, tmp_path).folder / "audit.json").read_text())
    found = said["item_privacy"]
    rho = sum(charge["sensitivity"] ** 2 / (2 * charge["deviation"] ** 2) for charge in found["charges"])
    assert rho == pytest.approx(found["rho"])
    assert (found["epsilon"], found["delta"]) == (2.0, 1e-6)
    # The Gaussian mechanism of that rho: delta at epsilon is what was promised, and no more.
    mu = math.sqrt(2 * rho)
    normal = NormalDist()
    delta = normal.cdf(mu / 2 - 2.0 / mu) - math.exp(2.0) * normal.cdf(-mu / 2 - 2.0 / mu)
    assert 0.99e-6 < delta <= 1e-6 * (1 + 1e-6)
    assert found["epsilon_of_charges"] <= 2.0
    assert len({charge["what"] for charge in found["charges"]}) == len(found["charges"])
    checks = {check["check"]: check for check in said["checks"]}
    assert checks["measurements of the items' vectors without a charge"]["passed"]
    assert any("item_epsilon bounds what the items' vectors tell" in told for told in said["not_promised"])


def test_a_proven_item_side_is_the_same_for_the_same_ratings_and_no_others(
    publish_to, ratings: Path, tmp_path: Path
) -> None:
    once, again = (item_vectors(proven(publish_to, ratings, tmp_path, seed=seed)) for seed in (0, 4))
    assert all(np.array_equal(once[item], again[item]) for item in once)
    lines = ratings.read_text().splitlines()
    # Two people exchange a rating: each item has the ratings it had, and the noise is another.
    swapped = tmp_path / "swapped.csv"
    user, item, rating = lines[1].split(",")
    at = next(
        place for place, line in enumerate(lines[2:], 2)
        if line.split(",")[1] == item and line.split(",")[2] != rating
    )  # fmt: skip
    other, _, theirs = lines[at].split(",")
    lines[1], lines[at] = f"{user},{item},{theirs}", f"{other},{item},{rating}"
    swapped.write_text("\n".join(lines) + "\n")
    moved = item_vectors(proven(publish_to, swapped, tmp_path))
    assert sum(abs(moved[each][0] - once[each][0]) > 0.002 for each in once) > 25


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"items": None}, "item_epsilon needs items"),
        ({"scale": None}, "item_epsilon needs scale"),
        ({"homogenize": "padded", "cells": "all"}, "goes with homogenize predicted"),
        ({"cells": "top 5"}, "goes with cells all, best N or low_rank"),
        ({"min_raters": 3}, "has a way to learn of its own"),
        ({"solver_options": {"regularization": 1.0}}, "has a way to learn of its own"),
    ],
)
def test_what_would_break_the_proof_is_refused(settings: dict, told: str) -> None:
    asked = {"k": K, "scale": [1, 5], "items": "all", "item_epsilon": 1.0, **settings}
    with pytest.raises(InputError, match=told):
        PublishSettings.from_options(asked, [])


# The key ------------------------------------------------------------------------------------------------------------


def test_a_key_is_made_once_and_kept_for_its_owner(tmp_path: Path) -> None:
    place = tmp_path / "folder" / "noise.key"
    first = kept_key.kept_key(place, pytest.fail)
    assert kept_key.kept_key(place, pytest.fail) == first
    assert len(first) == 32
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [file.name for file in place.parent.iterdir()] == ["noise.key"]


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "noise.key"
    kept_key.kept_key(place, pytest.fail)
    place.chmod(0o644)
    with pytest.raises(InputError, match="can be read by others"):
        kept_key.kept_key(place, pytest.fail)


@pytest.mark.parametrize("content", ["", "abc", "zz" * 32, "ab" * 31])
def test_what_is_no_key_is_refused(tmp_path: Path, content: str) -> None:
    place = tmp_path / "noise.key"
    place.write_text(content)
    place.chmod(0o600)
    with pytest.raises(InputError, match="holds no key of noise"):
        kept_key.kept_key(place, pytest.fail)


def test_where_no_key_can_be_kept_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    heard: list[str] = []
    one, other = (kept_key.kept_key(None, heard.append) for _ in range(2))
    assert one != other
    assert "cannot be kept" in heard[0]
    with pytest.raises(InputError, match="--noise-key"):
        kept_key.kept_key(blocked / "noise.key", heard.append)


def test_a_warehouse_keeps_its_key() -> None:
    from kgather._steps.noise import noise_key

    with duckdb.connect() as con:
        first = noise_key(con, '"memory"."main"."kept"')
        con.register("made", first)
        con.execute("create table kept as from made")
        again = noise_key(con, '"memory"."main"."kept"')
        assert again.equals(first)
        assert len(first["key"][0].as_py()) == 32
        assert not noise_key(con, '"memory"."main"."other"').equals(first)


@pytest.mark.slow
def test_a_key_of_ones_own_gives_other_noise(publish_to, ratings: Path, tmp_path: Path) -> None:
    settings = PublishSettings(k=K, cells="low_rank")
    releases = [
        publish([str(ratings)], tmp_path / name, settings, LoadOptions(), noise_key=tmp_path / "own.key")
        for name in ("a", "b")
    ]
    own, again = (item_vectors(each) for each in releases)
    assert all(np.array_equal(own[item], again[item]) for item in own)
    usual = item_vectors(publish_to(ratings, k=K, cells="low_rank"))
    assert sum(np.array_equal(own[item], usual[item]) for item in own) == 0
    assert os.environ["XDG_STATE_HOME"]
