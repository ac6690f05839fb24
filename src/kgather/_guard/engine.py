"""What the guard asks of a mode: the relations of a plan's blocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from kgather._guard.catalog import Catalog
from kgather._guard.deadline import Deadline
from kgather._guard.plan import Plan


@dataclass
class Trace:
    """What the audit log keeps of how an answer, or a refusal, came about. touched, cut: atoms that hold what was asked
    for, and how many more there are now. version, position: in mode measured the version of the data, and how many
    measurements the ledger had. ledger, terms: by what the ledger names itself, and policy and columns. public: the
    checksum of each public table that was read. measured: charges that the log does not have yet, those for this answer
    among them. written: called once the log has the entry. costs: of the answer's own measurements, as rho, by kind of
    people. principal: who asks."""

    touched: int = 0
    cut: int = 0
    version: int | None = None
    position: int = 0
    ledger: str = ""
    terms: str = ""
    public: Mapping[str, str] = field(default_factory=dict)
    measured: Sequence[Mapping[str, object]] = ()
    written: Callable[[], None] | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    principal: str = ""

    @property
    def cost(self) -> float:
        """Of the answer's own measurements of people of all kinds, as rho."""
        return sum(self.costs.values())


@dataclass(frozen=True)
class Decided:
    """What blocks are answered with. tables: the relation of each. errors: of each block, how far off it may be.
    warning: what the answer does not protect against, in mode exact."""

    tables: Mapping[str, pa.Table]
    errors: Mapping[str, pa.Table]
    warning: str | None = None


BESIDE = ("_error", "_kind")
"""What stands behind the name of an aggregate where the standard error, and how it came about, is told."""

KINDS = ("measured", "modelled", "estimated")
"""How numbers come about in mode measured, the surest first: from sums that were measured; from margins of two
features, where three are asked for; from less than that."""


class Engine(Protocol):
    """A mode of the guard."""

    @property
    def catalog(self) -> Catalog:
        """What names mean."""

    def decide(self, made: Plan, deadline: Deadline, trace: Trace, *, errors: bool) -> Decided:
        """Decide what is told about people. Raises Refused; what it did is in the trace then, too."""

    def public(self, made: Plan, deadline: Deadline) -> dict[str, pa.Table]:
        """The public tables that a plan reads beside its blocks."""
