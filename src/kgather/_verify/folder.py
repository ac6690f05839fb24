"""A release as a whole: k-anonymity, files that agree with each other, and nothing beside what belongs there."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._methods import registered
from kgather._release.release import AUDIT, DATABASE, FILES, REPORT, Check, unordered
from kgather._sql_text import identifier, literal
from kgather._verify import audited, connection, contents, noted, table
from kgather._verify.drawn_ids import UNLIKE_GROUP_IDS, UNLIKE_PSEUDONYMS
from kgather._verify.models import verify_relation
from kgather._verify.verdicts import at_least, at_most

# What each file is ordered by, and all the columns it may have: None where the data name them.
_ORDERS: Mapping[str, tuple[str, ...]] = {
    "ratings": ("group_id", "item_id"),
    "groups": ("group_id",),
    "members": ("pseudonym",),
    "user_ratings": ("pseudonym", "item_id"),
    "intervals": ("group_id", "item_id"),
    "generalized": ("group_id",),
    "personal": (),
    "group_vectors": ("group_id",),
    "item_vectors": ("item_id",),
}
_COLUMNS: Mapping[str, tuple[str, ...] | None] = {
    "ratings": ("group_id", "item_id", "rating"),
    "groups": ("group_id", "group_size"),
    "members": ("pseudonym", "group_id"),
    "user_ratings": ("pseudonym", "item_id", "rating"),
    "intervals": ("group_id", "item_id", "low", "high"),
    "generalized": None,
    "personal": None,
    "group_vectors": ("group_id", "level", "factor"),
    "item_vectors": ("item_id", "level", "factor"),
}

_TABLES = tuple(f"kgather__{name}" for name in (*_COLUMNS, "audit", "metrics"))
_MACROS = ("kg_rating",)


def is_release(path: Path) -> bool:
    """Return whether a path is a folder that holds a release."""
    return path.is_dir() and (path / AUDIT).exists()


def promised_size(folder: Path) -> int:
    """Return the size of group that a release promises everybody: its k, or 1 where users chose for themselves.

    Raises InputError where the release does not say.
    """
    audit = _audit(folder)
    if table.is_table(audit):
        return noted.settings_of(audit).k
    parameters = promised_parameters(folder)
    try:
        method = registered().get(str(parameters.get("method")))
        return 1 if method is not None and method.levels else int(parameters["k"])
    except (KeyError, TypeError, ValueError, OverflowError):
        msg = f"{folder / AUDIT} does not say what k was promised. Say what to check for with --k."
        raise InputError(msg) from None


def verify_release(folder: Path, k: int) -> tuple[Check, ...]:
    """Check that a release is k-anonymous, that its files agree with each other, and that nothing else is in it.

    Raises InputError where the folder holds no release.
    """
    audit = _audit(folder)
    if table.is_table(audit):
        return table.verify_table(
            folder, k, audit, _changed_files(folder, [table.FILE.removesuffix(".parquet")], audit)
        )
    files = _files(folder)
    parameters = promised_parameters(folder)
    with connection.bounded() as con:
        try:
            for name in files:
                con.execute(f"create view {name} as from read_parquet({literal(folder / f'{name}.parquet')})")
            con.execute(f"attach {literal(folder / DATABASE)} as release (read_only)")
            columns = {name: _columns(con, name) for name in files}
        except duckdb.Error as error:
            msg = f"{folder} is no release: a file of it cannot be read ({type(error).__name__})."
            raise InputError(msg) from None
        _refuse_missing(folder, columns)
        return (
            _at_least(con, "k-anonymity: users in the smallest group", k, _SMALLEST_CLASS),
            _none(con, "groups whose size is not the number of their members", _WRONG_SIZES),
            _none(con, "members or ratings without a group", _strays(files)),
            _none(con, "pseudonyms that occur twice", _REPEATED_PSEUDONYMS),
            *_checks_of_form(con, files, k, parameters),
            *_differences(con, columns),
            _none(con, "group ids that do not look drawn at random", UNLIKE_GROUP_IDS),
            _none(con, "pseudonyms that do not look drawn at random", UNLIKE_PSEUDONYMS),
            _out_of_order(con, files),
            _named("columns that a release does not have", _foreign_columns(columns)),
            _named(f"tables of {DATABASE} that a release does not have", contents.foreign(con, _TABLES, _MACROS)),
            _named("files that a release does not have", _foreign_files(folder)),
            _named(f"files that are not those of the checksums in {AUDIT}", _changed_files(folder, files, audit)),
            _named(f"what {AUDIT} says of the release and its tables do not", audited.otherwise(con, audit)),
            at_most(f"pages that are not that of {AUDIT}", 0, _other_pages(folder, audit)),
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


def _audit(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / AUDIT).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def promised_parameters(folder: Path) -> dict[str, Any]:
    """What a release says it was made with; nothing where it does not say."""
    parameters = _audit(folder).get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def _columns(con: duckdb.DuckDBPyConnection, name: str) -> tuple[list[str], list[str]]:
    """The columns of a file and of its table; none where there is no table."""
    try:
        of_table = con.sql(f"from release.kgather__{name}").columns
    except duckdb.CatalogException:
        of_table = []
    return con.sql(f"from {name}").columns, of_table


def _refuse_missing(folder: Path, columns: Mapping[str, tuple[list[str], list[str]]]) -> None:
    for name, (of_file, of_table) in columns.items():
        for place, existing in ((f"{name}.parquet", of_file), (f"kgather__{name} of {DATABASE}", of_table)):
            wanted = _COLUMNS.get(name) or _ORDERS.get(name, ())
            missing = [column for column in wanted if column not in existing]
            if missing:
                msg = f"{folder} is no release: {place} has no {', '.join(missing)}."
                raise InputError(msg)


def _strays(files: Sequence[str]) -> str:
    """Counts rows of members and of what groups show that belong to no group, or to no member."""
    keys = {"members": "group_id", "user_ratings": "pseudonym"}
    of_groups = [name for name in files if name not in ("groups", "item_vectors", "personal")]
    return "select " + " + ".join(
        f"(select count(*) from {name} anti join {'members' if name == 'user_ratings' else 'groups'} "
        f"using ({keys.get(name, 'group_id')}))"
        for name in of_groups
    )


def _checks_of_form(
    con: duckdb.DuckDBPyConnection, files: Sequence[str], k: int, parameters: dict[str, Any]
) -> Iterator[Check]:
    if "generalized" in files:
        # Of people is shown what the artifacts and the personal attributes say together.
        columns = [name for name in con.sql("from generalized").columns if name != "group_id"]
        yield verify_relation(con, "generalized", columns, k)
    if "personal" in files:
        smallest = verify_relation(con, "personal", con.sql("from personal").columns, k)
        yield replace(smallest, check="k-anonymity: users in the smallest class of the personal attributes")
        yield _none(con, "users without personal attributes, or the other way round", _UNLIKE_MEMBERS)
        asked = {str(name) for name in parameters.get("personal_columns", [])}
        foreign = [name for name in con.sql("from personal").columns if name not in asked]
        yield _named("columns of personal.parquet that the audit does not name", foreign)
        beside = con.sql("from generalized").columns if "generalized" in files else []
        declared = {str(name) for name in parameters.get("personal_shared", [])}
        both = [name for name in con.sql("from personal").columns if name in beside and name not in declared]
        yield _named("columns of personal.parquet and generalized.parquet that are not declared as shared", both)
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


def _differences(con: duckdb.DuckDBPyConnection, columns: Mapping[str, tuple[list[str], list[str]]]) -> Iterator[Check]:
    for name, (of_file, of_table) in columns.items():
        # Where one has more columns, that is told apart.
        both = [identifier(column) for column in of_file if column in of_table]
        check = f"rows in which {name}.parquet and {DATABASE} differ"
        same = " and ".join(f"a.{column} is not distinct from b.{column}" for column in both)
        # As they are written, both have the same order, and rows are compared as they come; else their bags are.
        [(as_many, apart)] = con.sql(_APART.format(name=name, same=same)).fetchall()
        if as_many and not apart:
            yield Check(check, 0, 0, passed=True)
        else:
            yield _none(con, check, _DIFFERENCES.format(name=name, columns=", ".join(both)))


def _out_of_order(con: duckdb.DuckDBPyConnection, files: Sequence[str]) -> Check:
    """Rows as write_release orders them say nothing; any other order may tell of the users'."""
    found, places = 0, []
    for name in filter(_ORDERS.__contains__, files):
        for place, relation in ((f"{name}.parquet", name), (f"kgather__{name}", f"release.kgather__{name}")):
            order = _ORDERS[name] or [identifier(column) for column in con.sql(f"from {relation}").columns]
            [(rows,)] = con.sql(unordered(relation, order)).fetchall()
            found += rows
            places += [place] if rows else []
    told = f": {', '.join(places)}" if places else ""
    return Check(f"rows that are not in the order of their random ids{told}", 0, found, found == 0)


def _foreign_columns(columns: Mapping[str, tuple[list[str], list[str]]]) -> list[str]:
    found = []
    for name, (of_file, of_table) in columns.items():
        known = set(_COLUMNS.get(name) or of_file)
        found += [f"{name}.parquet: {column}" for column in of_file if column not in known]
        found += [f"kgather__{name}: {column}" for column in of_table if column not in known]
        found += [f"kgather__{name} lacks {column}" for column in of_file if column not in of_table and column in known]
    return found


def _foreign_files(folder: Path) -> list[str]:
    known = {*FILES, DATABASE, AUDIT, REPORT}
    return sorted(path.name for path in folder.iterdir() if path.name not in known or not path.is_file())


def _changed_files(folder: Path, files: Sequence[str], audit: Mapping[str, Any]) -> list[str]:
    """Files whose checksum is another or none, and those that the audit names but are not there."""
    noted = audit.get("files")
    noted = noted if isinstance(noted, dict) else {}
    known = [*(f"{name}.parquet" for name in files), DATABASE]
    changed = [name for name in known if noted.get(name) != _sha256(folder / name)]
    for name in sorted(set(noted) - set(known)):
        path = folder / name
        # A name that leads elsewhere is no file of the release.
        if path.parent != folder or not path.is_file() or noted[name] != _sha256(path):
            changed.append(name)
    return changed


def _other_pages(folder: Path, audit: Mapping[str, Any]) -> int:
    if not (folder / REPORT).exists():
        return 0
    from kgather._report import render  # takes a while to load

    return audited.other_page(folder, audit, render)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _named(check: str, found: Sequence[str]) -> Check:
    """A check that there are none, with their names where there are."""
    return Check(f"{check}{': ' if found else ''}{', '.join(found)}", 0, len(found), not found)


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
_UNLIKE_MEMBERS = "select abs((select count(*) from personal) - (select count(*) from members))"
_REPEATED_PSEUDONYMS = "select count(pseudonym) - count(distinct pseudonym) from members"
_APART = """
select
  (select count(*) from {name}) = (select count(*) from release.kgather__{name}),
  (select count(*) from (from {name}) as a positional join (from release.kgather__{name}) as b where not ({same}))
"""
_DIFFERENCES = """
select count(*)
from (
  (select {columns} from {name} except all select {columns} from release.kgather__{name})
  union all
  (select {columns} from release.kgather__{name} except all select {columns} from {name})
)
"""


def _at_least(con: duckdb.DuckDBPyConnection, check: str, promised: int, query: str) -> Check:
    [(measured,)] = con.sql(query).fetchall()
    return at_least(check, promised, measured)


def _none(con: duckdb.DuckDBPyConnection, check: str, query: str) -> Check:
    [(measured,)] = con.sql(query).fetchall()
    return Check(check, 0, measured, measured == 0)
