"""The made-up database and its policy as files."""

import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import yaml
from guard_data import POLICY, build

from kgather._guard.atoms_engine import AtomsEngine
from kgather._guard.guard import Guard

AMPLE = {"epsilon": 1.0e6, "delta": 1.0e-6}
"""A budget of mode measured with which noise is negligible, for tests that are about something else."""
_ITEMS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")


@cache
def _folder() -> TemporaryDirectory[str]:
    """A folder that goes with the process."""
    return TemporaryDirectory(prefix="kgather-guard-")


@cache
def _database() -> Path:
    file = Path(_folder().name) / "fixture.duckdb"
    with duckdb.connect(file) as connection:
        build(connection)
    return file


def write_files(folder: Path, **changes: object) -> Path:
    """Put database and policy into a folder; changes: entries of the policy. Returns the policy's path."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_database(), folder / "fixture.duckdb")
    path = folder / "policy.yml"
    path.write_text(yaml.safe_dump(changed(yaml.safe_load(POLICY), **changes)), encoding="utf-8")
    return path


def changed(entries: dict[str, Any], **changes: object) -> dict[str, Any]:
    """The entries of a policy with changes; a budget that is not changed goes with mode measured alone."""
    made = {**entries, **changes}
    return {name: of for name, of in made.items() if name != "budget" or made["mode"] == "measured" or name in changes}


def spend(policy: Path, sql: str, principal: str | None = None) -> None:
    """Have a statement measured, and then charge the ledger of the policy with all that is left."""
    from kgather._guard.guard import Guard
    from kgather._guard.measured.engine import MeasuredEngine
    from kgather._guard.measured.ledger import LOST, Measurement

    guard = Guard.from_policy(policy)
    guard.query(sql, principal=principal)
    assert isinstance(guard.engine, MeasuredEngine)
    with guard.engine.ledger.measuring() as writing:
        left = guard.engine.prices.total - sum(one.rho for one in writing.known)
        nothing = np.zeros(0, dtype=np.int64)
        writing.add(Measurement(LOST, "all that was left", left, 0.0, 1.0, (), nothing, {"pool": "reserve"}))


def write_exact_files(folder: Path, **changes: object) -> Path:
    """The same with a policy in mode exact."""
    return write_files(folder, **{**exact_entries(), **changes})


def exact_entries() -> dict[str, Any]:
    """What makes the policy one of mode exact: about ratings_wide alone, and items beside it."""
    tables = yaml.safe_load(POLICY)["tables"]
    wide = {name: of for name, of in tables["ratings_wide"].items() if name != "pivot_of"}
    return {"mode": "exact", "tables": {"ratings_wide": wide, "items": tables["items"]}, "joins": []}


def atoms_of(guard: Guard) -> AtomsEngine:
    """The engine of a guard in mode exact or generalized."""
    assert isinstance(guard.engine, AtomsEngine)
    return guard.engine


def truth(folder: Path, sql: str) -> list[tuple[object, ...]]:
    """What the database itself answers."""
    with duckdb.connect(folder / "fixture.duckdb", read_only=True) as connection:
        return connection.sql(sql).fetchall()


def statements(seed: int) -> Iterator[str]:
    """Statements about ratings_wide, of which most cut atoms."""
    draw = random.Random(seed)
    while True:
        item, other = draw.sample(_ITEMS, 2)
        sign = draw.choice(("AND", "OR"))
        where = f"{item} >= {draw.randint(1, 5)} {sign} {other} <= {draw.randint(1, 5)}"
        yield draw.choice(
            (
                f"SELECT COUNT(*) AS n FROM ratings_wide WHERE {where}",
                f"SELECT AVG(salary) AS n FROM ratings_wide WHERE {where}",
                f"SELECT {item}, COUNT(*) AS n FROM ratings_wide GROUP BY 1",
            )
        )
