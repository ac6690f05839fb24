"""The methods of gathering by name, and the options that each has of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from kgather._errors import InputError
from kgather.udfs._shared.options import flag, whole

Method = Literal[
    "bkg",
    "bokg",
    "customized",
    "bounded_t_means",
    "mdav",
    "k_likeness",
    "k_member",
    "mondrian",
    "epsilon",
    "gaussian_noise",
]

# They gather the users of the artifact table, all others everybody.
ON_ARTIFACTS = frozenset({"k_likeness", "k_member", "mondrian"})
# Users may ask for groups smaller than k.
BY_LEVEL = frozenset({"bokg", "customized"})
# They lower the sum of squares, so that refining, which lowers it further, is of the same mind. BOKG is none: whom it
# separates is its meaning.
REFINED = frozenset({"bkg", "customized", "bounded_t_means", "mdav"})


@dataclass(frozen=True)
class MdavOptions:
    """leftovers: what becomes of the last k to 2k - 1 users: 'nearest' (the paper's rule) or 'own' group."""

    leftovers: str = "nearest"

    def __post_init__(self) -> None:
        if self.leftovers not in ("nearest", "own"):
            msg = f"leftovers is nearest or own, not {self.leftovers!r}."
            raise InputError(msg)


@dataclass(frozen=True)
class BoundedTMeansOptions:
    """sample and bins: None for the sizes of the paper. rounds: of moving centres. virtual_centres: averages."""

    sample: int | None = None
    bins: int | None = None
    rounds: int = 10
    virtual_centres: bool = True

    def __post_init__(self) -> None:
        for name in ("sample", "bins"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
        whole("rounds", self.rounds, 1)
        flag("virtual_centres", self.virtual_centres)


@dataclass(frozen=True)
class NoOptions:
    """A method without options of its own."""


METHOD_OPTIONS: Mapping[str, type] = {
    name: {"mdav": MdavOptions, "bounded_t_means": BoundedTMeansOptions}.get(name, NoOptions)
    for name in get_args(Method)
}
