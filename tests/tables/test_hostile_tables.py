"""Tables and names that were not made to be easy."""

import datetime

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from table_data import classes

import kgather
from kgather._errors import InputError
from kgather._recoding.hierarchies import members

NAMES = [
    'a "quoted" name', "select", "it's", "kg_q1", "kg_class", "a,b", "ÜNÏ", "  ", "kg_value", "KG_RANK", "kg_s1",
    "kg_o1",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns_may_be_anything(name: str) -> None:
    table = pa.table({name: [1, 1, 2, 2], f"{name} too": ["x", "y", "x", "y"], "o": [1, 2, 3, 4]})
    found = kgather.anonymize(
        table, k=2, quasi_identifiers={name: {"step": 1}}, sensitive={f"{name} too": {"l": 2}}, others=["o"]
    )
    assert found.rows.column_names == [name, f"{name} too", "o"]
    assert found.rows.num_rows == 4
    # In the order of what is shown, whatever the names: as texts, [-5, 0) comes before [10, 15).
    table = pa.table({name: [10, 11, -3, -4], "o": [1, 2, 3, 4]})
    shown = kgather.anonymize(table, k=2, quasi_identifiers={name: {"step": 5}}, others=["o"]).rows.to_pylist()
    assert shown == sorted(shown, key=lambda row: (row[name], row["o"]))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1e300, -1e300, 1.0, 2.0, 3.0, 4.0, 5e-324, 0.0, -0.0, None]),
        pa.array([float("nan"), 1.0, 2.0, float("nan"), 3.0, 4.0]),
        pa.array([-(2**53) + 1, 2**53 - 1, 0, 1, 2, 3]),
        pa.array(["", " ", "*", "a'b", 'a"b', "a,b", "é", "\n", None, "NULL"]),
        pa.array([True, False, None, True, False, True]),
        pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, datetime.date(2020, 2, 29)] * 2),
        pa.array([datetime.datetime(2020, 1, day, 5, 6, 7) for day in range(1, 9)]),
        pa.array([datetime.time(day) for day in range(1, 9)]),
    ],
    ids=["floats", "nan", "integers", "texts", "booleans", "dates", "timestamps", "times"],
)
@pytest.mark.parametrize("method", ["mondrian", "cluster"])
def test_values_may_be_anything(values: pa.Array, method: str) -> None:
    table = pa.table({"value": values, "number": range(len(values))})
    found = kgather.anonymize(
        table, k=2, quasi_identifiers=["value"], others=["number"], method=method
    ).rows.to_pylist()
    assert sorted(row["number"] for row in found) == list(range(len(values)))
    assert min(map(len, classes(found, ["value"]).values())) >= 2


def test_few_people_with_large_numbers_make_few_cuts() -> None:
    table = pa.table({"value": [(-1) ** at * (2**53 - at) for at in range(1, 16)]})
    found = kgather.anonymize(table, k=10, quasi_identifiers=["value"])
    assert min(map(len, classes(found.rows.to_pylist(), ["value"]).values())) >= 10


@pytest.mark.parametrize("display", ["range", "tight", "mean", "median"])
def test_numbers_may_be_anything_whatever_cells_show(display: str) -> None:
    values = [1e300, -1e300, 1e308, -1e308, 1.0, 2.0, 5e-324, 0.0, -0.0, None, float("nan"), 3.0] * 2
    table = pa.table({"value": values, "number": range(len(values))})
    found = kgather.anonymize(
        table, k=3, quasi_identifiers={"value": {"show": display}}, others=["number"]
    ).rows.to_pylist()
    assert sorted(row["number"] for row in found) == list(range(len(values)))
    assert min(map(len, classes(found, ["value"]).values())) >= 3


@pytest.mark.parametrize(
    "asked",
    [{"show": "set"}, {"grouping": "frequency"}, {"grouping": "frequency", "show": "set"}, {"mask": ["##*", "*"]}],
    ids=["set", "grouping", "both", "mask"],
)
def test_texts_may_be_anything_whatever_cells_show(asked: dict[str, object]) -> None:
    values = ["", " ", "*", "a'b", 'a"b', "a,b", "é", "\n", None, "NULL", "{a}", "x" * 500] * 2
    table = pa.table({"value": values, "number": range(len(values))})
    found = kgather.anonymize(table, k=3, quasi_identifiers={"value": asked}, others=["number"]).rows.to_pylist()
    assert sorted(row["number"] for row in found) == list(range(len(values)))
    for shown, inside in classes(found, ["value"]).items():
        assert len(inside) >= 3
        named = members(shown[0]) if shown[0] else None
        if named is not None:
            assert {values[row["number"]] for row in inside} <= named


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (pa.table({"value": [[1], [2], [3]]}), "cannot be generalized"),
        (pa.table({"value": [{"a": 1}] * 3}), "cannot be generalized"),
        (pa.table({"value": [b"a"] * 3}), "cannot be generalized"),
        (pa.table({"value": [float("inf"), 1.0, 2.0]}), "infinite numbers"),
        (pa.table({"value": [2**60, 1, 2]}), "beyond 2\\^53"),
    ],
    ids=["lists", "structs", "bytes", "infinite", "long"],
)
def test_what_cannot_be_generalized_is_refused(table: pa.Table, told: str) -> None:
    with pytest.raises(InputError, match=told):
        kgather.anonymize(table, k=2, quasi_identifiers=["value"])


def test_a_value_of_the_data_is_in_no_message() -> None:
    table = pa.table({"job": ["secret-job", "b", "c"]})
    with pytest.raises(InputError) as raised:
        kgather.anonymize(table, k=2, quasi_identifiers={"job": {"hierarchy": [["b", "x"], ["c", "x"]]}})
    assert "secret-job" not in str(raised.value)
    assert "1 values of column 'job'" in str(raised.value)


def test_collations_do_not_join_what_a_reader_tells_apart() -> None:
    with duckdb.connect() as con:
        kgather.load(con)
        con.execute("create table people (name varchar collate nocase)")
        con.execute("insert into people select x from (values ('A'), ('a'), ('A'), ('a'), ('b'), ('b')) as r (x)")
        con.execute("create table shown as from kg_anonymize('people', {k: 2, quasi_identifiers: ['name']})")
        assert con.sql("select min(class_size) from kg_class_sizes('shown', ['name'])").fetchall()[0][0] >= 2
        assert con.sql("select count(*) from shown").fetchall() == [(6,)]


def test_two_hundred_columns_and_one_of_all_different_values() -> None:
    random = np.random.default_rng(0)
    wide = pa.table({f"c{at}": random.integers(0, 3, 300) for at in range(200)} | {"own": random.permutation(300)})
    for method in ("mondrian", "cluster"):
        found = kgather.anonymize(wide, k=5, quasi_identifiers=wide.column_names, method=method)
        assert found.rows.num_rows == 300
        assert found.checks[0].measured >= 5


def test_a_relation_that_changes_while_it_is_read_is_refused() -> None:
    with duckdb.connect() as con:
        kgather.load(con)
        con.execute("create view people as select cast(random() * 1e9 as integer) as age from range(50)")
        with pytest.raises(duckdb.Error, match="the table changed while it was read"):
            con.execute(
                "create table shown as from kg_anonymize('people', {k: 2, quasi_identifiers: {age: {step: 1}}})"
            )
