"""Noise for what a release shows of items: drawn once for a data set, whatever is published of it.

Noise that is drawn again averages out. So it is a function of a secret and of the ratings: the same ratings have the
same noise under every seed, size of group and form, and other ratings have other noise. Who knows the secret can take
the noise away, so it stays where the map from users to groups is. The seed of a publication is no secret.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SECRET_BYTES = 32


@dataclass(frozen=True)
class ItemNoise:
    """Draws for m items. level float64[m], factors float64[m, r]: standard normal. shared: standard normal, for the
    level that rare items share. raters float64[m]: of the Laplace distribution of scale 1, for counts of raters.
    """

    level: NDArray[np.float64]
    factors: NDArray[np.float64]
    shared: float
    raters: NDArray[np.float64]


def secret_of(key: bytes, items: Iterable[tuple[str, int, int]]) -> bytes:
    """The secret of one data set, 32 bytes: a function of the key and of what the items' ratings are.

    items: id, raters and sum of the ratings in millionths, of each item that somebody rated, in any fixed order. Users
    do not enter, so that the same ratings under new user ids are the same data. Raises ValueError for a short key.
    """
    if len(key) < _SECRET_BYTES:
        msg = f"a key has at least {_SECRET_BYTES} bytes, not {len(key)}."
        raise ValueError(msg)
    ratings = hashlib.sha256()
    for item, raters, total in items:
        ratings.update(f"{len(item)} {item} {raters} {total}\n".encode())
    return hmac.digest(key, b"kgather item noise " + ratings.digest(), "sha256")


def draw(secret: bytes, n_items: int, rank: int) -> ItemNoise:
    """The noise of `n_items` items with `rank` factors. A smaller rank has the same first factors. O(m r)."""

    def generator(purpose: str) -> np.random.Generator:
        seed = int.from_bytes(hmac.digest(secret, purpose.encode(), "sha256"), "big")
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))

    factors = np.empty((n_items, rank))
    for factor in range(rank):
        factors[:, factor] = generator(f"factor {factor}").standard_normal(n_items)
    return ItemNoise(
        level=generator("level").standard_normal(n_items),
        factors=factors,
        shared=float(generator("shared").standard_normal()),
        raters=generator("raters").laplace(size=n_items),
    )
