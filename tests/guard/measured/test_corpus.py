"""The corpus, asked of a guard in mode measured: what is harmless is answered, the rest tells of no single person."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from guard_data import OF_WHAT_IS_TOLD
from sensitivity import moves, recorded, without
from worlds_of_people import engine_of, seeded

from kgather._guard.guard import Guard
from kgather._guard.plan import Plan
from kgather._guard.planner import plan
from kgather._guard.policy import parse_policy
from kgather._guard.refused import Refused
from kgather._guard.render import question_sql

ROOT = Path(__file__).parent.parent.parent.parent
TABLES = {"ratings_wide": "user_id", "ratings": "user_id", "users": "user_id"}
TARGET, SALARY, K = 42, 999_999, 5
ASIDE = {"V07": "its text is two statements", "G05": "all its groups are too small"}
LARGE = 2_000.0
"""An epsilon that protects nobody: 200 people are too few for one that does, and what is asked here is whether the
questions can be answered at all."""

Entry = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(os.environ.get("KGATHER_REDTEAM", ROOT.parent / "shared" / "redteam"))
    if not (source / "policy.yml").is_file():
        pytest.skip(f"no corpus at {source}: set KGATHER_REDTEAM to a folder with its tables and policy")
    made = tmp_path_factory.mktemp("corpus")
    with duckdb.connect(made / "fixture.duckdb") as con:
        for table in ("ratings_wide", "ratings", "users", "items"):
            con.execute(f"create table {table} as from read_csv('{source / table}.csv')")
    (made / "policy.yml").write_text((source / "policy.yml").read_text(encoding="utf-8"), encoding="utf-8")
    return made


def _guard(folder: Path, name: str, epsilon: float | None, seed: int) -> Guard:
    """A guard with a ledger of its own; the default budget where none is given."""
    text = (
        (folder / "policy.yml").read_text(encoding="utf-8").replace("ledger: ledger.duckdb", f"ledger: {name}.sqlite")
    )
    budget = "" if epsilon is None else f"\nbudget: {{epsilon: {epsilon}, delta: 1.0e-6}}\n"
    return Guard(parse_policy(text + budget), folder, noise=seeded(seed))


def _steps(entry: Entry) -> Iterator[tuple[str, list[Any]]]:
    """The statements of an entry, with values for their parameters. A sentence in English after the last semicolon is
    none of it."""
    for step in entry["steps"]:
        sql = step.split(";\nRun each one")[0]
        if not sql.lstrip().startswith("--"):
            yield sql, next((given for mark, given in {"?": [5], "$1": [5, 1, 5]}.items() if mark in sql), [])


def test_what_is_harmless_is_answered_in_one_ledger(folder: Path, corpus: list[Entry]) -> None:
    guard = _guard(folder, "harmless", LARGE, 1)
    wanted = [entry for entry in corpus if entry["verdict"] in ("ALLOW", "REWRITE") and entry["id"] not in ASIDE]
    refused, asked = [], 0
    for entry in wanted:
        for sql, parameters in _steps(entry):
            asked += 1
            try:
                guard.query(sql, parameters=parameters)
            except Refused as refusal:
                refused.append((entry["id"], str(refusal)))
    assert asked > 30
    assert len(refused) <= 0.05 * asked, refused


def test_what_the_text_condemns_costs_nothing(folder: Path, corpus: list[Entry]) -> None:
    guard = _guard(folder, "condemned", LARGE, 2)
    passed, cost = [], []
    for entry in corpus:
        if entry["verdict"] != "REFUSE-S" or entry["id"] in OF_WHAT_IS_TOLD:
            continue
        static = []
        for sql, parameters in _steps(entry):
            before = len(engine_of(guard).ledger.measurements())
            try:
                guard.query(sql, parameters=parameters)
                static.append(False)
            except Refused as refusal:
                static.append(refusal.static)
                if refusal.static and len(engine_of(guard).ledger.measurements()) != before:
                    cost.append(entry["id"])
        if not any(static):
            passed.append(entry["id"])
    assert passed == []
    assert cost == []


@pytest.mark.parametrize("epsilon", [None, LARGE])
def test_what_singles_out_is_paid_for_by_noise(
    folder: Path, corpus: list[Entry], tmp_path: Path, epsilon: float | None
) -> None:
    """Every number told is computed from measurements, and each of these moves by no more than its noise is for when
    the one in Bergen is taken out. Under the default budget nothing about fewer than k people is shown, with this
    noise: it may be in favour of a few once in a while."""
    guard = _guard(folder, f"singled{epsilon}", epsilon, 4)
    unguarded = _unguarded(guard)
    shown, told = [], []
    with recorded() as wanted:
        for entry in corpus:
            if entry["verdict"] not in ("REFUSE-D", "SESSION") and entry["id"] not in OF_WHAT_IS_TOLD:
                continue
            for sql, parameters in _steps(entry):
                try:
                    answer = guard.answer(sql, parameters=parameters)
                except Refused:
                    continue
                made = plan(sql, guard.catalog, parameters)
                assert isinstance(made, Plan)
                told += [(entry["id"], value) for row in answer.table.to_pylist() for value in row.values()]
                shown += [(entry["id"], *few) for few in _of_few(guard, made, answer.errors, unguarded)]
    assert len(wanted) > 10
    assert not [name for name, value in told if isinstance(value, int | float) and abs(value - SALARY) < 0.5]
    if epsilon is None:
        assert shown == []
    other = without(folder / "fixture.duckdb", tmp_path / "other.duckdb", TARGET, TABLES)
    for one, moved, reach in moves(guard, list({each.name: each for each in wanted}.values()), other):
        assert moved <= reach, (one.name, moved, reach)


def _unguarded(guard: Guard) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(f"attach '{engine_of(guard).database.path}' as source (read_only)")
    for table in (*TABLES, "items"):
        con.execute(f"create table {table} as from source.{table}")
    ids = " union ".join(f"select {unit} as id from {table}" for table, unit in TABLES.items())
    con.execute(f"create table kg_units as {ids}")
    return con


def _of_few(
    guard: Guard, made: Plan, told: Any, unguarded: duckdb.DuckDBPyConnection
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Groups that were shown, though they have fewer than k people."""
    for block in made.blocks:
        if len(block.grouping_sets) > 1:
            continue
        sql = question_sql(block.question, ["count(distinct kg_unit.id)"], guard.catalog.unit)
        people = {tuple(row[:-1]): row[-1] for row in unguarded.execute(sql).fetchall()}
        columns = [told[block.name][key.name].to_pylist() for key in block.keys]
        for keys in zip(*columns, strict=True) if columns else [()]:
            if people.get(keys, 0) < K:
                yield keys, people.get(keys, 0)
