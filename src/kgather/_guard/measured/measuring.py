"""Takes measurements: decides from text, policy and what was measured before whether one is paid for, then reads,
draws the noise and writes it down. What is told comes later, from what was written."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from typing import Literal as Choice

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._guard.audit_log import plain, valued
from kgather._guard.catalog import Catalog
from kgather._guard.measured import bins
from kgather._guard.measured.accounting import charge, noise_for, tail
from kgather._guard.measured.bins import Bins
from kgather._guard.measured.coding import FINE, Bounds
from kgather._guard.measured.database import Database
from kgather._guard.measured.domain import TYPES, Domain, OfPublic, declared
from kgather._guard.measured.features import SPAN, Feature
from kgather._guard.measured.kinds import People
from kgather._guard.measured.ledger import Ledger, Measurement, Writing
from kgather._guard.measured.model import Model, name_of
from kgather._guard.measured.noise import Noise
from kgather._guard.measured.reading import CELLS_A_PERSON, GRANULES, POWERS, OfRows, Reading, reach_of
from kgather._guard.measured.scanning import Margin, passes
from kgather._guard.measured.shares import RESERVE, Prices
from kgather._guard.measured.source import source_of
from kgather._guard.measured.spending import NOBODY, left_of
from kgather._guard.plan import Bound, Literal, Op, Value
from kgather._guard.policy import bytes_of

_T = TypeVar("_T")
_OF_MEMORY = 0.6
CELLS = 200_000
"""Cells that one measurement may have: each takes noise of its own."""
_OF_COUNTS = {"people": 0.1, "rows": 0.43, "keyed": 1.1}
"""The square of how much of a sum's measurement goes to the count beside it: of people, of rows, and where the count
decides which values are shown."""
_FEW_HAVE = 5.0  # people whose values do not make bounds
_BINS = 32  # in which the ends of a feature's values are looked for
Counted = Choice["rows", "distinct", "people"]
"""What is counted of a person's rows: all, each of which is in a cell of its own, or the person once in each cell."""
_DOUBLES = tuple(2**power for power in range(21))
"""Numbers of rows among which a bound is found."""
_ABOVE: Mapping[Counted, float] = {"rows": 0.1, "distinct": 0.5, "people": 0.01}
"""The part of people who may have more rows than are counted in full, where no bound is declared: more where each row
is in a cell of its own, as all of them are counted then, each for less; hardly anybody where people are counted once
in each cell, as the noise is that of the root of the number."""


class TooFew(Exception):  # noqa: N818 - it is told as the refusal for too few people
    """Noise hides everybody who has a value."""


class DataChanged(InputError):  # noqa: N818 - servers tell it as a fact about the data
    """The database is no longer what the ledger began with, and something new was to be measured."""


class Spent(Exception):  # noqa: N818 - it is handled by another way, or told as a refusal
    """What is left of the budget does not pay for a measurement."""


@dataclass(frozen=True)
class Wanted:
    """A measurement that an answer needs. pool: what pays for it; price: as rho, None for the pool's own."""

    kind: str
    rows: str
    features: tuple[Feature, ...]
    domains: tuple[Domain, ...] = ()
    pool: str = ""
    price: float | None = None
    argument: Feature | None = None
    bounds: Bounds | None = None
    reach: float = 1.0
    people: bool = False
    """Of rows: whether people are counted in each cell, not rows."""
    edges: tuple[int, ...] = ()
    """Of how many rows people have: up to how many they are counted together."""
    only: Feature | None = None
    """Of rows: the condition of those that are read; all others are left out."""
    whom: str = ""
    """The kind of people that it is of; a session says so."""

    @property
    def known_as(self) -> str:
        """What it is told from others by, among those of all kinds of people."""
        return f"{self.whom}: {self.name}" if self.whom else self.name

    @property
    def margin(self) -> Margin | None:
        """What is summed up for it over people, together with others; None of other measurements."""
        if self.rows or self.only is not None or self.kind in ("keys", "keyed", "rows", "magnitudes"):
            return None
        summed = (self.argument, self.bounds) if self.kind == "sums" else (None, None)
        return Margin(self.features, self.domains, *summed)

    @property
    def of_rows(self) -> OfRows | None:
        """What is summed up for it over rows, together with others; None of other measurements."""
        if not self.rows or self.people or self.kind not in ("counts", "sums"):
            return None
        counted = counted_beside("rows") if self.kind == "sums" else 0
        summed = (self.argument, self.bounds) if self.kind == "sums" else (None, None)
        return OfRows(self.rows, self.features, self.domains, self.only, self.reach, *summed, counted)

    @property
    def name(self) -> str:
        """What it is known by."""
        more = "" if self.only is None else f" where {self.only.name}"
        if self.argument is not None:
            more += f" of {self.argument.name}"
        if self.bounds is not None:
            more += f" between {self.bounds.low!r} and {self.bounds.high!r}"
        if self.rows:
            more += f", at most {self.reach!r} a person"
        if self.people:
            more += ", people"
        if self.edges:
            more += f", up to {' '.join(str(edge) for edge in self.edges)}"
        return name_of(self.kind, self.rows, [feature.name for feature in self.features], more)


@dataclass
class Session:
    """Everything that one answer is made of about people of one kind: the model of what is measured, and how more is
    measured. `of` is the same for people of another kind; what they were asked for is kept together.

    kinds: of people, by name; kind: the one that this is about. known: what was measured of all kinds. models: of each
    kind, what was made of the same measurements before. taken: what was measured for it. dry: measure nothing, and
    gather in `missing` what would be, with its price. fixed: measure nothing, as if nothing were left of the budget.
    """

    kinds: Mapping[str, People]
    kind: str
    ledger: Ledger
    noise: Noise
    version: int
    stamp: str
    known: list[Measurement]
    dry: bool = False
    models: dict[str, Model] = field(default_factory=dict)
    fixed: bool = False
    principal: str = NOBODY
    """Who pays."""
    of_share: bool = False
    """Whether it was the principal's share that did not pay for a measurement, and not what is left of the budget."""
    taken: list[Measurement] = field(default_factory=list)
    missing: list[tuple[Wanted, Wanted | None]] = field(default_factory=list)
    of_public: OfPublic | None = None
    """What public tables tell of their columns."""
    used: dict[str, Wanted] = field(default_factory=dict)
    """What was needed for the answer, by `known_as`."""
    ahead: Callable[[], Sequence[Wanted]] | None = None
    """What the answer will need besides, whatever is found: it is measured together with what is needed first."""
    certain: list[Wanted] = field(default_factory=list)
    """Of `missing`, what is paid for and needed whatever the others would find."""
    sure: bool = True
    """Whether nothing that was asked for since this was set depends on a measurement that was not taken."""
    _pretended_names: set[str] = field(default_factory=set)
    _model: Model | None = None
    _reading: Reading | None = None
    _others: "dict[str, Session]" = field(default_factory=dict)
    """What is asked of other kinds of people for the same answer, by kind; this one, too."""

    def __post_init__(self) -> None:
        self._others[self.kind] = self

    @property
    def people(self) -> People:
        """Whom it is about."""
        return self.kinds[self.kind]

    @property
    def catalog(self) -> Catalog:
        """Their tables, and the public ones."""
        return self.people.catalog

    @property
    def database(self) -> Database:
        """Views of these."""
        return self.people.database

    @property
    def prices(self) -> Prices:
        """Of their budget."""
        return self.people.prices

    def of(self, kind: str) -> "Session":
        """The same for people of another kind."""
        if kind not in self._others:
            replace(self, kind=kind, of_share=False, _pretended_names=set(), _model=None, _reading=None)
        return self._others[kind]

    def alone(self, **changes: Any) -> "Session":
        """The same, in which nothing was asked for yet. changes: of what else is another."""
        return replace(
            self, taken=[], missing=[], used={}, certain=[], _others={}, _model=None, _reading=None, **changes
        )

    @property
    def position(self) -> int:
        """How many measurements are known of, of all kinds."""
        return max(len(one.known) for one in self._others.values())

    def ask(self) -> None:
        """Note that what is asked for from now on depends on nothing before."""
        for one in self._others.values():
            one.sure = True

    def doubt(self) -> None:
        """Note that what follows, of whatever kind of people, depends on an answer that is not known yet."""
        for kind in self.kinds:
            self.of(kind).sure = False

    def close(self) -> None:
        """Close the database, if it was read: it stays open from one measurement to the next."""
        for one in self._others.values():
            if one._reading is not None:
                one._reading.con.close()
                one._reading = None

    @property
    def model(self) -> Model:
        """What is known of this version of the data."""
        position = (self.version, len(self.known))
        if self._model is None and not self._pretended_names:
            before = self.models.get(self.kind)
            self._model = before if before is not None and before.position == position else None
        if self._model is None:
            own = [one for one in self.people.told(self.known) if one.version == self.version]
            self._model = Model(own, position)
            if not (self.dry or self.fixed):
                self.models[self.kind] = self._model
        return self._model

    def paid(self, wanted: Wanted, before: Sequence[Measurement]) -> Wanted | None:
        """A measurement with what pays for it and its price; None where nothing does."""
        before = self.people.charged(before)
        left = left_of(self.catalog.policy, self.prices.total, before, self.principal)
        offer = self.prices.offer(wanted.pool, wanted.price, before, left)
        if offer is None:
            self.of_share = self.prices.offer(wanted.pool, wanted.price, before) is not None
        return None if offer is None else replace(wanted, pool=offer.pool, price=offer.price)

    def has(self, wanted: Wanted) -> bool:
        """Whether it was measured before."""
        domains = None if wanted.kind in ("keys", "keyed", "rows", "magnitudes") else wanted.domains
        return bool(self.model.found(wanted.name, domains))

    def ensure(self, *several: Wanted, required: bool = True) -> bool:
        """Measure what was not measured yet, as far as the budget pays for it; whether all is there now. required:
        raises Spent where it does not."""
        wanted_here = [replace(wanted, whom=self.kind) for wanted in several]
        self.used.update({wanted.known_as: wanted for wanted in wanted_here})
        missing = [wanted for wanted in wanted_here if not self.has(wanted)]
        if not missing:
            return True
        if self.dry:
            # What follows goes on as if it had been measured, and found nothing.
            for wanted in missing:
                paid = self.paid(wanted, self.known)
                self.missing.append((wanted, paid))
                self.sure = self.sure and paid is not None
                if self.sure:
                    self.certain.append(wanted)
                self._pretended_names.add(wanted.name)
                self.known = [*self.known, self._pretended(paid or replace(wanted, price=0.0))]
            self._model = None
            return True
        if self.fixed:
            if required:
                raise Spent
            return False
        self._take(missing)
        complete = all(self.has(wanted) for wanted in missing)
        if required and not complete:
            raise Spent
        return complete

    def relies_on(self, name: str) -> None:
        """Note that what follows depends on what a measurement has found."""
        self.sure = self.sure and name not in self._pretended_names

    def repeat(self, several: Sequence[Wanted]) -> None:
        """Measure again what was measured before, as far as the budget pays for it."""
        self._take(several, again=True)

    def _take(self, several: Sequence[Wanted], *, again: bool = False) -> None:
        """Take measurements that the budget pays for, and what is needed soon together with them."""
        if self.ahead is not None and not again:
            # Each time, as what was found before may be what others waited for.
            soon = [wanted for wanted in self.ahead() if wanted.whom == self.kind]
            several = list({wanted.name: wanted for wanted in (*soon, *several)}.values())
        with ExitStack() as stack:
            writing = stack.enter_context(self.ledger.measuring())
            self.known, self._model = writing.known, None
            missing = [wanted for wanted in several if again or not self.has(wanted)]
            affordable = []
            before: list[Measurement] = list(self.known)
            for wanted in missing:
                paid = self.paid(wanted, before)
                if paid is not None:
                    affordable.append(paid)
                    before.append(_placeholder(paid, self.kind, self.principal))
            if affordable:
                self._check_unchanged()
                with self.database.told():
                    for some in _together(affordable):
                        margins = [one.margin for one in some if one.margin is not None]
                        rows = [one.of_rows for one in some if one.of_rows is not None]
                        self._read(lambda reading, of=margins: reading.together(of))  # type: ignore[misc]
                        self._read(lambda reading, of=rows: reading.rows_together(of))  # type: ignore[misc]
                        for wanted in some:
                            taken = self._read(lambda reading, of=wanted: self._taken(of, reading, writing))  # type: ignore[misc]
                            self.taken.append(taken)
                self._check_unchanged()
            self.known, self._model = writing.known, None

    def _read(self, read: Callable[[Reading], _T]) -> _T:
        """Read within the policy's memory. Where that is not enough, with all there is: it would tell of people whether
        it was. Nothing is drawn or written before all is read."""
        try:
            self._reading = self._reading or self.database.open(self._memory)
            return read(self._reading)
        except duckdb.OutOfMemoryException:
            self.close()
            self._reading = self.database.open()
            return read(self._reading)

    @property
    def _memory(self) -> str:
        """What the engine takes at most: the rest of the policy's memory is for what is beside it."""
        return f"{int(_OF_MEMORY * bytes_of(self.catalog.policy.limits.memory))}B"

    def constant(self, name: str) -> list[Value] | None:
        """The values of an answer that is a constant of other questions, None where it was not asked for yet."""
        for one in self.known:
            if one.kind == "constant" and one.name == name and one.version == self.version:
                return [*valued(one.about["values"])]
        return None

    def keep_constant(self, name: str, compute: "Callable[[Session], list[Value]]") -> list[Value]:
        """Write an answer down that is a constant of other questions. It is computed from what is in the ledger before
        it: whoever has that can compute it again."""
        if self.fixed:
            raise Spent
        with self.ledger.measuring() as writing:
            self.known, self._model = writing.known, None
            kept = self.constant(name)
            if kept is None:
                kept = compute(self.alone(known=[*writing.known], fixed=True))
                about = {"pool": RESERVE, "rows": "", "features": [], "reach": 0.0, "values": plain(kept)}
                empty = np.zeros(0, dtype=np.int64)
                writing.add(Measurement("constant", name, 0.0, 0.0, 0.0, (), empty, about, self.version))
            self.known, self._model = writing.known, None
        return kept

    def _pretended(self, wanted: Wanted) -> Measurement:
        """A measurement that found nothing."""
        domains, shape = wanted.domains, tuple(domain.size for domain in wanted.domains)
        if wanted.kind in ("keys", "keyed"):
            (feature,) = wanted.features[:1]
            domains = (Domain((), TYPES.get(feature.kind, "VARCHAR"), True, True, feature.may_be_absent),)
            shape = (0, 2) if wanted.kind == "keyed" else (0,)
        elif wanted.kind == "sums":
            shape = (*shape, 2)
        elif wanted.kind == "bins":
            assert wanted.argument is not None
            assert wanted.bounds is not None
            shape = (*shape, Bins.of(wanted.argument, wanted.bounds).size)
        elif wanted.kind in ("rows", "magnitudes"):
            shape = (len(wanted.edges) + 1,) if wanted.kind == "rows" else (2, POWERS)
        numbers = np.zeros(shape, dtype=np.int64)
        counted = (
            counted_beside("keyed") if wanted.kind == "keyed" else counted_beside("rows" if wanted.rows else "people")
        )
        return self._made(wanted, numbers, 1.0, wanted.price or 0.0, 0.0, domains, counted)

    def _check_unchanged(self) -> None:
        if self.database.stamp() != self.stamp:
            raise DataChanged(CHANGED)

    def _taken(self, wanted: Wanted, reading: Reading, writing: Writing) -> Measurement:
        assert wanted.price is not None
        rho = wanted.price
        if wanted.kind in ("keys", "keyed"):
            return writing.add(self._keys(wanted, reading, rho, writing.known))
        counted, reach = 0, wanted.reach * (GRANULES if wanted.rows else 1)
        rows = wanted.rows or None
        if wanted.kind == "sums":
            assert wanted.argument is not None
            assert wanted.bounds is not None
            counted = counted_beside("rows" if wanted.rows else "people")
            reach = wanted.reach * math.hypot(FINE, counted)
            of = (wanted.argument, wanted.bounds)
            exact = reading.sums(rows, wanted.features, wanted.domains, *of, wanted.reach, counted, only=wanted.only)
        elif wanted.kind == "bins":
            assert wanted.argument is not None
            assert wanted.bounds is not None
            of_value = Bins.of(wanted.argument, wanted.bounds)
            reach *= of_value.length
            exact = bins.read(reading, rows, wanted.features, wanted.domains, wanted.argument, of_value, wanted.reach)
        elif wanted.kind == "rows":
            exact, reach = reading.rows_a_person(wanted.rows, wanted.edges, wanted.only), 1.0
        elif wanted.kind == "magnitudes":
            assert wanted.argument is not None
            exact = reading.magnitudes(rows, wanted.argument, wanted.reach)
        else:
            exact = reading.count(
                rows, wanted.features, wanted.domains, wanted.reach, people=wanted.people, only=wanted.only
            )
        sd = noise_for(_safe(reach), rho)
        numbers = exact + self.noise(exact.size, sd).reshape(exact.shape)
        return writing.add(self._made(wanted, numbers, sd, charge(_safe(reach), sd), 0.0, wanted.domains, counted))

    def _keys(self, wanted: Wanted, reading: Reading, rho: float, before: Sequence[Measurement]) -> Measurement:
        """Find values: those that noisy numbers of people show. A value that only one person has is shown with a
        probability that is that person's share of delta; values of one person are not even looked at."""
        (feature,) = wanted.features
        delta = self.prices.delta_of_next(self.people.charged(before))
        if wanted.kind == "keyed":
            assert wanted.argument is not None
            assert wanted.bounds is not None
            unit = counted = counted_beside("keyed")
            found = reading.keyed(wanted.rows, feature, wanted.argument, wanted.bounds, wanted.reach, counted)
            reach = wanted.reach * math.hypot(FINE, counted)
        else:
            unit, counted = GRANULES if wanted.rows else 1, 0
            found = reading.values(wanted.rows or None, feature, wanted.reach)
            reach = wanted.reach * unit
        sd = noise_for(_safe(reach), rho)
        noisy = found.counts + self.noise(found.counts.size, sd).reshape(found.counts.shape)
        least = least_shown(self.catalog.policy.k, unit, sd, delta, rows=bool(wanted.rows))
        shown = np.flatnonzero((noisy if noisy.ndim == 1 else noisy[:, 1]) >= least)
        domain = Domain(tuple(found.values[at] for at in shown), found.type, True, True, feature.may_be_absent)
        return self._made(wanted, noisy[shown], sd, charge(_safe(reach), sd), delta, (domain,), counted)

    def _made(
        self,
        wanted: Wanted,
        numbers: NDArray[np.int64],
        sd: float,
        rho: float,
        delta: float,
        domains: tuple[Domain, ...],
        counted: int,
    ) -> Measurement:
        about: dict[str, Any] = {
            "features": [feature.name for feature in wanted.features],
            "rows": wanted.rows,
            "pool": wanted.pool,
            "reach": wanted.reach,
            "whom": self.kind,
        }
        if self.principal != NOBODY:
            about["principal"] = self.principal
        if wanted.edges:
            about["edges"] = list(wanted.edges)
        if wanted.bounds is not None:
            about |= {"bounds": [wanted.bounds.low, wanted.bounds.high], "counted": counted}
        return Measurement(wanted.kind, wanted.name, rho, delta, sd, domains, numbers, about, self.version)

    # What is found out before anything is counted

    def domain(self, feature: Feature, rows: str) -> Domain:
        """The classes of a feature: declared, public, or found."""
        known = declared(feature, self.catalog) or self.public(feature) or self.range(feature, rows)
        if known is not None:
            return known
        found = self.found(feature, rows)
        if found is None:
            self.ensure(self.keys(feature, rows))
            found = self.found(feature, rows)
        assert found is not None
        return found.domains[0]

    def range(self, feature: Feature, rows: str) -> Domain | None:
        """The classes of whole numbers of which nothing is declared: all between the ends that noisy counts show. None
        of other features, and where there are too many."""
        if feature.kind != "integer" or self._is_key(feature) or declared(feature, self.catalog) is not None:
            return None
        if isinstance(feature.expr, Op) and feature.expr.name == "date_part":
            return None  # years are few, and far from 0
        try:
            ends = self.bounds(feature, rows, None, f"{rows} keys" if rows else "keys")
        except TooFew:
            return None
        if ends.high - ends.low > SPAN:
            return None
        low, high = int(ends.low), int(ends.high)
        width = max(-(-(high - low) // _BINS), 1)
        wanted = self.spread(feature, rows, low, high, width)
        self.ensure(wanted)
        self.relies_on(wanted.name)
        counts = self.model.mean(wanted.name, wanted.domains)
        assert counts is not None
        bins = len(wanted.domains[0].values)
        first, last = _support(counts.values[:bins], math.sqrt(float(counts.variance[0])))
        source = source_of(feature.expr, self.catalog)
        type_ = source.type if source is not None else "BIGINT"
        return between(low + first * width, low + (last + 1) * width - 1, feature, type_)

    def spread(self, feature: Feature, rows: str, low: int, high: int, width: int) -> Wanted:
        """The measurement that shows where the values of a feature end: counts in bins of some values each."""
        distance = Op("-", (feature.expr, Literal(low, "integer")), "number")
        place = Op("floor", (Op("/", (distance, Literal(width, "integer")), "number"),), "number")
        bins = tuple(str(at) for at in range((high - low) // width + 1))
        reach = float(self.rows_a_person(rows)) if rows else 1.0
        return Wanted(
            "spread",
            rows,
            (replace(feature, expr=place),),
            (Domain(bins, "DOUBLE", null=True, other=True, absent=feature.may_be_absent),),
            f"{rows} keys" if rows else "keys",
            reach=reach,
        )

    def _is_key(self, feature: Feature) -> bool:
        """Whether a feature is what names the rows of a person: its numbers are names."""
        source = source_of(feature.expr, self.catalog)
        return source is not None and self.catalog.unique(source.table) == source.column

    def found(self, feature: Feature, rows: str) -> Measurement | None:
        """The measurement that found the values of a feature, if it was taken."""
        for one in self.model.measurements:
            about = one.about
            if one.kind in ("keys", "keyed") and about["rows"] == rows and about["features"] == [feature.name]:
                self.relies_on(one.name)
                return one
        return None

    def keys(self, feature: Feature, rows: str) -> Wanted:
        """The measurement that finds the values of a feature."""
        assert feature.kind != "other", "equal values may be written otherwise, and how is one person's"
        reach = math.sqrt(self.rows_a_person(rows, "distinct")) if rows else 1.0
        return Wanted("keys", rows, (feature,), pool=f"{rows} keys" if rows else "keys", reach=reach)

    def public(self, feature: Feature) -> Domain | None:
        """The classes that public tables tell: those of a column of theirs, and of a column that looks rows of theirs
        up by their key. Not of a column that names the rows of a person, such as an item: those that enough people have
        are found, as nobody has most of them."""
        if self.of_public is None:
            return None
        known = self.of_public.domain(feature)
        source = source_of(feature.expr, self.catalog)
        if known is not None or source is None or not source.table.protected or self._is_key(feature):
            return known
        key = self.catalog.key_looked_up(source.table, source.column)
        domain = self.of_public.domain(Feature(key)) if key is not None else None
        if domain is None:
            return None
        return Domain(domain.values, source.type, null=True, other=True, absent=feature.may_be_absent)

    def rows_a_person(self, rows: str, counted: Counted = "rows", only: Feature | None = None) -> int:
        """How many rows of a person are counted in full: as the policy says, or found. only: of the rows for which it
        is true, of which people have less."""
        info = self.catalog.table(rows)
        assert info is not None
        most = info.policy.rows_per_person
        if most is not None and (only is None or most <= _DOUBLES[1]):
            return most
        wanted = self.activity(rows, only)
        if not self.ensure(wanted, required=most is None) and most is not None:
            return most
        self.relies_on(wanted.name)
        counts = self.model.mean(wanted.name)
        assert counts is not None
        above = np.cumsum(counts.values[::-1])[::-1]
        # Where noise could be all there is, it is taken for nobody: few people are in what is asked.
        noise = 0.0 if only is None else math.sqrt(float(counts.variance[0]))
        hidden = 2 * noise * np.sqrt(np.arange(len(above) - 1, 0, -1))
        few = np.flatnonzero(above[1:] <= np.maximum(_ABOVE[counted] * max(above[0], 1.0), hidden))
        found = wanted.edges[int(few[0]) if len(few) else -1]
        return found if most is None else min(found, most)

    def activity(self, rows: str, only: Feature | None = None) -> Wanted:
        """The measurement of how many rows people have: as many or fewer than each edge, and more than the one before.
        A declared number of rows is an edge, too. only: of the rows for which it is true."""
        info = self.catalog.table(rows)
        most = info.policy.rows_per_person if info is not None else None
        edges = _DOUBLES if most is None else tuple(sorted({*_DOUBLES, most}))
        return Wanted("rows", rows, (), pool=RESERVE, edges=edges, only=only)

    def bounds(
        self, argument: Feature, rows: str, declared_bounds: tuple[float, float] | None, pool: str = RESERVE
    ) -> Bounds:
        """Between what a value is cut off: as the policy says, or found. Raises TooFew where noise hides all who have
        one."""
        if declared_bounds is not None:
            return Bounds(*(float(bound) for bound in declared_bounds))
        reach = float(self.rows_a_person(rows)) if rows else 1.0
        wanted = Wanted("magnitudes", rows, (), pool=pool, argument=argument, reach=reach)
        self.ensure(wanted)
        self.relies_on(wanted.name)
        counts = self.model.mean(wanted.name, unit=GRANULES if rows else 1.0)
        assert counts is not None
        sd = math.sqrt(float(counts.variance.flat[0]))
        # Among 384 cells, noise alone passes four deviations once in eighty ledgers. Where there is little noise, it
        # is not worth that everybody's sums are coarser for a few people with other values than all others.
        least = max(4 * sd, _FEW_HAVE)
        minus, plus = (np.flatnonzero(part >= least) for part in (counts.values[1], counts.values[0]))
        if not len(minus) and not len(plus):
            if self.dry:
                return Bounds(0.0, 1.0)
            raise TooFew
        low = -_size(int(minus[-1]) + 1) if len(minus) else _size(int(plus[0])) if plus[0] > 0 else 0.0
        high = _size(int(plus[-1]) + 1) if len(plus) else -_size(int(minus[0])) if minus[0] > 0 else 0.0
        return Bounds(low, high)

    def reach(
        self, rows: str, features: Sequence[Feature], only: Feature | None = None, *, people: bool = False
    ) -> float:
        """What one person moves at most, where rows are counted by these features. only: of the rows for which it is
        true. people: where a person counts once in each cell."""
        counted: Counted = "people" if people else "distinct" if self.is_distinct(rows, features) else "rows"
        return reach_of(self.rows_a_person(rows, counted, only), distinct=counted != "rows")

    def is_distinct(self, rows: str, features: Sequence[Feature]) -> bool:
        """Whether each row of a person is in a cell of its own, by features one of which names the row."""
        info = self.catalog.table(rows)
        assert info is not None
        unique = self.catalog.unique(info)
        return any(
            isinstance(feature.expr, Bound) and feature.expr.table == info.name and feature.expr.column == unique
            for feature in features
        )


def _together(several: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    """Measurements in their order, as many at once as are summed up in one pass."""
    some: list[Wanted] = []
    margins: list[Margin] = []
    for wanted in several:
        own = [wanted.margin] if wanted.margin is not None else []
        if some and own and len(list(passes([*margins, *own]))) > 1:
            yield some
            some, margins = [], []
        some.append(wanted)
        margins += own
    if some:
        yield some


def counted_beside(of: str) -> int:
    """Granules for each count beside a sum; of: people, rows, or keyed."""
    return round(FINE * math.sqrt(_OF_COUNTS[of]))


def least_shown(k: int, unit: int, sd: float, delta: float, *, rows: bool) -> float:
    """From which noisy count on a value is shown that no policy lists. unit: of one person in it. delta: with what
    probability one may be shown that only one person has; rows: who may speak for many of them."""
    spoken = CELLS_A_PERSON if rows else 1
    # A value that one person decides about is one of two people: it passes by noise alone, if it does.
    # Whole numbers pass a bound as often as the normal distribution passes one less, at most.
    return max(k * unit, 2 * unit + tail(delta / spoken) * sd + 1)


CHANGED = (
    "the database was changed since this ledger began with it. What was measured before is still answered; for "
    "anything else, the owner begins the next version of the data: kgather ledger next."
)


_ENDS = {
    f"{sign}{name}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64), ("HUGEINT", 128))
    for sign in ("", "U")
}
"""The smallest and the largest number of each of DuckDB's types of whole numbers."""


def between(low: int, high: int, feature: Feature, type_: str) -> Domain:
    """All whole numbers from one to another as classes, as far as the type has them; BIGINT in place of other types."""
    type_ = type_ if type_ in _ENDS else "BIGINT"
    least, most = _ENDS[type_]
    values = tuple(str(number) for number in range(max(low, least), min(high, most) + 1))
    return Domain(values, type_, null=True, other=True, absent=feature.may_be_absent)


def _support(counts: NDArray[np.float64], sd: float) -> tuple[int, int]:
    """The first and the last place of counts beyond which there is no more than noise."""
    ends = []
    for tail_of in (counts, counts[::-1]):
        beyond = np.cumsum(tail_of)
        noise = 2 * sd * np.sqrt(np.arange(1, len(counts) + 1))
        above = np.flatnonzero(beyond > noise)
        ends.append(int(above[0]) if len(above) else len(counts) // 2)
    first, last = ends[0], len(counts) - 1 - ends[1]
    return (first, last) if first <= last else (0, len(counts) - 1)


def _safe(reach: float) -> float:
    """A reach with room for the rounding of weights."""
    return reach * (1 + 1e-9)


def _size(step: int) -> float:
    return 2.0 ** (step - 64) if step > 0 else 0.0


def _placeholder(paid: Wanted, kind: str, principal: str) -> Measurement:
    about: Mapping[str, Any] = {"pool": paid.pool, "principal": principal, "whom": kind}
    return Measurement(paid.kind, paid.name, paid.price or 0.0, 0.0, 1.0, (), np.zeros(0, dtype=np.int64), about)
