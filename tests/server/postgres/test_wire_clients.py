"""Clients that people use: psql, psycopg, asyncpg, SQLAlchemy with pandas, and JDBC."""

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from wire_files import ONE, PASSWORD, USER, Running, certificate

from kgather._guard.refused import TOO_FEW_MESSAGE

pytestmark = pytest.mark.long

JDBC = Path("/usr/share/java/postgresql.jar")
GROUPS = "select city, count(*) as n, avg(salary) as mean from people where film_a >= 2 group by city order by city"
CITIES = [
    ("Ghent", 262219, None, None, None, None),
    ("Graz", 291072, Decimal("127.50"), date(1128, 1, 1), True, datetime(2024, 5, 6, 7, 8, 9, 500_000)),
    ("Lyon", 522250, Decimal("47.87"), date(2000, 1, 1), False, datetime(1999, 12, 31, 23, 59, 59)),
]


# psql


@pytest.fixture
def psql(running: Running) -> Callable[..., str]:
    """What psql prints for commands."""
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed: apt-get install postgresql-client")

    def run(*commands: str, port: int = running.port, options: str = "-XAt", **more: str) -> str:
        arguments = [argument for command in commands for argument in ("-c", command)]
        env = os.environ | {"PGPASSWORD": PASSWORD, "PGCONNECT_TIMEOUT": "10", **more}
        done = subprocess.run(
            ["psql", options, "-h", "127.0.0.1", "-p", str(port), "-U", USER, "-d", "kgather", *arguments],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout + done.stderr

    return run


def test_psql_asks(psql: Callable[..., str], running: Running) -> None:
    expected = running.service.guard.query(GROUPS, principal=USER).to_pylist()
    notice, *lines = sorted(psql(GROUPS).splitlines(), key=lambda line: not line.startswith("NOTICE"))
    assert "standard error" in notice
    assert [line.split("|")[:2] for line in lines] == [[row["city"], str(row["n"])] for row in expected]
    assert [float(line.split("|")[2]) for line in lines] == [row["mean"] for row in expected]


def test_psql_lists_what_the_policy_shows(psql: Callable[..., str]) -> None:
    assert psql(r"\dt").splitlines() == ["main|cities|table|kgather", "main|people|table|kgather"]
    assert psql(r"\d").splitlines() == psql(r"\dt").splitlines()
    assert psql(r"\d people").splitlines() == [
        "person_id|bigint|||",
        "film_a|bigint|||",
        "film_b|bigint|||",
        "score|double precision|||",
        "seen|boolean|||",
        "salary|bigint|||",
        "age|bigint|||",
        "city|text|||",
        "born|date|||",
    ]
    assert "zip" not in psql(r"\d+ people", options="-X")
    assert psql(r"\d nothing") == 'Did not find any relation named "nothing".\n'


def test_psql_backslash_commands_work(psql: Callable[..., str]) -> None:
    commands = [r"\l", r"\dn", r"\du", r"\df", r"\dv", r"\di", r"\ds", r"\dT", r"\dp", r"\dt+", r"\d+ people", r"\dx"]
    commands += [
        r"\db",
        r"\dC",
        r"\dD",
        r"\dL",
        r"\do",
        r"\dy",
        r"\dE",
        r"\dm",
        r"\dP",
        r"\drds",
        r"\conninfo",
        r"\encoding",
    ]
    for command in commands:
        assert "ERROR" not in psql(command), command
    assert psql(r"\l").startswith("kgather|kgather|UTF8|")


def test_psql_shows_time_and_errors(psql: Callable[..., str]) -> None:
    printed = psql(r"\timing", GROUPS, "select avg(salary) from people where zip = 'Z1'", ONE)
    assert printed.count("Time: ") == 3
    assert "ERROR:  people.zip" in printed
    assert "LINE 1: select avg(salary) from people where zip = 'Z1'\n" in printed
    assert f"ERROR:  {TOO_FEW_MESSAGE}" in printed


def test_psql_describes_without_asking(psql: Callable[..., str], tmp_path: Path) -> None:
    script = tmp_path / "describe.sql"
    script.write_text(f"{ONE} \\gdesc\n{GROUPS} \\gdesc\n", encoding="utf-8")
    assert psql(rf"\i {script}").splitlines() == ["n|bigint", "city|text", "n|bigint", "mean|double precision"]


def test_psql_fetches_by_a_cursor(psql: Callable[..., str]) -> None:
    """What psql 15 makes of FETCH_COUNT is DECLARE and FETCH."""
    assert psql(r"\set FETCH_COUNT 1", GROUPS).splitlines()[-3:] == psql(GROUPS).splitlines()[-3:]


def test_psql_copies_answers_only(psql: Callable[..., str]) -> None:
    assert "rows of people" in psql(r"\copy people to stdout")
    assert psql(r"\copy (select city from cities order by 1) to stdout") == "Ghent\nGraz\nLyon\n"


def test_psql_over_tls(psql: Callable[..., str], secure: Running) -> None:
    printed = psql("select 1", r"\conninfo", port=secure.port, PGSSLMODE="require", PGCHANNELBINDING="require")
    assert printed.startswith("1\n")
    assert "SSL connection (protocol: TLSv1.3" in printed
    assert "Connect with TLS" in psql("select 1", port=secure.port, PGSSLMODE="disable")


def test_psql_checks_the_certificate(psql: Callable[..., str], secure: Running) -> None:
    printed = psql("select 1", port=secure.port, PGSSLMODE="verify-full", PGSSLROOTCERT=str(certificate()))
    assert printed == "1\n"


# psycopg


@pytest.fixture
def connection(running: Running) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(running.dsn()) as made:
        yield made


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_every_type(connection: psycopg.Connection[Any], binary: bool) -> None:
    text = "select * from cities order by inhabitants"
    assert connection.execute(text, binary=binary).fetchall() == CITIES
    row = connection.execute(
        "select 1::smallint, 1.5::float, 2::double, 3::bigint, -0.001::decimal(9, 4), 'é'", binary=binary
    )
    assert row.fetchone() == (1, 1.5, 2.0, 3, Decimal("-0.0010"), "é")


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_gives_every_type(connection: psycopg.Connection[Any], binary: bool) -> None:
    cursor = connection.cursor(binary=binary)
    sign = "%b" if binary else "%s"
    for column, value, count in (
        ("inhabitants", 291072, 1),
        ("inhabitants", 2**40, 0),
        ("area", Decimal("47.87"), 1),
        ("area", 127.5, 1),
        ("city", "Graz", 1),
        ("founded", date(2000, 1, 1), 1),
        ("capital", True, 1),
        ("updated", datetime(1999, 12, 31, 23, 59, 59), 1),
    ):
        cursor.execute(f"select city from cities where {column} = {sign}", [value])
        assert len(cursor.fetchall()) == count, (column, value)


def test_psycopg_guesses_numbers_in_text(connection: psycopg.Connection[Any]) -> None:
    assert connection.execute(
        "select count(*) > 0 from people where film_a >= %s and score < %s", ["2", "20.5"]
    ).fetchone() == (True,)
    assert len(connection.execute("select city from cities order by 1 limit %s", ["2"]).fetchall()) == 2


def test_psycopg_prepares(connection: psycopg.Connection[Any]) -> None:
    connection.autocommit = True
    text = "select count(*) from people where film_a >= %s"
    for value in (2, 3, 2):
        assert connection.execute(text, [value], prepare=True).fetchone() is not None
    with pytest.raises(psycopg.DatabaseError) as refusal:
        connection.execute(text, [77], prepare=True)
    assert refusal.value.sqlstate == "KG001"
    connection.prepared_max = 0
    connection.execute("select 1", prepare=True)


def test_psycopg_transactions(connection: psycopg.Connection[Any]) -> None:
    connection.read_only = True
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    with connection.transaction():
        with pytest.raises(psycopg.DatabaseError), connection.transaction():
            connection.execute(ONE)
        assert connection.execute("select 1").fetchone() == (1,)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("select nope from people")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.execute("select 1")
    connection.rollback()
    assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_cursors_with_names(connection: psycopg.Connection[Any], binary: bool) -> None:
    text = "select city, count(*) from people where film_a >= %s group by city order by city"
    with connection.cursor("named", scrollable=True) as cursor:
        cursor.execute(text, [2], binary=binary)
        assert cursor.description is not None
        assert [column.name for column in cursor.description] == ["city", "count"]
        first = cursor.fetchone()
        rest = cursor.fetchall()
        cursor.scroll(0, mode="absolute")
        assert cursor.fetchall() == [first, *rest] == connection.execute(text, [2]).fetchall()


def test_psycopg_pipelines_and_streams(connection: psycopg.Connection[Any]) -> None:
    connection.autocommit = True
    with connection.pipeline():
        first, second = connection.execute("select 1"), connection.execute(GROUPS)
        assert first.fetchone() == (1,)
        assert len(second.fetchall()) == 3
    assert [row[0] for row in connection.cursor().stream("select city from cities order by 1")] == [
        "Ghent",
        "Graz",
        "Lyon",
    ]


def test_psycopg_copies_answers_only(connection: psycopg.Connection[Any]) -> None:
    with connection.cursor().copy("copy (select city, inhabitants from cities order by 1) to stdout") as copy:
        copy.set_types(["text", "int4"])
        assert list(copy.rows()) == [("Ghent", 262219), ("Graz", 291072), ("Lyon", 522250)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.cursor().copy("copy people to stdout") as copy:
        copy.read()


def test_psycopg_finds_types(connection: psycopg.Connection[Any]) -> None:
    found = psycopg.types.TypeInfo.fetch(connection, "int8")
    assert found is not None
    assert (found.oid, found.array_oid) == (20, 1016)


def test_text_and_binary_are_one_result(connection: psycopg.Connection[Any]) -> None:
    text = "select film_a, city, count(*), sum(salary), avg(score) from people group by all order by 1, 2"
    assert connection.execute(text, binary=False).fetchall() == connection.execute(text, binary=True).fetchall()


# asyncpg


def with_asyncpg(running: Running, work: Callable[[asyncpg.Connection], Any], **more: Any) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=running.port, user=USER, password=PASSWORD, database="kgather", timeout=15, **more
        )
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def test_asyncpg_asks(running: Running) -> None:
    async def work(connection: asyncpg.Connection) -> None:
        assert [tuple(row) for row in await connection.fetch("select * from cities order by inhabitants")] == CITIES
        text = "select count(*) as n from people where film_a >= $1 and score > $2 and city is not null"
        with pytest.raises(asyncpg.PostgresError):
            await connection.fetchval(text, 2, 1.5)
        assert await connection.fetchval(text.removesuffix(" and city is not null"), 2, 1.5) > 100
        assert await connection.fetchval("select city from cities where founded = $1", date(2000, 1, 1)) == "Lyon"
        assert await connection.fetchval("select city from cities where city = $1", "Graz") == "Graz"
        assert len(await connection.fetch("select city from cities limit $1", 2)) == 2
        with pytest.raises(asyncpg.PostgresError) as refusal:
            await connection.fetch("select count(*) from people where film_a = $1", 77)
        assert refusal.value.sqlstate == "KG001"

    with_asyncpg(running, work)


def test_asyncpg_fetches_in_portions(running: Running) -> None:
    async def work(connection: asyncpg.Connection) -> list[Any]:
        async with connection.transaction(readonly=True, isolation="serializable"):
            return [tuple(row) async for row in connection.cursor("select * from cities order by 2", prefetch=1)]

    assert with_asyncpg(running, work) == CITIES


def test_asyncpg_asks_about_types_and_tables(running: Running) -> None:
    async def work(connection: asyncpg.Connection) -> None:
        await connection.set_type_codec("float8", schema="pg_catalog", encoder=str, decoder=float, format="text")
        assert isinstance(await connection.fetchval("select avg(score) from people"), float)
        found = await connection.fetch("select typname, typtype from pg_type where oid = any($1::oid[])", [20, 25])
        assert {tuple(row) for row in found} == {("int8", b"b"), ("text", b"b")}
        rows = await connection.fetch(
            "select table_name from information_schema.tables where table_schema = $1", "main"
        )
        assert sorted(row["table_name"] for row in rows) == ["cities", "people"]

    with_asyncpg(running, work)


def test_asyncpg_pools(running: Running) -> None:
    async def run() -> None:
        dsn = f"postgresql://{USER}@127.0.0.1:{running.port}/kgather"
        async with asyncpg.create_pool(dsn, password=PASSWORD, min_size=1, max_size=3) as pool:
            counts = await asyncio.gather(*(pool.fetchval("select count(*) from people") for _ in range(12)))
            assert len(set(counts)) == 1

    asyncio.run(run())


def test_asyncpg_over_tls(secure: Running) -> None:
    async def work(connection: asyncpg.Connection) -> Any:
        return await connection.fetchval("select 1")

    context = ssl.create_default_context(cafile=certificate())
    assert with_asyncpg(secure, work, ssl=context) == 1


# SQLAlchemy, pandas


@pytest.fixture
def engine(running: Running) -> Iterator[sa.Engine]:
    url = sa.URL.create("postgresql+psycopg", USER, PASSWORD, "127.0.0.1", running.port, "kgather")
    made = sa.create_engine(url)
    yield made
    made.dispose()


def test_pandas_reads(engine: sa.Engine, running: Running) -> None:
    frame = pd.read_sql(GROUPS, engine)
    expected = running.service.guard.query(GROUPS, principal=USER).to_pandas()
    assert frame.to_dict() == expected.to_dict()
    text = sa.text("select city, inhabitants from cities where inhabitants > :n order by 2")
    assert pd.read_sql(text, engine, params={"n": 270_000})["city"].tolist() == ["Graz", "Lyon"]


def test_sqlalchemy_reflects(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "main"
    assert sorted(inspector.get_table_names()) == ["cities", "people"]
    assert inspector.get_view_names() == []
    assert [column["name"] for column in inspector.get_columns("people")][-2:] == ["city", "born"]
    assert inspector.get_pk_constraint("people")["constrained_columns"] == []
    assert inspector.get_foreign_keys("people") == inspector.get_indexes("people") == []
    assert not inspector.has_table("secrets")
    people = sa.Table("people", sa.MetaData(), autoload_with=engine)
    assert "zip" not in people.c
    with engine.connect() as connection:
        ask = sa.select(people.c.city, sa.func.count()).where(people.c.film_a > 1).group_by(people.c.city)
        assert len(connection.execute(ask).all()) == 3


# JDBC

PROBE = r"""
import java.sql.*;
import java.util.*;

public class Probe {
  static void print(ResultSet rows) throws SQLException {
    int n = rows.getMetaData().getColumnCount();
    while (rows.next()) {
      List<String> row = new ArrayList<>();
      for (int i = 1; i <= n; i++) row.add(String.valueOf(rows.getObject(i)));
      System.out.println(String.join("|", row));
    }
  }

  public static void main(String[] args) throws Exception {
    try (Connection c = DriverManager.getConnection(args[0], args[1], args[2])) {
      c.setReadOnly(true);
      DatabaseMetaData data = c.getMetaData();
      System.out.println("version " + data.getDatabaseProductVersion());
      ResultSet tables = data.getTables(null, "main", "%", new String[] {"TABLE"});
      while (tables.next())
        System.out.println("table " + tables.getString("TABLE_NAME") + " " + tables.getString("REMARKS"));
      ResultSet columns = data.getColumns(null, null, "people", null);
      while (columns.next())
        System.out.println("column " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME")
          + " " + columns.getInt("DATA_TYPE"));
      ResultSet schemas = data.getSchemas();
      while (schemas.next()) System.out.println("schema " + schemas.getString(1));
      ResultSet catalogs = data.getCatalogs();
      while (catalogs.next()) System.out.println("catalog " + catalogs.getString(1));
      System.out.println("keys " + data.getPrimaryKeys(null, "main", "people").next()
        + data.getIndexInfo(null, "main", "people", false, true).next()
        + data.getImportedKeys(null, "main", "people").next() + data.getExportedKeys(null, "main", "people").next());
      data.getTypeInfo().next();
      data.getTableTypes().next();
      data.getProcedures(null, null, "%").next();
      data.getFunctions(null, null, "%").next();
      data.getTablePrivileges(null, null, "people").next();
      data.getColumnPrivileges(null, "main", "people", "%").next();
      System.out.println("limits " + data.getMaxColumnNameLength());
      c.setAutoCommit(false);
      try (PreparedStatement s = c.prepareStatement(
          "select city, inhabitants, area, founded, capital, updated from cities where inhabitants >= ? order by 2")) {
        s.setFetchSize(1);
        for (int round = 0; round < 8; round++) {
          s.setInt(1, 270000 + round);
          ResultSet rows = s.executeQuery();
          if (round > 0 && round < 7) while (rows.next()) rows.getTimestamp(6); else print(rows);
        }
      }
      c.commit();
      try (PreparedStatement s = c.prepareStatement(
          "select count(*) > 0 from people where score < ? and film_a > ? and salary is not null")) {
        s.setDouble(1, 20);
        s.setLong(2, 1);
        print(s.executeQuery());
      } catch (SQLException e) { System.out.println(e.getSQLState()); }
      c.rollback();
      try (PreparedStatement s = c.prepareStatement("select count(*) > 0 from people where score < ? and film_a > ?")) {
        s.setDouble(1, 20);
        s.setLong(2, 1);
        print(s.executeQuery());
      }
      try (PreparedStatement s = c.prepareStatement(
          "select city from cities where city = ? and updated = ? and founded = ?")) {
        s.setString(1, "Lyon");
        s.setTimestamp(2, Timestamp.valueOf("1999-12-31 23:59:59"));
        s.setDate(3, java.sql.Date.valueOf("2000-01-01"));
        print(s.executeQuery());
      }
      try (Statement s = c.createStatement()) {
        s.executeQuery("select count(*) from people where film_a = 77");
      } catch (SQLException e) { System.out.println(e.getSQLState() + " " + e.getMessage()); }
      c.rollback();
      ResultSetMetaData meta = c.prepareStatement("select city, count(*) as n from people group by city").getMetaData();
      System.out.println(meta.getColumnName(2) + " " + meta.getColumnTypeName(2));
    }
  }
}
"""


def test_jdbc(running: Running, tmp_path: Path) -> None:
    if not JDBC.exists():
        pytest.skip(f"no JDBC driver at {JDBC}: apt-get install libpostgresql-jdbc-java")
    listed = (
        subprocess.run(["java", "--list-modules"], capture_output=True, text=True) if shutil.which("java") else None
    )
    if listed is None or "jdk.compiler" not in listed.stdout:
        pytest.skip(
            "no Java that runs a source file (11 or newer, with jdk.compiler): apt-get install default-jdk-headless"
        )
    (tmp_path / "Probe.java").write_text(PROBE, encoding="utf-8")
    done = subprocess.run(
        [
            "java",
            "-Xshare:auto",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            str(JDBC),
            "Probe.java",
            f"jdbc:postgresql://127.0.0.1:{running.port}/kgather?ApplicationName=probe",
            USER,
            PASSWORD,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.strip() for line in done.stdout.splitlines()] == [
        f"version {running.server.version}",
        "table cities public",
        "table people protected: a row is a person",
        *(f"column {name} int8 -5" for name in ("person_id", "film_a", "film_b")),
        "column score float8 8",
        "column seen bool -7",
        *(f"column {name} int8 -5" for name in ("salary", "age")),
        "column city text 12",
        "column born date 91",
        "schema information_schema",
        "schema main",
        "schema pg_catalog",
        "catalog kgather",
        "keys falsefalsefalsefalse",
        "limits 63",
        "Graz|291072|127.50|1128-01-01|true|2024-05-06 07:08:09.5",
        "Lyon|522250|47.87|2000-01-01|false|1999-12-31 23:59:59.0",
        "Graz|291072|127.50|1128-01-01|true|2024-05-06 07:08:09.5",
        "Lyon|522250|47.87|2000-01-01|false|1999-12-31 23:59:59.0",
        "42501",
        "true",
        "Lyon",
        f"KG001 ERROR: {TOO_FEW_MESSAGE}",
        "n int8",
    ]
