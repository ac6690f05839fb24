"""Noise for what a release shows of items: drawn once for a data set, whatever is published of it.

Noise that is drawn again averages out. So it is a function of a secret and of the ratings: the same ratings have the
same noise under every seed and form, and other ratings have other noise. Who knows the secret can take the noise away,
so it stays where the map from users to groups is. The seed of a publication is no secret.

Nor may noise of two sizes be a multiple of one draw: two releases with unlike sizes, as with two k, would be two
equations for what is hidden. It is a walk instead (Brownian motion, by variance): the larger noise is the smaller one
and more that is drawn for itself. Then whoever has several releases knows no more than from the one with the least
noise (gradual release: Koufogiannis, Han and Pappas 2017). What is learnt in another way, by another rank or with other
options of the solver, has noise of its own, as the difference of the two would have none otherwise.
"""

import hashlib
import hmac
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError

_SECRET_BYTES = 32
_SMALLEST = 1e-7  # size of noise at which the walk begins
_STEP = 1.05  # from one size to the next; sizes between are rounded up
_DRAWS_AT_ONCE = 1 << 20  # 8 MB: what is done for each step costs little where there are few items


class ItemNoise:
    """The noise of m items under one secret.

    secret: 32 bytes or more. rated bool[m]: items that somebody rated, whose noise is the same whatever other items
    there are. learnt: how the items' vectors are learnt, in words.
    """

    def __init__(self, secret: bytes, rated: NDArray[np.bool_], learnt: str = "") -> None:
        if len(secret) < _SECRET_BYTES:
            msg = f"a secret has at least {_SECRET_BYTES} bytes, not {len(secret)}."
            raise ValueError(msg)
        self._secret = secret
        self._learnt = hmac.digest(secret, b"learnt " + learnt.encode(), "sha256")
        self._order = np.flatnonzero(rated)
        # Draws are handed out to rated items first, in their order.
        self._place = np.empty(len(rated), dtype=np.int64)
        self._place[np.concatenate([self._order, np.flatnonzero(~rated)])] = np.arange(len(rated))

    @property
    def items(self) -> int:
        """How many items."""
        return len(self._place)

    def walk(self, purpose: str, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Normal noise with the standard deviations sizes float64[m], rounded up by at most 5%: float64[m].

        Of one purpose, the noise of a larger size is that of a smaller one and more, drawn for itself. Sizes of at most
        0, and items that nobody rated, have none. O(m) for each of some 300 steps.
        """
        if sizes.shape != self._place.shape:
            msg = f"the noise is of {self.items} items, not of {len(sizes)}."
            raise InputError(msg)
        # Rated items have the first draws of each step, whatever other items there are.
        sizes_of_rated = sizes[self._order]
        some = sizes_of_rated > 0
        rung = np.full(len(some), -1, dtype=np.int64)
        rung[some] = np.ceil(np.log(np.maximum(sizes_of_rated[some], _SMALLEST) / _SMALLEST) / math.log(_STEP) - 1e-9)
        total = np.zeros(len(rung))
        draws = self._draws(self._learnt, purpose)
        steps = int(rung.max(initial=-1)) + 1
        at_once = max(1, _DRAWS_AT_ONCE // max(1, len(rung)))
        for first in range(0, steps, at_once):
            here = np.arange(first, min(first + at_once, steps))
            drawn = draws.standard_normal((len(here), len(rung)))
            drawn *= np.array([_length(step) for step in here.tolist()])[:, None]
            drawn[rung < here[:, None]] = 0.0
            for more in drawn:
                total += more
        noise = np.zeros(len(sizes))
        noise[self._order] = total
        return noise

    def plain(self, purpose: str) -> NDArray[np.float64]:
        """Standard normal draws, float64[m], for what is not learnt from an item's own raters."""
        return self._draws(self._learnt, purpose).standard_normal(self.items)[self._place]

    def one(self, purpose: str) -> float:
        """A standard normal draw."""
        return float(self._draws(self._learnt, purpose).standard_normal())

    @property
    def raters(self) -> NDArray[np.float64]:
        """Draws of the Laplace distribution of scale 1, float64[m], for counts of raters."""
        return self._draws(self._secret, "raters").laplace(size=self.items)[self._place]

    @staticmethod
    def _draws(secret: bytes, purpose: str) -> np.random.Generator:
        seed = int.from_bytes(hmac.digest(secret, purpose.encode(), "sha256"), "big")
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))


def _length(step: int) -> float:
    """The standard deviation of what a step adds."""
    size = _SMALLEST * _STEP**step
    return size if step == 0 else size * math.sqrt(1.0 - _STEP**-2)


def secret_of(key: bytes, people: Iterable[int]) -> bytes:
    """The secret of one data set, 32 bytes: a function of the key and of what all people rated how.

    people: for each, a number made of all their ratings, whoever they are; in any order, so that the same ratings under
    new user ids are the same data. Raises ValueError for a short key.
    """
    return secret_of_lines(key, (f"{person}\n".encode() for person in sorted(people)))


def secret_of_lines(key: bytes, lines: Iterable[bytes]) -> bytes:
    """The same secret, from the numbers of all people in ascending order, each as a line, in pieces of any length.

    Raises ValueError for a short key.
    """
    if len(key) < _SECRET_BYTES:
        msg = f"a key has at least {_SECRET_BYTES} bytes, not {len(key)}."
        raise ValueError(msg)
    ratings = hashlib.sha256()
    for piece in lines:
        ratings.update(piece)
    return hmac.digest(key, b"kgather item noise " + ratings.digest(), "sha256")
