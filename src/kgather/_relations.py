"""Finds the relation that a name on the command line means: a Parquet or CSV file, or a table of a DuckDB file."""

from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._sql_text import identifier, literal

_ATTACHED = "kgather_given"


def relation_in(con: duckdb.DuckDBPyConnection, name: str) -> str:
    """Return what may stand after FROM for `file.parquet`, `file.csv`, `file.duckdb` or `file.duckdb:table`.

    A DuckDB file is attached to the connection, for reading only. Raises InputError where there is no such thing.
    """
    path, table = _split(name)
    if path.is_dir():
        msg = f"{path} is a folder, but no release."
        raise InputError(msg)
    if not path.exists():
        msg = f"{path} does not exist."
        raise InputError(msg)
    with path.open("rb") as stream:
        head = stream.read(12)
    try:
        if head[8:12] == b"DUCK":
            return _table_of(con, path, table)
        reader = "read_parquet" if head[:4] == b"PAR1" else "read_csv"
        relation = f"{reader}({literal(path)})"
        con.sql(f"from {relation} limit 0")
    except duckdb.Error as error:
        msg = f"{path} cannot be read as Parquet, CSV or DuckDB ({type(error).__name__})."
        raise InputError(msg) from None
    return relation


def _split(name: str) -> tuple[Path, str | None]:
    path, colon, table = name.rpartition(":")
    if colon and not Path(name).exists() and Path(path).is_file():
        return Path(path), table
    return Path(name), None


def _table_of(con: duckdb.DuckDBPyConnection, path: Path, table: str | None) -> str:
    con.execute(f"attach {literal(path)} as {_ATTACHED} (read_only)")
    tables = con.execute(
        "select table_schema, table_name from information_schema.tables where table_catalog = ? order by all",
        [_ATTACHED],
    ).fetchall()
    wanted = [pair for pair in tables if table is None or table.lower() in (pair[1].lower(), ".".join(pair).lower())]
    if len(wanted) != 1:
        names = ", ".join(".".join(pair) for pair in tables) or "none"
        problem = f"has no table '{table}'" if table and not wanted else "has more than one table"
        msg = f"{path} {problem if tables else 'has no tables'}. Name one as {path}:TABLE. Tables: {names}."
        raise InputError(msg)
    return ".".join(map(identifier, (_ATTACHED, *wanted[0])))
