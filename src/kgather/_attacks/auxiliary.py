"""What the attacker knows of a target: a few ratings, exact or noisy."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from kgather._attacks.attacked import Attacked
from kgather._errors import InputError
from kgather.udfs._shared.hashing import seed64
from kgather.udfs._shared.options import seed_number, whole
from kgather.udfs.attacking._known_ratings import ALL, POPULAR, RARE, count_kept, draw_known, order_users
from kgather.udfs.ratings.matrix import RatingMatrix

Pool = Literal["all", "popular", "rare"]

_POOLS = {"all": ALL, "popular": POPULAR, "rare": RARE}
_DRAWS = 20  # at most so many of each user


@dataclass(frozen=True)
class Knowledge:
    """How much the attacker knows: `known` ratings, exact or up to one step off, of items of one half or of all.

    Raises InputError where known is no whole number >= 1 or there is no such pool.
    """

    known: int
    noisy: bool = False
    pool: Pool = "all"

    def __post_init__(self) -> None:
        whole("known", self.known, 1)
        if self.pool not in get_args(Pool):
            msg = f"known items are from {', '.join(get_args(Pool))}, not from {self.pool!r}."
            raise InputError(msg)

    @property
    def items(self) -> str:
        """In words, without the ratings."""
        half = "" if self.pool == "all" else f" of the {self.pool} half"
        return f"{self.known} item{'s' if self.known > 1 else ''}{half}"

    @property
    def ratings(self) -> str:
        """In words."""
        half = "" if self.pool == "all" else f" of the {self.pool} half"
        return f"{self.known} {'noisy' if self.noisy else 'exact'} rating{'s' if self.known > 1 else ''}{half}"


@dataclass(frozen=True)
class Known:
    """What the attacker knows of t draws of targets.

    users int64[t]: whose ratings; a user with several draws is there several times. items int32[t, m], ratings
    float32[t, m]. people: distinct users. left_out: users of the release with fewer ratings to know.
    """

    knowledge: Knowledge
    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray
    people: int
    left_out: int


def draw(
    attacked: Attacked,
    knowledge: Knowledge,
    *,
    targets: int = 1000,
    seed: int = 0,
    draws: int | None = None,
    among: np.ndarray | None = None,
) -> Known:
    """Draw at most `targets` users of the release and what is known of each, by hashes of (seed, user, item).

    Known are ratings of items that the release shows. Where fewer users than `targets` have m of them, each is drawn
    several times, at most 20 (or `draws`) times. Noise adds -1, 0 or 1 step to each rating, within the scale. among
    bool[n_users]: from these users only. The draw of more ratings contains that of fewer. O(nnz).
    """
    released = attacked.evidence.truth >= 0
    if among is not None:
        released = released & among
    return draw_of(attacked, attacked.evidence.original, released, knowledge, targets=targets, seed=seed, draws=draws)


def draw_of(
    attacked: Attacked,
    people: RatingMatrix,
    among: np.ndarray,
    knowledge: Knowledge,
    *,
    targets: int,
    seed: int,
    draws: int | None,
) -> Known:
    """As `draw`, for any people with ratings by the item codes of the release; among bool[n]: from these only."""
    whole("targets", targets, 1)
    evidence, key, m = attacked.evidence, seed64(seed_number(seed)), knowledge.known
    everything = evidence.shown_items.all()
    counts = np.diff(people.indptr) if everything else count_kept(people.indptr, people.items, evidence.shown_items)
    if knowledge.pool != "all":
        counts = (counts + 1) // 2
    enough = np.flatnonzero(among & (counts >= m)).astype(np.int64)
    users = order_users(enough, key)[:targets]
    times = min(_DRAWS if draws is None else draws, -(-targets // max(len(users), 1)))
    repeated = np.tile(users, times)
    items = np.empty((len(repeated), m), dtype=np.int32)
    ratings = np.empty((len(repeated), m), dtype=np.float32)
    noise = np.empty((len(repeated), m), dtype=np.int8)
    draw_known(
        people.indptr,
        people.items,
        people.values,
        evidence.shown_items,
        attacked.raters,
        _POOLS[knowledge.pool],
        key,
        repeated,
        np.repeat(np.arange(times, dtype=np.int64), len(users)),
        items,
        ratings,
        noise,
    )
    if knowledge.noisy:
        moved = ratings + noise * np.float32(attacked.step)
        ratings = np.clip(moved, evidence.scale.low, evidence.scale.high).astype(np.float32)
    return Known(knowledge, repeated, items, ratings, len(users), int(among.sum()) - len(enough))
