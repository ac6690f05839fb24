"""The options of the solvers, apart from the solvers: checking them compiles nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgather._errors import InputError
from kgather.udfs._shared.options import flag, make_options, real, whole


@dataclass(frozen=True)
class AlsOptions:
    """Options of ALS.

    sweeps: at most that many (each solves all items, then all users). regularization: weight of the squared
    factors, in standard deviations of the ratings, times (number of ratings of the user or item) **
    `count_power`. rare_regularization: of an item with n ratings, that is multiplied by 1 + rare_regularization / n.
    level_regularization, item_level_regularization: ratings at level zero (at the mean of all ratings) added
    to each user (item). few_raters: where items have n ratings on average, regularization and level_regularization
    of all users are multiplied by 1 + few_raters / n. influence: no rating moves what is predicted of its item by
    more than about so many standard deviations: each is taken as at most so far above or below the mean of all
    ratings and its user's level that its weight in the item's solution (in the level 1 / (ratings +
    item_level_regularization), in the factors the length of its user's over their penalty and squares, as seen by a
    user whose factors are as long as the root of the standard deviation) does not do more; 0: as it is. median: all
    items' levels are moved by one number at the end, so that as many ratings lie above what is predicted as below
    (lowest mean absolute error), instead of their mean (lowest RMSE). holdout: share of the ratings left out to see
    when to stop; learning stops once `patience` sweeps in a row have not lowered the RMSE on them by `tolerance` of
    itself, and the last `refit` sweeps use all ratings. holdout = 0 makes all sweeps.
    """

    sweeps: int = 20
    regularization: float = 11.5
    count_power: float = 0.0
    rare_regularization: float = 30.0
    few_raters: float = 16.0
    level_regularization: float = 8.5
    item_level_regularization: float = 1.0
    influence: float = 0.064
    median: bool = True
    holdout: float = 0.02
    tolerance: float = 1e-3
    patience: int = 1
    refit: int = 1

    def __post_init__(self) -> None:
        whole("sweeps", self.sweeps, 1)
        real("regularization", self.regularization, 0, above=True)
        real("count_power", self.count_power, 0, 1)
        real("rare_regularization", self.rare_regularization, 0)
        real("few_raters", self.few_raters, 0)
        real("level_regularization", self.level_regularization, 0)
        real("item_level_regularization", self.item_level_regularization, 0)
        real("influence", self.influence, 0)
        flag("median", self.median)
        real("holdout", self.holdout, 0, 0.5)
        real("tolerance", self.tolerance, 0)
        whole("patience", self.patience, 1)
        whole("refit", self.refit, 1)


FOR_FIT: Mapping[str, Any] = {
    "regularization": 1.0,
    "count_power": 0.5,
    "rare_regularization": 0.0,
    "few_raters": 0.0,
    "level_regularization": 0.5,
    "item_level_regularization": 0.5,
    "influence": 0.0,
    "median": False,
}
"""Options for the best fit, where nothing of the model is released."""


@dataclass(frozen=True)
class FunkOptions:
    """Options of Funk's SVD.

    learning_rate, regularization: of every gradient step. epochs: passes over the ratings for each factor.
    init: start value of all users and items in every factor. biases: take out levels of users and items
    first, least squares with `level_regularization` added to each count. early_stopping: hold out the share
    `holdout` of the ratings and leave a factor once `patience` epochs in a row have not lowered the
    held-out RMSE by `tolerance` (in the unit of the ratings).
    """

    learning_rate: float = 0.001
    regularization: float = 0.015
    epochs: int = 60
    init: float = 0.1
    biases: bool = False
    level_regularization: float = 5.0
    early_stopping: bool = False
    holdout: float = 0.02
    patience: int = 2
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        real("learning_rate", self.learning_rate, 0, 1, above=True)
        real("regularization", self.regularization, 0)
        whole("epochs", self.epochs, 1)
        real("init", self.init, -float("inf"))
        flag("biases", self.biases)
        real("level_regularization", self.level_regularization, 0)
        flag("early_stopping", self.early_stopping)
        real("holdout", self.holdout, 0, 0.9, above=True)
        whole("patience", self.patience, 1)
        real("tolerance", self.tolerance, 0)


SOLVERS: Mapping[str, type[AlsOptions] | type[FunkOptions]] = {"als": AlsOptions, "funk": FunkOptions}
"""The solvers with their options."""


def options_of(solver: str, given: Mapping[str, Any]) -> AlsOptions | FunkOptions:
    """The checked options of a solver.

    Raises InputError for an unknown solver or option, or an option out of its range.
    """
    if solver not in SOLVERS:
        msg = f"there is no solver '{solver}'; the solvers are: {', '.join(SOLVERS)}."
        raise InputError(msg)
    return make_options(SOLVERS[solver], given, solver)
