"""Bounded t-means over bins (Thompson and Yao, as Predictive Anonymization uses it)."""

from typing import Annotated

from pydantic import Field

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


class Options(NoOptions):
    """sample and bins: None for the sizes of the paper. rounds: of moving centres. virtual_centres: averages."""

    sample: Annotated[int, Field(ge=1)] | None = None
    bins: Annotated[int, Field(ge=1)] | None = None
    rounds: int = Field(10, ge=1)
    virtual_centres: bool = True


def gather(users: Users, options: Options) -> Groups:
    """Gather all users, and say in which bin each was."""
    from kgather.udfs.gathering import bounded_t_means

    groups, bins = bounded_t_means.gather_with_bins(
        users.vectors,
        users.k,
        sample=options.sample,
        bins=options.bins,
        rounds=options.rounds,
        virtual_centres=options.virtual_centres,
        seed=users.seed,
        threads=users.threads,
    )
    return Groups(groups, bins=bins)


METHOD = Method(
    name="bounded_t_means",
    text="clusters a sample, sorts all users into bins by it, and clusters each bin",
    gather=gather,
    options=Options,
    refines=True,
    blocks=True,
    groups="k to 2k - 1",
    cost="O(n^1.5)",
    choose="to compare with Predictive Anonymization",
)
