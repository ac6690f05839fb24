"""Numbers that are known of users beside their ratings, in the order of an evidence's users."""

from collections.abc import Sequence

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence
from kgather._loaders import LoadOptions, load, load_user_attributes
from kgather._republishing.opening import is_working_database
from kgather._sql_text import identifier, literal

_WORKING = "work.stg_kgather__user_attributes"
_NUMBERS = ("tinyint", "smallint", "integer", "bigint", "hugeint", "float", "double", "decimal")


def numbers_of_users(
    evidence: Evidence,
    originals: Sequence[str],
    names: Sequence[str],
    source: str | None,
    load_options: LoadOptions | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Columns of numbers of the users' attributes, float64[n_users] by name, NaN where a user has none.

    source: the table of users, as `publish --user-attributes` takes it; None: that of the working database that
    `originals` is. Raises InputError where there is no such table or column, or a column holds no numbers.
    """
    with duckdb.connect() as con:
        relation = _relation(con, originals, source, load_options)
        existing = {name.lower(): name for name in con.sql(f"from {relation}").columns if name.lower() != "user_id"}
        kinds = dict(zip(con.sql(f"from {relation}").columns, con.sql(f"from {relation}").types, strict=True))
        unknown = [name for name in names if name.lower() not in existing]
        if unknown:
            there = ", ".join(existing.values())
            msg = f"the users' attributes have no column {', '.join(unknown)}. There are: {there}."
            raise InputError(msg)
        chosen = [existing[name.lower()] for name in names]
        texts = [name for name in chosen if str(kinds[name].id) not in _NUMBERS]
        if texts:
            msg = f"{', '.join(texts)} holds no numbers, so that it has no mean. Name columns of numbers."
            raise InputError(msg)
        columns = ", ".join(f"cast({identifier(name)} as double)" for name in chosen)
        rows = con.sql(f"select cast(user_id as varchar), {columns} from {relation}").fetchall()
    known = {user: values for user, *values in rows}
    nobody = [None] * len(chosen)
    assert evidence.user_ids is not None
    table = np.array([known.get(str(user), nobody) for user in evidence.user_ids.to_pylist()], dtype=np.float64)
    return dict(zip(chosen, table.T, strict=True))


def _relation(
    con: duckdb.DuckDBPyConnection, originals: Sequence[str], source: str | None, load_options: LoadOptions | None
) -> str:
    """What may stand after FROM: the users' attributes."""
    working = is_working_database(originals)
    if source is None:
        if working:
            con.execute(f"attach {literal(originals[0])} as work (read_only)")
            tables = con.execute(
                "select count(*) from duckdb_tables() where table_name = 'stg_kgather__user_attributes'"
            ).fetchall()
            views = con.execute(
                "select count(*) from duckdb_views() where view_name = 'stg_kgather__user_attributes'"
            ).fetchall()
            if tables[0][0] or views[0][0]:
                return _WORKING
        msg = "the users' attributes are not at hand. Say where they are with --user-attributes."
        raise InputError(msg)
    inputs = [f"{originals[0]}:stg_kgather__ratings"] if working else list(originals)
    loaded = load(con, inputs, LoadOptions() if working else load_options or LoadOptions())
    load_user_attributes(con, source, ratings_loaded=loaded)
    return "loaded.user_attributes"
