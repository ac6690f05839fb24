"""The catalog that clients see: PostgreSQL's own relations, filled with what the policy shows and with nothing else.

An in-memory database of its own, which never heard of the protected one, answers questions all of whose relations are
of pg_catalog or information_schema. A statement is written anew for it from its syntax tree, with the functions of an
allow-list; what cannot be answered is refused with one text.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
from sqlglot import exp

from kgather._guard.catalog import Catalog, TableInfo
from kgather._guard.plan import Kind
from kgather._guard.policy import fold
from kgather._server.postgres import types
from kgather._server.postgres.catalog_lists import DEFINITIONS, NUMBERS
from kgather._server.postgres.catalog_sql import Question, read
from kgather._server.postgres.errors import (
    AMBIGUOUS_COLUMN,
    DIVISION_BY_ZERO,
    GROUPING,
    NOT_SUPPORTED,
    TOLD,
    UNDEFINED_COLUMN,
    UNDEFINED_TABLE,
    PgError,
)
from kgather._server.postgres.result import Column, Result
from kgather._server.postgres.session_settings import Settings
from kgather._server.postgres.types import PgType

OF_KIND: Mapping[Kind, PgType] = {
    "integer": types.INT8,
    "number": types.FLOAT8,
    "text": types.STRING,
    "boolean": types.BOOL,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
}
"""What columns are shown as; answers about them may have narrower types."""

_MAIN, _PG, _INFO = 2200, 11, 13_000
_OWNER, _HEAP, _COLLATION = 10, 2, 100
_DATABASE, _USER = 16_384, 16_383
_FIRST = 16_385
_ROW_TYPES = 1 << 20
"""What the number of a relation and that of the type of its rows differ by."""
_DATABASE_ROW = {
    "datdba": _OWNER,
    "encoding": 6,
    "datlocprovider": "c",
    "datistemplate": False,
    "datallowconn": True,
    "datconnlimit": -1,
    "dattablespace": 1663,
    "datcollate": "C",
    "datctype": "C",
}
_ROLE_ROW = {
    "rolsuper": False,
    "rolinherit": True,
    "rolcreaterole": False,
    "rolcreatedb": False,
    "rolreplication": False,
    "rolconnlimit": -1,
    "rolbypassrls": False,
}
_TYPES = """
16 bool 1 B 1000 c|17 bytea -1 U 1001 i|18 char 1 Z 1002 c|19 name 64 S 1003 c|20 int8 8 N 1016 d|21 int2 2 N 1005 s
23 int4 4 N 1007 i|25 text -1 S 1009 i|26 oid 4 N 1028 i|700 float4 4 N 1021 i|701 float8 8 N 1022 d
705 unknown -2 X 0 c|1043 varchar -1 S 1015 i|1082 date 4 D 1182 i|1083 time 8 D 1183 d|1114 timestamp 8 D 1115 d
1184 timestamptz 8 D 1185 d|1186 interval 16 T 1187 d|1700 numeric -1 N 1231 i
24 regproc 4 N 1008 i|2205 regclass 4 N 2210 i|2206 regtype 4 N 2211 i|28 xid 4 U 1011 i|114 json -1 U 199 i
1042 bpchar -1 S 1014 i|2950 uuid 16 U 2951 c|3802 jsonb -1 U 3807 i|2249 record -1 P 2287 d|2278 void 4 P 0 i
2279 trigger 4 P 0 i|2276 any 4 P 0 i
"""
"""Number, name, length, category, number of the array type, alignment."""
_UNDERSCORED = frozenset(
    {"json", "jsonb", "uuid", "record", "void", "trigger", "any", "date", "time", "timestamp", "timestamptz"}
    | {"interval", "numeric", "array"}
)
_PREFERRED = {"bool", "text", "oid", "float8", "timestamptz", "interval"}

_SECONDS = 5.0
_ROWS = 50_000
_MEMORY = "256MB"
_AGAIN = 0.05


@dataclass(frozen=True)
class Who:
    """Whose session asks."""

    user: str
    database: str
    pid: int
    address: str | None = None


class ShadowCatalog:
    """Answers about the catalog of one guard. Safe to share among threads."""

    def __init__(self, catalog: Catalog) -> None:
        self.of = catalog
        self._names = frozenset(fold(name) for name in catalog.tables)
        self._con = duckdb.connect(
            config={"python_enable_replacements": False, "threads": 1, "memory_limit": _MEMORY, "temp_directory": ""}
        )
        self._con.execute(DEFINITIONS)
        columns = (
            "select schema_name, table_name, column_name, data_type from duckdb_columns() "
            "semi join duckdb_tables() using (schema_name, table_name)"
        )
        self._known: dict[tuple[str, str], dict[str, int]] = {}
        for schema, table, column, type_ in self._con.execute(columns).fetchall():
            self._known.setdefault((schema, table), {})[column] = _of_duckdb(type_).oid
        self._fill(catalog)
        self._con.execute("set global enable_external_access = false")
        self._con.execute("set global lock_configuration = true")

    def question(self, text: str, parameters: Sequence[Any] | None = None) -> Question | None:
        """What a statement asks of the catalog; None where it does not ask of it. parameters: None where they are not
        known yet. Raises PgError where it cannot be answered."""
        try:
            return read(text, self._known, self._names, parameters)
        except PgError:
            raise
        except Exception:  # whatever the parser makes of a text: there is one answer to it
            raise PgError(NOT_SUPPORTED, TOLD) from None

    def columns(
        self, question: Question, who: Who, settings: Settings, ended: Callable[[], bool] = lambda: False
    ) -> list[Column]:
        """The columns of the answer. ended: as for `answer`. Raises PgError."""
        with self._asked(question, who, settings, ended) as relation:
            return _columns(question, relation)

    def answer(
        self, question: Question, who: Who, settings: Settings, ended: Callable[[], bool] = lambda: False
    ) -> Result:
        """The answer. ended: whether nobody waits for it any more. Raises PgError."""
        with self._asked(question, who, settings, ended) as relation:
            columns = _columns(question, relation)
            rows = relation.limit(_ROWS + 1).fetchall()
        if len(rows) > _ROWS:
            raise PgError(NOT_SUPPORTED, TOLD)
        return Result.of_rows(columns, rows)

    @contextmanager
    def _asked(
        self, question: Question, who: Who, settings: Settings, ended: Callable[[], bool]
    ) -> Iterator[duckdb.DuckDBPyRelation]:
        with self._con.cursor() as con, _interrupted(con, ended):
            _set_variables(con, who)
            try:
                yield con.sql(question.sql(settings))
            except PgError:
                raise
            except Exception as error:  # whatever the engine says: its text is not for the client
                raise _told(error, question) from None

    def _fill(self, catalog: Catalog) -> None:
        fill = _Filler(self._con)
        for oid, name in ((_MAIN, "main"), (_PG, "pg_catalog"), (_INFO, "information_schema")):
            fill.row("kg_pg.pg_namespace", oid=oid, nspname=name, nspowner=_OWNER)
            fill.row("kg_info.schemata", schema_name=name, schema_owner="kgather")
        for name, oid in NUMBERS.items():
            fill.row("kg_pg.pg_class", **_class(oid, name, _PG))
            _fill_row_type(fill, oid, name, _PG)
        _fill_types(fill)
        _fill_functions(fill)
        fill.row("kg_pg.pg_database", oid=_DATABASE, **_DATABASE_ROW)
        fill.row("kg_info.character_sets", character_set_name="UTF8", character_repertoire="UCS", form_of_use="UTF8")
        for oid, may in ((_OWNER, False), (_USER, True)):
            fill.row("kg_pg.pg_roles", oid=oid, rolcanlogin=may, **_ROLE_ROW)
        fill.row("kg_pg.pg_user", usesysid=_USER, usecreatedb=False, usesuper=False)
        fill.row("kg_pg.pg_am", oid=_HEAP, amname="heap", amhandler="heap_tableam_handler", amtype="t")
        fill.row("kg_pg.pg_tablespace", oid=1663, spcname="pg_default", spcowner=_OWNER)
        fill.row("kg_pg.pg_collation", oid=_COLLATION, collname="default", collnamespace=_PG, collprovider="d")
        for name, value in Settings().all().items():
            fill.row("kg_pg.pg_settings", name=name, setting=value, vartype="string", context="user", source="default")
        shown = sorted(catalog.tables.values(), key=lambda info: info.name)
        for oid, info in enumerate(shown, _FIRST):
            _fill_table(fill, oid, info)
        fill.done()


def _told(error: Exception, question: Question) -> PgError:
    """What a client is told of an error of the engine: which of its own names is none, or that there is no answer."""
    for pattern, code, told in _FAULTS:
        found = re.search(pattern, str(error))
        if found is None:
            continue
        names = [name for name in found.groups() if name is not None]
        at = _place_of(names, question)
        if at is None and names:
            break
        return PgError(code, told.format(*names), at)
    return PgError(NOT_SUPPORTED, TOLD)


def _place_of(names: Sequence[str], question: Question) -> int | None:
    """Where names stand first in a question, side by side; None where they do not."""
    for node in question.tree.find_all(exp.Column):
        parts = [part for part in node.parts if isinstance(part, exp.Identifier) and "start" in part.meta]
        written = [part.name.lower() for part in parts]
        if parts and [name.lower() for name in names] in (written, written[-1:], written[:1]):
            return int(parts[0].meta["start"]) + 1
    return None


_FAULTS = (
    (
        r'(?:Values list|Table) "([^"]+)" does not have a column named "([^"]+)"',
        UNDEFINED_COLUMN,
        "column {}.{} does not exist",
    ),
    (r'Referenced column "([^"]+)" not found', UNDEFINED_COLUMN, 'column "{}" does not exist'),
    (r'Referenced table "([^"]+)" not found', UNDEFINED_TABLE, 'missing FROM-clause entry for table "{}"'),
    (r'Ambiguous reference to column name "([^"]+)"', AMBIGUOUS_COLUMN, 'column reference "{}" is ambiguous'),
    (
        r'column "([^"]+)" must appear in the GROUP BY clause',
        GROUPING,
        'column "{}" must appear in the GROUP BY clause or be used in an aggregate function',
    ),
    (r"Division by zero", DIVISION_BY_ZERO, "division by zero"),
)
"""What the engine says of a question, the code, and what the client is told instead."""


def _set_variables(con: duckdb.DuckDBPyConnection, who: Who) -> None:
    for name, value in (("kg_user", who.user), ("kg_database", who.database)):
        quoted = value.replace("'", "''")
        con.execute(f"set variable {name} = '{quoted}'")
    con.execute(f"set variable kg_pid = {who.pid:d}")


class _Filler:
    """Collects rows and inserts them table by table."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._rows: dict[tuple[str, tuple[str, ...]], list[list[Any]]] = {}

    def row(self, table: str, **values: Any) -> None:
        self._rows.setdefault((table, tuple(values)), []).append(list(values.values()))

    def done(self) -> None:
        for (table, columns), rows in self._rows.items():
            listed = ", ".join(f'"{column}"' for column in columns)
            one = f"({', '.join('?' for _ in columns)})"
            self._con.execute(
                f"insert into {table} ({listed}) values {', '.join([one] * len(rows))}",
                [value for row in rows for value in row],
            )


def _class(oid: int, name: str, namespace: int, columns: int = 0) -> dict[str, Any]:
    return {
        "oid": oid,
        "relname": name,
        "relnamespace": namespace,
        "reltype": oid + _ROW_TYPES,
        "reloftype": 0,
        "relowner": _OWNER,
        "relam": _HEAP,
        "relfilenode": 0,
        "reltablespace": 0,
        "relpages": 0,
        "reltuples": -1,
        "relallvisible": 0,
        "reltoastrelid": 0,
        "relhasindex": False,
        "relisshared": False,
        "relpersistence": "p",
        "relkind": "r",
        "relnatts": columns,
        "relchecks": 0,
        "relhasrules": False,
        "relhastriggers": False,
        "relhassubclass": False,
        "relrowsecurity": False,
        "relforcerowsecurity": False,
        "relispopulated": True,
        "relreplident": "d",
        "relispartition": False,
        "relrewrite": 0,
    }


def _fill_types(fill: _Filler) -> None:
    for line in re.split(r"[|\n]", _TYPES.strip()):
        number, name, length, category, array, align = line.split()
        common = {
            "typnamespace": _PG,
            "typowner": _OWNER,
            "typisdefined": True,
            "typdelim": ",",
            "typrelid": 0,
            "typbasetype": 0,
            "typtypmod": -1,
            "typndims": 0,
            "typnotnull": False,
            "typalign": align,
        }
        fill.row(
            "kg_pg.pg_type",
            oid=int(number),
            typname=name,
            typlen=int(length),
            typbyval=0 < int(length) <= 8,
            typtype="p" if category in "XP" else "b",
            typcategory=category,
            typispreferred=name in _PREFERRED,
            typelem=18 if name == "name" else 0,
            typarray=int(array),
            **_functions_of(name),
            typcollation=_COLLATION if category == "S" else 0,
            typstorage="x" if length == "-1" else "p",
            **common,
        )
        if int(array):
            fill.row(
                "kg_pg.pg_type",
                oid=int(array),
                typname=f"_{name}",
                typlen=-1,
                typbyval=False,
                typtype="b",
                typcategory="A",
                typispreferred=False,
                typelem=int(number),
                typarray=0,
                **_functions_of("array"),
                typcollation=0,
                typstorage="x",
                **common,
            )


def _fill_row_type(fill: _Filler, oid: int, name: str, namespace: int) -> None:
    """The type of a relation's rows, and that of arrays of it."""
    for number, named, kind, category, element, array, relation in (
        (oid + _ROW_TYPES, name, "c", "C", 0, oid + 2 * _ROW_TYPES, oid),
        (oid + 2 * _ROW_TYPES, f"_{name}", "b", "A", oid + _ROW_TYPES, 0, 0),
    ):
        fill.row(
            "kg_pg.pg_type",
            oid=number,
            typname=named,
            typnamespace=namespace,
            typowner=_OWNER,
            typlen=-1,
            typbyval=False,
            typtype=kind,
            typcategory=category,
            typispreferred=False,
            typisdefined=True,
            typdelim=",",
            typrelid=relation,
            typelem=element,
            typarray=array,
            **_functions_of("record" if kind == "c" else "array"),
            typalign="d",
            typstorage="x",
            typnotnull=False,
            typbasetype=0,
            typtypmod=-1,
            typndims=0,
            typcollation=0,
        )


def _fill_functions(fill: _Filler) -> None:
    """The functions that read and write types, which clients join pg_type with, and those that answers are made of."""
    names = [line.split()[1] for line in re.split(r"[|\n]", _TYPES.strip())]
    of_types = dict.fromkeys(function for name in [*names, "array"] for function in _functions_of(name).values())
    for oid, (name, kind) in enumerate([*((one, "f") for one in of_types), *_ANSWERING.items()], _FIRST_FUNCTION):
        fill.row(
            "kg_pg.pg_proc",
            oid=oid,
            proname=name,
            pronamespace=_PG,
            proowner=_OWNER,
            prolang=_INTERNAL,
            prokind=kind,
            provolatile="i",
            proparallel="s",
            proretset=False,
            proisstrict=True,
            pronargs=1,
            pronargdefaults=0,
            prorettype=types.FLOAT8.oid if kind == "a" else types.STRING.oid,
            prosrc=name,
        )


_FIRST_FUNCTION, _INTERNAL = 12_000, 12
_ANSWERING = {
    **dict.fromkeys(("count", "sum", "avg", "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop"), "a"),
    **dict.fromkeys(("stddev", "variance", "corr", "covar_samp", "covar_pop"), "a"),
    **dict.fromkeys(("round", "floor", "ceil", "abs", "coalesce", "date_trunc", "lower", "upper", "substring"), "f"),
}
"""Functions that the guard answers with, among others, and their kinds."""


def _functions_of(name: str) -> dict[str, str]:
    """The functions that read and write a type, as PostgreSQL names them: clients tell types by them."""
    under = "_" if name in _UNDERSCORED else ""
    words = {"typinput": "in", "typoutput": "out", "typreceive": "recv", "typsend": "send"}
    return {column: f"{name}{under}{word}" for column, word in words.items()}


def _fill_table(fill: _Filler, oid: int, info: TableInfo) -> None:
    """A table of the policy, with the columns that it shows."""
    shown = [column for column in info.columns.values() if column.role != "hidden"]
    fill.row("kg_pg.pg_class", **_class(oid, info.name, _MAIN, len(shown)))
    _fill_row_type(fill, oid, info.name, _MAIN)
    for relation in ("pg_stat_all_tables", "pg_stat_user_tables", "pg_statio_all_tables", "pg_statio_user_tables"):
        fill.row(f"kg_pg.{relation}", relid=oid, schemaname="main", relname=info.name)
    for relation in ("table_privileges", "role_table_grants"):
        fill.row(
            f"kg_info.{relation}",
            grantor="kgather",
            grantee="PUBLIC",
            table_schema="main",
            table_name=info.name,
            privilege_type="SELECT",
            is_grantable="NO",
            with_hierarchy="NO",
        )
    fill.row("kg_pg.pg_tables", schemaname="main", tablename=info.name, tableowner="kgather", hasindexes=False)
    fill.row("kg_info.tables", table_schema="main", table_name=info.name, table_type="BASE TABLE")
    what = (
        "public"
        if info.policy.public
        else f"protected: {'a row is a person' if info.grain == 'unit' else 'rows of people'}"
    )
    fill.row("kg_pg.pg_description", objoid=oid, classoid=NUMBERS["pg_class"], objsubid=0, description=what)
    for number, column in enumerate(shown, 1):
        type_ = OF_KIND.get(column.kind, types.STRING)
        fill.row(
            "kg_pg.pg_attribute",
            attrelid=oid,
            attname=column.name,
            atttypid=type_.oid,
            attlen=type_.size,
            attnum=number,
            attndims=0,
            atttypmod=-1,
            attbyval=type_.size > 0,
            attalign="i",
            attstorage="p" if type_.size > 0 else "x",
            attcompression="",
            attnotnull=False,
            atthasdef=False,
            atthasmissing=False,
            attidentity="",
            attgenerated="",
            attisdropped=False,
            attislocal=True,
            attinhcount=0,
            attstattarget=-1,
            attcollation=_COLLATION if type_ is types.STRING else 0,
        )
        fill.row(
            "kg_info.columns",
            table_schema="main",
            table_name=info.name,
            column_name=column.name,
            ordinal_position=number,
            is_nullable="YES",
            data_type=_SQL_NAMES.get(type_, type_.name),
            udt_schema="pg_catalog",
            udt_name=type_.name,
            is_updatable="NO",
            is_identity="NO",
            is_generated="NEVER",
        )
        fill.row(
            "kg_pg.pg_description", objoid=oid, classoid=NUMBERS["pg_class"], objsubid=number, description=column.role
        )


_SQL_NAMES = {
    types.INT8: "bigint",
    types.FLOAT8: "double precision",
    types.BOOL: "boolean",
    types.TIMESTAMP: "timestamp without time zone",
}

_OF_DUCKDB = {
    "BOOLEAN": types.BOOL,
    "TINYINT": types.INT2,
    "SMALLINT": types.INT2,
    "INTEGER": types.INT4,
    "BIGINT": types.INT8,
    "UINTEGER": types.OID,
    "HUGEINT": types.NUMERIC,
    "FLOAT": types.FLOAT4,
    "DOUBLE": types.FLOAT8,
    "VARCHAR": types.STRING,
    "BLOB": types.BYTEA,
    "DATE": types.DATE,
    "TIMESTAMP": types.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": types.TIMESTAMPTZ,
    "TIME": types.TIME,
    "INTERVAL": types.INTERVAL,
    "JSON": types.JSON,
}


def _columns(question: Question, relation: duckdb.DuckDBPyRelation) -> list[Column]:
    labels = question.labels or tuple(relation.columns)
    found = [_of_duckdb(str(type_)) for type_ in relation.types]
    return [
        Column(label, types.CHAR if type_ is types.STRING and label in question.chars else type_)
        for label, type_ in zip(labels, found, strict=True)
    ]


def _of_duckdb(name: str) -> PgType:
    if name.endswith("[]"):
        return types.array_of(_of_duckdb(name[:-2]))
    return types.NUMERIC if name.startswith("DECIMAL") else _OF_DUCKDB.get(name, types.STRING)


@contextmanager
def _interrupted(con: duckdb.DuckDBPyConnection, ended: Callable[[], bool]) -> Iterator[None]:
    """End what takes too long, and what nobody waits for any more."""
    done = threading.Event()
    until = time.monotonic() + _SECONDS

    def watch() -> None:
        while not done.wait(_AGAIN):
            if ended() or time.monotonic() > until:
                con.interrupt()

    watcher = threading.Thread(target=watch, daemon=True, name="kgather-catalog")
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
