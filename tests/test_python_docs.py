"""docs/python.md runs as it stands, and names all that is public."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kgather
import kgather.guard

PAGE = Path(__file__).parent.parent / "docs" / "python.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_page_runs_as_it_stands(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(sample, tmp_path / "ratings.csv")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) == text.count("```") / 2, "a block is not python"
    names: dict[str, Any] = {}
    for block in blocks:
        # So that a failure names the line of the page.
        before = "\n" * (text[: block.start()].count("\n") + 1)
        exec(compile(before + block[1], str(PAGE), "exec"), names)
    assert (tmp_path / "release" / "ratings.parquet").is_file()


@pytest.mark.parametrize("name", kgather.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(kgather, name) is not None
    assert name in dir(kgather)
    assert re.search(rf"`(kgather\.)?{name}\b", PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", kgather.guard.__all__)
def test_every_public_name_of_the_guard_is_there_and_documented(name: str) -> None:
    assert getattr(kgather.guard, name) is not None
    assert name in dir(kgather.guard)
    assert re.search(rf"`(kgather\.guard\.)?{name}\b", PAGE.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_importing_is_quick_and_names_are_found_afterwards() -> None:
    code = (
        "import sys, kgather; from kgather import InputError, Release, publish, verify, attack\n"
        "heavy = {'numba', 'duckdb', 'numpy', 'pyarrow', 'dbt', 'pydantic', 'jinja2'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
        "assert kgather.guard.__name__ == 'kgather.guard'\n"
        "assert kgather.guard.Refused is not None\n"
        "assert issubclass(kgather.guard.Refused, kgather.KgatherError)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = kgather.nonsense
    with pytest.raises(ImportError):
        exec("from kgather import nonsense")
