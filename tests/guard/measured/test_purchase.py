"""What a budget buys, as sentences: their numbers are those of the prices, and the number of people is rough."""

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

from kgather._guard.catalog import Catalog, catalog_of
from kgather._guard.guard import Guard
from kgather._guard.measured.engine import MeasuredEngine
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.purchase import least_people, measured_people, purchase
from kgather._guard.measured.shares import prices
from kgather._guard.policy import Policy, parse_policy

PEOPLE = """
version: 1
database: data.duckdb
k: 10
budget: {epsilon: 8, delta: 1.0e-6}
tables:
  people:
    privacy_unit: user_id
    grain: unit
    dimensions: [city, job]
    values: {city: [a, b, c], job: [x, y]}
principals: {analyst: {}}
"""
VISITS = """  visits:
    privacy_unit: user_id
    grain: rows
    rows_per_person: 20
    artifacts: [shop]
    values: {shop: [1, 2, 3]}
principals:"""
TWO = PEOPLE.replace("principals:", VISITS)
DATA = (
    "create table people as select i as user_id, ['a', 'b', 'c'][1 + i % 3] as city, ['x', 'y'][1 + i % 2] as job "
    "from range(873) r(i)",
    "create table visits as select i as user_id, 1 + i % 3 as shop from range(873) r(i), range(4)",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "data.duckdb") as con:
        for statement in DATA:
            con.execute(statement)
    return tmp_path


def catalog(policy: Policy) -> Catalog:
    with duckdb.connect() as con:
        for statement in DATA:
            con.execute(statement)
        return catalog_of(con, policy)


def bought(text: str, people: float | None = None) -> str:
    of = catalog(parse_policy(text))
    return "\n".join(purchase(of, prices(of), people))


def guard(folder: Path, text: str = PEOPLE, *, seed: int = 1) -> Guard:
    rng = np.random.default_rng(seed)
    return Guard(parse_policy(text), folder, noise=lambda n, sd: np.rint(rng.normal(size=n) * sd).astype(np.int64))


def measured(guarded: Guard) -> list[Measurement]:
    assert isinstance(guarded.engine, MeasuredEngine)
    return guarded.engine.ledger.measurements()


def test_the_noise_that_is_told_is_the_noise_that_is_drawn(folder: Path) -> None:
    """A count by two columns, and one by a column, have the standard errors that were said."""
    told = bought(PEOPLE)
    guarded = guard(folder)
    guarded.query("SELECT city, COUNT(*) FROM people GROUP BY city")
    guarded.query("SELECT city, job, COUNT(*) FROM people GROUP BY city, job")
    drawn = {len(one.domains): one.sd for one in measured(guarded)}
    for columns, words in ((1, "one column"), (2, "two columns")):
        found = re.search(rf"of {words} at a standard error of ([0-9.]+) people", told)
        assert found is not None
        assert float(found[1]) == pytest.approx(drawn[columns], rel=0.06), words


def test_the_number_of_margins_is_that_of_the_columns() -> None:
    told = bought(PEOPLE)
    assert "3 margins of one column" in told  # one more for the number of people
    assert ", 1 margin of two columns" in told
    assert "Rows of" not in told


def test_rows_of_a_long_table() -> None:
    """Their noise is that of as many rows as a person has in full."""
    few, many = (
        re.search(r"Rows of visits, [0-9]+ of a person in full, .* standard error of ([0-9.,]+) rows", bought(text))
        for text in (TWO, TWO.replace("rows_per_person: 20", "rows_per_person: 200"))
    )
    assert few is not None
    assert many is not None
    assert float(many[1].replace(",", "")) == pytest.approx(10 * float(few[1].replace(",", "")), rel=0.06)
    assert "Rows of" not in bought(TWO.replace("    rows_per_person: 20\n", ""))


SALES = """
version: 1
database: data.duckdb
k: 10
budget: {epsilon: 8, delta: 1.0e-6}
tables:
  sales:
    privacy_unit: user_id
    grain: rows
    unique: item
    rows_per_person: 40
    artifacts: [item, stars]
    bounds: {stars: [1, 5]}
  members:
    privacy_unit: user_id
    grain: unit
    dimensions: [town]
principals: {analyst: {}}
"""
SOLD = (
    # Item i has 8 i people, and town i has 2 i: each of a person's items is another one.
    "create table sales as select hash(i, n) % 2000 as user_id, i as item, 1 + n % 5 as stars "
    "from range(1, 41) r(i), range(2000) s(n) where n < 8 * i",
    "create table s as select distinct on (user_id, item) * from sales",
    "drop table sales",
    "alter table s rename to sales",
    "create table members as select i * 100 + n as user_id, 't' || i as town from range(1, 41) r(i), range(80) s(n) "
    "where n < 2 * i",
)


@pytest.mark.parametrize(
    ("words", "sql", "true"),
    [
        (
            r"does not list, of sales\.item, are shown from about ([0-9]+)",
            "SELECT item, COUNT(*) AS n FROM sales GROUP BY item",
            "select item, count(distinct user_id) from sales group by 1",
        ),
        (
            r"or from about ([0-9]+) where means by item are asked for first",
            "SELECT item, AVG(stars) AS m FROM sales GROUP BY item",
            "select item, count(distinct user_id) from sales group by 1",
        ),
        (
            r"does not list, of members\.town, are shown from about ([0-9]+)",
            "SELECT town, COUNT(*) AS n FROM members GROUP BY town",
            "select town, count(*) from members group by 1",
        ),
    ],
)
def test_values_that_are_not_listed_are_shown_from_so_many_people_on(
    tmp_path: Path, words: str, sql: str, true: str
) -> None:
    """Near the number that is told a value is shown about half of the time; further off always, or never."""
    with duckdb.connect(tmp_path / "data.duckdb") as con:
        for statement in SOLD:
            con.execute(statement)
        people = dict(con.execute(true).fetchall())
        policy = parse_policy(SALES)
        of = catalog_of(con, policy)
    said = re.search(words, "\n".join(purchase(of, prices(of))))
    assert said is not None
    least = float(said[1])
    assert min(people.values()) < 0.6 * least
    assert max(people.values()) > 1.5 * least
    shown: dict[object, int] = dict.fromkeys(people, 0)
    runs = 12
    for seed in range(runs):
        (tmp_path / "ledger.sqlite").unlink(missing_ok=True)
        for row in guard(tmp_path, SALES, seed=seed).query(sql).to_pylist():
            shown[row.get("item", row.get("town"))] += 1
    for value, number in people.items():
        if number < 0.55 * least:
            assert shown[value] == 0, (value, number, least)
        if number > 1.6 * least:
            assert shown[value] == runs, (value, number, least)
    near = [shown[value] / runs for value, number in people.items() if 0.85 * least < number < 1.15 * least]
    assert near
    assert 0.2 < sum(near) / len(near) < 0.8


def test_what_is_not_listed_is_told_of_each_table() -> None:
    assert "that the policy does not list" not in bought(TWO)
    unlisted = bought(TWO.replace("    values: {shop: [1, 2, 3]}\n", "    unique: shop\n"))
    assert "Values that the policy does not list, of visits.shop, are shown from about" in unlisted
    unknown = bought(
        TWO.replace("    values: {shop: [1, 2, 3]}\n", "    unique: shop\n").replace("    rows_per_person: 20\n", "")
    )
    assert "from so many people on as their rows allow: rows_per_person is not declared." in unknown
    cities = bought(PEOPLE.replace("city: [a, b, c], ", ""))
    assert "Values that the policy does not list, of people.city, are shown from about" in cities


def test_a_group_of_rows_is_shown_from_so_many_rows_on(folder: Path) -> None:
    """One of half as many rows is hardly ever shown, one of twice as many nearly always."""
    found = re.search(r"a group of rows is shown from about ([0-9,]+) rows on", bought(TWO))
    assert found is not None
    least = float(found[1].replace(",", ""))
    with duckdb.connect(folder / "data.duckdb") as con:
        con.execute("drop table visits")
        con.execute(
            f"create table visits as select i % 800 as user_id, case when i < {least * 2} then 1 else 2 end as shop "
            f"from range({int(least * 2.5)}) r(i)"
        )
    shops: list[int] = []
    for seed in range(6):
        (folder / "ledger.sqlite").unlink(missing_ok=True)
        rows = guard(folder, TWO, seed=seed).query("SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop").to_pylist()
        shops += [row["shop"] for row in rows]
    assert shops.count(1) >= 5
    assert shops.count(2) <= 1


def test_more_budget_buys_more() -> None:
    of, richer = (catalog(parse_policy(text)) for text in (TWO, TWO.replace("epsilon: 8", "epsilon: 80")))
    assert least_people(richer, prices(richer)) < 0.7 * least_people(of, prices(of))


def test_the_number_of_people_is_left_out_or_rough() -> None:
    assert "With about" not in bought(PEOPLE)
    assert "With about 900 people" in bought(PEOPLE, 873)
    assert "873" not in bought(PEOPLE, 873)
    assert bought(PEOPLE, 873) == bought(PEOPLE, 931)
    assert "With about 40,000 people" in bought(PEOPLE, 41_236)
    assert "With about 1 people" in bought(PEOPLE, 0)


@pytest.mark.parametrize(("people", "little"), [(40, True), (250, True), (3_000, False), (100_000, False)])
def test_a_budget_for_few_people_is_little_and_that_is_said(people: int, little: bool) -> None:
    told = bought(TWO, people)
    assert ("That is little." in told) == little


def test_without_two_columns_there_are_no_margins_of_two() -> None:
    told = bought(PEOPLE.replace("[city, job]", "[city]").replace(", job: [x, y]", ""), 900)
    assert "two columns at a standard error" not in told
    assert "2 margins of one column" in told


# The number of people at opening


def test_people_are_known_when_they_were_counted(folder: Path) -> None:
    guarded = guard(folder)
    assert measured_people(measured(guarded)) is None
    guarded.query("SELECT COUNT(*) FROM people")
    known = measured_people(measured(guarded))
    assert known is not None
    assert known != 873
    assert known == pytest.approx(873, abs=30)


def test_counts_of_people_by_something_tell_how_many_there_are(folder: Path) -> None:
    guarded = guard(folder)
    guarded.query("SELECT city, COUNT(*) FROM people GROUP BY city")
    assert measured_people(measured(guarded)) == pytest.approx(873, abs=40)


def test_counts_of_rows_do_not(folder: Path) -> None:
    guarded = guard(folder, TWO)
    guarded.query("SELECT shop, COUNT(*) FROM visits GROUP BY shop")
    known = measured(guarded)
    assert any(one.about.get("rows") for one in known)
    assert measured_people([one for one in known if one.about.get("rows")]) is None


def test_people_are_those_of_the_last_version_that_was_counted(folder: Path) -> None:
    guarded = guard(folder)
    guarded.query("SELECT COUNT(*) FROM people")
    (first,) = measured(guarded)
    later = Measurement(
        first.kind,
        first.name,
        first.rho,
        first.delta,
        first.sd,
        first.domains,
        first.numbers * 2,
        first.about,
        version=2,
    )
    known = measured_people([first, later])
    assert known == pytest.approx(2 * float(first.numbers))


def test_a_number_that_noise_hides_is_not_told(folder: Path) -> None:
    guarded = guard(folder)
    guarded.query("SELECT COUNT(*) FROM people")
    (first,) = measured(guarded)
    none = Measurement(
        first.kind, first.name, first.rho, first.delta, first.sd, first.domains, first.numbers * 0 + 1, first.about
    )
    assert measured_people([none]) is None


def test_fine_numbers_take_no_share_of_the_pairs() -> None:
    """People are chosen by a salary in conditions, one at a time: it costs one pair more, and not one with each column;
    and its means have a pool of their own, as those of measures do."""
    with duckdb.connect() as con:
        con.execute(
            "create table people as select i as user_id, 'a' as city, 'x' as job, 'p' as plan,"
            " i * 1.5::double as salary, i % 60 as age from range(9) r(i)"
        )

        def of(entries: str) -> dict[str, float]:
            text = PEOPLE.replace("dimensions: [city, job]", entries).replace("[x, y]}", "[x, y], plan: [p]}")
            found = prices(catalog_of(con, parse_policy(text)))
            assert sum(found.pools.values()) + found.reserve == pytest.approx(found.total)
            return {kind: price / found.total for kind, price in found.of.items()}

        three = of("artifacts: [city, job, plan]")
        measured = of("artifacts: [city, job, plan]\n    measures: [salary]\n    bounds: {salary: [0, 100000]}")
        chosen = of("artifacts: [city, job, plan, salary]\n    bounds: {salary: [0, 100000]}")
        aged = of("artifacts: [city, job, plan, age]\n    bounds: {age: [0, 100]}")
    assert "sums" not in three
    assert chosen["sums"] == pytest.approx(measured["sums"], rel=0.01)
    assert chosen["pairs"] == pytest.approx(measured["pairs"] * 3 / 4, rel=0.01)
    assert aged["pairs"] == pytest.approx(measured["pairs"] * 3 / 6, rel=0.01)
    assert aged["sums"] < chosen["sums"]
