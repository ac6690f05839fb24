"""Who spent how much of the budget, and how much each may: shares of principals, as the policy declares them.

A charge is of the principal whose question led to the measurement; what a ledger begins with is nobody's. Shares are
of the budget without what is nobody's, and without what those have spent who are no principals any more. Principals
without a share have together what the shares of others leave. What anybody has measured is free to all.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgather._guard.measured.ledger import Measurement
from kgather._guard.policy import Policy

NOBODY = ""
"""Whose charge it is what a ledger begins with."""
_COLUMN = re.compile(r'"([^"]+)"\."([^"]+)"')
_NAMED = 8  # columns that are told


@dataclass(frozen=True)
class Spender:
    """What a principal has spent, as rho. share: as the policy declares it, None where it does not. most: what may be
    spent in all; of principals without a share, by all of them together; None where the policy declares no shares.
    left: of that, for this principal."""

    principal: str
    share: float | None
    spent: float
    most: float | None
    left: float | None


def by_principal(measurements: Iterable[Measurement]) -> dict[str, float]:
    """What each principal has spent, as rho; NOBODY among them."""
    found: dict[str, float] = {}
    for one in measurements:
        who = str(one.about.get("principal", NOBODY))
        found[who] = found.get(who, 0.0) + one.rho
    return found


def spenders(policy: Policy, total: float, spent: Mapping[str, float]) -> tuple[Spender, ...]:
    """The principals of a policy, and whoever else has spent something. total: the budget, spent: as of
    `by_principal`, as rho."""
    shares = shares_of(policy)
    whole = max(total - sum(rho for who, rho in spent.items() if who not in policy.principals), 0.0)
    together = sum(spent.get(who, 0.0) for who in policy.principals if who not in shares)
    rest = max(1.0 - sum(shares.values()), 0.0)
    found = []
    for who in dict.fromkeys((*policy.principals, *sorted(spent))):
        own, share = spent.get(who, 0.0), shares.get(who)
        if not shares or who not in policy.principals:
            found.append(Spender(who, None, own, None, None))
            continue
        most = whole * (rest if share is None else share)
        left = max(most - (together if share is None else own), 0.0)
        found.append(Spender(who, share, own, most, left))
    return tuple(found)


def shares_of(policy: Policy) -> dict[str, float]:
    """The shares that a policy declares, by principal."""
    return {name: own.share for name, own in policy.principals.items() if own.share is not None}


def part_of(policy: Policy, principal: str) -> float:
    """The part of the budget that is a principal's, alone or with others who have no share."""
    shares = shares_of(policy)
    if not shares or principal not in policy.principals:
        return 1.0
    return shares.get(principal, max(1.0 - sum(shares.values()), 0.0))


def left_of(policy: Policy, total: float, before: Iterable[Measurement], principal: str) -> float:
    """What a principal may spend still, as rho; infinity where the policy declares no shares, and for what is
    nobody's: the whole budget is the only bound then."""
    if principal == NOBODY or not shares_of(policy):
        return math.inf
    return next(
        one.left if one.left is not None else math.inf
        for one in spenders(policy, total, by_principal(before))
        if one.principal == principal
    )


def told_share(policy: Policy, principal: str) -> str:
    """A principal's part of the budget in words."""
    part = f"{part_of(policy, principal):.3g}"
    if policy.principals[principal].share is not None:
        return f"your share ({part})"
    return f"the part ({part}) that those without a share have together"


def answerable(measurements: Sequence[Measurement]) -> str:
    """What is answered for nothing, as a sentence: columns by which counts, and of which sums, were measured. Nothing
    of anybody's conditions is in it."""
    alone: dict[str, None] = {}
    pairs: dict[str, None] = {}
    sums: dict[str, None] = {}
    for one in measurements:
        columns = [_column(name) for name in one.about.get("features", ())]
        if one.kind not in ("counts", "keys", "keyed", "sums") or None in columns or " where " in one.name:
            continue
        if one.kind == "sums":
            argument = _COLUMN.search(one.name.split(" of ")[-1])
            if argument is not None:
                sums[f"{'.'.join(argument.groups())} by {' and '.join(str(of) for of in columns) or 'all'}"] = None
        elif len(columns) == 1:
            alone[str(columns[0])] = None
        elif len(columns) == 2:
            pairs[" with ".join(str(of) for of in columns)] = None
    parts = [
        f"{what} {_listed([*of])}"
        for what, of in (("counts by", alone), ("counts by pairs:", pairs), ("means and sums of", sums))
        if of
    ]
    return (
        f"Still answered is what was measured: {'; '.join(parts)}."
        if parts
        else "No counts by single columns were measured yet."
    )


def _column(name: str) -> str | None:
    """A feature that is a column, as table.column; None of others."""
    found = _COLUMN.fullmatch(name)
    return None if found is None else ".".join(found.groups())


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
