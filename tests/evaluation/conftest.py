"""Releases in every form, each built once."""

import sys
from pathlib import Path

import pytest
from built import Build, built_once

# Helpers of the tests of the kernels are of use here, too.
sys.path.append(str(Path(__file__).parent.parent / "kernels"))


@pytest.fixture(scope="session")
def build(sample: Path) -> Build:
    """Run the pipeline on the sample, or another file, with settings given by name; the same ones run once."""
    return lambda source=sample, **settings: built_once(source, tuple(sorted(settings.items())))
