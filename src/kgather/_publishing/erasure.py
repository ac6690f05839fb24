"""Somebody wants to be out at once, and not only of the next release.

A release made anew at once would differ from the last one by that person. So the person's whole group is taken out of
the release, and nothing else is changed: the items' vectors stay where they have a proven bound; where they have none,
all that is shown is computed from them, and the release is withdrawn whole. Both come back with the next release, which
is not made before at least k people have come or gone.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

from kgather import _stopping as stopping
from kgather._errors import InputError
from kgather._publishing.coarser import COARSER
from kgather._publishing.derived import Source, derive
from kgather._publishing.history import SETTINGS, STAGED, WAITING, WORK, Following, groups_of_last, put_last, settle
from kgather._publishing.publish import check_target
from kgather._sql_text import literal

_KEPT = (
    "int_kgather__item_factors",
    "int_kgather__items",
    "int_kgather__scale",
    "int_kgather__noise_key",
    SETTINGS,
    COARSER,
)
_OF_PEOPLE = ("int_kgather__groups", STAGED, WAITING, "loaded.ratings", "loaded.user_attributes")


@dataclass(frozen=True)
class Erased:
    """What was erased.

    Args:
        people: How many people.
        groups: How many groups were taken out of the release.
        release: The folder of what is left of it; None where the release has to be withdrawn whole.
    """

    people: int
    groups: int
    release: Path | None


def erase(users: tuple[str, ...], following: Following, release: Path, target: Path, *, force: bool = False) -> Erased:
    """Take users out of the working database of the last release, and their groups out of the release.

    users: their ids as text.

    following: the working database, which keeps only what the next release needs; those of the releases before it,
    beside it, are deleted, as they hold the users' ratings. target: where what is left of the release goes; with
    `force` it may be the release itself. The map is written first: a run that is killed in between can be made again.

    Raises InputError where nobody is named, a user is unknown, or the release is not that of the working database.
    """
    if not users:
        msg = "nobody is named who is to be erased. Give one user id at least."
        raise InputError(msg)
    check_target(target.resolve(), [str(following.work)], force=force)
    source = Source.of(release)
    groups = groups_of_last(following)
    if set(source.groups.tolist()) - set(groups):
        msg = f"{following.database} is not the map of {release}. Give --history what was kept of the last release."
        raise InputError(msg)
    gone = _note(users, following)
    # A group that was taken out before is not in the release any more.
    mine = gone & set(source.groups.tolist())
    if source.item_privacy is None:
        return Erased(len(users), len(mine), None)
    left = {group: group for group in source.groups.tolist() if group not in mine}
    if not left:
        return Erased(len(users), len(mine), None)
    derive(source, target, left, {}, force=force)
    return Erased(len(users), len(mine), target)


def _note(users: tuple[str, ...], following: Following) -> set[int]:
    """Write the working database without the users, and return the groups of the last release that they were in."""
    part = following.database.with_suffix(".erased")
    part.unlink(missing_ok=True)
    stopping.note(part)
    umask = os.umask(0o077)
    try:
        groups = _write_without(users, following, part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        os.umask(umask)
    settle(following.database)
    with stopping.whole:
        part.replace(following.database)
        stopping.forget(part)
        if following.database.name == WORK:
            for older in following.folder.glob("release-*.duckdb"):
                older.unlink()
    return groups


def _write_without(users: tuple[str, ...], following: Following, part: Path) -> set[int]:
    """Write the working database without the users as `part`; see `_note`."""
    with duckdb.connect(part) as con:
        put_last(con, following)
        con.execute(f"attach {literal(following.database)} as last_work (read_only)")
        con.execute("create temp table gone (user_id varchar)")
        con.executemany("insert into gone values (?)", [[user] for user in dict.fromkeys(users)])
        there = con.sql(
            "select schema_name, table_name from duckdb_tables() where database_name = 'last_work'"
        ).fetchall()
        tables = {
            name if schema == "main" else f"{schema}.{name}": f"last_work.{schema}.{name}" for schema, name in there
        }
        con.execute("create schema if not exists loaded")
        known = "select user_id from kgather_history"
        for name in ("loaded.ratings", WAITING):
            if name in tables:
                known += f" union select cast(user_id as varchar) from {tables[name]}"
        [(unknown,)] = con.sql(f"select count(*) from gone anti join ({known}) as known using (user_id)").fetchall()
        if unknown:
            msg = f"{unknown} of {len(users)} users are not known to {following.database}. Nothing was erased."
            raise InputError(msg)
        for name in _KEPT:
            if name in tables:
                con.execute(f"create or replace table {name} as from {tables[name]}")
        for name in _OF_PEOPLE:
            if name in tables:
                con.execute(
                    f"create table {name} as from {tables[name]} as theirs "
                    "anti join gone on cast(theirs.user_id as varchar) = gone.user_id"
                )
        if "loaded.items" in tables:
            con.execute(f"create table loaded.items as from {tables['loaded.items']}")
        latest = "release_number = (select max(release_number) from kgather_history)"
        con.execute(
            f"update kgather_history set state = 'erased' where {latest} and state = 'present' "
            "and user_id in (select user_id from gone)"
        )
        # Who waited was in no release, and nothing is kept.
        con.execute("delete from kgather_history where state = 'waiting' and user_id in (select user_id from gone)")
        groups = con.sql(
            f"select distinct group_id from kgather_history semi join gone using (user_id) "
            f"where {latest} and state = 'erased'"
        ).fetchall()
        con.execute("detach last_work")
    return {int(group) for (group,) in groups}
