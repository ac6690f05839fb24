"""The catalog that clients see: what they ask it, and that nothing is in it but what the policy shows."""

import contextlib
import re
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_client import Bind, Describe, Execute, Parse, Query, RawClient, Sync, columns, errors, rows
from wire_files import OTHER, OTHER_PASSWORD, Running, guard

from kgather._server.postgres.catalog import ShadowCatalog, Who
from kgather._server.postgres.errors import PgError
from kgather._server.postgres.session_settings import Settings

WHO = Who("ana", "kgather", 17)

DBEAVER = [
    "SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate OR"
    " db.datname = 'kgather'",
    "SELECT current_schema(),session_user",
    "SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description"
    " FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem"
    " LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid LEFT OUTER JOIN"
    " pg_catalog.pg_description d ON t.oid=d.objoid"
    " WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')"
    " AND (et.typcategory IS NULL OR et.typcategory <> 'C')",
    "SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d"
    " ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass ORDER BY nspname",
    "SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,"
    " pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c"
    " LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND"
    " d.classoid='pg_class'::regclass"
    " WHERE c.relnamespace=2200 AND c.relkind not in ('i','I','c')",
    "SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid"
    " FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)"
    " LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)"
    " LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)"
    " LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum"
    " and dep.classid = dep.refclassid WHERE NOT a.attisdropped AND c.oid=16385 ORDER BY a.attnum",
    "select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL ('{a,abs}'::text[])",
    "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'",
    "select 1 from pg_catalog.pg_class where to_regclass('x') is null limit 1",
]
METABASE = [
    'SELECT "c"."column_name" AS "name", "c"."udt_name" AS "database-type", "c"."ordinal_position" - 1 AS "position",'
    ' "c"."table_schema" AS "table-schema", "c"."table_name" AS "table-name", "pk"."column_name" IS NOT NULL AS "pk?",'
    ' COL_DESCRIPTION(CAST(CAST(FORMAT(\'%I.%I\', CAST("c"."table_schema" AS TEXT), CAST("c"."table_name" AS TEXT))'
    ' AS REGCLASS) AS OID), "c"."ordinal_position") AS "field-comment" FROM "information_schema"."columns" AS "c"'
    ' LEFT JOIN (SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name"'
    ' FROM "information_schema"."table_constraints" AS "tc" INNER JOIN "information_schema"."key_column_usage" AS "kc"'
    ' ON ("tc"."constraint_name" = "kc"."constraint_name") WHERE "tc"."constraint_type" = \'PRIMARY KEY\') AS "pk"'
    ' ON "c"."table_name" = "pk"."table_name"'
    " WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' ORDER BY 4, 5, 3",
    "with table_privileges as (select NULL as role, t.schemaname as schema, t.objectname as table,"
    " pg_catalog.has_any_column_privilege(current_user, '\"' || t.schemaname || '\"' || '.' || '\"' ||"
    " t.objectname || '\"',"
    " 'update') as update, pg_catalog.has_any_column_privilege(current_user, t.objectname, 'select') as select"
    " from (select schemaname, tablename as objectname from pg_catalog.pg_tables union select schemaname, viewname as"
    " objectname from pg_catalog.pg_views union select schemaname, matviewname as objectname from"
    " pg_catalog.pg_matviews) t"
    " where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'"
    " and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')) select t.* from table_privileges t",
    "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('pg_catalog', 'information_schema')",
    "SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'TABLE' END AS type, d.description,"
    " stat.n_live_tup AS estimated_row_count FROM pg_catalog.pg_class AS c INNER JOIN pg_catalog.pg_namespace AS n"
    " ON c.relnamespace = n.oid LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0 AND"
    " d.classoid = 'pg_class'::regclass LEFT JOIN pg_stat_user_tables AS stat ON n.nspname = stat.schemaname AND"
    " c.relname = stat.relname WHERE c.relnamespace = n.oid AND n.nspname !~ '^pg_' AND n.nspname <>"
    " 'information_schema'"
    " AND c.relkind = ANY(array['r', 'p', 'v', 'f', 'm'])",
]
SUPERSET = [
    "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname",
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'main' AND"
    " c.relkind in ('m', 'v')",
    "select pg_catalog.version()",
    "show transaction isolation level",
    "show standard_conforming_strings",
]
CONSTRUCTS = [
    'SELECT "information_schema"."tables"."table_name", "pg_catalog"."pg_namespace"."oid" FROM "information_schema".'
    '"tables" JOIN "pg_catalog"."pg_namespace" ON "information_schema"."tables"."table_schema" ='
    ' "pg_catalog"."pg_namespace"."nspname" ORDER BY "information_schema"."tables"."table_name"',
    # What schema browsers and drivers for other languages build their questions of.
    "SELECT case when pg_is_in_recovery() then null else (txid_current() % (2^32)::bigint)::varchar::bigint end AS now",
    "SELECT t.typname, e.elem FROM (SELECT y.typname, CASE WHEN p.proname = 'array_recv' THEN y.typelem WHEN y.typtype"
    " = 'm' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = y.oid) END AS elem FROM pg_type AS y LEFT JOIN"
    " pg_proc AS p ON p.oid = y.typreceive) AS e JOIN pg_type AS t ON t.oid = e.elem ORDER BY CASE WHEN t.typtype IN"
    " ('b', 'e') THEN 0 WHEN t.typtype = 'd' THEN 1 END",
    "SELECT a.attname FROM (SELECT indrelid, indkey, generate_subscripts(indkey, 1) at FROM pg_index WHERE indrelid ="
    " '\"people\"'::regclass) i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.at]",
    "SELECT i.relname, ARRAY(SELECT pg_get_indexdef(d.indexrelid, k + 1, true) FROM generate_subscripts(d.indkey, 1) AS"
    " k ORDER BY k) FROM pg_index d JOIN pg_class i ON d.indexrelid = i.oid",
    "SELECT t.oid::regclass::text, a.attname FROM pg_constraint c JOIN pg_class t ON c.confrelid = t.oid JOIN"
    " pg_attribute a ON a.attnum = c.confkey[1] AND a.attrelid = t.oid WHERE c.contype = 'f'::char AND a.attnum ="
    " ANY(c.confkey)",
    "SELECT (SELECT array_agg(inhparent::bigint ORDER BY inhseqno)::varchar FROM pg_inherits WHERE inhrelid = c.oid),"
    " pg_get_partkeydef(c.oid) FROM pg_class c WHERE c.relnamespace = 2200::oid",
    "SELECT c.attname FROM pg_attribute c LEFT JOIN pg_attrdef d ON (c.attrelid, c.attnum) = (d.adrelid, d.adnum)",
    "SELECT transactionid::varchar::bigint FROM pg_locks WHERE transactionid IS NOT NULL ORDER BY age(transactionid)",
    "SELECT col_description(format('%I.%I', table_schema::text, table_name::text)::regclass::oid, ordinal_position)"
    " FROM information_schema.columns",
    "SELECT table_name FROM information_schema.tables WHERE quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) ="
    " '\"$user\"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting("
    "'search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,"
    " string_to_array(current_setting('search_path'), ',') s)",
    "SELECT relname FROM pg_class WHERE relname = (parse_ident('main.people'))[2]",
    "SELECT has_any_column_privilege(current_user, '\"' || schemaname || '\".\"' || tablename || '\"', 'select') FROM"
    " pg_tables",
    "SELECT (information_schema._pg_expandarray(indkey)).n FROM pg_index",
    "SELECT count(*) FROM pg_class WHERE relkind = ANY (ARRAY['r', 'p']) AND relpersistence != 't'",
    "SELECT s.name, s.setting FROM pg_show_all_settings() AS s WHERE s.name = 'TimeZone'",
    "SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output'",
    "SELECT name, max(version) FROM pg_available_extension_versions() GROUP BY name",
    "SELECT name, default_version FROM pg_available_extensions()",
]
REFUSED = [
    "select * from pg_class, read_csv('/etc/passwd')",
    "select * from pg_class, duckdb_settings()",
    "select getenv('HOME') from pg_class",
    "select query('select 1') from pg_class",
    "select pg_read_file('/etc/passwd'), version()",
    "select pg_sleep(10), version()",
    "select relname from pg_class where oid = (select cast('x' as bigint))",
    "select * from pg_catalog.read_text('/etc/passwd')",
    "select set_config('search_path', 'x', false)",
    "select current_setting('enable_profiling')",
    "select pg_cancel_backend(1) from pg_class",
]
NO_SUCH = [
    # Code, what is told, and where, as PostgreSQL has it.
    ("select * from pg_largeobject", "42P01", 'relation "pg_largeobject" does not exist', 15),
    ("select * from pg_hba_file_rules", "42P01", 'relation "pg_hba_file_rules" does not exist', 15),
    (
        "select * from information_schema.nothing",
        "42P01",
        'relation "information_schema.nothing" does not exist',
        15,
    ),
    ("select nothing from pg_class", "42703", 'column "nothing" does not exist', 8),
    ("select 1; select c.nothing from pg_class c", "42703", "column c.nothing does not exist", 18),
    ("select x.relname from pg_class c", "42P01", 'missing FROM-clause entry for table "x"', 8),
    ("select oid from pg_class, pg_am", "42702", 'column reference "oid" is ambiguous', 8),
    ("select 'nosuch'::regclass", "42P01", 'relation "nosuch" does not exist', 8),
    (
        "select oid from pg_class where oid = 'main.nosuch'::regclass",
        "42P01",
        'relation "main.nosuch" does not exist',
        38,
    ),
    ("select 'nosuch'::regtype", "42704", 'type "nosuch" does not exist', 8),
    ("select 'nosuch'::regnamespace", "3F000", 'schema "nosuch" does not exist', 8),
    ("select 1/0", "22012", "division by zero", None),
]
APART = [
    "select count(*) from people, pg_class",
    "select count(*) from people where exists (select 1 from pg_catalog.pg_class)",
    "with pg as (select 1 from people) select * from pg, information_schema.tables",
]


@pytest.fixture(scope="module")
def shadow() -> ShadowCatalog:
    return ShadowCatalog(guard().catalog)


@pytest.fixture
def connection(running: Running) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(running.dsn(), autocommit=True) as made:
        yield made


def ask(shadow: ShadowCatalog, text: str) -> list[tuple[Any, ...]]:
    question = shadow.question(text, ())
    assert question is not None, text
    found = shadow.answer(question, WHO, Settings())
    return list(found.portion(0, found.count))


@pytest.mark.parametrize("text", [*DBEAVER, *METABASE, *SUPERSET, *CONSTRUCTS], ids=lambda text: text[:40])
def test_questions_of_tools_are_answered(connection: psycopg.Connection[Any], text: str) -> None:
    connection.execute(text).fetchall()


@pytest.mark.parametrize("form", ["%t", "%b"])
@pytest.mark.parametrize("name", ["people", "main.people", '"people"'])
def test_a_parameter_may_name_a_relation(connection: psycopg.Connection[Any], form: str, name: str) -> None:
    text = f"SELECT attname FROM pg_attribute WHERE attrelid = {form}::regclass AND attnum = 1"
    assert connection.execute(text, [name]).fetchall() == [("person_id",)]


def test_what_tools_find(shadow: ShadowCatalog) -> None:
    assert ask(shadow, METABASE[0])[0] == ("city", "text", 0, "main", "cities", False, "public")
    assert ask(shadow, METABASE[1]) == [(None, "main", name, False, True) for name in ("cities", "people")]
    assert [row[:3] for row in ask(shadow, METABASE[3])] == [("main", "cities", "TABLE"), ("main", "people", "TABLE")]
    assert ask(shadow, "select current_database(), current_user, current_schemas(true)") == [
        ("kgather", "ana", ["pg_catalog", "main"])
    ]
    assert ask(
        shadow, "select oid::regclass::text, 'people'::regclass = oid from pg_class where relname = 'people'"
    ) == [("people", True)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select * from current_schema()", [("main",)]),
        ("select * from unnest(current_schemas(false))", [("main",)]),
        (
            "select k from generate_subscripts('{a,b}'::text[], 1) as k where exists (select 1 from pg_class)",
            [(1,), (2,)],
        ),
        (
            "select a, n from unnest(array['x', 'y']) with ordinality as u(a, n), pg_am",
            [("x", 1), ("y", 2)],
        ),
        (
            "select a, b from unnest(array[1, 2], array['x', 'y']) as u(a, b) where exists (select 1 from pg_class)",
            [(1, "x"), (2, "y")],
        ),
        (
            "select trim(s[i]) from generate_series(1, 1) as i, string_to_array('main', ',') as s, pg_am",
            [("main",)],
        ),
        ("select xmin, relname from pg_class where relname = 'people' and age(xmin) = 0", [(1, "people")]),
        ("select relname from other.pg_catalog.pg_class where relname = any('{people,\"x y\"}')", [("people",)]),
        (
            "select ('\"pg_catalog\".\"' || 'int8' || '\"')::regtype::text, 'people'::regclass::text",
            [("bigint", "people")],
        ),
        ("select typname from pg_type where typreceive > 0 and typname = 'date'", [("date",)]),
        ("table pg_am", [(2, "heap", "heap_tableam_handler", "t")]),
        ("select exists (select from pg_class where relname = 'people')", [(True,)]),
        (
            "select json_agg(t order by relname)::text from (select relname, relkind from pg_class where relkind = 'r'"
            " and relnamespace = 'main'::regnamespace) as t",
            [('[{"relname":"cities","relkind":"r"},{"relname":"people","relkind":"r"}]',)],
        ),
        ("select coalesce(jsonb_agg(relname), '[]'::jsonb)::text from pg_class where relname = 'x'", [("[]",)]),
        (
            "select json_object_agg(relname, relkind)::text from pg_class where relname = 'people'",
            [('{"people":"r"}',)],
        ),
        (
            "select array_agg(relname order by relname), string_agg(relname, ',' order by relname) from pg_class where"
            " relnamespace = any('{main}'::regnamespace[])",
            [(["cities", "people"], "cities,people")],
        ),
        (
            "select 'people'::regclass, relnamespace::regnamespace, oid::regclass from pg_class where oid ="
            " 'people'::regclass::oid",
            [("people", "main", "people")],
        ),
        (
            "select t.typname, t.typtype from pg_class c join pg_type t on t.oid = c.reltype"
            " where c.relname = 'people'",
            [("people", "c")],
        ),
        ("select 7 / 2, -7 / 2, 7 / 2.0", [(3, -3, 3.5)]),
        ("select n from generate_series(1, 2) as n", [(1,), (2,)]),
        ("select user, current_role", [("ana", "ana")]),
        ("select k from generate_series(1, array_upper(array['a', 'b'], 1)) as k", [(1,), (2,)]),
        ("select generate_series(3, 1, -1)", [(3,), (2,), (1,)]),
        (
            "select format_type(1016, null), pg_typeof('a'::text), pg_typeof(oid) from pg_am",
            [("bigint[]", "text", "oid")],
        ),
        ("select '{\"a\": {\"b\": 1}}'::json -> 'a' ->> 'b' from pg_am", [("1",)]),
        ("select pg_advisory_unlock_all()", [("",)]),
        ("select to_char(now(), 'YYYY') = extract(year from current_date)::text", [(True,)]),
        (
            "select p.proname from pg_type t join pg_proc p on p.oid = t.typreceive where t.typname = 'int8'",
            [("int8recv",)],
        ),
        ("select relname as n from pg_class as n where relname = 'people' group by n", [("people",)]),
        ("select (parse_ident('main.people'))[2] from pg_class where relname = 'people'", [("people",)]),
        (
            "select attname from pg_attribute join pg_class on oid = attrelid where relname = 'people' limit 2",
            [("person_id",), ("film_a",)],
        ),
        (
            "select proname from pg_proc where proname = 'avg' and prorettype::regtype <> 'trigger'::regtype",
            [("avg",)],
        ),
    ],
)
def test_what_only_postgresql_has_is_written_for_duckdb(
    shadow: ShadowCatalog, text: str, found: list[tuple[Any, ...]]
) -> None:
    assert [tuple(row) for row in ask(shadow, text)] == found


def test_the_values_of_parameters_need_not_be_known(shadow: ShadowCatalog) -> None:
    question = shadow.question("select current_setting($1::varchar) from pg_class where relkind = any($2)", None)
    assert question is not None
    assert [column.name for column in shadow.columns(question, WHO, Settings())] == ["current_setting"]


def test_what_is_not_answered_is_named_in_the_log(
    connection: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        connection.execute("select secret_function(relname), 'Ada' from pg_catalog.pg_class, pg_namespace")
    (line,) = [one for one in caplog.records if one.message == "a question about the catalog was not answered"]
    assert vars(line)["relations"] == ("pg_class", "pg_namespace")
    assert not {"Ada", "secret_function"} & {str(value) for value in vars(line).values()}


def test_names_of_columns_are_those_that_postgres_gives(connection: psycopg.Connection[Any]) -> None:
    text = (
        "select version(), current_schema, current_user, pg_backend_pid(), 1, 'a'::text, count(*),"
        " c.oid::int, n.nspname,"
        " coalesce(1, 2), case when true then 1 end, (select 1 as x), current_setting('TimeZone') AS \"TZ\","
        " c.relname NAME"
        " from pg_class c, pg_namespace n where c.relnamespace = n.oid group by all"
    )
    found = connection.execute(text).description
    assert found is not None
    assert [column.name for column in found] == [
        *("version", "current_schema", "current_user", "pg_backend_pid", "?column?", "text", "count", "oid", "nspname"),
        *("coalesce", "case", "x", "TZ", "name"),
    ]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_answered_has_one_text(connection: psycopg.Connection[Any], text: str) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(text)
    said = str(refusal.value)
    assert said.splitlines()[0] in (
        "This question about the catalog is not answered here.",
        "search_path cannot be set to this value here.",
    ) or said.startswith("There is no setting")


def test_moments_are_written_as_postgresql_does(client: RawClient) -> None:
    found = client.query("select now(), current_timestamp from pg_am")
    assert columns(found) == [("now", 1184, 0), ("current_timestamp", 1184, 0)]
    ((one, other),) = rows(found)
    assert one == other
    assert re.fullmatch(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00", one or b"")


@pytest.mark.parametrize(
    "text",
    [
        "select length(repeat(repeat(relname, 1000), 1000)) from pg_class",
        "select repeat(x, 1000) from (select repeat(relname, 1000) as x from pg_class) as t",
        "with recursive t(x) as (select 'a' from pg_class union all select x || x from t) select max(length(x)) from t",
        "select string_agg(repeat(x, 900), repeat(x, 900)) from (select relname || relname as x from pg_class) as t",
    ],
)
def test_texts_do_not_grow_without_end(shadow: ShadowCatalog, text: str) -> None:
    with pytest.raises(PgError, match="not answered here"):
        shadow.question(text, ())


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from generate_series(1, 1000000000)",
        "select generate_series(1, 1000000000)",
        "select count(*) from generate_series(1, power(10, 9)::int)",
        "select count(*) from generate_series(1, (select 1000000000 * count(*) from pg_am)::bigint) as n",
        "select count(*) from generate_series(timestamp '2000-01-01', now()::timestamp, interval '1 second') as n",
        "select range(1000000000) from pg_am",
    ],
)
def test_series_are_short(shadow: ShadowCatalog, text: str) -> None:
    with pytest.raises(PgError, match="not answered here"):
        ask(shadow, text)


@pytest.mark.parametrize(("text", "code", "told", "position"), NO_SUCH)
def test_names_that_are_none_have_the_codes_of_postgresql(
    client: RawClient, text: str, code: str, told: str, position: int | None
) -> None:
    (error,) = errors(client.query(text))
    assert (error["C"], error["M"]) == (code, told)
    assert error.get("P") == (None if position is None else str(position))


@pytest.mark.parametrize("text", APART)
def test_the_catalog_and_data_are_asked_apart(connection: psycopg.Connection[Any], text: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="in statements of their own"):
        connection.execute(text)


def test_questions_about_data_are_none_about_the_catalog(shadow: ShadowCatalog) -> None:
    for text in (
        "select count(*) from people",
        "select 1",
        "select city as pg_class from cities",
        "select count(*) from people where city = 'information_schema'",
        "with pg_class as (select city from cities) select * from pg_class",
        "not sql at all pg_class (",
    ):
        assert shadow.question(text, ()) is None, text


def test_nothing_hidden_is_in_it(shadow: ShadowCatalog) -> None:
    """No relation holds the name of a hidden column, a value of the database, or a number of rows."""
    tables = shadow._con.execute(
        "select schema_name, table_name from duckdb_tables() union all select schema_name, view_name from"
        " duckdb_views()"
        " where not internal"
    ).fetchall()
    assert len(tables) > 100
    found = {
        str(value)
        for schema, table in tables
        for row in shadow._con.execute(f'from {schema}."{table}"').fetchall()
        for value in row
    }
    assert {"people", "cities", "salary", "film_a"} <= found
    assert not found & {"zip", "Z1", "Graz", "300", "291072", "people.duckdb", "ledger.duckdb"}
    assert ask(shadow, "select distinct reltuples from pg_class") == [(-1.0,)]


def test_no_file_and_no_setting_of_the_engine_is_reached(shadow: ShadowCatalog) -> None:
    assert shadow._con.execute("select current_setting('enable_external_access')").fetchone() == (False,)
    assert shadow._con.execute("select current_setting('lock_configuration')").fetchone() == (True,)


def test_what_takes_too_long_is_ended(shadow: ShadowCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgather._server.postgres.catalog._SECONDS", 0.3)
    endless = (
        "with recursive t(n) as (select 1 from pg_am union all select n + 1 from t where n > 0)"
        " select count(*) from t, generate_series(1, 1000) where n < 0"
    )
    with pytest.raises(PgError):
        ask(shadow, endless)
    with pytest.raises(PgError):
        ask(shadow, "select 1 from pg_type a, pg_type b, pg_type c, pg_type d")


PIECES = st.sampled_from(
    [
        *re.findall(r"\w+|\S", " ".join([*DBEAVER[2:6], *METABASE, *REFUSED])),
        "(",
        ")",
        "select",
        "from",
        "pg_class",
        "::regclass",
        "$1",
        ",",
        "union",
        "with",
        "as",
        "pg_catalog.",
        "'x'",
        "any",
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(PIECES, min_size=1, max_size=25), st.sampled_from([*DBEAVER, *METABASE]), st.integers(0, 400))
def test_questions_of_any_words(shadow: ShadowCatalog, words: list[str], known: str, at: int) -> None:
    """An answer, no question about the catalog, or the one refusal; nothing else is ever raised."""
    for text in ("select " + " ".join(words) + " from pg_class", known[:at] + " ".join(words[:3]) + known[at:]):
        with contextlib.suppress(PgError):
            question = shadow.question(text, (None,))
            if question is not None:
                shadow.answer(question, WHO, Settings())


def test_settings_that_functions_make(connection: psycopg.Connection[Any]) -> None:
    assert connection.execute("select set_config('timezone', 'Europe/Vienna', false)").fetchone() == ("Europe/Vienna",)
    assert connection.execute("select current_setting('timezone'), current_setting('no.such', true)").fetchone() == (
        "Europe/Vienna",
        None,
    )
    assert connection.info.parameter_status("TimeZone") == "Europe/Vienna"


def test_parameters_in_questions_about_the_catalog(connection: psycopg.Connection[Any]) -> None:
    text = "select relname from pg_catalog.pg_class where relname = %s and relkind = any(%s) and oid > %s"
    assert connection.execute(text, ["people", ["r", "v"], 16_000]).fetchall() == [("people",)]
    assert connection.execute(text, ["people' or true --", ["r"], 0]).fetchall() == []


def test_each_session_sees_itself(running: Running) -> None:
    for name in ("kgather", 'it\'s "x"'):
        with psycopg.connect(running.dsn(), dbname=name) as connection:
            assert connection.execute("select current_database(), datname from pg_database").fetchall() == [
                (name, name)
            ]
            assert connection.execute("select pg_backend_pid()").fetchone() == (connection.info.backend_pid,)


@pytest.mark.parametrize("call", ["lpad('a', 500000000, 'b')", "rpad('a', 5000)", "repeat(relname, 100000)"])
def test_no_question_about_the_catalog_makes_a_long_text(client: RawClient, call: str) -> None:
    (error,) = errors(client.query(f"select {call} from pg_class limit 1"))
    assert error["C"] == "0A000"
    assert len(rows(client.query("select lpad(relname, 100, 'b') from pg_class limit 1"))[0][0] or b"") == 100


SLOW = (
    "select count(*) from pg_type a, pg_type b, pg_type c, pg_type d, pg_type e "
    "where a.oid + b.oid > c.oid + d.oid + e.oid"
)


def test_a_question_about_the_catalog_is_cancelled(running: Running, client: RawClient) -> None:
    began = time.monotonic()
    client.send(Query(query_string=SLOW))
    time.sleep(0.3)
    with RawClient(running, log_in=False) as other:
        key = client.keys[1]
        other.send(struct.pack("!iii", 12 + len(key), 80877102, client.keys[0]) + key)
        other.to_the_end()
    assert errors(client.until(b"Z"))[0]["C"] == "57014"
    client.query("set statement_timeout = '200ms'")
    assert errors(client.query(SLOW))[0]["C"] == "57014"
    client.query("set statement_timeout = 0")
    assert rows(client.query("select count(*) from pg_am")) == [(b"1",)], "what was ended makes room"
    assert time.monotonic() - began < 3


def test_nobody_keeps_others_from_the_catalog(running: Running) -> None:
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(RawClient(running)) for _ in range(4)]
        for each in slow:
            each.send(Query(query_string=SLOW))
        time.sleep(0.2)
        other = stack.enter_context(RawClient(running, user=OTHER, password=OTHER_PASSWORD))
        began = time.monotonic()
        assert rows(other.query("select count(*) from pg_am")) == [(b"1",)]
        assert time.monotonic() - began < 2


def test_questions_about_the_catalog_count_as_queries(servers: Callable[..., Running]) -> None:
    running = servers(queries_per_principal=1)
    with RawClient(running) as first, RawClient(running) as second:
        first.send(Query(query_string=SLOW))
        time.sleep(0.3)
        assert errors(second.query("select count(*) from pg_am"))[0]["C"] == "53000"


def test_numbers_and_rows_that_clients_look_for(client: RawClient) -> None:
    (found,) = rows(
        client.query("select oid >= 16384, (select count(*) from pg_class where oid = d.oid) from pg_database d")
    )
    assert found == (b"t", b"0")
    assert rows(client.query("select count(*) from pg_class where reltype = 0")) == [(b"0",)]
    text = "select character_set_name from information_schema.character_sets"
    assert rows(client.query(text)) == [(b"UTF8",)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select relname from pg_class where oid = $1", [26]),
        ("select c.relname from pg_catalog.pg_class c where c.oid = any($1) and c.relnatts > $2", [1028, 21]),
        ("select c.relname from pg_class c where c.relname = any ($1) limit $2 offset $3", [1009, 20, 20]),
        ("select attname from pg_attribute a join pg_class c on c.oid = a.attrelid where attnum = $1", [21]),
        ("select 1 from information_schema.columns where ordinal_position = $1 and table_name = $2", [23, 25]),
        ("select relname from pg_class where oid = $1::regclass and relispartition = $2", [2205, 16]),
        ("select relname from pg_class where length(relname) = $1", [25]),
    ],
)
def test_types_of_parameters_about_the_catalog(client: RawClient, text: str, expected: list[int]) -> None:
    found = client.ask(Parse(query=text), Describe(kind="S"), Sync())
    told = next(body for kind, body in found if kind == b"t")
    assert told == struct.pack(f"!h{len(expected)}I", len(expected), *expected)


def test_values_of_parameters_about_the_catalog(client: RawClient) -> None:
    text = "select relname from pg_class where oid = any($1) and relnatts > $2 limit $3"
    ((oid,),) = rows(client.query("select oid from pg_class where relname = 'people'"))
    values = [b"{%b}" % (oid or b""), b"1", b"5"]
    assert rows(client.ask(Parse(query=text), Bind(param_values=values), Execute(), Sync())) == [(b"people",)]
    whole = int(oid or 0)
    binary = [struct.pack("!iiIiiiI", 1, 0, 26, 1, 1, 4, whole), struct.pack("!h", 1), struct.pack("!q", 5)]
    bound = Bind(param_values=binary, param_formats=[1])
    assert rows(client.ask(Parse(query=text), bound, Execute(), Sync())) == [(b"people",)]
