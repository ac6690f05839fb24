"""TPC-H as it is written, asked of the guard: the 16 queries about people that ask for no list of orders or customers.

    make bench-tpch

The database is made up in the shape of TPC-H, scale .2 (30,000 customers, 300,000 orders, 1.2 million items); the
queries are those of the specification with its validation parameters. A query counts as answered if it is not refused,
and each number that is told is within 5% of DuckDB's, or within four of its standard errors; where noise hides all
numbers, it says so, and that is named. One ledger, the default budget. Writes benchmarks/results/tpch.{md,json}.
"""

import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from harness import Claim, Result
from tpch_data import build
from tpch_queries import QUERIES

from kgather._guard.guard import Answer, Guard
from kgather._guard.refused import Refused

POLICY = Path(__file__).parent / "tpch.yml"
SCALE = 0.2
NEAR = 0.05
GOAL = 12
_SURE = 4.0  # standard errors


def main() -> None:
    """Ask each query once."""
    result = Result("tpch")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        build(path / "tpch.duckdb", SCALE)
        (path / "guard.yml").write_text(POLICY.read_text(encoding="utf-8"), encoding="utf-8")
        guard = Guard.from_policy(path / "guard.yml")
        answered = 0
        with duckdb.connect(path / "tpch.duckdb", read_only=True) as con:
            for name, sql in QUERIES.items():
                answered += _ask(result, guard, con, name, sql)
    share = answered / len(QUERIES)
    reached = answered >= GOAL
    ours, goal = f"{answered} of {len(QUERIES)}", f"at least {GOAL}"
    result.add(Claim("TPC-H as written, answered", ours, "all by DuckDB", share, goal, reached))
    sys.exit(not reached)


def _ask(result: Result, guard: Guard, con: duckdb.DuckDBPyConnection, name: str, sql: str) -> bool:
    began = time.perf_counter()
    try:
        told = guard.answer(sql, errors="columns")
    except Refused as refusal:
        result.add(Claim(f"Q{name}", "refused", "", 0.0, "answered", False, str(refusal)[:160]))
        return False
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    columns = [column[0] for column in con.execute(sql).description]
    wanted = con.fetchall()
    plain = time.perf_counter() - began
    right, numbers, worst = _compared(told, columns, wanted)
    good = right == numbers
    within = f"{right} of {numbers} numbers within 5% or four errors; those said to be within 5% by {worst:.1%} at most"
    notes = f"{within}. {told.notes[0]}" if numbers else told.notes[0]
    ours, rival = f"{seconds:.1f} s", f"{plain:.2f} s by DuckDB"
    result.add(Claim(f"Q{name}", ours, rival, seconds / max(plain, 1e-3), "answered", good, notes))
    return good


def _compared(told: Answer, columns: list[str], wanted: list[tuple[Any, ...]]) -> tuple[int, int, float]:
    """How many numbers are as near as they say, of how many that are told, and how far the furthest of those is off
    that are said to be within 5%."""
    keys = [at for at, name in enumerate(columns) if f"{name}_error" not in told.table.column_names]
    if len(keys) == len(columns):  # one row that is computed from what was measured
        keys = []
    truth = {tuple(str(row[at]) for at in keys): row for row in wanted}
    right = numbers = 0
    worst = 0.0
    marked = "largest standard error" in told.notes[0]
    for row in told.table.to_pylist():
        true = truth.get(tuple(str(row[columns[at]]) for at in keys))
        for at, name in enumerate(columns):
            if at in keys or row[name] is None:
                continue
            numbers += 1
            if true is None:  # a group that is not there is told as one of few people, within its error
                error = row.get(f"{name}_error")
                right += error is not None and abs(float(row[name])) <= _SURE * error
                continue
            off = abs(float(row[name]) - float(true[at]))
            error = row.get(f"{name}_error")
            may_be = _SURE * error if error is not None else (math.inf if marked else 0.0)
            near = NEAR * abs(float(true[at]))
            right += off <= max(near, may_be)
            if may_be <= near:
                worst = max(worst, off / max(abs(float(true[at])), 1e-9))
    return right, numbers, worst


if __name__ == "__main__":
    main()
