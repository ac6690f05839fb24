"""What all tests share."""

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dbt_common.tests import enable_test_caching
from hypothesis import settings as hypothesis_settings
from hypothesis.database import DirectoryBasedExampleDatabase
from releases import Releases

from kgather._publishing.publish import Published

pytest_plugins = ["levels", "seeded_noise"]

# Keys of noise are kept in the user's folder for state: tests have one of their own, with a key that is ever the same.
_STATE = Path(tempfile.mkdtemp(prefix="kgather-test-state-"))
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)
(_STATE / "kgather").mkdir()
(_STATE / "kgather" / "noise.key").write_text(hashlib.sha256(b"tests").hexdigest(), encoding="ascii")
(_STATE / "kgather" / "noise.key").chmod(0o600)
os.environ["XDG_STATE_HOME"] = str(_STATE)

Publish = Callable[..., Published]
ROOT = Path(__file__).parent.parent

# Hundreds of macros of dbt's own are most of what a small publication reads: once in a process is enough.
enable_test_caching()

# The same examples each time, so that no run fails by chance; `make test-explore` looks for others and keeps those that
# fail. Neither bounds the time of an example: machines are busy.
hypothesis_settings.register_profile("fixed", derandomize=True, database=None, print_blob=True, deadline=None)
hypothesis_settings.register_profile(
    "explore",
    derandomize=False,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
    print_blob=True,
    deadline=None,
)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public rating data: $KGATHER_DATA, or one beside the project. Without it the test is skipped."""
    folder = Path(os.environ.get("KGATHER_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no rating data at {folder}: set KGATHER_DATA to a folder with ml-100k/u.data and its kin")
    return folder


@pytest.fixture(scope="session")
def sample() -> Path:
    """The made-up ratings that the project ships."""
    return ROOT / "examples" / "ratings.csv"


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Releases]:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of all workers
    folder = folder / "releases"
    folder.mkdir(exist_ok=True)
    made = Releases(folder)
    yield made
    assert made.changed() == [], "a test changed a release that others read: it needs publish_anew"


@pytest.fixture(scope="session")
def publish_to(releases: Releases) -> Publish:
    """Publish a file with settings given by name. The same call gives the same release, which is only to be read."""
    return releases.shared


@pytest.fixture(scope="session")
def publish_anew(releases: Releases) -> Publish:
    """Publish for the caller alone."""
    return releases.anew


@pytest.fixture(scope="session")
def released(publish_to: Publish, sample: Path) -> Published:
    """The sample at k = 5, all else as it comes."""
    return publish_to(sample, k=5)
