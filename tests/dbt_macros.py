"""The SQL files of the package without the rest of it: macros of DuckDB, and dbt's Jinja macros in plain Jinja."""

import json
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2

from kgather._dbt_package import dbt_path

SQL = dbt_path() / "sql"


def create_macros(con: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Create the SQL macros of these names from their files."""
    for name in names:
        (file,) = SQL.rglob(f"{name}.sql")
        con.execute(file.read_text(encoding="utf-8"))


class CompilerError(Exception):
    """What dbt stops with."""


class _Return(Exception):  # noqa: N818
    def __init__(self, value: object) -> None:
        self.value = value


def load_macros(
    *files: str, con: duckdb.DuckDBPyConnection | None = None, execute: bool = True, **variables: object
) -> SimpleNamespace:
    """The macros of the files under sql/, as dbt's namespace `kgather`; run_query runs on the connection."""

    def refuse(message: str) -> None:
        raise CompilerError(message)

    def give_back(value: object) -> None:
        raise _Return(value)

    def run_query(query: str) -> SimpleNamespace:
        assert con, "the macro was not to query anything"
        return SimpleNamespace(rows=con.execute(query).fetchall())

    namespace = SimpleNamespace()
    given = {
        "kgather": namespace,
        "execute": execute,
        "var": lambda name: variables[name],
        "run_query": run_query,
        "tojson": json.dumps,
        "return": give_back,
        "exceptions": SimpleNamespace(raise_compiler_error=refuse),
    }
    for file in files:
        module = _template(file).make_module(given)
        for name, macro in vars(module).items():
            if isinstance(macro, jinja2.runtime.Macro):
                setattr(namespace, name, _returning(macro))
    return namespace


@cache
def _template(file: str) -> jinja2.Template:
    environment = jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)
    return environment.from_string((SQL / file).read_text(encoding="utf-8"))


def _returning(macro: Callable[..., str]) -> Callable[..., Any]:
    def call(*arguments: object, **named: object) -> Any:
        try:
            return macro(*arguments, **named)
        except _Return as returned:
            return returned.value

    return call
