"""What a release takes over from the last one of the same people, and how the map is handed on."""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from kgather import _stopping as stopping
from kgather._errors import InputError
from kgather._loaders import LoadReport
from kgather._loaders.report import IdType
from kgather._settings.publication import CHAIN, PublishSettings
from kgather._settings.validation import validated
from kgather._sql_text import identifier, literal

WORK = "work.duckdb"
SETTINGS = "kgather_settings"
"""The table of a working database that says what its release was asked for."""

_LAST = "last_release"
_OF_CHAIN = ("kgather_history", "kgather_chain")
_TAKEN = (*_OF_CHAIN, "int_kgather__item_factors", "kgather_coarser")
STAGED, WAITING = "stg_kgather__ratings", "base_kgather__waiting_ratings"
"""The ratings that a release which takes them over needs: what was staged, and that of people who are in none yet."""
_SCALE, _ITEMS, _USERS = "int_kgather__scale", "int_kgather__items", "int_kgather__users"
OF_ADDITIONS = ("min_ratings", "not_rated")
"""Settings that say what is staged: where only additions are read, the others were staged with those of the last."""
_NEEDED = ("int_kgather__groups", "int_kgather__item_factors", "int_kgather__noise_key", SETTINGS)


@dataclass(frozen=True)
class Following:
    """What a release follows, and whether its input is everybody's data or only what has changed.

    work: the folder in which the working database of the last release was kept, or the database. additions: the input
    has only ratings that came since; all others are taken from there. removed: ids of users to leave out of those.
    """

    work: Path
    additions: bool = False
    removed: tuple[str, ...] = ()

    @property
    def database(self) -> Path:
        """The working database of the last release."""
        return self.work / WORK if self.work.is_dir() else self.work

    @property
    def folder(self) -> Path:
        """Where it lies, and where the next one goes if nothing else is said."""
        return self.database.parent


def read_removed(file: Path) -> tuple[str, ...]:
    """The users of a file, one id a line; a first line `user_id` is a header. Raises InputError."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeError):
        msg = f"{file} cannot be read. Give --remove a text file with one user id a line."
        raise InputError(msg) from None
    found = [line for line in lines if line]
    return tuple(found[1:] if found and found[0].lower() == "user_id" else found)


def with_last(following: Following, settings: PublishSettings) -> PublishSettings:
    """The settings of a release that follows: what all of a chain have in common is taken over where nothing is said.

    Raises InputError where there is no working database, or something else is said than the last release had.
    """
    before = _settings_of(following)
    common = (*CHAIN, *OF_ADDITIONS) if following.additions else CHAIN
    said = {name: getattr(settings, name) for name in settings.model_fields_set if name in common}
    now = settings.model_dump(mode="json")
    others = [
        f"{name} was {json.dumps(before.get(name))} and is {json.dumps(now[name])}"
        for name in said
        if now[name] != before.get(name)
    ]
    if others:
        msg = (
            f"this release is of another kind than the last one of {following.database}: {'; '.join(others)}. Whoever "
            "has two kinds of the same groups learns from both. Leave these out, or begin a chain of other people."
        )
        raise InputError(msg)
    taken = {name: value for name, value in before.items() if name in common and name not in said}
    return validated(PublishSettings, settings.model_dump() | taken | {"history": True})


def k_of(following: Following) -> int:
    """The k of the chain. Raises InputError where there is no working database."""
    return int(_settings_of(following)["k"])


def _settings_of(following: Following) -> Mapping[str, Any]:
    database = following.database
    if not database.is_file():
        msg = (
            f"{following.work} holds no working database ({WORK}). Give --history the folder that --keep-work kept of "
            "the last release of the same people; a first release has none."
        )
        raise InputError(msg)
    with duckdb.connect() as con:
        _attach(con, database)
        tables = {name for (name,) in con.sql("select table_name from duckdb_tables()").fetchall()}
        if not tables.issuperset(_NEEDED):
            msg = f"{database} is no working database of a release that can be followed. Give what --keep-work kept."
            raise InputError(msg)
        [(text,)] = con.sql(f"select settings from {_LAST}.{SETTINGS}").fetchall()
    return _said(text)


def _said(text: str) -> dict[str, Any]:
    """The settings that a working database kept. What the first release had without a word, all of a chain have."""
    last = validated(PublishSettings, json.loads(text))
    return last.model_dump(mode="json") | {"item_noise": last.noise_of_items}


def groups_of_last(following: Following) -> dict[int, int]:
    """The groups of the last release, by id, with the ids that they were formed with.

    Raises InputError where there is no working database.
    """
    _settings_of(following)
    with duckdb.connect() as con:
        put_last(con, following)
        return dict(con.sql("""
            select distinct group_id, lineage
            from kgather_history
            where group_id is not null
              and release_number = (select max(release_number) from kgather_history)
        """).fetchall())  # fmt: skip


def _attach(con: duckdb.DuckDBPyConnection, database: Path) -> None:
    try:
        con.execute(f"attach {literal(database)} as {_LAST} (read_only)")
    except duckdb.Error:
        msg = f"{database} cannot be opened as a database of DuckDB. Give --history what --keep-work kept."
        raise InputError(msg) from None


def key_of(following: Following) -> bytes:
    """The key of the noise of the chain: noise of another one would average out."""
    with duckdb.connect() as con:
        _attach(con, following.database)
        [(key,)] = con.sql(f"select key from {_LAST}.int_kgather__noise_key").fetchall()
    return bytes(key)


def put_last(
    con: duckdb.DuckDBPyConnection, following: Following | None, finished: frozenset[str] = frozenset()
) -> None:
    """Put what the pipeline looks for of the last run where it looks for it.

    finished: models of this run, which are left. One that was made and is not noted as finished is made again, and must
    not go on from itself.
    """
    if following is None:
        for name in {*_OF_CHAIN} - finished:
            con.execute(f"drop table if exists {name}")
        return
    _attach(con, following.database)
    tables = {name for (name,) in con.sql(
        f"select table_name from duckdb_tables() where database_name = '{_LAST}'"
    ).fetchall()}  # fmt: skip
    for name in _TAKEN:
        if name in tables and name not in finished:
            con.execute(f"create or replace table {name} as from {_LAST}.{name}")
    # The last release may not have been made to be followed.
    if "kgather_history" not in {*tables, *finished}:
        con.execute(f"create or replace table kgather_history as {_FIRST}")
    if "kgather_chain" not in {*tables, *finished}:
        con.execute(
            "create or replace table kgather_chain as select 1 as release_number, cast(? as varchar) as settings, "
            f"(select coalesce(sum(charge.rho), 0.0) from {_LAST}.int_kgather__factors where side = 'charge') as rho",
            [json.dumps(_common(con))],
        )
    con.execute(f"detach {_LAST}")


# Every group of a first release is formed in it.
_FIRST = f"""
select
  1 as release_number,
  cast(user_id as varchar) as user_id,
  'present' as state,
  group_id as lineage,
  group_id
from {_LAST}.int_kgather__groups
"""


def _common(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    [(text,)] = con.sql(f"select settings from {_LAST}.{SETTINGS}").fetchall()
    said = _said(text)
    return {name: said[name] for name in CHAIN}


def put_settings(con: duckdb.DuckDBPyConnection, settings: PublishSettings) -> None:
    """Say in the working database what its release was asked for, with what `auto` stood for."""
    said = json.dumps(settings.model_dump(mode="json") | {"homogenize": settings.form})
    con.execute(f"create or replace table {SETTINGS} as select cast(? as varchar) as settings", [said])


def take_over(database: Path, following: Following) -> None:
    """Make a working database from that of the last release, which has the ratings that were staged then, and of the
    rest only what the next release needs. Raises InputError where the ratings are not there.
    """
    settle(following.database)
    shutil.copyfile(following.database, database)
    with duckdb.connect(database) as con:
        there = con.sql("""
            select schema_name, table_name, 'table' from duckdb_tables()
            union all
            select schema_name, view_name, 'view' from duckdb_views() where not internal
        """).fetchall()  # fmt: skip
        if STAGED not in {name for _, name, _ in there}:
            msg = (
                f"the ratings of the last release are not in {following.database}. Give everybody's ratings of today "
                "instead of --additions."
            )
            raise InputError(msg)
        kept = {("main", name) for name in (*_TAKEN, STAGED, WAITING, _SCALE, _ITEMS, _USERS)} | {("loaded", "items")}
        for schema, name, kind in there:
            if (schema, name) not in kept:
                con.execute(f"drop {kind} {identifier(schema)}.{identifier(name)}")
        con.execute(f"create table if not exists {WAITING} as from {STAGED} limit 0")
        # After an erasure there is none: then all people are counted.
        con.execute(f"create table if not exists {_USERS} (user_id varchar, rated bigint, rated_so hugeint)")
        con.execute("create schema if not exists loaded")
        con.execute("create table loaded.removed (user_id varchar)")
        if following.removed:
            con.executemany("insert into loaded.removed values (?)", [[name] for name in following.removed])


def settle(database: Path) -> None:
    """Fold in what a run that was killed has written beside a working database."""
    if database.with_name(f"{database.name}.wal").exists():
        with duckdb.connect(database):
            pass


def load_nothing(con: duckdb.DuckDBPyConnection) -> LoadReport:
    """Make an empty table of ratings like those that were taken over, where users are removed and nothing is added."""
    types = {str(name): _id_type(kind) for name, kind, *_ in con.sql(f"describe {STAGED}").fetchall()}
    con.execute(
        f"create table loaded.ratings (user_id {types['user_id']}, item_id {types['item_id']}, rating double, "
        "rated_at timestamp, source varchar, line bigint, raw varchar, problem varchar)"
    )
    return LoadReport(inputs=[], user_id_type=types["user_id"], item_id_type=types["item_id"], warnings=[])


def add_last(con: duckdb.DuckDBPyConnection, following: Following, loaded: LoadReport) -> LoadReport:
    """Add what the last release's input had and that of this one leaves out: the catalogue. And where the input has
    only additions, make ids of one type of them and of the ratings that were taken over.

    Raises InputError where items that were rated are not in the new catalogue.
    """
    if following.additions:
        return _of_one_type(con, loaded)
    if loaded.catalogue is None:
        _attach(con, following.database)
        try:
            if _has(con, "items"):
                con.execute(f"create or replace table loaded.items as from {_LAST}.loaded.items")
        finally:
            con.execute(f"detach {_LAST}")
    return loaded


def _has(con: duckdb.DuckDBPyConnection, table: str) -> bool:
    found = con.sql(
        f"select 1 from duckdb_tables() where database_name = '{_LAST}' and schema_name = 'loaded' "
        f"and table_name = '{table}'"
    )
    return bool(found.fetchall())


def _of_one_type(con: duckdb.DuckDBPyConnection, loaded: LoadReport) -> LoadReport:
    staged = {str(name): _id_type(kind) for name, kind, *_ in con.sql(f"describe {STAGED}").fetchall()}
    wanted: dict[str, IdType] = {}
    for column, given in (("user_id", loaded.user_id_type), ("item_id", loaded.item_id_type)):
        wanted[column] = "BIGINT" if given == staged[column] == "BIGINT" else "VARCHAR"
        if staged[column] != wanted[column]:
            for name in (STAGED, WAITING):
                con.execute(f"alter table {name} alter {column} type {wanted[column]}")
    if (loaded.user_id_type, loaded.item_id_type) != (wanted["user_id"], wanted["item_id"]):
        con.execute(
            "create table loaded.of_one_type as select * replace ("
            + ", ".join(f"cast({column} as {kind}) as {column}" for column, kind in wanted.items())
            + ") from loaded.ratings"
        )
        [(kind,)] = con.sql(
            "select table_type from information_schema.tables "
            "where table_schema = 'loaded' and table_name = 'ratings' and table_catalog = current_database()"
        ).fetchall()
        con.execute(f"drop {'view' if kind == 'VIEW' else 'table'} loaded.ratings")
        con.execute("alter table loaded.of_one_type rename to ratings")
    if loaded.catalogue is not None:
        [(missing,)] = con.sql(
            f"select count(*) from {_ITEMS} as earlier "
            "anti join loaded.items on cast(earlier.item_id as varchar) = cast(items.item_id as varchar) "
            "where earlier.raters > 0"
        ).fetchall()
        if missing:
            msg = (
                f"the catalogue lacks {missing:,} items that were rated in earlier releases. Give all items, or "
                "everybody's ratings of today instead of --additions."
            )
            raise InputError(msg)
    return loaded.model_copy(update={"user_id_type": wanted["user_id"], "item_id_type": wanted["item_id"]})


def _id_type(kind: str) -> IdType:
    return "BIGINT" if str(kind).upper() == "BIGINT" else "VARCHAR"


def hand_on(work: Path, folder: Path, put_release: Callable[[], None]) -> Path:
    """Keep a working database as that of the last release of a chain, and then put the release in its place.

    The map is kept first: a run that is killed in between has kept a map of a release that nobody has, which does no
    harm. The database of the release before stays beside it, as release-1.duckdb and so on. Returns where it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / WORK
    part = kept.with_suffix(".part")
    stopping.note(part)
    _copy(work, part)
    # What a killed run left beside the one of the release before belongs to that one only.
    settle(kept)
    with stopping.whole:
        # A run that was killed after this has left it there.
        if kept.exists() and not any(map(kept.samefile, folder.glob("release-*.duckdb"))):
            os.link(kept, _unused(folder))
        part.replace(kept)
        stopping.forget(part)
        put_release()
    return kept


def _copy(work: Path, part: Path) -> None:
    shutil.copyfile(work, part)
    part.chmod(0o600)


def _unused(folder: Path) -> Path:
    number = 1
    while (folder / f"release-{number}.duckdb").exists():
        number += 1
    return folder / f"release-{number}.duckdb"


def without_counts(read: Mapping[str, Any]) -> dict[str, Any]:
    """What was read, without the numbers of rows that would count the ratings of people who are in no release."""
    files: Sequence[Mapping[str, Any]] = read.get("files", [])
    return {
        **{name: value for name, value in read.items() if name not in ("files", "further_files")},
        "files": [{name: value for name, value in file.items() if name not in ("rows", "set_aside")} for file in files],
    }
