"""The docs say all there is, and what they say runs."""

import re
from dataclasses import fields
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pytest
import typer

from kgather._cli.app import app
from kgather._dbt_package import dbt_path
from kgather._settings.project import ProjectSettings
from kgather.udfs.preferences.options import AlsOptions, FunkOptions

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


@pytest.mark.parametrize("name", ProjectSettings.model_fields)
def test_every_var_is_documented(name: str) -> None:
    assert f"`{name}`" in page("vars.md")


@pytest.mark.parametrize("name", sorted(file.stem for file in (dbt_path() / "sql" / "tests").glob("*.sql")))
def test_every_generic_test_is_documented(name: str) -> None:
    assert re.search(rf"\b{name}\b", page("tests.md"))


def command_options() -> list[tuple[str, str]]:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    of_releases = ("publish", "anonymize", "verify", "attack", "metrics", "sweep", "paper")
    single = (*of_releases, "query", "explain", "init", "serve")
    groups = ("user", "ledger", "guard")
    within = [(f"{name} {sub}", of) for name in groups for sub, of in commands[name].commands.items()]
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


_DOTTED = re.compile(r"(?<![\w./-])kgather(?:\.\w+)+")
_ABOUT_THE_SOURCE = {"architecture.md", "contributor.md", "CONTRIBUTING.md"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def names_of_package(file: Path) -> list[str]:
    """What a page calls kgather.something: a name of Python, not a test, macro or file of that name."""
    others = {path.stem for path in (dbt_path() / "sql").rglob("*.sql")} | {"service"}
    macros = "\n".join(path.read_text(encoding="utf-8") for path in (dbt_path() / "sql").rglob("*.sql"))
    others |= set(re.findall(r"macro (\w+)\(", macros))
    found = set(_DOTTED.findall(file.read_text(encoding="utf-8")))
    parts = {name: name.split(".")[1] for name in found}
    return sorted(name for name, part in parts.items() if part not in others and not part.startswith("ddl__"))


def resolve(name: str) -> object:
    """The module, class or function of a dotted name."""

    def within(part: object, field: str) -> object:
        if hasattr(part, field):
            return getattr(part, field)
        return import_module(f"{part.__name__}.{field}")  # type: ignore[attr-defined]

    return reduce(within, name.split(".")[1:], import_module("kgather"))


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_name_of_the_package_in_the_docs_is_there(file: Path) -> None:
    for name in names_of_package(file):
        try:
            resolve(name)
        except (AttributeError, ImportError) as error:
            pytest.fail(f"{file.relative_to(ROOT)} names {name}: {error}")


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_users_are_pointed_to_public_names_only(file: Path) -> None:
    if file.name not in _ABOUT_THE_SOURCE:
        private = [name for name in names_of_package(file) if re.search(r"\._(?!_)", name)]
        assert not private, f"{file.relative_to(ROOT)} names what is private: {private}"


def test_the_site_points_to_every_page() -> None:
    """A page that is in no list is read by nobody."""
    pages = {str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md")}
    nav = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    methods = {page for page in pages if page.startswith("methods/")}  # the site adds them by itself
    assert nav | methods == pages


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(name: str) -> None:
    """`make docs` checks those within it."""
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", (ROOT / name).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), f"{name} links to {target}"


_PATH = re.compile(r"`((?:src|tests|docs|benchmarks|fixtures|examples|packaging|tools)/[\w./-]*)`")
_TO_BE_WRITTEN = "src/kgather/dbt/sql/metrics/kg_mean_error.sql"  # the reader of contributor.md writes it


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_path_in_the_docs_is_there(file: Path) -> None:
    for path in _PATH.findall(file.read_text(encoding="utf-8")):
        assert (ROOT / path).exists() or path == _TO_BE_WRITTEN, f"{file.relative_to(ROOT)} names {path}"


def test_the_change_that_is_walked_through_works() -> None:
    macro, line = re.findall(r"^```sql\n(.*?)^```$", page("for/contributor.md"), re.DOTALL | re.MULTILINE)[:2]
    line_before = line.replace("kg_mean_error", "kg_shown_errors")
    assert line_before in (dbt_path() / "sql" / "hooks" / "on_run_start.sql").read_text(encoding="utf-8")
    with duckdb.connect() as con:
        con.execute(macro)
        con.execute(
            "create table ratings as from (values (1, 'a', 4.0), (2, 'a', 5.0)) as r (user_id, item_id, rating)"
        )
        con.execute("create table groups as from (values (1, 7), (2, 7)) as g (user_id, group_id)")
        con.execute("create table cells as from (values (7, 'a', 4.0)) as c (group_id, item_id, rating)")
        assert con.sql("from kg_mean_error('ratings', 'groups', 'cells')").fetchall() == [(-0.5,)]
