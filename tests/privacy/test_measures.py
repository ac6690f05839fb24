"""The macros that measure relational privacy models: hand-computed tables, then the models by their definitions."""

import math
from collections import Counter
from typing import Any

import duckdb
import pytest
from dbt_macros import create_macros
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_data import (
    MACROS,
    classes,
    distance,
    diversity,
    fill,
    frequencies,
    quoted,
    risky,
)

# Two classes by (age, zip). The first: flu 2, cold 1, cancer 1. The second: flu 3, null 2, and its zip is null.
PATIENTS = [
    ("20-30", "130", "flu", 3), ("20-30", "130", "flu", 4),
    ("20-30", "130", "cold", 5), ("20-30", "130", "cancer", 6),
    ("30-40", None, "flu", 3), ("30-40", None, "flu", 4), ("30-40", None, "flu", 5),
    ("30-40", None, None, 11), ("30-40", None, None, 8),
]  # fmt: skip


@pytest.fixture
def patients(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    fill(con, "patients", ["age", "zip", "illness", "salary"], ["varchar", "varchar", "varchar", "integer"], PATIENTS)
    return con


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


# By hand ---------------------------------------------------------------------------------------------------------


def test_class_sizes(patients: duckdb.DuckDBPyConnection) -> None:
    assert rows(patients, "from kg_class_sizes('patients', ['age', 'zip'])") == [(4, 1), (5, 1)]
    # Null is a value: those without a zip are a class, whatever the case of the column's name.
    assert rows(patients, "from kg_class_sizes('patients', ['ZIP'])") == [(4, 1), (5, 1)]
    assert rows(patients, "from kg_class_sizes('patients', ['zip', 'illness'])") == [(1, 2), (2, 2), (3, 1)]


def test_frequencies_hold_no_values(patients: duckdb.DuckDBPyConnection) -> None:
    found = rows(patients, "from kg_frequencies('patients', ['age', 'zip'], ['illness'])")
    assert sorted((name, sorted(counts)) for name, counts in found) == [("illness", [1, 1, 2]), ("illness", [2, 3])]


def test_distinct_diversity(patients: duckdb.DuckDBPyConnection) -> None:
    assert rows(patients, "from kg_l_diversity('patients', ['age', 'zip'], ['illness', 'salary'])") == [
        ("illness", 4, 3.0, 1),
        ("illness", 5, 2.0, 1),
        ("salary", 4, 4.0, 1),
        ("salary", 5, 5.0, 1),
    ]


def test_entropy_diversity(patients: duckdb.DuckDBPyConnection) -> None:
    # Shares 1/2, 1/4, 1/4: the entropy is 1.5 bits. Shares 3/5, 2/5: exp(H) = 5 / (3^0.6 * 2^0.4).
    assert rows(patients, "from kg_l_diversity('patients', ['age', 'zip'], ['illness'], 'entropy')") == [
        ("illness", 4, round(2**1.5, 9), 1),
        ("illness", 5, round(5 / (3**0.6 * 2**0.4), 9), 1),
    ]


def test_equal_frequencies_are_exactly_as_diverse_as_they_are_many(con: duckdb.DuckDBPyConnection) -> None:
    for count in range(1, 40):
        con.execute(
            f"create or replace table even as select 1 as class, i % {count} as s from range({3 * count}) t (i)"
        )
        assert rows(con, "select l from kg_l_diversity('even', ['class'], ['s'], 'entropy')") == [(count,)]


@pytest.mark.parametrize(
    ("c", "first", "second"),
    [
        (0.5, 0, 0),  # 2 < 0.5 * 4 and 3 < 0.5 * 5 do not hold
        (0.7, 1, 1),  # 2 < 0.7 * 4, not 0.7 * 2; 3 < 0.7 * 5
        (1, 1, 1),  # not 2 < 1 * 2: the condition is strict
        (1.5, 2, 1),  # 2 < 1.5 * 2; not 3 < 1.5 * 2
        (1.6, 2, 2),  # 3 < 1.6 * 2
        (2, 2, 2),  # not 2 < 2 * 1
        (2.1, 3, 2),
    ],
)
def test_recursive_diversity(patients: duckdb.DuckDBPyConnection, c: float, first: int, second: int) -> None:
    found = rows(patients, f"from kg_l_diversity('patients', ['age', 'zip'], ['illness'], 'recursive', {c})")
    assert found == [("illness", 4, first, 1), ("illness", 5, second, 1)]


def test_rounding_errors_do_not_decide_recursive_diversity(con: duckdb.DuckDBPyConnection) -> None:
    assert 2.2 * 25 > 55
    con.execute("create table lopsided as select 1 as class, greatest(i - 54, 0) as s from range(80) t (i)")
    assert rows(con, "select l from kg_l_diversity('lopsided', ['class'], ['s'], 'recursive', 2.2)") == [(1,)]
    assert rows(con, "select l from kg_l_diversity('lopsided', ['class'], ['s'], 'recursive', 2.21)") == [(2,)]


def test_alpha(patients: duckdb.DuckDBPyConnection) -> None:
    assert rows(patients, "from kg_alpha('patients', ['age', 'zip'], ['illness', 'salary'])") == [
        ("illness", 4, 0.5, 1),
        ("illness", 5, 0.6, 1),
        ("salary", 4, 0.25, 1),
        ("salary", 5, 0.2, 1),
    ]


def test_closeness_of_salaries(con: duckdb.DuckDBPyConnection) -> None:
    """The example of Li, Li and Venkatasubramanian, t-Closeness, section 4: salaries 3k to 11k in classes of three."""
    for ours, expected in [((3, 4, 5), 0.375), ((6, 8, 11), 0.167)]:
        others = [salary for salary in range(3, 12) if salary not in ours]
        salaries = [("one", salary) for salary in ours] + [("other", salary) for salary in others]
        fill(con, "paid", ["class", "salary"], ["varchar", "integer"], salaries)
        found = [t for _, size, t, _ in rows(con, "from kg_t_closeness('paid', ['class'], ['salary'])") if size == 3]
        assert found == [pytest.approx(expected, abs=5e-4)]


def test_closeness_without_an_order(con: duckdb.DuckDBPyConnection) -> None:
    # All: a 3/6, b 2/6, c 1/6. First: a 2/3, b 1/3. Second: a, b, c 1/3 each.
    table = [(1, "a"), (1, "a"), (1, "b"), (2, "a"), (2, "b"), (2, "c")]
    fill(con, "six", ["class", "s"], ["integer", "varchar"], table)
    sixth = round(1 / 6, 9)
    assert rows(con, "from kg_t_closeness('six', ['class'], ['s'])") == [("s", 3, sixth, 2)]
    # In the order a, b, c: differences of (1/6, 0, -1/6) add up to 1/6, 1/6, 0; halved for two steps.
    assert rows(con, "from kg_t_closeness('six', ['class'], ['s'], true)") == [("s", 3, sixth, 2)]


@pytest.mark.parametrize(
    "kind", ["integer", "utinyint", "hugeint", "double", "decimal(9, 2)", "date", "timestamp", "time"]
)
def test_numbers_and_dates_are_ordered_by_default(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    make = {
        "date": "date '2024-01-01' + i::integer",
        "timestamp": "timestamp '2024-01-01' + to_days(i::integer)",
        "time": "time '10:00' + to_minutes(i)",
    }.get(kind, f"i::{kind}")
    con.execute(f"create table typed as select i // 3 as class, {make} as s from range(9) t (i)")
    assert rows(con, "from kg_t_closeness('typed', ['class'], ['s'])") == rows(
        con, "from kg_t_closeness('typed', ['class'], ['s'], true)"
    )
    assert rows(con, "select max(t) from kg_t_closeness('typed', ['class'], ['s'])") == [(0.375,)]
    con.execute("create table text as select class, 'x' || s as s from typed")
    assert rows(con, "select max(t) from kg_t_closeness('text', ['class'], ['s'])") == [(round(2 / 3, 9),)]


def test_null_is_the_last_in_the_order(con: duckdb.DuckDBPyConnection) -> None:
    for last in (None, 3):
        fill(con, "three", ["class", "s"], ["integer", "integer"], [(1, 1), (1, 2), (2, 2), (2, last)])
        # Differences of the first class: 1/4, 0, -1/4.
        assert rows(con, "from kg_t_closeness('three', ['class'], ['s'])") == [("s", 2, 0.25, 2)]


def test_risk_conditions(con: duckdb.DuckDBPyConnection) -> None:
    # Ratings of two items by six users; (5, null), (4, null) and (null, 1) are one user's each.
    table = [(5, 3), (5, 3), (5, None), (4, 3), (4, None), (None, 1)]
    fill(con, "rated", ["one", "two"], ["integer", "integer"], table)
    assert rows(con, "from kg_risk_conditions('rated', ['one', 'two'], 2, 2)") == [(["one", "two"], 1, 4)]
    assert rows(con, "from kg_risk_conditions('rated', ['one', 'two'], 2, 1)") == [(["one"], 1, 1), (["two"], 1, 1)]
    assert rows(con, "from kg_risk_conditions('rated', ['one', 'two'], 3, 1)") == [
        (["one"], 1, 1), (["one"], 2, 1), (["two"], 1, 1), (["two"], 2, 1),
    ]  # fmt: skip
    # Who cannot ask for null knows users by two = 1, and by one = 4 and two = 3.
    assert rows(con, "from kg_risk_conditions('rated', ['one', 'two'], 2, 2, p_null := false)") == [
        (["one", "two"], 1, 1), (["two"], 1, 1),
    ]  # fmt: skip
    assert rows(con, "from kg_risk_conditions('rated', ['one', 'two'], 1, 2)") == []


def test_more_columns_than_there_are_is_all_of_them(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, "rated", ["one", "two"], ["integer", "integer"], [(1, 1), (1, 2), (2, 1), (2, 2)])
    assert rows(con, "from kg_risk_conditions('rated', ['one', 'two'], 2, 9)") == [(["one", "two"], 1, 4)]
    assert rows(con, "from kg_risk_conditions('rated', ['one', 'two'], 2, 1)") == []


# By definition ---------------------------------------------------------------------------------------------------

_SHARED = duckdb.connect()
create_macros(_SHARED, *MACROS)
few = st.none() | st.integers(0, 2)
TABLES = st.lists(st.tuples(few, few, st.none() | st.integers(0, 6)), min_size=1, max_size=30)


def measured(query: str) -> list[tuple[float, ...]]:
    """One row for each class, without the name of the column."""
    found = rows(_SHARED, query)
    return sorted(row[1:-1] for row in found for _ in range(row[-1]))


@settings(max_examples=60, deadline=None)
@given(TABLES, st.sampled_from([0.4, 0.75, 1, 1.5, 2, 3]))
def test_every_class_is_measured_as_defined(table: list[tuple[Any, ...]], c: float) -> None:
    fill(_SHARED, "drawn", ["a", "b", "s"], ["integer"] * 3, table)
    of_rows = list(classes(table, [0, 1]).values())
    sizes = [(size,) for size, count in rows(_SHARED, "from kg_class_sizes('drawn', ['a', 'b'])") for _ in range(count)]
    assert sizes == sorted((len(members),) for members in of_rows)
    for kind in ("distinct", "entropy", "recursive"):
        given_c = c if kind == "recursive" else "null"
        found = measured(f"from kg_l_diversity('drawn', ['a', 'b'], ['s'], '{kind}', {given_c})")
        expected = sorted((len(members), diversity(members, 2, kind, c)) for members in of_rows)
        assert found == [pytest.approx(pair, abs=1e-8) for pair in expected]
    expected = sorted((len(members), frequencies(members, 2)[0] / len(members)) for members in of_rows)
    assert measured("from kg_alpha('drawn', ['a', 'b'], ['s'])") == [pytest.approx(pair, abs=1e-8) for pair in expected]
    for ordered in (True, False):
        found = measured(f"from kg_t_closeness('drawn', ['a', 'b'], ['s'], {ordered})")
        expected = sorted((len(members), distance(members, table, 2, ordered=ordered)) for members in of_rows)
        assert found == [pytest.approx(pair, abs=1e-8) for pair in expected]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(few, few, few, few), max_size=30),
    st.integers(1, 4),
    st.integers(1, 5),
    st.booleans(),
)
def test_risk_conditions_are_those_of_all_conditions(table: list[tuple[Any, ...]], k: int, m: int, nulls: bool) -> None:
    names = ["w", "x", "y", "z"]
    fill(_SHARED, "drawn", names, ["integer"] * 4, table)
    found = rows(_SHARED, f"from kg_risk_conditions('drawn', {names}, {k}, {m}, {nulls})")
    everything = risky(table, 4, k, m, nulls=nulls)
    # Whoever looks at sets of exactly m columns misses nothing: there are some exactly where there are any.
    assert bool(found) == bool(everything)
    looked_at = {places for places, _ in everything if not nulls or len(places) == min(m, 4)}
    assert {tuple(names.index(name) for name in row[0]) for row in found} == looked_at
    by_columns: Counter[tuple[int, ...]] = Counter()
    for columns, matched, conditions in found:
        assert 1 <= matched < k
        by_columns[tuple(names.index(name) for name in columns)] += conditions
    assert by_columns == Counter(places for places, _ in everything if places in looked_at)


# Hostile ---------------------------------------------------------------------------------------------------------

NAMES = ["a b", 'quo"te', "it's", "Élan", "select", "kg_n", "kg_value", "kg_column_1", "x); drop table t; --", "{0}"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sensitive", ["s", "kg_n", "class_size", "per' cent\" {1}"])
def test_any_name_of_a_column(con: duckdb.DuckDBPyConnection, name: str, sensitive: str) -> None:
    sensitive = sensitive if sensitive != name else "other"
    fill(con, "t", [name, sensitive], ["integer", "integer"], [(1, 1), (1, 2), (2, 1), (2, 1)])
    parameters = {"q": [name], "s": [sensitive], "both": [name, sensitive]}

    def found(query: str, *wanted: str) -> list[tuple[Any, ...]]:
        return con.execute(query, [parameters[each] for each in wanted]).fetchall()

    assert found("from kg_class_sizes('t', ?)", "q") == [(2, 2)]
    assert found("from kg_l_diversity('t', ?, ?)", "q", "s") == [(sensitive, 2, 1, 1), (sensitive, 2, 2, 1)]
    assert found("from kg_alpha('t', ?, ?)", "q", "s") == [(sensitive, 2, 0.5, 1), (sensitive, 2, 1, 1)]
    assert found("from kg_t_closeness('t', ?, ?)", "q", "s") == [(sensitive, 2, 0.25, 2)]
    assert found("from kg_risk_conditions('t', ?, 2, 2)", "both") == [([name, sensitive], 1, 2)]
    assert rows(con, "select count(*) from t") == [(4,)]


@pytest.mark.parametrize("name", ["we ird", 'quo"te', "it's", "kg_t_counts_", "select"])
def test_any_name_of_a_relation(con: duckdb.DuckDBPyConnection, name: str) -> None:
    fill(con, name, ["a", "s"], ["integer", "integer"], [(1, 1), (1, 2)])
    assert con.execute("from kg_class_sizes(?, ['a'])", [quoted(name)]).fetchall() == [(2, 1)]
    assert con.execute("from kg_t_closeness(?, ['a'], ['s'])", [quoted(name)]).fetchall() == [("s", 2, 0, 1)]
    assert con.execute("from kg_risk_conditions(?, ['a'], 3, 1)", [quoted(name)]).fetchall() == [(["a"], 2, 1)]


def test_common_table_expressions_views_and_schemas(patients: duckdb.DuckDBPyConnection) -> None:
    patients.execute("create schema other; create view other.seen as from main.patients where zip is not null")
    assert rows(patients, "from kg_class_sizes('other.seen', ['age'])") == [(4, 1)]
    assert rows(patients, "with w as (from patients limit 0) from kg_class_sizes('w', ['age'])") == []
    assert rows(patients, "with w as (from patients) from kg_alpha('w', ['age'], ['zip'])") == [
        ("zip", 4, 1.0, 1),
        ("zip", 5, 1.0, 1),
    ]


def test_an_empty_relation_has_no_classes(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, "none", ["a", "s"], ["integer", "integer"], [])
    for call in (
        "kg_class_sizes('none', ['a'])",
        "kg_frequencies('none', ['a'], ['s'])",
        "kg_l_diversity('none', ['a'], ['s'])",
        "kg_l_diversity('none', ['a'], ['s'], 'recursive', 2)",
        "kg_alpha('none', ['a'], ['s'])",
        "kg_t_closeness('none', ['a'], ['s'])",
        "kg_risk_conditions('none', ['a', 's'], 5, 2)",
    ):
        assert rows(con, f"from {call}") == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("kg_class_sizes('patients', [])", "kg_class_sizes: a list of one or more column names is needed"),
        ("kg_class_sizes('patients', null)", "kg_class_sizes: a list of one or more column names is needed"),
        ("kg_class_sizes('patients', ['age', null])", "kg_class_sizes: a list of one or more column names is needed"),
        ("kg_alpha('patients', ['age'], [])", "kg_alpha: a list of one or more column names is needed"),
        ("kg_class_sizes('patients', ['size'])", 'Referenced column "size" not found'),
        ("kg_class_sizes('people', ['age'])", "Table with name people does not exist"),
        ("kg_l_diversity('patients', ['age'], ['illness'], 'fuzzy')", "p_kind is distinct, entropy or recursive"),
        ("kg_l_diversity('patients', ['age'], ['illness'], null)", "p_kind is distinct, entropy or recursive"),
        ("kg_l_diversity('patients', ['age'], ['illness'], 'recursive')", "p_c goes with p_kind recursive"),
        ("kg_l_diversity('patients', ['age'], ['illness'], 'entropy', 2)", "p_c goes with p_kind recursive"),
        ("kg_l_diversity('patients', ['age'], ['illness'], 'recursive', 0)", "p_c is a number above 0"),
        ("kg_l_diversity('patients', ['age'], ['illness'], 'recursive', 'nan'::double)", "p_c is a number above 0"),
        ("kg_risk_conditions('patients', ['age'], 0, 1)", "p_k is a whole number of at least 1"),
        ("kg_risk_conditions('patients', ['age'], 2, 0)", "p_m is a whole number of at least 1"),
        ("kg_risk_conditions('patients', ['age'], 2, 1.5)", "p_m is a whole number of at least 1"),
        ("kg_risk_conditions('patients', ['age'], 2.5, 1)", "p_k is a whole number of at least 1"),
        ("kg_risk_conditions('patients', ['age'], 2, 1, null)", "p_null is true or false"),
    ],
)
def test_what_cannot_be_measured(patients: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        patients.execute(f"from {call}").fetchall()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        "kg_quoted([])",
        "kg_as_seen(null)",
        "kg_classed('patients', ['age'], [])",
        *(
            f"{name}('patients', {quasi}, {sensitive})"
            for quasi, sensitive in (("[]", "['illness']"), ("['age']", "[]"))
            for name in (
                "kg_class_frequencies", "kg_class_l", "kg_class_alpha", "kg_class_t", "kg_frequencies",
                "kg_l_diversity", "kg_alpha", "kg_t_closeness",
            )
        ),
        *(
            f"{name}('patients', {quasi}, {value}, [['flu', 'any']])"
            for quasi, value in (("[]", "'illness'"), ("['age']", "'illness'"))
            for name in ("kg_class_hierarchical_t", "kg_hierarchical_t_closeness")
        ),
        *(
            f"{name}('patients', {columns}, 2, {m})"
            for columns, m in (("[]", 1), ("['age']", 0))
            for name in ("kg_risk", "kg_risk_conditions")
        ),
        "kg_class_l('patients', ['age'], ['illness'], 'fuzzy')",
        "kg_column_sets(['age'], 0, true)",
        "kg_average_class_size('members', 0)",
    ],
)  # fmt: skip
def test_an_error_names_the_function_that_was_called(patients: duckdb.DuckDBPyConnection, call: str) -> None:
    create_macros(patients, "kg_average_class_size", "kg_class_hierarchical_t", "kg_hierarchical_t_closeness")
    patients.execute("create table members as select 1 as group_id")
    name = call.split("(")[0]
    scalar = name in ("kg_quoted", "kg_as_seen", "kg_classed", "kg_column_sets")
    with pytest.raises(duckdb.Error) as caught:
        patients.execute(f"select {call}" if scalar else f"from {call}").fetchall()
    assert f"Error: {name}: " in str(caught.value)


def test_too_many_sets_of_columns_are_refused_and_not_tried(con: duckdb.DuckDBPyConnection) -> None:
    names = [f"c{i}" for i in range(40)]
    fill(con, "wide", names, ["integer"] * 40, [tuple(range(40))] * 3)
    with pytest.raises(duckdb.Error, match=r"more than 5,000 sets of p_m columns"):
        con.execute("from kg_risk_conditions('wide', ?, 2, 20)", [names])
    # All of them are one set.
    assert con.execute("from kg_risk_conditions('wide', ?, 4, 40)", [names]).fetchall() == [(names, 3, 1)]


def test_all_equal_all_different_and_skewed(con: duckdb.DuckDBPyConnection) -> None:
    """A class of everybody with as many values, which a step for each pair would take an hour for."""
    con.execute("create table many as select 0 as one, i as own, 100_000 - i as s from range(100_000) t (i)")
    assert rows(con, "from kg_class_sizes('many', ['one'])") == [(100_000, 1)]
    assert rows(con, "from kg_t_closeness('many', ['one'], ['s'])") == [("s", 100_000, 0, 1)]
    assert rows(con, "from kg_l_diversity('many', ['one'], ['s'], 'recursive', 0.5)") == [("s", 100_000, 99_998, 1)]
    assert rows(con, "from kg_l_diversity('many', ['one'], ['s'], 'entropy')") == [("s", 100_000, 100_000, 1)]
    assert rows(con, "select class_size, sum(classes) from kg_t_closeness('many', ['own'], ['s']) group by all") == [
        (1, 100_000)
    ]
    # Alone at one end of the line: half of it away from all others on average.
    assert rows(con, "select round(max(t), 4), round(min(t), 4) from kg_t_closeness('many', ['own'], ['s'])") == [
        (0.5, 0.25)
    ]
    assert math.isclose(rows(con, "select max(alpha) from kg_alpha('many', ['one'], ['s'])")[0][0], 1e-5)


# Beside another implementation ----------------------------------------------------------------------------------


def test_pycanon_agrees(con: duckdb.DuckDBPyConnection) -> None:
    anonymity = pytest.importorskip("pycanon.anonymity")
    pandas = pytest.importorskip("pandas")
    con.execute("""
        create table seeded as
        select hash(i) % 5 as a, 'z' || hash(i, 1) % 3 as b, hash(i, 2) % 9 as number, 'v' || hash(i, 3) % 4 as word
        from range(600) t (i)
    """)
    data = con.execute("from seeded").df()
    data["a"], data["number"] = data["a"].astype("int64"), data["number"].astype("int64")
    assert isinstance(data, pandas.DataFrame)
    quasi, q = ["a", "b"], "'seeded', ['a', 'b']"
    assert rows(con, f"select min(class_size) from kg_class_sizes({q})") == [(anonymity.k_anonymity(data, quasi),)]
    for s in ("number", "word"):
        [(least,)] = rows(con, f"select min(l) from kg_l_diversity({q}, ['{s}'])")
        assert least == anonymity.l_diversity(data, quasi, [s])
        [(least,)] = rows(con, f"select min(l) from kg_l_diversity({q}, ['{s}'], 'entropy')")
        assert math.floor(least) == anonymity.entropy_l_diversity(data, quasi, [s])
        [(t,)] = rows(con, f"select max(t) from kg_t_closeness({q}, ['{s}'])")
        assert t == pytest.approx(anonymity.t_closeness(data, quasi, [s]), abs=1e-8)
        [(alpha,)] = rows(con, f"select max(alpha) from kg_alpha({q}, ['{s}'])")
        assert alpha == pytest.approx(anonymity.alpha_k_anonymity(data, quasi, [s])[0], abs=1e-8)
