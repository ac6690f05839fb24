"""Names of measurements for people are read from their canonical names, whatever was measured."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_guard import change_data, kgather, ledger_of, opened, policy_in

from kgather._guard.canonical import canonical
from kgather._guard.measured.coding import Bounds
from kgather._guard.measured.features import Feature
from kgather._guard.measured.measuring import Wanted
from kgather._guard.measured.model import name_of
from kgather._guard.measured.readable import readable, subject_of
from kgather._guard.plan import TRUE, Bound, Exists, Expr, Literal, Op, PerUnit
from kgather._guard.refused import Refused

CITY, AGE = Bound("people", "city", "text"), Bound("people", "age", "integer")
ITEM, STARS = Bound("ratings", "item", "integer"), Bound("ratings", "stars", "integer")
TWO, FOUR = Literal(2, "integer"), Literal(4, "integer")
GOOD = Op(">=", (STARS, FOUR))
SCORE = Op("measure", (Op("*", (STARS, ITEM), "number"),), "number")
YEAR, GRAZ = Literal("year", "text"), Literal("G%z", "text")
MONTH = Op("date_trunc", (Literal("month", "text"), Bound("ratings", "at", "date")), "timestamp")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Wanted("people", "", ()), "how many people there are"),
        (Wanted("counts", "", (Feature(CITY), Feature(AGE))), "people by people.city and people.age"),
        (Wanted("counts", "ratings", (Feature(STARS),), reach=100.0), "rows of ratings by stars"),
        (Wanted("counts", "ratings", (), reach=100.0), "rows of ratings"),
        (
            Wanted("counts", "ratings", (Feature(STARS), Feature(CITY, table="people")), people=True),
            "people with rows of ratings by stars and people.city",
        ),
        (
            Wanted(
                "counts", "", (Feature(Op("is true", (Op("and", (GOOD, Op("=", (ITEM, TWO)))),)), needs=("ratings",)),)
            ),
            "people by whether ((ratings.stars >= 4) and (ratings.item = 2))",
        ),
        (
            Wanted("counts", "", (Feature(Exists("ratings", GOOD)),)),
            "people by whether (there is a row of ratings where stars >= 4)",
        ),
        (Wanted("counts", "", (Feature(TRUE, table="people"),)), "people by whether there is a row of people"),
        (
            Wanted("counts", "", (Feature(PerUnit("COUNT", "ratings", None, GOOD, "integer")),)),
            "people by number of rows of ratings where stars >= 4",
        ),
        (
            Wanted("sums", "", (Feature(CITY),), argument=Feature(AGE), bounds=Bounds(0.0, 99.5)),
            "sum of people.age between 0 and 99.5 over people by people.city",
        ),
        (
            Wanted("sums", "ratings", (), argument=Feature(STARS), bounds=Bounds(1.0, 5.0), reach=20.0),
            "sum of stars between 1 and 5 over rows of ratings",
        ),
        (Wanted("keys", "", (Feature(CITY, table="people"),)), "the values of people.city"),
        (Wanted("keys", "ratings", (Feature(MONTH),), reach=4.5), "the values of month of at in rows of ratings"),
        (
            Wanted("keyed", "ratings", (Feature(ITEM),), argument=Feature(STARS), bounds=Bounds(1.0, 5.0), reach=4.5),
            "the values of item in rows of ratings, with the sum of stars between 1 and 5 by each",
        ),
        (
            Wanted("magnitudes", "ratings", (), argument=Feature(STARS), reach=4.0),
            "the size of stars in rows of ratings",
        ),
        (
            Wanted("counts", "ratings", (Feature(Op("=", (Op("date_part", (YEAR, MONTH), "integer"), TWO))),)),
            "rows of ratings by whether (year of at = 2)",
        ),
        (
            Wanted("counts", "ratings", (Feature(Op("strftime", (MONTH, Literal("%Y | %m", "text")), "text")),)),
            "rows of ratings by strftime(at, '%Y | %m')",
        ),
        (
            Wanted(
                "counts", "", (Feature(Op("or", (Op("like", (CITY, GRAZ)), Op("not", (Op("ilike", (CITY, GRAZ)),))))),)
            ),
            "people by whether ((people.city like 'G%z') or (not (people.city ilike 'G%z')))",
        ),
        (
            Wanted("counts", "", (Feature(Op("concat", (Op("upper", (CITY,), "text"), GRAZ), "text")),)),
            "people by upper(people.city) || 'G%z'",
        ),
        (
            Wanted("counts", "", (Feature(Op("%", (Op("//", (AGE, FOUR), "integer"), TWO), "number")),)),
            "people by (people.age // 4) % 2",
        ),
        (
            Wanted("sums", "ratings", (), argument=Feature(SCORE), bounds=Bounds(1.0, 5.0), reach=20.0),
            "sum of item * stars between 1 and 5 over rows of ratings",
        ),
        (
            Wanted("counts", "", (Feature(Op(">", (PerUnit("SUM", "ratings", SCORE, TRUE, "number"), FOUR))),)),
            "people by whether ((sum of ratings.item * ratings.stars) > 4)",
        ),
        (Wanted("rows", "ratings", (), edges=(200,)), "how many rows of ratings people have (up to 200, or more)"),
        (Wanted("rows", "ratings", (), edges=(1, 2, 4, 8)), "how many rows of ratings people have (1, 2, 4 and so on)"),
    ],
)
def test_what_is_counted_of_what_by_what(wanted: Wanted, told: str) -> None:
    assert readable(wanted.name) == told


def test_what_values_are_found_of() -> None:
    of = {kind: Wanted(kind, "ratings", (Feature(MONTH),)).name for kind in ("keys", "counts")}
    assert subject_of(of["keys"]) == (("ratings", "at"), "month", "month of ratings.at")
    assert subject_of(of["counts"]) is None
    row = PerUnit("VALUE", "ratings", STARS, Op("=", (ITEM, TWO)), "integer")
    assert subject_of(Wanted("keys", "", (Feature(row),)).name) == (
        ("ratings", "stars"),
        None,
        "ratings.stars where item = 2",
    )
    number = PerUnit("COUNT", "ratings", None, TRUE, "integer")
    found = subject_of(Wanted("magnitudes", "", (), argument=Feature(number)).name)
    assert found == (None, None, "number of rows of ratings")


@pytest.mark.parametrize(
    "name", ["", "all", "counts of people: (odd)", "people of people", "no: such | thing", "(" * 9_000]
)
def test_what_is_not_understood_stays_as_it_is(name: str) -> None:
    assert readable(name) == name
    assert subject_of(name) is None


def test_a_grain_is_told() -> None:
    assert readable("people with several rows of my table") == "whether people have several rows of my table"


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
columns = st.builds(Bound, names, names, st.just("integer"))
literals = st.one_of(
    st.builds(Literal, st.text(max_size=6), st.just("text")),
    st.builds(Literal, st.integers(-9, 9), st.just("integer")),
    st.builds(Literal, st.floats(allow_nan=False, allow_infinity=False), st.just("number")),
    st.builds(Literal, st.dates(), st.just("date")),
    st.just(Literal(None, "null")),
)


numbers = st.one_of(
    columns,
    st.builds(Op, st.sampled_from(["+", "*", "greatest", "%", "//", "concat"]), st.tuples(columns, columns)),
    st.builds(Op, st.sampled_from(["lower", "upper", "trim", "length", "measure"]), st.tuples(columns)),
    st.builds(Op, st.sampled_from(["left", "right", "strftime", "trim"]), st.tuples(columns, literals)),
    st.builds(Op, st.just("substring"), st.tuples(columns, literals, literals)),
    st.builds(lambda unit, column: Op("date_part", (Literal(unit, "text"), column)), names, columns),
    st.builds(lambda column: Op("neg", (column,), "number"), columns),
    st.builds(lambda table, of: PerUnit("SUM", table, of, TRUE, "number"), names, columns),
)
compared = st.sampled_from(
    ["=", "<", "<>", ">=", "is not distinct", "like", "ilike", "starts_with", "ends_with", "contains"]
)
conditions = st.builds(Op, compared, st.tuples(numbers, st.one_of(columns, literals)))


def nested(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Op, st.sampled_from(["and", "or"]), st.tuples(parts, parts)),
        st.builds(Op, st.sampled_from(["not", "is null", "is true"]), st.tuples(parts)),
        st.builds(Exists, names, parts),
        st.builds(lambda table, where: PerUnit("COUNT", table, None, where, "integer"), names, parts),
    )


@given(st.recursive(st.one_of(numbers, conditions), nested, max_leaves=6))
def test_every_expression_is_read(expr: Expr) -> None:
    name = name_of("keys", "", [canonical(expr)])
    assert readable(name).startswith("the values of ")
    assert subject_of(name) is not None


ASKED = (
    "SELECT city, education, COUNT(*), AVG(salary), STDDEV(age), CORR(age, salary) FROM ratings_wide GROUP BY 1, 2",
    "SELECT COUNT(*) FROM ratings_wide WHERE warcross >= 4 AND (pachinko < 3 OR joy_ride IS NULL) AND egomaniac <> 2",
    "SELECT item_id, AVG(rating) FROM ratings GROUP BY item_id",
    "SELECT DATE_TRUNC('year', rated_at), COUNT(*), SUM(rating) FROM ratings GROUP BY 1",
    "SELECT items.genre, COUNT(*) FROM ratings JOIN items ON ratings.item_id = items.item_id GROUP BY 1",
    "SELECT users.gender, AVG(ratings.rating) FROM ratings JOIN users ON ratings.user_id = users.user_id GROUP BY 1",
    "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM ratings WHERE rating > 3 GROUP BY 1) AS a GROUP BY 1",
    "SELECT COUNT(*) FROM ratings WHERE item_id = 2 AND rating >= 3",
    "SELECT COUNT(*) FROM users WHERE user_id IN (SELECT user_id FROM ratings WHERE rating = 5)",
    "SELECT warcross % 2, COUNT(*) FROM ratings_wide WHERE warcross // 2 = 1 GROUP BY 1",
    "SELECT COUNT(*), SUM(rating * item_id) FROM ratings WHERE YEAR(rated_at) = 2024 AND MONTH(rated_at) < 4",
    "SELECT UPPER(city) || '-' AS c, AVG(salary * age) FROM ratings_wide GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT user_id, SUM(rating * 2) AS s FROM ratings GROUP BY user_id) AS t WHERE s > 10",
)


def test_all_that_a_guard_measures_has_a_name_for_people(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    change_data(policy, "update ratings_wide set city = 'a | b, c of d [e]' where city = 'Graz'")
    guard = opened(policy)
    for sql in ASKED:
        with suppress(Refused):
            guard.query(sql)
    measured = [one.name for one in ledger_of(policy).measurements()]
    assert len(measured) > 30
    for name in measured:
        told = readable(name)
        assert told != name
        assert not any(
            part in told for part in ('"', "exists(", "COUNT(", "a person", "rows of rows", "date_", "measure")
        ), told
    # What is kept and compared is the canonical name.
    assert kgather("ledger", "replay", "--policy", policy)[1].startswith(f"{len(ASKED)} agree, 0 disagree")
