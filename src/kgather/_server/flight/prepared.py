"""The values that a prepared statement waits for: how many, and of which types, as far as its text tells.

JDBC's driver binds nothing to a statement that does not say it, and takes one without columns for an update.
"""

from collections.abc import Sequence

import pyarrow as pa

from kgather._guard.catalog import Catalog
from kgather._guard.plan import Kind
from kgather._server.flight.listings import TYPES
from kgather._server.postgres.errors import PgError
from kgather._server.postgres.lexer import tokens
from kgather._server.postgres.parameters import guessed, kinds


def awaited(sql: str, catalog: Catalog) -> tuple[Kind, ...]:
    """The kinds of a statement's values; none where it has none or cannot be read: then the guard says why."""
    if len(sql) > catalog.policy.limits.statement_bytes:
        return ()
    try:
        return kinds(guessed(_numbered(sql), (), catalog))
    except PgError:
        return ()


def schema(awaiting: Sequence[Kind]) -> pa.Schema:
    """The values as columns, named by their numbers from 1."""
    return pa.schema([pa.field(str(at), TYPES[kind]) for at, kind in enumerate(awaiting, 1)])


def _numbered(sql: str) -> str:
    """The statement with $1, $2 and so on in place of its question marks."""
    made, done, count = [], 0, 0
    for token in tokens(sql):
        if token.kind == "sign" and token.text == "?":
            count += 1
            made += [sql[done : token.start], f"${count} "]
            done = token.end
    return "".join(made) + sql[done:]
