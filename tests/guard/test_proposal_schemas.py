"""`init guard` on schemas that people know, beside what a careful person would say of them; and on odd ones."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import more_schemas
import numpy as np
import other_schemas
import pytest
import real_schemas
from real_schemas import LEFT_OUT, Of, Schema, build, compared

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.policy import load_policy, parse_policy
from kgather._guard.proposal import EXAMPLES, propose, write_policy

KNOWN: Mapping[str, Schema] = {
    "tpch": Schema(real_schemas.tpch, real_schemas.TPCH),
    "tpch with keys": Schema(lambda: real_schemas.tpch(keys=True), real_schemas.TPCH),
    "chinook": Schema(real_schemas.chinook, real_schemas.CHINOOK),
    "sakila": Schema(real_schemas.sakila, real_schemas.SAKILA),
    "northwind": Schema(real_schemas.northwind, real_schemas.NORTHWIND),
    "jaffle shop": Schema(real_schemas.jaffle_raw, real_schemas.JAFFLE_RAW),
    "marts of it": Schema(real_schemas.jaffle_mart, real_schemas.JAFFLE_MART),
}
OTHERS: Mapping[str, Schema] = {
    name: Schema(getattr(other_schemas, name), truth) for name, truth in other_schemas.TRUTHS.items()
}
MORE: Mapping[str, Schema] = {
    name: Schema(getattr(more_schemas, name), truth) for name, truth in more_schemas.TRUTHS.items()
}
ALL = KNOWN | OTHERS | MORE
RIGHT = 0.9
"""The part of tables and columns that has to be right."""


class Proposed(NamedTuple):
    """A database, and the policy that was written for it."""

    file: Path
    policy: Path

    @property
    def text(self) -> str:
        return self.policy.read_text()


@pytest.fixture(scope="module")
def proposed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Proposed] = {}

    def of(name: str) -> Proposed:
        if name not in made:
            folder = tmp_path_factory.mktemp("schema")
            file = build(folder / "data.duckdb", ALL[name].statements())
            write_policy(file, folder / "guard.yml")
            made[name] = Proposed(file, folder / "guard.yml")
        return made[name]

    return of


def noise() -> Any:
    rng = np.random.default_rng(1)
    return lambda count, sd: np.rint(rng.normal(size=count) * sd).astype(np.int64)


@pytest.mark.parametrize("name", ALL)
def test_nine_of_ten_roles_are_right(proposed: Any, name: str) -> None:
    made = proposed(name)
    right, wrong = compared(ALL[name].truth, load_policy(made.policy), made.text)
    assert right >= RIGHT * (right + len(wrong)), wrong


@pytest.mark.parametrize("name", ALL)
def test_nothing_about_people_is_offered_as_public(proposed: Any, name: str) -> None:
    offered = re.findall(r'(?m)^  # "?([^":]+)"?:\n  #   public: true', proposed(name).text)
    assert not {*offered} & {
        table for table, what in ALL[name].truth.items() if isinstance(what, Of) or what == LEFT_OUT
    }


@pytest.mark.parametrize("name", ALL)
def test_every_example_is_answered(proposed: Any, name: str, tmp_path: Path) -> None:
    """With numbers, each at the default budget; a fifth of an answer's groups may be withheld."""
    made = proposed(name)
    guard = Guard(load_policy(made.policy), tmp_path, noise=noise())
    asked = [line.removeprefix("#").strip() for line in made.text.partition(EXAMPLES)[2].splitlines()[1:]]
    assert len(asked) >= 5
    assert any(" WHERE " in question for question in asked)
    for question in asked:
        found = guard.query(question)
        told = found.column(found.num_columns - 1)
        assert found.num_rows >= 1, question
        assert told.null_count <= found.num_rows / 5, question


def test_the_census_has_no_column_for_people(data_dir: Path, tmp_path: Path) -> None:
    """Each row is one of them; the file is that of Adult."""
    csv = data_dir / "adult" / "adult.csv"
    for named in (False, True):
        folder = tmp_path / str(named)
        folder.mkdir()
        file = build(folder / "adult.duckdb", real_schemas.adult(csv, named=named))
        write_policy(file, folder / "guard.yml")
        policy = load_policy(folder / "guard.yml")
        table = policy.tables["adult"]
        assert table.privacy_unit == ("person_id" if named else "rowid")
        assert {*table.artifacts} == {*real_schemas.ADULT["where"].split()}
        guard = Guard(policy, folder, noise=noise())
        answer = guard.query(
            "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM adult WHERE age >= 30 GROUP BY sex ORDER BY n"
        )
        with duckdb.connect(file, read_only=True) as con:
            true = con.execute(
                "select count(*), avg(age) from adult where age >= 30 group by sex order by 1"
            ).fetchall()
        for (count, mean), found, age in zip(true, answer["n"].to_pylist(), answer["a"].to_pylist(), strict=True):
            assert found == pytest.approx(count, rel=0.01)
            assert age == pytest.approx(mean, abs=0.5)


# What is odd


def made(tmp_path: Path, *statements: str, **options: Any) -> str:
    return propose(build(tmp_path / "data.duckdb", statements), **options)


USERS = "create table users as select i as id, 'e' || i as email, i % 5 as level from range(300) r(i)"


def test_a_database_without_people(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"No column seems to name people.*--unit TABLE\.COLUMN"):
        made(
            tmp_path,
            "create table products as select i as product_id, i % 7 as price from range(50) r(i)",
            "create table stock as select i as product_id, i % 3 as store_id, i as amount from range(50) r(i)",
        )


def test_the_unit_may_be_one_tables(tmp_path: Path) -> None:
    other = "create table wards as select i as id, i % 3 as floor from range(40) r(i)"
    text = made(tmp_path, USERS, other, unit="wards.id")
    assert [*parse_policy(text).tables] == ["wards"]
    with pytest.raises(InputError, match=r"There is no column 'users\.nobody'"):
        propose(tmp_path / "data.duckdb", unit="users.nobody")


def test_views_of_people_are_never_offered(tmp_path: Path) -> None:
    """Of people themselves, of a view of them, and of sums over them."""
    text = made(
        tmp_path,
        USERS,
        "create table colours as select i as colour, 'c' || i as title from range(4) r(i)",
        "create view emails as select id, level from users",
        "create view levels as select level, count(*) as n from emails group by level",
        "create view shades as select * from colours",
    )
    assert [*parse_policy(text).tables] == ["users"]
    for view in ("emails", "levels"):
        assert f"# {view} is left out: it seems to tell of people as a view of tables of people" in text
        assert f"# {view}:" not in text
    assert "# shades:\n  #   public: true" in text


def test_a_view_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        USERS,
        "create table gone as select 1 as x",
        "create view broken as select x from gone",
        "drop table gone",
    )
    assert [*parse_policy(text).tables] == ["users"]
    assert "# broken is left out: it cannot be read." in text


def test_wide_tables(tmp_path: Path) -> None:
    """Two of many columns, none of which repeats another."""
    columns = ", ".join(f"(hash(i, {at}) % 7)::integer as q{at}" for at in range(150))
    others = columns.replace("hash(i, ", "hash(-i, ")
    text = made(
        tmp_path,
        f"create table users as select i as user_id, {columns} from range(600) r(i)",
        f"create table answers as select i as user_id, {others} from range(600) r(i)",
    )
    policy = parse_policy(text)
    assert len(policy.tables["users"].artifacts) == len(policy.tables["answers"].artifacts) == 150
    assert not policy.tables["users"].same_as


def test_a_table_that_names_people_is_never_offered(tmp_path: Path) -> None:
    """People who are not in the table of people any more, and people of another kind."""
    gone = "create table visits as select 9000 + i % 90 as user_id, i % 4 as kind from range(900) r(i)"
    text = made(
        tmp_path,
        "create table users as select i as user_id, i % 5 as level from range(300) r(i)",
        gone,
        "create table shifts as select i % 7 as nurse_id, i % 3 as ward from range(90) r(i)",
    )
    policy = parse_policy(text)
    assert policy.tables["visits"].privacy_unit == "user_id"
    assert "# shifts is left out: it seems to tell of people of another kind, as it names them (nurse_id)." in text


def test_two_columns_that_name_people(tmp_path: Path) -> None:
    """A row is protected as the first one's; the other one is hidden."""
    text = made(
        tmp_path,
        "create table users (user_id integer primary key, level integer)",
        "insert into users select i, i % 5 from range(300) r(i)",
        "create table messages (message_id integer primary key, sender_id integer references users (user_id),"
        " recipient_id integer references users (user_id), kind varchar)",
        "insert into messages select i, i % 300, (i * 7) % 300, 'k' || i % 3 from range(900) r(i)",
    )
    table = parse_policy(text).tables["messages"]
    assert table.privacy_unit == "sender_id"
    assert "recipient_id" in table.hidden
    assert "recipient_id: it names people, too" in text


def test_who_reports_to_whom_is_hidden(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        "create table employees as select i as employee_id, i // 10 as manager_id, i % 4 as grade,"
        " 1000.0 + i % 50 * 100 as salary from range(300) r(i)",
    )
    table = parse_policy(text).tables["employees"]
    assert table.privacy_unit == "employee_id"
    assert "manager_id" in table.hidden
    assert {"grade", "salary"} <= {*table.artifacts}


def test_keys_of_several_columns(tmp_path: Path) -> None:
    """Lines name an order by its shop and its number."""
    build(
        tmp_path / "data.duckdb",
        [
            "create table orders (shop integer, order_no integer, customer_id integer, amount decimal(8, 2),"
            " primary key (shop, order_no))",
            "insert into orders select i % 3, i // 3, i % 200, i % 70 from range(900) r(i)",
            "create table lines as select shop, order_no, n as line, order_no % 9 as sku from orders, range(3) u(n)",
        ],
    )
    text = propose(tmp_path / "data.duckdb")
    lines = parse_policy(text).tables["lines"]
    assert lines.belongs_to == {"shop": "orders.shop", "order_no": "orders.order_no"}
    assert parse_policy(text).tables["orders"].key == ("shop", "order_no")


@pytest.mark.parametrize(
    ("column", "role"),
    [
        ("(i % 9000) / 100 as decimal(10, 2)) as amount", "artifacts"),
        ("['low', 'high'][1 + i % 2] as levels) as level", "artifacts"),
        ("i % 2 = 0 as boolean) as flag", "artifacts"),
        ("i % 2 as utinyint) as gift_card_used", "artifacts"),
        ("md5('x' || i) as uuid) as session", "hidden"),
        ("timestamp '2024-01-01' + interval (i % 300) day as timestamp) as seen_at", "coarsened"),
        ("date '2024-01-01' + (i % 300)::integer as date) as due", "coarsened"),
        ("'(0662) ' || i % 9 as varchar) as fax", "hidden"),
        ("'Main St' as varchar) as street_1", "hidden"),
        ("i % 40 as varchar) as postal_code", "hidden"),
        ("'x' || i % 9 as varchar) as work_email", "hidden"),
        ("i / 7.3 as double) as latitude", "hidden"),
        ("'k' || i % 5 as varchar) as event_name", "artifacts"),
        ("'k' || i % 5 as varchar) as last_name", "hidden"),
        ("1950 + i % 60 as integer) as birth_year", "artifacts"),
    ],
)
def test_types_and_names(tmp_path: Path, column: str, role: str) -> None:
    policy = parse_policy(
        made(
            tmp_path,
            "create type levels as enum ('low', 'high')",
            f"create table users as select i as user_id, cast({column} from range(3000) r(i)",
        )
    )
    name = column.rpartition(" ")[2]
    assert name in getattr(policy.tables["users"], role)


@pytest.mark.parametrize(
    ("dates", "rows", "grain"),
    [
        ("date '2024-01-01' + (hash(i) % 300)::integer", 20_000, "day"),
        ("date '2014-01-01' + (hash(i) % 3600)::integer", 3000, "month"),
        ("date '2014-01-01' + to_months((hash(i) % 36)::integer)", 20_000, "month"),
        ("make_date(2000 + (hash(i) % 20)::integer, 1, 1)", 20_000, "year"),
    ],
)
def test_dates_are_cut_to_what_they_tell(tmp_path: Path, dates: str, rows: int, grain: str) -> None:
    text = made(tmp_path, f"create table users as select i as user_id, {dates} as since from range({rows}) r(i)")
    assert parse_policy(text).tables["users"].coarsened == {"since": grain}


def test_hundreds_of_tables(tmp_path: Path) -> None:
    """Half of them of people: joined in a row, not each with each."""
    statements = [
        f"create table t{at} as select i as user_id, i % {at + 2} as a, (i * {at + 3}) % 11 as b from range(60) r(i)"
        for at in range(120)
    ]
    statements += [f"create table p{at} as select i as code, 'x' || i as y from range(9) r(i)" for at in range(120)]
    policy = parse_policy(made(tmp_path, *statements))
    assert len(policy.tables) == 120
    assert len(policy.joins) == 119


def test_reserved_words_and_quotes(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        'create table "user" as select i as "user id", i % 3 as "select", \'a\' || i % 2 as "group" from'
        " range(90) t(i)",
        'create table "my ""order" as select i as "order id", i % 90 as "user id", i % 4 as "from" from'
        " range(400) r(i)",
    )
    policy = parse_policy(text)
    assert {name: table.privacy_unit for name, table in policy.tables.items()} == {
        "user": "user id",
        'my "order': "user id",
    }
    assert policy.tables["user"].artifacts == ("select", "group")


def test_tables_of_other_schemas(tmp_path: Path) -> None:
    """What they hold is about the same people; and a public table may lie there."""
    text = made(
        tmp_path,
        "create table users as select i as user_id, i % 5 as level from range(300) r(i)",
        "create schema sales",
        "create table sales.orders as select i as order_id, i % 300 as user_id, i % 7 as sku from range(900) r(i)",
        "create table sales.skus as select i as sku, 's' || i as title from range(7) r(i)",
    )
    policy = parse_policy(text)
    assert policy.tables["sales.orders"].privacy_unit == "user_id"
    assert "  # sales.skus:\n  #   public: true" in text
    guard = Guard(load_policy(_saved(tmp_path, text)), tmp_path, noise=noise())
    assert guard.query("SELECT COUNT(*) AS n FROM sales.orders WHERE sku < 3").num_rows == 1


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    with duckdb.connect() as con:
        con.execute(f"copy ({USERS.partition(' as ')[2]}) to '{folder / 'users.parquet'}'")
        con.execute(f"copy (select i % 300 as user_id, i % 4 as kind from range(900) r(i)) to '{folder / 'v.parquet'}'")
    policy = parse_policy(propose(folder))
    assert {name: table.privacy_unit for name, table in policy.tables.items()} == {"users": "id", "v": "user_id"}
    assert policy.tables["users"].hidden == ("email",)


def _saved(folder: Path, text: str) -> Path:
    (folder / "guard.yml").write_text(text)
    return folder / "guard.yml"
