"""ML-100k, and what each experiment finds, run once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kgather._paper.experiments import chosen
from kgather._paper.findings import Finding
from kgather._paper.movielens import MovieLens, read_movielens

Run = Callable[[str], list[Finding]]


@pytest.fixture(scope="session")
def movielens(data_dir: Path) -> MovieLens:
    return read_movielens(data_dir / "ml-100k" / "u.data")


@pytest.fixture(scope="session")
def found(movielens: MovieLens) -> Run:
    """The findings of an experiment by its name."""

    @cache
    def run(name: str) -> list[Finding]:
        [experiment] = chosen([name])
        return list(experiment.run(movielens))

    return run
