"""People with several rows, pseudonyms, and several tables of the same people: counted by hand, and attacked."""

import random
import warnings
from collections import Counter, defaultdict
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_data import holds

import kgather
from kgather._errors import InputError
from kgather._settings.table import table_settings
from kgather.udfs.recoding.loss import ColumnLoss, losses
from kgather.udfs.recoding.persons import part_rows

QUASI: dict[str, Any] = {"age": {"step": 5}, "zip": {"kind": "prefix"}, "amount": {"step": 50}, "shop": {}}


def purchases(people: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of made-up customers, one to eight each; `row` is the number of the row."""
    draws = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        age = int(draws.integers(18, 80))
        for _ in range(int(draws.integers(1, 9))):
            rows.append(
                {
                    "id": f"p{person}",
                    "age": age,
                    "zip": f"0{draws.integers(2100, 2130)}",
                    "amount": float(np.round(draws.lognormal(4, 1), 2)),
                    "shop": str(draws.choice(list("abcdef"))),
                    "what": str(draws.choice(["x", "y", "z"])),
                    "row": len(rows),
                }
            )
    return rows


def anonymized(rows: list[dict[str, Any]], **asked: Any) -> kgather.AnonymizedTable:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return kgather.anonymize(
            pa.Table.from_pylist(rows), **{"k": 5, "quasi_identifiers": QUASI, "unit": "id", **asked}
        )


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
@pytest.mark.parametrize("most", [2, 5, 100])
def test_a_class_and_a_set_of_classes_are_of_k_people(method: str, most: int) -> None:
    rows = purchases(200)
    # The number of a row would link it to its person, so it is looked up by what it shows otherwise.
    found = anonymized(rows, rows_per_person=most, method=method, others=["row"]).rows.to_pylist()
    people_of: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    classes_of: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    number = Counter[str]()
    for shown in found:
        original = rows[shown["row"]]
        assert all(holds(shown[name], original[name]) for name in QUASI)
        kind = tuple(shown[name] for name in QUASI)
        people_of[kind].add(original["id"])
        classes_of[original["id"]].add(kind)
        number[original["id"]] += 1
    assert min(map(len, people_of.values())) >= 5
    assert min(Counter(map(frozenset, classes_of.values())).values()) >= 5
    had = Counter(row["id"] for row in rows)
    assert number == {person: min(most, n) for person, n in had.items()}


def test_rows_are_told_apart_where_everybody_has_both() -> None:
    # Everybody buys cheap things and dear ones, so these stay apart.
    rows = [{"id": i, "amount": amount} for i in range(20) for amount in (1.0, 1.0, 900.0)]
    found = anonymized(rows, quasi_identifiers={"amount": {"step": 10}}, rows_per_person=9)
    assert Counter(found.rows["amount"].to_pylist()) == {"[0, 10)": 40, "[900, 910)": 20}
    assert [(check.promised, check.measured) for check in found.checks] == [(5, 20), (5, 20), (5, 20)]
    # One person has the dear one alone: everybody in the class would know.
    rows = [row for row in rows if row["id"] != 3 or row["amount"] > 1]
    found = anonymized(rows, k=20, quasi_identifiers={"amount": {"step": 10}}, rows_per_person=9)
    assert len(set(found.rows["amount"].to_pylist())) == 1


def test_a_person_with_many_rows_is_no_crowd() -> None:
    rows = [{"id": 0, "age": 30} for _ in range(50)] + [{"id": i, "age": 60} for i in range(1, 10)]
    found = anonymized(rows, quasi_identifiers={"age": {"step": 5}}, rows_per_person=50)
    assert "[30, 35)" not in found.rows["age"].to_pylist()
    with pytest.raises(InputError, match="the table has 4 people, fewer than k = 5"):
        anonymized([{"id": i % 4, "age": 30} for i in range(50)], quasi_identifiers=["age"], rows_per_person=50)


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
def test_the_order_of_rows_changes_nothing(method: str) -> None:
    rows = purchases(120, seed=2)
    asked: dict[str, Any] = {"rows_per_person": 3, "method": method, "sensitive": ["what"]}
    first = anonymized(rows, **asked).rows
    assert anonymized(random.Random(1).sample(rows, len(rows)), threads=1, **asked).rows.equals(first)


def test_what_names_most_people_is_refused() -> None:
    rows = [{**row, "device": f"d{row['id']}"} for row in purchases(60)]
    with pytest.raises(InputError, match="a column that is shown as it is names most people"):
        anonymized(rows, rows_per_person=9, others=["device"])


def test_what_has_no_mean_is_refused() -> None:
    rows = [{"id": i % 10, "shop": "a"} for i in range(20)]
    with pytest.raises(InputError, match="column 'shop' is VARCHAR, of which there is no mean"):
        anonymized(rows, quasi_identifiers=["shop"], aggregate={"shop": "mean"})


def test_one_row_is_made_of_all() -> None:
    rows = [
        {"id": i % 10, "age": 40 + i % 10 // 5, "amount": float(i // 10), "shop": "ab"[i // 10 == 0], "zip": "1"}
        for i in range(30)
    ]
    found = anonymized(
        rows,
        quasi_identifiers={"age": {"step": 1}, "zip": {}},
        sensitive=["shop"],
        others=["amount"],
        aggregate={"amount": "sum", "shop": "mode"},
    )
    assert found.rows.to_pylist() == [
        {"age": age, "zip": "1", "shop": "a", "amount": 3.0} for age in ["40"] * 5 + ["41"] * 5
    ]
    with pytest.raises(InputError, match="'amount' differs between the rows of one person"):
        anonymized(rows, quasi_identifiers=["age"], others=["amount"], aggregate={})
    none = [{**row, "id": None if row["id"] == 1 else row["id"]} for row in rows]
    with pytest.raises(InputError, match="names some people twice, or not at all"):
        anonymized(none, quasi_identifiers=["age"], aggregate={"age": "max"})
    with pytest.raises(InputError, match="'id' is null in some rows"):
        anonymized(none, quasi_identifiers=["age"], rows_per_person=3)


@pytest.mark.parametrize(
    ("how", "made"), [("min", 1.0), ("max", 6.0), ("sum", 9.0), ("mean", 3.0), ("median", 2.0), ("count", 3)]
)
def test_what_a_row_is_made_of(how: str, made: float) -> None:
    rows = [{"id": i, "age": 30, "amount": amount} for i in range(6) for amount in (1.0, 6.0, 2.0)]
    found = anonymized(rows, quasi_identifiers=["age"], others=["amount"], aggregate={"amount": how})
    assert found.rows["amount"].to_pylist() == [made] * 6


def test_a_pseudonym_tells_nothing_of_the_person() -> None:
    rows = [{**row, "id": f"p{number}"} for number, row in enumerate(purchases(100))]
    asked: dict[str, Any] = {"pseudonym": "who", "others": ["what"]}
    found = anonymized(rows, **asked).rows
    assert found.column_names == [*QUASI, "what", "who"]
    assert len(set(found["who"].to_pylist())) == len(rows)
    # Whoever knows everybody's id and the seed finds nothing: other ids give the same pseudonyms.
    renamed = [{**row, "id": f"q{number * 7 % len(rows)}"} for number, row in enumerate(rows)]
    assert anonymized(renamed, **asked).rows.equals(found)
    assert anonymized(rows, seed=1, **asked).rows["who"].to_pylist() != found["who"].to_pylist()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rows_per_person": 3}, "rows_per_person needs unit"),
        ({"within": "groups"}, "within needs unit"),
        ({"unit": "id", "rows_per_person": 3, "aggregate": {"age": "max"}}, "give one of them"),
        ({"unit": "id", "aggregate": {"id": "max"}}, "'id', which is no column that is shown"),
        ({"unit": "id", "rows_per_person": 3, "pseudonym": "who"}, "how many rows each person has"),
        ({"unit": "id", "rows_per_person": 3, "method": "lattice"}, "not people"),
        ({"unit": "id", "rows_per_person": 3, "population": "all", "k_map": 9}, "cannot be given with rows_per_person"),
        ({"unit": "id", "within": "groups", "population": "all", "k_map": 9}, "cannot be given with within"),
        ({"unit": "id", "rows_per_person": 3, "quasi_identifiers": {"age": {"show": "mean"}}}, "has show mean"),
        ({"unit": "id", "rows_per_person": 3, "quasi_identifiers": {"age": {"show": "tight"}}}, "has show tight"),
        ({"unit": "id", "rows_per_person": 3, "quasi_identifiers": {"job": {"grouping": "frequency"}}}, "has grouping"),
        ({"unit": "age"}, "'age' names people, so it is not shown"),
        ({"pseudonym": "AGE"}, "'AGE' is a column that is shown"),
    ],
)
def test_what_does_not_go_together_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        table_settings({"k": 5, "quasi_identifiers": ["age"], **asked})


@pytest.mark.parametrize("asked", [{"method": "mdav"}, {"relaxed": True}])
def test_methods_for_numbers_put_people_into_classes(asked: dict[str, Any]) -> None:
    rows = purchases(120, seed=4)
    quasi = {"age": {"step": 5}, "amount": {"step": 50}}
    found = anonymized(rows, quasi_identifiers=quasi, rows_per_person=3, others=["row"], **asked).rows.to_pylist()
    people_of: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for shown in found:
        original = rows[shown["row"]]
        assert all(holds(shown[name], original[name]) for name in quasi)
        people_of[tuple(shown[name] for name in quasi)].add(original["id"])
    assert len(people_of) > 1
    assert min(map(len, people_of.values())) >= 5


def test_means_and_a_population_go_with_one_row_of_each() -> None:
    rows = purchases(200, seed=5)
    quasi: dict[str, Any] = {"age": {"step": 5}, "amount": {"step": 50, "show": "mean"}}
    found = anonymized(rows, quasi_identifiers=quasi, aggregate=dict.fromkeys(("age", "amount"), "max"))
    shown = found.rows.to_pylist()
    assert len(shown) == 200
    assert any(not cell["amount"].startswith(("[", "<", ">")) for cell in shown)
    everybody = pa.Table.from_pylist([{"age": row["age"]} for row in rows for _ in range(2)])
    for how in ({"rows_per_person": 1}, {"aggregate": {}}):
        kept = anonymized(
            rows, quasi_identifiers={"age": {"step": 5}}, population=everybody, k_map=40, **how
        )  # fmt: skip
        [measured] = [check.measured for check in kept.checks if check.check.startswith("k-map")]
        matched = Counter(row["age"] for row in everybody.to_pylist())
        cells = {cell["age"] for cell in kept.rows.to_pylist()}
        assert measured == min(sum(n for age, n in matched.items() if holds(cell, age)) for cell in cells) >= 40


def test_one_row_of_each_may_be_diverse() -> None:
    found = anonymized(purchases(200), rows_per_person=1, sensitive=["what"], l=2, pseudonym="who")
    assert found.rows.num_rows == 200
    assert all(check.passed for check in found.checks)


# Several tables of the same people


def clinic(seed: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Three tables of the same 300 people, the last with several rows of each."""
    draws = np.random.default_rng(seed)
    patients, jobs, visits = [], [], []
    for i in range(300):
        patients.append({"id": i, "age": int(draws.integers(18, 90)), "zip": f"0{draws.integers(2100, 2160)}"})
        jobs.append({"id": i, "job": str(draws.choice(list("abcdefgh"))), "income": int(draws.lognormal(10, 1))})
        for _ in range(int(draws.integers(1, 4))):
            visits.append({"id": i, "ward": str(draws.choice(list("stuvw"))), "cost": int(draws.lognormal(6, 1))})
    return {"patients": patients, "jobs": jobs, "visits": visits}


ASKED: dict[str, dict[str, Any]] = {
    "patients": {"quasi_identifiers": {"age": {"step": 5}, "zip": {"kind": "prefix"}}},
    "jobs": {"quasi_identifiers": {"job": {}, "income": {}}},
    "visits": {"quasi_identifiers": {"ward": {}, "cost": {}}, "rows_per_person": 3},
}


def smallest_intersection(tables: dict[str, list[dict[str, Any]]], **asked: Any) -> tuple[int, dict[str, Any]]:
    """Of how many people the least is who can be told by all that the tables show of somebody who is in all of them."""
    seen: dict[Any, list[frozenset[Any]]] = defaultdict(list)
    results = {}
    for name, rows in tables.items():
        numbered = [{**row, "row": number} for number, row in enumerate(rows)]
        results[name] = anonymized(numbered, **ASKED[name], others=["row"], **asked)
        classes_of: dict[Any, set[Any]] = defaultdict(set)
        for shown in results[name].rows.to_pylist():
            kind = tuple(shown[column] for column in ASKED[name]["quasi_identifiers"])
            classes_of[rows[shown["row"]]["id"]].add(kind)
        for person, kinds in classes_of.items():
            seen[person].append(frozenset(kinds))
    return min(Counter(map(tuple, seen.values())).values()), results


def test_each_for_itself_three_tables_single_people_out() -> None:
    assert smallest_intersection(clinic())[0] == 1


def test_within_the_same_groups_nobody_is_singled_out() -> None:
    tables = clinic()
    groups = anonymized(tables["patients"], **ASKED["patients"], keep_groups=True).groups
    assert groups is not None
    assert groups.column_names == ["id", "group_id"]
    least, results = smallest_intersection(tables, within=groups)
    assert least >= 5
    for name, result in results.items():
        measured = {check.check: check.measured for check in result.checks}
        assert measured["people in the smallest group that is shown alike in every table made within it"] >= 5, name
        assert measured["groups whose people are not all shown alike"] == 0


def test_what_is_not_within_is_measured() -> None:
    tables = clinic()
    patients = anonymized(tables["patients"], **ASKED["patients"], keep_groups=True)
    with pytest.warns(UserWarning, match="k is promised for each table only"):
        found = kgather.anonymize(
            pa.Table.from_pylist(tables["jobs"]),
            k=5, unit="id", keep_groups=True, beside=[patients.groups], **ASKED["jobs"],
        )  # fmt: skip
    assert patients.groups is not None
    assert found.groups is not None
    one, other = (dict(zip(*(g[name].to_pylist() for name in ("id", "group_id")), strict=True))
                  for g in (patients.groups, found.groups))  # fmt: skip
    by_hand = min(Counter((one[person], other[person]) for person in one).values())
    [check] = [each for each in found.checks if "intersection" in each.check]
    assert (check.promised, check.measured) == (None, by_hand)
    assert by_hand == 1


def test_groups_that_would_tell_people_apart_are_refused() -> None:
    patients = clinic()["patients"]
    groups = [{"id": row["id"], "group_id": row["id"] // 10} for row in patients]

    def within(rows: list[dict[str, Any]], given: list[dict[str, Any]]) -> None:
        anonymized(rows, **ASKED["patients"], within=pa.Table.from_pylist(given))

    within(patients, groups)
    within([row for row in patients if row["id"] >= 10], groups)  # a whole group that is not there
    with pytest.raises(InputError, match="have people who are in the table and others who are not"):
        within(patients[3:], groups)
    with pytest.raises(InputError, match="do not have all people of the table"):
        within(patients, groups[10:])
    with pytest.raises(InputError, match="name some people twice, or put them into none"):
        within(patients, [*groups, groups[0]])
    with pytest.raises(InputError, match="name some people twice, or put them into none"):
        within(patients, [{"id": row["id"], "group_id": row["group_id"] or None} for row in groups])
    with pytest.raises(InputError, match="fewer than k = 5"):
        within(patients, [{"id": row["id"], "group_id": row["id"] // 3} for row in patients])


def test_sql_gives_the_same_as_python() -> None:
    rows = purchases(80)
    with duckdb.connect() as con:
        kgather.load(con)
        con.register("given", pa.Table.from_pylist(rows))
        con.execute("create table bought as from given")
        asked = (
            "{k: 5, unit: 'id', rows_per_person: 4, quasi_identifiers: {age: {step: 5}, zip: {kind: 'prefix'}, "
            "amount: {step: 50}, shop: {}}}"
        )
        shown = con.sql(f"from kg_anonymize('bought', {asked})").fetchall()
        python = anonymized(rows, rows_per_person=4, keep_groups=True)
        assert shown == [tuple(row.values()) for row in python.rows.to_pylist()]
        con.execute(f"create table groups as from kg_anonymize_groups('bought', {asked})")
        assert python.groups is not None
        assert con.sql("from groups").fetchall() == [tuple(row.values()) for row in python.groups.to_pylist()]
        within = asked.removesuffix("}") + ", within: 'groups', beside: ['groups']}"
        [(report,)] = con.sql(f"select report::json->'people' from kg_anonymize_report('bought', {within})").fetchall()
        assert '"torn":0' in report
        with pytest.raises(duckdb.Error, match="names some people twice"):
            con.sql("from kg_anonymize('bought', {k: 5, unit: 'id', quasi_identifiers: ['age']})").fetchall()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_everybody_of_a_group_is_on_both_sides(data: st.DataObject) -> None:
    m = data.draw(st.integers(1, 40))
    person = np.array(data.draw(st.lists(st.integers(0, 7), min_size=m, max_size=m)))
    group = person // data.draw(st.integers(1, 8))
    codes = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 5)] * 2), min_size=m, max_size=m)))
    ends = np.arange(6) / 5
    priced = losses([ColumnLoss(6, low=ends, high=ends)] * 2)
    found = part_rows(codes, np.ones(m, dtype=np.int64), person, group, priced)
    assert sorted(set(found.tolist())) == list(range(int(found.max()) + 1))
    for one in range(m):
        members = set(person[group == group[one]].tolist())
        assert set(person[found == found[one]].tolist()) == members


def test_a_sum_beyond_its_type_is_refused_with_what_to_do() -> None:
    table = pa.table({"id": [1, 1, 2, 2, 3, 3], "paid": pa.array([9 * 10**37] * 6, pa.decimal128(38, 0))})
    with pytest.raises(InputError, match="beyond the range of its type"):
        kgather.anonymize(table, k=3, unit="id", aggregate={"paid": "sum"}, quasi_identifiers=["paid"])
