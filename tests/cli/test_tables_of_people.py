"""`attack`, `metrics` and `sweep` on tables of people, from the command line."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import KgatherError


def run(*arguments: object) -> tuple[int, str]:
    """The exit code and what was said."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, str(result.exception)
    return result.exit_code, result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    lines = ["age,country,illness,visits"]
    for i in range(300):
        country = ["Greece", "Italy", "India"][i * 7 % 3]
        lines.append(f"{20 + i * 11 % 60},{country},{['flu', 'cold', 'gout'][(i // 5) % 3]},{i % 2}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "country.csv").write_text("Greece;Europe\nItaly;Europe\nIndia;Asia\n", encoding="utf-8")
    code, said = run(
        "anonymize", folder / "people.csv", "--k", 6, "--l", 2, "--quasi-identifiers", "age,country", "--step", "age=5",
        "--hierarchy", f"country={folder / 'country.csv'}", "--sensitive", "illness", "--others", "visits", "--seed", 7,
        "--sampling-fraction", 0.1, "--out", folder / "release",
    )  # fmt: skip
    assert code == 0, said
    return folder


def given(folder: Path) -> list[object]:
    return ["--original", folder / "people.csv", "--hierarchy", f"country={folder / 'country.csv'}"]


def test_a_release_has_a_report(folder: Path) -> None:
    page = (folder / "release" / "report.html").read_text(encoding="utf-8")
    assert "Report of an anonymized table" in page
    assert str(folder) not in page
    audit = json.loads((folder / "release" / "audit.json").read_text(encoding="utf-8"))
    assert sum(size * classes for size, classes in audit["class_sizes"]) == 300
    assert audit["risks"]["journalist"] < audit["risks"]["prosecutor"]
    assert run("verify", folder / "release")[0] == 0


def test_attacks(folder: Path, tmp_path: Path) -> None:
    asked = ["attack", folder / "release", *given(folder), "--publish-seed", 7, "--targets", 100]
    code, said = run(*asked, "--out", tmp_path / "attacks.json", "--population", folder / "people.csv")
    assert code == 0, said
    for name in ("linkage", "journalist", "homogeneity, illness", "background, illness"):
        assert name in said
    told = json.loads((tmp_path / "attacks.json").read_text(encoding="utf-8"))
    linked = [result for result in told["results"] if result["attack"] == "linkage"]
    assert [result["known"] for result in linked] == [1, 2]
    assert 0 < linked[-1]["user"]["value"] <= 1 / 6 + 1e-9
    assert told["original"]
    code, said = run(*asked, "--max-user-reidentification", 0.0)
    assert code == 3
    code, said = run(*asked, "--json", "--attacks", "background", "--no-on-original")
    assert [result["attack"] for result in json.loads(said)["results"]] == ["background"]


@pytest.mark.slow  # scikit-learn asks a process about the processor
def test_metrics(folder: Path) -> None:
    pytest.importorskip("sklearn")
    asked = ["metrics", folder / "release", *given(folder), "--seed", 7, "--json"]
    code, said = run(*asked, "--model", "visits")
    assert code == 0, said
    found = {metric["metric"]: metric["value"] for metric in json.loads(said)["metrics"]}
    audit = json.loads((folder / "release" / "audit.json").read_text(encoding="utf-8"))
    assert found["loss"] == audit["report"]["loss"]
    assert found["entropy of age"] == audit["report"]["columns"]["age"]["entropy"]
    assert {"query_error_1", "accuracy_usual", "accuracy_logistic_release", "accuracy_boosting_original"} <= set(found)
    assert 0 <= found["accuracy_logistic_original"] <= 1
    code, again = run(*asked, "--model", "visits")
    assert json.loads(again) == json.loads(said)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["attack", "RELEASE", "--original", "PEOPLE"], "give --hierarchy country=FILE"),
        (["metrics", "RELEASE", "--original", "PEOPLE"], "give --hierarchy country=FILE"),
        (["attack", "RELEASE", "GIVEN", "--noisy"], "--noisy is for releases of ratings"),
        (["attack", "RELEASE", "GIVEN", "--original", "PEOPLE"], "give --original once"),
        (["attack", "RELEASE", "GIVEN", "--max-linked-items", 0.1], "nothing to look at"),
        (["metrics", "RELEASE", "GIVEN", "--recommender"], "--average and --set are for releases of ratings"),
        (["metrics", "RELEASE", "GIVEN", "--seed", 7, "--model", "age"], "There are: illness, visits"),
        (["sweep", "PEOPLE", "--suppress", "0.1"], "go with --quasi-identifiers"),
        (["sweep", "PEOPLE", "--quasi-identifiers", "age", "--vary", "x=1"], "no --set, --vary"),
        (["sweep", "PEOPLE", "--quasi-identifiers", "age", "--suppress", "some"], "shares of rows"),
        (["sweep", "PEOPLE", "--quasi-identifiers", "age", "--methods", "magic"], "method"),
        (["sweep", "PEOPLE", "--quasi-identifiers", "years"], "years"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, arguments: list[object], told: str) -> None:
    meant = {"RELEASE": [folder / "release"], "PEOPLE": [folder / "people.csv"], "GIVEN": given(folder)}
    code, said = run(*[part for each in arguments for part in meant.get(str(each), [each])])
    assert code == 2, said
    assert told in said


def test_a_sweep(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.yml").write_text(
        f"quasi_identifiers: {{age: {{step: 5}}, country: {{hierarchy: '{folder / 'country.csv'}'}}}}\n"
        "sensitive: [illness]\n",
        encoding="utf-8",
    )
    asked = ["sweep", folder / "people.csv", "--settings", tmp_path / "asked.yml", "--k", "4,20,301"]
    code, said = run(*asked, "--methods", "mondrian,lattice", "--suppress", "0,0.1", "--out", tmp_path / "sweep")
    assert code == 0, said
    assert "fewer than k = 301" in said
    with (tmp_path / "sweep" / "sweep.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["k"] for row in rows] == ["4", "4", "20", "20", "301", "301"] * 2
    measured = [row for row in rows if not row["refused"]]
    assert any(row["front"] == "True" for row in measured)
    by_k = [float(row["loss"]) for row in measured if row["method"] == "mondrian" and row["suppress"] == "0.0"]
    assert by_k[0] < by_k[1]
    assert "Ways to anonymize a table" in (tmp_path / "sweep" / "sweep.html").read_text(encoding="utf-8")
    told = json.loads((tmp_path / "sweep" / "sweep.json").read_text(encoding="utf-8"))
    assert told["kind"] == "table"
    assert run(*asked, "--out", tmp_path / "sweep")[0] == 2
