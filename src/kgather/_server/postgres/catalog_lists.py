"""The files that the shadow catalog is made of: its relations, its functions, and the lists of what may be asked.

They are read once, when this module is: later the server may not be allowed to.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from kgather._guard.labels import label
from kgather._server.postgres.session_settings import VERSION

_HERE = Path(__file__).parent
_FUNCTIONS = (_HERE / "catalog_functions.sql").read_text(encoding="utf-8")
_LISTS = tomllib.loads((_HERE / "catalog_lists.toml").read_text(encoding="utf-8"))


def _by_node(table: str) -> dict[type[exp.Expr], str]:
    return {getattr(exp, name): text for name, text in _LISTS[table].items()}


DEFINITIONS = (_HERE / "catalog_tables.sql").read_text(encoding="utf-8") + _FUNCTIONS
"""SQL that makes the relations and functions of the catalog."""

MACROS = frozenset(name for name in re.findall(r"create macro (\w+)", _FUNCTIONS) if not name.startswith("kg_"))
"""Functions of PostgreSQL that the catalog has; those that begin with kg_ are for these."""

SESSION = frozenset(_LISTS["session"])
"""Functions that describe the connection, as current_user does."""

HARMLESS = frozenset(_LISTS["harmless"])
"""Functions of SQL that may be called, by the names of their nodes."""

SAME_IN_DUCKDB = frozenset(_LISTS["same_in_duckdb"])
"""Functions without a node of their own that DuckDB knows, too."""

CHARS = frozenset(_LISTS["chars"])
"""Columns of the type "char"."""

FUNCTIONS = frozenset(_LISTS["functions"])
"""Columns that hold the name of a function."""

SYSTEM_COLUMNS: Mapping[str, str] = _LISTS["system_columns"]
"""Columns that PostgreSQL has in every table, and what they are here."""

TYPES: Mapping[str, TokenType] = {name: TokenType[read_as] for name, read_as in _LISTS["types"].items()}
"""Types that only PostgreSQL has, and the word that they are read as."""

FROM_NAME: Mapping[str, str] = _LISTS["from_name"]
TO_NAME: Mapping[str, str] = _LISTS["to_name"]
"""The functions that casts to regclass and its kin become."""

JSON_CALLS: Mapping[str, str] = _LISTS["json"]
"""Functions that make JSON, and DuckDB's for them."""

SCHEMAS = frozenset({"main", "pg_catalog", "information_schema"})
"""The schemas that there are."""

TYPE_NAMES = frozenset(_LISTS["type_names"])
"""Names of types, as PostgreSQL and SQL have them."""

NUMBERS: Mapping[str, int] = _LISTS["numbers"]
"""Relations of the catalog, as PostgreSQL numbers them."""

SHOWN: Mapping[str, str] = _LISTS["shown"]
"""Relations that look different to each session, and the views that stand for them."""

VALUES: Mapping[type[exp.Expr], str] = {
    node: text.replace("{version}", VERSION) for node, text in _by_node("values").items()
}
"""What a node that describes the connection becomes, in DuckDB's SQL."""

VALUES_OF_CALLS: Mapping[str, str] = {label(node()): text for node, text in VALUES.items()}
"""The same where it is called as a function."""
