"""Shadow releases: what an attacker publishes with the settings of a release, to learn what a person changes in it.

The settings of a release are public, and ratings of the same kind of people can be had. So an attacker can publish them
again and again, with and without somebody. What the attacker does not know is drawn anew for every shadow: the seed of
the publication and the noise in the items' vectors.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.in_memory import Made, make
from kgather._settings.publication import PublishSettings
from kgather.udfs._shared.hashing import seed64
from kgather.udfs._shared.options import seed_number
from kgather.udfs.ratings.matrix import RatingMatrix

SHADOWS = 100
"""So many shadow releases are made, unless something else is said."""

LEAST = 12
"""Fewer shadow releases tell nothing."""

_RATINGS = 400_000_000  # ratings that the shadow releases are made of, all together
_PART = {"all", "low_rank"}  # cells of which a release leaves none out
_ATTRIBUTES = ("level_column", "personal_columns", "sensitive_columns")
_IN_MEMORY = (
    "shadow releases are made in memory, which goes for homogenize predicted, methods that gather on vectors and all "
    "cells only. This release {lacks}."
)

Read = TypeVar("Read")


@dataclass(frozen=True)
class Shadowed:
    """What shadow releases are made of and how.

    ratings: those of the n people of a release who have some, by place. users int64[n]: their codes in the evidence.
    settings: those of the release. scale: lowest and highest rating. catalogue: items that nobody rated are shown, too.
    seed: what everything is drawn from.
    """

    ratings: RatingMatrix
    users: NDArray[np.int64]
    settings: PublishSettings
    scale: tuple[float, float]
    catalogue: bool
    seed: int

    @classmethod
    def of(cls, evidence: Evidence, seed: int) -> Self:
        """Read the settings off a release. Raises InputError where it cannot be made in memory."""
        settings = _settings(evidence)
        counts = np.diff(evidence.original.indptr)
        inside = (evidence.truth >= 0) & (counts > 0)
        nobody = np.bincount(evidence.original.items, minlength=evidence.original.n_items) == 0
        return cls(
            ratings=people_of(evidence.original, inside),
            users=np.flatnonzero(inside),
            settings=settings,
            scale=(evidence.scale.low, evidence.scale.high),
            catalogue=settings.items is not None or bool((evidence.shown_items & nobody).any()),
            seed=seed_number(seed),
        )

    def release(self, number: int, ratings: RatingMatrix, threads: int = 1) -> Made:
        """Shadow release `number` of some ratings: its seed and its noise are its own, and the same in every run."""
        own = self.secret(number)
        return make(ratings, self.seeded(own), scale=self.scale, secret=own, catalogue=self.catalogue, threads=threads)

    def secret(self, number: int) -> bytes:
        """What shadow release `number` draws its noise from, 32 bytes."""
        return hashlib.sha256(f"kgather shadow {self.seed} {number}".encode()).digest()

    def seeded(self, secret: bytes) -> PublishSettings:
        """The settings with the seed of the shadow release of this secret."""
        return self.settings.model_copy(update={"seed": int.from_bytes(secret[:4], "big") >> 1})

    def generator(self, purpose: str) -> np.random.Generator:
        """Draws that hang on the seed and the purpose alone."""
        salt = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big")
        return np.random.Generator(np.random.Philox(np.random.SeedSequence([int(seed64(self.seed)), salt])))


def _settings(evidence: Evidence) -> PublishSettings:
    """The settings of a release that can be made in memory."""
    if any(evidence.parameters.get(name) for name in _ATTRIBUTES):
        raise InputError(_IN_MEMORY.format(lacks="was made with users' attributes"))
    settings = PublishSettings.of_parameters(evidence.parameters)
    method = settings.of_method
    lacks = None
    if settings.form != "predicted" or method.gathers_on != "vectors" or method.levels or not method.anonymous:
        lacks = f"method {settings.method} with homogenize {settings.form}"
    elif settings.cells_kind not in _PART:
        lacks = f"cells {settings.cells}"
    elif settings.sensitive_l is not None:
        lacks = "diversity of sensitive values"
    if lacks is not None:
        raise InputError(_IN_MEMORY.format(lacks=f"has {lacks}"))
    return settings


def people_of(ratings: RatingMatrix, chosen: NDArray[np.bool_]) -> RatingMatrix:
    """The ratings of some users, bool[n_users], who are numbered anew. O(nnz)."""
    lengths = np.diff(ratings.indptr)
    entries = np.repeat(chosen, lengths)
    indptr = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
    return RatingMatrix(len(indptr) - 1, ratings.n_items, indptr, ratings.items[entries], ratings.values[entries])


def halves(generator: np.random.Generator, count: int, n: int) -> NDArray[np.bool_]:
    """Of n things, which are in each of `count` releases, bool[count, n]: each is in half of them, drawn on its own.

    Where the count is odd, each is in one fewer or one more than it is not. O(count n log count).
    """
    some = np.arange(count)[:, None] < (count + (np.arange(n) % 2)) // 2
    return generator.permuted(some, axis=0)


def affordable(asked: int, nnz: int) -> int:
    """How many shadow releases of so many ratings are made where `asked` are wanted: fewer where data are large."""
    return min(asked, max(LEAST, _RATINGS // max(nnz, 1)))


def in_turn(read: Callable[[int], Read], numbers: Iterable[int], threads: int | None) -> list[Read]:
    """What is read off each shadow release, in the order of their numbers; several are made at a time."""
    workers = threads or os.cpu_count() or 1
    if workers == 1:
        return [read(number) for number in numbers]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(read, numbers))
