"""Releases of random tables with hostile columns, in all ways, read by somebody who shares nothing with kgather."""

import csv
import datetime
import decimal
import io
import json
import math
import re
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checker import violations

import kgather

NAMES = ['a "q" name', "select", "it's", "kg_rank", "kg_s1", "x\ny", '"', "%s", "{x}", "kg_unit", "null", "a,b"]
SECRET = "id-of-a-person"
TREE = [[leaf, area, "*"] for area, leaves in (("N", ["Oslo", "Côte d'x", 'It"aly']), ("S", ["a,b", ""]))
        for leaf in leaves]  # fmt: skip
ORDER = ["", "low", "mid", "high"]
ASKED: dict[str, list[dict[str, Any]]] = {
    "int": [{}, {"step": 5.0}, {"step": 7.5, "widest": 40.0}, {"cuts": [-20.0, 0.0, 18.0]}, {"show": "tight"},
            {"show": "mean"}, {"show": "median"}],
    "big": [{}, {"show": "tight"}],
    "float": [{}, {"cuts": [-1.5, 0.1, 10.0]}, {"show": "mean"}, {"show": "tight", "sensitive": True}],
    "decimal": [{"step": 0.1}, {"step": 10.0, "show": "tight"}, {"show": "median"}],
    "date": [{}, {"step": "month"}, {"step": "year"}],
    "time": [{"step": "hour"}, {"step": 15.0}],
    "bool": [{}],
    "text": [{}, {"grouping": "frequency"}, {"show": "set"}],
    "zip": [{"kind": "prefix"}, {"kind": "prefix", "keep": 1}],
    "place": [{"hierarchy": TREE}, {"hierarchy": TREE, "show": "set"}],
    "grade": [{"order": ORDER}, {"order": ORDER, "show": "set"}],
}  # fmt: skip
MODELS: list[dict[str, Any]] = [
    {}, {"l": 1.5}, {"l": 2, "diversity": "distinct"}, {"l": 2, "diversity": "recursive", "c": 2.0}, {"alpha": 0.8},
    {"t": 0.3, "ordered": True}, {"l": 1.2, "alpha": 0.85, "t": 0.4},
]  # fmt: skip
MORE = ("tight", "mean", "median", "set")


def values(kind: str, n: int, random: np.random.Generator) -> list[Any]:
    def some(listed: list[Any]) -> list[Any]:
        return [listed[int(at)] for at in random.integers(0, len(listed), n)]

    moments = random.integers(0, 86_400, n)
    return {
        "int": lambda: random.integers(-60, 90, n).tolist(),
        "big": lambda: [int(each) for each in random.integers(-(2**53) + 2, 2**53 - 2, n)],
        "float": lambda: some([1e300, -1e300, 5e-324, 0.1, 0.3, -0.0, 0.0, 1e17, 2.5, math.nan, 7.0]),
        "decimal": lambda: [decimal.Decimal(int(each)) / 100 for each in random.integers(-500, 3000, n)],
        "date": lambda: [datetime.date(1990, 1, 1) + datetime.timedelta(int(each) // 9) for each in moments],
        "time": lambda: [datetime.time(int(each) // 3600, int(each) // 60 % 60, int(each) % 60) for each in moments],
        "bool": lambda: some([True, False]),
        "text": lambda: some(["", " ", "a'b", 'a"b', "é", "\n", "NULL", "x" * 300, "[1, 2)", "< 3", "10"]),
        "zip": lambda: [f"{each:05}" if each % 7 else f"{each:03}" for each in random.integers(0, 400, n).tolist()],
        "place": lambda: some([line[0] for line in TREE]),
        "grade": lambda: some(ORDER),
    }[kind]()


def is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def members(text: str) -> list[str]:
    """The values that a set names, which are quoted as in a CSV file."""
    inner = io.StringIO(text[1:-1]) if text.startswith("{") else io.StringIO()
    return [each for line in csv.reader(inner, skipinitialspace=True) for each in line]


def on_a_line(text: str, value: Any, read: Any) -> bool:
    found = re.fullmatch(r"\[(.+), (.+)([)\]])", text)
    if found:
        low, high = read(found[1]), read(found[2])
        return bool(low <= value and (value <= high if found[3] == "]" else value < high))
    for sign, holds in (("<= ", value.__le__), (">= ", value.__ge__), ("< ", value.__lt__)):
        if text.startswith(sign):
            return bool(holds(read(text.removeprefix(sign))))
    return bool(read(text) == value)


def is_true(kind: str, asked: dict[str, Any], text: str | None, value: Any) -> bool:
    if text == "*":
        return True
    if text is None or is_null(value):
        return text is None and is_null(value)
    if kind in ("int", "big", "float", "decimal"):
        return (asked.get("show") in ("mean", "median") and text[0] not in "[<>") or on_a_line(
            text, float(value), float
        )
    if kind == "date":
        return on_a_line(text, value, datetime.date.fromisoformat)
    if kind == "time":
        minutes = value.hour * 60 + value.minute
        return on_a_line(text, minutes, lambda clock: int(clock[:2]) * 60 + int(clock[3:5]))
    if kind == "bool":
        return text == str(value).lower()
    if kind == "zip":
        return text == value or (
            len(text) >= len(value) and all(mark in ("*", value[at : at + 1]) for at, mark in enumerate(text))
        )
    if kind == "place" and text in next(line for line in TREE if line[0] == value):
        return True
    if kind == "grade" and any(
        text == f"{a} to {b}" and ORDER.index(a) <= ORDER.index(value) <= ORDER.index(b) for a in ORDER for b in ORDER
    ):
        return True
    return text == value or value in members(text)


def ends(text: str) -> list[str]:
    found = re.fullmatch(r"\[(.+), (.+)[)\]]", text)
    return list(found.groups()) if found else re.findall(r"^(?:<=|>=|<|>) (.+)$", text)


def drawn(seed: int, folder: Path) -> tuple[dict[str, list[Any]], dict[str, str], dict[str, Any]]:
    """A table as a file, the kind of each quasi-identifier, and settings."""
    random = np.random.default_rng(seed)
    several = seed % 3 == 0
    method = ["mondrian", "cluster", "lattice", "mdav"][seed % (2 if several else 4)]
    n, k = int(random.integers(40, 300)), int(random.choice([2, 3, 5]))
    allowed = ["int", "big", "float", "decimal", "date", "time", "grade"] if method == "mdav" else list(ASKED)
    kinds = {str(name): str(random.choice(allowed)) for name in random.choice(NAMES, 3, replace=False)}
    table: dict[str, list[Any]] = {}
    quasi: dict[str, Any] = {}
    for name, kind in kinds.items():
        table[name] = [None if random.random() < 0.1 * (seed % 2) else each for each in values(kind, n, random)]
        fit = [each for each in ASKED[kind] if not several or (each.get("show") not in MORE and "grouping" not in each)]
        quasi[name] = fit[int(random.integers(0, len(fit)))]
    table["ill 'x'"] = [[*"abc", None][int(at)] for at in random.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    table["row"] = list(range(n))
    table["id"] = [f"{SECRET}-{each}" for each in (random.integers(0, n // 2, n) if several else range(n))]
    asked: dict[str, Any] = {
        "k": k, "quasi_identifiers": quasi, "sensitive": {"ill 'x'": MODELS[int(random.integers(0, len(MODELS)))]},
        "others": ["row"], "unit": "id", "method": method, "suppress": float(random.choice([0.1, 0.9])),
    }  # fmt: skip
    if several:
        asked["rows_per_person"] = int(random.choice([2, 9]))
    pq.write_table(pa.table(table), folder / "people.parquet")
    return table, kinds, asked


def check(seed: int, folder: Path) -> bool:
    """Whether there is a release; all of it is looked at."""
    table, kinds, asked = drawn(seed, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            kgather.anonymize(folder / "people.parquet", folder / "release", **asked)
        except kgather.KgatherError as error:
            refused = str(error)
        else:
            refused = None
    if refused is not None:
        assert SECRET not in refused
        assert re.search("have to be suppressed|large enough|cannot be kept", refused), refused
        return False
    release, k, quasi = folder / "release", asked["k"], asked["quasi_identifiers"]
    assert violations(release) == []
    assert kgather.verify(release)
    assert not any(SECRET.encode() in file.read_bytes() for file in release.iterdir())
    rows = pq.read_table(release / "table.parquet").to_pylist()
    most = asked.get("rows_per_person", 1)
    had = Counter(table["id"])
    assert Counter(table["id"][row["row"]] for row in rows) == {who: min(most, times) for who, times in had.items()}
    assert all(row["ill 'x'"] == table["ill 'x'"][row["row"]] for row in rows)
    classes: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows:
        classes[tuple(row[name] for name in kinds)].append(row["row"])
    sets = defaultdict(set)
    for number, inside in enumerate(classes.values()):
        assert len({table["id"][at] for at in inside}) >= k
        for at in inside:
            sets[table["id"][at]].add(number)
    assert min(Counter(map(frozenset, sets.values())).values()) >= k or most == 1
    for shown, inside in classes.items():
        for (name, kind), text in zip(kinds.items(), shown, strict=True):
            held = [table[name][at] for at in inside]
            assert all(is_true(kind, quasi[name], text, value) for value in held), (kind, quasi[name], text)
            if text is not None and text != "*":
                check_cell(kind, quasi[name], text, held, k)
    said = json.loads((release / "audit.json").read_text(encoding="utf-8"))["report"]["suppressed"]
    gone = len(classes.get(("*",) * len(kinds), ()))
    assert said % k == 0
    assert (said == 0) or k <= gone <= asked["suppress"] * len(rows)
    return True


def check_cell(kind: str, asked: dict[str, Any], text: str, held: list[Any], k: int) -> None:
    """Ends on declared cuts, single values with enough holders, bounds."""
    often = Counter(float(value) if kind in ("int", "big", "float", "decimal") else value for value in held)
    holders = k if asked.get("sensitive") else 2
    if asked.get("show") == "tight" and (text.endswith("]") or text.startswith("<= ") or text[0] not in "[<>"):
        assert often[float(ends(text)[-1] if text[0] in "[<" else text)] >= holders
    elif asked.get("show") == "median" and text[0] not in "[<>":
        assert often[float(text)] >= k
    elif asked.get("show") == "mean" and text[0] not in "[<>":
        assert often[float(text)] >= k or len(held) >= 4
    elif asked.get("show") == "set" and text.startswith("{"):
        assert set(members(text)) == set(often)
        assert min(often.values()) >= holders
    elif asked.get("cuts"):
        assert all(float(end) in asked["cuts"] for end in ends(text))
    elif isinstance(asked.get("step"), float) and kind != "time":
        assert all(abs(float(end) / asked["step"] - round(float(end) / asked["step"])) < 1e-6 for end in ends(text))
    elif asked.get("step") in ("month", "year"):
        days = map(datetime.date.fromisoformat, ends(text))
        assert all(day.day == 1 and (asked["step"] == "month" or day.month == 1) for day in days)
    if asked.get("widest"):
        low, high = map(float, ends(text) or [text, text])
        assert text[0] not in "<>"
        assert high - low <= asked["widest"]
    if asked.get("keep") and text not in held:
        assert len(text.rstrip("*")) >= asked["keep"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_release_of_a_random_table(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.long
def test_many_releases_of_random_tables(tmp_path: Path) -> None:
    made = 0
    for seed in range(100, 250):
        (folder := tmp_path / str(seed)).mkdir()
        made += check(seed, folder)
    assert made > 100
