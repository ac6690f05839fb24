"""What a list of questions would cost, and how exact its answers would be, without reading any row of people."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kgather._guard.measured.accounting import noise_for
from kgather._guard.measured.kinds import named
from kgather._guard.measured.measuring import Wanted
from kgather._guard.measured.readable import readable
from kgather._guard.plan import Plan
from kgather._guard.planner import plan
from kgather._guard.refused import Refused

if TYPE_CHECKING:
    from kgather._guard.measured.engine import MeasuredEngine


@dataclass(frozen=True)
class Needed:
    """A measurement that questions need. told: what it is, in words. questions: their places in the list, from 1.
    rho: its price, None where the budget does not pay for it. sd: the standard error of a count in it, in people or
    rows; None where that is not known."""

    told: str
    questions: tuple[int, ...]
    rho: float | None
    sd: float | None
    finds: bool
    """Whether it finds values, bounds or rows a person, on which it depends what else is measured."""


@dataclass(frozen=True)
class Workload:
    """needed: in the order in which it would be measured. refused: questions that the text and the policy refuse, with
    the reason. known: how many questions need nothing new. budgets: of people of each kind."""

    needed: tuple[Needed, ...]
    refused: tuple[tuple[int, str], ...]
    known: int
    budgets: tuple["OfKind", ...]

    @property
    def rho(self) -> float:
        """What all would cost, of people of all kinds."""
        return sum(one.rho for one in self.budgets)

    @property
    def left(self) -> float:
        """What is left before, of people of all kinds."""
        return sum(one.left for one in self.budgets)


class OfKind(NamedTuple):
    """What questions take of the budget of people of one kind, and what is left of it before. kind: how these are
    called; empty where there is no other kind."""

    kind: str
    rho: float
    left: float


def workload(engine: "MeasuredEngine", statements: Sequence[str]) -> Workload:
    """What statements need that was not measured yet, asked one after the other. Touches no data."""
    session = engine.session(dry=True)
    refused: list[tuple[int, str]] = []
    found: dict[str, tuple[Wanted, Wanted | None, list[int]]] = {}
    known = 0
    for at, statement in enumerate(statements, 1):
        try:
            made = plan(statement, engine.catalog)
        except Refused as why:
            refused.append((at, why.reason))
            continue
        first = len(session.missing)
        if isinstance(made, Plan):
            engine.dry(session, made)
        own = session.missing[first:]
        known += not own
        for wanted, paid in own:
            found.setdefault(wanted.known_as, (wanted, paid, []))
        for name in dict.fromkeys(session.used):
            if name in found:
                found[name][2].append(at)
        session.used.clear()
    needed = tuple(_needed(wanted, paid, tuple(places)) for wanted, paid, places in found.values())
    before = engine.ledger.measurements()
    budgets = []
    for kind, people in engine.kinds.items():
        paid_for = [paid.price or 0.0 for wanted, paid, _ in found.values() if paid is not None and wanted.whom == kind]
        left = people.prices.total - sum(one.rho for one in people.charged(before))
        budgets.append(OfKind("" if people.alone else named(kind), sum(paid_for), max(left, 0.0)))
    return Workload(needed, tuple(refused), known, tuple(budgets))


def _needed(wanted: Wanted, paid: Wanted | None, questions: tuple[int, ...]) -> Needed:
    price = None if paid is None else paid.price
    sd = noise_for(wanted.reach, price) if price and wanted.kind in ("counts", "people", "keys") else None
    finds = wanted.kind in ("keys", "keyed", "rows", "magnitudes", "spread")
    return Needed(" ".join(readable(wanted.name).split()), questions, price, sd, finds)


def lines(found: Workload, statements: int) -> Iterator[str]:
    """A workload as text."""
    for one in found.needed:
        places = ", ".join(str(place) for place in one.questions[:8]) + (", ..." if len(one.questions) > 8 else "")
        of = f"question{'s' if len(one.questions) > 1 else ''} {places}" if one.questions else "what others need"
        if one.rho is None:
            yield f"CANNOT PAY for {one.told} ({of})"
            continue
        error = "" if one.sd is None else f", standard error {one.sd:.3g}"
        yield f"{one.told}: rho {one.rho:.6f}{error} ({of})"
    for at, why in found.refused:
        yield f"question {at} is refused: {' '.join(why.split())}"
    unpaid = sum(one.rho is None for one in found.needed)
    prices = [
        f"rho {one.rho:.6f} of {one.left:.6f} that is left{f' for {one.kind}' if one.kind else ''}"
        for one in found.budgets
    ]
    yield (
        f"Questions: {statements:,}. Measurements: {len(found.needed):,}, for {' and '.join(prices)}. "
        f"Questions that need nothing new: {found.known:,}. Refused: {len(found.refused):,}."
    )
    if unpaid:
        yield f"The budget does not pay for {unpaid:,} of them: those answers are estimates and marked, or refused."
    if any(one.finds for one in found.needed):
        yield "What is found out by measuring (values, bounds, rows a person) may make more necessary."
