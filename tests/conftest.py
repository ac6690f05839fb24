"""What all tests share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public rating data: $KGATHER_DATA, or a folder beside the project; the test is skipped without."""
    folder = Path(os.environ.get("KGATHER_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no rating data at {folder}; set KGATHER_DATA to a folder with ml-100k/u.data and its kin")
    return folder


@pytest.fixture(scope="session")
def sample() -> Path:
    """The made-up ratings that the project ships."""
    return ROOT / "examples" / "ratings.csv"
