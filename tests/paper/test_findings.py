"""What is said of a number beside a printed one."""

import csv
from pathlib import Path

import pytest

from kgather._errors import InputError
from kgather._paper.experiments import EXPERIMENTS, chosen, write
from kgather._paper.findings import UNJUDGED, fact, how_often, in_part, judged_together, number, rises, statement
from kgather._paper.movielens import read_movielens
from kgather._paper.parts import fact_table, parts_table, verdict_table


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [(100, "reproduced"), (102, "reproduced"), (98, "reproduced"), (106, "near"), (106.1, "not reproduced")],
)
def test_a_number_is_judged_by_its_deviation(measured: float, verdict: str) -> None:
    found = number("loss", measured, 100, chance=200, within=0.02)
    assert found.verdict == verdict
    assert found.deviation == pytest.approx(measured / 100 - 1)


def test_points_judge_numbers_that_may_be_near_zero() -> None:
    assert number("risk", 0.32, 0.10, chance=50, points=1).verdict == "reproduced"
    assert number("risk", 2.9, 0.0, chance=50, points=1).verdict == "near"
    assert number("risk", 2.9, 0.0, chance=50, points=1).deviation is None


@pytest.mark.parametrize(
    ("measured", "chance", "verdict"),
    [(100, 101, "as by chance"), (100, 105, "reproduced"), (105, 105, "as by chance"), (105, 100, "as by chance"),
     (105, 120, "near"), (120, 100, "not reproduced"), (120, 130, "not reproduced")],
)  # fmt: skip
def test_what_chance_comes_as_near_to_is_no_merit(measured: float, chance: float, verdict: str) -> None:
    assert number("loss", measured, 100, chance=chance, within=0.02).verdict == verdict


@pytest.mark.parametrize(
    ("reached", "of", "verdict"),
    [(1, 20, "reproduced"), (2, 20, "as by chance"), (1, 19, "as by chance"), (1, 1, "as by chance"),
     (0, 3, "reproduced"), (2, 40, "reproduced"), (3, 40, "as by chance")],
)  # fmt: skip
def test_chance_reaches_what_more_than_a_twentieth_of_the_draws_reach(reached: int, of: int, verdict: str) -> None:
    draws = [100.5] * reached + [500] * (of - reached)
    assert number("loss", 100, 100, chance=draws).verdict == verdict
    told = statement("loss", "low", "low", holds=True, chance="", by_chance=[draw < 200 for draw in draws])
    assert told.verdict == verdict


def test_draws_that_reach_a_part_leave_the_whole() -> None:
    draws = [None] * 20
    assert statement("order", "a < b", "a < b", holds=True, chance="", by_chance=draws).verdict == "reproduced"
    assert statement("order", "a < b", "a < b", holds=None, chance="", by_chance=draws).verdict == "as by chance"
    assert how_often([True, None, False]) == "in 1 of 3 draws, in part in 1"


def test_where_curves_cross_is_no_reproduction() -> None:
    def curve(*found: float, chance: float = 900) -> list[str]:
        points = [number("loss", each, 100, chance=chance, x=x) for x, each in enumerate(found)]
        return [point.verdict for point in judged_together([number("other", 100, 100, chance=900), *points])][1:]

    assert curve(10, 100, 190) == ["not reproduced"] * 3
    assert curve(100, 104, 190) == ["reproduced", "near", "not reproduced"]
    assert curve(100, 190) == ["reproduced", "not reproduced"]
    # What chance reaches, too, tells nothing of the others.
    assert curve(10, 100, 104, 190, chance=104) == [
        "not reproduced",
        "not reproduced",
        "as by chance",
        "not reproduced",
    ]
    assert judged_together([number("loss", 100, 100, chance=900)])[0].verdict == "reproduced"


def test_the_median_of_the_draws_is_shown() -> None:
    assert number("loss", 3.0, chance=[1, 5, 100]).chance == 5
    assert number("loss", 3.0, 3, chance=7).chance == 7


def test_what_a_line_is_not_about_reproduces_nothing() -> None:
    assert number("loss", 100, 100, chance=500, valid=False).verdict == "not reproduced"
    told = statement("order", "a < b", "a < b", holds=True, chance="", by_chance=False, valid=False)
    assert told.verdict == "not reproduced"


def test_a_fact_has_no_verdict() -> None:
    found = fact("ratings", 4863, 4863, shows="section 5.1")
    assert found.verdict in UNJUDGED
    assert found.chance is None


def test_a_curve_rises_but_for_small_steps() -> None:
    assert rises([1, 2, 3])
    assert rises([1, 10, 9.2])
    assert not rises([1, 10, 8])
    assert not rises([3, 2, 3])


def test_a_printed_number_needs_chance_beside_it() -> None:
    with pytest.raises(ValueError, match="what does chance give"):
        number("loss", 100, 100)


def test_what_is_not_printed_is_not_judged() -> None:
    assert number("loss", 3.0).verdict == "not printed"
    assert number("loss", 3.0).deviation is None


def test_a_statement_holds_or_does_not_or_in_part() -> None:
    told = {
        (holds, by_chance): statement("order", "a < b", "b < a", holds=holds, chance="c", by_chance=by_chance).verdict
        for holds in (True, False, None)
        for by_chance in (True, False, None)
    }
    assert {told[True, False], told[True, None]} == {"reproduced"}
    assert told[None, False] == "near"
    assert {told[True, True], told[None, None], told[None, True]} == {"as by chance"}
    assert {told[False, any_] for any_ in (True, False, None)} == {"not reproduced"}
    assert [in_part(True, True), in_part(True, False), in_part(False, False)] == [True, None, False]


def test_experiments_have_names_of_their_own_and_say_what_they_are() -> None:
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)
    assert all(": " in experiment.about for experiment in EXPERIMENTS)
    assert chosen([]) == EXPERIMENTS
    assert [experiment.name for experiment in chosen(["levels", "baselines"])] == ["levels", "baselines"]
    with pytest.raises(InputError, match=r"no experiment 'table-9'\. There are: bins, links, baselines"):
        chosen(["table-9"])


def test_findings_are_written_and_curves_drawn(tmp_path: Path) -> None:
    findings = [
        *(number("loss, one", k + 0.5, k, chance=9, x=k, shows="table I", reading="so, or so") for k in (2, 3)),
        *(number("loss, two", k + 1.5, x=k) for k in (2, 3)),
        statement("order", "one < two", "as said", holds=True, chance="not so", by_chance=False),
    ]
    table, picture = write(tmp_path / "new", EXPERIMENTS[0], findings)
    with table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["measured"] for row in rows] == ["2.5", "3.5", "3.5", "4.5", "as said"]
    assert rows[0]["paper"] == "2"
    assert (rows[0]["reading"], rows[0]["chance"], rows[0]["shows"]) == ("so, or so", "9", "table I")
    assert rows[2]["deviation"] == ""
    drawn = picture.read_text(encoding="utf-8")
    assert all(f">{text}<" in drawn for text in ("loss", "one", "two", "paper"))
    again = write(tmp_path / "again", EXPERIMENTS[0], findings)[1]
    assert again.read_text(encoding="utf-8") == drawn
    assert write(tmp_path, EXPERIMENTS[0], findings[-1:]) == [tmp_path / f"{EXPERIMENTS[0].name}.csv"]


def test_tables_of_verdicts_and_parts() -> None:
    findings = [
        *(number("loss", k + off, k, chance=90, x=k, shows="table II; figure 4") for k, off in ((2, 0), (3, 1))),
        number("not judged", 1.0),
        fact("query 1", "33", "33"),
        statement("order", "one < two", "as said", holds=True, chance="not so", by_chance=False),
    ]
    of_all = {"microaggregation": ("Casino et al.", findings)}
    assert verdict_table(of_all).splitlines()[2:] == [
        "| `microaggregation` | loss | 2 to 3 | 2 to 4 | 90 to 90 | reproduced at k = 2; not reproduced at k = 3 |",
        "| `microaggregation` | order | one < two | as said | not so | reproduced |",
    ]
    assert fact_table(of_all).splitlines()[2:] == ["| `microaggregation` | query 1 | 33 | 33 |"]
    parts = parts_table(of_all)
    assert "| Casino et al. | table II | `microaggregation`: loss |" in parts
    assert "| Casino et al. | table I | absent: shows a form of data, without anything to measure |" in parts


def test_other_data_are_refused(sample: Path) -> None:
    with pytest.raises(InputError, match="experiments are about ML-100k"):
        read_movielens(sample)
