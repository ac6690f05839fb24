"""Says what a question would cost of the budget, before anything is measured."""

from collections.abc import Mapping, Sequence

from kgather._guard.measured.kinds import People, named
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.measuring import Wanted
from kgather._guard.measured.readable import readable
from kgather._guard.measured.shares import RESERVE


def told_costs(
    missing: Sequence[tuple[Wanted, Wanted | None]], kinds: Mapping[str, People], before: Sequence[Measurement]
) -> str:
    """What would be measured, each with its price as rho, what that is in all and what is left, of people of each kind
    that it is about, and what of it the budget does not pay for. missing: as far as a statement's text tells, each with
    what pays for it. before: what was measured already."""
    if not missing:
        left = [
            f"rho {_left(people, before):.6f} of {people.prices.total:.6f}{_of(people)}" for people in kinds.values()
        ]
        return f"-- costs nothing: all that it needs was measured before; {' and '.join(left)} is left"
    lines = [_line(wanted, paid) for wanted, paid in missing]
    for kind, people in kinds.items():
        own = [paid for wanted, paid in missing if wanted.whom == kind]
        total = sum(paid.price or 0.0 for paid in own if paid is not None)
        if own:
            left_of = f"{_left(people, before):.6f} that is left of {people.prices.total:.6f}"
            lines.append(f"-- costs rho {total:.6f} in all, of {left_of}{_of(people)}")
    if any(wanted.kind in ("keys", "keyed", "rows", "magnitudes", "spread") for wanted, _ in missing):
        lines.append("-- what is found out by these may make more necessary, at the same prices")
    refused = sum(paid is None for _, paid in missing)
    if refused:
        lines.append(
            f"-- the budget does not pay for {refused} of {len(missing)}: without them the answer is an estimate that "
            "is marked, or a refusal that says so"
        )
    else:
        lines.append("-- the budget pays for it")
    return "\n".join(lines)


def _left(people: People, before: Sequence[Measurement]) -> float:
    return max(people.prices.total - sum(one.rho for one in people.charged(before)), 0.0)


def _of(people: People) -> str:
    return "" if people.alone else f" for {named(people.kind)}"


def _line(wanted: Wanted, paid: Wanted | None) -> str:
    if paid is None:
        return f"-- CANNOT PAY for {_one_line(wanted.name)}"
    payer = "the reserve" if paid.pool == RESERVE else f"what is for {paid.pool}"
    return f"-- measures {_one_line(wanted.name)}: rho {paid.price:.6f} (from {payer})"


def _one_line(name: str) -> str:
    """What is measured, for people. It stands in a comment, which no name of a column may end."""
    return " ".join(readable(name).split())
