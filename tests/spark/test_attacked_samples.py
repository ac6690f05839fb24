"""Attacks on people who came together on one executor: everybody as the engine duckdb attacks them, or some groups."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from spark_data import messy

from kgather._attacks.attacked import Attacked, groups_of
from kgather._evaluation.evidence import Evidence, read_evidence
from kgather._release.release import not_promised
from kgather._spark import attacks
from kgather._spark.blocks import batch_of
from kgather._spark.cells import SENT
from kgather._sql_text import literal

SCALE = {"scale": [1.0, 5.0], "max_rejected_share": 0.05}


@pytest.fixture(
    params=[{"cells": "low_rank"}, {"homogenize": "pure", "single_rater": "keep"}], ids=["vectors", "cells"]
)
def made(
    request: pytest.FixtureRequest, tmp_path: Path, publish_to: Callable[..., Any]
) -> tuple[dict[str, Any], Evidence]:
    """What the engine duckdb found on a release, and its evidence."""
    whole = publish_to(messy(tmp_path / "ratings.parquet"), k=5, **SCALE, **request.param)
    with duckdb.connect() as con:
        con.execute(f"attach {literal(whole.work_database)} as work (read_only)")
        con.execute(f"attach {literal(whole.folder / 'release.duckdb')} as files (read_only)")
        evidence = read_evidence(con, "work", "files", whole.audit.parameters)
    return dict(whole.audit.attacks), evidence


def rows_of(evidence: Evidence, users: np.ndarray) -> pa.Table:
    """Users as rows of `SENT`."""
    some = evidence.original.with_users(users)
    row = {
        "part": 0,
        "block": 0,
        "group_ids": evidence.group_ids[evidence.groups[users]].astype(np.int64).tobytes(),
        "rated": np.diff(some.indptr).astype(np.int64).tobytes(),
        "codes": some.items.tobytes(),
        "ratings": some.values.tobytes(),
        "level": b"",
        "factors": b"",
    }
    return pa.Table.from_batches([batch_of([row], SENT)])


def attack_of(evidence: Evidence) -> attacks.Attack:
    return attacks.Attack(
        evidence.shown,
        evidence.group_ids,
        evidence.original.raters(),
        evidence.original.n_users,
        evidence.scale,
        evidence.parameters,
    )


@pytest.mark.slow
def test_everybody_is_attacked_as_by_the_engine_duckdb(made: tuple[dict[str, Any], Evidence]) -> None:
    found, evidence = made
    everybody = np.arange(evidence.original.n_users)
    report = attack_of(evidence).of(rows_of(evidence, everybody), 2, everybody=True)
    assert report == found


@pytest.mark.slow
def test_people_of_some_groups_are_attacked_among_all_groups(made: tuple[dict[str, Any], Evidence]) -> None:
    found, evidence = made
    chosen = evidence.group_ids[::2]
    users = np.flatnonzero(np.isin(evidence.group_ids[evidence.groups], chosen))
    report = attack_of(evidence).of(rows_of(evidence, users), 1, everybody=False)
    names = {each["attack"] for each in report["results"]}
    assert names == {each["attack"] for each in found["results"]} - {"columns"}
    assert report["original"] == []
    for result in report["results"]:
        if result["attack"] == "disclosure":
            continue
        assert result["chance_user"] == 1 / evidence.original.n_users
        assert result["chance_group"] == 1 / len(evidence.group_ids)
        assert result["targets"] <= len(users)
    # Of their groups all raters are there, so that a cell has as many as it has.
    part = Evidence(**{**vars(evidence), "original": evidence.original.with_users(users)})
    part = Evidence(**{**vars(part), "truth": evidence.truth[users], "groups": evidence.groups[users]})
    own = groups_of(part)
    assert own.group_ids.tolist() == chosen.tolist()
    assert own.shown.sizes.tolist() == evidence.group_sizes[::2].tolist()
    assert Attacked.of(own).n_classes <= len(chosen)
    items = np.arange(evidence.original.n_items)
    for whole, some in zip(evidence.shown.columns(items), own.shown.columns(items), strict=True):
        assert np.array_equal(whole[:, ::2], some, equal_nan=True)


def test_the_audit_says_who_was_attacked() -> None:
    said = {who: not_promised({"engine": "spark", "attacked": who}) for who in ("everybody", "some", "nobody")}
    assert [sum("engine spark" in each for each in said[who]) for who in said] == [0, 1, 1]
