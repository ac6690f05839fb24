"""Clients that people use, each in a script of its own, against one server.

A script does the steps below and prints a line of JSON for each. `.ci/run` installs the clients; those that are absent
are skipped, and say so. The table in docs/server.md is what these tests found: KGATHER_WRITE_DOCS=1 writes it anew.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent / "postgres"))

from wire_files import PASSWORD, USER, Running, start

pytestmark = pytest.mark.long

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_INSTALLED = Path(os.environ.get("KGATHER_CLIENTS", _ROOT / ".clients"))
_DOCS = _ROOT / "docs" / "server.md"
_BEGIN, _END = "<!-- clients: made by tests/server/clients/test_clients.py -->", "<!-- end of clients -->"
_JDBC = Path("/usr/share/java/postgresql.jar")
_SECONDS = 900  # dbt starts many times, and the machine may be busy

STEPS = ("connects", "tables", "columns", "count", "average", "groups", "refusal")
_TITLES = ("client", "connects", "tables", "columns", "count", "average", "groups, parameters", "refusal", "also")
_PEOPLE = ["person_id", "film_a", "film_b", "score", "seen", "salary", "age", "city", "born"]
_GROUPS = "SELECT city, COUNT(*) AS n FROM people WHERE film_a IN (2, 3) GROUP BY city ORDER BY city"
_HIDDEN = "people.zip is hidden"
_ROWS = "The result would be rows of people"


@dataclass(frozen=True)
class Client:
    """A client. needs: what has to be there; named: in the docs; also: what its further steps show."""

    named: str
    script: str
    command: tuple[str | Path, ...]
    needs: tuple[Path | str, ...] = ()
    also: str = ""
    refused: str = _HIDDEN


def _python(named: str, script: str, package: str, also: str = "", *, env: str = "python", **more: str) -> Client:
    python = _INSTALLED / env / "bin" / "python"
    return Client(named, script, (python,), (python, f"{env}:{package}"), also, **more)


def _node(named: str, script: str, package: str, also: str = "") -> Client:
    return Client(named, script, ("node",), ("node", _INSTALLED / "node" / "node_modules" / package), also)


CLIENTS = (
    Client("psql", "psql.sh", ("bash",), ("psql",), "`FETCH_COUNT`, `\\copy`"),
    _python("psqlODBC with pyodbc", "odbc.py", "pyodbc", "`UseDeclareFetch`, decimals"),
    Client("JDBC", "Metadata.java", ("java", "-cp", _JDBC), ("java", _JDBC), "fetch size"),
    _python("Django", "django_orm.py", "django", "`iterator`"),
    _python("ADBC (PostgreSQL)", "adbc.py", "adbc_driver_postgresql"),
    _python("connectorx, polars.read_database_uri", "polars_uri.py", "connectorx"),
    _python("DuckDB's postgres extension", "duckdb_postgres.py", "duckdb", "`ATTACH`", env="duckdb", refused=_ROWS),
    # Its name does not begin with dbt_: dbt imports every such module on the path as a plugin.
    _python("dbt-postgres", "postgres_of_dbt.py", "dbt", "`debug`, `docs generate`, `source()`"),
    _python("pgcli", "pgcli_completion.py", "pgcli", "completion, `\\dt`"),
    _node("node pg, pg-cursor", "node_pg.js", "pg-cursor", "cursors, `= ANY($1)`"),
    _node("porsager postgres", "porsager.js", "postgres", "cursors, `= ANY($1)`"),
    _node("Sequelize", "sequelize.js", "sequelize"),
    _node("TypeORM", "typeorm.js", "typeorm"),
    Client("PHP PDO and pgsql", "pdo.php", ("php",), ("php",)),
    Client("R RPostgreSQL", "dbi.R", ("Rscript",), ("Rscript",)),
)

_found: dict[str, dict[str, bool]] = {}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    started = start()
    yield started
    started.stop()


def _missing(client: Client) -> str | None:
    """What of a client is not installed."""
    for need in client.needs:
        if isinstance(need, Path):
            if not need.exists():
                return str(need)
        elif ":" in need:
            env, package = need.split(":")
            if not list((_INSTALLED / env).glob(f"lib/python*/site-packages/{package}*")):
                return f"{package} in {_INSTALLED / env}"
        elif shutil.which(need) is None:
            return need
    return None


def _run(client: Client, server: Running) -> dict[str, Any]:
    """What a script says of each step."""
    env = os.environ | {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGUSER": USER,
        "PGPASSWORD": PASSWORD,
        "PGDATABASE": "kgather",
        "NODE_PATH": str(_INSTALLED / "node" / "node_modules"),
    }
    done = subprocess.run(
        [*map(str, client.command), str(_HERE / client.script)],
        env=env,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        cwd=_HERE,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stdout[-2000:] + done.stderr[-2000:]
    return {line["step"]: line.get("value", Failed(line.get("error", ""))) for line in lines}


class Failed(str):
    """What a client said when a step failed."""

    __slots__ = ()


def _counted(value: Any) -> list[tuple[str, int]]:
    return [(str(city), int(number)) for city, number in value]


def _judged(client: Client, told: dict[str, Any], server: Running) -> dict[str, bool]:
    """Which steps came out as they have to."""
    ask = server.service.guard.query
    expected = [(row["city"], row["n"]) for row in ask(_GROUPS, principal=USER).to_pylist()]
    mean = ask("SELECT AVG(salary) AS mean FROM people", principal=USER).to_pylist()[0]["mean"]
    count = ask("SELECT COUNT(*) AS n FROM people", principal=USER).to_pylist()[0]["n"]
    fits = {
        "connects": lambda value: int(value) == 1,
        "tables": lambda value: value == ["cities", "people"],
        "columns": lambda value: value == _PEOPLE,
        "count": lambda value: int(value) == count,
        "average": lambda value: float(value) == pytest.approx(mean, rel=1e-6),
        "groups": lambda value: _counted(value) == expected,
        "refusal": lambda value: client.refused in value,
        "cursor": lambda value: _counted(value) == expected,
        "copy": lambda value: _counted(value) == expected,
        "decimal": lambda value: int(value) > 0,
        "array": lambda value: bool(value),
        "command": lambda value: value == ["cities", "people"],
    }
    return {step: not isinstance(value, Failed) and fits[step](value) for step, value in told.items()}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.script)
def test_client(client: Client, server: Running) -> None:
    """Every step of every client comes out, with the numbers that the guard has."""
    missing = _missing(client)
    if missing is not None:
        pytest.skip(f"{missing} is not installed; .ci/run installs the clients")
    told = _run(client, server)
    found = _judged(client, told, server)
    _found[client.named] = found
    assert set(STEPS) <= set(found), told
    assert all(found.values()), {step: told[step] for step, works in found.items() if not works}


def _row(client: Client, found: dict[str, bool]) -> str:
    marks = ["yes" if found.get(step) else "no" for step in STEPS]
    also = client.also if all(found.values()) else ""
    return f"| {' | '.join([client.named, *marks, also])} |".replace("|  |", "| |")


def _table(rows: Sequence[str]) -> str:
    head = [f"| {' | '.join(_TITLES)} |", f"| {' | '.join('---' for _ in _TITLES)} |"]
    return "\n".join([_BEGIN, "", *head, *rows, "", _END])


def test_the_table_in_the_docs_is_what_was_found() -> None:
    """Rows of clients that are not here stay as they are."""
    text = _DOCS.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    listed, after = rest.split(_END)
    known = {line.split("|")[1].strip(): line for line in listed.splitlines() if line.startswith("| ")}
    rows = [
        _row(client, _found[client.named]) if client.named in _found else known.get(client.named, "")
        for client in CLIENTS
    ]
    made = before + _table([row for row in rows if row]) + after
    if os.environ.get("KGATHER_WRITE_DOCS"):
        _DOCS.write_text(made, encoding="utf-8")
        return
    assert made == text, "write it with KGATHER_WRITE_DOCS=1"
