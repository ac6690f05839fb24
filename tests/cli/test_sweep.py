"""`kgather sweep`: a row for each method and k, what is not beaten, files, and refusals that do not end it."""

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kgather.cli import sweep as cli
from kgather.errors import InputError, KgatherError, PromiseError
from kgather.loaders import LoadOptions
from kgather.settings import PublishSettings
from kgather.sweep import FILES, SweepRow, risks, sweep, with_front


def run(*arguments: object) -> tuple[int, str]:
    """The exit code and what was printed or said."""
    app = typer.Typer()
    app.command()(cli.command)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def result(attack: str, knowledge: str, user: float | None, group: float | None, **details: float) -> dict[str, Any]:
    rates = {name: None if rate is None else {"value": rate} for name, rate in (("user", user), ("group", group))}
    return {"attack": attack, "knowledge": knowledge, **rates, "details": details}


def found(risk: float) -> dict[str, Any]:
    """What attacks find in a release, the largest share of a person being `risk`."""
    return {
        "results": [
            result("label", "4 exact ratings", risk / 4, 2 * risk),
            result("scoring", "4 exact ratings", risk / 2, 3 * risk),
            result("scoring", "8 exact ratings", risk, 4 * risk),
            result("disclosure", "the group", None, None, cells=100.0, exact=0.03, worked_out=0.01),
        ],
        # What is found in the original is no risk of the release.
        "original": [result("scoring", "8 exact ratings", 1, 1)],
    }


@dataclass
class Calls:
    """What the sweep asked for."""

    settings: list[PublishSettings]
    seeds: list[int]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Releases that are not made: loss is k / 100 for bkg and k / 50 for others, risk 1 / k."""
    calls = Calls([], [])

    def held_out(inputs: object, settings: PublishSettings, options: object, *, share: float, seed: int) -> Any:
        del inputs, options
        assert share == 0.2
        if settings.method == "mondrian":
            msg = f"too few users\nfor k = {settings.k}."
            raise PromiseError(msg) if settings.k > 10 else InputError(msg)
        calls.settings.append(settings)
        calls.seeds.append(seed)
        return SimpleNamespace(settings=settings, group_ids=range(100 // settings.k)), (None, None, None)

    def shown_errors(evidence: Any, *test: object) -> tuple[float, float, float]:
        assert len(test) == 3
        k = evidence.settings.k
        return (math.nan if k == 50 else k / (100 if evidence.settings.method == "bkg" else 50)), 1.0, 0.99

    def quick(evidence: Any, seed: int) -> Any:
        calls.seeds.append(seed)
        return SimpleNamespace(as_dict=lambda: found(1 / evidence.settings.k))

    monkeypatch.setattr("kgather.evaluation.held_out.held_out", held_out)
    monkeypatch.setattr("kgather.evaluation.metrics.shown_errors", shown_errors)
    monkeypatch.setattr("kgather.attacks.quick", quick)
    return calls


def test_every_method_and_k_is_a_row(made_up: Calls) -> None:
    heard: list[tuple[str, int, int]] = []
    done = sweep(
        ["folder/ratings.csv"],
        ["bkg", "mdav", "bkg"],
        [5, 2, 5],
        LoadOptions(),
        assignments=["rank=4"],
        seed=7,
        report=lambda *said: heard.append(said),
    )
    assert [(row.method, row.k) for row in done.rows] == [("bkg", 2), ("bkg", 5), ("mdav", 2), ("mdav", 5)]
    assert all(settings.rank == 4 and settings.seed == 7 for settings in made_up.settings)
    assert set(made_up.seeds) == {7}
    assert heard == [("releases", place, 4) for place in range(5)]
    row = done.rows[1]
    assert (row.mae, row.covered, row.groups, row.refused) == (0.05, 0.99, 20, None)
    assert row.right_group_4 == pytest.approx(3 / 5)
    assert row.right_group_8 == pytest.approx(4 / 5)
    assert row.user_reidentification == pytest.approx(1 / 5)
    assert row.exact_disclosure == 0.03
    # bkg loses less at the same risk.
    assert [row.front for row in done.rows] == [True, True, False, False]
    said = done.as_dict()
    assert (said["inputs"], said["seed"], said["settings"]) == (["ratings.csv"], 7, {"rank": "4"})


def test_a_refusal_is_a_row_with_its_reason(made_up: Calls, tmp_path: Path) -> None:
    code, said = run("x.csv", "--k", "5,20", "--methods", "bkg,mondrian,bokg", "--out", tmp_path / "out")
    assert code == 0
    assert "mondrian, k = 5, was refused: too few users for k = 5." in said
    assert "mondrian, k = 20, was refused: too few users for k = 20." in said
    assert "bokg, k = 5, was refused: method bokg needs the level" in said
    assert [settings.method for settings in made_up.settings] == ["bkg", "bkg"]
    rows = json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8"))["rows"]
    assert [row["refused"] is None for row in rows] == [True, True, False, False, False, False]
    assert "too few users for k = 20." in (tmp_path / "out" / "sweep.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("made_up")
def test_where_all_are_refused_nothing_is_written(tmp_path: Path) -> None:
    code, said = run("x.csv", "--k", "5", "--methods", "mondrian,customized", "--out", tmp_path / "out")
    assert code == 2
    assert "too few users for k = 5." in said
    assert "method customized needs the level" in said
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.usefixtures("made_up")
def test_files_and_what_is_printed_say_the_same(tmp_path: Path) -> None:
    code, said = run("x.csv", "--k", "5,50", "--methods", "bkg", "--out", tmp_path / "out", "--json")
    assert code == 0
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == sorted(FILES)
    written = json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8"))
    assert json.loads(said) == written
    # No loss, no place on the front, and no NaN in JSON.
    assert [(row["mae"], row["front"]) for row in written["rows"]] == [(0.05, True), (None, False)]
    with (tmp_path / "out" / "sweep.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [{name: value or None for name, value in row.items()} for row in rows] == [
        {name: None if value is None else str(value).lower() if name == "front" else str(value)
         for name, value in row.items()}
        for row in written["rows"]
    ]  # fmt: skip

    code, said = run("x.csv", "--k", "5", "--methods", "bkg", "--out", tmp_path / "out")
    assert (code, "--force" in said) == (2, True)
    assert json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8")) == written
    assert run("x.csv", "--k", "5", "--methods", "bkg", "--out", tmp_path / "out", "--force")[0] == 0
    assert json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8")) != written


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--k", "0"], "--k takes sizes of group"),
        (["--k", "two"], "--k takes sizes of group"),
        (["--k", ","], "--k takes sizes of group"),
        (["--methods", "bkg,magic"], "not magic. There are: bkg, bokg"),
        (["--methods", ","], "not nothing"),
        (["--set", "k=3"], "--set k: a sweep sets it itself. Use --k."),
        (["--set", "method=mdav"], "Use --methods."),
        (["--set", "rnk=3"], "--set takes VAR=VALUE"),
        (["--set", "rank=0"], "rank: "),
        (["--format", "magic"], "format: "),
    ],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
@pytest.mark.usefixtures("made_up")
def test_wrong_arguments_are_refused_in_words(arguments: list[str], told: str) -> None:
    code, said = run("x.csv", "--k", "5", *arguments)
    assert (code, told in said) == (2, True), said


@pytest.mark.usefixtures("made_up")
def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, said = run("x.csv", "--out", tmp_path / "file")
    assert (code, "cannot be written to" in said) == (2, True)


def test_noise_may_be_compared_as_nothing_is_handed_out(made_up: Calls) -> None:
    assert run("x.csv", "--k", "5", "--methods", "gaussian_noise")[0] == 0
    assert made_up.settings[0].form == "noise"


def test_risks_are_the_largest_found() -> None:
    assert risks({"results": []}) == dict.fromkeys(
        ("right_group_4", "right_group_8", "user_reidentification", "exact_disclosure")
    )
    # Of noisy ratings or other numbers nothing is taken but the risk to the person.
    some: Mapping[str, Any] = {
        "results": [
            result("scoring", "4 noisy ratings", 0.3, 0.9),
            result("scoring", "14 exact ratings", 0.2, 0.8),
            result("disclosure", "the group", None, None, exact=0.0, worked_out=0.5),
        ]
    }
    assert risks(some) == {
        "right_group_4": None,
        "right_group_8": None,
        "user_reidentification": 0.3,
        "exact_disclosure": 0.5,
    }


def row_of(mae: float | None, risk: float | None, covered: float = 1.0) -> SweepRow:
    return SweepRow("bkg", 5, mae=mae, user_reidentification=risk, covered=covered)


@pytest.mark.parametrize(
    ("rows", "front"),
    [
        ([row_of(1, 0.5), row_of(2, 0.4)], [True, True]),
        ([row_of(1, 0.5), row_of(1, 0.4)], [False, True]),
        # Twins do not beat each other.
        ([row_of(1, 0.5), row_of(1, 0.5)], [True, True]),
        # An easy part of the ratings does not beat all of them, and all of them beat a part.
        ([row_of(1, 0.5, 0.5), row_of(2, 0.5, 1.0)], [True, True]),
        ([row_of(2, 0.5, 0.5), row_of(1, 0.5, 1.0)], [False, True]),
        ([row_of(1, 0.5, 0.995), row_of(2, 0.5, 1.0)], [True, False]),
        ([row_of(None, 0.1), row_of(1, None), row_of(3, 0.9)], [False, False, True]),
        ([SweepRow("bkg", 5, refused="no")], [False]),
        ([], []),
    ],
    ids=["trade", "better", "twins", "easy", "part", "nearly", "unmeasured", "refused", "none"],
)
def test_the_front_is_what_nothing_beats(rows: list[SweepRow], front: list[bool]) -> None:
    assert [row.front for row in with_front(rows)] == front


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_whatever_is_not_on_the_front_is_beaten_by_what_is(points: list[tuple[int, int]]) -> None:
    rows = with_front([row_of(float(mae), risk / 10) for mae, risk in points])
    front = [point for point, row in zip(points, rows, strict=True) if row.front]
    assert front
    for point, row in zip(points, rows, strict=True):
        beaten = any(one != point and one[0] <= point[0] and one[1] <= point[1] for one in front)
        assert beaten != row.front


def test_real_releases(sample: Path, tmp_path: Path) -> None:
    code, said = run(sample, "--k", "5", "--methods", "bkg,k_member", "--out", tmp_path / "out", "--json")
    assert code == 0, said
    bkg, k_member = json.loads(said)["rows"]
    assert bkg["refused"] is k_member["refused"] is None
    assert 0.4 < bkg["mae"] < 0.8
    assert bkg["covered"] > 0.99
    # A generalized table has the most rated items only: a tenth of them, whose ranges count by their midpoint.
    assert 0 < k_member["covered"] < 0.5
    assert 0 < k_member["mae"] < 2
    for row in (bkg, k_member):
        assert 240 / 10 <= row["groups"] <= 240 / 5
        # Whoever finds the group is right about the person at most once in k times.
        assert 0 < row["user_reidentification"] <= 1 / 5
        assert row["user_reidentification"] <= max(row["right_group_4"], row["right_group_8"]) <= 1
        assert 0 <= row["exact_disclosure"] <= 1
    page = (tmp_path / "out" / "sweep.html").read_text(encoding="utf-8")
    assert "k_member" in page
    # Nothing of the private folders is left, and no user's id is in the files.
    for file in FILES:
        assert "user_id" not in (tmp_path / "out" / file).read_text(encoding="utf-8")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out"]
