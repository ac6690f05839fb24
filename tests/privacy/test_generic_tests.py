"""The generic data tests: where each model just holds and just fails, nulls, empty relations and wrong arguments."""

from typing import Any

import duckdb
import pytest
from dbt_macros import CompilerError
from privacy_data import counted, failures, fill, rendered

# Classes by (age, zip): four of (20, a), five of (30, null).
ROWS = [
    (20, "a", "flu", 3), (20, "a", "flu", 4), (20, "a", "cold", 5), (20, "a", "cancer", 6),
    (30, None, "flu", 3), (30, None, "flu", 4), (30, None, "flu", 5), (30, None, None, 11), (30, None, None, 8),
]  # fmt: skip
QI = ["age", "zip"]
S = {"column_names": QI, "sensitive_columns": ["illness"]}


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    fill(con, "people", ["age", "zip", "illness", "salary"], ["integer", "varchar", "varchar", "integer"], ROWS)
    return con


@pytest.mark.parametrize(
    ("test", "arguments", "expected"),
    [
        ("k_anonymous", {"column_names": QI, "k": 4}, []),
        ("k_anonymous", {"column_names": QI, "k": 5}, [(4, 1)]),
        ("k_anonymous", {"column_names": ["zip"], "k": 6}, [(4, 1), (5, 1)]),
        # Null is an illness: the second class has two.
        ("l_diverse", {**S, "l": 2}, []),
        ("l_diverse", {**S, "l": 3}, [("illness", 5, 2, 1)]),
        ("l_diverse", {**S, "sensitive_columns": ["illness", "salary"], "l": 5},
         [("illness", 4, 3, 1), ("illness", 5, 2, 1), ("salary", 4, 4, 1)]),
        ("l_diverse", {**S, "l": 1.96, "kind": "entropy"}, []),
        ("l_diverse", {**S, "l": 1.961, "kind": "entropy"}, [("illness", 5, 1.960131704, 1)]),
        ("l_diverse", {**S, "l": 2, "kind": "recursive", "c": 1.6}, []),
        ("l_diverse", {**S, "l": 2, "kind": "recursive", "c": 1.5}, [("illness", 5, 1, 1)]),
        # All: flu 5/9, cold 1/9, cancer 1/9, null 2/9. Distances 0.2778 and 0.2222.
        ("t_close", {**S, "t": 0.2778}, []),
        ("t_close", {**S, "t": 0.25}, [("illness", 4, 0.277777778, 1)]),
        ("t_close", {**S, "t": 0.2}, [("illness", 4, 0.277777778, 1), ("illness", 5, 0.222222222, 1)]),
        # In the order cancer, cold, flu, null: (5/36, 10/36, 8/36, 0) and (4/36, 8/36, 6.4/36, 0), over 3.
        ("t_close", {**S, "t": 0.2, "ordered": True}, [("illness", 4, 0.212962963, 1)]),
        ("alpha_k_anonymous", {**S, "alpha": 0.6, "k": 4}, []),
        ("alpha_k_anonymous", {**S, "alpha": 0.59, "k": 4}, [("illness", 5, 0.6, 1)]),
        ("alpha_k_anonymous", {**S, "alpha": 0.6, "k": 5}, [("illness", 4, 0.5, 1)]),
        ("group_size_at_least", {"group_column": "zip", "k": 4}, []),
        ("group_size_at_least", {"group_column": "zip", "k": 5}, [(4, 1)]),
        # A member who is null is nobody.
        ("group_size_at_least", {"group_column": "zip", "k": 2, "member_column": "illness"}, [(1, 1)]),
        ("group_size_at_least", {"group_column": "zip", "k": 5, "member_column": "salary"}, [(4, 1)]),
        ("no_risk_query_conditions", {"column_names": QI, "k": 4, "m": 2}, []),
        ("no_risk_query_conditions", {"column_names": QI, "k": 5, "m": 2}, [(["age", "zip"], 4, 1)]),
        ("no_risk_query_conditions", {"column_names": ["zip", "illness"], "k": 2, "m": 1}, [(["illness"], 1, 2)]),
        ("no_risk_query_conditions", {"column_names": ["zip"], "k": 6, "m": 1, "nulls": False}, [(["zip"], 4, 1)]),
    ],
)  # fmt: skip
def test_where_it_just_holds_and_just_fails(
    people: duckdb.DuckDBPyConnection, test: str, arguments: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    assert failures(people, test, "people", **arguments) == expected
    # dbt's own filter of a test is a query in place of the relation.
    assert failures(people, test, "(select * from people where true) dbt_subquery", **arguments) == expected
    # Nobody is in an empty relation.
    assert failures(people, test, "(select * from people where false) dbt_subquery", **arguments) == []


def test_dbts_filter_skips_nulls(people: duckdb.DuckDBPyConnection) -> None:
    known = "(select * from people where illness is not null) dbt_subquery"
    assert failures(people, "l_diverse", known, **S, l=2) == [("illness", 3, 1, 1)]


def test_what_is_k_anonymous_in_all_columns_has_no_risk_conditions(con: duckdb.DuckDBPyConnection) -> None:
    names = [f"c{i}" for i in range(15)]
    drawn = ", ".join(f"hash(i % 500, {place}) % 3 as {name}" for place, name in enumerate(names))
    con.execute(f"create table safe as select {drawn} from range(5000) t (i)")
    for m in (1, 2, 3, 15):
        assert failures(con, "no_risk_query_conditions", "safe", column_names=names, k=10, m=m) == []
    assert failures(con, "no_risk_query_conditions", "safe", column_names=names, k=11, m=15) != []


def test_failures_hold_no_value(people: duckdb.DuckDBPyConnection) -> None:
    told = str(
        failures(people, "l_diverse", "people", **S, l=9)
        + failures(people, "t_close", "people", **S, t=0)
        + failures(people, "alpha_k_anonymous", "people", **S, alpha=0.01, k=9)
        + failures(people, "no_risk_query_conditions", "people", column_names=["illness", "zip"], k=9, m=2)
    )
    assert "illness" in told
    assert not [value for value in ("flu", "cold", "cancer") if value in told]


def test_names_that_have_to_be_quoted(con: duckdb.DuckDBPyConnection) -> None:
    q, s = 'it\'s "q"; --', "S 1'"
    fill(con, "odd", [q, s], ["integer", "integer"], [(1, 1), (1, 2), (2, 1), (2, 1)])
    assert failures(con, "k_anonymous", "odd", column_names=[q], k=3) == [(2, 2)]
    assert failures(con, "l_diverse", "odd", column_names=[q], sensitive_columns=[s], l=2) == [(s, 2, 1, 1)]
    assert failures(con, "t_close", "odd", column_names=[q], sensitive_columns=[s], t=0.1) == [(s, 2, 0.25, 2)]
    assert failures(con, "group_size_at_least", "odd", group_column=q, member_column=s, k=2) == [(1, 1)]
    # Artifacts are often called by the numbers of items.
    fill(con, "numbered", ["101"], ["integer"], [(1,), (1,)])
    assert failures(con, "k_anonymous", "numbered", column_names=[101], k=3) == [(2, 1)]


@pytest.mark.parametrize(
    ("test", "arguments", "message"),
    [
        ("k_anonymous", {"column_names": "age", "k": 2}, "k_anonymous needs a list of column_names, but received: age"),
        ("k_anonymous", {"column_names": [], "k": 2}, "k_anonymous needs a list of column_names, but received: []"),
        ("k_anonymous", {"column_names": QI, "k": 0}, "a whole number k of at least 1, but received: 0"),
        ("k_anonymous", {"column_names": QI, "k": True}, "but received: True"),
        ("k_anonymous", {"column_names": QI, "k": "5"}, "but received: 5"),
        ("k_anonymous", {"column_names": QI, "k": None}, "but received: None"),
        ("l_diverse", {**S, "l": 1.5}, "l_diverse needs a whole number l of at least 1, but received: 1.5"),
        ("l_diverse", {**S, "l": 0.5, "kind": "entropy"}, "l_diverse needs a number l of at least 1"),
        ("l_diverse", {**S, "l": 2, "kind": "fuzzy"}, "kind that is distinct, entropy or recursive"),
        ("l_diverse", {**S, "l": 2, "kind": "recursive"}, "needs a number c above 0, but received: None"),
        ("l_diverse", {**S, "l": 2, "kind": "recursive", "c": 0}, "needs a number c above 0, but received: 0"),
        ("l_diverse", {**S, "l": 2, "kind": "recursive", "c": float("inf")}, "needs a number c above 0"),
        ("l_diverse", {**S, "l": 2, "c": 2}, "l_diverse takes a c with kind recursive only"),
        ("l_diverse", {**S, "sensitive_columns": "illness", "l": 2}, "needs a list of sensitive_columns"),
        ("t_close", {**S, "t": 1.5}, "t_close needs a number t of at least 0 and at most 1, but received: 1.5"),
        ("t_close", {**S, "t": 0.5, "ordered": "yes"}, "an ordered that is true or false, but received: yes"),
        ("alpha_k_anonymous", {**S, "alpha": 0, "k": 2}, "needs a number alpha above 0 and at most 1"),
        ("alpha_k_anonymous", {**S, "alpha": float("nan"), "k": 2}, "but received: nan"),
        ("alpha_k_anonymous", {**S, "alpha": 0.5, "k": 1.5}, "needs a whole number k of at least 1"),
        ("group_size_at_least", {"group_column": ["zip"], "k": 2}, "the name of one column as group_column"),
        ("group_size_at_least", {"group_column": "", "k": 2}, "the name of one column as group_column"),
        ("group_size_at_least", {"group_column": "zip", "member_column": [], "k": 2}, "one column as member_column"),
        ("group_size_at_least", {"group_column": "zip", "k": -1}, "needs a whole number k of at least 1"),
        ("no_risk_query_conditions", {"column_names": QI, "k": 2, "m": 0}, "needs a whole number m of at least 1"),
        ("no_risk_query_conditions", {"column_names": QI, "k": 2, "m": 1, "nulls": 1}, "nulls that are true or false"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(test: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilerError) as refused:
        rendered(test, "people", **arguments)
    assert message in str(refused.value)


def test_numbers_from_vars_are_left_alone_while_dbt_parses() -> None:
    assert "< None" in rendered("k_anonymous", "people", execute=False, column_names=QI, k=None)


@pytest.mark.parametrize(
    ("kind", "texts"), [("varchar collate nocase", "('A'), ('a')"), ("double", "('0.0'), ('-0.0')")]
)
def test_values_are_told_apart_as_a_reader_sees_them(con: duckdb.DuckDBPyConnection, kind: str, texts: str) -> None:
    con.execute(f"create table seen (x {kind}, illness varchar)")
    con.execute(f"insert into seen select v, 'flu' from (values {texts}) as t(v)")
    assert failures(con, "k_anonymous", "seen", column_names=["x"], k=2) == [(1, 2)]
    assert failures(con, "group_size_at_least", "seen", group_column="x", k=2) == [(1, 2)]
    assert failures(con, "no_risk_query_conditions", "seen", column_names=["x"], k=2, m=1) == [(["x"], 1, 2)]
    assert failures(con, "alpha_k_anonymous", "seen", column_names=["x"], sensitive_columns=["illness"], alpha=1, k=2)


# In ROWS, class one has four people and class two has five.
@pytest.mark.parametrize(
    ("test", "arguments", "people_at_risk", "classes_at_risk"),
    [
        ("k_anonymous", {"column_names": QI, "k": 4}, 0, 0),
        ("k_anonymous", {"column_names": QI, "k": 5}, 4, 1),
        ("k_anonymous", {"column_names": QI, "k": 6}, 9, 2),
        ("group_size_at_least", {"group_column": "zip", "k": 4}, 0, 0),
        ("group_size_at_least", {"group_column": "zip", "k": 6}, 9, 2),
        # Three illnesses among the four; one among the five, and null is nobody.
        ("group_size_at_least", {"group_column": "zip", "k": 4, "member_column": "illness"}, 4, 2),
        ("l_diverse", {**S, "l": 2}, 0, 0),
        ("l_diverse", {**S, "l": 3}, 5, 1),
        # Both classes fail by some column, the second by the first alone: each person counts once.
        ("l_diverse", {**S, "sensitive_columns": ["illness", "salary"], "l": 5}, 9, 2),
        ("l_diverse", {**S, "sensitive_columns": ["illness", "illness"], "l": 3}, 5, 1),
        ("t_close", {**S, "t": 0.2778}, 0, 0),
        ("t_close", {**S, "t": 0.25}, 4, 1),
        ("t_close", {**S, "t": 0.2}, 9, 2),
        ("alpha_k_anonymous", {**S, "alpha": 0.6, "k": 4}, 0, 0),
        ("alpha_k_anonymous", {**S, "alpha": 0.59, "k": 4}, 5, 1),
        ("alpha_k_anonymous", {**S, "alpha": 0.59, "k": 5}, 9, 2),
        ("no_risk_query_conditions", {"column_names": QI, "k": 5, "m": 2}, 4, 1),
        ("no_risk_query_conditions", {"column_names": QI, "k": 4, "m": 2}, 0, 0),
        # Every row is matched by a condition on each of the two columns, and there are only nine.
        ("no_risk_query_conditions", {"column_names": QI, "k": 6, "m": 1}, 9, 4),
        ("anonymized", {"quasi_identifiers": QI, "k": 4}, 0, 0),
        ("anonymized", {"quasi_identifiers": QI, "k": 5}, 4, 1),
        # The second class alone keeps neither l nor t, and counts once.
        ("anonymized", {"quasi_identifiers": QI, "k": 4, "sensitive": ["illness"], "l": 3, "diversity": "distinct",
                        "alpha": 0.59}, 5, 1),
        ("anonymized", {"quasi_identifiers": QI, "k": 5, "sensitive": ["illness"], "l": 3, "diversity": "distinct"},
         9, 2),
        # Settings that say how it is made are passed over.
        ("anonymized", {"quasi_identifiers": QI, "k": 4, "method": "cluster", "suppress": 0.1, "seed": 3, "unit": "id",
                        "identifiers": ["name"], "rows_per_person": 1, "others": ["salary"], "rounds": 2}, 0, 0),
        # What names people is shown: of everybody.
        ("anonymized", {"quasi_identifiers": QI, "k": 4, "identifiers": ["SALARY"]}, 9, 2),
        ("anonymized", {"quasi_identifiers": QI, "k": 4, "unit": "illness"}, 9, 2),
    ],
)  # fmt: skip
def test_thresholds_mean_people(
    people: duckdb.DuckDBPyConnection,
    test: str,
    arguments: dict[str, Any],
    people_at_risk: int,
    classes_at_risk: int,
) -> None:
    assert counted(people, test, "people", **arguments) == people_at_risk
    assert counted(people, test, "people", **arguments, measure="classes") == classes_at_risk
    # A limit of rows does not make the people fewer.
    assert counted(people, test, "people", limit=1, **arguments) == people_at_risk
    empty = "(select * from people where false) dbt_subquery"
    assert counted(people, test, empty, **arguments) == 0


def test_a_group_without_a_known_member_never_passes(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, "unknown", ["zip", "member"], ["varchar", "integer"], [("a", None), ("a", None), ("b", 1), ("b", 2)])
    arguments = {"group_column": "zip", "member_column": "member", "k": 2}
    assert failures(con, "group_size_at_least", "unknown", **arguments) == [(0, 1)]
    assert counted(con, "group_size_at_least", "unknown", **arguments) == 1


def test_rows_that_are_too_many_or_repeated_are_counted(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table whole as from range(5); create table part as from range(3)")
    assert counted(con, "rows_add_up", "whole", parts=["part"]) == 2
    assert counted(con, "rows_add_up", "part", parts=["whole"]) == 2
    assert counted(con, "rows_add_up", "whole", parts=["whole"]) == 0


def test_a_pseudonym_names_one_row(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, "named", ["zip", "who"], ["varchar", "varchar"], [("a", "x"), ("a", "y"), ("a", "y"), ("a", None)])
    arguments: dict[str, Any] = {"quasi_identifiers": ["zip"], "k": 4}
    assert counted(con, "anonymized", "named", **arguments) == 0
    assert counted(con, "anonymized", "named", **arguments, pseudonym="who") == 2


def test_what_the_table_does_not_tell_is_refused() -> None:
    with pytest.raises(CompilerError, match="anonymized cannot measure k_map and presence"):
        rendered("anonymized", "people", quasi_identifiers=QI, k=2, population="census", k_map=3)


def test_other_measures_are_refused() -> None:
    with pytest.raises(
        CompilerError, match="k_anonymous needs a measure that is people or classes, but received: rows"
    ):
        rendered("k_anonymous", "people", column_names=QI, k=2, measure="rows")
