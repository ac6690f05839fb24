"""The method of another package, as the docs show it: registered, asked for, checked like all others."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "README.md"
SAMPLE = Path(__file__).parents[2] / "examples" / "ratings.csv"
pytestmark = pytest.mark.long


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the docs' package, as an installer leaves it."""
    text = PAGE.read_text(encoding="utf-8")
    [module] = re.findall(r"^```python\n(# shuffled\.py\n.*?)^```$", text, re.DOTALL | re.MULTILINE)
    [entry] = re.findall(r"^(shuffled = .*)$", text, re.MULTILINE)
    (tmp_path / "shuffled.py").write_text(module)
    metadata = tmp_path / "shuffled-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shuffled\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[kgather.methods]\n" + entry.replace('"', "") + "\n")
    return tmp_path


def kgather(folder: Path, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", "from kgather._cli import main; main()", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_of_the_docs(installed: Path) -> None:
    asked = ("publish", SAMPLE, "--k", 5, "--method", "shuffled", "--out", installed / "release", "--json")
    done = kgather(installed, *asked, "--set", "method_options={extra: 2}")
    assert done.returncode == 0, done.stderr
    audit = json.loads(done.stdout)
    assert audit["passed"]
    assert audit["parameters"]["method"] == "shuffled"
    assert audit["checks"][0]["measured"] == 7
    assert kgather(installed, "verify", installed / "release").returncode == 0


def test_its_options_are_checked(installed: Path) -> None:
    asked = ("publish", SAMPLE, "--k", 5, "--method", "shuffled", "--out", installed / "release")
    done = kgather(installed, *asked, "--set", "method_options={extra: -1}")
    assert done.returncode == 2
    assert "method shuffled: extra is a whole number of at least 0, not -1." in done.stderr


def test_methods_that_let_users_stand_alone_are_refused(installed: Path) -> None:
    module = installed / "shuffled.py"
    module.write_text(module.read_text().replace("options=Options)", "options=Options, levels=True)"))
    done = kgather(installed, "publish", SAMPLE, "--k", 5, "--out", installed / "release")
    assert done.returncode == 2
    assert "lets users stand alone" in done.stderr
