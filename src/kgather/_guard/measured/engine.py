"""Mode measured as an engine of the guard: opens database and ledger, and answers plans from what is measured."""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from kgather._errors import InputError
from kgather._guard.audit_log import last_entry
from kgather._guard.catalog import Catalog, Column, FindGrain, TableInfo, catalog_of, kind_of, shown_type
from kgather._guard.deadline import Deadline
from kgather._guard.engine import Decided, Trace
from kgather._guard.measured.accounting import charge, epsilon_of, noise_for
from kgather._guard.measured.answering import Answering
from kgather._guard.measured.costs import told_costs
from kgather._guard.measured.database import Database, as_total, check_lookups, show, unreadable
from kgather._guard.measured.domain import Domain, check_values
from kgather._guard.measured.features import Feature
from kgather._guard.measured.grid import Scratch
from kgather._guard.measured.kinds import People, kinds_of, named
from kgather._guard.measured.ledger import Ledger, Measurement, Version
from kgather._guard.measured.measuring import CHANGED, Session, Wanted
from kgather._guard.measured.missing import gone, older
from kgather._guard.measured.model import Model
from kgather._guard.measured.noise import Noise, discrete_gaussian
from kgather._guard.measured.public import PublicTables
from kgather._guard.measured.purchase import bought
from kgather._guard.measured.shares import FOR_KEYS, RESERVE, Prices, pays_for_a_grain, price_of_a_grain
from kgather._guard.measured.sharpening import Tally
from kgather._guard.measured.source import Source, source_of
from kgather._guard.measured.spending import NOBODY, Spender, by_principal, part_of, shares_of, spenders
from kgather._guard.measured.terms import digest_of, written
from kgather._guard.plan import Block, Plan
from kgather._guard.policy import Budget, Grain, Policy, fold
from kgather._guard.refused import Refused
from kgather._guard.render import identifier
from kgather._guard.views import check_views
from kgather._guard.warehouse import Warehouse

_FEW = 4.0  # standard deviations of noise that are taken for nobody
_REMEMBERED = 4_096  # answers kept in memory


@dataclass(frozen=True)
class _Known:
    """An answer. of: the version of the data, and how many measurements there were when it was made. public: the public
    tables that it read."""

    decided: Decided
    of: tuple[int, int]
    public: frozenset[str]


@dataclass(frozen=True)
class _Noted:
    """Public tables, with notes of which ones told something."""

    tables: PublicTables
    catalog: Catalog
    seen: set[str]

    def domain(self, feature: Feature) -> Domain | None:
        found, source = self.tables.domain(feature), source_of(feature.expr, self.catalog)
        if found is not None and source is not None:
            self.seen.add(source.table.name)
        return found

    def ends(self, source: Source) -> tuple[float, float] | None:
        self.seen.add(source.table.name)
        return self.tables.ends(source)


class MeasuredEngine:
    """Answers from noisy measurements. Safe to share among threads; processes share the ledger.

    noise: where it comes from; the operating system, but in tests. anew: set a ledger aside that is there, and begin
    another one.
    """

    catalog: Catalog
    database: Database
    public_tables: PublicTables
    kinds: dict[str, People]
    """The kinds of people of the catalog, by name."""
    begun: bool
    """Whether the ledger was begun when this was opened."""
    _terms: str
    _written: str
    """The terms as text; `_terms` is their digest."""

    def __init__(self, policy: Policy, folder: Path, noise: Noise = discrete_gaussian, *, anew: bool = False) -> None:
        self.policy = policy
        self.noise = noise
        self._warehouse = Warehouse.of(policy, folder)
        self.ledger = Ledger(folder / policy.ledger)
        self._measured_before = self.ledger.exists() and not anew
        known = self.ledger.state() if self._measured_before else {}
        self._grains: dict[str, Grain] = json.loads(known.get("grains", "{}"))
        self._load()
        self.scratch = Scratch()
        self._lock = threading.RLock()
        self._answers: dict[tuple[str, tuple[Block, ...]], _Known] = {}
        self._models: dict[str, Model] = {}
        self._tally = Tally()
        self._logged = 0
        self._open_ledger(folder, anew=anew)

    @property
    def prices(self) -> Prices:
        """Of the budget of the first kind of people."""
        return next(iter(self.kinds.values())).prices

    # Opening

    def _load(self) -> None:
        """Read what tables and columns the database has now, and the terms that this makes."""
        self._found: list[Measurement] = []
        self.catalog = _read_catalog(self.policy, self._warehouse, self._grain)
        self.database = Database(self._warehouse, self.catalog)
        self.kinds = kinds_of(self.catalog, self._warehouse)
        self.public_tables = PublicTables(self._warehouse, self.catalog, self.policy.limits.memory)
        self._written = written(self.catalog)
        self._terms = digest_of(self._written)

    def _grain(self, con: duckdb.DuckDBPyConnection, table: str, relation: str, unit: str) -> Grain:
        """Whether a table has one row a person: as the ledger knows, or by a noisy number of people with several. Where
        the budget has nothing for that, or the data are no longer those of the ledger, people may have several."""
        known = self._grains.get(fold(table))
        if known is not None:
            return known
        entry = self.policy.table(table)
        whom = fold((entry.unit if entry is not None else None) or "")
        budget = self.policy.budget.of(whom)
        price = price_of_a_grain(budget)
        before = [*(self.ledger.measurements() if self._measured_before else []), *self._found]
        charged = [one for one in before if one.whom in (None, whom)]
        if not pays_for_a_grain(budget, charged) or not self._is_of_ledger():
            return "rows"
        type_ = shown_type(str(con.sql(f"select {identifier(unit)} from {relation}").types[0]))
        person = as_total(Column(unit, "unit", kind_of(type_), type_))
        several = (
            f"select {identifier(unit)} from (select {person} from {relation}) "
            f"where {identifier(unit)} is not null group by 1 having count(*) > 1"
        )
        exact = con.execute(f"select count(*) from ({several})").fetchall()[0][0]
        sd = noise_for(1.0, price)
        noisy = np.array([exact]) + self.noise(1, sd)
        about = {"pool": RESERVE, "rows": table, "features": [], "reach": 1.0, "whom": whom}
        name = f"people with several rows of {table}"
        self._found.append(Measurement("grain", name, charge(1.0, sd), 0.0, sd, (), noisy, about))
        self._grains[fold(table)] = "unit" if noisy[0] < _FEW * sd else "rows"
        return self._grains[fold(table)]

    def _is_of_ledger(self) -> bool:
        """Whether the file is as it was when the ledger began with it."""
        return not self._measured_before or self._warehouse.stamp() == self.ledger.versions()[-1].stamp

    def _keep_grains(self) -> None:
        """Write down what was found of grains, if anything was, or take what another process found."""
        if not self._found:
            return
        with self.ledger.measuring() as writing:
            kept: dict[str, Grain] = json.loads(writing.state("grains") or "{}")
            for one in self._found:
                table = fold(str(one.about["rows"]))
                if table not in kept:
                    writing.add(one)
                    kept[table] = self._grains[table]
            writing.keep("grains", json.dumps(kept))
        self._found = []
        if any(kept.get(table, grain) != grain for table, grain in self._grains.items()):
            self._grains = kept
            self._load()
        self._grains = kept

    def _open_ledger(self, folder: Path, *, anew: bool) -> None:
        log = None if self.policy.audit_log is None else folder / self.policy.audit_log
        last = last_entry(log) if log is not None else None
        self.aside = self.ledger.set_aside() if anew else None
        self.begun = False
        if not self.ledger.exists():
            why = None if anew else gone(self.ledger.path, log)
            if why is not None:
                raise InputError(why)
            self.ledger.make(_state(self.policy, self.catalog), self.database.stamp())
            self.begun = True
        self._measured_before = True
        state = self.ledger.state()
        self._check_state(state)
        if last is not None and last.get("ledger") == state["id"]:
            older(self.ledger.path, len(self.ledger.measurements()), last)
        self._keep_grains()
        self.ledger.keep_terms(self._terms, self._written)
        self._id = state["id"]
        self._version = self.ledger.versions()[-1].number

    def next_version(self, *, force: bool = False) -> Version:
        """Begin the next version of the data. force: even where the database was not changed. Raises InputError where
        it was not, otherwise."""
        stamp = self.database.stamp()
        if not force and stamp == self.ledger.versions()[-1].stamp:
            msg = (
                f"{self._warehouse} was not changed since the ledger's newest version of the data began: what was "
                "measured is still answered. Say --force to have all measured anew, and paid for again."
            )
            raise InputError(msg)
        return self.ledger.open_version(stamp)

    def prepare(self) -> None:
        """Measure what the policy says is measured first, if this ledger has not done so. Raises InputError where an
        entry is refused, whether it was measured or not, and where the database was changed before it was done."""
        from kgather._guard.prepared import prepared

        plans = prepared(self.catalog)
        if plans and self.ledger.state().get("prepared") is None:
            self._prepare(plans)
            self.ledger.set_state("prepared", "yes")

    def _check_state(self, state: Mapping[str, str]) -> None:
        """Refuse what may not change during a ledger's lifetime."""
        begun_with = json.loads(state.get("budgets", "{}"))
        measurements = self.ledger.measurements()
        for kind, people in self.kinds.items():
            budget, of = people.catalog.budget, "budget" if people.alone else f"budget of {named(kind)}"
            # A ledger from before there were budgets by kind has promised its own to everybody.
            first = _numbers(budget) if "budgets" in state else (float(state["epsilon"]), float(state["delta"]))
            epsilon, delta = begun_with.setdefault(kind, first)
            if budget.epsilon > epsilon or budget.delta > delta:
                msg = (
                    f"{of}: the ledger {self.ledger.path} was begun with epsilon {epsilon:g} and delta {delta:g}, for "
                    f"its lifetime; the policy says {budget.epsilon:g} and {budget.delta:g}. Set it back: it may be "
                    "lowered only."
                )
                raise InputError(msg)
            spent = sum(one.rho for one in people.charged(measurements))
            if spent > people.prices.total * (1 + 1e-9):
                msg = (
                    f"{of}: {epsilon_of(spent, budget.delta * (1 - FOR_KEYS)):.3g} of epsilon is spent already in "
                    f"{self.ledger.path}, and the policy says {budget.epsilon:g}. What was told cannot be taken back: "
                    "say no less than that."
                )
                raise InputError(msg)
        self.ledger.set_state("budgets", json.dumps(begun_with))
        if state.get("audit_log") == "yes" and self.policy.audit_log is None:
            msg = (
                f"audit_log: the ledger {self.ledger.path} was begun with an audit log, which its restore relies on. "
                "Name one in this policy, too."
            )
            raise InputError(msg)
        units = json.loads(state["units"])
        known = {_without_main(name): unit for name, unit in units.items()}
        for name, unit in _units(self.catalog).items():
            first = known.setdefault(_without_main(name), unit)
            if _without_main(first) != _without_main(unit):
                msg = (
                    f"tables.{name}.privacy_unit: the ledger {self.ledger.path} was begun with {first!r}, and "
                    f"the policy says {unit!r}. Whom a budget protects does not change: set it back."
                )
                raise InputError(msg)
            units.setdefault(name, unit)
        self.ledger.set_state("units", json.dumps(units))

    def _prepare(self, plans: Iterable[Plan]) -> None:
        """Measure what plans need: together what does not depend on what others find. What the budget does not pay for,
        and what too few people are in, is left out."""
        several = [*plans]
        while ahead := self._ahead(several):
            with closing(self.session()) as session:
                complete = [
                    session.of(kind).ensure(*(wanted for wanted in ahead if wanted.whom == kind), required=False)
                    for kind in self.kinds
                ]
                if not all(complete):
                    break
        for made in several:
            with closing(self.session()) as session:
                Answering(session, self.scratch).costs(made)

    @property
    def buys(self) -> tuple[str, ...]:
        """Sentences that say what the budgets buy, for as many people as were measured, if they were."""
        return bought(self.kinds, self.ledger.measurements())

    def spenders(self, people: People, measurements: Sequence[Measurement]) -> tuple[Spender, ...]:
        """Who has spent how much of the budget of people of a kind, and may spend. measurements: all of the ledger."""
        return spenders(self.policy, people.prices.total, by_principal(people.charged(measurements)))

    # Answering

    def session(self, principal: str = NOBODY, *, dry: bool = False) -> Session:
        """What an answer is made in. principal: who pays for what is measured."""
        version, known = self.ledger.current()
        if version.number != self._version:
            self._load()  # of the next version of the data, public tables and columns may be others
            self._keep_grains()
            self._check_state(self.ledger.state())
            self.ledger.keep_terms(self._terms, self._written)
            self._version = version.number
        return Session(
            self.kinds,
            next(iter(self.kinds)),
            self.ledger,
            self.noise,
            version.number,
            version.stamp,
            known,
            dry,
            self._models,
            principal=principal,
            of_public=self.public_tables,
        )

    def decide(self, made: Plan, deadline: Deadline, trace: Trace, *, errors: bool) -> Decided:
        """The relation of each block. Whatever it takes is done: nothing depends on how long. Raises Refused."""
        del deadline, errors
        with self._lock, ExitStack() as stack:
            own: set[int] = set()  # what was measured for this answer
            # Where there are shares, one may pay for what another may not.
            named = (trace.principal if shares_of(self.policy) else NOBODY, made.blocks)
            while True:
                session = stack.enter_context(closing(self.session(trace.principal)))
                session.ahead = partial(self._ahead, [made], trace.principal)
                before = (session.version, session.position)
                known = self._answers.get(named)
                if known is not None and known.of == before:
                    break
                seen: set[str] = set()
                session.of_public = _Noted(self.public_tables, self.catalog, seen)
                try:
                    found = Answering(session, self.scratch).blocks(made)
                except Refused:
                    # A refusal is made of measurements, too.
                    if session.position == before[1]:
                        self._trace(trace, session, {*seen, *made.public}, own)
                        raise
                    continue
                finally:
                    own |= {one.number for one in session.taken}
                if session.position > before[1]:
                    # All numbers of an answer come from one state of the ledger, in which all is measured.
                    continue
                decided = Decided(
                    {name: of.table for name, of in found.items()}, {name: of.errors for name, of in found.items()}
                )
                if len(self._answers) >= _REMEMBERED:
                    self._answers.clear()
                known = self._answers[named] = _Known(decided, before, frozenset({*seen, *made.public}))
                break
            self._trace(trace, session, known.public, own)
            if session.used:
                self._sharpen(session)
            return known.decided

    def _sharpen(self, session: Session) -> None:
        """Count what was asked, and measure again what is asked most when it is time. What was just answered stays as
        it is; the next answers are better."""
        if self._tally.count(session.used.values()) and self.database.stamp() == session.stamp:
            part = part_of(self.policy, session.principal)
            for kind, people in self.kinds.items():
                again = self._tally.again(people, session.known)
                session.of(kind).repeat([replace(one, price=(one.price or 0.0) * part) for one in again if part])

    def _trace(self, trace: Trace, session: Session, public: Iterable[str], own: Set[int]) -> None:
        """Note what makes it possible to give the answer again, and to charge again what it cost. own: what was
        measured for it."""
        trace.ledger, trace.terms = self._id, self._terms
        trace.version, trace.position = session.version, len(session.known)
        taken = [one for one in session.known if one.number in own]
        trace.costs = {
            kind: sum(one.rho for one in taken if one.whom == kind)
            for kind in self.kinds
            if any(one.whom == kind for one in taken)
        }
        trace.public = {name: self.public_tables.checksum(name) for name in sorted(public)}
        if self.policy.audit_log is None or len(session.known) <= self._logged:
            return
        # What others measured and did not write there yet, or never will as they were stopped, is written, too.
        self._logged = max(self._logged, self.ledger.logged())
        trace.measured = [
            one.as_charge() | ({} if one.number in own else {"for": "another"}) for one in session.known[self._logged :]
        ]
        if trace.measured:
            trace.written = partial(self.ledger.set_logged, len(session.known))

    def costs(self, made: Plan, principal: str = NOBODY) -> list[tuple[Wanted, Wanted | None]]:
        """What would be measured for a plan, as far as its text tells now, and how each would be paid."""
        session = self.session(principal, dry=True)
        self.dry(session, made)
        return session.missing

    def dry(self, session: Session, made: Plan) -> None:
        """Find out what would be measured for a plan, without measuring: `Session.missing` has it then."""
        session.ask()
        Answering(session, self.scratch).costs(made)

    def _ahead(self, plans: Sequence[Plan], principal: str = NOBODY) -> list[Wanted]:
        """What plans need, whatever else is found, and is paid for."""
        session = self.session(principal, dry=True)
        for made in plans:
            self.dry(session, made)
        return session.certain

    def told_cost(self, made: Plan, principal: str = NOBODY) -> str:
        """The same as text to read. Reads no row of people."""
        missing = self.costs(made, principal)
        told = told_costs(missing, self.kinds, self.ledger.measurements())
        changed = missing and self.database.stamp() != self.ledger.versions()[-1].stamp
        return f"{told}\n-- NOT NOW: {CHANGED}" if changed else told

    # Public tables

    def public(self, made: Plan, deadline: Deadline) -> dict[str, pa.Table]:
        """The public tables that are read beside the blocks."""
        return self.public_tables.read(made.public, deadline) if made.public else {}


def _read_catalog(policy: Policy, warehouse: Warehouse, find_grain: FindGrain) -> Catalog:
    if not warehouse.path.exists():
        raise InputError(warehouse.absent)
    con = warehouse.connected()
    try:
        catalog = catalog_of(con, policy, find_grain)
        check_values(con, catalog)
        check_views(con, catalog)
        show(con, catalog, frozenset())
        check_lookups(con, catalog)
        return catalog
    except duckdb.Error:
        raise InputError(unreadable(warehouse)) from None
    finally:
        con.close()


def _numbers(budget: Budget) -> tuple[float, float]:
    return budget.epsilon, budget.delta


def _units(catalog: Catalog) -> dict[str, str]:
    return {fold(info.name): _whom(info) for info in catalog.tables.values() if info.protected}


def _without_main(text: str) -> str:
    """The name of a table, or whom it is about, without the schema main: a policy may write it or leave it out."""
    return text.removeprefix("main.").replace("= main.", "= ").replace(".main.", ".")


def _whom(info: TableInfo) -> str:
    """Whom a table is about, as a ledger keeps it."""
    if info.parent is None:
        return fold(info.unit) if not info.people else f"{info.people} {fold(info.unit)}"
    keys = " and ".join(f"{fold(own)} = {fold(info.parent.table.name)}.{fold(key)}" for own, key in info.parent.keys)
    also = f" and is {fold(info.says_person.name)}" if info.says_person is not None else ""
    return f"whoever has {keys}{also}"


def _state(policy: Policy, catalog: Catalog) -> dict[str, str]:
    return {
        "epsilon": repr(policy.budget.epsilon),
        "delta": repr(policy.budget.delta),
        "budgets": json.dumps({kind: _numbers(policy.budget.of(kind)) for kind in catalog.kinds}),
        "units": json.dumps(_units(catalog)),
        "audit_log": "no" if policy.audit_log is None else "yes",
    }
