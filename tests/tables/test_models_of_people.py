"""l, t and alpha where people have several rows: counted by hand, by plain Python, and in what is shown."""

import itertools
import json
import math
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import kgather
from kgather._cli.app import app
from kgather._errors import InputError
from kgather.udfs.recoding.holders import crowded, even, told

MODELS: list[dict[str, Any]] = [
    {"l": 2}, {"l": 3, "diversity": "distinct"}, {"l": 2, "diversity": "recursive", "c": 2.5}, {"alpha": 0.8},
    {"t": 0.25}, {"t": 0.2, "ordered": True},
    {"t": 0.25, "hierarchy": [["x", "p", "*"], ["y", "p", "*"], ["z", "q", "*"], ["w", "q", "*"]]},
    {"l": 1.5, "alpha": 0.85, "t": 0.4},
]  # fmt: skip


def visits(people: int, seed: int) -> list[dict[str, Any]]:
    draws = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        usual = str(draws.choice(list("xyzw"), p=[0.4, 0.3, 0.2, 0.1]))
        for _ in range(int(draws.geometric(0.4))):
            what = usual if draws.random() < 0.7 else str(draws.choice(list("xyzw")))
            age, ward = int(draws.integers(20, 80)), str(draws.choice(list("abcdef")))
            rows.append({"id": person, "age": age, "ward": ward, "what": what, "row": len(rows)})
    return rows


def anonymized(rows: list[dict[str, Any]], **asked: Any) -> kgather.AnonymizedTable:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return kgather.anonymize(
            pa.Table.from_pylist(rows),
            **{"k": 4, "quasi_identifiers": {"age": {"step": 5}, "ward": {}}, "unit": "id", "others": ["row"], **asked},
        )


def spread(held: dict[str, set[int]], people: int) -> list[int]:
    """The people of each value, most first, until all are counted."""
    found, left = [], people
    for members in sorted(held.values(), key=len, reverse=True):
        found.append(min(len(members), left))
        left -= found[-1]
    return [n for n in found if n > 0]


def distance(own: dict[str, float], everybody: dict[str, float], asked: dict[str, Any]) -> float:
    gaps = {v: own.get(v, 0.0) / sum(own.values()) - everybody[v] / sum(everybody.values()) for v in sorted(everybody)}
    if asked.get("ordered"):
        return sum(map(abs, itertools.accumulate(gaps.values()))) / (len(gaps) - 1)
    moved = sum(max(gap, 0.0) for gap in gaps.values())
    if asked.get("hierarchy") is None:
        return moved
    above: dict[str, float] = defaultdict(float)
    for value, parent, _ in asked["hierarchy"]:
        above[parent] += gaps.get(value, 0.0)
    across = sum(max(gap, 0.0) for gap in above.values())
    return across + (moved - across) / 2


@pytest.mark.parametrize("asked", MODELS, ids=lambda asked: "-".join(map(str, list(asked)[:2])))
@pytest.mark.parametrize(("method", "most"), [("mondrian", 3), ("cluster", 100)])
def test_models_hold_of_rows_and_of_people(asked: dict[str, Any], method: str, most: int) -> None:
    rows = visits(160, seed=len(str(asked)))
    result = anonymized(rows, sensitive={"what": asked}, method=method, rows_per_person=most)
    shown = result.rows.to_pylist()
    classes = defaultdict(list)
    for row in shown:
        classes[row["age"], row["ward"]].append(row)
    who = {row["row"]: row["id"] for row in rows}
    sets = defaultdict(set)
    for kind, inside in classes.items():
        for row in inside:
            sets[who[row["row"]]].add(kind)
    assert min(len({who[row["row"]] for row in inside}) for inside in classes.values()) >= 4
    assert min(Counter(map(frozenset, sets.values())).values()) >= 4
    of_rows = Counter(row["what"] for row in shown)
    times = Counter(who[row["row"]] for row in shown)
    of_people: dict[str, float] = defaultdict(float)
    for row in shown:
        of_people[row["what"]] += 1 / times[who[row["row"]]]
    worst: dict[str, list[float]] = defaultdict(list)
    for inside in classes.values():
        held: dict[str, set[int]] = defaultdict(set)
        for row in inside:
            held[row["what"]].add(who[row["row"]])
        own = Counter(row["what"] for row in inside)
        here = Counter(who[row["row"]] for row in inside)
        divided: dict[str, float] = defaultdict(float)
        for row in inside:
            divided[row["what"]] += 1 / here[who[row["row"]]]
        people = spread(held, len(here))
        for counted in (people, sorted(own.values(), reverse=True)):
            total = sum(counted)
            if asked.get("diversity") == "distinct":
                assert len(counted) >= asked["l"]
            elif asked.get("diversity") == "recursive":
                assert counted[0] < asked["c"] * sum(counted[1:])
            elif "l" in asked:
                worst["l"].append(math.exp(-sum(n / total * math.log(n / total) for n in counted)))
                assert worst["l"][-1] >= asked["l"] - 1e-6
            assert counted[0] / total <= asked.get("alpha", 1.0) + 1e-9
        worst["alpha"].append(max(map(len, held.values())) / len(here))
        if "t" in asked:
            worst["t"].append(distance(divided, of_people, asked))
            assert worst["t"][-1] <= asked["t"] + 1e-6
            assert distance(dict(own), dict(of_rows), asked) <= asked["t"] + 1e-6
    measured = {check.check: check.measured for check in result.checks if "people" in check.check}
    if "t" in asked:
        assert measured["t-closeness of what, counted in people"] == pytest.approx(max(worst["t"]), abs=1e-6)
    if "alpha" in asked:
        name = "largest share of the people of a class who have one value of what"
        assert measured[name] == pytest.approx(max(worst["alpha"]), abs=1e-6)
    assert result.risks["prosecutor"] == round(1 / min(Counter(map(frozenset, sets.values())).values()), 4)
    assert result.risks["marketer"] == round(len(set(map(frozenset, sets.values()))) / len(sets), 4)


def test_one_with_many_rows_is_not_many() -> None:
    # By rows half have x; but of four people, three have nothing else and all have it.
    rows = [{"id": i, "age": 30, "ward": "a", "what": "x", "row": i} for i in range(4)]
    rows += [{**rows[0], "what": what, "row": 4 + at} for at, what in enumerate("yzwy")]
    for asked in (
        {"l": 2},
        {"l": 2, "diversity": "distinct"},
        {"alpha": 0.6},
        {"l": 2, "diversity": "recursive", "c": 3.0},
    ):
        with pytest.raises(InputError, match="too many people have the same sensitive value"):
            anonymized(rows, sensitive={"what": asked}, rows_per_person=9)
    found = anonymized(rows, sensitive=["what"], rows_per_person=9)
    assert found.risks["homogeneity"] == {"what": 1.0}
    assert found.risks["confident"] == {"what": 1.0}
    assert "background" not in found.risks
    with pytest.warns(UserWarning, match="100% of the people are in a class all of whose people have one value"):
        kgather.anonymize(
            pa.Table.from_pylist(rows), k=4, quasi_identifiers=["age", "ward"], sensitive=["what"], unit="id",
            rows_per_person=9,
        )  # fmt: skip


def test_holders_by_hand() -> None:
    # Class 0: 1 has a twice and b, 2 has a, 3 has b. Class 1: 1 has c.
    group = np.array([0, 0, 0, 0, 1])
    values, person, rows = np.array([0, 1, 0, 1, 2]), np.array([1, 1, 2, 3, 1]), np.array([2, 1, 1, 1, 5])
    starts, _, people = crowded(group, values, person, 2)
    assert (starts.tolist(), people.tolist()) == ([0, 2, 3], [2, 1, 1])
    starts, found, people = even(group, values, person, rows, 2)
    assert (starts.tolist(), found.tolist()) == ([0, 2, 3], [0, 1, 2])
    assert people.tolist() == pytest.approx([2 / 3 + 1, 1 / 3 + 1, 1])
    # 1 is in both classes, which is true of nobody else; c is what all of class 1 have.
    assert told(group, [values], person) == (1.0, 2 / 3, [(1 / 3, 1.0)])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
@settings(max_examples=80, deadline=None)
def test_whichever_own_value_people_are_thought_to_have_it_is_no_less_diverse(pairs: list[tuple[int, int]]) -> None:
    person, values = np.array(pairs).T
    _, _, people = crowded(np.zeros(len(pairs), np.int64), values, person, 1)
    own = [sorted({v for p, v in pairs if p == each}) for each in sorted(set(person.tolist()))]
    assert people.sum() == len(own)
    for thought in itertools.product(*own):
        counted = sorted(Counter(thought).values(), reverse=True)
        assert len(counted) >= len(people)
        for upto in range(1, len(people) + 1):
            assert sum(counted[:upto]) <= people[:upto].sum()


def test_verify_counts_people_where_it_is_said_whose_rows_are(tmp_path: Path) -> None:
    # Four rows a class, but of two people; and nobody shares both classes with another.
    rows = [
        {"id": person, "ward": ward, "what": what}
        for person, ward, what in [
            (1, "a", "x"), (1, "a", "x"), (2, "a", "x"), (2, "a", "y"),
            (2, "b", "x"), (3, "b", "y"), (3, "b", "y"), (3, "b", "x"),
        ]
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    assert kgather.verify(table, k=4, columns=["ward"])
    counted = {
        check.check: check.measured
        for check in kgather.verify(
            table, k=2, columns=["ward"], sensitive=["what"], unit="id", l=2, diversity="distinct", alpha=0.9, t=0.9
        ).checks
    }
    assert counted == {
        "people in the smallest class": 2,
        "people whose rows are in the same set of classes, the fewest": 1,
        "distinct l-diversity of what, counted in people": 1,  # both of a have x, so that nobody need have y
        "t-closeness of what, counted in people": pytest.approx(distance_by_hand(rows)),
        "largest share of the people of a class who have one value of what": 1.0,
    }
    file = tmp_path / "visits.csv"
    file.write_text("id;ward;what\n" + "".join(f"{r['id']};{r['ward']};{r['what']}\n" for r in rows))
    asked = ["verify", str(file), "--k", "2", "--unit", "id", "--json"]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 3
    # All other columns are quasi-identifiers, the one that names people is none.
    assert [check["measured"] for check in json.loads(said.stdout)["checks"]] == [1, 1]
    with pytest.raises(InputError, match="user_column"):
        kgather.verify(table, k=2, unit="id", group_column="ward")
    with pytest.raises(InputError, match="names people"):
        kgather.verify(table, k=2, unit="id", columns=["ward", "ID"])
    nobody = table.append_column("who", pa.array([None, *range(7)]))
    with pytest.raises(InputError, match="nobody knows whose they are"):
        kgather.verify(nobody, k=2, columns=["ward"], unit="who")


def distance_by_hand(rows: list[dict[str, Any]]) -> float:
    """The largest distance of a class from all, where each person counts 1."""

    def shares(inside: list[dict[str, Any]]) -> dict[str, float]:
        times = Counter(row["id"] for row in inside)
        found: dict[str, float] = defaultdict(float)
        for row in inside:
            found[row["what"]] += 1 / times[row["id"]] / len(times)
        return found

    everybody = shares(rows)
    own = [shares([row for row in rows if row["ward"] == ward]) for ward in ("a", "b")]
    return max(abs(each["x"] - everybody["x"]) for each in own)


def test_a_release_says_what_it_counted_of_people(tmp_path: Path) -> None:
    rows = [
        {"id": i, "age": 20 + i % 7, "ward": "ab"[i % 2], "what": "rstuvwxyz"[(i + visit) % 9]}
        for i in range(60)
        for visit in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")
    release = tmp_path / "release"
    asked = [
        "anonymize", tmp_path / "visits.parquet", "--k", 5, "--unit", "id", "--rows-per-person", 3,
        "--quasi-identifiers", "age,ward", "--sensitive", "what", "--l", 1.2, "--out", release,
    ]  # fmt: skip
    said = CliRunner().invoke(app, list(map(str, asked)))
    assert said.exit_code == 0, said.output
    verdict = kgather.verify(release)
    assert verdict
    written = ", as the audit counted them when the table was written"
    assert {
        "people in the smallest class" + written,
        "people whose rows are in the same set of classes, the fewest" + written,
        "entropy l-diversity of what, counted in people" + written,
    } <= {check.check for check in verdict.checks}
    audit = json.loads((release / "audit.json").read_text())

    def failed(checks: list[dict[str, Any]]) -> set[str]:
        (release / "audit.json").write_text(json.dumps(audit | {"checks": checks}))
        return {check.check for check in kgather.verify(release).failed}

    def changed(measured: float) -> list[dict[str, Any]]:
        known = "people in the smallest class"
        return [c | {"measured": measured} if c["check"] == known else c for c in audit["checks"]]

    assert failed(audit["checks"]) == set()
    assert "people in the smallest class" + written in failed(changed(4))
    # The database, the page and the report still say what they did.
    otherwise = {
        "checks that release.duckdb and audit.json say otherwise",
        "pages that are not that of audit.json",
        "checks of audit.json that are not those of its promises and rows",
    }
    told = {
        "people in the smallest class, of which its rows cannot be",
        "what audit.json says of the table and its rows do not: report.people.in_class",
    }
    assert failed(changed(10_000)) - otherwise == told
    assert failed([]) - otherwise == {
        f"promises about people that audit.json does not measure: {name}"
        for name in (
            "people in the smallest class",
            "people whose rows are in the same set of classes, the fewest",
            "entropy l-diversity of what, counted in people",
        )
    }
