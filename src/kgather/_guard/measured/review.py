"""What a ledger of mode measured holds, for those who run the guard: charges, what is left, and what they promise."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgather._errors import InputError
from kgather._guard.measured.accounting import epsilon_of
from kgather._guard.measured.kinds import People, kinds_of
from kgather._guard.measured.ledger import Ledger, Measurement, Version
from kgather._guard.measured.missing import told_absence
from kgather._guard.measured.purchase import measured_people, purchase
from kgather._guard.measured.readable import readable
from kgather._guard.measured.shares import FOR_KEYS, RESERVE, Prices
from kgather._guard.measured.spending import NOBODY, Spender, by_principal, spenders
from kgather._guard.measured.terms import read
from kgather._guard.warehouse import Warehouse


@dataclass(frozen=True)
class Pool:
    """What is for one kind of measurement, as rho. spent: what was charged; of the reserve it may be more, as small
    parts of what other pools have left are charged there."""

    name: str
    rho: float
    spent: float

    @property
    def left(self) -> float:
        """What is left of it."""
        return max(self.rho - self.spent, 0.0)


@dataclass(frozen=True)
class Charge:
    """What one measurement cost. name: what the ledger knows it by. told: the same for people. lost: its numbers are
    gone, and the charge is not. principal: whose question led to it, empty for what the ledger began with."""

    number: int
    version: int
    made_at: str
    kind: str
    name: str
    told: str
    pool: str
    rho: float
    delta: float
    lost: bool
    principal: str
    people: str | None
    """The kind of people that it is of; None where it was charged to everybody."""


@dataclass(frozen=True)
class Account:
    """The budget of people of one kind. kind: its name, empty where it has none; alone: whether there is no other kind.
    epsilon, delta: of the budget. rho: the same budget as what measurements are charged in. told_epsilon, told_delta:
    the guarantee of what is charged so far. buys: sentences that say what the whole budget buys."""

    kind: str
    alone: bool
    epsilon: float
    delta: float
    rho: float
    spent: float
    told_epsilon: float
    told_delta: float
    buys: tuple[str, ...]
    pools: tuple[Pool, ...]
    spenders: tuple[Spender, ...]
    """Who has spent how much; the principal is empty for what the ledger began with."""

    @property
    def left(self) -> float:
        """What is left of the budget, as rho."""
        return max(self.rho - self.spent, 0.0)


@dataclass(frozen=True)
class Review:
    """A ledger. accounts: of people of each kind."""

    id: str
    made_at: str
    accounts: tuple[Account, ...]
    versions: tuple[Version, ...]
    charges: tuple[Charge, ...]


def review(path: Path, audit_log: Path | None = None) -> Review:
    """Read a ledger, without the database: prices are of the policy and columns that a guard saw last. audit_log: tells
    whether there was a ledger where there is none. Raises InputError where there is none, or it cannot be read."""
    ledger = Ledger(path)
    if not ledger.exists():
        raise InputError(told_absence(path, audit_log))
    state, measurements = ledger.state(), ledger.measurements()
    terms = [*ledger.terms().values()]
    if not terms:
        msg = f"{path} was begun and not opened: nothing was told. Open the guard once."
        raise InputError(msg)
    catalog = read(terms[-1])
    kinds = kinds_of(catalog, Warehouse.of(catalog.policy))
    return Review(
        state["id"],
        state["made_at"],
        tuple(_account(people, measurements) for people in kinds.values()),
        tuple(ledger.versions()),
        tuple(_charge(one) for one in measurements),
    )


def _account(people: People, measurements: Sequence[Measurement]) -> Account:
    budget, charged = people.catalog.budget, people.charged(measurements)
    spent, for_rho = sum(one.rho for one in charged), budget.delta * (1 - FOR_KEYS)
    of_keys = sum(one.delta for one in charged)
    return Account(
        people.kind,
        people.alone,
        budget.epsilon,
        budget.delta,
        people.prices.total,
        spent,
        epsilon_of(spent, for_rho),
        for_rho + of_keys if spent else 0.0,
        purchase(people.catalog, people.prices, measured_people(people.told(measurements))),
        _pools(people.prices, charged),
        spenders(people.catalog.policy, people.prices.total, by_principal(charged)),
    )


def _pools(priced: Prices, measurements: Sequence[Measurement]) -> tuple[Pool, ...]:
    spent: dict[str, float] = {}
    for one in measurements:
        pool = str(one.about.get("pool", ""))
        place = pool if pool in priced.pools else RESERVE
        spent[place] = spent.get(place, 0.0) + one.rho
    own = {**priced.pools, RESERVE: priced.reserve}
    return tuple(Pool(name, most, spent.get(name, 0.0)) for name, most in own.items())


def _charge(one: Measurement) -> Charge:
    return Charge(
        one.number,
        one.version,
        one.made_at,
        one.charged_as,
        one.name,
        readable(one.name),
        str(one.about.get("pool", "")),
        one.rho,
        one.delta,
        one.charged_as != one.kind,
        str(one.about.get("principal", NOBODY)),
        one.whom,
    )
