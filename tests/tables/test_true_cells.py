"""Every cell is true of the person it is shown for, whatever the columns: the labels are compared with the values."""

import datetime
import decimal
import re
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from table_data import classes, holds

import kgather

KINDS = ("int", "powers", "float", "decimal", "date", "timestamp", "text", "prefix", "boolean", "same")


def column(kind: str, n: int, random: np.random.Generator) -> list[Any]:
    if kind == "int":
        return random.integers(-50, 50, n).tolist()
    if kind == "powers":
        return [-(2 ** int(x)) for x in random.integers(0, 40, n)]
    if kind == "float":
        return random.standard_cauchy(n).tolist()
    if kind == "decimal":
        return [decimal.Decimal(int(x)).scaleb(-2) for x in random.integers(-10000, 10000, n)]
    if kind == "date":
        return [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(x)) for x in random.integers(0, 30000, n)]
    if kind == "timestamp":
        reach = 10 ** int(random.integers(2, 8))
        return [
            datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=int(x)) for x in random.integers(0, reach, n)
        ]
    if kind == "boolean":
        return [bool(x) for x in random.integers(0, 2, n)]
    if kind == "same":
        return ["same"] * n
    return ["".join(random.choice(list("ab*0 "), int(random.integers(0, 5)))) for _ in range(n)]


def is_true(kind: str, shown: str | None, value: Any) -> bool:
    if shown == "*":
        return True
    if shown is None or value is None:
        return shown is None and value is None
    if kind in ("date", "timestamp"):
        moment = str(value)  # in the order of time, whether cuts are days or minutes
        found = re.fullmatch(r"\[([^,]+), ([^,]+)\)", shown)
        if found:
            return found[1] <= moment < found[2]
        if shown.startswith("<"):
            return moment < shown[2:]
        return moment >= shown[3:] if shown.startswith(">") else moment[: len(shown)] == shown
    if kind == "boolean":
        return shown == str(value).lower()
    if kind in ("text", "same"):
        return bool(shown == value)
    if kind == "prefix":
        return shown == value or any(
            shown == value[:kept] + "*" * (len(shown) - kept) for kept in range(1, len(value) + 1)
        )
    return holds(shown, float(value))


@pytest.mark.parametrize("seed", range(12))
def test_cells_are_true(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, k = int(random.integers(30, 250)), int(random.integers(1, 15))
    kinds = {f"{kind} {at}": kind for at, kind in enumerate(random.choice(KINDS, 4).tolist())}
    table, quasi = {}, {}
    for name, kind in kinds.items():
        values = column(kind, n, random)
        table[name] = [None if random.random() < 0.1 else value for value in values] if seed % 2 else values
        steps = {"int": [1, 3, 7.5], "decimal": [0.1, 0.3], "float": [0.7]}.get(kind)
        quasi[name] = {"kind": "prefix"} if kind == "prefix" else {"step": float(random.choice(steps))} if steps else {}
    table["number"] = list(range(n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = kgather.anonymize(
            pa.table(table), k=k, quasi_identifiers=quasi, others=["number"], suppress=0.9,
            method=["mondrian", "cluster", "lattice"][seed % 3],
        )  # fmt: skip
    rows = found.rows.to_pylist()
    assert sorted(row["number"] for row in rows) == list(range(n))
    assert min(map(len, classes(rows, list(kinds)).values())) >= k
    for row in rows:
        for name, kind in kinds.items():
            assert is_true(kind, row[name], table[name][row["number"]]), (name, row[name])


@pytest.mark.parametrize(
    ("values", "asked", "shown"),
    [
        ([37, 38, 39, 40], {"step": 7.5}, ["[30, 37.5)", "[30, 45)", "[37.5, 45)"]),
        ([decimal.Decimal("0.3")] * 4, {"step": 0.1}, ["[0.3, 0.4)"]),
        (["", "baab", "", "baab"], {"kind": "prefix"}, ["", "baab"]),
    ],
    ids=["half steps of whole numbers", "three tenths", "an empty text"],
)
def test_cuts_are_what_is_shown(values: list[Any], asked: dict[str, Any], shown: list[str]) -> None:
    found = kgather.anonymize(pa.table({"value": values}), k=2, quasi_identifiers={"value": asked})
    assert set(found.rows["value"].to_pylist()) <= set(shown)


def test_an_empty_text_and_others_have_nothing_in_common() -> None:
    table = pa.table({"code": ["", "baab", "bab"]})
    assert set(
        kgather.anonymize(table, k=3, quasi_identifiers={"code": {"kind": "prefix"}}).rows["code"].to_pylist()
    ) == {"*"}
