"""`init guard`: what a policy proposes for a database, and that what repeats is seen."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import yaml
from guard_data import POLICY
from guard_files import write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgather._cli.init import command
from kgather._errors import InputError
from kgather._guard.catalog import catalog_of
from kgather._guard.guard import Guard
from kgather._guard.planner import plan
from kgather._guard.policy import Budget, Policy, load_policy, parse_policy
from kgather._guard.proposal import EXAMPLES, Written, propose, write_policy
from kgather._guard.proposed_values import next_step, outward
from kgather._guard.refused import Refused


def database(folder: Path, *statements: str) -> Path:
    file = folder / "data.duckdb"
    with duckdb.connect(file) as con:
        for statement in statements:
            con.execute(statement)
    return file


def proposed(folder: Path, *statements: str, **options: Any) -> tuple[Policy, str]:
    text = propose(database(folder, *statements), **options)
    return parse_policy(text), text


def noise(seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return lambda count, sd: np.rint(rng.normal(size=count) * sd).astype(np.int64)


def written(folder: Path, *statements: str) -> tuple[Written, Policy, str]:
    done = write_policy(database(folder, *statements), folder / "guard.yml")
    return done, load_policy(folder / "guard.yml"), (folder / "guard.yml").read_text()


def examples(text: str) -> list[str]:
    """The questions at the end of a policy."""
    _, _, rest = text.partition(EXAMPLES)
    return [line.removeprefix("#").strip() for line in rest.splitlines()[1:]]


PEOPLE = (
    "create table people as select i as person_id, i % 60 + 18 as age, 'c' || i % 4 as city, 'n' || i as name,"
    " timestamp '2024-01-01' + interval (i) day as joined, i % 7 + 0.5 as mood from range(200) r(i)"
)
VISITS = (
    "create table visits as select p as person_id, v as shop_id, (p * v) % 5 + 1 as rating, p * 1.5 as spend,"
    " timestamp '2024-01-01' + interval (p * v) day as at from range(200) r(p), range(1, 4) s(v)"
)
SHOPS = "create table shops as select i as shop_id, 'shop ' || i as title from range(1, 10) r(i)"


def test_the_made_up_database_by_hand(tmp_path: Path) -> None:
    """It is guessed as the policy says that goes with it."""
    write_files(tmp_path)
    write_policy(tmp_path / "fixture.duckdb", tmp_path / "guard.yml")
    found, known = yaml.safe_load((tmp_path / "guard.yml").read_text()), yaml.safe_load(POLICY)
    wide, wanted = found["tables"]["ratings_wide"], known["tables"]["ratings_wide"]
    for entry in ("privacy_unit", "pivot_of"):
        assert wide[entry] == wanted[entry]
    assert {*wide["artifacts"]} == {*wanted["artifacts"], *wanted["measures"], *wanted["dimensions"]}
    assert found["tables"]["ratings"]["artifacts"] == ["item_id", "rating"]
    assert [*found["tables"]["ratings"]["coarsened"]] == ["rated_at"]
    assert found["tables"]["users"]["same_as"] == {"age": "ratings_wide.age"}
    assert "zip" in found["tables"]["users"]["hidden"]
    assert "items" not in found["tables"]
    assert found["joins"] == [f"ratings_wide.user_id = {other}.user_id" for other in ("users", "ratings")]


def test_a_policy_that_is_written_opens(tmp_path: Path) -> None:
    file = database(tmp_path, PEOPLE, VISITS, SHOPS)
    left = write_policy(file, tmp_path / "guard.yml").left
    text = (tmp_path / "guard.yml").read_text()
    assert left == text.count("# DECIDE:") > 3
    policy = load_policy(tmp_path / "guard.yml")
    assert (policy.k, policy.mode, list(policy.principals)) == (10, "measured", ["analyst"])
    assert (policy.budget.epsilon, policy.budget.delta) == (8, 1e-6)
    assert "odds with and without all records of a person" in text
    assert policy.database == (tmp_path / "data.duckdb").resolve()
    guard = Guard(policy.model_copy(update={"budget": Budget(epsilon=1e6)}), tmp_path, noise=noise())
    sql = "SELECT rating, COUNT(*) AS n, AVG(spend) AS s FROM visits GROUP BY rating"
    assert guard.query(sql).num_rows == 5
    assert (tmp_path / "audit.jsonl").exists()


def test_roles(tmp_path: Path) -> None:
    policy, text = proposed(tmp_path, PEOPLE, VISITS, SHOPS)
    people, visits = policy.tables["people"], policy.tables["visits"]
    assert (people.privacy_unit, people.grain) == ("person_id", "unit")
    assert (people.artifacts, people.coarsened) == (("age", "city", "mood"), {"joined": "month"})
    assert people.hidden == ("name",)
    assert (visits.privacy_unit, visits.grain, visits.unique) == ("person_id", "rows", "shop_id")
    assert (visits.artifacts, visits.coarsened) == (("shop_id", "rating", "spend"), {"at": "month"})
    assert "  # shops:\n  #   public: true" in text
    assert "  # - visits.shop_id = shops.shop_id" in text
    assert [(join.left, join.right) for join in policy.joins] == [(("people", "person_id"), ("visits", "person_id"))]


def test_what_is_commented_out_may_be_taken_in(tmp_path: Path) -> None:
    text = propose(database(tmp_path, PEOPLE, VISITS, SHOPS))
    for line in ("  # shops:", "  #   public: true", "  # - visits.shop_id = shops.shop_id"):
        text = text.replace(line, line.replace("# ", "", 1))
    policy = parse_policy(text)
    assert policy.tables["shops"].public
    assert len(policy.joins) == 2


@pytest.mark.parametrize(
    "name", ["name", "email", "Phone", "home_address", "zipCode", "birth_date", "IBAN", "device_id", "free_comment"]
)
def test_what_tells_who_somebody_is_is_hidden(tmp_path: Path, name: str) -> None:
    policy, _ = proposed(tmp_path, f'create table people as select i as user_id, i % 3 as "{name}" from range(50) r(i)')
    assert policy.tables["people"].hidden == (name,)


def test_who_is_protected(tmp_path: Path) -> None:
    """Of two ids that tables have in common the one with a name of people; else the one in most tables."""
    tables = [
        f"create table t{number} as select i as item_id, i as {other} from range(30) r(i)"
        for number, other in enumerate(("client_id", "client_id", "x"))
    ]
    policy, _ = proposed(tmp_path, *tables)
    assert policy.tables["t0"].privacy_unit == "client_id"
    assert policy.tables["t2"].belongs_to == {"item_id": "t0.item_id"}  # each item is one client's
    policy, _ = proposed(tmp_path / ".", "drop table t0", unit="item_id")
    assert {table.privacy_unit for table in policy.tables.values()} == {"item_id"}


def test_where_nobody_is_named(tmp_path: Path) -> None:
    file = database(tmp_path, "create table t as select 1 as x, 'a' as y")
    with pytest.raises(InputError, match=r"No column seems to name people.*--unit COLUMN"):
        propose(file)
    with pytest.raises(InputError, match="No table has a column 'z'"):
        propose(file, unit="z")
    assert parse_policy(propose(file, unit="Y")).tables["t"].privacy_unit == "y"


def test_no_database(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no file"):
        propose(tmp_path / "none.duckdb")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="cannot be opened as a DuckDB database"):
        propose(tmp_path / "text")
    with pytest.raises(InputError, match="No column seems"):
        propose(database(tmp_path))


def test_the_database_is_only_read(tmp_path: Path) -> None:
    file = database(tmp_path, PEOPLE, VISITS)
    before = file.read_bytes()
    write_policy(file, tmp_path / "guard.yml")
    assert file.read_bytes() == before


# What repeats


def test_a_copied_column_is_declared(tmp_path: Path) -> None:
    """By its values, whatever its name; where one table has fewer people, too."""
    copy = "create table cards as select person_id, age as age_now, city as town from people where person_id < 90"
    policy, _ = proposed(tmp_path, PEOPLE, copy)
    (copied,) = [table for table in policy.tables.values() if table.same_as]
    declared = {
        frozenset([f"{name}.{column}", target])
        for name, table in policy.tables.items()
        for column, target in table.same_as.items()
    }
    assert declared == {frozenset(["people.city", "cards.town"]), frozenset(["people.age", "cards.age_now"])}
    assert copied.grain == "unit"


def test_columns_that_differ_are_not_declared(tmp_path: Path) -> None:
    other = (
        "create table cards as select person_id, (age * 7) % 61 as age, 'c' || (person_id * 3) % 5 as city from people"
    )
    policy, text = proposed(tmp_path, PEOPLE, other)
    assert not any(table.same_as for table in policy.tables.values())
    assert "almost" not in text


def test_a_copy_out_of_date_is_warned_of(tmp_path: Path) -> None:
    other = "create table cards as select person_id, case person_id when 3 then 99 else age end as age from people"
    policy, text = proposed(tmp_path, PEOPLE, other)
    assert not any(table.same_as for table in policy.tables.values())
    assert "# DECIDE: age is almost, not wholly, cards.age." in text or "age is almost, not wholly, people.age." in text


def test_a_copy_in_each_row_is_told(tmp_path: Path) -> None:
    """The visits repeat the city of who came. It may be asked there, too: each way is paid for."""
    copy = "create table v2 as select v.*, p.city from visits v join people p using (person_id)"
    policy, text = proposed(tmp_path, PEOPLE, VISITS, copy, "drop table visits")
    assert "city" in policy.tables["v2"].artifacts
    assert "# city repeats people.city. Asked by a join with people, that costs nothing twice" in text


def test_three_copies_have_one_source(tmp_path: Path) -> None:
    policy, _ = proposed(
        tmp_path, PEOPLE, "create table b as select person_id, age from people", "create table c as from b"
    )
    same = {name: table.same_as for name, table in policy.tables.items() if table.same_as}
    assert same == {"c": {"age": "b.age"}, "people": {"age": "b.age"}}


def test_a_wide_table_of_a_long_one_is_declared(tmp_path: Path) -> None:
    wide = "create table wide as pivot visits on shop_id using first(rating) group by person_id"
    policy, _ = proposed(tmp_path, PEOPLE, VISITS, wide)
    pivot = policy.tables["wide"].pivot_of
    assert pivot is not None
    assert (pivot.table, pivot.key, pivot.value, pivot.names) == (
        "visits",
        "shop_id",
        "rating",
        {1: "1", 2: "2", 3: "3"},
    )
    assert policy.tables["wide"].artifacts == ("1", "2", "3")


def test_a_wide_table_with_a_column_of_its_own_is_warned_of(tmp_path: Path) -> None:
    wide = "create table wide as from (pivot visits on shop_id using first(rating) group by person_id)"
    policy, text = proposed(
        tmp_path, VISITS, wide, "alter table wide add column other integer", "update wide set other = person_id % 5"
    )
    assert policy.tables["wide"].pivot_of is not None
    assert "# DECIDE: other: no key of visits has these values." in text


def test_a_wide_table_that_differs_is_none(tmp_path: Path) -> None:
    wide = "create table wide as from (pivot visits on shop_id using first(rating) group by person_id)"
    policy, _ = proposed(tmp_path, VISITS, wide, 'update wide set "1" = "1" + 1, "2" = 6 - "2", "3" = "3" + 1')
    assert policy.tables["wide"].pivot_of is None


def test_a_wide_table_of_numbers_has_artifacts(tmp_path: Path) -> None:
    columns = ", ".join(f"(i * {n}) % 5 + 1 as q{n}" for n in range(1, 5))
    answers = f"create table answers as select i as user_id, {columns}, i * 1000 as x from range(99) r(i)"
    policy, _ = proposed(tmp_path, answers)
    assert policy.tables["answers"].artifacts == ("q1", "q2", "q3", "q4")
    assert policy.tables["answers"].hidden == ("x",)


# What is read from the data


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (1, 5, (1, 5)),
        (18, 77, (10, 100)),
        (20_134, 61_000, (20_000, 100_000)),
        (3, 61_000, (0, 100_000)),
        (-9.95, 9.96, (-10, 10)),
        (-300, -40, (-500, -20)),
        (-300, -1, (-500, 0)),
        (0, 0, (0, 1)),
        (5, 5, (0, 5)),
        (-2, -2, (-2, 0)),
        (0.31, 0.32, (0.2, 0.5)),
        (0.1 + 0.2, 1.1, (0.2, 2)),
        (1e300, 3e300, (1e300, 5e300)),
    ],
)
def test_bounds_are_rounded_outwards(low: float, high: float, told: tuple[float, float]) -> None:
    assert tuple(float(bound) for bound in outward(low, high)) == told


@given(*[st.floats(-1e12, 1e12, allow_nan=False)] * 2)
def test_bounds_are_round_and_hold_what_they_are_of(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    limits = outward(low, high)
    assert float(limits.low) <= low <= high <= float(limits.high)
    assert limits.low < limits.high
    assert {limit.normalize().as_tuple().digits for limit in limits} <= {(0,), (1,), (2,), (5,)}


def test_steps() -> None:
    assert [next_step(number) for number in (1, 2, 3, 6, 10, 11, 148, 500)] == [1, 2, 5, 10, 10, 20, 200, 500]


MONEY = "create table people as select i as user_id, case i when 7 then 98765432 else 1000 + i * 7 end as salary"


def test_a_bound_is_no_single_persons(tmp_path: Path) -> None:
    """One has far more than the others: that is not told."""
    policy, text = proposed(tmp_path, f"{MONEY} from range(100) r(i)")
    assert policy.tables["people"].bounds == {"salary": (1000, 2000)}
    assert "9876" not in text
    assert "00000000" not in text


@pytest.mark.parametrize("rich", [9, 10])
def test_a_bound_is_one_that_k_people_reach(tmp_path: Path, rich: int) -> None:
    amounts = f"case when i < {rich} then 40000 else 1500 end"
    policy, _ = proposed(
        tmp_path, f"create table people as select i as user_id, {amounts} as salary from range(99) r(i)"
    )
    assert policy.tables["people"].bounds["salary"][1] == (50_000 if rich >= 10 else 2_000)


def test_a_persons_many_rows_count_as_one_persons(tmp_path: Path) -> None:
    """A bound that somebody's hundred rows reach is that person's; the same for a value."""
    visits = (
        "create table visits as select i % 50 as user_id, 5 as spend, 'common' as kind from range(500) r(i) "
        "union all select 1, 77777, 'rare' from range(100)"
    )
    policy, text = proposed(tmp_path, visits)
    assert policy.tables["visits"].bounds == {"spend": (0, 5)}
    assert policy.tables["visits"].values == {"spend": (5,), "kind": ("common",)}
    assert "rare" not in text
    assert "# kind: values that fewer than 10 people have are left out" in text


@pytest.mark.parametrize("k", [3, 10])
def test_a_value_is_listed_if_k_people_have_it(tmp_path: Path, k: int) -> None:
    city = f"case when i < {k - 1} then 'few' when i < {2 * k - 1} then 'enough' else 'many' end"
    file = database(tmp_path, f"create table people as select i as user_id, {city} as city from range(99) r(i)")
    text = propose(file, k=k)
    assert parse_policy(text).tables["people"].values == {"city": ("enough", "many")}
    assert "few" not in text.replace("fewer", "")
    assert f"# city: values that fewer than {k} people have are left out" in text


def test_where_no_value_has_k_people_none_is_listed(tmp_path: Path) -> None:
    policy, text = proposed(
        tmp_path, "create table people as select i as user_id, 'c' || i // 5 as city, i as age from range(40) r(i)"
    )
    assert "city" in policy.tables["people"].artifacts
    assert policy.tables["people"].values == {}
    assert "c3" not in text


def test_what_is_listed_and_what_is_bounded(tmp_path: Path) -> None:
    """Whole numbers close together have bounds, which say them; others that are few are listed, too."""
    policy, _ = proposed(
        tmp_path,
        "create table people as select i as user_id, i % 5 + 1 as stars, 20 * (i % 6) as score, i % 4 / 2 as grade,"
        " i % 2 = 0 as member, 'c' || i % 3 as city, 1 as one from range(300) r(i)",
    )
    table = policy.tables["people"]
    assert table.bounds == {"stars": (1, 5), "score": (0, 100), "grade": (0, 2)}
    assert table.values == {
        "score": (0, 20, 40, 60, 80, 100),
        "grade": (0.0, 0.5, 1.0, 1.5),
        "city": ("c0", "c1", "c2"),
    }


def test_what_is_read_has_to_be_confirmed(tmp_path: Path) -> None:
    _, _, text = written(tmp_path, PEOPLE, VISITS, SHOPS)
    lines = [line.strip() for line in text.splitlines()]
    for entry in ("bounds:", "values:", "rows_per_person:"):
        places = [at for at, line in enumerate(lines) if line.startswith(entry)]
        assert places
        assert all(any(line.startswith("# DECIDE: read from the data") for line in lines[at - 2 : at]) for at in places)


def test_what_shows_the_same_has_the_same_bounds(tmp_path: Path) -> None:
    """The columns of a wide table have those of the long one, a copy has those of what it copies."""
    ratings = (
        "create table ratings as select p as user_id, s as shop_id, "
        "case when s = 3 then 2 + p % 2 else 1 + (p + s) % 5 end as rating from range(200) r(p), range(1, 4) t(s)"
    )
    wide = "create table wide as from (pivot ratings on shop_id using first(rating) group by user_id)"
    policy, _ = proposed(tmp_path, ratings, wide)
    assert policy.tables["wide"].pivot_of is not None
    assert policy.tables["wide"].bounds == dict.fromkeys(("1", "2", "3"), (1, 5))
    copied, _ = proposed(tmp_path, PEOPLE, "create table b as select person_id, age from people where person_id < 60")
    assert copied.tables["b"].bounds == {"age": (20, 100)}
    assert copied.tables["people"].bounds == {"age": (20, 100), "mood": (0, 10)}


@pytest.mark.parametrize("part", [1, 1000, 1_000_000])
def test_seconds_since_1970_are_hidden(tmp_path: Path, part: int) -> None:
    times = f"(880000000 + i * 997) * {part}"
    visits = f"create table visits as select i % 50 as user_id, {times} as payment from range(300) r(i)"
    policy, text = proposed(tmp_path, visits)
    assert policy.tables["visits"].hidden == ("payment",)
    assert "# payment: it looks like a time in seconds since 1970" in text


def test_rows_that_belong_to_rows_of_people(tmp_path: Path) -> None:
    """Items of orders are about those who ordered: they are not proposed as public."""
    orders = "create table orders as select i as order_id, i % 90 as customer_id, i % 40 as amount from range(900) r(i)"
    items = "create table order_items as select i % 900 as order_id, i % 7 as product_id from range(2000) r(i)"
    policy, text = proposed(
        tmp_path, orders, items, "create table products as select i as product_id from range(7) r(i)"
    )
    assert policy.tables["orders"].key == ("order_id",)
    assert policy.tables["order_items"].belongs_to == {"order_id": "orders.order_id"}
    assert "guessed from names and values" in text
    assert "does order_items tell nothing" not in text
    assert "does products tell nothing of people?" in text


def test_each_role_says_what_it_allows(tmp_path: Path) -> None:
    """It is what the planner answers and refuses."""
    odd = PEOPLE.replace("i % 7 + 0.5 as mood", "sqrt(i) as odd")
    _, policy, text = written(tmp_path, odd, VISITS)
    entries = [line.strip() for line in text.splitlines()]
    for entry, says in (
        (
            "artifacts: [shop_id, rating, spend]",
            "DECIDE: may people be chosen by these? They stand in conditions (WHERE, FILTER, CASE) and make groups",
        ),
        (
            "measures: [odd]",
            "DECIDE: may these be summed up (SUM, AVG, STDDEV)? They stand in no condition, and groups",
        ),
        ("coarsened: {joined: month}", "DECIDE: read from the data: by the month there are people enough. May these"),
    ):
        assert any(line.startswith(f"# {says}") for line in entries[: entries.index(entry)][-4:]), entry
    with duckdb.connect(tmp_path / "data.duckdb", read_only=True) as con:
        catalog = catalog_of(con, policy)
    answered = (
        "SELECT rating, COUNT(*), SUM(rating), AVG(spend), STDDEV(spend) FROM visits WHERE rating >= 4 GROUP BY rating",
        "SELECT city, SUM(age), AVG(odd) FROM people WHERE age > 30 AND city <> 'c1' GROUP BY city",
        "SELECT DATE_TRUNC('year', joined), COUNT(*) FROM people GROUP BY 1",
        "SELECT city, MIN(joined), MAX(odd) FROM people GROUP BY ROLLUP (city)",
    )
    refused = (
        "SELECT COUNT(*) FROM people WHERE odd > 3",
        "SELECT odd, COUNT(*) FROM people GROUP BY odd",
        "SELECT SUM(city) FROM people",
        "SELECT COUNT(*) FROM people WHERE joined > DATE '2024-03-01'",
        "SELECT MIN(city) FROM people",
    )
    for sql in answered:
        plan(sql, catalog)
    for sql in refused:
        with pytest.raises(Refused):
            plan(sql, catalog)


def test_every_hidden_column_has_a_reason(tmp_path: Path) -> None:
    columns = {
        "birth": ("1940 + i % 60", "when somebody was born tells who it is, with little else"),
        "x": ("i % 900", "what its numbers are could not be guessed. List it under measures"),
        "labels": ("'r' || i", "it has too many different values to show groups by"),
        "free_text": ("'t' || i % 3", "free text may hold anything"),
        "home_street": ("'s' || i % 3", "its name has the word street in it"),
        "school_id": ("i % 7", "an id, of whom or what could not be guessed"),
        "tags": ("[i]", "values of its type (BIGINT[]) are not told apart"),
        "empty": ("null::varchar", "it has no values"),
        "paid_at": ("1700000000 + i", "it looks like a time in seconds since 1970"),
    }
    listed = ", ".join(f'{sql} as "{name}"' for name, (sql, _) in columns.items())
    policy, text = proposed(tmp_path, f"create table people as select i as user_id, {listed} from range(900) r(i)")
    assert {*policy.tables["people"].hidden} == {*columns}
    for name, (_, why) in columns.items():
        assert f"# {name}: {why}" in text, name


def test_a_column_that_repeats_another_one_of_its_table_is_hidden(tmp_path: Path) -> None:
    again = f"{VISITS}; alter table visits add column stars integer; update visits set stars = rating"
    wide = "create table wide as from (pivot visits on shop_id using first(rating) group by person_id)"
    policy, text = proposed(tmp_path, again, wide)
    assert policy.tables["visits"].artifacts == ("shop_id", "rating", "spend")
    assert policy.tables["visits"].hidden == ("stars",)
    assert "# stars: it repeats rating: each row has the same value in both" in text
    assert policy.tables["wide"].pivot_of is not None


def test_columns_that_differ_in_one_row_are_both_shown(tmp_path: Path) -> None:
    again = f"{VISITS}; alter table visits add column stars integer; update visits set stars = rating"
    policy, _ = proposed(tmp_path, again, "update visits set stars = 7 where rowid = 11")
    assert policy.tables["visits"].artifacts == ("shop_id", "rating", "spend", "stars")


def test_an_id_that_is_one_persons_is_hidden(tmp_path: Path) -> None:
    lines = (
        "create table lines as select i % 900 % 90 as customer_id, i % 900 as order_id, i % 7 as product_id "
        "from range(2000) r(i)"
    )
    policy, text = proposed(tmp_path, lines)
    assert policy.tables["lines"].artifacts == ("product_id",)
    assert "# order_id: each of its values is of one person" in text


# Questions to begin with

RATED = (
    "create table rated as select u as user_id, i as item_id, 1 + (u * 3 + i) % 5 as rating, 880000000 + u * i as at "
    "from range(900) r(u), range(1, 61) t(i) where (u * 7 + i * 11) % 60 < 10 + u % 40"
)
CUSTOMERS = (
    "create table customers as select i as customer_id, 'n' || i as name, ['Ulm', 'Graz'][1 + i % 2] as \"group\", "
    "18 + i % 50 as age, date '2020-01-01' + i::integer as since from range(2000) r(i)"
)
ORDERS = (
    "create table orders as select i as order_id, i * 7919 % 2000 as customer_id, (i % 200)::decimal(10, 2) as amount, "
    "i % 3 = 0 as gift, timestamp '2022-01-01' + interval (i % 700) day as ordered_at from range(9000) r(i)"
)


def test_every_example_about_a_lone_long_table_is_answered(tmp_path: Path) -> None:
    _, policy, text = written(tmp_path, RATED)
    (table,) = policy.tables.values()
    assert (table.unique, table.hidden, table.bounds) == ("item_id", ("at",), {"rating": (1, 5)})
    assert table.rows_per_person == 50
    asked = examples(text)
    for part in ("COUNT(DISTINCT user_id)", "item_id, AVG(rating)", "rating, COUNT(*)", "CASE WHEN n < "):
        assert any(part in question for question in asked), part
    guard = Guard(policy, tmp_path, noise=noise())
    answers = {question: guard.query(question) for question in asked}
    (people,) = [answer for question, answer in answers.items() if "COUNT(DISTINCT" in question]
    assert people["people"][0].as_py() == pytest.approx(900, abs=50)
    (activity,) = [answer for question, answer in answers.items() if "CASE" in question]
    assert sum(activity["people"].to_pylist()) == pytest.approx(900, abs=100)


def test_every_example_about_several_tables_is_answered(tmp_path: Path) -> None:
    """One column has the name of a word of SQL."""
    _, policy, text = written(tmp_path, CUSTOMERS, ORDERS)
    asked = examples(text)
    for part in ('SELECT "group", COUNT(*)', "AVG(age)", "gift, AVG(amount)", "JOIN customers", "CASE WHEN n < "):
        assert any(part in question for question in asked), part
    guard = Guard(policy, tmp_path, noise=noise())
    for question in asked:
        assert guard.query(question).num_rows >= 1, question


@pytest.mark.parametrize("tables", ["ratings", "ratings, users and the films most rated"])
def test_every_example_about_movielens_is_answered(tmp_path: Path, data_dir: Path, tables: str) -> None:
    folder = data_dir / "ml-100k"
    rows = f"read_csv('{folder / 'u.data'}', delim = '\t', header = false)"
    made = [f"create table ratings(user_id, item_id, rating, timestamp) as from {rows}"]
    if "users" in tables:
        people = f"read_csv('{folder / 'u.user'}', delim = '|', header = false)"
        made.append(f"create table users(user_id, age, gender, occupation, zip) as from {people}")
        most = "select item_id from ratings group by 1 order by count(*) desc, 1 limit 10"
        rated = f"(select user_id, 'film_' || item_id as film, rating from ratings where item_id in ({most}))"
        made.append(f"create table films as from (pivot {rated} on film using first(rating) group by user_id)")
    _, policy, text = written(tmp_path, *made)
    assert policy.tables["ratings"].hidden == ("timestamp",)
    assert (policy.tables["ratings"].unique, policy.tables["ratings"].rows_per_person) == ("item_id", 200)
    asked = examples(text)
    assert len(asked) == (4 if tables == "ratings" else 12)
    guard = Guard(policy, tmp_path, noise=noise())
    answers = {question: guard.query(question) for question in asked}
    (stars,) = [answer for question, answer in answers.items() if "SELECT item_id" in question]
    assert stars.num_rows > (90 if tables == "ratings" else 20)  # of less budget
    if "users" in tables:
        assert len(policy.tables["films"].bounds) == 10
        assert set(policy.tables["films"].bounds.values()) == {(1, 5)}
        assert "doctor" not in policy.tables["users"].values["occupation"], "there are seven"


def test_every_example_about_a_million_ratings_is_answered(tmp_path: Path, data_dir: Path) -> None:
    """All rows of three of four people count in full, and the number of all is right."""
    rows = f"read_csv('{data_dir / 'ml-1m' / 'ratings.csv'}')"
    _, policy, text = written(tmp_path, f"create table ratings(user_id, movie_id, rating) as from {rows}")
    assert policy.tables["ratings"].rows_per_person == 500
    guard = Guard(policy, tmp_path, noise=noise())
    answers = {question: guard.query(question) for question in examples(text)}
    assert len(answers) == 4
    (films,) = [answer for question, answer in answers.items() if "SELECT movie_id" in question]
    assert films.num_rows > 900
    counted = guard.query("SELECT COUNT(*) AS n FROM ratings")["n"][0].as_py()
    assert counted == pytest.approx(1_000_209, rel=0.03)


def test_where_too_few_people_are_there_are_no_examples(tmp_path: Path) -> None:
    """What they ask would be refused."""
    done, _, text = written(tmp_path, f"{MONEY} from range(20) r(i)")
    assert examples(text) == []
    assert "That is little." in done.buys[-1]


def test_what_the_budget_buys_is_said_for_about_as_many_people(tmp_path: Path) -> None:
    done, _, text = written(tmp_path, RATED.replace("900", "873"))
    told = "\n".join(done.buys)
    assert "With about 900 people" in told
    assert "873" not in told + text


def test_what_the_budget_buys_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = database(tmp_path, RATED)
    command(Path("guard"), file, out=tmp_path / "guard.yml")
    told = capsys.readouterr().out
    assert "The budget is epsilon 8 at delta 1e-06" in told
    assert "With about 900 people" in told
    assert "guard.yml is a policy made of guesses" in told


# What is odd


def test_odd_names_are_written_so_that_they_are_read(tmp_path: Path) -> None:
    odd = ["yes", "null", "1", "a b", "x: y", "#z", "é", 'q"q', "it's", "new\nline", "{c}", "score, two"]
    listed = ", ".join('i % 3 as "' + name.replace('"', '""') + '"' for name in odd)
    policy, _ = proposed(
        tmp_path,
        f'create table "my: table" as select i as user_id, {listed} from range(40) r(i)',
        'create table "# public\nversion: 2" as select 1 as one',
        "create table kg_own as select 1 as user_id",
    )
    table = policy.tables["my: table"]
    assert {name for name, _ in table.roles()} == {"user_id", *odd}
    assert list(policy.tables) == ["my: table"]
    assert policy.joins == ()


ODD = {
    "no rows": "create table people (user_id integer, age integer, score double)",
    "no units": "create table people as select null::integer as user_id, 1 as age from range(5)",
    "one": "create table people as select 1 as user_id, 1 as age",
    "types": "create table people as select i as user_id, [i] as l, {'a': i} as s, uuid() as u, timetz '12:00:00' as t"
    " from range(9) r(i)",
    "not finite": "create table people as select i as user_id, 'nan'::double as age, 'infinity'::double as score"
    " from range(9) r(i)",
    "infinite date": "create table people as select i as user_id, date 'infinity' as joined from range(9) r(i)",
    "view": "create view people as select i as user_id, i % 4 as rating from range(90) r(i)",
    "text unit": "create table people as select i::varchar as user_id, i % 4 as rating from range(90) r(i)",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_tables(tmp_path: Path, name: str) -> None:
    file = database(tmp_path, ODD[name])
    write_policy(file, tmp_path / "guard.yml")
    assert load_policy(tmp_path / "guard.yml").tables["people"].privacy_unit == "user_id"


def test_units_of_two_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.user_id and b\.user_id are of different types"):
        proposed(
            tmp_path,
            "create table a as select i as user_id, i % 50 as age from range(90) r(i)",
            "create table b as select i::varchar as user_id, i % 50 as age from range(90) r(i)",
        )


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(names, min_size=1, max_size=4, unique_by=str.casefold), names)
def test_any_names_make_a_policy(tmp_path_factory: pytest.TempPathFactory, columns: list[str], table: str) -> None:
    quoted = ['"' + name.replace('"', '""') + '"' for name in (*columns, table)]
    listed = ", ".join(f"i % {number + 2} as {name}" for number, name in enumerate(quoted[:-1]))
    folder = tmp_path_factory.mktemp("names")
    statement = f"create table {quoted[-1]} as select i as the_user_id, {listed} from range(30) r(i)"
    if table.lower().startswith("kg_") or any(name.lower() == "the_user_id" for name in columns):
        return
    policy, _ = proposed(folder, statement, unit="the_user_id")
    assert {name for of in policy.tables.values() for name, _ in of.roles()} == {"the_user_id", *columns}
