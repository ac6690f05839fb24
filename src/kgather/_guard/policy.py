"""The policy of the guard: a YAML file that says what each table holds and what may be asked of it."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from kgather._errors import InputError
from kgather._guard.addresses import beside
from kgather._guard.policy_errors import AtError, Where, Written, near, sentences

Mode = Literal["measured", "exact", "generalized"]
Grain = Literal["unit", "rows"]
Truncation = Literal["day", "week", "month", "quarter", "year", "decade", "century"]

TRUNCATIONS: tuple[str, ...] = ("day", "week", "month", "quarter", "year", "decade", "century")
"""What dates are coarsened to, the finest first. Weeks fit into none of the coarser ones."""

ONE_TABLE = "mode exact answers about one protected table with one row a person, or a fact could be reached two ways"
"""Why mode exact refuses other policies."""

NOTHING_TO_GATHER = (
    "mode generalized gathers people by their artifacts in tables with one row a person, and there are none; list some "
    "under artifacts, or use mode measured"
)
"""Why mode generalized refuses other policies."""

_SUMS = ("COUNT", "COUNT_DISTINCT", "SUM", "AVG", "STDDEV", "VAR", "COVAR", "CORR")
TYPES = re.compile(r"(BIGINT|INTEGER|DOUBLE|VARCHAR|BOOLEAN|DATE|TIMESTAMP|HUGEINT|DECIMAL\([0-9]{1,2}, ?[0-9]{1,2}\))")
"""What a part of JSON may be read as."""
AGGREGATES = (*_SUMS, "QUANTILE", "HISTOGRAM")
"""The aggregates of a policy that lists none; MIN and MAX have to be listed, in modes measured and generalized."""

ANSWERED: Mapping[Mode, tuple[str, ...]] = {
    "measured": (*AGGREGATES, "MIN", "MAX"),
    "exact": ("COUNT", "COUNT_DISTINCT", "SUM", "AVG"),
    "generalized": (*_SUMS, "MIN", "MAX"),
}
"""The aggregates that a mode answers, if the policy lists them."""


_SMALL = {ord(c): ord(c) + 32 for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def fold(name: str) -> str:
    """Fold a name as DuckDB compares names: the letters A to Z, quoted or not, are a to z."""
    return name.translate(_SMALL)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Pivot(_Part):
    """A wide table shows the values of a long one: one column a key, a row for every unit of the long table.

    table: the long table. key: its column whose values the wide columns are named for. value: the column shown.
    names: the key's value -> the wide column.
    """

    table: str
    key: str
    value: str
    names: dict[int | str, str] = Field(min_length=1)


class Table(_Part):
    """What a table holds. A column that stands in no role is hidden."""

    public: bool = False
    privacy_unit: str | None = None
    belongs_to: dict[str, str] = {}
    """Column -> column of another table of people, as orders.o_orderkey. A row is of the person of the row there that
    has its key. With privacy_unit, too, it is of that person only if both name the same, and else of nobody."""
    key: tuple[str, ...] = ()
    """Columns that name one row together. They are joined on and counted, never shown."""
    unit: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """What kind of people it is about, where a database has several, such as customers and employees."""
    grain: Grain | None = None
    """unit: one row a unit; rows: many. None: found out when the guard opens."""
    unique: str | None = None
    """Of a table of grain rows: the column that names one row together with the unit."""
    artifacts: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    coarsened: dict[str, Truncation] = {}
    trust_view: bool = False
    """Of a view that is not plainly row by row: the owner has checked that its rows depend on one person's records
    only, and that it fails on no row."""
    pivot_of: Pivot | None = None
    same_as: dict[str, str] = {}
    values: dict[str, tuple[bool | int | float | str | date, ...]] = {}
    """All values that a column may have, so that they may be shown whatever the data are."""
    bounds: dict[str, tuple[float, float]] = {}
    """Between what a column's numbers lie; those beyond are cut off."""
    types: dict[str, str] = {}
    """Of paths into JSON: the type that what is there is read as; texts, if it is not named."""
    rows_per_person: int | None = Field(None, ge=1, le=1_000_000, strict=True)
    """Of a table of grain rows: how many rows of a person are counted in full."""

    def roles(self) -> Iterator[tuple[str, str]]:
        """Every column that is named, with its role."""
        if self.privacy_unit is not None:
            yield self.privacy_unit, "unit"
        for role, names in self._named():
            for name in names:
                yield name, role
        others = {fold(name) for _, names in self._named() for name in names} | {fold(self.privacy_unit or "")}
        for name in dict.fromkeys((*self.key, *self.belongs_to)):
            if fold(name) not in others:
                yield name, "key"

    def _named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (
            ("artifact", self.artifacts),
            ("measure", self.measures),
            ("dimension", self.dimensions),
            ("hidden", self.hidden),
            ("coarsened", tuple(self.coarsened)),
        )

    @property
    def parent(self) -> str | None:
        """The table that says whose a row is, where this one belongs to another."""
        return next((target.rpartition(".")[0] for target in self.belongs_to.values()), None)

    def where(self, column: str) -> Where:
        """The entry that gives a column its role, within the table."""
        if self.privacy_unit is not None and fold(self.privacy_unit) == fold(column):
            return ("privacy_unit",)
        for entry in ("artifacts", "measures", "dimensions", "hidden"):
            for at, name in enumerate(getattr(self, entry)):
                if fold(name) == fold(column):
                    return (entry, at)
        for name in self.belongs_to:
            if fold(name) == fold(column):
                return ("belongs_to", name)
        if any(fold(name) == fold(column) for name in self.key):
            return ("key",)
        return ("coarsened", column)

    @field_validator("key", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_together(self) -> "Table":
        roles = list(self.roles())
        if self.unit is not None and (self.public or (self.belongs_to and self.privacy_unit is None)):
            msg = "unit goes with privacy_unit: it says what kind of people that names"
            raise ValueError(msg)
        if self.public and (
            roles or self.pivot_of or self.same_as or self.grain or self.unique or self.rows_per_person
        ):
            msg = "a public table has no privacy unit and no roles: leave out public, or the rest"
            raise ValueError(msg)
        if not self.public and self.privacy_unit is None and not self.belongs_to:
            msg = (
                "says neither privacy_unit (the column that names the person), nor belongs_to (the key of a table that "
                "says it), nor public: true"
            )
            raise ValueError(msg)
        if self.belongs_to:
            self._check_parent()
        seen: dict[str, str] = {}
        for name, role in roles:
            if fold(name) in seen:
                msg = f"column {name!r} is both {seen[fold(name)]} and {role}: a column has one role"
                raise ValueError(msg)
            seen[fold(name)] = role
        for entry, columns in (("values", self.values), ("bounds", self.bounds)):
            for name in columns:
                if fold(name) not in seen:
                    msg = f"{entry} names {name!r}, which has no role: list it among artifacts, measures or dimensions"
                    raise ValueError(msg)
        for name, type_ in self.types.items():
            if fold(name) not in seen or TYPES.fullmatch(type_.upper()) is None:
                msg = f"types of {name!r}: it names a path with a role, such as info.age, and a type such as BIGINT"
                raise ValueError(msg)
        for name, (low, high) in self.bounds.items():
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                msg = f"bounds of {name!r} are two numbers, the smaller one first"
                raise ValueError(msg)
        for name, listed in self.values.items():
            if not listed or len({str(value) for value in listed}) < len(listed):
                msg = f"values of {name!r} is a list of different values"
                raise ValueError(msg)
        if self.rows_per_person is not None and self.grain == "unit":
            msg = "rows_per_person goes with grain rows: of grain unit each person has one row"
            raise ValueError(msg)
        if self.unique is not None and self.grain == "unit":
            msg = "unique goes with grain rows: of grain unit the privacy unit alone names the row"
            raise ValueError(msg)
        return self

    def _check_parent(self) -> None:
        if self.grain == "unit":
            msg = "a table that belongs to another has grain rows: remove grain, or belongs_to"
            raise ValueError(msg)
        if any("." not in target.strip(".") for target in self.belongs_to.values()):
            msg = "belongs_to has to be a column and that of the table it belongs to, as {order_id: orders.id}"
            raise ValueError(msg)
        if len({fold(target.rpartition(".")[0]) for target in self.belongs_to.values()}) > 1:
            msg = "belongs_to names two tables: a row belongs to one row of one table"
            raise ValueError(msg)


class Diversity(_Part):
    """A set of users is only split where every part keeps l distinct values of each column."""

    l: int = Field(ge=2, strict=True)  # noqa: E741 - as the papers call it
    columns: tuple[str, ...] = Field(min_length=1)
    """Measures or dimensions, as table.column."""


class OfUnit(_Part):
    """What is another budget for people of one kind."""

    epsilon: float | None = Field(default=None, gt=0, le=1e9)
    delta: float | None = Field(default=None, gt=0, lt=0.01)


class Budget(_Part):
    """What all answers together may tell of one person: (epsilon, delta)-differential privacy for all records of one
    person, for the ledger's lifetime, all principals together. units: of people of one kind, by its name, what is
    another number for them; people of each kind have a budget of their own."""

    epsilon: float = Field(default=8.0, gt=0, le=1e9)
    delta: float = Field(default=1.0e-6, gt=0, lt=0.01)
    units: dict[str, OfUnit] = {}

    def of(self, kind: str) -> "Budget":
        """The budget of people of one kind, as the catalog names kinds."""
        own = next((own for name, own in self.units.items() if fold(name) == kind), OfUnit())
        return Budget.model_validate({"epsilon": self.epsilon, "delta": self.delta} | own.model_dump(exclude_none=True))


class Limits(_Part):
    """What one statement may cost."""

    time_ms: int = Field(default=10_000, ge=1, strict=True)
    memory: str = Field(default="1GB", pattern=r"^[1-9][0-9]*(\.[0-9]+)?\s*([KMGT]i?B)$")
    statement_bytes: int = Field(default=65_536, ge=1, le=1_000_000, strict=True)
    depth: int = Field(default=24, ge=4, le=30, strict=True)
    """How deep brackets and nested expressions go."""


def bytes_of(size: str) -> int:
    """A size as 1GB or 512MiB in bytes."""
    number, unit = size.rstrip("KMGTiB ").strip(), size.lstrip("0123456789. ").strip()
    base = 1024 if "i" in unit else 1000
    return int(float(number) * base ** (1 + "KMGT".index(unit[0])))


class Principal(_Part):
    """Who asks. What is not set is as in the policy."""

    time_ms: int | None = Field(None, ge=1, strict=True)
    memory: str | None = Field(None, pattern=r"^[1-9][0-9]*(\.[0-9]+)?\s*([KMGT]i?B)$")
    statement_bytes: int | None = Field(None, ge=1, le=1_000_000, strict=True)
    depth: int | None = Field(None, ge=4, le=30, strict=True)
    share: float | None = Field(None, gt=0, le=1)
    """Of the budget of mode measured: the part of it that this principal may spend, and nobody else."""


class JoinSide(NamedTuple):
    """A column on one side of a join."""

    table: str
    column: str


class Join(_Part):
    """A declared equality of two columns: N:1 from left to right, or unit = unit. more: further ones that hold with it,
    where several columns name a row."""

    left: JoinSide
    right: JoinSide
    more: tuple[tuple[JoinSide, JoinSide], ...] = ()

    @property
    def pairs(self) -> tuple[tuple[JoinSide, JoinSide], ...]:
        """All equalities."""
        return ((self.left, self.right), *self.more)

    @model_validator(mode="before")
    @classmethod
    def _parsed(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [_equality(part) for part in re.split(r"\s+and\s+", value.strip(), flags=re.IGNORECASE)]
        (left, right), *more = pairs
        if any((one.table, other.table) != (left.table, right.table) for one, other in more):
            msg = "has to join the same two tables, in the same order, in each of its equalities"
            raise ValueError(msg)
        return {"left": left, "right": right, "more": tuple(more)}


def _equality(text: str) -> tuple[JoinSide, JoinSide]:
    sides = [JoinSide(*(part.strip() for part in side.rpartition(".")[::2])) for side in text.split("=")]
    if len(sides) != 2 or any(not side.table or not side.column for side in sides):
        msg = "has to be an equality of two columns, as ratings.item_id = items.item_id, or several with `and` between"
        raise ValueError(msg)
    return sides[0], sides[1]


class _Problem(NamedTuple):
    """What two entries say against each other: where, and what to do."""

    where: Where
    what: str


class Policy(_Part):
    """What may be asked, of what, by whom."""

    version: Literal[1]
    database: Path
    attach: dict[str, str] = {}
    """Other databases and folders, by the name that their tables begin with."""
    files: tuple[Path, ...] = ()
    """Files and folders that views of the database may read."""
    ledger: Path = Path()
    """In mode measured ledger.sqlite, in others ledger.duckdb, if it is not named."""
    audit_log: Path | None = None
    k: int = Field(ge=2, strict=True)
    mode: Mode = "measured"
    budget: Budget = Budget()
    prepare: tuple[str, ...] = ()
    """Questions that are measured when a ledger begins, before anybody asks."""
    match: Literal["any", "all", "expected"] | None = None
    tables: dict[str, Table] = Field(min_length=1)
    joins: tuple[Join, ...] = ()
    aggregates: tuple[
        Literal[
            "COUNT",
            "COUNT_DISTINCT",
            "SUM",
            "AVG",
            "STDDEV",
            "VAR",
            "COVAR",
            "CORR",
            "QUANTILE",
            "HISTOGRAM",
            "MIN",
            "MAX",
        ],
        ...,
    ] = AGGREGATES  # type: ignore[assignment]
    margins: bool = False
    """Whether ROLLUP, CUBE and GROUPING SETS are answered."""
    diversity: Diversity | None = None
    round: int | None = Field(None, ge=-6, le=12, strict=True)
    limits: Limits = Limits()
    principals: dict[str, Principal] = {}
    _written: Written = PrivateAttr(default_factory=Written)

    @field_validator("aggregates", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return [str(name).upper() for name in value] if isinstance(value, list | tuple) else value

    @field_validator("mode", mode="before")
    @classmethod
    def _old_name(cls, value: object) -> object:
        return "measured" if value == "adaptive" else value

    @field_validator("budget", mode="before")
    @classmethod
    def _is_given(cls, value: object) -> object:
        if not isinstance(value, dict | Budget):
            msg = (
                "has to be epsilon and delta, as {epsilon: 8, delta: 1.0e-6}: there is no mode measured without a "
                "budget, and other modes have none; remove the entry, or write the two numbers"
            )
            raise ValueError(msg)
        return value

    @field_validator("principals", mode="before")
    @classmethod
    def _empty_is_default(cls, value: object) -> object:
        return {name: {} if p is None else p for name, p in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _fits_together(self) -> "Policy":
        if self.ledger == Path():
            object.__setattr__(self, "ledger", Path(f"ledger.{'sqlite' if self.mode == 'measured' else 'duckdb'}"))
        problem = next(self._problems(), None)
        if problem:
            raise AtError(*problem)
        return self

    def error(self, where: Where, what: str) -> InputError:
        """What is wrong with an entry, found after the policy was read: with file and line, if it is in a file. what:
        without a full stop at the end."""
        return self._written.error(where, what)

    def table(self, name: str) -> Table | None:
        """The table of that name, in whatever case."""
        return next((table for known, table in self.tables.items() if fold(known) == fold(name)), None)

    def limits_of(self, principal: str) -> Limits:
        """The limits of who asks. Raises InputError for a principal that the policy does not name."""
        own = self.principal(principal).model_dump(exclude_none=True, exclude={"share"})
        return Limits.model_validate(self.limits.model_dump() | own)

    def principal(self, name: str) -> Principal:
        """Who asks, by name. Raises InputError for one that the policy does not name."""
        if name not in self.principals:
            known = ", ".join(self.principals) or "none"
            msg = f"The policy names no principal {name!r}; it names: {known}. Add it under principals."
            raise InputError(msg)
        return self.principals[name]

    def _problems(self) -> Iterator[_Problem]:
        """What entries say against each other."""
        for name in self.attach:
            if fold(name) in ("source", "memory", "system", "temp", "main") or "." in name:
                yield _Problem(("attach", name), f"{name!r} is a name of the guard's own, or no name: choose another")
        folded = [fold(name) for name in self.tables]
        for at, name in enumerate(self.tables):
            if fold(name) in folded[:at]:
                yield _Problem(
                    ("tables", name), f"table {name!r} stands here twice: names are compared without regard to case"
                )
            if fold(name).startswith("kg_"):
                yield _Problem(("tables", name), "names that begin with kg_ are the guard's own")
        yield from self._problems_of_mode()
        yield from self._problems_of_shares()
        yield from self._problems_of_units()
        if all(table.public for table in self.tables.values()):
            yield _Problem(("tables",), "every table is public: there is nothing to guard")
        if self.mode == "exact":
            yield from self._problems_of_exact()
        if self.mode != "measured":
            for name, table in self.tables.items():
                if table.unit is not None:
                    told = f"mode {self.mode} knows one kind of people. Use mode measured"
                    yield _Problem(("tables", name, "unit"), told)
        for name, table in self.tables.items():
            yield from self._problems_of_table(name, table)
        for at, join in enumerate(self.joins):
            yield from self._problems_of_join(at, join)
        if self.diversity:
            for column in self.diversity.columns:
                if self._role(column) not in ("measure", "dimension"):
                    yield _Problem(
                        ("diversity", "columns"),
                        f"{column!r} is no measure or dimension of a table, as ratings_wide.salary",
                    )

    def _problems_of_shares(self) -> Iterator[_Problem]:
        shares = {name: own.share for name, own in self.principals.items() if own.share is not None}
        for name in shares:
            if self.mode != "measured":
                what = f"a share is of the budget, and mode {self.mode} has none; remove it, or use mode measured"
                yield _Problem(("principals", name, "share"), what)
        if sum(shares.values()) > 1 + 1e-9:
            told = " + ".join(f"{share:g}" for share in shares.values())
            yield _Problem(("principals",), f"shares add up to 1 at most, and these are {told}: make some smaller")

    def _problems_of_units(self) -> Iterator[_Problem]:
        """Budgets of kinds of people that there are not."""
        kinds = {fold(table.unit): table.unit for table in self.tables.values() if table.unit is not None}
        folded = [fold(name) for name in self.budget.units]
        for at, name in enumerate(self.budget.units):
            if folded[at] not in kinds:
                told = f"no table is about people of the kind {name!r}. {near(name, kinds.values(), 'Kinds (unit)')}"
                yield _Problem(("budget", "units", name), told)
            if folded[at] in folded[:at]:
                yield _Problem(("budget", "units", name), f"{name!r} stands here twice")

    def _problems_of_mode(self) -> Iterator[_Problem]:
        """Entries that do nothing in the policy's mode."""
        measured = self.mode == "measured"
        if self.match is not None and self.mode != "generalized":
            yield _Problem(("match",), f"match goes with mode generalized, and this is mode {self.mode}; remove it")
        if self.round is not None and measured:
            yield _Problem(
                ("round",),
                "round goes with modes exact and generalized; mode measured rounds each number to a tenth of its "
                "standard error; remove it",
            )
        if self.diversity is not None and measured:
            yield _Problem(
                ("diversity",),
                "diversity goes with modes exact and generalized; mode measured has no parts of people, and its noise "
                "hides what each of them has; remove it",
            )
        for entry in ("attach", "files"):
            if getattr(self, entry) and not measured:
                told = f"mode {self.mode} reads one DuckDB database. Use mode measured"
                yield _Problem((entry,), told)
        if "budget" in self.model_fields_set and not measured:
            yield _Problem(("budget",), f"budget goes with mode measured, and mode {self.mode} has none; remove it")
        if self.mode == "generalized" and not any(self._may_be_gathered(*entry) for entry in self.tables.items()):
            yield _Problem(("mode",), NOTHING_TO_GATHER)
        for at, word in enumerate(self.aggregates):
            if word in ("MIN", "MAX") and word not in ANSWERED[self.mode]:
                yield _Problem(
                    ("aggregates", at), f"{word} is one person's value, and mode {self.mode} never tells it; remove it"
                )
        if self.prepare and not measured:
            yield _Problem(
                ("prepare",), f"prepare goes with mode measured, and mode {self.mode} measures nothing; remove it"
            )

    def _may_be_gathered(self, name: str, table: Table) -> bool:
        """Whether a table may hold what mode generalized gathers people by; types and grains are not known yet."""
        long = any(other.pivot_of and fold(other.pivot_of.table) == fold(name) for other in self.tables.values())
        return not table.public and bool(table.artifacts) and table.grain != "rows" and not long

    def _problems_of_exact(self) -> Iterator[_Problem]:
        first, *others = [name for name, table in self.tables.items() if not table.public] or [""]
        for name in others:
            yield _Problem(("tables", name), f"{ONE_TABLE}; {first} is another. Use mode measured")
        if first and self.tables[first].grain == "rows":
            yield _Problem(("tables", first, "grain"), f"{ONE_TABLE}; this one has several. Use mode measured")

    def _problems_of_table(self, name: str, table: Table) -> Iterator[_Problem]:
        at: Where = ("tables", name)
        yield from self._problems_of_parent(name, table)
        pivot = table.pivot_of
        if pivot:
            source = self.table(pivot.table)
            if source is None or source.public or source is table:
                yield _Problem((*at, "pivot_of"), f"table {pivot.table!r} is no other protected table of this policy")
            else:
                for column in (pivot.key, pivot.value):
                    if self._role(f"{pivot.table}.{column}") != "artifact":
                        yield _Problem((*at, "pivot_of"), f"{column!r} is no artifact of {pivot.table}: list it there")
                if fold(pivot.key) == fold(pivot.value):
                    yield _Problem((*at, "pivot_of"), "key and value are two columns")
                if source.grain == "unit":
                    yield _Problem((*at, "pivot_of"), f"{pivot.table} has grain unit; a long table has grain rows")
            if table.grain == "rows":
                yield _Problem((*at, "pivot_of"), "a wide table has one row a unit: its grain is unit")
            own = {fold(column) for column in table.artifacts}
            shown = [fold(column) for column in pivot.names.values()]
            for column in pivot.names.values():
                if fold(column) not in own:
                    yield _Problem((*at, "pivot_of", "names"), f"{column!r} is no artifact of this table: list it")
            if len(set(shown)) < len(shown):
                yield _Problem((*at, "pivot_of", "names"), "two keys name one column")
        for column, target in table.same_as.items():
            role, other = self._role(f"{name}.{column}"), self._role(target)
            if role is None:
                yield _Problem((*at, "same_as"), f"{column!r} is no column of this table")
            elif other is None or fold(target.rpartition(".")[0]) == fold(name):
                yield _Problem((*at, "same_as"), f"{target!r} is no column of another table, as ratings_wide.age")
            elif role != other:
                yield _Problem(
                    (*at, "same_as"),
                    f"the role of {column!r} is {role}, and that of {target!r} is {other}: give both one role",
                )
        if table.unique is not None and self._role(f"{name}.{table.unique}") != "artifact":
            yield _Problem((*at, "unique"), f"{table.unique!r} is no artifact of this table: list it there")

    def _problems_of_join(self, at: int, join: Join) -> Iterator[_Problem]:
        where = ("joins", at)
        for table, _ in (join.left, join.right):
            if self.table(table) is None:
                yield _Problem(where, f"table {table!r} is not in this policy")
                return
        for sides in join.pairs:
            yield from self._problems_of_equality(where, *sides)
        if len(join.pairs) > 1 and self._role_of(join.left) == "unit":
            yield _Problem(where, "a privacy unit names a person alone: leave out the other equalities")
        if len(join.pairs) > 1 and self.mode != "measured":
            yield _Problem(where, f"mode {self.mode} joins by one column. Use mode measured")

    def _problems_of_equality(self, where: Where, left_side: JoinSide, right_side: JoinSide) -> Iterator[_Problem]:
        for side in (left_side, right_side):
            if self._role_of(side) is None:
                yield _Problem(where, f"{side.column!r} is no column that the policy names in {side.table}")
                return
        left, right = self._role_of(left_side), self._role_of(right_side)
        if (left == "unit") != (right == "unit"):
            yield _Problem(where, "a privacy unit is only joined to a privacy unit: another join would tell who is who")
        elif left != "unit" and right != "public":
            told = "the right side is the key of a public table, or both sides are privacy units"
            if left == right == "key":
                told += ". Rows that belong to others are joined by belongs_to: it needs no entry here"
            yield _Problem(where, told)
        elif left not in ("unit", "artifact", "dimension", "public"):
            yield _Problem(
                where,
                f"the left side is a {left} column: only artifacts, dimensions and public columns look things up",
            )

    def _problems_of_parent(self, name: str, table: Table) -> Iterator[_Problem]:
        if table.parent is None:
            return
        at: Where = ("tables", name, "belongs_to")
        if self.mode != "measured":
            yield _Problem(at, f"mode {self.mode} takes tables that name the person themselves. Use mode measured")
        seen = [fold(name)]
        while table.parent is not None:
            parent = self.table(table.parent)
            if parent is None or parent.public:
                known = "is public" if parent is not None else "is not in this policy"
                yield _Problem(at, f"table {table.parent!r} {known}: name the table that says whose a row is")
                return
            if fold(table.parent) in seen:
                yield _Problem(at, f"{name!r} leads back to {table.parent!r}: no table of them names the person")
                return
            seen.append(fold(table.parent))
            table = parent

    def _role_of(self, side: JoinSide) -> str | None:
        known = self.table(side.table)
        return "public" if known is not None and known.public else self._role(f"{side.table}.{side.column}")

    def _role(self, name: str) -> str | None:
        table, _, column = name.rpartition(".")
        known = self.table(table)
        if known is None or not column:
            return None
        return next((role for other, role in known.roles() if fold(other) == fold(column)), None)


def load_policy(path: Path | str) -> Policy:
    """Read a policy; database, ledger and audit log, where relative, are beside the file.

    Raises InputError naming file, line and entry, and what it may be.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        msg = f"{path}: the policy cannot be read: {reason}."
        raise InputError(msg) from None
    policy = parse_policy(text, str(path))
    folder = path.resolve().parent
    found: dict[str, object] = {"database": folder / policy.database, "ledger": folder / policy.ledger}
    found["files"] = tuple(folder / one for one in policy.files)
    found["attach"] = {name: beside(address, folder) for name, address in policy.attach.items()}
    if policy.audit_log is not None:
        found["audit_log"] = folder / policy.audit_log
    return policy.model_copy(update=found)


def parse_policy(text: str, name: str = "policy") -> Policy:
    """Read a policy from text. Raises InputError naming file, line and entry, and what it may be."""
    lines: dict[Where, int] = {}
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = _values(node, (), lines, name) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{name}:{mark.line + 1}" if mark else name
        msg = f"{at}: this is no YAML: {getattr(error, 'problem', None) or 'the text cannot be read'}."
        raise InputError(msg) from None
    if not isinstance(values, dict):
        msg = f"{name}:1: a policy has entries, as version: 1, database: people.duckdb, k: 10, and tables."
        raise InputError(msg)
    written = Written(name, lines)
    try:
        policy = Policy(**{str(key): value for key, value in values.items()})
    except ValidationError as error:
        raise InputError(sentences(error.errors(), written, _entries_at)) from None
    policy._written = written
    return policy


def _entries_at(where: Where) -> Iterator[str]:
    """The entries that there are in a place."""
    for pattern, part in _PARTS.items():
        if len(pattern) == len(where) and all(at in ("*", of) for at, of in zip(pattern, where, strict=True)):
            yield from part.model_fields


_PARTS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Policy,
    ("budget",): Budget,
    ("diversity",): Diversity,
    ("limits",): Limits,
    ("principals", "*"): Principal,
    ("tables", "*"): Table,
    ("tables", "*", "pivot_of"): Pivot,
}
"""What stands in which place. `*` stands for any name."""


def _values(node: yaml.Node, path: Where, lines: dict[Where, int], name: str) -> Any:
    """Turn composed YAML into values; remember the line of every entry; refuse keys that stand twice."""
    lines.setdefault(path, node.start_mark.line + 1)
    if len(path) > 8:
        msg = f"{name}:{node.start_mark.line + 1}: nested too deeply."
        raise InputError(msg)
    if isinstance(node, yaml.MappingNode):
        values: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node, name)
            if key in values:
                msg = f"{name}:{key_node.start_mark.line + 1}: {key!r} stands here twice; remove one."
                raise InputError(msg)
            lines[(*path, key)] = key_node.start_mark.line + 1
            values[key] = _values(value_node, (*path, key), lines, name)
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_values(item, (*path, at), lines, name) for at, item in enumerate(node.value)]
    return _scalar(node, name)


def _scalar(node: yaml.Node, name: str) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        msg = f"{name}:{node.start_mark.line + 1}: a name is a word, not a list or a mapping."
        raise InputError(msg)
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node)
    except (yaml.YAMLError, ValueError):
        msg = f"{name}:{node.start_mark.line + 1}: this value cannot be read; write a plain word, number or date."
        raise InputError(msg) from None
    finally:
        loader.dispose()
