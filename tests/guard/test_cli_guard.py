"""`kgather query`, `kgather explain` and `kgather init guard`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
import typer
from guard_files import AMPLE, spend, truth, write_files
from pydantic import BaseModel
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._cli.query import parameters
from kgather._errors import KgatherError
from kgather._guard.guard import Guard
from kgather._guard.policy import Diversity, Limits, Pivot, Policy, Table, load_policy
from kgather._guard.refused import TOO_FEW_MESSAGE

DOCS = Path(__file__).parent.parent.parent / "docs"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(salary) AS mean FROM ratings_wide GROUP BY city ORDER BY city"
FEW = "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 99"


def kgather(*arguments: object, stdin: str | None = None) -> tuple[int, str]:
    """The exit code and what was printed, as the command itself does it."""
    result = CliRunner().invoke(app, [*map(str, arguments)], input=stdin)
    if isinstance(result.exception, KgatherError):
        assert result.stdout == ""
        return result.exception.exit_code, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def apart(*arguments: object) -> tuple[int, str, str]:
    """The exit code and what was printed to standard output and standard error."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("cli"), mode="measured", budget=AMPLE)


@pytest.fixture(scope="module")
def expected(policy: Path) -> list[dict[str, object]]:
    rows = Guard.from_policy(policy).query(BY_CITY).to_pylist()
    assert len(rows) >= 3
    return rows


# query


def test_a_table_by_hand(tmp_path: Path) -> None:
    """What is public is told as it is, numbers to the right."""
    policy = write_files(tmp_path)
    with duckdb.connect(tmp_path / "fixture.duckdb") as con:
        con.execute("delete from items; insert into items values (1, '[b]x[/b]', null), (20, 'a\x1b[2Jb\nc', 'g')")
    code, told = kgather("query", "--policy", policy, "SELECT item_id, title, genre FROM items ORDER BY item_id")
    assert code == 0
    assert [line.rstrip() for line in told.splitlines()] == [
        "item_id  title     genre",
        "      1  [b]x[/b]  NULL",
        "     20  a\ufffd[2Jb\ufffdc  g",
    ]


def test_every_format_has_the_same_result(policy: Path, expected: list[dict[str, object]], tmp_path: Path) -> None:
    _, told = kgather("query", "--policy", policy, "--format", "json", BY_CITY)
    assert json.loads(told) == expected
    _, told = kgather("query", "--policy", policy, "--format", "csv", BY_CITY)
    rows = [line.split(",") for line in told.splitlines()]
    assert rows[0] == ["city", "n", "mean"]
    assert [[city, int(n), float(mean)] for city, n, mean in rows[1:]] == [list(row.values()) for row in expected]
    _, told = kgather("query", "--policy", policy, BY_CITY)
    rows = [line.split() for line in told.splitlines()]
    assert [[city, int(n), float(mean)] for city, n, mean in rows[1:]] == [list(row.values()) for row in expected]
    for format in ("csv", "json", "parquet", "table"):
        file = tmp_path / f"answer.{format}"
        assert kgather("query", "--policy", policy, "--format", format, "--out", file, BY_CITY) == (0, "")
        assert file.stat().st_size > 0
    assert pq.read_table(tmp_path / "answer.parquet").to_pylist() == expected
    with duckdb.connect() as con:
        for format in ("csv", "json"):
            found = con.sql(f"from '{tmp_path}/answer.{format}'").fetchall()
            assert found == [tuple(row.values()) for row in expected]


def test_an_empty_answer_is_one(policy: Path) -> None:
    sql = "SELECT item_id FROM items WHERE item_id = 77"
    assert kgather("query", "--policy", policy, "--format", "json", sql)[1].split() == ["[", "]"]
    assert kgather("query", "--policy", policy, "--format", "csv", sql) == (0, "item_id\n")


def test_the_statement_may_come_on_standard_input(policy: Path, expected: list[dict[str, object]]) -> None:
    for more in ([], ["-"]):
        code, told = kgather("query", "--policy", policy, "--format", "json", *more, stdin=BY_CITY + ";\n")
        assert code == 0
        assert json.loads(told) == expected


def test_parameters(policy: Path) -> None:
    ask = "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= {}"
    query = ["query", "--policy", policy, "--format", "json"]
    expected = kgather(*query, ask.format(3))
    assert kgather(*query, ask.format("?"), "--parameter", "3") == expected
    assert kgather(*query, ask.format("$1"), "--parameter", "3") == expected
    assert kgather(*query, ask.format("$least"), "--parameter", "least=3") == expected
    assert kgather(*query, ask.format("?"))[0] == 4
    assert kgather(*query, ask.format("$a"), "--parameter", "a=1", "--parameter", "a=2")[0] == 2


@pytest.mark.parametrize(
    ("given", "text", "found"),
    [
        (["3", "-2", "0.5", "1e3"], "? ? ? ?", [3, -2, 0.5, 1000.0]),
        (["null", "TRUE", "false"], "? ? ?", [None, True, False]),
        (["'3'", "'it''s'", "a b", ""], "? ? ? ?", ["3", "it's", "a b", ""]),
        (["a=1", "B=x"], "$a $b", {"a": 1, "B": "x"}),
        (["a=1"], "?", ["a=1"]),
        (["a=b=c"], "$a", {"a": "b=c"}),
        (None, "", []),
    ],
    ids=["numbers", "words", "texts", "names", "no name", "two signs", "none"],
)
def test_how_parameters_are_read(given: list[str] | None, text: str, found: object) -> None:
    assert parameters(given, text) == found


def test_who_asks(tmp_path: Path) -> None:
    policy = write_files(tmp_path, principals={"ann": {}, "bob": {}})
    count = "SELECT COUNT(*) FROM items"
    assert kgather("query", "--policy", policy, "--principal", "bob", count)[0] == 0
    code, told = kgather("query", "--policy", policy, count)
    assert code == 2
    assert "it names: ann, bob" in told
    assert kgather("query", "--policy", policy, "--principal", "eve", count)[0] == 2


def test_what_is_wrong_about_the_call_ends_with_2(policy: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (["--policy", tmp_path / "none.yml", BY_CITY], "cannot be read"),
        (["--policy", policy, "--format", "xml", BY_CITY], "--format is table, csv, json or parquet, not 'xml'."),
        (["--policy", policy, "--format", "parquet", BY_CITY], "Name it with --out"),
        (["--policy", policy, "--out", tmp_path / "no" / "file.csv", BY_CITY], "cannot be written"),
        (["--policy", policy, "--format", "csv", "--out", tmp_path / "no" / "file.csv", BY_CITY], "cannot be written"),
    ):
        code, told = kgather("query", *arguments)
        assert (code, message in told) == (2, True), told
    assert kgather("query", BY_CITY)[0] == 2


def test_what_is_refused_ends_with_4(policy: Path) -> None:
    code, told = kgather("query", "--policy", policy, "SELECT user_id, salary FROM ratings_wide")
    assert code == 4
    assert "line 1" in told or "Aggregate" in told
    assert kgather("query", "--policy", policy, FEW) == (4, TOO_FEW_MESSAGE)
    assert kgather("query", "--policy", policy, FEW.replace("99", "98")) == (4, TOO_FEW_MESSAGE)
    assert kgather("query", "--policy", policy, "--format", "json", "SELECT 5 % 0")[0] in (0, 4)


def test_a_budget_that_is_spent_ends_with_4(tmp_path: Path) -> None:
    policy = write_files(tmp_path, mode="measured", budget=AMPLE)
    spend(policy, BY_CITY)
    code, told = kgather("query", "--policy", policy, "SELECT gender, COUNT(*) FROM users GROUP BY gender")
    assert (code, told.startswith("The budget of the ledger is spent")) == (4, True), told
    assert kgather("query", "--policy", policy, BY_CITY)[0] == 0, "what was measured is answered"


# Errors


def test_errors_are_said_beside_the_result(policy: Path, expected: list[dict[str, object]]) -> None:
    code, told, said = apart("query", "--policy", policy, "--errors", "--format", "json", BY_CITY)
    assert (code, json.loads(told)) == (0, expected)
    first, cost, second, heads, *rows = said.splitlines()
    assert re.fullmatch(r"The numbers are measured; the largest standard error is [0-9.e-]+% of its number\.", first)
    assert re.fullmatch(r"It cost (nothing|[0-9.]+% of the budget).*; [0-9.]+% of the budget is spent\.", cost)
    assert second == "kg_block_1, as kgather explain names it, has these standard errors."
    assert heads.split() == ["key_1", "value_1_error", "value_1_kind", "value_2_error", "value_2_kind"]
    assert sorted(row.split()[0] for row in rows) == [row["city"] for row in expected]
    assert {row.split()[2] for row in rows} == {"measured"}
    assert apart("query", "--policy", policy, "--errors", "SELECT COUNT(*) FROM items")[2] == ""


def test_errors_in_columns(policy: Path, expected: list[dict[str, object]]) -> None:
    code, told, said = apart("query", "--policy", policy, "--error-columns", "--format", "json", BY_CITY)
    assert (code, said) == (0, "")
    rows = json.loads(told)
    assert list(rows[0]) == ["city", "n", "n_error", "n_kind", "mean", "mean_error", "mean_kind"]
    assert [{name: row[name] for name in ("city", "n", "mean")} for row in rows] == expected
    assert all(row["n_error"] > 0 and row["n_kind"] == "measured" for row in rows)


def test_what_there_is_in_another_mode(tmp_path: Path) -> None:
    policy = write_files(tmp_path, mode="generalized", limits={"time_ms": 600_000})
    count = "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= 3"
    code, _, said = apart("query", "--policy", policy, "--errors", count)
    assert code == 0
    note, *shares = said.splitlines()
    assert note.startswith("The numbers are sums over the classes of a release")
    assert all(re.fullmatch(r"kg_block_1: up to \d+% of what it covers may be off\.", share) for share in shares)
    assert len(shares) == 1
    code, told = kgather("query", "--policy", policy, "--error-columns", count)
    assert (code, told.startswith("Mode generalized has no standard errors to put into columns")) == (2, True)


@pytest.mark.slow
def test_the_process_itself(policy: Path) -> None:
    """Exit code 4, the one text on standard error, nothing on standard output."""
    command = [sys.executable, "-c", "from kgather._cli.app import main; main()", "query", "--policy", str(policy)]
    done = subprocess.run([*command, FEW], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", f"kgather: {TOO_FEW_MESSAGE}\n")
    done = subprocess.run(
        [*command, "--format", "csv"], capture_output=True, text=True, check=False, input="SELECT 1 AS one"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\n1\n", "")


# explain


def test_explain_says_what_would_be_asked(policy: Path) -> None:
    code, told = kgather("explain", "--policy", policy, BY_CITY)
    assert code == 0
    assert "avg" in told.lower()
    assert told.strip() == Guard.from_policy(policy).explain(BY_CITY).strip()
    assert kgather("explain", "--policy", policy, stdin=BY_CITY) == (0, told)
    few = kgather("explain", "--policy", policy, FEW)
    assert few[0] == 0, "explain asks nothing, so it does not know that these are few"


def test_explain_refuses_as_query_does(policy: Path) -> None:
    text = "SELECT user_id, salary FROM ratings_wide"
    assert kgather("explain", "--policy", policy, text) == kgather("query", "--policy", policy, text)
    assert kgather("explain", "--policy", policy, text)[0] == 4


# init guard


def test_init_guard_writes_a_policy_that_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, told = kgather("init", "guard", "fixture.duckdb")
    assert code == 0
    assert "guard.yml is a policy made of guesses. Decide the" in told
    assert load_policy(tmp_path / "guard.yml").k == 10
    count = "SELECT COUNT(*) AS n FROM ratings_wide"
    code, told = kgather("query", "--policy", "guard.yml", "--format", "json", "--error-columns", count)
    assert code == 0
    (row,) = json.loads(told)
    people = int(str(truth(tmp_path, "select count(*) from ratings_wide")[0][0]))
    assert abs(row["n"] - people) <= 5 * row["n_error"] < people


def test_init_guard_takes_a_name_and_k(tmp_path: Path) -> None:
    write_files(tmp_path)
    out = tmp_path / "deep" / "p.yml"
    assert kgather("init", "guard", tmp_path / "fixture.duckdb", "--out", out, "--k", 7, "--unit", "user_id")[0] == 0
    assert load_policy(out).k == 7
    assert load_policy(out).database.resolve() == (tmp_path / "fixture.duckdb").resolve()
    before = out.read_text()
    code, told = kgather("init", "guard", tmp_path / "fixture.duckdb", "--out", out)
    assert (code, "exists" in told) == (2, True)
    assert out.read_text() == before


def test_init_of_a_folder_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert kgather("init", "project")[0] == 0
    assert (tmp_path / "project" / "dbt_project.yml").is_file()
    assert kgather("init", "guard")[0] == 0, "a folder of this name is a project, too"
    assert (tmp_path / "guard" / "dbt_project.yml").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["project", "fixture.duckdb"],
        ["project", "--out", "x.yml"],
        ["project", "--unit", "user_id"],
        ["guard", "none.duckdb"],
        ["guard", "policy.yml"],
        ["guard", "fixture.duckdb", "--k", "1"],
        ["guard", "fixture.duckdb", "--unit", "nobody"],
    ],
    ids=" ".join,
)
def test_init_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert kgather("init", *arguments)[0] == 2
    assert not (tmp_path / "guard.yml").exists()
    assert not (tmp_path / "project").exists()


# The docs


@pytest.mark.parametrize("part", [Policy, Table, Pivot, Diversity, Limits], ids=lambda part: part.__name__)
def test_every_entry_of_a_policy_is_documented(part: type[BaseModel]) -> None:
    text = (DOCS / "guard.md").read_text(encoding="utf-8")
    assert [name for name in part.model_fields if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", ["query", "explain", "init"])
def test_every_option_of_a_command_is_documented(name: str) -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    options = [max(option.opts, key=len) for option in command.params if option.param_type_name == "option"]
    assert len(options) >= 3
    assert [option for option in options if f"`{option}" not in text] == []


def test_a_ledger_that_begins_says_what_its_budget_buys(tmp_path: Path) -> None:
    policy = write_files(tmp_path, mode="measured", budget={"epsilon": 2, "delta": 1.0e-6})
    count = "SELECT COUNT(*) AS n FROM ratings_wide"
    _, _, said = apart("explain", "--policy", policy, count)
    first, budget, *_ = said.splitlines()
    assert first.endswith(" is a new ledger.")
    assert budget.startswith("The budget is epsilon 2 at delta 1e-06")
    _, _, again = apart("query", "--policy", policy, count)
    assert "The budget is" not in again
