"""Forms, methods, levels and private items on Spark: what they show is what the project's SQL makes of the same map."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_data import groups_of, messy

import kgather
from kgather._dbt_package import macro_sql
from kgather._errors import InputError

pytestmark = pytest.mark.long

ASKED: dict[str, Any] = {"k": 5, "scale": [1.0, 5.0], "max_rejected_share": 0.05}
CUT = {"ratings_per_block": 700, "leaf_users": 60}
OWN = "groups whose size is not that of the map"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return messy(tmp_path_factory.mktemp("ratings") / "ratings.parquet")


@pytest.fixture
def on_spark(spark: Any, tmp_path: Path) -> Callable[..., kgather.Release]:
    """Publishes a file; the secret map goes to the folder `map`. Parquet files stand for DataFrames."""
    from kgather.spark import publish

    def run(file: Path, **given: Any) -> kgather.Release:
        frames = {name: spark.read.parquet(str(path)) for name, path in given.items() if isinstance(path, Path)}
        ratings = spark.read.parquet(str(file))
        return publish(ratings, tmp_path / "release", secret_map=str(tmp_path / "map"), **{**ASKED, **given, **frames})

    return run


def same_as(mine: kgather.Release, whole: Any) -> None:
    """What is promised, counted and measured is what the engine duckdb promises, counts and measures."""
    one, other = mine.audit, kgather.Release(whole.folder).audit
    promised = [{check.check: check.promised for check in each.checks} for each in (one, other)]
    assert promised[0].pop(OWN) == 0
    assert promised[0] == promised[1]
    for name in ("read_rows", "staged_rows", "rejected_rows", "users", "items", "rejected_by_reason"):
        assert one.counts[name] == other.counts[name]
    assert one.read["users"] == other.read["users"]
    assert one.read["users"]["shapes"]
    metrics = [{each["metric"]: each["value"] for each in each.metrics} for each in (one, other)]
    assert metrics[0].keys() == metrics[1].keys()
    assert metrics[0]["mean_absolute_error"] == pytest.approx(metrics[1]["mean_absolute_error"], abs=0.05)
    assert metrics[0]["items_shown"] == metrics[1]["items_shown"]
    tried = [{each["attack"] for each in audit.attacks["results"]} for audit in (one, other)]
    assert tried[0] == tried[1]
    assert kgather.verify(mine.folder, k=5 if promised[1]["k-anonymity: users in the smallest group"] else 1)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_rows_are_summed_stretch_by_stretch(spark: Any, monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    from kgather._spark import row_sums

    monkeypatch.setattr(row_sums, "_STRETCH_BYTES", 7 * 3 * 2 * 8 * 4)
    monkeypatch.setattr(row_sums, "_ANSWER_BYTES", 40)
    made = {block: np.zeros((50, 3), dtype=kind) for block in range(7)}
    for block, table in made.items():
        table[block :: block + 3] = block + 1
    blocks = spark.createDataFrame([(block, table.tobytes()) for block, table in made.items()], "block int, t binary")
    sums = row_sums.RowSums(50, 3, kind, 7)

    def table_of(block: dict[str, Any]) -> Any:
        return np.frombuffer(block["t"], dtype=kind).reshape(50, 3)

    found = sums.of(blocks, table_of, lambda total: total.astype(np.float64) / 2)
    assert found.reshape(50, 3).tolist() == (sum(made.values()) / 2).tolist()
    nothing = sums.of(blocks, lambda block: table_of(block) * 0, lambda total: total[:, 0] + 1.0)
    assert nothing.tolist() == [1.0] * 50


def test_pure_cells_of_bounded_t_means_are_the_means_of_the_members(
    on_spark: Callable[..., Any], publish_to: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    asked = {"method": "bounded_t_means", "homogenize": "pure", "single_rater": "drop"}
    mine = on_spark(file, **asked, **CUT)
    same_as(mine, publish_to(file, **ASKED, **asked))
    measured = {check.check: check.measured for check in mine.audit.checks}
    assert measured["cells that show the exact rating of their only rater"] == 0
    assert 5 <= measured["users in the smallest bin"] <= measured["users in the largest bin"] < 150
    with duckdb.connect() as con:
        con.execute(macro_sql("kg_pure"))
        con.execute(f"create table groups as from '{tmp_path / 'map'}/*.parquet'")
        # Of a repeated pair the latest counts, and of two at once their mean.
        con.execute(
            "create table ratings as select user_id, item_id, avg(rating) as rating "
            f"from (select *, rank() over (partition by user_id, item_id order by timestamp desc) as age from '{file}' "
            "where user_id <> '' and item_id is not null and rating between 1 and 5) "
            "where age = 1 group by user_id, item_id"
        )
        con.register("released", mine.table("ratings"))
        expected = con.sql(
            "select group_id, item_id, rating from kg_pure('ratings', 'groups') where raters > 1 order by all"
        ).fetchall()
        shown = con.sql("select group_id, item_id, rating from released order by all").fetchall()
    assert [row[:2] for row in shown] == [row[:2] for row in expected]
    assert [row[2] for row in shown] == pytest.approx([row[2] for row in expected], rel=1e-12)


def test_customized_groups_are_as_large_as_their_members_ask(
    on_spark: Callable[..., Any], publish_anew: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    wanted = {f"person-{user:05d}": None if user % 7 == 0 else int(rng.choice([2, 3, 9])) for user in range(150)}
    levels = tmp_path / "levels.parquet"
    pq.write_table(pa.table({"User ID": list(wanted), "size": list(wanted.values())}), levels)
    asked = {"method": "customized", "level_column": "size", "homogenize": "padded", "cells": "rated"}
    mine = on_spark(file, user_attributes=levels, **asked, **CUT)
    whole = publish_anew(file, attributes=levels, user_attributes="kgather_loaded_attributes", **ASKED, **asked)
    same_as(mine, whole)
    table = pq.read_table(tmp_path / "map")
    groups = dict(zip(table["user_id"].to_pylist(), table["group_id"].to_pylist(), strict=True))
    sizes = {group: list(groups.values()).count(group) for group in set(groups.values())}
    assert all(sizes[group] >= (wanted[user] or 5) for user, group in groups.items())
    assert min(sizes.values()) < 5
    bad = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"user": ["person-00001", "person-00002"], "size": ["many", "2.5"]}), bad)
    with pytest.raises(InputError, match="2 users have a level in the column size that is no whole number"):
        on_spark(file, user_attributes=bad, force=True, **asked, **CUT)


def test_a_person_is_one_however_the_id_is_written(
    on_spark: Callable[..., Any], publish_anew: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(8)
    rows = pq.read_table(file)
    users = [
        user and user.replace("person", "p\u00e9rson" if way else "pe\u0301rson") + " " * (way % 3)
        for user, way in zip(rows["user_id"].to_pylist(), rng.integers(0, 4, len(rows)), strict=True)
    ]
    items = [
        None if item is None else f"{item}.0" if way == 0 and item % 2 else str(item)
        for item, way in zip(rows["item_id"].to_pylist(), rng.integers(0, 4, len(rows)), strict=True)
    ]
    written = rows.set_column(0, "user_id", pa.array(users)).set_column(1, "item_id", pa.array(items))
    pq.write_table(written, tmp_path / "written.parquet")
    sizes, levels = rng.choice([1, 5], 150), tmp_path / "levels.parquet"
    names = [f" p\u00e9rson-{user:05d}" for user in range(150)]
    pq.write_table(pa.table({"user_id": names, "size": sizes}), levels)
    asked = {"method": "bokg", "level_column": "size", "homogenize": "padded", "cells": "rated"}
    mine = on_spark(tmp_path / "written.parquet", user_attributes=levels, **asked, **CUT)
    whole = publish_anew(
        tmp_path / "written.parquet", attributes=levels, user_attributes="kgather_loaded_attributes", **ASKED, **asked
    )
    same_as(mine, whole)
    told = [json.loads((each.folder / "audit.json").read_text())["read"]["merged"] for each in (mine, whole)]
    assert told[0] == told[1]
    assert min(told[0].values()) > 0
    groups = groups_of(tmp_path / "map")
    assert sorted(user for members in groups for user in members) == sorted(name.strip() for name in names)


def test_ids_of_which_some_are_integers_are_said_to_be_texts(
    on_spark: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    rows = pq.read_table(file)
    items = [None if item is None else "x8" if item == 8 else str(item) for item in rows["item_id"].to_pylist()]
    pq.write_table(rows.set_column(1, "item_id", pa.array(items)), tmp_path / "written.parquet")
    with pytest.warns(UserWarning, match="item ids: some are not integers, all are kept as text") as warned:
        mine = on_spark(tmp_path / "written.parquet", **CUT)
    assert not [each for each in warned if str(each.message).startswith("user ids: some")]
    assert mine.audit.read["items"] == {"count": 30, "type": "text", "shapes": ["##", "#"]}


def test_private_items_are_those_of_the_engine_duckdb_to_the_last_digit(
    on_spark: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    items = tmp_path / "items.parquet"
    pq.write_table(pa.table({"movie_id": [*range(2, 30), 400, 401]}), items)
    asked = {**ASKED, "max_rejected_share": 0.2, "cells": "low_rank", "item_epsilon": 20.0}
    asked["noise_key"] = str(tmp_path / "key")
    mine = on_spark(file, items=items, **asked, **CUT)
    whole = kgather.publish(file, tmp_path / "whole", items=str(items), **asked)
    same_as(mine, whole)
    assert mine.audit.counts["rejected_by_reason"]["item is not in the catalogue"] > 0
    told = [json.loads((each.folder / "audit.json").read_text())["item_privacy"] for each in (mine, whole)]
    assert told[0] == told[1]
    assert told[0]["epsilon_of_charges"] == pytest.approx(20, rel=1e-6)
    vectors = [each.table("item_vectors").sort_by("item_id") for each in (mine, whole)]
    assert vectors[0]["item_id"].to_pylist()[-2:] == [400, 401]
    for column in ("item_id", "level", "factor"):
        assert vectors[0][column].to_pylist() == vectors[1][column].to_pylist()
