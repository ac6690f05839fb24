"""What is read moves by no more than the noise is for when one person is taken out, whatever the rows hold."""

from pathlib import Path
from unittest.mock import patch

import duckdb
import numpy as np
import pytest
import wild
from sensitivity import moves, recorded, without
from worlds_of_people import (
    GENEROUS,
    engine_of,
    guarded,
    policy_of_raters,
    raters,
    rows_of,
    silent,
)

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.measured.coding import FINE, Bounds
from kgather._guard.measured.domain import Domain
from kgather._guard.measured.features import Feature
from kgather._guard.measured.reading import CELLS_A_PERSON, GRANULES, OfRows, Reading, reach_of
from kgather._guard.measured.shares import Offer, Prices
from kgather._guard.plan import Bound, Literal, Op
from kgather._guard.refused import Refused


def _always(self: Prices, pool: str, price: float | None, before: object, most: float) -> Offer:
    """A budget that pays for everything."""
    del before, most
    return Offer(pool, price or self.of.get(pool, self.fresh))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nobody_moves_a_measurement_by_more_than_its_reach(tmp_path: Path, seed: int) -> None:
    """Random questions over tables of strange values, of which each measurement is taken again without one person."""
    guard = guarded(tmp_path, wild.tables(seed), wild.POLICY, silent)
    with recorded() as wanted, patch.object(Prices, "offer", _always):
        for sql in wild.questions(seed, 12):
            try:
                guard.query(sql)
            except Refused:
                continue
    known = list({one.name: one for one in wanted}.values())
    assert len(known) > 10
    for person in (wild.MANY, wild.STRANGE):
        other = without(guard_path(guard), tmp_path / f"without{person}.duckdb", person, wild.UNITS)
        for one, moved, reach in moves(guard, known, other):
            assert moved <= reach, (one.name, person, moved, reach)


def guard_path(guard: Guard) -> Path:
    return engine_of(guard).database.path


def test_the_check_condemns_a_reach_that_is_too_small(tmp_path: Path) -> None:
    guard = guarded(tmp_path, wild.tables(1), wild.POLICY, silent)
    with recorded() as wanted:
        rows_of(guard, "SELECT place, COUNT(*) FROM visits GROUP BY place")
    other = without(guard_path(guard), tmp_path / "other.duckdb", wild.MANY, wild.UNITS)
    found = [moved / reach for _, moved, reach in moves(guard, wanted, other)]
    assert max(found) > 0.5


# What one person's rows may hold

LONG = """version: 1
database: db.duckdb
k: 2
budget: {epsilon: 1.0e+6, delta: 1.0e-6}
tables:
  visits:
    privacy_unit: who
    grain: rows
    artifacts: [place, spent]
    rows_per_person: 2
principals:
  a: {}
"""


def _of_one(tmp_path: Path, rows: str, count: int = 1) -> Guard:
    """A guard over the rows of one person."""
    tables = {"visits": f"select 1 as who, {rows} from range({count}) t(i)"}
    return guarded(tmp_path, tables, LONG, silent)


def _feature(column: str = "place") -> Feature:
    return Feature(Bound("visits", column, "integer" if column == "place" else "number"))


@pytest.mark.parametrize("count", [1, 2, 3, 5_000])
def test_thousands_of_rows_count_as_many_as_the_policy_says(tmp_path: Path, count: int) -> None:
    guard = _of_one(tmp_path, "i as place, 1e300 as spent", count)
    domain = Domain(tuple(str(at) for at in range(5_000)), "BIGINT", null=True, other=True, absent=False)
    with engine_of(guard).database.reading() as reading:
        found = reading.count("visits", [_feature()], [domain], reach_of(2, distinct=True))
        assert np.sqrt(np.sum((found / GRANULES) ** 2)) <= np.sqrt(2)
        found = reading.count("visits", [], [], 2.0)
        assert found == min(count, 2) * GRANULES
        found = reading.count("visits", [_feature()], [domain], 2.0, people=True)
        assert np.sqrt(np.sum((found / GRANULES) ** 2)) <= 2.0
        sums = reading.sums("visits", [], [], _feature("spent"), Bounds(-1.0, 1.0), 2.0, FINE)
        assert np.all(np.abs(sums) <= 2 * FINE)


def test_one_person_speaks_for_so_many_values_at_most(tmp_path: Path) -> None:
    tables = {"visits": "select 1 + i // 5000 as who, i % 5000 as place, 0.5 as spent from range(10000) t(i)"}
    guard = guarded(tmp_path, tables, LONG, silent)
    with engine_of(guard).database.reading() as reading:
        found = reading.values("visits", _feature(), reach_of(2, distinct=True))
        assert np.sum(found.counts > 0) <= CELLS_A_PERSON
        assert np.sqrt(np.sum((found.counts / GRANULES) ** 2)) <= 2 * np.sqrt(2)


def test_values_of_one_person_are_not_looked_at(tmp_path: Path) -> None:
    guard = _of_one(tmp_path, "7 as place, 0.5 as spent")
    with engine_of(guard).database.reading() as reading:
        assert reading.values("visits", _feature(), 1.0).values == ()


NUMBERS = ["nan", "-nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "0.0", "-0.0"]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 1e308), (-1e-300, 1e-300), (5.0, 6.0)])
def test_a_sum_is_within_the_bounds_of_its_value(tmp_path: Path, number: str, bounds: tuple[float, float]) -> None:
    guard = _of_one(tmp_path, f"1 as place, cast('{number}' as double) as spent")
    with engine_of(guard).database.reading() as reading:
        found = reading.sums("visits", [], [], _feature("spent"), Bounds(*bounds), 2.0, FINE)
        assert np.all(np.abs(found) <= FINE)
        assert found[..., 1] == (FINE if np.isfinite(float(number)) else 0)
        assert reading.magnitudes("visits", _feature("spent"), 2.0).sum() <= GRANULES


@pytest.mark.parametrize("bounds", [(0.0, 9.0), (-2.5, 6.25), (3.0, 3.0), (-1e6, 1e6)])
def test_equal_numbers_add_up_as_each_by_itself(tmp_path: Path, bounds: tuple[float, float]) -> None:
    """Whole numbers are put together before anything is computed with them: beyond the bounds, missing, and of people
    who have no row, as well."""
    numbers = "case i % 9 when 7 then null when 8 then 9000000000000000000 - i else i % 23 - 11 end"
    tables = {
        "people": f"select i as who, i % 3 as kind, {numbers} as score from range(500) t(i)",
        "others": "select i as who, 1 as more from range(400, 700) t(i)",
    }
    policy = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  people: {{privacy_unit: who, grain: unit, artifacts: [kind, score]}}
  others: {{privacy_unit: who, grain: unit, artifacts: [more]}}
joins: [people.who = others.who]
principals: {{a: {{}}}}
"""
    guard = guarded(tmp_path, tables, policy, silent)
    kind = Feature(Bound("people", "kind", "integer"), table="people")
    domain = Domain(("0", "1", "2"), "BIGINT", null=True, other=True, absent=True)
    with engine_of(guard).database.reading() as reading:
        together, apart = (
            reading.sums(
                None,
                [kind],
                [domain],
                Feature(Bound("people", "score", of), table="people"),
                Bounds(*bounds),
                1.0,
                FINE,
            )
            for of in ("integer", "number")
        )
    assert np.array_equal(together, apart)
    assert together[..., 1].sum() == FINE * sum(at % 9 != 7 for at in range(500))


# What looks at single people, though no noise was added


def test_the_type_of_a_key_does_not_say_whether_somebody_has_it(tmp_path: Path) -> None:
    """A value that is looked for is of the type of its expression, of two people as of none."""
    people = raters(60, 2, 1)
    people["score"] = 1.5
    people["f0"] = 1
    types = set()
    for count in (0, 1, 2, 3):
        folder = tmp_path / str(count)
        folder.mkdir()
        people["f1"] = np.where(np.arange(60) < count, 5, 1)
        policy = policy_of_raters(2, budget=GENEROUS).replace("artifacts: [", "artifacts: [score, ")
        guard = guarded(folder, {"people": people}, policy, silent)
        answer = guard.query("SELECT CASE WHEN f1 = 5 THEN score / 2 END AS g, COUNT(*) AS n FROM people GROUP BY 1")
        types.add(str(answer.schema.field("g").type))
        (found,) = [one for one in engine_of(guard).ledger.measurements() if one.kind == "keys"]
        types.add({"DOUBLE": "double"}[found.domains[0].type])
    assert types == {"double"}


@pytest.mark.parametrize("first", [0, 1])
def test_how_equal_values_are_written_is_not_up_to_one_person(tmp_path: Path, first: int) -> None:
    """0.0 and -0.0 are one value, and so are two texts under a collation; whose row comes first says nothing."""
    numbers, texts = ("-0.0", "0.0")[:: 1 - 2 * first], ("graz", "Graz")[:: 1 - 2 * first]
    with duckdb.connect(tmp_path / "db.duckdb") as con:
        con.execute("create table people (user_id integer, f0 integer, score double, town varchar collate nocase)")
        con.execute(
            f"insert into people select i, 1, case when i = 0 then {numbers[0]}::double else {numbers[1]}::double end, "
            f"case when i = 0 then '{texts[0]}' else '{texts[1]}' end from range(50) t(i)"
        )
    policy = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  people: {{privacy_unit: user_id, artifacts: [score], dimensions: [town]}}
principals: {{a: {{}}}}
"""
    guard = guarded(tmp_path, None, policy, silent)
    assert [
        str(row["score"]) for row in rows_of(guard, "SELECT score, COUNT(*) AS n FROM people GROUP BY 1") or []
    ] == ["0.0"]
    rows = rows_of(guard, "SELECT town, COUNT(*) AS n FROM people GROUP BY 1") or []
    assert [(row["town"], row["n"]) for row in rows] == [(texts[1], 49)]


@pytest.mark.parametrize(
    "day", ["infinity", "-infinity", "5881580-07-10", "5877642-06-25 (BC)", "0001-01-01", "2024-02-01"]
)
@pytest.mark.parametrize("cut", ["week", "month", "century"])
def test_one_strange_date_makes_no_error(tmp_path: Path, day: str, cut: str) -> None:
    tables = {
        "people": f"select i as user_id, case when i = 7 then date '{day}' else date '2024-03-05' end as joined "
        "from range(30) t(i)"
    }
    policy = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  people: {{privacy_unit: user_id, coarsened: {{joined: {cut}}}}}
principals: {{a: {{}}}}
"""
    guard = guarded(tmp_path, tables, policy, silent)
    rows = rows_of(guard, f"SELECT DATE_TRUNC('{cut}', joined) AS d, COUNT(*) AS n FROM people GROUP BY 1")
    assert rows is not None
    assert sum(row["n"] for row in rows) in (29, 30)


@pytest.mark.parametrize("value", ["-5", "3", "340282366920938463463374607431768211455"])
def test_one_huge_number_makes_no_error(tmp_path: Path, value: str) -> None:
    kind = "hugeint" if value.startswith("-") else "uhugeint"
    tables = {
        "people": f"select i as user_id, case when i = 7 then {value}::{kind} else 4::{kind} end as x, i % 3 as f0 "
        "from range(60) t(i)"
    }
    policy = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  people: {{privacy_unit: user_id, artifacts: [x, f0]}}
principals: {{a: {{}}}}
"""
    guard = guarded(tmp_path, tables, policy, silent)
    for condition in ("x > -1 AND f0 >= 0", "COALESCE(x, f0) > -1", "GREATEST(x, f0) > -9", "x = f0 OR x > 0"):
        assert rows_of(guard, f"SELECT COUNT(*) AS n FROM people WHERE {condition}") is not None, condition


# What the owner is told of when the data are not as the policy says

PUBLIC = """version: 1
database: db.duckdb
k: 2
tables:
  people: {privacy_unit: user_id, artifacts: [f0], dimensions: [region]}
  regions: {public: true}
joins:
  - people.region = regions.region
principals: {a: {}}
"""


def test_a_public_table_with_a_key_twice_is_not_joined(tmp_path: Path) -> None:
    tables = {
        "people": "select i as user_id, i % 2 as f0, 'r' || (i % 2) as region from range(30) t(i)",
        "regions": "select 'r0' as region, 'cold' as climate union all select 'r0', 'warm'",
    }
    with pytest.raises(InputError, match="more than once"):
        guarded(tmp_path, tables, PUBLIC, silent).query(
            "SELECT r.climate, COUNT(*) FROM people p JOIN regions r ON p.region = r.region GROUP BY 1"
        )


def test_units_of_different_types_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    tables = {
        "people": "select i as user_id, i % 2 as f0 from range(30) t(i)",
        "devices": "select 'x' || i as owner, i % 2 as os from range(30) t(i)",
    }
    policy = """version: 1
database: db.duckdb
k: 2
tables:
  people: {privacy_unit: user_id, artifacts: [f0]}
  devices: {privacy_unit: owner, artifacts: [os]}
principals: {a: {}}
"""
    with pytest.raises(InputError, match="different types"):
        guarded(tmp_path, tables, policy, silent)


def test_values_that_are_listed_twice_count_nobody_twice(tmp_path: Path) -> None:
    people = raters(50, 1, 1, missing=0.0)
    people["exact"] = 1.5
    policy = policy_of_raters(1, budget=GENEROUS)
    policy = policy.replace("artifacts: [", "artifacts: [exact, ").replace(
        "values: {", 'values: {exact: [1.5, "1.50", "01.5"], '
    )
    guard = guarded(tmp_path, {"people": people}, policy, silent)
    assert rows_of(guard, "SELECT exact, COUNT(*) AS n FROM people GROUP BY 1") == [{"exact": 1.5, "n": 50}]
    (found,) = [one for one in engine_of(guard).ledger.measurements() if one.kind == "counts"]
    assert found.numbers.sum() == 50


def test_only_shown_columns_are_there(tmp_path: Path) -> None:
    guard = guarded(
        tmp_path, wild.tables(1), wild.POLICY.replace("dimensions: [city, region]", "dimensions: [region]"), silent
    )
    with pytest.raises(InputError, match="cannot be read"), engine_of(guard).database.reading() as reading:
        reading.con.execute("select city from people")
    with engine_of(guard).database.reading() as reading:
        (count,) = reading.con.execute("select count(*) from visits where who is null").fetchone() or (None,)
    assert count == 0


def test_what_is_summed_up_together_is_what_each_is_alone(tmp_path: Path) -> None:
    """Counts, and sums of two arguments, under a condition: read in one pass, with a reach of each one's own."""
    tables = {
        "visits": "select i % 40 as who, i % 7 as place, case when i % 11 > 0 then i % 13 end as spent "
        "from range(2000) t(i)"
    }
    guard = guarded(tmp_path, tables, LONG, silent)
    domain = Domain(tuple(str(at) for at in range(7)), "BIGINT", null=True, other=True, absent=False)
    only = Feature(Op("<", (Bound("visits", "place", "integer"), Literal(5, "integer"))))
    by = ("visits", (_feature(),), (domain,), only)
    several = [
        OfRows(*by, 2.0),
        OfRows(*by, 5.0),
        OfRows(*by, 3.0, _feature("spent"), Bounds(0.0, 12.0), FINE),
        OfRows(*by, 2.0, _feature("place"), Bounds(0.0, 3.0), 7),
        OfRows("visits", (), (), None, 4.0, _feature("spent"), Bounds(2.0, 5.0), FINE),
    ]
    with engine_of(guard).database.reading() as reading:
        alone = [reading._summed_rows([one])[0] for one in several]
        with patch.object(Reading, "_summed_rows", autospec=True, side_effect=Reading._summed_rows) as passes:
            reading.rows_together(several)
            found = [reading._rows(one) for one in several]
        assert passes.call_count == 2, "the last one has other cells"
    for one, together in zip(alone, found, strict=True):
        assert np.array_equal(one, together)
        assert np.any(one)
    assert not np.any(alone[0][5:]), "no row of other places is read"
