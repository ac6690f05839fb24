"""What a method of gathering may look at, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError

if TYPE_CHECKING:
    from kgather.udfs.preferences.model import Preferences
    from kgather.udfs.ratings.matrix import RatingMatrix


FILLS = {
    "median": "the middle of the scale",
    "mean": "the mean of all ratings",
    "prediction": "the prediction",
}
"""What stands for a rating that is not there, by the setting `fill`."""

SPACES = {
    "prediction": "predicted ratings",
    "preference": "preferences, the factors alone",
    "filled": "z-scores by item of the ratings, filled with {fill}",
}
"""What users are compared in, by the setting `metric`."""


class Asked(Protocol):
    """What a publication is asked for, as far as gathering looks at it: see `PublishSettings`."""

    @property
    def k(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def method_options(self) -> Mapping[str, Any]: ...
    @property
    def metric(self) -> str: ...
    @property
    def fill(self) -> str: ...
    @property
    def bisection_tries(self) -> int: ...
    @property
    def refine(self) -> str | bool: ...
    @property
    def block_size(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def max_cells(self) -> int: ...
    @property
    def sensitive_diversity(self) -> str: ...
    @property
    def sensitive_l(self) -> float | None: ...
    @property
    def sensitive_c(self) -> float | None: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True)
class Groups:
    """The group of every user, int32[n] from 0, and -1 for whom a method leaves out that may do so (`Method.tells`).

    What a method tells beside it is None where it has none.

    bins int32[n]: the bin of every user. unchanged bool[n]: whose group needs no change to be what is asked for.
    """

    groups: NDArray[np.int32]
    bins: NDArray[np.int32] | None = None
    unchanged: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Users:
    """What a method may look at; the costly parts are made when they are asked for.

    n: how many are gathered. read_ratings: gives users x items in codes. preferences: None where no solver ran.
    artifacts float64[n, a], NaN where not rated; categorical bool[a]: columns that hold codes of categories, NaN for
    none (None: no column). levels int32[n]: the size of group each asks for. sensitive
    float64[n, s], NaN where a user has no value. identifying bool[m]: items that are not sensitive. on_artifacts: the
    users are those of the artifact table. threads: of the kernels, at least 1. least: see `k`.
    """

    n: int
    read_ratings: Callable[[], "RatingMatrix"]
    preferences: "Preferences | None"
    artifacts: NDArray[np.float64]
    levels: NDArray[np.int32]
    sensitive: NDArray[np.float64]
    sensitive_names: list[str]
    identifying: NDArray[np.bool_]
    scale: tuple[float, float]
    asked: Asked
    threads: int
    on_artifacts: bool = False
    categorical: NDArray[np.bool_] | None = None
    least: int | None = None

    @property
    def k(self) -> int:
        """Users in the smallest group that is formed: the setting k, or `least` where that is said."""
        return self.asked.k if self.least is None else self.least

    @property
    def seed(self) -> int:
        """What is drawn at random may depend on it and on nothing else."""
        return self.asked.seed

    def some(self, rows: NDArray[np.int64], least: int) -> "Users":
        """Some of the users, int64[n] ascending, to be gathered among themselves in groups of at least `least`.

        Levels below that are raised to it. Raises InputError where the users are those of the artifact table.
        """
        if self.on_artifacts:
            msg = f"method {self.asked.method} gathers all users of the artifact table at once, not some of them."
            raise InputError(msg)
        learnt = self.preferences
        return replace(
            self,
            n=len(rows),
            read_ratings=lambda: self.ratings.with_users(rows),
            preferences=None
            if learnt is None
            else replace(learnt, user_level=learnt.user_level[rows], user_factors=learnt.user_factors[rows]),
            artifacts=self.artifacts[:0],
            levels=np.maximum(self.levels[rows], np.int32(least)),
            sensitive=self.sensitive[rows],
            least=least,
        )

    def means(self, of_user: NDArray[np.int64], sizes: NDArray[np.int64], least: int) -> "Users":
        """Sets of users in the place of users, each by the mean of its members, in groups of at least `least` sets.

        of_user int64[n]: the set, from 0, that a user is in; sizes: how many are in each. What was learnt is all that
        is known of a set: asking for its ratings raises InputError.
        """
        learnt = self.preferences

        def no_ratings() -> "RatingMatrix":
            msg = f"method {self.asked.method} looks at users' ratings, which groups of another release do not have."
            raise InputError(msg)

        def mean(values: NDArray[np.float32]) -> NDArray[np.float32]:
            # In float64, and in the order of the users: the same for any number of threads.
            return (np.bincount(of_user, values, minlength=len(sizes)) / sizes).astype(np.float32)

        return replace(
            self,
            n=len(sizes),
            read_ratings=no_ratings,
            preferences=None
            if learnt is None
            else replace(
                learnt,
                user_level=mean(learnt.user_level),
                user_factors=np.column_stack([mean(factor) for factor in learnt.user_factors.T]),
            ),
            artifacts=self.artifacts[:0],
            levels=np.full(len(sizes), least, dtype=np.int32),
            sensitive=self.sensitive[:0],
            least=least,
        )

    @cached_property
    def ratings(self) -> "RatingMatrix":
        """All ratings of all users, in codes."""
        return self.read_ratings()

    @cached_property
    def vectors(self) -> NDArray[np.float32] | NDArray[np.float64]:
        """One vector a user, whose Euclidean distance says how unlike users are: the setting `metric`."""
        # Imported here: records are read by whoever asks what methods there are, and kernels take long to load.
        from kgather.udfs.preferences.metric import comparison_vectors

        if self.on_artifacts:
            return self._of_artifacts()
        if self.asked.metric == "filled":
            return self._filled()
        if self.preferences is None:
            msg = "nothing was learnt to compare users in. Set metric to filled, or solver to als or funk."
            raise InputError(msg)
        return comparison_vectors(self.preferences, self.asked.metric)

    @property
    def space(self) -> str:
        """What the vectors are, in words."""
        if self.on_artifacts:
            beside = (
                "" if self.categorical is None or not self.categorical.any() else ", and a column for each category"
            )
            return f"the artifact table, where not rated is 0{beside}"
        return SPACES[self.asked.metric].format(fill=FILLS[self.asked.fill])

    def _of_artifacts(self) -> NDArray[np.float64]:
        if self.categorical is None or not self.categorical.any():
            return np.nan_to_num(self.artifacts, nan=0.0)
        codes = [np.unique(column, return_inverse=True) for column in self.artifacts[:, self.categorical].T]
        cells = self.n * sum(len(found) for found, _ in codes)
        if cells > self.asked.max_cells:
            msg = (
                f"groups are compared by {cells:,} cells of users x categories, more than max_cells = "
                f"{self.asked.max_cells:,}. Name fewer categorical_artifacts, or raise max_cells."
            )
            raise InputError(msg)
        # Two users of different categories are 1 apart, as on two neighbouring ratings.
        parts = [np.eye(len(found))[code] / np.sqrt(2) for found, code in codes]
        return np.hstack([np.nan_to_num(self.artifacts[:, ~self.categorical], nan=0.0), *parts])

    def _filled(self) -> NDArray[np.float64]:
        from kgather.udfs.preferences.filled import filled_scores

        cells = self.n * len(self.identifying)
        if cells > self.asked.max_cells:
            msg = (
                f"metric filled compares users in {cells:,} cells of users x items, more than max_cells = "
                f"{self.asked.max_cells:,}. Compare them in metric prediction, or raise max_cells."
            )
            raise InputError(msg)
        if self.asked.fill == "prediction":
            if self.preferences is None:
                msg = "fill prediction needs a solver: als or funk."
                raise InputError(msg)
            return filled_scores(self.ratings, fill=self.preferences)
        mean = self.asked.fill == "mean"
        fill = float(self.ratings.values.mean(dtype=np.float64)) if mean else sum(self.scale) / 2
        return filled_scores(self.ratings, fill=fill)
