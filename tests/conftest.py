"""What all tests share."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from dbt_common.tests import enable_test_caching

from kgather._loaders import LoadOptions
from kgather._publishing.publish import AttributesSource, Published, publish
from kgather._settings.publication import PublishSettings

Publish = Callable[..., Published]
ROOT = Path(__file__).parent.parent

# Hundreds of macros of dbt's own are most of what a small publication reads: once in a process is enough.
enable_test_caching()


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
def publish_to(tmp_path_factory: pytest.TempPathFactory) -> Publish:
    """Publish a file with settings given by name, into a new folder, the working database beside it."""

    def run(
        source: Path,
        *,
        load: dict[str, object] | None = None,
        attributes: Path | None = None,
        **settings: object,
    ) -> Published:
        folder = tmp_path_factory.mktemp("publish")
        return publish(
            [str(source)],
            folder / "release",
            PublishSettings(**settings),
            LoadOptions(**(load or {})),
            user_attributes=AttributesSource(str(attributes)) if attributes else None,
            keep_work=folder / "work",
        )

    return run


@pytest.fixture(scope="session")
def released(publish_to: Publish, sample: Path) -> Published:
    """The sample at k = 5, all else as it comes."""
    return publish_to(sample, k=5)
