"""Cells that are made part by part: together they are those that the engine duckdb makes of everything."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_data import messy

from kgather._publishing import pipeline
from kgather._settings.publication import PublishSettings
from kgather._spark import attacks, audit, cells, statements
from kgather._spark.blocks import batch_of

SCALE = {"scale": [1.0, 5.0], "max_rejected_share": 0.05}


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", [{"homogenize": "pure"}, {"homogenize": "padded", "cells": "rated"}, {"cells": "rated"}]
)
def test_parts_have_the_cells_of_the_engine_duckdb(
    form: dict[str, Any], tmp_path: Path, publish_to: Callable[..., Any]
) -> None:
    file = messy(tmp_path / "ratings.parquet")
    whole = publish_to(file, k=5, **SCALE, **form)
    settings = PublishSettings.from_options({"k": 5, **SCALE, **form}, [])
    workspace = pipeline.Workspace(tmp_path)
    shutil.copy(whole.work_database, workspace.work_database)
    workspace.write_profile()
    variables = statements.variables_of(settings, "BIGINT")
    wanted = ("kgather__audit", *cells.MODELS)
    sql = pipeline.compiled(workspace, variables, wanted, run=False, verbose=False)
    parts = audit.Parts.of(sql["kgather__audit"], "checks")
    checks = {audit.name_of(part): audit.measuring(part) for part in parts.parts if cells.looks_at_rated(parts, part)}
    with workspace.connected() as con:
        maker = cells.Maker.of(con, sql, checks, errors=True)
        people = con.sql(
            "select user_code, group_id, rated, level, preference from int_kgather__gathered "
            "join int_kgather__users using (user_code) join int_kgather__preferences using (user_id) order by user_code"
        ).to_arrow_table()
        ratings = con.sql("from int_kgather__coded_ratings order by user_code, item_code").to_arrow_table()
        items = dict(con.sql("select item_code, item_id from int_kgather__items").fetchall())
    groups, sizes = np.unique(people["group_id"].to_numpy(), return_counts=True)
    cut = cells.Parts.of(groups, sizes, 3)
    place = cut.places(people["group_id"].to_numpy())
    assert set(place) == {0, 1, 2}
    found, absolute, shown = [], 0.0, 0
    counted: dict[str, int] = {}
    for part in range(3):
        row = maker.of_part(part, rows_of(people, ratings, np.flatnonzero(place == part)))
        made = zip(
            np.frombuffer(row["group_ids"], dtype=np.int64).tolist(),
            np.frombuffer(row["codes"], dtype=np.int32).tolist(),
            np.frombuffer(row["shown"]).tolist(),
            strict=True,
        )
        found += [(group, items[code], rating) for group, code, rating in made]
        counts = cells.json.loads(row["counts"])
        absolute, shown = absolute + counts["errors"]["absolute"], shown + counts["errors"]["shown"]
        for check, number in counts["checks"].items():
            counted[check] = counted.get(check, 0) + number
    released = pq.read_table(whole.folder / "ratings.parquet")
    expected = zip(*(released[name].to_pylist() for name in ("group_id", "item_id", "rating")), strict=True)
    expected = sorted(expected)
    assert [cell[:2] for cell in sorted(found)] == [cell[:2] for cell in expected]
    assert [cell[2] for cell in sorted(found)] == pytest.approx([cell[2] for cell in expected], rel=1e-9)
    metrics = {each["metric"]: each["value"] for each in whole.audit.metrics}
    assert absolute / shown == pytest.approx(metrics["mean_absolute_error"], rel=1e-3)
    measured = {check.check: check.measured for check in whole.audit.checks}
    assert counted == {check: measured[check] for check in counted}
    assert len(counted) == (form.get("homogenize") == "pure")


def rows_of(people: pa.Table, ratings: pa.Table, here: np.ndarray) -> pa.Table:
    """Some people as rows of `SENT`, in two blocks."""
    rated = people["rated"].to_numpy()
    starts = np.cumsum(rated) - rated
    sent = []
    for block, own in enumerate(np.array_split(here, 2)):
        own_ratings = np.concatenate([np.arange(starts[row], starts[row] + rated[row]) for row in own])
        mine = people.take(own)
        factors = np.stack([np.array(each, dtype=np.float32) for each in mine["preference"].to_pylist()])
        sent.append(
            {
                "part": 0,
                "block": block,
                "group_ids": mine["group_id"].to_numpy().astype(np.int64).tobytes(),
                "rated": rated[own].astype(np.int64).tobytes(),
                "codes": ratings["item_code"].to_numpy()[own_ratings].astype(np.int32).tobytes(),
                "ratings": ratings["rating"].to_numpy()[own_ratings].astype(np.float32).tobytes(),
                "level": mine["level"].to_numpy().astype(np.float32).tobytes(),
                "factors": factors.tobytes(),
            }
        )
    return pa.Table.from_batches([batch_of(sent, cells.SENT)])


def test_ratings_come_back_as_they_were_staged() -> None:
    maker = cells.Maker({}, {}, {}, (0.1, 3.3), errors=False)
    given = np.array([0.1, 3.3, 0.7, 1.0, 2.15])
    assert maker._exact(given.astype(np.float32)).tolist() == given.tolist()


def test_a_sample_of_groups_is_attacked_where_people_are_many() -> None:
    ids, sizes = np.arange(1000, dtype=np.int64)[::-1] * 7, np.full(1000, 10)
    everybody = attacks.Chosen.of(ids, sizes, attacks.MOST_RATINGS, 1)
    assert everybody.ids.tolist() == sorted(ids)
    some = attacks.Chosen.of(ids, sizes, 10 * attacks.MOST_RATINGS, 1)
    assert 90 <= len(some.ids) <= 100
    # The same groups, whatever they are called.
    others = attacks.Chosen.of(ids + 3, sizes, 10 * attacks.MOST_RATINGS, 1)
    assert (others.ids - 3).tolist() == some.ids.tolist()
    places = some.places(np.array([some.ids[0], some.ids[-1], 8, 10**9]))
    assert places.tolist() == [0, 0, -1, -1]


def test_the_statement_of_a_check_is_taken_out_and_put_back() -> None:
    parts = audit.Parts.of(
        "with checks as (select 1 as position, 'a' as \"check\", 3 as measured union all select 2, 'b', "
        '(select count(*) from int_kgather__rated_cells)) select "check", measured from checks order by position',
        "checks",
    )
    first, second = parts.parts
    assert not cells.looks_at_rated(parts, first)
    assert cells.looks_at_rated(parts, second)
    assert audit.name_of(second) == "b"
    with duckdb.connect() as con:
        con.execute("create table int_kgather__rated_cells as from range(4)")
        assert con.sql(audit.measuring(second)).fetchall() == [(4,)]
        told = parts.only([first, audit.measured(second, 7)])
        assert audit.in_duckdb(con, told) == [("a", 3), ("b", 7)]
