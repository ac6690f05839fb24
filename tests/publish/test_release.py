"""What a release holds, checked from its files by means that are not the project's own."""

import json
import shutil
import stat
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from kgather._loaders import LoadOptions
from kgather._publishing.publish import Published, publish
from kgather._republishing.sweep import other_sizes
from kgather._settings.publication import PublishSettings
from kgather._verify import verify_release


def rows(release: Path, name: str) -> list[dict]:
    return pq.read_table(release / f"{name}.parquet").to_pylist()


def profiles(release: Path) -> dict[str, tuple]:
    """Each pseudonym's whole row: its items and ratings."""
    by_group = defaultdict(list)
    for row in rows(release, "ratings"):
        by_group[row["group_id"]].append((row["item_id"], row["rating"]))
    return {row["pseudonym"]: tuple(sorted(by_group[row["group_id"]])) for row in rows(release, "members")}


def original_users(sample: Path) -> set[str]:
    return {line.split(",")[0] for line in sample.read_text().splitlines()[1:]}


def test_at_least_k_users_look_the_same(released: Published) -> None:
    classes = Counter(profiles(released.folder).values())
    assert sum(classes.values()) == 240
    assert min(classes.values()) >= 5


def test_files_and_columns(released: Published) -> None:
    assert sorted(file.name for file in released.folder.iterdir()) == [
        "audit.json",
        "groups.parquet",
        "members.parquet",
        "ratings.parquet",
        "release.duckdb",
        "report.html",
    ]
    columns = {
        name: [(field.name, str(field.type)) for field in pq.read_schema(released.folder / f"{name}.parquet")]
        for name in ("ratings", "groups", "members")
    }
    assert columns == {
        "ratings": [("group_id", "int64"), ("item_id", "int64"), ("rating", "double")],
        "groups": [("group_id", "int64"), ("group_size", "int64")],
        "members": [("pseudonym", "string"), ("group_id", "int64")],
    }


def test_sizes_are_the_members(released: Published) -> None:
    counted = Counter(row["group_id"] for row in rows(released.folder, "members"))
    assert {row["group_id"]: row["group_size"] for row in rows(released.folder, "groups")} == counted


def test_every_group_rates_every_item_on_the_scale(released: Published) -> None:
    ratings = rows(released.folder, "ratings")
    assert len(ratings) == 80 * len(rows(released.folder, "groups"))
    assert all(0.5 <= row["rating"] <= 5 for row in ratings)


def test_rows_are_in_the_order_of_random_ids(released: Published) -> None:
    groups = [row["group_id"] for row in rows(released.folder, "groups")]
    pseudonyms = [row["pseudonym"] for row in rows(released.folder, "members")]
    cells = [(row["group_id"], row["item_id"]) for row in rows(released.folder, "ratings")]
    assert groups == sorted(groups)
    assert pseudonyms == sorted(pseudonyms)
    assert cells == sorted(cells)


def test_no_original_id_in_any_byte(released: Published, sample: Path) -> None:
    users = original_users(sample)
    assert len(users) == 240
    for file in released.folder.iterdir():
        held = file.read_bytes()
        assert not [user for user in users if user.encode() in held], file.name


def test_database_holds_the_marts_and_nothing_else(released: Published) -> None:
    with duckdb.connect(released.folder / "release.duckdb", read_only=True) as con:
        names = con.sql("select table_name, table_type from information_schema.tables order by all").fetchall()
        assert names == [
            ("kgather__audit", "BASE TABLE"),
            ("kgather__groups", "BASE TABLE"),
            ("kgather__members", "BASE TABLE"),
            ("kgather__metrics", "BASE TABLE"),
            ("kgather__ratings", "BASE TABLE"),
            ("kgather__user_ratings", "VIEW"),
        ]
        expanded = con.sql("select pseudonym, item_id, rating from kgather__user_ratings").fetchall()
    assert len(expanded) == 240 * 80
    of_users = defaultdict(list)
    for pseudonym, item, rating in expanded:
        of_users[pseudonym].append((item, rating))
    assert {user: tuple(sorted(cells)) for user, cells in of_users.items()} == profiles(released.folder)


def test_audit_says_what_was_promised(released: Published) -> None:
    audit = json.loads((released.folder / "audit.json").read_text())
    assert audit["passed"] is True
    assert audit["parameters"]["k"] == 5
    assert audit["counts"]["users"] == 240
    assert audit["counts"]["staged_rows"] == audit["counts"]["read_rows"] == 5300  # 5,256, rounded
    assert audit["counts"]["rejected_rows"] == 0
    assert audit["scale"] == {"min": 0.5, "max": 5.0, "step": 0.5, "declared": False}
    assert "seed" not in audit["parameters"]


def test_release_is_for_all_and_the_map_for_its_owner(released: Published) -> None:
    assert released.work_database is not None
    assert stat.S_IMODE(released.work_database.stat().st_mode) == 0o600
    assert stat.S_IMODE((released.folder / "audit.json").stat().st_mode) & 0o044
    with duckdb.connect(released.work_database, read_only=True) as con:
        secret = con.sql("select user_id, group_id from int_kgather__groups").fetchall()
    assert {user for user, _ in secret} == original_users(Path(__file__).parents[2] / "examples" / "ratings.csv")
    assert {group for _, group in secret} == {row["group_id"] for row in rows(released.folder, "groups")}


def partition(database: Path) -> set[frozenset]:
    with duckdb.connect(database, read_only=True) as con:
        groups = con.sql("select list(user_id) from int_kgather__groups group by group_id").fetchall()
    return {frozenset(members) for (members,) in groups}


def test_same_groups_under_new_names(released: Published, publish_to, sample: Path, tmp_path: Path) -> None:
    # The same rows in another order, learnt with another number of threads.
    header, *lines = sample.read_text().splitlines()
    shuffled = tmp_path / "shuffled.csv"
    shuffled.write_text("\n".join([header, *np.random.default_rng(1).permutation(lines)]))
    again = publish_to(shuffled, k=5, threads=1)
    assert partition(again.work_database) == partition(released.work_database)
    first, second = (
        {row["group_id"] for row in rows(publication.folder, "groups")} for publication in (released, again)
    )
    assert not first & second
    first, second = (
        {row["pseudonym"] for row in rows(publication.folder, "members")} for publication in (released, again)
    )
    assert not first & second


def test_another_seed_gives_other_groups(released: Published, publish_to, sample: Path) -> None:
    assert partition(publish_to(sample, k=5, seed=1).work_database) != partition(released.work_database)


def raters(database: Path) -> dict[tuple, list[float]]:
    """The ratings behind each cell of groups x items, by a join of the tests' own."""
    with duckdb.connect(database, read_only=True) as con:
        of_user = dict(con.sql("select user_id, group_id from int_kgather__groups").fetchall())
        ratings = con.sql("select user_id, item_id, rating from stg_kgather__ratings").fetchall()
    cells = defaultdict(list)
    for user, item, rating in ratings:
        cells[of_user[user], item].append(rating)
    return cells


@pytest.mark.parametrize("single_rater", ["keep", "drop", "pad"])
def test_pure(publish_to, sample: Path, single_rater: str) -> None:
    published = publish_to(sample, k=5, homogenize="pure", single_rater=single_rater)
    cells = {(row["group_id"], row["item_id"]): row["rating"] for row in rows(published.folder, "ratings")}
    behind = raters(published.work_database)
    several = {cell: ratings for cell, ratings in behind.items() if len(ratings) > 1}
    alone = {cell: ratings[0] for cell, ratings in behind.items() if len(ratings) == 1}
    assert several
    assert alone
    assert all(cells[cell] == pytest.approx(np.mean(ratings)) for cell, ratings in several.items())
    if single_rater == "drop":
        assert cells.keys() == several.keys()
    else:
        assert cells.keys() == behind.keys()
    if single_rater == "keep":
        assert all(cells[cell] == rating for cell, rating in alone.items())
    if single_rater == "pad":
        # Only a mean beyond the scale, clipped to its end, may meet a rating.
        assert {cells[cell] for cell, rating in alone.items() if cells[cell] == rating} <= {0.5, 5.0}


def model(database: Path) -> tuple[dict, dict]:
    """Level and factors of users and items."""
    with duckdb.connect(database, read_only=True) as con:
        users = con.sql("select user_id, level, preference from int_kgather__preferences").fetchall()
        items = con.sql("select item_id, level, factor from int_kgather__item_factors").fetchall()
    return (
        {user: (level, np.array(vector)) for user, level, vector in users},
        {item: (level, np.array(vector)) for item, level, vector in items},
    )


def predictions(database: Path) -> dict[tuple, list[float]]:
    """Every member's prediction for every cell."""
    users, items = model(database)
    with duckdb.connect(database, read_only=True) as con:
        groups = con.sql("select user_id, group_id from int_kgather__groups").fetchall()
    cells = defaultdict(list)
    for user, group in groups:
        for item, (level, factor) in items.items():
            cells[group, item].append(users[user][0] + level + users[user][1] @ factor)
    return cells


def test_predicted_is_the_members_mean_prediction(publish_to, sample: Path) -> None:
    published = publish_to(sample, k=5, outliers=1.0)
    expected = predictions(published.work_database)
    cells = {(row["group_id"], row["item_id"]): row["rating"] for row in rows(published.folder, "ratings")}
    assert cells.keys() == expected.keys()
    for cell, predicted in expected.items():
        # Rounded to two decimals, of group vectors that are rounded to three.
        assert cells[cell] == pytest.approx(np.clip(np.mean(predicted), 0.5, 5), abs=0.0065)
        assert round(cells[cell], 2) == cells[cell]


def test_padded_is_the_mean_of_rating_or_prediction(publish_to, sample: Path) -> None:
    published = publish_to(sample, k=5, homogenize="padded", cells="rated", outliers=1.0)
    users, items = model(published.work_database)
    with duckdb.connect(published.work_database, read_only=True) as con:
        members = con.sql("select group_id, list(user_id) from int_kgather__groups group by group_id").fetchall()
        rated = {
            (user, item): rating
            for user, item, rating in con.sql("select user_id, item_id, rating from stg_kgather__ratings").fetchall()
        }
    cells = {(row["group_id"], row["item_id"]): row["rating"] for row in rows(published.folder, "ratings")}
    assert cells.keys() == raters(published.work_database).keys()
    of_group = dict(members)
    raters_of = Counter(item for _, item in rated)
    for (group, item), rating in cells.items():
        level, factor = items[item]
        # Ratings of an item count by how much of its vector is its own: all from k + 10 raters.
        own = min(max((raters_of[item] - 5) / 10, 0), 1)
        predicted = {user: users[user][0] + level + users[user][1] @ factor for user in of_group[group]}
        padded = [value + own * (rated.get((user, item), value) - value) for user, value in predicted.items()]
        assert rating == pytest.approx(np.clip(np.mean(padded), 0.5, 5), abs=0.0065)


def test_low_rank_says_the_same_in_vectors(publish_to, released: Published, sample: Path) -> None:
    published = publish_to(sample, k=5, cells="low_rank")
    assert not (published.folder / "ratings.parquet").exists()
    groups = rows(published.folder, "group_vectors")
    items = rows(published.folder, "item_vectors")
    assert len(groups) == published.audit.counts["groups"]
    assert len(items) == 80
    with duckdb.connect(published.folder / "release.duckdb", read_only=True) as con:
        cells = {
            (group, item): rating
            for group, item, rating in con.sql("select group_id, item_id, rating from kgather__ratings").fetchall()
        }
    for group in groups[:5]:
        for item in items:
            value = group["level"] + item["level"] + np.dot(group["factor"], item["factor"])
            assert cells[group["group_id"], item["item_id"]] == pytest.approx(np.clip(value, 0.5, 5), abs=0.00501)
    # Other names, the same ratings as in the release that writes every cell.
    in_full = sorted(row["rating"] for row in rows(released.folder, "ratings"))
    assert sorted(cells.values()) == pytest.approx(in_full, abs=1e-9)


def test_the_audit_says_what_it_cost_and_what_attackers_get(released: Published) -> None:
    said = json.loads((released.folder / "audit.json").read_text(encoding="utf-8"))
    metrics = {metric["metric"]: metric["value"] for metric in said["metrics"]}
    assert 0 < metrics["mean_absolute_error"] < metrics["root_mean_square_error"] < 4.5
    sizes = {row["size"]: row["groups"] for row in said["group_sizes"]}
    assert min(sizes) >= 5
    assert sum(size * groups for size, groups in sizes.items()) == 240
    assert metrics["discernibility"] == pytest.approx(sum(size**2 * n for size, n in sizes.items()), rel=1e-3)
    attacks = said["attacks"]["results"]
    assert {result["attack"] for result in attacks} == {
        "label", "scoring", "distance", "posterior", "items", "columns", "disclosure",
    }  # fmt: skip
    # Who names a group of k names the person in one of k cases.
    assert all(result["user"]["value"] <= 1 / 5 for result in attacks if result["user"])
    with duckdb.connect(released.folder / "release.duckdb", read_only=True) as con:
        assert dict(con.sql("from kgather__metrics").fetchall()) == metrics


def test_the_report_is_about_this_release(released: Published) -> None:
    page = (released.folder / "report.html").read_text(encoding="utf-8")
    assert "240" in page
    assert "k-anonymity: users in the smallest group" in page
    said = json.loads((released.folder / "audit.json").read_text(encoding="utf-8"))
    assert all(checksum in page for checksum in said["files"].values())


def test_vectors_are_verified_too(publish_to, sample: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(publish_to(sample, k=5, cells="low_rank").folder, tmp_path / "copy"))
    assert all(check.passed for check in verify_release(folder, 5))
    items = pq.read_table(folder / "item_vectors.parquet")
    pq.write_table(items.slice(1), folder / "item_vectors.parquet")
    assert [check.check for check in verify_release(folder, 5) if not check.passed] == [
        "rows in which item_vectors.parquet and release.duckdb differ",
        "files that are not those of the checksums in audit.json: item_vectors.parquet",
    ]


def test_too_many_cells_become_vectors(publish_to, sample: Path) -> None:
    published = publish_to(sample, k=5, max_cells=1000)
    assert published.audit.parameters["cells"] == "low_rank"
    assert (published.folder / "group_vectors.parquet").exists()


def test_top_items_only(publish_to, sample: Path) -> None:
    published = publish_to(sample, k=5, cells="top 7")
    counts = Counter(line.split(",")[1] for line in sample.read_text().splitlines()[1:])
    most = sorted(counts.items(), key=lambda pair: (-pair[1], int(pair[0])))[:7]
    assert {row["item_id"] for row in rows(published.folder, "ratings")} == {int(item) for item, _ in most}


@pytest.mark.slow
def test_other_sizes_of_group_are_reported_on_request(tmp_path: Path, sample: Path) -> None:
    publish(
        [str(sample)],
        tmp_path / "release",
        PublishSettings(k=5, rank=4),
        LoadOptions(),
        other_sizes=other_sizes([10]),
    )
    [row] = json.loads((tmp_path / "release" / "audit.json").read_text(encoding="utf-8"))["sweep"]
    assert (row["method"], row["k"], row["refused"]) == ("bkg", 10, None)
    assert row["user_reidentification"] <= 1 / 10
    assert "Loss by k" in (tmp_path / "release" / "report.html").read_text(encoding="utf-8")
