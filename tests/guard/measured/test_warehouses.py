"""Tables that lie elsewhere than in schema main of one DuckDB file: other schemas, views, attached databases and
folders of Parquet files. They are read in place, and nothing else is."""

from pathlib import Path

import duckdb
import pytest
from worlds_of_people import GENEROUS, guarded, silent

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.measured.measuring import DataChanged
from kgather._guard.policy import parse_policy
from kgather._guard.refused import Refused

PEOPLE = "select i as id, ['Graz', 'Wien'][1 + i % 2] as city, i % 50 as age from range(1000) as t (i)"
VISITS = (
    "select i % 1000 as id, ['shop', 'bar', 'zoo'][1 + i % 3] as place, 2023 + i % 2 as year from range(3000) as t (i)"
)

_ENTRIES = """
    {people}: {{privacy_unit: id, grain: unit, artifacts: [city, age], values: {{city: [Graz, Wien]}}, bounds: {{age:
      [0, 49]}}}}
    {visits}: {{privacy_unit: id, grain: rows, artifacts: [place, year], values: {{place: [shop, bar, zoo]}},
      bounds: {{year: [2020, 2025]}}, rows_per_person: 8}}
"""


def policy(people: str, visits: str, database: str = "db.duckdb", more: str = "") -> str:
    tables = _ENTRIES.format(people=people, visits=visits)
    return f"""version: 1
database: {database}
k: 2
{more}
{GENEROUS}
tables:{tables}
joins: [{visits}.id = {people}.id]
principals: {{x: {{}}}}
"""


def database(path: Path, *statements: str) -> None:
    with duckdb.connect(path) as con:
        for statement in statements:
            con.execute(statement)


def number(guard: Guard, sql: str) -> float:
    (row,) = guard.query(sql).to_pylist()
    (value,) = row.values()
    return float(value)


def test_schemas(tmp_path: Path) -> None:
    database(
        tmp_path / "db.duckdb",
        "create schema crm; create schema web",
        f"create table crm.people as {PEOPLE}",
        f"create table web.visits as {VISITS}",
        "create table people as select 1 as secret",
    )
    guard = guarded(tmp_path, None, policy("crm.people", "web.visits"), silent)
    assert number(guard, "SELECT COUNT(*) FROM crm.people WHERE city = 'Graz'") == 500
    assert number(guard, "SELECT COUNT(*) FROM people WHERE people.age < 25") == 500
    assert number(guard, "SELECT COUNT(*) FROM db.crm.people AS p WHERE p.age < 25") == 500
    assert number(guard, "SELECT COUNT(*) FROM web.visits WHERE web.visits.place = 'zoo'") == 1000
    sql = "SELECT COUNT(*) FROM crm.people JOIN web.visits ON crm.people.id = web.visits.id WHERE city = 'Wien'"
    assert number(guard, sql) == 1500
    for hidden in ("main.people", "other.crm.people", "web.people", "db.main.people"):
        with pytest.raises(Refused, match="no table 'people'"):
            guard.query(f"SELECT COUNT(*) FROM {hidden}")


def test_names_that_several_schemas_have_are_written_in_full(tmp_path: Path) -> None:
    database(
        tmp_path / "db.duckdb",
        "create schema a; create schema b",
        f"create table a.people as {PEOPLE}",
        f"create table b.people as {VISITS}",
    )
    guard = guarded(tmp_path, None, policy("a.people", "b.people"), silent)
    with pytest.raises(Refused, match="no table 'people'"):
        guard.query("SELECT COUNT(*) FROM people")
    assert number(guard, "SELECT COUNT(*) FROM b.people") == 3000


def test_views(tmp_path: Path) -> None:
    database(
        tmp_path / "db.duckdb",
        f"create table all_people as {PEOPLE}",
        "create view people as select *, upper(city) as large from all_people where age < 40",
        "create schema web",
        f"create table web.visits as {VISITS}",
    )
    guard = guarded(tmp_path, None, policy("people", "web.visits"), silent)
    assert number(guard, "SELECT COUNT(*) FROM main.people") == 800
    assert number(guard, "SELECT COUNT(*) FROM visits") == 3000


@pytest.mark.parametrize(
    ("view", "told"),
    [
        ("select *, cast(city as integer) as c from all_people", "uses CAST"),
        ("select id, city, age + 1 as age from all_people", r"uses \+"),
        ("select * from all_people where age < (select avg(age) from all_people)", "uses SUBQUERY"),
        ("select distinct * from all_people", "takes rows together"),
        ("select * from all_people limit 500", "takes rows together"),
        ("select * from all_people where random() < 0.5", "uses RAND"),
        ("select a.* from all_people a join all_people b on a.id = b.id", "uses SUBQUERY|reads more than one table"),
        ("select * from other", "reads another view"),
    ],
)
def test_views_that_are_not_row_by_row(tmp_path: Path, view: str, told: str) -> None:
    database(
        tmp_path / "db.duckdb",
        f"create table all_people as {PEOPLE}",
        "create view other as from all_people",
        f"create view people as {view}",
        f"create table visits as {VISITS}",
    )
    text = policy("people", "visits")
    with pytest.raises(InputError, match=told):
        guarded(tmp_path, None, text, silent)
    guarded(
        tmp_path, None, text.replace("people: {privacy_unit: id", "people: {trust_view: true, privacy_unit: id"), silent
    )


def test_attached_databases(tmp_path: Path) -> None:
    database(tmp_path / "db.duckdb", f"create table people as {PEOPLE}")
    database(tmp_path / "other.duckdb", "create schema w", f"create table w.visits as {VISITS}")
    guard = guarded(tmp_path, None, policy("people", "web.w.visits", more="attach: {web: other.duckdb}"), silent)
    sql = "SELECT COUNT(*) FROM people p JOIN web.w.visits v ON v.id = p.id WHERE place = 'bar' AND city = 'Graz'"
    assert number(guard, sql) == 500
    database(tmp_path / "other.duckdb", "delete from w.visits where id = 0")
    assert number(guard, sql) == 500
    with pytest.raises(DataChanged):
        guard.query("SELECT COUNT(*) FROM web.w.visits WHERE year = 2023 AND place = 'zoo'")


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    with duckdb.connect() as con:
        con.execute(f"copy ({PEOPLE}) to '{lake / 'people.parquet'}'")
        con.execute(f"copy ({VISITS}) to '{lake / 'visits'}' (format parquet, partition_by (year))")
    text = policy("people", "visits", database="lake").replace("bounds: {year: [2020, 2025]}, ", "")
    guard = guarded(tmp_path, None, text, silent)
    assert number(guard, "SELECT COUNT(*) FROM visits WHERE year = '2024' AND place = 'zoo'") == 500
    assert number(guard, "SELECT COUNT(*) FROM people WHERE city = 'Graz'") == 500
    (next((lake / "visits").rglob("*.parquet"))).unlink()
    with pytest.raises(DataChanged):
        guard.query("SELECT COUNT(*) FROM people WHERE age < 10")


def test_a_folder_is_attached(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    database(tmp_path / "db.duckdb", f"create table people as {PEOPLE}")
    with duckdb.connect() as con:
        con.execute(f"copy ({VISITS}) to '{tmp_path / 'lake' / 'visits.parquet'}'")
    guard = guarded(tmp_path, None, policy("people", "lake.visits", more="attach: {lake: lake}"), silent)
    assert number(guard, "SELECT COUNT(*) FROM lake.visits") == 3000


def test_views_read_the_files_that_the_policy_names(tmp_path: Path) -> None:
    kept = tmp_path / "files"
    kept.mkdir()
    with duckdb.connect() as con:
        con.execute(f"copy ({VISITS}) to '{kept / 'visits.parquet'}'")
    database(
        tmp_path / "db.duckdb",
        f"create table people as {PEOPLE}",
        f"create view visits as from read_parquet('{kept / '*.parquet'}')",
    )
    guard = guarded(tmp_path, None, policy("people", "visits", more="files: [files]"), silent)
    assert number(guard, "SELECT COUNT(*) FROM visits") == 3000
    (tmp_path / "ledger.sqlite").unlink()
    with pytest.raises(InputError, match="names under files"):
        number(guarded(tmp_path, None, policy("people", "visits"), silent), "SELECT COUNT(*) FROM visits")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("attach: {memory: other.duckdb}", "'memory' is a name of the guard's own"),
        ("attach: {a.b: other.duckdb}", "'a.b' is a name of the guard's own"),
        ("mode: exact\nattach: {web: other.duckdb}", "reads one DuckDB database"),
    ],
)
def test_policies_are_refused(more: str, told: str) -> None:
    text = policy("people", "visits", more=more)
    with pytest.raises(InputError, match=told):
        parse_policy(text.replace(GENEROUS, "") if "exact" in more else text)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("attach: {web: missing.duckdb}", "names under attach.web"),
        ("attach: {web: 'ducklake:missing.ducklake'}", "attach.web"),
    ],
)
def test_what_cannot_be_attached(tmp_path: Path, more: str, told: str) -> None:
    database(tmp_path / "db.duckdb", f"create table people as {PEOPLE}", f"create table visits as {VISITS}")
    with pytest.raises(InputError, match=told):
        guarded(tmp_path, None, policy("people", "visits", more=more), silent)


def loaded(extension: str) -> duckdb.DuckDBPyConnection:
    """A connection with an extension of DuckDB, which is fetched from no network here."""
    con = duckdb.connect(config={"autoinstall_known_extensions": False})
    try:
        con.execute(f"load {extension}")
    except duckdb.Error:
        con.close()
        pytest.skip(f"DuckDB {duckdb.__version__} has no extension {extension} here: install it, or this is not tested")
    return con


def test_a_ducklake_catalog_is_attached(tmp_path: Path) -> None:
    database(tmp_path / "db.duckdb", f"create table visits as {VISITS}")
    with loaded("ducklake") as con:
        con.execute(f"attach 'ducklake:{tmp_path / 'lake.ducklake'}' as l")
        con.execute(f"create table l.people as {PEOPLE}")
    text = policy("web.people", "visits", more="attach: {web: 'ducklake:lake.ducklake'}")
    guard = guarded(tmp_path, None, text, silent)
    assert number(guard, "SELECT COUNT(*) FROM web.people WHERE city = 'Graz'") == 500
    assert number(guard, "SELECT COUNT(*) FROM visits") == 3000
    with loaded("ducklake") as con:
        con.execute(f"attach 'ducklake:{tmp_path / 'lake.ducklake'}' as l")
        con.execute("delete from l.people where id < 100")
    with pytest.raises(DataChanged):
        guard.query("SELECT COUNT(*) FROM web.people WHERE age < 10")


def test_a_folder_of_iceberg_tables_is_attached(tmp_path: Path) -> None:
    database(tmp_path / "db.duckdb", f"create table visits as {VISITS}")
    loaded("iceberg").close()
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed, which writes the table: this is not tested")
    from pyiceberg.catalog.sql import SqlCatalog

    with duckdb.connect() as con:
        people = con.sql(PEOPLE).to_arrow_table()
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path / 'c.sqlite'}", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("own")
    table = catalog.create_table("own.people", people.schema, location=f"file://{tmp_path / 'ice' / 'people'}")
    table.append(people)
    text = policy("ice.people", "visits", more="attach: {ice: 'iceberg:ice'}")
    guard = guarded(tmp_path, None, text, silent)
    assert number(guard, "SELECT COUNT(*) FROM ice.people WHERE city = 'Graz'") == 500
    table.append(people.slice(0, 10))
    with pytest.raises(DataChanged):
        guard.query("SELECT COUNT(*) FROM ice.people WHERE age < 10")


def test_a_folder_without_iceberg_tables_is_refused(tmp_path: Path) -> None:
    loaded("iceberg").close()
    database(tmp_path / "db.duckdb", f"create table people as {PEOPLE}", f"create table visits as {VISITS}")
    (tmp_path / "ice").mkdir()
    with pytest.raises(InputError, match="holds no Iceberg table"):
        guarded(tmp_path, None, policy("people", "visits", more="attach: {ice: 'iceberg:ice'}"), silent)
