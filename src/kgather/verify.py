"""Checks anyone can repeat: k-anonymity of a release or of any relation, from what it holds and nothing else."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from kgather.errors import InputError
from kgather.release import AUDIT, DATABASE, Check
from kgather.sql_text import identifier, literal

K_ANONYMITY = "k-anonymity: rows in the smallest equivalence class"


def is_release(path: Path) -> bool:
    """Return whether a path is a folder that holds a release."""
    return path.is_dir() and (path / AUDIT).exists()


def verify_release(folder: Path, k: int) -> tuple[Check, ...]:
    """Check that a release is k-anonymous and that its files agree with each other.

    Raises InputError where the folder holds no release.
    """
    low_rank = not (folder / "ratings.parquet").exists() and (folder / "group_vectors.parquet").exists()
    files = ("groups", "members", *(("item_vectors", "group_vectors") if low_rank else ("ratings",)))
    missing = [f"{name}.parquet" for name in files if not (folder / f"{name}.parquet").exists()]
    if missing or not (folder / DATABASE).exists():
        msg = f"{folder} is no release: {', '.join(missing or [DATABASE])} is missing."
        raise InputError(msg)
    with duckdb.connect() as con:
        for name in files:
            con.execute(f"create view {name} as from read_parquet({literal(folder / f'{name}.parquet')})")
        con.execute(f"create view cells as from {files[-1]}")
        con.execute(f"attach {literal(folder / DATABASE)} as release (read_only)")
        return (
            _at_least(con, "k-anonymity: users in the smallest group", k, _SMALLEST_CLASS),
            _none(con, "groups whose size is not the number of their members", _WRONG_SIZES),
            _none(con, "members or ratings without a group", _STRAYS),
            _none(con, "pseudonyms that occur twice", _REPEATED_PSEUDONYMS),
            *(
                _none(con, f"rows in which {name}.parquet and {DATABASE} differ", _DIFFERENCES.format(name=name))
                for name in files
            ),
        )


def verify_relation(con: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str], k: int) -> Check:
    """Check that every combination of values of the columns belongs to at least k rows; null is a value.

    `relation` is what may stand after FROM. Without columns all are quasi-identifiers. An empty relation passes.
    Raises InputError where a column does not exist.
    """
    existing = con.sql(f"from {relation}").columns
    by_name = {column.lower(): column for column in existing}
    unknown = [column for column in columns if column.lower() not in by_name]
    if unknown:
        msg = f"no column {', '.join(unknown)}. There are: {', '.join(existing)}."
        raise InputError(msg)
    chosen = [by_name[column.lower()] for column in columns] or existing
    keys = ", ".join(identifier(column) for column in chosen)
    query = f"select min(class_size) from (select count(*) as class_size from {relation} group by {keys})"
    return _at_least(con, K_ANONYMITY, k, query)


_SMALLEST_CLASS = """
select min(members)
from (
  select count(members.pseudonym) as members
  from groups left join members using (group_id)
  group by group_id
)
"""
_WRONG_SIZES = """
select count(*)
from groups
left join (select group_id, count(*) as members from members group by group_id) as counted using (group_id)
where group_size is distinct from members
"""
_STRAYS = """
select (select count(*) from members anti join groups using (group_id))
  + (select count(*) from cells anti join groups using (group_id))
"""
_REPEATED_PSEUDONYMS = "select count(pseudonym) - count(distinct pseudonym) from members"
_DIFFERENCES = """
select count(*)
from (
  (from {name} except all from release.kgather__{name})
  union all
  (from release.kgather__{name} except all from {name})
)
"""


def _at_least(con: duckdb.DuckDBPyConnection, check: str, promised: int, query: str) -> Check:
    [(measured,)] = con.sql(query).fetchall()
    # Nobody is in an empty relation, so nobody can be told apart in it.
    return Check(check, promised, measured or 0, measured is None or measured >= promised)


def _none(con: duckdb.DuckDBPyConnection, check: str, query: str) -> Check:
    [(measured,)] = con.sql(query).fetchall()
    return Check(check, 0, measured, measured == 0)
