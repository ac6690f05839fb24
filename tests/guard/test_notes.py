"""What an answer says of how it came about, by hand."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from kgather._guard.engine import Decided
from kgather._guard.notes import beside, notes


def decided(numbers: Sequence[Sequence[tuple[float | None, float | None, str]]]) -> Decided:
    """One block for each list, with one group for each number, its error and its kind."""
    tables: dict[str, pa.Table] = {}
    errors: dict[str, pa.Table] = {}
    for at, block in enumerate(numbers, 1):
        values, sds, kinds = ([one[place] for one in block] for place in range(3))
        keys = [f"key {number}" for number in range(len(block))]
        columns: Mapping[str, object] = {"value_1_error": pa.array(sds, pa.float64()), "value_1_kind": kinds}
        tables[f"kg_block_{at}"] = pa.table({"key_1": keys, "value_1": pa.array(values, pa.float64())})
        errors[f"kg_block_{at}"] = pa.table({"key_1": keys, **columns})
    return Decided(tables, errors)


MEASURED = (200.0, 4.0, "measured")


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ([MEASURED], "The numbers are measured; the largest standard error is 2% of its number."),
        (
            [MEASURED, (-10.0, 1.25, "modelled")],
            "The numbers are measured and modelled; the largest standard error is 12% of its number.",
        ),
        (
            [(10.0, 0.001, "estimated, bounded")],
            "The numbers are estimated; the largest standard error is 0.01% of its number. Rows of people who have "
            "many are not counted in full: counts and sums of rows are corrected for what is missing on average, and "
            "means lean towards people with few rows.",
        ),
        (
            [MEASURED, (None, None, "measured"), (0.0, 0.0, "measured")],
            "The numbers are measured; the largest standard error is 2% of its number; 1 of 3 numbers are withheld: "
            "noise is larger than they are.",
        ),
        (
            [(None, None, "measured")],
            "The numbers are measured, and all of them are withheld: noise is larger than they are.",
        ),
        ([(0.1, 0.45, "measured")], "The numbers are measured; the largest standard error is 450% of its number."),
        ([], "Noisy numbers of people decide what is shown; no number here has a standard error."),
    ],
    ids=["one", "two kinds", "bounded", "withheld", "all withheld", "a correlation", "no group"],
)
def test_sentences(block: list[tuple[float | None, float | None, str]], sentence: str) -> None:
    assert notes("measured", decided([block])) == (sentence,)


def test_each_block_has_its_own() -> None:
    said = notes("measured", decided([[MEASURED], [(10.0, 1.0, "estimated")]]))
    assert said == (
        "Block 1 of 2: the numbers are measured; the largest standard error is 2% of its number.",
        "Block 2 of 2: the numbers are estimated; the largest standard error is 10% of its number.",
    )


def test_groups_without_numbers() -> None:
    keys = pa.table({"key_1": ["a", "b"]})
    (said,) = notes("measured", Decided({"kg_block_1": keys}, {"kg_block_1": keys}))
    assert said.startswith("Noisy numbers of people decide what is shown")


def test_other_modes_have_one_sentence_for_all() -> None:
    found = decided([[MEASURED], [MEASURED]])
    assert notes("exact", Decided(found.tables, {}, "It does not protect against everything.")) == (
        "It does not protect against everything.",
    )
    assert len(notes("generalized", Decided(found.tables, {}))) == 1
    for mode in ("measured", "exact", "generalized"):
        assert notes(mode, Decided({}, {})) == ()


def test_errors_stand_behind_a_relation() -> None:
    found = decided([[MEASURED, (10.0, 1.0, "modelled")]])
    table = beside(found.tables["kg_block_1"], found.errors["kg_block_1"])
    assert table.to_pylist() == [
        {"key_1": "key 0", "value_1": 200.0, "value_1_error": 4.0, "value_1_kind": "measured"},
        {"key_1": "key 1", "value_1": 10.0, "value_1_error": 1.0, "value_1_kind": "modelled"},
    ]
