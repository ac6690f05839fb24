"""A release made in memory: what the pipeline would show of some ratings, by the same kernels, in a second or so.

Attackers who try themselves on releases of their own make hundreds, and benchmarks dozens. Only the default form and
its low-rank twin are made here, which show the same.
"""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.candidates import ShownVectors
from kgather._methods import Users
from kgather._release.digits import shown_digits
from kgather._settings.publication import PublishSettings
from kgather._steps.gathering import gather_beside
from kgather._steps.learning import learn_apart_as, learn_private_as
from kgather.udfs.preferences.item_noise import ItemNoise
from kgather.udfs.preferences.item_side import ItemSide
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.outliers import draw_groups_in
from kgather.udfs.ratings.matrix import RatingMatrix


@dataclass(frozen=True)
class Made:
    """A release with its secrets: what is shown, the group of each user int32[n], the model, and its items' half."""

    shown: ShownVectors
    groups: NDArray[np.int32]
    learnt: Preferences
    side: ItemSide


def make(
    ratings: RatingMatrix,
    settings: PublishSettings,
    *,
    scale: tuple[float, float],
    secret: bytes,
    catalogue: bool = False,
    last: ShownVectors | None = None,
    kept: NDArray[np.int64] | None = None,
    threads: int | None = None,
) -> Made:
    """Publish ratings in memory.

    scale: lowest and highest rating. secret: what the noise is drawn from; the pipeline takes it from its key and the
    ratings. catalogue: items that nobody rated are shown, too. last, kept: of a release that follows another: what the
    last one showed, by the same items, and the group there of each user whose group stays, int64[n], -1 for newcomers.
    Raises InputError for a form or a method that needs more than ratings.
    """
    method = settings.of_method
    if settings.form != "predicted" or method.gathers_on != "vectors" or method.levels or not method.anonymous:
        msg = f"method {settings.method} with homogenize {settings.form} cannot be made in memory."
        raise InputError(msg)
    workers = threads or os.cpu_count() or 1
    if settings.item_epsilon is None:
        start = None if last is None else (last.item_levels, last.item_factors)
        learnt, side = learn_apart_as(ratings, settings, scale=scale, threads=workers, start=start)
    else:
        learnt = learn_private_as(ratings, settings, scale=scale, noise_seed=secret, threads=workers).preferences
        side = ItemSide.proven(learnt, ratings)
    users = _users(ratings, settings, learnt, scale, workers)
    stay = np.full(ratings.n_users, -1, dtype=np.int64) if kept is None else kept
    groups = gather_beside(users, method, settings.options, stay, settings.gathered).groups
    noise = ItemNoise(secret, side.raters > 0, settings.learnt)
    level, factors = side.with_noise(noise, settings.noise_of_items)
    seen = np.ones(ratings.n_items, dtype=bool) if catalogue else side.raters > 0
    if settings.rare_items == "drop":
        seen &= side.kept(noise, settings.least_raters)
    sizes = np.bincount(groups)
    means = np.bincount(groups, learnt.user_level) / sizes
    places = np.stack([np.bincount(groups, one) / sizes for one in learnt.user_factors.T], axis=1)
    means, places = draw_groups_in(learnt, means, places, share=settings.outliers, smooth=settings.k)
    digits = shown_digits(scale[1] - scale[0]) + 1
    shown = ShownVectors(
        sizes.astype(np.int64),
        np.round(means, digits).astype(np.float32),
        np.round(places, digits).astype(np.float32),
        np.where(seen, np.round(level, digits), np.nan).astype(np.float32),
        np.round(factors, digits).astype(np.float32),
        scale,
    )
    return Made(shown, groups, learnt, side)


def _users(
    ratings: RatingMatrix, settings: PublishSettings, learnt: Preferences, scale: tuple[float, float], threads: int
) -> Users:
    n = ratings.n_users
    return Users(
        n=n,
        read_ratings=lambda: ratings,
        preferences=learnt,
        artifacts=np.empty((n, 0)),
        levels=np.full(n, settings.k, dtype=np.int32),
        sensitive=np.empty((n, 0)),
        sensitive_names=[],
        identifying=np.ones(ratings.n_items, dtype=bool),
        scale=scale,
        asked=settings,
        threads=threads,
    )
