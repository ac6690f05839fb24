"""Tables and names that were not made to be easy."""

import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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
        (pa.table({"value": [Decimal("0.29999999999999999999"), Decimal("0.5")]}), "more than 15 digits"),
        (pa.Table.from_arrays([pa.array([1, 2]), pa.array(["Ann", "Bob"])], names=["value", "Value"]), "2 columns are"),
    ],
    ids=["lists", "structs", "bytes", "infinite", "long", "decimals", "names"],
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


@pytest.mark.parametrize(
    ("collation", "default", "asked"),
    [
        ("nocase", "", "quasi_identifiers: ['name']"),
        ("noaccent", "", "quasi_identifiers: ['age'], sensitive: ['name']"),
        (None, "nocase", "quasi_identifiers: ['name']"),
    ],
)
def test_collations_that_join_what_a_reader_tells_apart_are_refused(
    collation: str | None, default: str, asked: str
) -> None:
    with duckdb.connect() as con:
        kgather.load(con)
        con.execute(f"create table people (age integer, name varchar {'collate ' + collation if collation else ''})")
        con.execute("insert into people select 1, x from (values ('A'), ('a'), ('A'), ('a'), ('b'), ('b')) as r (x)")
        con.execute(f"set default_collation = '{default}'")
        with pytest.raises(duckdb.Error, match="is compared by a collation"):
            con.execute(f"create table shown as from kg_anonymize('people', {{k: 2, {asked}}})")
        con.execute("set default_collation = ''")
        con.execute("create view plain as select * replace (name collate c as name) from people")
        con.execute(f"create table shown as from kg_anonymize('plain', {{k: 2, {asked}}})")
        assert con.sql("select count(*) from shown").fetchall() == [(6,)]


def test_the_order_that_a_database_takes_by_default_changes_no_cell() -> None:
    people = "select ['farmer', 'baker', 'clerk'][1 + i % 3] as job, i % 2 = 0 as owner, i // 2 % 4 as ill, i as number"
    asked = "{k: 5, quasi_identifiers: ['job', 'owner'], sensitive: ['ill'], others: ['number'], t: 0.4}"
    found = []
    for order, nulls in (("asc", "nulls_last"), ("desc", "nulls_first")):
        with duckdb.connect() as con:
            kgather.load(con)
            con.execute(f"set default_order = '{order}'")
            con.execute(f"set default_null_order = '{nulls}'")
            con.execute(f"create table people as {people} from range(240) as r (i)")
            con.execute(f"create table shown as from kg_anonymize('people', {asked})")
            found.append(con.sql("from shown order by number asc").fetchall())
            assert con.sql(
                "select count(*) from shown join people using (number) "
                "where shown.job not in (people.job, '*') or shown.ill <> people.ill"
            ).fetchall() == [(0,)]
    assert found[0] == found[1]


@pytest.mark.parametrize("asked", [{"step": 10}, {"cuts": [0.0, 50.0]}, {"widest": 1}])
def test_cuts_of_a_text_are_refused(asked: dict[str, object]) -> None:
    table = pa.table({"age": ["20", "21", "22", "unknown"] * 10})
    with pytest.raises(InputError, match=r"'age' is VARCHAR, a category, and (step|cuts|widest) goes with kind number"):
        kgather.anonymize(table, k=5, quasi_identifiers={"age": asked})


def test_two_columns_of_a_file_with_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays(
        [pa.array(["Ann"] * 6), pa.array([1] * 6), pa.array(["pen"] * 6)], ["Name", "age", "name"]
    )
    pq.write_table(table, tmp_path / "people.parquet")
    with pytest.raises(InputError, match="2 columns are named 'Name'"):
        kgather.anonymize(str(tmp_path / "people.parquet"), tmp_path / "out", k=2, quasi_identifiers=["age"])


def test_suppression_gives_way_where_the_others_cannot_keep_t() -> None:
    table = pa.table({"v": ["a"] * 20 + [f"u{i}" for i in range(20)], "s": ["x"] * 20 + ["y"] * 20})
    found = kgather.anonymize(
        table, k=5, quasi_identifiers=["v"], sensitive={"s": {"t": 0.1}}, method="lattice", suppress=0.5
    )
    assert set(found.rows["v"].to_pylist()) == {"*"}


def test_groups_without_their_column_are_refused() -> None:
    table = pa.table({"id": list(range(20)), "age": [20, 40] * 10})
    with pytest.raises(InputError, match=r"the groups of within has no column 'group_id'"):
        kgather.anonymize(table, k=5, quasi_identifiers=["age"], unit="id", within=pa.table({"id": list(range(20))}))


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
