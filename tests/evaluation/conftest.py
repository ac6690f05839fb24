"""Releases in every form, each built once."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from built import Build, read

from kgather._publishing.publish import Published

# Helpers of the tests of the kernels are of use here, too.
sys.path.append(str(Path(__file__).parent.parent / "kernels"))


@pytest.fixture(scope="session")
def build(publish_to: Callable[..., Published], sample: Path) -> Build:
    """What is in the release of the sample, or of another file, with settings given by name; k = 5 where not given."""
    return lambda source=sample, **settings: read(publish_to(source, **{"k": 5, **settings}))
