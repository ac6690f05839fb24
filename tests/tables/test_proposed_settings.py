"""`kgather init anonymize`: what is proposed for a table, and that nobody is shown by what was guessed."""

from pathlib import Path

import duckdb
import pytest
import yaml
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import InputError, KgatherError
from kgather._tables.proposal import propose


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, str(result.exception)
    return result.exit_code, result.stdout


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("clinic") / "clinic.duckdb"
    with duckdb.connect(file) as con:
        con.execute(
            """
            create table wards (ward_id integer primary key, title varchar);
            insert into wards select i, 'ward ' || i from range(5) as r (i);
            create table patients (
              patient_id integer primary key, first_name varchar, email varchar, date_of_birth date, zip varchar,
              sex varchar, diagnosis varchar, ward_id integer references wards (ward_id), "how?" varchar, tags varchar[]
            );
            insert into patients
            select
              i, 'n' || i, i || '@example.org', date '1950-01-01' + cast(i * 37 % 18000 as integer),
              '0' || (2100 + i * 7 % 60), ['f', 'm'][1 + i % 2], ['flu', 'cold', 'gout', 'burn'][1 + i * 13 % 4], i % 5,
              ['bus', 'car'][1 + i * 3 % 2], ['x']
            from range(400) as r (i);
            create table visits (visit_id integer primary key, patient_id integer references patients, cost double);
            insert into visits select i, i % 400, i * 7 % 90 from range(1500) as r (i);
            """
        )
    return file


def test_roles_come_from_names_types_uniqueness_and_joins(clinic: Path) -> None:
    made = propose(f"{clinic}:patients", k=5)
    assert {name: found.role for name, found in made.roles.items()} == {
        "patient_id": "unit",
        "first_name": "identifier",
        "email": "identifier",
        "date_of_birth": "quasi-identifier",
        "zip": "quasi-identifier",
        "sex": "quasi-identifier",
        "diagnosis": "sensitive",
        "ward_id": "quasi-identifier",
        "how?": "quasi-identifier",  # nobody knows what it is, so it is not shown as it is
        "tags": "identifier",
    }
    assert "rows of wards" in made.roles["ward_id"].why
    said = yaml.safe_load(made.text)
    assert said["quasi_identifiers"]["zip"] == {"kind": "prefix"}
    assert said["sensitive"] == {"diagnosis": {"l": 2}}
    assert "others" not in said


def test_which_sets_of_columns_single_out_how_many_people(clinic: Path) -> None:
    made = propose(f"{clinic}:patients", k=5)
    told = {each.columns: each for each in made.singled_out}
    with duckdb.connect(clinic, read_only=True) as con:
        for columns, each in told.items():
            listed = ", ".join(f'"{name}"' for name in columns)
            sizes = con.sql(f"select n from (select count(*) as n from patients group by {listed})").fetchall()
            assert each.alone == sum(n == 1 for (n,) in sizes)
            assert each.few == sum(n for (n,) in sizes if n < 5)
    assert made.people == 400
    assert told[("date_of_birth",)].alone == 400
    assert ("date_of_birth", "zip", "sex", "ward_id", "how?") in told


def test_what_is_written_is_read_and_gives_a_release(clinic: Path, tmp_path: Path) -> None:
    out = tmp_path / "anonymize.yml"
    code, said = run("init", "anonymize", f"{clinic}:patients", "--k", 5, "--out", out)
    assert code == 0, said
    assert "date_of_birth: 400 stand alone, 400 are among fewer than 5" in said
    assert "@example.org" not in said + out.read_text(encoding="utf-8")
    code, said = run(
        "anonymize", f"{clinic}:patients", "--settings", out, "--out", tmp_path / "release", "--suppress", 0.1
    )
    assert code == 0, said
    with duckdb.connect(tmp_path / "release" / "release.duckdb", read_only=True) as con:
        shown = con.table("kgather__table")
        assert shown.columns == ["date_of_birth", "zip", "sex", "ward_id", "how?", "diagnosis"]
    assert "exists" in run("init", "anonymize", f"{clinic}:patients", "--out", out)[1]


def test_people_with_several_rows_are_counted(clinic: Path, tmp_path: Path) -> None:
    out = tmp_path / "visits.yml"
    assert run("init", "anonymize", f"{clinic}:visits", "--k", 5, "--out", out)[0] == 0
    said = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert (said["unit"], said["rows_per_person"], said["identifiers"]) == ("patient_id", 5, ["visit_id"])
    # Each person is counted once, whichever of the rows tells.
    made = propose(f"{clinic}:visits", k=5)
    assert made.people == 400
    with duckdb.connect(clinic, read_only=True) as con:
        [(alone,)] = con.sql(
            "select count(distinct patient_id) from visits semi join (select cost from visits group by cost "
            "having count(distinct patient_id) = 1) using (cost)"
        ).fetchall()
    assert {each.columns: each.alone for each in made.singled_out}[("cost",)] == alone
    code, told = run("anonymize", f"{clinic}:visits", "--settings", out, "--out", tmp_path / "release")
    assert code == 0, told
    assert "people in the smallest class" in told


def test_the_word_of_a_name_never_opens_what_could_name_a_person(tmp_path: Path) -> None:
    file = tmp_path / "hostile.duckdb"
    with duckdb.connect(file) as con:
        con.execute(
            """
            create table drugs (drug_id integer primary key, title varchar);
            insert into drugs select i, 'drug ' || i from range(6) as r (i);
            create table patients as select
              i as patient_id, 20 + i % 60 as age, ['flu', 'cold', 'gout'][1 + i * 7 % 3] as diagnosis,
              i * 13 % 30 as credit_score, ['flu', 'cold'][1 + i % 2]::enum ('flu', 'cold') as outcome,
              -- unique or nearly
              400000000 + i * 7919 as credit_balance, 'RX-' || (i * 7919 % 100003) as prescription,
              md5('x' || i) as hiv,
              (i * 7919 % 100003) / 7.0 as debt, case when i < 5 then 'only ' || i end as genome,
              'h' || (i // 3) as religion,
              -- secrets, ids, people
              4000000000000000 + i as credit_card, i % 9 as result_no, ['a', 'b'][1 + i % 2] as pay_to,
              ['a', 'b'][1 + i % 2] as treatment_by, ['a', 'b'][1 + i % 2] as party_name, i % 6 as drug_id,
              gen_random_uuid() as allergy, ['a@x.org', 'b@x.org'][1 + i % 2] as therapy,
              ['015112345678', '015112345679'][1 + i % 2] as wage,
              -- dates
              date '2024-01-01' + cast(i % 9 as integer) as treatment_date,
              cast(timestamp '2024-01-01' + to_hours(i % 9) as varchar) as procedure,
              20240101 + i % 9 as income, ['03.05.2024', '04.05.2024'][1 + i % 2] as conviction, 1.7e9 + i % 9 as icd,
              -- free text
              'Anna Meier' || i || ' came with pain' as symptom, repeat('came with pain ', 4) || i % 60 as illness,
              'note' || i % 3 as condition_notes
            from range(600) as r (i);
            create table stays as select i as stay_id, i % 600 as patient_id, i % 600 as debt_x,
              i % 600 as pay_customer,
              i % 600 as credit_no, ['flu', 'cold', 'gout'][1 + i * 7 % 3] as diagnosis, i % 30 as days
            from range(2400) as r (i);
            """
        )
    made = propose(f"{file}:patients")
    sensitive = {name for name, found in made.roles.items() if found.role == "sensitive"}
    assert sensitive == {"diagnosis", "credit_score", "outcome"}
    roles = {name: found.role for name, found in made.roles.items()}
    left_out = {"prescription", "hiv", "genome", "credit_card", "allergy", "symptom", "condition_notes"}
    assert {name for name in left_out if roles[name] != "identifier"} == set()
    for name, why in {
        "debt": "though debt may be sensitive: many people have a value that few others have",
        "religion": "many people have a value that few others have",
        "pay_to": "it seems to say who",
        "drug_id": "rows of drugs",
        "procedure": "when something was",
        "income": "when something was",
        "therapy": "addresses",
        "illness": "long",
    }.items():
        assert why in made.roles[name].why, name
    assert "sensitive" not in {
        propose(f"{file}:stays").roles[name].role for name in ("debt_x", "pay_customer", "credit_no", "stay_id")
    }
    assert propose(f"{file}:stays").roles["diagnosis"].role == "sensitive"


def test_a_file_of_names_that_need_quotes(tmp_path: Path) -> None:
    file = tmp_path / "staff list.csv"
    lines = ["id,on,age group,salary"]
    lines += [f"{i},{'ab'[i % 2]},{20 + i % 30},{1000 + i % 7}" for i in range(200)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = propose(str(file), header=True)
    said = yaml.safe_load(made.text)
    assert list(said["quasi_identifiers"]) == ["on", "age group"]
    assert said["sensitive"] == {"salary": {"l": 2}}
    assert said["unit"] == "id"


def test_names_of_any_characters_are_read_as_they_are(tmp_path: Path) -> None:
    names = [
        "\U0001f600 mood",
        "null",
        "1",
        "a: b # c",
        "tab\tand\nline",
        "\u2028",
        "\x85\x7f",
        "'\"\\",
        "Größe",
        "x" * 1500,
    ]
    file = tmp_path / "odd.duckdb"
    with duckdb.connect(file) as con:
        listed = ", ".join(f"""i % 7 as "{name.replace('"', '""')}\"""" for name in names)
        con.execute(f'create table people as select i as id, uuid() as "\U0001f600", {listed} from range(200) as r (i)')
    out = tmp_path / "odd.yml"
    assert run("init", "anonymize", f"{file}:people", "--k", 5, "--out", out)[0] == 0
    said = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert list(said["quasi_identifiers"]) == names
    assert said["identifiers"] == ["\U0001f600"]
    code, told = run("anonymize", f"{file}:people", "--settings", out, "--out", tmp_path / "release")
    assert code == 0, told


def test_what_cannot_be_proposed_is_said(clinic: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no table nurses"):
        propose(f"{clinic}:nurses")
    with pytest.raises(InputError, match="patients has no column name"):
        propose(f"{clinic}:patients", unit="name")
    empty = tmp_path / "empty.duckdb"
    with duckdb.connect(empty) as con:
        con.execute("create table people (age integer)")
    with pytest.raises(InputError, match="people has no rows"):
        propose(f"{empty}:people")
    assert "--header goes with kgather init anonymize" in run("init", tmp_path / "project", "--header")[1]
    assert "--private goes with kgather init guard" in run("init", "anonymize", f"{clinic}:patients", "--private")[1]
