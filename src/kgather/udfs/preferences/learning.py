"""Preferences learned from ratings, by the solver of that name."""

from typing import Any

import numpy as np

from kgather._errors import InputError
from kgather.udfs._shared.options import real, seed_number, whole
from kgather.udfs.preferences.als import learn_als
from kgather.udfs.preferences.funk import learn_funk
from kgather.udfs.preferences.model import Preferences, Progress, Start
from kgather.udfs.preferences.options import AlsOptions, options_of
from kgather.udfs.ratings.matrix import RatingMatrix

RANK = 3  # more factors fit better and give away more: docs/why-predicted.md


def learn(
    matrix: RatingMatrix,
    *,
    solver: str = "als",
    rank: int = RANK,
    seed: int = 0,
    threads: int = 1,
    scale: tuple[float, float] | None = None,
    progress: Progress | None = None,
    start: Start | None = None,
    **options: Any,
) -> Preferences:
    """Learns preferences from ratings.

    solver: "als" (`AlsOptions`) or "funk" (`FunkOptions`), whose fields are the `options`. rank: number of factors,
    >= 1 (may exceed the numbers of users and items). seed: what is drawn (start values, held-out ratings) depends on
    it alone; `threads` never changes the result. scale: lowest and highest possible rating, used to judge predictions
    on held-out ratings. progress: called with steps done and steps at most. start: items' vectors that were learnt
    before, from which "als" goes on; "funk" begins anew.

    Users and items without ratings get the level and factors of someone about whom nothing is known.
    Raises InputError for an unknown solver or option, or an option out of its range.
    """
    if matrix.nnz == 0:
        msg = "there are no ratings to learn from."
        raise InputError(msg)
    rank = whole("rank", rank, 1)
    threads = whole("threads", threads, 1)
    seed = seed_number(seed)
    if scale is not None:
        low, high = (
            real("the lowest rating", scale[0], -np.inf),
            real("the highest rating", scale[1], -np.inf),
        )
        if low >= high:
            msg = f"the lowest rating of the scale, {low:g}, must be below the highest, {high:g}."
            raise InputError(msg)
        scale = (low, high)
    chosen = options_of(solver, options)
    if start is not None and (start[0].shape != (matrix.n_items,) or start[1].shape != (matrix.n_items, rank)):
        msg = f"a start has a level and {rank} factors for each of {matrix.n_items} items."
        raise InputError(msg)
    if isinstance(chosen, AlsOptions):
        return learn_als(matrix, rank, chosen, seed, threads, scale, progress, start)
    return learn_funk(matrix, rank, chosen, seed, scale, progress)
