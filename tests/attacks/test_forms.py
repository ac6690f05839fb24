"""Every form of release of the sample can be attacked, and the command line says what was found."""

import functools
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
import typer
from typer.testing import CliRunner

from kgather._attacks import quick, run
from kgather._cli import attack
from kgather._errors import InputError, KgatherError
from kgather._loaders import LoadOptions
from kgather._publishing.publish import Published
from kgather._republishing.left_out import half_in
from kgather._republishing.opening import open_evidence
from kgather._settings.publication import PublishSettings

pytestmark = pytest.mark.long

FORMS = {
    "predicted": {},
    "pure": {"homogenize": "pure"},
    "padded": {"homogenize": "padded", "cells": "rated"},
    "low_rank": {"cells": "low_rank"},
    "microaggregated": {"homogenize": "microaggregated"},
    "ranges": {"method": "k_likeness"},
    "intervals": {"method": "epsilon"},
    "noise": {"method": "gaussian_noise", "i_know_this_is_not_anonymous": True},
}


Made = Callable[[str], Published]


@pytest.fixture(scope="module")
def made(publish_to, sample: Path, released: Published) -> Made:
    """The sample in a form, each published once."""

    @functools.cache
    def publish(form: str) -> Published:
        return publish_to(sample, k=5, **FORMS[form]) if FORMS[form] else released

    return publish


@pytest.mark.parametrize("form", list(FORMS))
def test_every_form_can_be_attacked(made: Made, form: str) -> None:
    published = made(form)
    evidence = open_evidence(published.folder, [str(published.work_database)])
    report = run(evidence, known=(2, 4), targets=100)
    assert {result.attack for result in report.results} - {"rare_item"} == {
        "structure",
        "label",
        "scoring",
        "distance",
        "homogeneity",
        "posterior",
        "items",
        "columns",
        "folded",
        "own_model",
        "linkage",
        "disclosure",
    }
    alone = form in ("intervals", "noise")
    for result in (*report.results, *quick(evidence).results):
        if result.user is not None:
            assert result.user.value <= (1 if alone else 1 / 5) + 1e-12
            assert result.user.value <= result.group.value + 1e-12
    if alone:
        # Everybody has a row: whoever knows all of it finds it.
        assert report.worst("user")[0] > 1 / 5


def test_the_low_rank_release_is_attacked_as_the_cells_it_stands_for(made: Made) -> None:
    reports = []
    for form in ("predicted", "low_rank"):
        published = made(form)
        evidence = open_evidence(published.folder, [str(published.work_database)])
        reports.append(run(evidence, known=(4,), attacks=["distance", "linkage"], original_too=False))
    for full, vectors in zip(*(report.results for report in reports), strict=True):
        assert full.group.value == pytest.approx(vectors.group.value, abs=0.02)


app = typer.Typer()
app.command()(attack.command)


def called(*arguments: object) -> tuple[int, str]:
    """The exit code and what was printed, or what was wrong."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_command_shows_a_table(released: Published) -> None:
    code, said = called(released.folder, "--original", released.work_database, "--known", "4,8", "--targets", 100)
    assert code == 0
    for word in ("scoring", "8 exact ratings", "label", "linkage", "row_order", "disclosure:", "homogeneity,"):
        assert word in said
    assert "user-" not in said


def test_json_and_file_say_the_same(released: Published, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    code, said = called(
        released.folder,
        "--original", released.work_database,
        "--known", "8", "--attacks", "scoring,disclosure", "--json", "--out", out, "--no-on-original",
        "--max-user-reidentification", "0.2",
    )  # fmt: skip
    assert code == 0
    report = json.loads(said)
    assert report == json.loads(out.read_text())
    assert [result["attack"] for result in report["results"]] == ["scoring", "disclosure"]
    assert report["original"] == []
    assert report["gates"][0]["passed"]


def test_gates_that_are_exceeded_exit_with_three(released: Published) -> None:
    code, said = called(
        released.folder,
        "--original", released.work_database,
        "--known", "8", "--attacks", "scoring,disclosure", "--no-on-original",
        "--max-user-reidentification", "0.000001",
        "--max-group-identification", "0.000001",
        "--max-exact-rating-disclosure", "1",
    )  # fmt: skip
    assert code == 3
    assert said.count("more than the allowed") == 2
    assert "user-reidentification: scoring (8 exact ratings) measures" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--max-membership-advantage", "0.1"], "give --others"),
        (["--attacks", "scoring", "--max-exact-rating-disclosure", "0.1"], "run the attack disclosure"),
        (["--attacks", "distance", "--max-matched", "0.1"], "run scoring"),
        (["--attacks", "disclosure", "--max-user-reidentification", "0.1"], "names people"),
        (["--max-matched", "1.5"], "share from 0 to 1"),
        (["--attacks", "magic"], "no attack 'magic'"),
        (["--attacks", "intersection"], "a second release"),
        (["--second", "somewhere"], "go together"),
        (["--known", "a"], "whole numbers"),
        (["--from", "some"], "popular"),
        (["--targets", "0"], "at least 1"),
        (["--out", "nowhere/at/all.json"], "is no folder"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_wrong_options_exit_with_two(released: Published, arguments: list[str], complaint: str) -> None:
    code, said = called(released.folder, "--original", released.work_database, "--targets", 20, *arguments)
    assert (code, complaint in said) == (2, True), said


def test_two_releases_and_people_outside(released: Published, made: Made, sample: Path, tmp_path: Path) -> None:
    second = made("microaggregated")
    with duckdb.connect() as con:
        con.execute(
            f"copy (select 'new-' || user_id as user_id, item_id, rating from read_csv('{sample}')) "
            f"to '{tmp_path}/others.csv'"
        )
    arguments = [
        released.folder, "--original", released.work_database,
        "--second", second.folder, "--second-original", second.work_database,
        "--known", "4", "--targets", 100, "--attacks", "intersection,differences,membership",
    ]  # fmt: skip
    code, said = called(*arguments, "--others", tmp_path / "others.csv", "--json", "--max-membership-advantage", "1")
    assert code == 0
    results = json.loads(said)["results"]
    assert [result["attack"] for result in results] == [
        "intersection",
        "differences",
        "membership",
        "membership",
        "membership",
    ]
    assert results[0]["details"]["people"] == 240
    # The others are the members under other names, so nothing tells them apart. (Who has other people's ratings
    # compares members with half of their doubles.)
    assert results[2]["details"]["advantage"] == results[3]["details"]["advantage"] == 0
    assert 0 < results[1]["details"]["overlap_by_chance"] < 0.1
    code, said = called(*arguments, "--others", sample)
    assert code == 2
    assert "240 of the people" in said


def test_dates_find_people_in_the_original_and_nobody_in_a_release(publish_to, tmp_path: Path) -> None:
    # Two items and two values: ratings alone are alike, days are not.
    rows = [(user, item, 1 + (user + item) % 2, 86_400 * 100 * user) for user in range(20) for item in range(2)]
    file = tmp_path / "dated.csv"
    file.write_text("user_id,item_id,rating,timestamp\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    published = publish_to(file, k=5)
    command = (published.folder, "--original", published.work_database, "--known", "2", "--json")
    code, said = called(*command, "--attacks", "scoring,posterior,dated")
    assert code == 0
    report = json.loads(said)
    release = {result["attack"]: result["group"]["value"] for result in report["results"]}
    assert release["dated"] == release["posterior"]
    original = {result["attack"]: result["user"]["value"] for result in report["original"]}
    assert original == {"scoring": pytest.approx(1 / 10), "dated": 1}
    code, said = called(*command, "--dates")
    assert "dated" in {result["attack"] for result in json.loads(said)["results"]}
    assert "dated" not in {result["attack"] for result in json.loads(called(*command)[1])["results"]}
    with pytest.raises(InputError, match="dated needs the dates of ratings"):
        run(open_evidence(published.folder, [str(published.work_database)]), attacks=["dated"])


@pytest.mark.slow
def test_half_of_the_people_are_told_from_the_other_half(sample: Path) -> None:
    results = half_in([str(sample)], PublishSettings(k=5, homogenize="pure", single_rater="keep"), LoadOptions())
    alone, more = results
    assert alone.targets + alone.details["others"] == 240
    # Cells that show the ratings of one person give the person away.
    assert alone.details["advantage_settled"] > 0.5
    assert more.knowledge == "all ratings, and ratings of other people"


def test_ratings_instead_of_the_working_database(released: Published, sample: Path) -> None:
    with_map = called(released.folder, "--original", released.work_database, "--known", "8", "--json",
                      "--attacks", "scoring,distance,disclosure")  # fmt: skip
    made_again = called(released.folder, "--original", sample, "--known", "8", "--json",
                        "--attacks", "scoring,distance,disclosure")  # fmt: skip
    assert with_map == made_again


def test_shadow_releases_are_made_of_what_the_release_says(released: Published, made: Made) -> None:
    command = ("--attacks", "shadows,attribute,existence", "--shadows", 12, "--no-on-original")
    code, said = called(released.folder, "--original", released.work_database, *command, "--max-shadow-advantage", "1")
    assert code == 0, said
    for words in ("shadows, 12 shadow releases", "attribute, 12 shadow releases", "existence, all other ratings known"):
        assert words in said
    arguments = (released.folder, "--original", released.work_database, *command, "--json", "--max-sign-auc", "0.4")
    code, said = called(*arguments)
    assert code == 3
    assert "existence (all other ratings) measures" in said
    code, said = called(made("padded").folder, "--original", made("padded").work_database, *command)
    assert (code, "shadow releases are made in memory" in said) == (2, True), said
    code, said = called(released.folder, "--original", released.work_database, "--max-existence-auc", "0.6")
    assert (code, "--attacks has to name" in said) == (2, True), said
