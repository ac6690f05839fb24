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

from kgather._cli import sweep as cli
from kgather._errors import InputError, KgatherError, PromiseError
from kgather._loaders import LoadOptions
from kgather._republishing.sweep import (
    FILES,
    LOSS_ALLOWED,
    RULE,
    SweepRow,
    quiet,
    risks,
    sweep,
    with_front,
    with_proven,
    with_recommended,
)
from kgather._settings.publication import PublishSettings


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
        scale = SimpleNamespace(width=4.0)
        return SimpleNamespace(settings=settings, scale=scale, group_ids=range(100 // settings.k)), (None, None, None)

    def shown_errors(evidence: Any, *test: object) -> tuple[float, float, float]:
        assert len(test) == 3
        k = evidence.settings.k
        return (math.nan if k == 50 else k / (100 if evidence.settings.method == "bkg" else 50)), 1.0, 0.99

    def quick(evidence: Any, seed: int) -> Any:
        calls.seeds.append(seed)
        return SimpleNamespace(as_dict=lambda: found(1 / evidence.settings.k))

    monkeypatch.setattr("kgather._republishing.held_out.held_out", held_out)
    monkeypatch.setattr("kgather._evaluation.metrics.shown_errors", shown_errors)

    def half_in(inputs: object, settings: PublishSettings, options: object, *, seed: int) -> list[Any]:
        del inputs, options, seed
        told = {"advantage": 0.5 / settings.k, "advantage_by_chance": 0.04}
        return [SimpleNamespace(as_dict=lambda: result("membership", "all ratings", None, None, **told))]

    monkeypatch.setattr("kgather._attacks.quick", quick)
    monkeypatch.setattr("kgather._republishing.left_out.half_in", half_in)
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
    assert (row.membership_advantage, row.membership_by_chance, row.quiet) == (0.1, 0.04, False)
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
        {name: None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
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
        (["--methods", "bkg,magic"], "not 'magic'. There are: bkg, bokg"),
        (["--methods", ","], "not nothing"),
        (["--set", "k=3"], "--set k: a sweep sets it itself. Use --k."),
        (["--set", "method=mdav"], "Use --methods."),
        (["--set", "rnk=3"], "--set takes VAR=VALUE"),
        (["--set", "rank=0"], "rank is "),
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
        (
            "farthest",
            "right_group_4",
            "right_group_8",
            "user_reidentification",
            "exact_disclosure",
            "membership_advantage",
            "membership_by_chance",
            "quiet",
        )
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
        "farthest": None,
        "right_group_4": None,
        "right_group_8": None,
        "user_reidentification": 0.3,
        "exact_disclosure": 0.5,
        "membership_advantage": None,
        "membership_by_chance": None,
        "quiet": False,
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


def named(low: float, chance: float) -> dict[str, Any]:
    """An attack whose rates have an interval that starts at `low`."""
    rate = {"value": low + 0.01, "low": low}
    return result("posterior", "8 exact ratings", None, None) | {
        "user": rate, "group": rate, "chance_user": chance, "chance_group": chance,
    }  # fmt: skip


def told(advantage: float) -> dict[str, Any]:
    return result("membership", "all ratings", None, None, advantage=advantage, advantage_by_chance=0.04)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], None),
        ([told(0.01)], None),
        ([named(0.01, 0.01)], True),
        ([named(0.011, 0.01)], False),
        ([named(0.01, 0.01), named(0.02, 0.01)], False),
        ([named(0.01, 0.01), told(0.04)], True),
        ([named(0.01, 0.01), told(0.041)], False),
        ([named(0.01, 0.01), result("disclosure", "the group", None, None, exact=0.01)], True),
        ([named(0.01, 0.01), result("disclosure", "the group", None, None, exact=0.0, worked_out=0.02)], False),
    ],
    ids=["nothing", "unnamed", "chance", "above", "one above", "not told", "told", "by accident", "exact"],
)
def test_quiet_is_what_chance_explains(results: list[dict[str, Any]], expected: bool | None) -> None:
    assert quiet(results) is expected


def measured(k: int, mae: float, risk: float, **more: Any) -> SweepRow:
    return SweepRow("bkg", k, mae=mae, user_reidentification=risk, **({"covered": 1.0, "quiet": False} | more))


@pytest.mark.parametrize(
    ("rows", "best", "said"),
    [
        # The smallest quiet k within the loss allowed, even where a larger one finds fewer people.
        (
            [measured(2, 0.70, 0.2), measured(5, 0.71, 0.1, quiet=True), measured(10, 0.72, 0.05, quiet=True)],
            5,
            "smallest k at which no attack finds more than chance does, with a loss 1.4% above the lowest",
        ),
        # Quiet, but at too high a loss.
        (
            [measured(2, 0.70, 0.2), measured(5, 0.73, 0.1), measured(10, 0.74, 0.0, quiet=True)],
            5,
            "the least risk of the 2 releases within 5% of it",
        ),
        ([measured(2, 0.70, 0.1), measured(5, 0.70, 0.1)], 2, "the lowest loss (MAE 0.7000)"),
        # An easy part of the ratings is no smaller loss, k = 1 no anonymity, and noise neither.
        ([measured(2, 0.50, 0.0, covered=0.5), measured(5, 0.70, 0.1)], 5, "the lowest loss"),
        ([measured(1, 0.60, 0.0, quiet=True), measured(5, 0.70, 0.1)], 5, "the lowest loss"),
        (
            [SweepRow("gaussian_noise", 5, mae=0.6, user_reidentification=0.0, covered=1.0), measured(5, 0.7, 0.1)],
            5,
            "the lowest loss",
        ),
        # Membership and groups count, too.
        (
            [
                measured(2, 0.70, 0.1, membership_advantage=0.5, membership_by_chance=0.1),
                measured(5, 0.70, 0.1, membership_advantage=0.05, membership_by_chance=0.1),
            ],
            5,
            "told with an advantage of 0.050 (by chance up to 0.100)",
        ),
        ([measured(1, 0.6, 0.1), SweepRow("bkg", 5, refused="no")], None, ""),
    ],
    ids=["quiet", "too dear", "tie", "part", "one", "noise", "membership", "none"],
)
def test_one_release_is_recommended_by_the_rule(rows: list[SweepRow], best: int | None, said: str) -> None:
    chosen = [row for row in with_recommended(rows) if row.recommended]
    assert [row.k for row in chosen] == ([] if best is None else [best])
    assert all(said in (row.why or "") for row in chosen)
    assert [row.why for row in with_recommended(rows) if not row.recommended] == [None] * (len(rows) - len(chosen))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=20))
def test_what_is_recommended_is_within_the_loss_allowed(points: list[tuple[int, int, bool]]) -> None:
    rows = with_recommended([measured(2 + place, mae / 10, risk / 10, quiet=still)
                             for place, (mae, risk, still) in enumerate(points)])  # fmt: skip
    [best] = [row for row in rows if row.recommended]
    near = [row for row in rows if row.mae <= min(row.mae for row in rows) * (1 + LOSS_ALLOWED)]
    assert best in near
    if any(row.quiet for row in near):
        assert best.quiet
        assert best.k == min(row.k for row in near if row.quiet)
    else:
        assert best.user_reidentification == min(row.user_reidentification for row in near)


@pytest.mark.usefixtures("made_up")
def test_the_recommendation_is_said_everywhere(tmp_path: Path) -> None:
    code, said = run("x.csv", "--k", "5,10", "--methods", "bkg", "--out", tmp_path / "out")
    assert code == 0
    written = json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8"))
    best = written["recommended"]
    assert (best["method"], best["k"]) == ("bkg", 5)
    assert [row["why"] for row in written["rows"]] == [best["why"], None]
    assert written["rule"] == RULE
    flat = " ".join(said.split())
    assert f"Recommended: bkg, k = 5. {best['why']}" in flat
    assert f"The rule: {RULE}" in flat
    page = " ".join((tmp_path / "out" / "sweep.html").read_text(encoding="utf-8").split())
    assert f"bkg with k = 5. {best['why']}" in page
    assert "How it was chosen" in page


@pytest.mark.usefixtures("made_up")
def test_membership_can_be_left_out() -> None:
    code, said = run("x.csv", "--k", "5", "--methods", "bkg", "--no-membership", "--json")
    assert code == 0
    [row] = json.loads(said)["rows"]
    assert row["membership_advantage"] is row["membership_by_chance"] is None


@pytest.mark.long
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
        assert 0 < row["user_reidentification"] <= 1 / 5 + 1e-9
        assert row["user_reidentification"] <= max(row["right_group_4"], row["right_group_8"]) <= 1
        assert 0 <= row["exact_disclosure"] <= 1
        assert 0 <= row["membership_advantage"] <= 1
        assert 0 < row["membership_by_chance"] < 0.5
    assert sum(row["recommended"] for row in (bkg, k_member)) == 1
    assert bkg["recommended"]  # the other covers a part of the ratings
    page = (tmp_path / "out" / "sweep.html").read_text(encoding="utf-8")
    assert "k_member" in page
    # Nothing of the private folders is left, and no user's id is in the files.
    for file in FILES:
        assert "user_id" not in (tmp_path / "out" / file).read_text(encoding="utf-8")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out"]


def test_what_is_varied_is_tried_beside_the_release_without(made_up: Calls) -> None:
    done = sweep(["x.csv"], ["bkg"], [5], LoadOptions(), vary=["outliers=0.95,0.9", "item_noise=6"], membership=False)
    assert [row.varied for row in done.rows] == [None, "outliers=0.95", "outliers=0.9", "item_noise=6"]
    assert [(each.outliers, each.item_noise) for each in made_up.settings] == [
        (0.98, None), (0.95, None), (0.9, None), (0.98, 6),
    ]  # fmt: skip


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("vary", ["outliers", "outliers=", "k=3,4", "nothing=1", "=1"])
def test_what_cannot_be_varied_is_refused(vary: str) -> None:
    with pytest.raises(InputError, match="--vary takes a var and its values"):
        sweep(["x.csv"], ["bkg"], [5], LoadOptions(), vary=[vary])


def test_the_smallest_epsilon_that_costs_next_to_nothing_is_recommended() -> None:
    def row(varied: str | None, mae: float) -> SweepRow:
        return SweepRow("bkg", 10, varied, mae=mae, covered=1.0, user_reidentification=0.01, loss_allowed=0.01)

    rows = [
        row(None, 0.72),
        row("item_epsilon=10", 0.721),
        row("item_epsilon=4", 0.7299),
        row("item_epsilon=1", 0.7301),
    ]
    found = with_recommended(with_proven(rows))
    assert [one.proven for one in found] == [False, False, True, False]
    [best] = [one for one in found if one.recommended]
    assert best.varied == "item_epsilon=4"
    assert "bounded by proof" in str(best.why)
    assert not any(one.proven for one in with_proven([row(None, 0.72), row("item_epsilon=4", 0.7301)]))
