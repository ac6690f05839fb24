"""From users to groups: one function for each method, then what every method's groups go through."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from kgather._errors import InputError, PromiseError
from kgather._settings.methods import (
    BY_LEVEL,
    METHOD_OPTIONS,
    ON_ARTIFACTS,
    REFINED,
    BoundedTMeansOptions,
    MdavOptions,
    Method,
)
from kgather._steps import compiling
from kgather.udfs._shared.options import make_options
from kgather.udfs.diversity.sensitive_diversity import merge_until_diverse
from kgather.udfs.gathering import bkg, bokg, bounded_t_means, customized, epsilon, k_likeness, k_member, mdav, mondrian
from kgather.udfs.gathering.blocks import gather_in_blocks
from kgather.udfs.preferences.filled import filled_scores
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix
from kgather.udfs.refining.refine import refine

Gather = Callable[["Users", "Gathering"], "Groups"]


class Gathering(BaseModel):
    """How users are gathered: vars of the dbt project, under the same names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method
    k: int = Field(ge=1)
    method_options: dict[str, Any] = {}
    metric: str = "prediction"
    fill: Literal["median", "prediction"] = "median"
    bisection_tries: int = 10
    refine: bool | Literal["auto"] = "auto"
    block_size: int = 0
    epsilon: float = 1
    max_cells: int = 50_000_000
    sensitive_items: list[Any] = []
    sensitive_diversity: str = "distinct"
    sensitive_l: float | None = None
    sensitive_c: float | None = None
    seed: int = 0
    threads: int = 1


@dataclass(frozen=True)
class Groups:
    """The group of every user, int32[n] from 0; what a method tells beside it is None where it has none.

    bins int32[n]: the bin of every user. unchanged bool[n]: whose group needs no change to be what is asked for.
    """

    groups: np.ndarray
    bins: np.ndarray | None = None
    unchanged: np.ndarray | None = None


@dataclass(frozen=True)
class Users:
    """What a method may look at; the costly parts are made when they are asked for.

    n: how many are gathered. read_ratings: gives users x items in codes. preferences: None where no solver ran.
    artifacts float64[n, a], NaN where not rated. levels int32[n]: the size of group each asks for. sensitive
    float64[n, s], NaN where a user has no value. identifying bool[m]: items that are not sensitive.
    """

    n: int
    read_ratings: Callable[[], RatingMatrix]
    preferences: Preferences | None
    artifacts: np.ndarray
    levels: np.ndarray
    sensitive: np.ndarray
    sensitive_names: list[str]
    identifying: np.ndarray
    scale: tuple[float, float]
    options: Gathering

    @cached_property
    def ratings(self) -> RatingMatrix:
        """All ratings of all users, in codes."""
        return self.read_ratings()

    @cached_property
    def vectors(self) -> np.ndarray:
        """One vector a user, whose Euclidean distance says how unlike users are: the var `metric`."""
        if self.options.method in ON_ARTIFACTS:
            return np.nan_to_num(self.artifacts, nan=0.0)
        if self.options.metric == "filled":
            return self._filled()
        if self.preferences is None:
            msg = "nothing was learnt to compare users in. Set metric to filled, or solver to als or funk."
            raise InputError(msg)
        return comparison_vectors(self.preferences, self.options.metric)

    def _filled(self) -> np.ndarray:
        cells = self.n * len(self.identifying)
        if cells > self.options.max_cells:
            msg = (
                f"metric filled compares users in {cells:,} cells of users x items, more than max_cells = "
                f"{self.options.max_cells:,}. Compare them in metric prediction, or raise max_cells."
            )
            raise InputError(msg)
        if self.options.fill == "prediction":
            if self.preferences is None:
                msg = "fill prediction needs a solver: als or funk."
                raise InputError(msg)
            return filled_scores(self.ratings, fill=self.preferences)
        return filled_scores(self.ratings, fill=sum(self.scale) / 2)


def _bkg(users: Users, options: Gathering) -> Groups:
    def gather(rows: np.ndarray, k: int) -> np.ndarray:
        return bkg.gather(rows, k, tries=options.bisection_tries, seed=options.seed)

    return _in_blocks(users, options, gather)


def _mdav(users: Users, options: Gathering) -> Groups:
    chosen = make_options(MdavOptions, options.method_options, "mdav")

    def gather(rows: np.ndarray, k: int) -> np.ndarray:
        # Blocks have the threads already.
        threads = 1 if options.block_size else options.threads
        return mdav.gather(rows, k, leftovers=chosen.leftovers, threads=threads)

    return _in_blocks(users, options, gather)


def _bounded_t_means(users: Users, options: Gathering) -> Groups:
    chosen = make_options(BoundedTMeansOptions, options.method_options, "bounded_t_means")
    groups, bins = bounded_t_means.gather_with_bins(
        users.vectors,
        options.k,
        sample=chosen.sample,
        bins=chosen.bins,
        rounds=chosen.rounds,
        virtual_centres=chosen.virtual_centres,
        seed=options.seed,
        threads=options.threads,
    )
    return Groups(groups, bins=bins)


def _bokg(users: Users, options: Gathering) -> Groups:
    return Groups(bokg.gather(users.vectors, options.k, users.levels, tries=options.bisection_tries, seed=options.seed))


def _customized(users: Users, options: Gathering) -> Groups:
    return Groups(
        customized.gather(
            users.vectors,
            users.levels,
            tries=options.bisection_tries,
            seed=options.seed,
            threads=options.threads,
        )
    )


def _k_likeness(users: Users, options: Gathering) -> Groups:
    return Groups(k_likeness.gather(users.artifacts, options.k, threads=options.threads))


def _k_member(users: Users, options: Gathering) -> Groups:
    return Groups(k_member.gather(users.artifacts, options.k, threads=options.threads))


def _mondrian(users: Users, options: Gathering) -> Groups:
    return Groups(mondrian.gather(users.artifacts, options.k, threads=options.threads))


def _epsilon(users: Users, options: Gathering) -> Groups:
    groups, is_clique = epsilon.decompose(
        users.ratings.with_items(users.identifying),
        options.k,
        epsilon=options.epsilon,
        rating_range=users.scale[1],
        vectors=users.vectors,
        seed=options.seed,
        threads=options.threads,
    )
    return Groups(groups, unchanged=is_clique[groups])


def _alone(users: Users, _: Gathering) -> Groups:
    return Groups(np.arange(users.n, dtype=np.int32))


def _in_blocks(users: Users, options: Gathering, gather: Callable[[np.ndarray, int], np.ndarray]) -> Groups:
    if not options.block_size:
        return Groups(gather(users.vectors, options.k))
    return Groups(
        gather_in_blocks(users.vectors, options.k, gather, block_size=options.block_size, threads=options.threads)
    )


_METHODS: dict[Method, Gather] = {
    "bkg": _bkg,
    "bokg": _bokg,
    "customized": _customized,
    "bounded_t_means": _bounded_t_means,
    "mdav": _mdav,
    "k_likeness": _k_likeness,
    "k_member": _k_member,
    "mondrian": _mondrian,
    "epsilon": _epsilon,
    "gaussian_noise": _alone,
}
_MANY_PASSES, _MANY_USERS = 20, 20_000


def gather(users: Users) -> Groups:
    """Gather users by the method that the options name, refine the groups, and keep what is sensitive diverse.

    Raises InputError where users or options make no sense to the method, PromiseError where it broke its promise.
    """
    options = users.options
    make_options(METHOD_OPTIONS[options.method], options.method_options, options.method)
    found = _METHODS[options.method](users, options)
    groups = found.groups
    least = _least(users)
    passes = _passes(options, users.n)
    if passes:
        compiling.wait_for_refining()
        groups = refine(users.vectors, groups, least, passes=passes, threads=options.threads)
    if options.sensitive_l is not None:
        groups = merge_until_diverse(
            users.vectors,
            groups,
            users.sensitive,
            kind=options.sensitive_diversity,
            l=options.sensitive_l,
            c=options.sensitive_c,
            names=users.sensitive_names,
        )
    _check_partition(groups, least)
    unchanged = found.unchanged if groups is found.groups else None
    return Groups(groups, found.bins, unchanged)


def _passes(options: Gathering, n: int) -> int:
    """How often groups are refined; the first pass is cheap, and each one after it searches farther."""
    if options.refine is True:
        return _MANY_PASSES
    if options.refine == "auto" and options.method in REFINED:
        return _MANY_PASSES if n <= _MANY_USERS else 1
    return 0


def _least(users: Users) -> np.ndarray:
    if users.options.method in BY_LEVEL:
        return users.levels
    alone = users.options.method == "gaussian_noise"
    return np.full(users.n, 1 if alone else users.options.k, dtype=np.int32)


def _check_partition(groups: np.ndarray, least: np.ndarray) -> None:
    """Whatever the method: each user in exactly one group, each group as large as its members ask for."""
    whole = groups.shape == least.shape and groups.min() >= 0
    too_small = int((np.bincount(groups)[groups] < least).sum()) if whole else len(least)
    if too_small:
        msg = f"the groups do not hold: {too_small} of {len(least)} users are in none or in one that is too small."
        raise PromiseError(msg)
