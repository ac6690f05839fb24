"""The guard: answers an analyst's SQL about groups of people, or refuses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa

from kgather._errors import InputError
from kgather._guard import exact
from kgather._guard.apart import Apart
from kgather._guard.atoms_engine import AtomsEngine
from kgather._guard.audit_log import AuditLog, Entry
from kgather._guard.catalog import Catalog
from kgather._guard.deadline import Deadline
from kgather._guard.describe import Shapes
from kgather._guard.engine import Engine
from kgather._guard.json_calls import typed
from kgather._guard.measured.engine import MeasuredEngine
from kgather._guard.measured.kinds import named
from kgather._guard.measured.noise import Noise, discrete_gaussian
from kgather._guard.notes import beside, notes
from kgather._guard.plan import Local, Plan, Value
from kgather._guard.planner import plan
from kgather._guard.policy import Limits, Policy, load_policy
from kgather._guard.refused import SYNTAX, Refused, Rule
from kgather._guard.render import explain
from kgather._guard.statement import split
from kgather._guard.warm import compile_kernels

Parameters = Sequence[Value] | Mapping[str, Value]
Errors = bool | Literal["columns"]

WARNING = b"kgather_warning"
"""The key of a schema's metadata that holds what an answer does not protect against, as UTF-8."""

NEARLY_SPENT = 0.8
"""The part of the budget from which on answers warn that it is nearly spent."""
_PLANS = 1_024  # statements whose plans are kept in memory


@dataclass(frozen=True)
class Answer:
    """A protected result.

    errors: of each GROUP BY over protected rows, by the name that `explain` gives it, the keys of its groups and how
    far off what is told of them may be. In mode measured that is the standard error of each number and how it came
    about; in others the share of what each group covers that may belong elsewhere or be missing. notes: how the answer
    came about, in mode measured a sentence for each of these GROUP BYs with the largest standard error; none of an
    answer that nobody is in.
    """

    table: pa.Table
    errors: Mapping[str, pa.Table] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warning: str | None = None
    """In mode exact, what the answer does not protect against; also under WARNING in the metadata of the schema."""
    cost: float | None = None
    """What was measured for the answer, as rho, of people of all kinds; 0 where all was measured before, None in modes
    without a budget."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """The same by kind of people, of the kinds that something was measured of."""
    spending: "Spending | None" = None
    """What is spent of the budget now; None in modes without one."""
    of_share: float | None = None
    """The part that is spent now of what who asks may spend; None where the policy declares no shares. Of several kinds
    of people, of that of which the largest part is spent."""
    labels: tuple[str, ...] = ()
    """The names that PostgreSQL gives to the columns of the statement; none of what is no SELECT."""


@dataclass(frozen=True)
class Spending:
    """What was spent of the budget of a ledger, and what it is in all: rho of zero-concentrated differential privacy.
    measurements: how many that was spent on. Where there are several kinds of people, each has a budget of its own, and
    these are the sums."""

    spent: float
    total: float
    measurements: int
    by: Mapping[str, float] = field(default_factory=dict)
    """Of it, by principal; under "" what is nobody's, as the ledger began with it."""
    most: Mapping[str, float] = field(default_factory=dict)
    """What each principal may spend in all, as rho, where the policy declares shares; those without one together."""
    left: Mapping[str, float] = field(default_factory=dict)
    """Of that, what is left."""
    kinds: "Mapping[str, Spending]" = field(default_factory=dict)
    """Of people of each kind, by its name, where there are several."""

    @property
    def share(self) -> float:
        """The part of the budget that is spent; of several kinds of people, of that of which the largest part is."""
        return max((one.share for one in self.kinds.values()), default=self.spent / self.total)

    def share_of(self, principal: str) -> float | None:
        """The part that is spent of what a principal may spend, None where that is not bounded; of several kinds as
        `share`."""
        if self.kinds:
            return max(
                (part for one in self.kinds.values() if (part := one.share_of(principal)) is not None), default=None
            )
        most = self.most.get(principal)
        return None if most is None else 1.0 - self.left[principal] / most if most > 0 else 1.0

    @classmethod
    def together(cls, kinds: "Mapping[str, Spending]", measurements: int) -> "Spending":
        """That of people of several kinds. measurements: how many there were of all."""
        of = [*kinds.values()]
        by, most, left = (_summed(parts) for parts in zip(*((one.by, one.most, one.left) for one in of), strict=True))
        return cls(
            sum(one.spent for one in of), sum(one.total for one in of), measurements, by, most, left, dict(kinds)
        )


def _summed(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        name: sum(one.get(name, 0.0) for one in parts) for name in dict.fromkeys(key for one in parts for key in one)
    }


class Guard:
    """Answers queries under a policy. Safe to share among threads; processes share the ledger."""

    def __init__(self, policy: Policy, folder: Path, *, noise: Noise = discrete_gaussian, prepare: bool = True) -> None:
        """Open the database and the ledger that the policy names, relative to `folder`. noise: of mode measured.
        prepare: whether a ledger begins with what the policy says is measured first.

        Raises InputError where one of them is not as the policy says.
        """
        self.policy = policy
        self.engine: Engine = (
            MeasuredEngine(policy, folder, noise) if policy.mode == "measured" else AtomsEngine(policy, folder)
        )
        if prepare and isinstance(self.engine, MeasuredEngine):
            self.engine.prepare()
        self._log = AuditLog(folder / policy.audit_log) if policy.audit_log is not None else None
        self._plans: dict[tuple[object, ...], Plan | Local] = {}
        self._plans_of = self.catalog
        self._apart = Apart()
        self._shapes, self._shapes_of = Shapes.of(self.catalog), self.catalog

    @classmethod
    def from_policy(cls, path: str | Path, *, prepare: bool = True) -> "Guard":
        """Open the guard of a policy file. prepare: as of the class. Raises InputError naming file and line where it is
        wrong."""
        return cls(load_policy(Path(path)), Path(path).resolve().parent, prepare=prepare)

    @property
    def catalog(self) -> Catalog:
        """What names mean."""
        return self.engine.catalog

    @property
    def atoms(self) -> dict[str, int]:
        """How many atoms there are, by universe; none in mode measured."""
        return self.engine.atoms if isinstance(self.engine, AtomsEngine) else {}

    def look(self) -> None:
        """Read the ledger, without waiting for what is being measured. Raises InputError where that does not work."""
        if isinstance(self.engine, MeasuredEngine):
            self.engine.ledger.look()
        else:
            _ = self.atoms

    @property
    def spending(self) -> Spending | None:
        """What was spent of the budget; None in modes without one. Raises InputError where there is no ledger."""
        if not isinstance(self.engine, MeasuredEngine):
            return None
        measurements = self.engine.ledger.measurements()
        kinds = {}
        for kind, people in self.engine.kinds.items():
            found = self.engine.spenders(people, measurements)
            kinds[kind] = Spending(
                sum(one.spent for one in found),
                people.prices.total,
                len(people.charged(measurements)),
                {one.principal: one.spent for one in found if one.spent},
                {one.principal: one.most for one in found if one.most is not None},
                {one.principal: one.left for one in found if one.left is not None},
            )
        return next(iter(kinds.values())) if len(kinds) == 1 else Spending.together(kinds, len(measurements))

    @property
    def buys(self) -> tuple[str, ...]:
        """Sentences that say what the budget buys: how many margins at what standard error, and from how many people on
        groups are shown. None in modes without a budget."""
        return self.engine.buys if isinstance(self.engine, MeasuredEngine) else ()

    @property
    def begun(self) -> bool:
        """Whether this guard has begun its ledger; False in modes without a budget."""
        return isinstance(self.engine, MeasuredEngine) and self.engine.begun

    def explain(
        self, sql: str, *, principal: str | None = None, parameters: Parameters = (), cost: bool = False
    ) -> str:
        """What would be asked, as SQL to read. Touches no data. cost: with what it would cost of the budget. Raises
        Refused where the text is refused."""
        made = self._plan(sql, self._principal(principal), parameters)
        if isinstance(made, Local):
            return f"-- answered without the database: {made.tag}"
        told = explain(made, self.catalog.unit)
        return f"{told}\n\n{self._cost(made, self._principal(principal))}" if cost else told

    def workload(self, text: str) -> tuple[str, ...]:
        """What the statements of a text, with ; between them, would measure, what that costs, and with what standard
        errors, as lines. Touches no data and charges nothing. Raises InputError where the text holds no statement, and
        in modes without a budget."""
        if not isinstance(self.engine, MeasuredEngine):
            msg = f"the policy has mode {self.policy.mode}, which has no budget; this is for mode measured."
            raise InputError(msg)
        from kgather._guard.measured import workload

        statements = split(text)
        if not statements:
            msg = "there is no statement in it. Write SELECT statements with ; between them."
            raise InputError(msg)
        return tuple(workload.lines(workload.workload(self.engine, statements), len(statements)))

    def _cost(self, made: Plan, principal: str) -> str:
        if not isinstance(self.engine, MeasuredEngine):
            return f"-- mode {self.policy.mode} has no budget"
        return self.engine.told_cost(made, principal)

    def describe(
        self, sql: str, parameters: Parameters = (), *, principal: str | None = None, labels: bool = False
    ) -> pa.Schema:
        """The columns that the answer to a statement has. Touches no data. parameters: values, or what stands for them
        (`describe.neutral`). labels: named as PostgreSQL names them. Raises Refused where the text is refused.
        """
        made = self._plan(sql, self._principal(principal), parameters)
        if self.catalog is not self._shapes_of:
            self._shapes, self._shapes_of = Shapes.of(self.catalog), self.catalog
        schema = typed(self._shapes.schema(made, self.catalog.unit), made.json)
        if not (labels and made.labels):
            return schema
        return pa.schema([one.with_name(name) for one, name in zip(schema, made.labels, strict=True)])

    def query(self, sql: str, *, principal: str | None = None, parameters: Parameters = ()) -> pa.Table:
        """Answer a query.

        Raises Refused: static where the text is refused, otherwise with the one message for too few people.
        """
        return self.answer(sql, principal=principal, parameters=parameters).table

    def answer(
        self,
        sql: str,
        *,
        principal: str | None = None,
        parameters: Parameters = (),
        errors: Errors = False,
        client: str | None = None,
    ) -> "Answer":
        """Answer a query and say, with `errors`, how far off it may be.

        client: the address of who asks, for the audit log.
        errors: "columns": in mode measured, also in columns of the table. Beside each column that is an aggregate as it
        is stand `<name>_error`, its standard error, and `<name>_kind`: measured, modelled or estimated. Raises as
        `query`, and InputError for columns in another mode.
        """
        if errors == "columns" and self.policy.mode != "measured":
            msg = (
                f"Mode {self.policy.mode} has no standard errors to put into columns. Ask with errors=True (kgather "
                "query --errors): that says what there is."
            )
            raise InputError(msg)
        who = self._principal(principal)
        entry = Entry(who, sql, parameters, client=client)
        entry.trace.principal = who
        try:
            answer = self._answer(entry, errors)
        except Refused as refusal:
            self._logged(entry, refusal)
            raise
        self._logged(entry)
        return answer

    def _answer(self, entry: Entry, errors: Errors) -> "Answer":
        made = self._plan(entry.text, entry.principal, entry.parameters, errors=errors == "columns", today=entry.today)
        limits = self.policy.limits_of(entry.principal)
        if isinstance(made, Local):
            return Answer(_typed(self._local(made, limits), made), labels=made.labels)
        if isinstance(self.engine, AtomsEngine):
            compile_kernels()  # before the clock starts
        with Deadline(limits.time_ms) as deadline:
            decided = self.engine.decide(made, deadline, entry.trace, errors=bool(errors))
        with Deadline(limits.time_ms) as deadline:
            blocks = decided.tables
            if errors == "columns":
                blocks = {name: beside(table, decided.errors[name]) for name, table in blocks.items()}
            relations = {**self.engine.public(made, deadline), **blocks}
            table = self._apart.run(made.sql, relations, limits.memory, deadline)
        # What is asked for beside an answer does not change the answer that the audit log knows.
        entry.answer = table.select(range(len(made.names)))
        told, spending = notes(self.policy.mode, decided), self.spending if decided.tables else None
        if spending is not None:
            told = (*told, *_nearly_spent(spending, entry.principal))
        return Answer(
            _with(decided.warning, _in_order(_typed(table, made), made)),
            decided.errors,
            told,
            decided.warning,
            None if spending is None else entry.trace.cost,
            {} if spending is None else entry.trace.costs,
            spending,
            None if spending is None else spending.share_of(entry.principal),
            made.labels,
        )

    def _local(self, made: Local, limits: Limits) -> pa.Table:
        if made.sql is None:
            return pa.table({name: [row[at] for row in made.rows] for at, name in enumerate(made.names)})
        try:
            with Deadline(limits.time_ms) as deadline:
                return self._apart.run(made.sql, {}, limits.memory, deadline)
        except Refused as refusal:
            if refusal.rule is not Rule.TOO_FEW:
                raise
            # There is nobody in it: it is the statement itself that cannot be computed.
            told = "The statement's values cannot be computed."
            raise Refused(told, code=SYNTAX, rule=Rule.STATEMENT) from None

    def _logged(self, entry: Entry, refusal: Refused | None = None) -> None:
        if self._log is not None:
            self._log.record(entry, refusal)

    def _principal(self, name: str | None) -> str:
        """The principal of that name, or the only one there is."""
        if name is None and len(self.policy.principals) == 1:
            return next(iter(self.policy.principals))
        self.policy.principal(name or "")
        return name or ""

    def _plan(
        self,
        sql: str,
        principal: str,
        parameters: Parameters,
        *,
        errors: bool = False,
        today: date | None = None,
    ) -> Plan | Local:
        today = today or datetime.now(UTC).date()
        limits = self.policy.limits_of(principal)
        catalog = self.catalog
        if parameters:
            return self._planned(sql, catalog, parameters, limits, errors=errors, today=today)
        named = (sql, limits, errors, today)
        if catalog is not self._plans_of:
            self._plans, self._plans_of = {}, catalog
        known = self._plans.get(named)
        if known is not None:
            return known
        made = self._planned(sql, catalog, parameters, limits, errors=errors, today=today)
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        self._plans[named] = made
        return made

    def _planned(
        self, sql: str, catalog: Catalog, parameters: Parameters, limits: Limits, *, errors: bool, today: date
    ) -> Plan | Local:
        try:
            made = plan(sql, catalog, parameters, limits, errors=errors, today=today)
        except (ArithmeticError, ValueError, duckdb.Error):
            # A number or text that nothing can hold; what it is called inside is not for the analyst.
            told = "The statement holds a value that is out of range, or a text that cannot be read."
            raise Refused(told, code=SYNTAX, rule=Rule.STATEMENT) from None
        if self.policy.mode == "exact" and isinstance(made, Plan):
            exact.check(made, catalog)
        return made


def _nearly_spent(spending: Spending, principal: str) -> Iterator[str]:
    """Warnings of a budget, or of a share of it, that is nearly spent."""
    for kind, one in (spending.kinds or {"": spending}).items():
        of = f" of {named(kind)}" if spending.kinds else ""
        parts = {f"the budget{of}": one.share, f"your share of the budget{of}": one.share_of(principal)}
        for what, part in parts.items():
            if part is not None and part >= NEARLY_SPENT:
                yield f"{part:.0%} of {what} is spent: soon new questions get estimates, or nothing."


def _with(warning: str | None, table: pa.Table) -> pa.Table:
    """A result with its warning in the schema."""
    return table if warning is None else table.replace_schema_metadata({WARNING: warning.encode()})


def _typed(table: pa.Table, made: Plan | Local) -> pa.Table:
    """The table with columns of JSON marked."""
    return table.cast(typed(table.schema, made.json)) if made.json else table


def _in_order(table: pa.Table, made: Plan) -> pa.Table:
    """The columns of a result with errors and kinds, which stand behind all others, beside what they are of."""
    places: list[int] = []
    for at in range(len(made.names)):
        places.append(at)
        if at in made.with_errors:
            first = len(made.names) + 2 * made.with_errors.index(at)
            places += [first, first + 1]
    return table.select(places)
