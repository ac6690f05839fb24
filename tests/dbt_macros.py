"""The SQL files of the package without the rest of it: macros of DuckDB, and dbt's Jinja macros in plain Jinja."""

import json
import re
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2

from kgather._dbt_package import dbt_path

SQL = dbt_path() / "sql"
# Every macro asks for settings.
SETTINGS = (
    "hooks/setting.sql",
    "hooks/releases.sql",
    "hooks/settings.sql",
    "hooks/choices.sql",
    "hooks/check_vars.sql",
)


def create_macros(con: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Create the SQL macros of these names from their files."""
    for name in names:
        (file,) = SQL.rglob(f"{name}.sql")
        con.execute(file.read_text(encoding="utf-8"))


class CompilerError(Exception):
    """What dbt stops with."""


class Namespace(dict[str, Any]):
    """Macros by name, as dbt's namespace of a package has them."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class _Return(Exception):  # noqa: N818
    def __init__(self, value: object) -> None:
        self.value = value


def load_macros(
    *files: str, con: duckdb.DuckDBPyConnection | None = None, execute: bool = True, **variables: object
) -> Namespace:
    """The macros of the files under sql/, as dbt's namespace `kgather`; run_query runs on the connection."""

    warnings: list[str] = []

    def refuse(message: str) -> None:
        raise CompilerError(message)

    def give_back(value: object) -> None:
        raise _Return(value)

    def run_query(query: str) -> SimpleNamespace:
        assert con, "the macro was not to query anything"
        return SimpleNamespace(rows=con.execute(query).fetchall())

    namespace = Namespace()
    given = {
        "kgather": namespace,
        "execute": execute,
        "project_name": "shop",
        # Settings are given by their names; vars as a project has them, as `vars`.
        "var": lambda name, default=None: variables.get("vars", {}).get(name, default),
        "modules": {"re": {"match": re.match, "fullmatch": re.fullmatch}},
        "invocation_args_dict": {"vars": variables.get("command_line", {})},
        "run_query": run_query,
        "tojson": lambda value: json.dumps(value, sort_keys=True, default=str),
        "return": give_back,
        "exceptions": SimpleNamespace(raise_compiler_error=refuse, warn=warnings.append),
    }
    if "vars" not in variables:
        variables["vars"] = {f"kgather_{name}": value for name, value in variables.items()}
    namespace.warnings = warnings
    for file in dict.fromkeys((*SETTINGS, *files)):
        module = _template(file).make_module(given)
        for name, macro in vars(module).items():
            if isinstance(macro, jinja2.runtime.Macro):
                namespace[name] = _returning(macro)
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
