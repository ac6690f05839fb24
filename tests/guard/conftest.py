"""The made-up database and its policy, and the corpus of statements where there is one."""

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest
from guard_data import POLICY, Ask, Unguarded, build, turn
from guard_files import changed as changed_entries

from kgather._guard.catalog import Catalog, catalog_of
from kgather._guard.plan import Local, Plan
from kgather._guard.planner import plan
from kgather._guard.policy import Policy, parse_policy

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})  # groups come in the same order each time
    build(connection)
    return connection


@pytest.fixture(scope="session")
def turned() -> duckdb.DuckDBPyConnection:
    """The same rows in the opposite order."""
    connection = duckdb.connect(config={"threads": 1})
    build(connection)
    turn(connection)
    return connection


@pytest.fixture(scope="session")
def policy() -> Policy:
    return parse_policy(POLICY)


@pytest.fixture(scope="session")
def catalog(database: duckdb.DuckDBPyConnection, policy: Policy) -> Catalog:
    return catalog_of(database, policy)


@pytest.fixture(scope="session")
def ask(catalog: Catalog) -> Ask:
    """Plan a statement under the policy."""

    def run(sql: str, *parameters: object, **changes: object) -> Plan | Local:
        changed = catalog
        if changes:
            policy = Policy.model_validate(changed_entries(catalog.policy.model_dump(), **changes))
            changed = Catalog(policy, catalog.tables, catalog.uniques)
        return plan(sql, changed, parameters)  # type: ignore[arg-type]

    return run


@pytest.fixture(scope="session")
def corpus() -> list[dict[str, Any]]:
    """Statements with the verdict that each has to get: $KGATHER_REDTEAM, or a folder beside the project."""
    folder = Path(os.environ.get("KGATHER_REDTEAM", ROOT.parent / "shared" / "redteam"))
    if not (folder / "queries.jsonl").is_file():
        pytest.skip(f"no corpus at {folder}: set KGATHER_REDTEAM to a folder with queries.jsonl")
    return [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="session")
def unguarded(database: duckdb.DuckDBPyConnection, catalog: Catalog) -> Unguarded:
    return Unguarded(database, catalog)
