"""What is said of a number beside a printed one."""

import csv
from pathlib import Path

import pytest

from kgather._errors import InputError
from kgather._paper.experiments import EXPERIMENTS, chosen, write
from kgather._paper.findings import number, statement
from kgather._paper.movielens import read_movielens


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [(100, "reproduced"), (102, "reproduced"), (98, "reproduced"), (106, "near"), (106.1, "not reproduced")],
)
def test_a_number_is_judged_by_its_deviation(measured: float, verdict: str) -> None:
    found = number("loss", measured, 100, within=0.02)
    assert found.verdict == verdict
    assert found.deviation == pytest.approx(measured / 100 - 1)


def test_points_judge_numbers_that_may_be_near_zero() -> None:
    assert number("risk", 0.32, 0.10, points=1).verdict == "reproduced"
    assert number("risk", 2.9, 0.0, points=1).verdict == "near"
    assert number("risk", 2.9, 0.0, points=1).deviation is None


def test_what_is_not_printed_is_not_judged() -> None:
    assert number("loss", 3.0).verdict == "not printed"
    assert number("loss", 3.0).deviation is None


def test_a_statement_holds_or_does_not_or_in_part() -> None:
    verdicts = [statement("order", "a < b", "b < a", holds=holds).verdict for holds in (True, False, None)]
    assert verdicts == ["reproduced", "not reproduced", "near"]


def test_experiments_have_names_of_their_own_and_say_what_they_are() -> None:
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)
    assert all(": " in experiment.about for experiment in EXPERIMENTS)
    assert chosen([]) == EXPERIMENTS
    assert [experiment.name for experiment in chosen(["levels", "baselines"])] == ["levels", "baselines"]
    with pytest.raises(InputError, match=r"no experiment 'table-9'\. There are: links, baselines"):
        chosen(["table-9"])


def test_findings_are_written_and_curves_drawn(tmp_path: Path) -> None:
    findings = [
        *(number("loss, one", k + 0.5, k, x=k, reading="so, or so") for k in (2, 3)),
        *(number("loss, two", k + 1.5, x=k) for k in (2, 3)),
        statement("order", "one < two", "as said", holds=True),
    ]
    table, picture = write(tmp_path / "new", EXPERIMENTS[0], findings)
    with table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["measured"] for row in rows] == ["2.5", "3.5", "3.5", "4.5", "as said"]
    assert rows[0]["paper"] == "2"
    assert rows[0]["reading"] == "so, or so"
    assert rows[2]["deviation"] == ""
    drawn = picture.read_text(encoding="utf-8")
    assert all(f">{text}<" in drawn for text in ("loss", "one", "two", "paper"))
    again = write(tmp_path / "again", EXPERIMENTS[0], findings)[1]
    assert again.read_text(encoding="utf-8") == drawn
    assert write(tmp_path, EXPERIMENTS[0], findings[-1:]) == [tmp_path / f"{EXPERIMENTS[0].name}.csv"]


def test_other_data_are_refused(sample: Path) -> None:
    with pytest.raises(InputError, match="experiments are about ML-100k"):
        read_movielens(sample)
