"""The docs say all there is, and what they say runs."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from kgather._cli.app import app
from kgather._dbt_package import dbt_path
from kgather.udfs.preferences.als import AlsOptions
from kgather.udfs.preferences.funk import FunkOptions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SIGNATURE = re.compile(r"create or replace macro (\w+\(.*?\)) as\b", re.DOTALL)


def page(name: str) -> str:
    file = DOCS / name
    assert file.is_file(), f"docs/{name} is missing"
    return file.read_text(encoding="utf-8")


def test_the_sql_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page("sql.md")
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) == text.count("```") / 2, "a block is neither sql nor python"
    names: dict[str, Any] = {}
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        # So that a failure names the line of the page.
        code = compile("\n" * line + block[2], "docs/sql.md", "exec") if block[1] == "python" else None
        if code:
            exec(code, names)
        else:
            try:
                names["con"].execute(block[2]).fetchall()
            except Exception as error:
                pytest.fail(f"docs/sql.md line {line}: {error}")
    assert (tmp_path / "released.parquet").is_file()
    names["con"].close()


@pytest.mark.parametrize("macro", sorted((dbt_path() / "sql").rglob("kg_*.sql")), ids=lambda file: file.stem)
def test_every_macro_is_documented_with_its_signature(macro: Path) -> None:
    signature = _SIGNATURE.search(macro.read_text(encoding="utf-8"))
    assert signature, f"{macro} creates no macro"
    written = re.sub(r"\s+", " ", signature[1]).replace("( ", "(").replace(" )", ")")
    headings = re.findall(r"^### `(.*)`$", page("sql.md"), re.MULTILINE)
    assert written in headings


def test_no_macro_is_documented_that_is_not_there() -> None:
    headings = re.findall(r"^### `(\w+)\(", page("sql.md"), re.MULTILINE)
    assert sorted(headings) == sorted(file.stem for file in (dbt_path() / "sql").rglob("kg_*.sql"))


def package_vars() -> list[str]:
    project = yaml.safe_load((dbt_path() / "dbt_project.yml").read_text(encoding="utf-8"))
    return list(project["vars"]["kgather"])


@pytest.mark.parametrize("name", package_vars())
def test_every_var_is_documented(name: str) -> None:
    assert f"`{name}`" in page("vars.md")


@pytest.mark.parametrize("name", sorted(file.stem for file in (dbt_path() / "sql" / "tests").glob("*.sql")))
def test_every_generic_test_is_documented(name: str) -> None:
    assert re.search(rf"\b{name}\b", page("tests.md"))


def command_options() -> list[tuple[str, str]]:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    single = ("publish", "verify", "attack", "metrics", "sweep", "paper", "query", "explain", "init", "serve")
    within = [(f"{name} {sub}", of) for name in ("user", "ledger") for sub, of in commands[name].commands.items()]
    return [
        (name, max(option.opts, key=len))
        for name, command in [*((name, commands[name]) for name in single), *within]
        for option in command.params
        if option.param_type_name == "option"
    ]


@pytest.mark.parametrize(("command", "option"), command_options(), ids=lambda part: part)
def test_every_option_is_documented(command: str, option: str) -> None:
    text = page("command-line.md")
    assert f"kgather {command}" in text
    assert re.search(rf"{option}(?![\w-])", text)


@pytest.mark.parametrize("option", [field.name for kind in (AlsOptions, FunkOptions) for field in fields(kind)])
def test_every_option_of_a_solver_is_documented(option: str) -> None:
    assert f"`{option}`" in page("choices.md")
