"""`init guard`: what a policy proposes for a database, and that what repeats is seen."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from guard_data import POLICY
from guard_files import write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.policy import Policy, load_policy, parse_policy
from kgather._guard.proposal import propose, write_policy


def database(folder: Path, *statements: str) -> Path:
    file = folder / "data.duckdb"
    with duckdb.connect(file) as con:
        for statement in statements:
            con.execute(statement)
    return file


def proposed(folder: Path, *statements: str, **options: Any) -> tuple[Policy, str]:
    text = propose(database(folder, *statements), **options)
    return parse_policy(text), text


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
    for entry in ("privacy_unit", "pivot_of", "artifacts", "measures", "dimensions"):
        assert wide[entry] == wanted[entry]
    assert found["tables"]["ratings"]["artifacts"] == ["item_id", "rating"]
    assert found["tables"]["ratings"]["coarsened"] == {"rated_at": "month"}
    assert found["tables"]["users"]["same_as"] == {"age": "ratings_wide.age"}
    assert "zip" in found["tables"]["users"]["hidden"]
    assert "items" not in found["tables"]
    assert set(known["joins"][:2]) <= {*found["joins"], *(" = ".join(reversed(j.split(" = "))) for j in found["joins"])}


def test_a_policy_that_is_written_opens(tmp_path: Path) -> None:
    file = database(tmp_path, PEOPLE, VISITS, SHOPS)
    left = write_policy(file, tmp_path / "guard.yml")
    text = (tmp_path / "guard.yml").read_text()
    assert left == text.count("# DECIDE:") > 3
    policy = load_policy(tmp_path / "guard.yml")
    assert (policy.k, policy.mode, list(policy.principals)) == (10, "adaptive", ["analyst"])
    assert policy.database == (tmp_path / "data.duckdb").resolve()
    guard = Guard.from_policy(tmp_path / "guard.yml")
    sql = "SELECT rating, COUNT(*) AS n, AVG(spend) AS s FROM visits GROUP BY rating"
    assert guard.query(sql).num_rows == 5
    assert (tmp_path / "audit.jsonl").exists()


def test_roles(tmp_path: Path) -> None:
    policy, text = proposed(tmp_path, PEOPLE, VISITS, SHOPS)
    people, visits = policy.tables["people"], policy.tables["visits"]
    assert (people.privacy_unit, people.grain) == ("person_id", "unit")
    assert (people.measures, people.dimensions, people.coarsened) == (("age",), ("city",), {"joined": "month"})
    assert people.hidden == ("name", "mood")
    assert (visits.privacy_unit, visits.grain, visits.unique) == ("person_id", "rows", "shop_id")
    assert (visits.artifacts, visits.measures, visits.coarsened) == (("shop_id", "rating"), ("spend",), {"at": "month"})
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
    assert "t2" not in policy.tables
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


def test_a_copy_in_each_row_is_hidden(tmp_path: Path) -> None:
    """The visits repeat the city of who came."""
    copy = "create table v2 as select v.*, p.city from visits v join people p using (person_id)"
    policy, text = proposed(tmp_path, PEOPLE, VISITS, copy, "drop table visits")
    assert "city" in policy.tables["v2"].hidden
    assert "# city: it repeats people.city; ask for that by a join" in text


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


def test_units_of_two_types_are_not_joined(tmp_path: Path) -> None:
    policy, _ = proposed(
        tmp_path,
        "create table a as select i as user_id, i % 50 as age from range(90) r(i)",
        "create table b as select i::varchar as user_id, i % 50 as age from range(90) r(i)",
    )
    assert policy.joins == ()
    assert [table.same_as for table in policy.tables.values() if table.same_as] == [{"age": "a.age"}]


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
