"""k-map and delta-presence: what is written is compared with the population by hand."""

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_data import HIERARCHY, LABELS, Row, classes, holds, people
from typer.testing import CliRunner

import kgather
from kgather._cli.app import app
from kgather._errors import InputError
from kgather.udfs.recoding.loss import ColumnLoss, losses
from kgather.udfs.recoding.population import matches

QUASI = {"age": {"step": 5}, "zip": {"kind": "prefix"}, "job": {"hierarchy": HIERARCHY}}
EVERYBODY = people(1200, seed=6)
TABLE = EVERYBODY[:300]


def shares(rows: list[Row], population: list[Row]) -> list[tuple[int, int]]:
    """Of each class its rows, and the people of the population for whom all cells are true."""
    found = []
    for cells, inside in classes(rows, list(QUASI)).items():
        matched = sum(
            all(
                holds(cell, person[name], LABELS if name == "job" else None)
                for name, cell in zip(QUASI, cells, strict=True)
            )
            for person in population
        )
        found.append((len(inside), matched))
    return found


def anonymized(**asked: Any) -> kgather.AnonymizedTable:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return kgather.anonymize(
            pa.Table.from_pylist(TABLE),
            **{"k": 2, "quasi_identifiers": QUASI, "population": pa.Table.from_pylist(EVERYBODY), **asked},
        )


@pytest.mark.parametrize("method", ["mondrian", "cluster", "lattice"])
@pytest.mark.parametrize("asked", [{"k_map": 30}, {"presence": [0, 0.5]}, {"presence": [0.1, 0.6], "k_map": 10}])
def test_the_population_matches_every_class(method: str, asked: dict[str, Any]) -> None:
    found = anonymized(method=method, **asked)
    counted = shares(found.rows.to_pylist(), EVERYBODY)
    assert min(matched for _, matched in counted) >= asked.get("k_map", 1)
    low, high = asked.get("presence", (0, 1))
    assert low - 1e-9 <= min(n / matched for n, matched in counted)
    assert max(n / matched for n, matched in counted) <= high + 1e-9
    assert all(check.passed for check in found.checks)
    measured = {check.check.partition(":")[0]: check.measured for check in found.checks}
    if "k_map" in asked:
        assert measured["k-map"] == min(matched for _, matched in counted)
    assert found.risks["population_journalist"] == round(max(1 / matched for _, matched in counted), 4)
    named = sum(n / matched for n, matched in counted) / len(TABLE)
    assert found.risks["population_marketer"] == pytest.approx(named, abs=1e-4)
    assert len(counted) > 1
    assert found.rows.num_rows == len(TABLE)


def test_without_it_classes_match_too_few() -> None:
    plain = anonymized(population=None)
    assert min(matched for _, matched in shares(plain.rows.to_pylist(), EVERYBODY)) < 30


def test_sensitive_columns_keep_their_models_too() -> None:
    found = anonymized(k_map=20, sensitive={"illness": {"l": 2, "diversity": "distinct"}})
    inside = classes(found.rows.to_pylist(), list(QUASI)).values()
    assert min(len({row["illness"] for row in rows}) for rows in inside) >= 2
    assert Counter(found.rows["illness"].to_pylist()) == Counter(row["illness"] for row in TABLE)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"k_map": 5000}, "the population does not hold what is asked"),
        ({"presence": [0, 0.1]}, "the population does not hold what is asked"),
        ({}, "population goes with k_map, presence or both"),
        ({"k_map": 5, "population": None}, "population goes with k_map"),
        ({"presence": [0.5, 0.2]}, "the least and the greatest share"),
        ({"k_map": 5, "population": "people.csv"}, "population is given as the table is"),
        ({"k_map": 5, "population": pa.table({"age": [1]})}, "the population has no column 'zip'"),
        (
            {"k_map": 5, "quasi_identifiers": {**QUASI, "age": {"show": "tight"}}},
            "column 'age' shows tight",
        ),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        anonymized(**asked)


def test_people_in_boxes_are_counted_as_by_hand() -> None:
    random = np.random.default_rng(0)
    ends = np.arange(40) / 39
    priced = losses([ColumnLoss(40, low=ends, high=ends)] * 3)
    codes = random.integers(0, 40, (3000, 3)).astype(np.int32)
    weight = random.integers(1, 5, 3000)
    low = random.integers(0, 40, (200, 3)).astype(np.int32)
    high = np.minimum(low + random.integers(0, 25, (200, 3)), 39).astype(np.int32)
    found = matches(low, high, codes, weight, priced)
    for c in range(200):
        inside = ((codes >= low[c]) & (codes <= high[c])).all(axis=1)
        assert found[c] == weight[inside].sum()


def test_in_sql_and_by_command(tmp_path: Path) -> None:
    asked = "{k: 2, quasi_identifiers: {age: {step: 5}, job: {}}, population: 'everybody', k_map: 40}"
    with duckdb.connect() as con:
        kgather.load(con)
        con.register("given", pa.Table.from_pylist(TABLE))
        con.register("all_given", pa.Table.from_pylist(EVERYBODY))
        con.execute("create table people as from given; create table everybody as from all_given")
        rows = con.sql(f"from kg_anonymize('people', {asked})").to_arrow_table()
    quasi = {"age": {"step": 5}, "job": {}}
    assert rows.equals(anonymized(quasi_identifiers=quasi, k_map=40).rows)
    for name, given in (("people", TABLE), ("everybody", EVERYBODY)):
        table = pa.Table.from_pylist([{"age": row["age"], "job": row["job"]} for row in given])
        pq.write_table(table, tmp_path / f"{name}.parquet")
    arguments = [
        "anonymize", tmp_path / "people.parquet", "--k", 2, "--quasi-identifiers", "age,job", "--step", "age=5",
        "--population", tmp_path / "everybody.parquet", "--k-map", 40, "--out", tmp_path / "release",
    ]  # fmt: skip
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    assert pq.read_table(tmp_path / "release" / "table.parquet").to_pylist() == rows.to_pylist()
    assert "k-map" in done.output
    assert "everybody" not in (tmp_path / "release" / "audit.json").read_text(encoding="utf-8")
    assert all(check.passed for check in kgather.verify(tmp_path / "release").checks)


def test_words_of_cells_are_read_as_they_are_written() -> None:
    # NaN is shown as null, and ranges of an order may have any values at their ends.
    everybody = [
        {"size": size, "grade": grade} for size in (1.5, 2.5, float("nan"), 3.5) for grade in ("a", "b to c", "d") * 5
    ]
    found = kgather.anonymize(
        pa.Table.from_pylist(everybody[::2]), k=2, k_map=9, population=pa.Table.from_pylist(everybody),
        quasi_identifiers={"size": {"step": 1}, "grade": {"order": ["a", "b to c", "d"]}},
    )  # fmt: skip
    [check] = found.checks[-1:]
    assert check.check.startswith("k-map")
    assert check.measured >= 9
