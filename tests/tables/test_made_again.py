"""Releases of every kind of table are made again beside their original, or it is said why not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._settings.table import table_settings
from kgather._tables.again import Opened, opened, release_settings
from kgather._tables.attacks import attack
from kgather._tables.audit import risks_of_release
from kgather._tables.metrics import measure_table
from kgather._tables.release import publish_table
from kgather._tables.sweep import sweep

TREE = [["flu", "lungs"], ["cold", "lungs"], ["gout", "joints"], ["asthma", "lungs"]]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Visits of 150 people, one to three each."""
    draws = np.random.default_rng(7)
    rows = [
        {
            "id": i,
            "age": int(age),
            "cost": int(draws.lognormal(4, 1)),
            "illness": str(draws.choice([a for a, _ in TREE])),
        }
        for i, age in enumerate(draws.integers(18, 90, 150))
        for _ in range(int(draws.integers(1, 4)))
    ]
    file = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    return str(file)


def made(original: str, folder: Path, **asked: Any) -> Path:
    settings = table_settings(
        {
            "k": 5, "unit": "id", "quasi_identifiers": {"age": {"step": 5}, "cost": {"step": 20}},
            "sensitive": ["illness"], "seed": 3, **asked,
        }
    )  # fmt: skip
    return publish_table(original, folder / "release", settings, LoadOptions()).folder


def found_in(release: Path, original: str) -> Opened:
    return opened(release, original, release_settings(release, seed=3), LoadOptions())


@pytest.mark.parametrize("method", ["mondrian", "cluster", "mdav"])
def test_several_rows_of_a_person_cost_as_their_audit_says(original: str, tmp_path: Path, method: str) -> None:
    release = made(original, tmp_path, rows_per_person=2, method=method)
    found = found_in(release, original)
    assert found.table.person is not None
    assert len(np.unique(found.table.person)) == 150
    said = json.loads((release / "audit.json").read_text(encoding="utf-8"))["report"]
    assert {name: said[name] for name in ("loss", "costs", "columns")} == {
        name: found.recoded.report[name] for name in ("loss", "costs", "columns")
    }
    assert next(m.value for m in measure_table(release, original, seed=3) if m.metric == "loss") == said["loss"]
    with pytest.raises(InputError, match="people have several rows"):
        attack(found, {}, known=[1], targets=5, seed=0)
    with pytest.raises(InputError, match="people have several rows"):
        measure_table(release, original, seed=3, model="illness")


@pytest.mark.parametrize(
    "asked", [{"rows_per_person": 1}, {"aggregate": {"age": "max", "cost": "sum", "illness": "mode"}}]
)
def test_one_row_of_each_is_attacked(original: str, tmp_path: Path, asked: dict[str, Any]) -> None:
    # Values are numbered anew for t over a hierarchy, and not for what is compared with the file.
    release = made(original, tmp_path, sensitive={"illness": {"t": 0.3, "hierarchy": TREE}}, **asked)
    found = found_in(release, original)
    assert found.evidence.size.sum() == 150
    left = risks_of_release(release, found.settings)
    results = attack(found, left, known=[2], targets=150, seed=0).results
    [linkage] = [result for result in results if result.attack == "linkage"]
    assert linkage.user is not None
    assert 1 / 150 <= linkage.user.value <= 1 / 5
    assert {result.attack for result in results} == {"linkage", "homogeneity", "background", "minimality"}


def test_what_is_shown_beyond_ranges_is_not_linked(original: str, tmp_path: Path) -> None:
    quasi = {"age": {"step": 5}, "cost": {"step": 20, "show": "mean"}}
    release = made(original, tmp_path, rows_per_person=1, quasi_identifiers=quasi)
    found = found_in(release, original)
    left = risks_of_release(release, found.settings)
    with pytest.raises(InputError, match="'cost' shows more than ranges"):
        attack(found, left, known=[1], targets=5, seed=0)
    results = attack(found, left, known=[1], targets=5, seed=0, attacks=["homogeneity", "background"]).results
    assert [result.attack for result in results] == ["homogeneity", "background"]
    with pytest.raises(InputError, match="--model reads ranges and labels"):
        measure_table(release, original, seed=3, model="illness")


def test_what_the_release_does_not_hold_is_not_guessed(original: str, tmp_path: Path) -> None:
    release = made(original, tmp_path, rows_per_person=1, population=original, k_map=8)
    with pytest.raises(InputError, match="made with a population"):
        release_settings(release, seed=3)
    asked: dict[str, Any] = {"unit": "id", "quasi_identifiers": ["age", "cost"]}
    for more, said in (
        ({"rows_per_person": 2}, "people have several rows"),
        ({"rows_per_person": 1, "population": original, "k_map": 8}, "leave population out"),
    ):
        with pytest.raises(InputError, match=said):
            sweep(original, {**asked, **more}, ["mondrian"], [5], [0.0], LoadOptions())
    swept = sweep(original, {**asked, "rows_per_person": 1}, ["mondrian", "mdav"], [5], [0.0], LoadOptions())
    assert [row.refused for row in swept.rows] == [None, None]
