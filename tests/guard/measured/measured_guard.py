"""Guards of mode measured over the made-up database, with noise of a fixed seed, and the command line."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from guard_files import write_files
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import KgatherError
from kgather._guard.guard import Guard
from kgather._guard.measured.ledger import Ledger
from kgather._guard.measured.noise import Noise
from kgather._guard.policy import load_policy

MEASURED: Mapping[str, object] = {
    "mode": "measured",
    "ledger": "ledger.sqlite",
    "audit_log": "audit.jsonl",
    "budget": {"epsilon": 2_000.0, "delta": 1e-6},
}

EXACT: Mapping[str, object] = {
    "mode": "exact",
    "ledger": "ledger.duckdb",
    "budget": None,
    "tables": {"users": {"privacy_unit": "user_id", "grain": "unit", "measures": ["age"], "dimensions": ["gender"]}},
    "joins": [],
}
"""The entries of a policy of mode exact."""


def policy_in(folder: Path, **changes: object) -> Path:
    """A policy of mode measured, with its database. Entries that are None are left out."""
    entries = {**MEASURED, **changes}
    return write_files(folder, **{name: value for name, value in entries.items() if value is not None})


def seeded(seed: int) -> Noise:
    random = np.random.default_rng(seed)
    return lambda n, sd: np.rint(random.normal(size=n) * sd).astype(np.int64)


def opened(policy: Path, seed: int = 1) -> Guard:
    return Guard(load_policy(policy), policy.parent, noise=seeded(seed))


def ledger_of(policy: Path) -> Ledger:
    return Ledger(load_policy(policy).ledger)


def logged(policy: Path) -> list[dict[str, Any]]:
    path = load_policy(policy).audit_log
    assert path is not None
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def change_data(policy: Path, sql: str = "delete from ratings_wide where user_id = 1") -> None:
    with duckdb.connect(policy.parent / "fixture.duckdb") as con:
        con.execute(sql)


def kgather(*arguments: object) -> tuple[int, str]:
    """The exit code and what was printed, or what the error says."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, f"{result.stdout}{result.exception}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout
