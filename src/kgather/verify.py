"""Checks anyone can repeat: k-anonymity of a release or of any relation, from what it holds and nothing else."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from kgather.errors import InputError
from kgather.methods import BY_LEVEL
from kgather.release import AUDIT, DATABASE, FILES, Check
from kgather.sql_text import identifier, literal

K_ANONYMITY = "k-anonymity: rows in the smallest equivalence class"


def is_release(path: Path) -> bool:
    """Return whether a path is a folder that holds a release."""
    return path.is_dir() and (path / AUDIT).exists()


def promised_size(folder: Path) -> int:
    """Return the size of group that a release promises everybody: its k, or 1 where users chose for themselves.

    Raises InputError where the release does not say.
    """
    parameters = _parameters(folder)
    try:
        return 1 if parameters.get("method") in BY_LEVEL else int(parameters["k"])
    except (KeyError, TypeError, ValueError):
        msg = f"{folder / AUDIT} does not say what k was promised. Say what to check for with --k."
        raise InputError(msg) from None


def verify_release(folder: Path, k: int) -> tuple[Check, ...]:
    """Check that a release is k-anonymous and that its files agree with each other.

    Raises InputError where the folder holds no release.
    """
    files = _files(folder)
    parameters = _parameters(folder)
    with duckdb.connect() as con:
        for name in files:
            con.execute(f"create view {name} as from read_parquet({literal(folder / f'{name}.parquet')})")
        con.execute(f"attach {literal(folder / DATABASE)} as release (read_only)")
        return (
            _at_least(con, "k-anonymity: users in the smallest group", k, _SMALLEST_CLASS),
            _none(con, "groups whose size is not the number of their members", _WRONG_SIZES),
            _none(con, "members or ratings without a group", _strays(files)),
            _none(con, "pseudonyms that occur twice", _REPEATED_PSEUDONYMS),
            *_checks_of_form(con, files, k, parameters),
            *(
                _none(con, f"rows in which {name}.parquet and {DATABASE} differ", _DIFFERENCES.format(name=name))
                for name in files
            ),
        )


def _files(folder: Path) -> list[str]:
    """The relations that a release has as files, by name."""
    present = [file.removesuffix(".parquet") for file in FILES if (folder / file).exists()]
    missing = [name for name in ("groups", "members") if name not in present]
    if "group_vectors" in present and "item_vectors" not in present:
        missing.append("item_vectors")
    if not {"ratings", "group_vectors", "generalized", "user_ratings"} & set(present):
        missing.append("ratings")
    if missing or not (folder / DATABASE).exists():
        told = ", ".join([*(f"{name}.parquet" for name in missing)] or [DATABASE])
        msg = f"{folder} is no release: {told} is missing."
        raise InputError(msg)
    return present


def _parameters(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / AUDIT).read_text(encoding="utf-8"))["parameters"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _strays(files: Sequence[str]) -> str:
    """Counts rows of members and of what groups show that belong to no group, or to no member."""
    keys = {"members": "group_id", "user_ratings": "pseudonym"}
    of_groups = [name for name in files if name not in ("groups", "item_vectors")]
    return "select " + " + ".join(
        f"(select count(*) from {name} anti join {'members' if name == 'user_ratings' else 'groups'} "
        f"using ({keys.get(name, 'group_id')}))"
        for name in of_groups
    )


def _checks_of_form(
    con: duckdb.DuckDBPyConnection, files: Sequence[str], k: int, parameters: dict[str, Any]
) -> Iterator[Check]:
    if "generalized" in files:
        personal = parameters.get("personal_columns", [])
        columns = [name for name in con.sql("from generalized").columns if name not in ("group_id", *personal)]
        yield verify_relation(con, "generalized", columns, k)
    if "user_ratings" in files and "intervals" in files:
        epsilon = float(parameters.get("epsilon", 0))
        yield _none(con, f"groups and items whose members are farther apart than {epsilon:g}", _too_far(epsilon))
    elif "user_ratings" in files:
        # Every user is a class of one's own, whatever the groups say.
        yield Check("k-anonymity: users whose ratings are shown one by one", k, 1, k <= 1)


def _too_far(epsilon: float) -> str:
    """Items that the intervals leave out are sensitive ones, shown as they are."""
    return f"""
        select count(*)
        from (
          select members.group_id
          from user_ratings
          join members using (pseudonym)
          join groups using (group_id)
          semi join intervals using (item_id)
          group by members.group_id, user_ratings.item_id
          having max(rating) - min(rating) > {epsilon} + 1e-9 or count(*) <> any_value(group_size)
        )
    """


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
