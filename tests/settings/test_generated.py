"""What is generated from the settings, methods and forms is what they say now."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import generate  # noqa: E402


@pytest.mark.parametrize("file", list(generate.files()), ids=lambda file: file.name)
def test_generated_files_are_up_to_date(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == generate.files()[file], "run make generate"
