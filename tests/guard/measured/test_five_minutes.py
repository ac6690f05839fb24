"""The first minutes with the guard run as docs/guard.md has them, and come out as it says."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from measured_guard import kgather, ledger_of

ROOT = Path(__file__).parents[3]


def test_five_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")
    found = re.search(r"^## Five minutes\n.*?^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    told = [_run(shlex.split(line, comments=True), monkeypatch) for line in found[1].splitlines()]
    _, proposed, marks, answer, cost, shown = told
    assert f"Decide the {len(marks.splitlines())} places marked DECIDE" in proposed
    assert re.findall(r"^(\w+) +[0-9]+ ", answer, re.MULTILINE) == ["Bergen", "Ghent", "Graz", "Lyon", "Wien"]
    assert cost.count("-- measures ") == 1
    price, total = re.search(r"costs rho ([0-9.]+) in all, of [0-9.]+ that is left of ([0-9.]+)", cost).groups()  # type: ignore[union-attr]
    assert round(100 * float(price) / float(total), 1) == 0.2
    assert "charged: rho 0.009758 (0.9%)" in shown
    assert len(ledger_of(tmp_path / "guard.yml").measurements()) == 3
    _, errors = kgather("query", "--errors", "--policy", "guard.yml", shlex.split(found[1].splitlines()[3])[4])
    assert "Wien" in errors
    assert len(ledger_of(tmp_path / "guard.yml").measurements()) == 3


def _run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a line of the page, and say what it prints."""
    program, *arguments = words
    if program == "python":
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
        return ""
    if program == "grep":
        pattern, file = arguments
        return "\n".join(line for line in Path(file).read_text(encoding="utf-8").splitlines() if pattern in line)
    assert program == "kgather"
    code, told = kgather(*arguments)
    assert code == 0, told
    return told
