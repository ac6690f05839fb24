"""`kgather anonymize`: from a file to a release that verifies, or a sentence that says why not."""

import json
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import renewed
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
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("people") / "people.csv"
    lines = ["id,age,zip,country,illness,visits"]
    for i in range(300):
        country = ["Greece", "Italy", "India", ""][i * 7 % 4]
        lines.append(f"{i},{20 + i * 11 % 60},0{2100 + i % 30},{country},{['flu', 'cold', 'gout'][i * 5 % 3]},{i % 4}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (file.parent / "country.csv").write_text("Greece;Europe\nItaly;Europe\nIndia;Asia\n", encoding="utf-8")
    return file


def roles(people: Path) -> list[object]:
    return [
        "--header", "--quasi-identifiers", "age,zip,country", "--prefix", "zip", "--step", "age=5",
        "--hierarchy", f"country={people.parent / 'country.csv'}", "--sensitive", "illness", "--others", "visits",
        "--unit", "id",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def release(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "release"
    code, said = run("anonymize", people, "--k", 6, "--l", 2, "--t", 0.4, *roles(people), "--out", out)
    assert code == 0, said
    return out


def test_a_release_holds_the_table_and_says_what_it_promises(release: Path) -> None:
    assert sorted(path.name for path in release.iterdir()) == [
        "audit.json", "release.duckdb", "report.html", "table.parquet",
    ]  # fmt: skip
    table = pq.read_table(release / "table.parquet")
    assert table.column_names == ["age", "zip", "country", "illness", "visits"]
    assert table.num_rows == 300
    assert set(table["country"].to_pylist()) <= {"Greece", "Italy", "India", "Europe", "Asia", "*", None}
    audit = json.loads((release / "audit.json").read_text(encoding="utf-8"))
    assert audit["kind"] == "table"
    assert audit["passed"]
    assert [check["promised"] for check in audit["checks"]] == [6, 2, 0.4]
    # Neither the seed nor where files lay, nor the original's ids, are told.
    text = (release / "audit.json").read_text(encoding="utf-8")
    assert "seed" not in text
    assert str(release.parent) not in text
    with duckdb.connect(release / "release.duckdb", read_only=True) as con:
        assert con.sql("select count(*) from kgather__table").fetchall() == [(300,)]
        assert con.sql("select count(*) from kgather__audit where passed").fetchall() == [(3,)]


def test_a_release_verifies_from_its_files_alone(release: Path) -> None:
    code, said = run("verify", release, "--json")
    assert code == 0, said
    assert json.loads(said)["passed"]
    assert run("verify", release, "--k", 200)[0] == 3


def _rewrite(folder: Path, table: pa.Table) -> None:
    pq.write_table(table, folder / "table.parquet")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: _rewrite(folder, pq.read_table(folder / "table.parquet").slice(1)), "differ"),
        (
            lambda folder: _rewrite(folder, pq.read_table(folder / "table.parquet").take(list(range(299, -1, -1)))),
            "order of what they show",
        ),
        (
            lambda folder: _rewrite(
                folder, pq.read_table(folder / "table.parquet").append_column("id", pa.array(range(300)))
            ),
            "cannot be read|columns that the audit does not name: id",
        ),
        (lambda folder: (folder / "people.csv").write_text("x"), "files that a release does not have: people.csv"),
        (
            lambda folder: duckdb.connect(folder / "release.duckdb").execute("create table people as select 1").close(),
            "tables of release.duckdb that a release does not have: main.people",
        ),
    ],
    ids=["row", "order", "column", "file", "table"],
)
def test_what_was_changed_is_found(release: Path, tmp_path: Path, change: object, told: str) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(release, folder)
    change(folder)  # type: ignore[operator]
    code, said = run("verify", folder, "--json")
    assert code in (2, 3)
    import re

    assert re.search(told, said)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("create macro who() as table select 1", "macro main.who"),
        ("create sequence people", "sequence main.people"),
        ("create type person as enum ('x')", "type main.person"),
        ("create schema more", "schema more"),
        ("create view more as select 1", "does not have: main.more"),
        ("create index found on kgather__table (age)", "index main.found"),
        ("comment on table kgather__table is 'x'", "comment on main.kgather__table"),
        ("comment on column kgather__table.age is 'x'", "comment on a column of main.kgather__table"),
        ("alter table kgather__table alter age set default 'x'", "default of a column of main.kgather__table"),
        ("alter table kgather__table alter age set not null", "constraint of main.kgather__table"),
        ("alter table kgather__table rename age to person", "those of table.parquet: person"),
        ("insert into kgather__audit values ('x', 1, 1, true)", "say otherwise"),
        ("update kgather__audit set promised = 1 + promised", "say otherwise"),
        ("alter table kgather__audit add column person varchar", "say otherwise"),
    ],
)
def test_what_a_database_hides_is_found(release: Path, tmp_path: Path, statement: str, told: str) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(release, folder)
    with duckdb.connect(folder / "release.duckdb") as con:
        con.execute(statement)
    # Blocks that a change of rows freed are told apart.
    failed = [each for each in _failed_with_new_checksums(folder) if "free blocks" not in each]
    assert len(failed) == 1
    assert told in failed[0]


def test_a_row_that_is_gone_from_a_large_class_is_found(release: Path, tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(release, folder)
    rows = pq.read_table(folder / "table.parquet")
    quasi = list(json.loads((folder / "audit.json").read_text())["parameters"]["quasi_identifiers"])
    listed = [tuple(row[name] for name in quasi) for row in rows.to_pylist()]
    largest = max(listed, key=listed.count)
    gone = listed.index(largest)
    _rewrite(folder, pa.concat_tables([rows.slice(0, gone), rows.slice(gone + 1)]))
    with duckdb.connect(folder / "release.duckdb") as con:
        con.execute(f"create or replace table kgather__table as from '{folder}/table.parquet'")
    assert any("classes of other sizes" in each for each in _failed_with_new_checksums(folder))


def _failed_with_new_checksums(folder: Path) -> list[str]:
    """The checks that a release fails after its page and checksums were made to fit its files as they are."""
    renewed(folder)
    code, said = run("verify", folder, "--json")
    assert code == 3
    return [check["check"] for check in json.loads(said)["checks"] if not check["passed"]]


def test_one_person_more_in_a_class_of_their_own_is_found(release: Path, tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(release, folder)
    table = pq.read_table(folder / "table.parquet")
    alone = pa.Table.from_pylist([{**table.to_pylist()[0], "age": "33"}], table.schema)
    _rewrite(folder, pa.concat_tables([table, alone]))
    checks = json.loads(run("verify", folder, "--json")[1])["checks"]
    assert checks[0]["measured"] == 1
    assert not checks[0]["passed"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--k", 5, "--quasi-identifiers", "age"], 2, "nobody said what 'id', 'zip'"),
        (["--k", 5], 2, "quasi_identifiers"),
        (["--k", 5, "--quasi-identifiers", "age,zipp"], 2, "nobody said"),
        (["--k", 0, "--quasi-identifiers", "age"], 2, ""),
        (["--quasi-identifiers", "age"], 2, "k is"),
        (["--k", 5, "--quasi-identifiers", "age", "--step", "zip=5"], 2, "--step names zip"),
        (["--k", 5, "--quasi-identifiers", "age", "--step", "age"], 2, "COLUMN=VALUE"),
        (["--k", 5, "--quasi-identifiers", "age", "--sensitive", "age"], 2, "named twice"),
        (["--k", 5, "--quasi-identifiers", "age", "--l", 3], 2, "needs a sensitive column"),
        (["--k", 301, "ALL"], 2, "fewer than k"),
        (["--k", 5, "ALL", "--l", 4], 2, "cannot be kept"),
        (["--k", 5, "ALL", "--method", "magic"], 2, "method"),
    ],
)
def test_what_makes_no_sense_is_refused(
    people: Path, tmp_path: Path, arguments: list[object], code: int, told: str
) -> None:
    given = [part for each in arguments for part in (roles(people) if each == "ALL" else [each])]
    found, said = run("anonymize", people, "--header", *given, "--out", tmp_path / "out")
    assert found == code, said
    assert told in said
    assert not (tmp_path / "out").exists()


def test_settings_of_a_file_and_a_table_of_a_database(people: Path, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute(f"create table people as from read_csv('{people}', all_varchar = false)")
    (tmp_path / "asked.yml").write_text(
        "k: 4\nmethod: cluster\nquasi_identifiers: {age: {step: 10}, country: }\nsensitive: {illness: {l: 2}}\n"
        "identifiers: [id, zip, visits]\n",
        encoding="utf-8",
    )
    target = f"{tmp_path / 'people.duckdb'}:people"
    code, said = run("anonymize", target, "--settings", tmp_path / "asked.yml", "--out", tmp_path / "out", "--json")
    assert code == 0, said
    assert json.loads(said)["report"]["rows"] == 300
    assert run("verify", tmp_path / "out")[0] == 0
    again, told = run("anonymize", target, "--settings", tmp_path / "asked.yml", "--out", tmp_path / "out")
    assert again == 2
    assert "--force" in told


def test_a_label_that_is_false_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,illness\n" + "30,flu\n29,cold\n" * 5, encoding="utf-8")
    (tmp_path / "age.csv").write_text("29;20-29;*\n30;20-29;*\n", encoding="utf-8")
    code, said = run(
        "anonymize", tmp_path / "people.csv", "--header", "--k", 2, "--quasi-identifiers", "age", "--sensitive",
        "illness", "--hierarchy", f"age={tmp_path / 'age.csv'}", "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 2
    assert "30 does not lie in its label '20-29'" in said


def test_tables_of_the_same_people_are_made_within_common_groups(people: Path, tmp_path: Path) -> None:
    groups, first, second = tmp_path / "groups.parquet", tmp_path / "first", tmp_path / "second"
    code, said = run("anonymize", people, "--k", 6, *roles(people), "--out", first, "--keep-groups", groups)
    assert code == 0, said
    assert groups.stat().st_mode & 0o077 == 0
    assert pq.read_table(groups).column_names == ["id", "group_id"]
    lines = ["id,ward,cost"]
    lines += [f"{i},{'ns'[(i + v) % 2]},{i * 37 % 400 + v * 10}" for i in range(300) for v in range(i % 3 + 1)]
    visits = tmp_path / "visits.csv"
    visits.write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = [
        "anonymize", visits, "--header", "--k", 6, "--unit", "id", "--quasi-identifiers", "ward,cost",
        "--rows-per-person", 2, "--out", second,
    ]  # fmt: skip
    code, said = run(*asked, "--within", groups, "--beside", groups, "--json")
    assert code == 0, said
    measured = {check["check"]: check for check in json.loads(said)["checks"]}
    assert measured["people whose rows are in the same set of classes, the fewest"]["measured"] >= 6
    assert measured["groups whose people are not all shown alike"]["passed"]
    assert measured["people in the smallest intersection with the classes of the other tables"]["measured"] >= 6
    assert run("verify", second)[0] == 0
    audit = json.loads((second / "audit.json").read_text(encoding="utf-8"))
    assert (audit["parameters"]["within"], audit["parameters"]["beside"]) == (True, 1)
    assert str(tmp_path) not in json.dumps(audit)
    # Alone nothing is promised beside another table, and that is measured.
    code, said = run(*asked, "--force", "--beside", groups, "--json")
    assert code == 0, said
    [alone] = [each for each in json.loads(said)["checks"] if "intersection" in each["check"]]
    assert alone["promised"] is None
    assert alone["measured"] < 6
    inside = [*asked, "--force", "--keep-groups", second / "groups.parquet"]
    assert run(*inside) == (2, f"{second / 'groups.parquet'} lies in the release: who is in which class would go out "
                            "with it. Give another --keep-groups.")  # fmt: skip
    assert run(*asked, "--force", "--keep-groups", groups)[0] == 0
    assert "exists" in run(*asked[:-2], "--out", tmp_path / "third", "--keep-groups", groups)[1]


def test_one_row_is_made_of_several_and_gets_a_pseudonym(tmp_path: Path) -> None:
    visits = tmp_path / "visits.csv"
    lines = [f"{i},{20 + i % 40},{v}" for i in range(80) for v in range(3)]
    visits.write_text("\n".join(["id,age,cost", *lines]) + "\n", encoding="utf-8")
    asked = [
        "anonymize",
        visits,
        "--header",
        "--k",
        5,
        "--quasi-identifiers",
        "age",
        "--others",
        "cost",
        "--unit",
        "id",
    ]
    out = tmp_path / "release"
    code, said = run(*asked, "--aggregate", "cost=sum", "--pseudonym", "id", "--out", out)
    assert code == 0, said
    table = pq.read_table(out / "table.parquet")
    assert table.column_names == ["age", "cost", "id"]
    assert table["cost"].to_pylist() == [3] * 80
    assert len(set(table["id"].to_pylist())) == 80
    assert run("verify", out)[0] == 0
    _rewrite(out, table.set_column(2, "id", pa.array(["same"] * 80)))
    assert run("verify", out)[0] == 3
    assert run(*asked, "--aggregate", "cost")[1] == "--aggregate takes COLUMN=HOW, as amount=sum."
    assert "given: 'best'" in run(*asked, "--aggregate", "cost=best")[1]
