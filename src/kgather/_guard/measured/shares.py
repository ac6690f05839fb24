"""What each measurement may cost: shares of the budget that follow from the policy alone.

A price depends on what kind of thing is measured and on how many of its kind the policy could lead to, never on what is
in the database. Each kind has a pool. A measurement is paid from its kind's pool, and from the common reserve when that
is used up; then it is not taken any more.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgather._guard.catalog import Catalog, TableInfo
from kgather._guard.measured.accounting import rho_of
from kgather._guard.measured.features import SPAN
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.source import Source
from kgather._guard.plan import NUMERIC
from kgather._guard.policy import Budget

FOR_KEYS = 0.2
"""The part of delta that is for showing keys; the rest is for turning rho into epsilon and delta."""
PAIRS = 200
"""Among how many pairs of features the budget for pairs is shared at most."""
_GRAINS = 0.04  # of the budget, for finding out whether tables have one row a person
_FRESH = 60  # conditions of many columns that the reserve is enough for
_ROLES = ("artifact", "dimension", "coarsened")
_PEOPLE: Mapping[str, float] = {"keys": 0.04, "ones": 0.06, "pairs": 0.58, "sums": 0.24}
_BY_ROWS: Mapping[str, float] = {"keys": 0.08, "ones": 0.42, "pairs": 0.40, "sums": 0.10}
_ROWS: Mapping[str, float] = {"keys": 0.30, "ones": 0.10, "pairs": 0.20, "sums": 0.32}
LEVELS = 16
"""Values of whole numbers, at most, whose mean comes from their counts."""
RESERVE = "reserve"
"""The pool of what no other pool is for, and of what comes after one is used up."""
_RESERVED = 0.12
_FEATURES_OF_ROWS = 20  # that people have by their rows, where no table has one row a person
_KEPT = 0.5  # the part of each pool that only its own kind is measured from
_OF_THE_REST = 200  # parts of what is left of everything, one of which is a price when pool and reserve are used up
_LEAST = 1e-4  # of the budget: with less, noise hides everything
_SLACK = 1e-9


class Offer(NamedTuple):
    """What pays for a measurement, and how much, as rho."""

    pool: str
    price: float


@dataclass(frozen=True)
class Prices:
    """What measurements cost, as rho. of: by kind, such as "pairs" or "ratings keys". pools: what each may cost in all;
    values that are found among rows and sums by them are of one pool, as they are measured together. reserve: what is
    for everything. fresh: the price of a condition of many columns."""

    total: float
    of: Mapping[str, float]
    pools: Mapping[str, float]
    reserve: float
    fresh: float
    delta: float
    """Of all keys that are shown together."""

    def offer(
        self, pool: str, price: float | None, before: Iterable[Measurement], most: float = math.inf
    ) -> "Offer | None":
        """What pays for a measurement, and how much: its pool at its price; or the reserve at the price of a condition
        of many columns; or a small part of what is left of everything. None where nothing does. price: None for the
        pool's own. most: what whoever asks may spend still."""
        spent: dict[str, float] = {}
        for one in before:
            of = str(one.about.get("pool", ""))
            of = of if of in self.pools else RESERVE
            spent[of] = spent.get(of, 0.0) + one.rho
        left = self.total * (1 + _SLACK) - sum(spent.values())
        own = payer(pool)
        offers = []
        own_price = self.of.get(pool) if price is None else price
        if own in self.pools and own_price is not None:
            offers.append((Offer(own, own_price), self.pools[own]))
        if price is None or own not in self.pools:
            offers.append((Offer(RESERVE, self.fresh if price is None else price), self.reserve))
        for offer, of_pool in offers:
            if offer.price <= min(left, most) and spent.get(offer.pool, 0.0) + offer.price <= of_pool * (1 + _SLACK):
                return offer
        # What is for other kinds of measurements stays theirs, up to a half: nobody uses it up by asking for this.
        theirs = sum(max(_KEPT * whole - spent.get(name, 0.0), 0.0) for name, whole in self.pools.items())
        last = min(left - theirs, most) / _OF_THE_REST
        return Offer(RESERVE, last) if price is None and last >= self.total * _LEAST else None

    def delta_of_next(self, before: Iterable[Measurement]) -> float:
        """The share of the next keys that are found: 1/2, 1/6, 1/12 and so on, together no more than all."""
        nth = 1 + sum(one.charged_as in ("keys", "keyed") for one in before)
        return self.delta / (nth * (nth + 1))


def price_of_a_grain(budget: Budget) -> float:
    """What it costs to find out whether a table has one row a person."""
    return rho_of(budget.epsilon, budget.delta * (1 - FOR_KEYS)) * _RESERVED / _FRESH


def pays_for_a_grain(budget: Budget, before: Iterable[Measurement]) -> bool:
    """Whether the budget pays for finding out of one more table whether it has one row a person, out of a small part
    of it."""
    charges = [(one.charged_as, one.rho) for one in before]
    total, price = rho_of(budget.epsilon, budget.delta * (1 - FOR_KEYS)), price_of_a_grain(budget)
    of_grains = sum(rho for kind, rho in charges if kind == "grain")
    return of_grains + price <= _GRAINS * total and sum(rho for _, rho in charges) + price <= total


def prices(catalog: Catalog) -> Prices:
    """The prices of a policy for people of one kind. catalog: of that kind."""
    budget = catalog.budget
    total = rho_of(budget.epsilon, budget.delta * (1 - FOR_KEYS))
    wide = [info for info in catalog.tables.values() if info.protected and info.grain == "unit"]
    long = [info for info in catalog.tables.values() if info.protected and info.grain == "rows"]
    of_people = 1.0 if not long else 0.65 if any(_columns(info) for info in wide) else 0.4
    pools: dict[str, float] = {}
    slots: dict[str, int] = {}
    columns = sum(len(_columns(info)) for info in wide)
    fine = sum(len(_fine(info)) for info in wide)
    undeclared = sum(_finding(info, name, None) for info in wide for name in _columns(info))
    measures = sum(len(info.policy.measures) for info in long) + sum(
        len(info.policy.measures) + len(_by_sums(info)) for info in wide
    )
    features = columns - fine if not long else max(columns - fine, _FEATURES_OF_ROWS)
    weights = _PEOPLE if columns else _BY_ROWS
    slots["keys"] = undeclared
    slots["ones"] = features + fine + 1
    slots["pairs"] = min(features * (features - 1) // 2 + fine, PAIRS)
    slots["sums"] = measures * (features + 1)
    _fill(pools, slots, weights, of_people)
    for info in long:
        names, unique = _columns(info), catalog.unique(info)
        fine = len(_fine(info, unique))
        apart = len(names) - fine
        own = {f"{info.name} {kind}": weight for kind, weight in _ROWS.items()}
        slots[f"{info.name} keys"] = sum(_finding(info, name, unique) for name in names)
        slots[f"{info.name} ones"] = len(names) + 2
        slots[f"{info.name} pairs"] = apart * (apart - 1) // 2 + fine
        slots[f"{info.name} sums"] = len(_summed(info, unique)) * (apart + 1)
        _fill(pools, slots, own, (1 - of_people) / len(long))
    whole = total * (1 - _RESERVED)
    of = {name: share * whole / slots[name] for name, share in pools.items()}
    together: dict[str, float] = {}
    for name, share in pools.items():
        together[payer(name)] = together.get(payer(name), 0.0) + share * whole
    reserve = total * _RESERVED
    # Sums over rows that a condition chooses are good for no other question: as a condition of many columns.
    of |= {f"{info.name} chosen": reserve / _FRESH for info in long}
    return Prices(total, of, together, reserve, reserve / _FRESH, budget.delta * FOR_KEYS)


def payer(kind: str) -> str:
    """The pool that pays for a kind of measurement."""
    for sums in (" sums", " chosen"):
        if kind.endswith(sums):
            return f"{kind.removesuffix(sums)} keys"
    return kind


def _fill(pools: dict[str, float], slots: Mapping[str, int], weights: Mapping[str, float], share: float) -> None:
    """Share a part of the budget among the pools of people, or of one table's rows, that have anything to pay."""
    used = {name: weight for name, weight in weights.items() if slots.get(name)}
    whole = sum(used.values())
    pools |= {name: share * weight / whole for name, weight in used.items()}


def _columns(info: TableInfo) -> list[str]:
    """The columns that conditions and keys may name."""
    return [column.name for column in info.columns.values() if column.role in _ROLES]


def _fine(info: TableInfo, unique: str | None = None) -> list[str]:
    """Columns of numbers so fine that they are asked for in conditions, one at a time: each condition is measured by
    itself, and with one column more. So there is no pair of each of them with each other column."""
    names = [name for name in _columns(info) if name != unique and not _is_declared(info, name)]
    return [name for name in names if _is_number(info, name) or (_is_integer(info, name) and _is_bounded(info, name))]


def _by_sums(info: TableInfo) -> list[str]:
    """Columns that people are chosen by, and whose means come from sums and not from counts of a few values."""
    return [
        name
        for name in _columns(info)
        if _is_number(info, name) or (_is_integer(info, name) and not _is_of_few(info, name))
    ]


def _is_number(info: TableInfo, name: str) -> bool:
    column = info.column(name)
    return column is not None and column.kind == "number"


def _is_integer(info: TableInfo, name: str) -> bool:
    column = info.column(name)
    return column is not None and column.kind == "integer"


def _is_bounded(info: TableInfo, name: str) -> bool:
    column = info.column(name)
    return column is not None and Source(info, column.name, column.type).bounds is not None


def _is_of_few(info: TableInfo, name: str) -> bool:
    """Whether the policy lists a few values, or bounds that few whole numbers are between; also what says neither."""
    column = info.column(name)
    assert column is not None
    source = Source(info, column.name, column.type)
    if source.values is not None:
        return len(source.values) <= LEVELS
    return source.bounds is None or source.bounds[1] - source.bounds[0] < LEVELS


def _summed(info: TableInfo, unique: str | None) -> list[str]:
    """The columns of a long table that sums may be of."""
    return [
        column.name
        for column in info.columns.values()
        if column.role in ("artifact", "measure") and column.kind in NUMERIC and column.name != unique
    ]


def _finding(info: TableInfo, name: str, unique: str | None) -> int:
    """How many measurements find the values of a column: of whole numbers, but for names, their size and their ends."""
    column = info.column(name)
    if _is_declared(info, name) or name in _fine(info, unique):
        return 0
    return 2 if column is not None and column.kind == "integer" and name != unique else 1


def _is_declared(info: TableInfo, name: str) -> bool:
    column = info.column(name)
    assert column is not None
    if column.kind == "boolean":
        return True
    source = Source(info, column.name, column.type)
    if source.values is not None:
        return True
    return column.kind == "integer" and source.bounds is not None and source.bounds[1] - source.bounds[0] < SPAN
