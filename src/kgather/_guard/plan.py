"""What a statement means, in a small closed algebra: the planner writes it, the guard executes it.

A statement becomes a `Plan`: blocks, which touch protected rows, and one SQL text over their results. A `Block` is a
GROUP BY: every aggregate of it is a `Question` about one universe (privacy units, or the rows of one long table), so
that a value is always answered from the partition that it belongs to. Conditions and keys are trees of `Op` over
`Bound`, `Literal`, `Exists` and `PerUnit`: names are resolved, aliases are gone, derived tables are inlined, and no
operation can raise an error on data.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal as Choice
from typing import NamedTuple

Kind = Choice["integer", "number", "text", "boolean", "date", "timestamp", "null", "other"]
"""The type of an expression, as far as the guard tells types apart. number: a DOUBLE."""

NUMERIC: tuple[Kind, ...] = ("integer", "number")

SET = "kg_set"
"""The column of a block with several grouping sets that says of which a group is, by its position."""

MEASURE = "measure"
"""The operation around an argument that is computed."""

Value = bool | int | float | Decimal | str | date | datetime | None


@dataclass(frozen=True, slots=True)
class Bound:
    """A column of a table of the universe, both named as the policy names them."""

    table: str
    column: str
    kind: Kind = "other"
    ref: int = 0
    """Which mention of the table, while planning; 0 in a finished plan: there every table has one row at a time."""

    @property
    def size(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the statement."""

    value: Value
    kind: Kind

    @property
    def size(self) -> int:
        return 1


OPERATIONS = (
    "and",
    "or",
    "not",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "is null",
    "is true",
    "is false",
    "is not distinct",
    "+",
    "-",
    "*",
    "/",
    "neg",
    "abs",
    "round",
    "floor",
    "ceil",
    "coalesce",
    "greatest",
    "least",
    "case",
    "date_trunc",
    "date_part",
    "date_diff",
    "strftime",
    "like",
    "ilike",
    "lower",
    "upper",
    "trim",
    "length",
    "substring",
    "left",
    "right",
    "concat",
    "starts_with",
    "ends_with",
    "contains",
    "%",
    "//",
    "measure",
    "text",
    "replace",
    "split_part",
    "regexp_matches",
    "regexp_full_match",
    "regexp_extract",
    "strpos",
    "reverse",
    "sqrt",
    "ln",
    "log2",
    "log10",
    "exp",
    "pow",
    "trunc",
    "last_day",
    "moved",
)
"""Every operation there is. case: condition, value, condition, value, ..., default. date_trunc: unit, column.
date_part: unit, date. date_diff: unit, date, date. strftime: date, format. substring: text, first, length. measure:
what is computed from several columns, to be added up as a whole. text: a value as VARCHAR. sqrt, ln, log2, log10: NULL
where DuckDB would raise an error. moved: date, number, unit (day or month); NULL where that is no date."""


@dataclass(frozen=True, slots=True)
class Op:
    """An operation over its arguments. Conditions are three-valued, as in SQL; arithmetic is in DOUBLE."""

    name: str
    args: "tuple[Expr, ...]"
    kind: Kind = "boolean"
    size: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(arg.size for arg in self.args))


@dataclass(frozen=True, slots=True)
class Lookup:
    """A public table read N:1: the row of right's table whose key equals left. more: further columns of the key. of:
    its name, where it is named by the way on which it is looked up."""

    left: Bound
    right: Bound
    required: bool = True
    """False: as in a left join, all columns are NULL where there is no such row."""
    more: tuple[tuple[Bound, Bound], ...] = ()
    of: str = ""

    @property
    def table(self) -> str:
        """The table that is read."""
        return self.of or self.right.table

    @property
    def pairs(self) -> tuple[tuple[Bound, Bound], ...]:
        """The columns that look up, each with the one it equals."""
        return ((self.left, self.right), *self.more)


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether the unit has a row of a protected table for which a condition is true (never NULL).

    Columns of `table` inside the condition are of that row; columns of tables of grain unit are of the unit. by: not of
    the unit, but of the row of the universe that is belonged to: a column of that, and the one that equals it.
    """

    table: str
    condition: "Expr"
    lookups: tuple[Lookup, ...] = ()
    by: tuple[tuple[Bound, Bound], ...] = ()

    @property
    def kind(self) -> Kind:
        return "boolean"

    @property
    def size(self) -> int:
        return 1 + self.condition.size


@dataclass(frozen=True, slots=True)
class PerUnit:
    """A value that a unit has by its rows of a long table.

    function: COUNT (rows; of non-NULL arguments, if there is one), COUNT_DISTINCT (values of the argument), SUM, MIN,
    MAX, or VALUE (of the one row there can be: the condition pins the key that is unique per unit). Over the unit's
    rows of `table` where `condition` is true. The counts are 0 and the others are NULL where there is no such row.
    """

    function: Choice["COUNT", "COUNT_DISTINCT", "SUM", "MIN", "MAX", "VALUE"]
    table: str
    argument: Bound | Op | None
    condition: "Expr"
    kind: Kind
    lookups: tuple[Lookup, ...] = ()

    @property
    def size(self) -> int:
        return 1 + self.condition.size


Expr = Bound | Literal | Op | Exists | PerUnit

TRUE = Literal(True, "boolean")


@dataclass(frozen=True, slots=True)
class Reference:
    """A table of grain unit that is read with the unit. required: units without a row in it do not count."""

    table: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Universe:
    """What is counted: privacy units, or the rows of `table`, with what can be read beside each."""

    kind: Choice["unit", "rows"]
    table: str | None = None
    references: tuple[Reference, ...] = ()
    """Tables of grain unit. Of kind unit they are all there is, and at least one is required, or else the condition
    holds an Exists that says which units there are."""
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Cells of a universe, chosen by a condition (those where it is true) and put into groups by keys."""

    universe: Universe
    condition: Expr
    keys: tuple[Expr, ...] = ()


class Scale(NamedTuple):
    """What is made of a column before it is aggregated: factor * column + offset."""

    factor: float = 1.0
    offset: float = 0.0


class PivotedArgument(NamedTuple):
    """An argument that is a column of a pivot, and the value of its source's key that the column stands for."""

    column: Bound
    key: Literal


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of a block's relation.

    function: COUNT, COUNT_DISTINCT, COUNT_UNITS, SUM, AVG, STDDEV_SAMP, STDDEV_POP, VAR_SAMP, VAR_POP, COVAR_SAMP,
    COVAR_POP, CORR, QUANTILE_CONT, QUANTILE_DISC, MODE, HISTOGRAM, HISTOGRAM_BINS, COMBINED, COMBINED_WHOLE (of counts
    and whole numbers), MIN or MAX. COUNT without argument counts cells, with one those where it is not NULL.
    COUNT_DISTINCT counts values of its argument. COUNT_UNITS, of rows, counts units: it is COUNT where the public
    key column names one value of the table's unique column, else distinct units.
    arguments: none, one or two (COVAR, CORR) columns, or what is computed from columns (MEASURE); of COUNT_DISTINCT,
    MODE and HISTOGRAM any expression that may be a key. scale: of each.
    question: the cells; its condition holds the WHERE of the statement and the FILTER of the aggregate.
    fraction: of a quantile. parts: of COMBINED, the aggregates that are added up, each with its factor.
    pivoted: arguments that are columns of a pivot although the universe is of units (two values of one person are
    paired).
    """

    name: str
    function: str
    arguments: "tuple[Expr, ...]"
    scale: tuple[Scale, ...]
    question: Question
    distinct: bool = False
    pivoted: tuple[PivotedArgument, ...] = ()
    fraction: float | None = None
    parts: "tuple[tuple[float, Aggregate], ...]" = ()

    @property
    def columns(self) -> tuple[Bound, ...]:
        """The arguments, of which none is computed: as in all modes but measured."""
        columns = tuple(argument for argument in self.arguments if isinstance(argument, Bound))
        assert len(columns) == len(self.arguments)
        return columns


@dataclass(frozen=True, slots=True)
class Key:
    """One key column of a block's relation. role: artifact, dimension or public."""

    name: str
    kind: Kind
    role: str


@dataclass(frozen=True, slots=True)
class Block:
    """A GROUP BY over protected rows; its result is the relation `name` with the columns of keys and aggregates.

    question: the cells that the block as a whole is about; its groups are those of the result. The aggregates ask
    their own questions with as many keys, and are joined to the groups by the keys.
    grouping_sets: positions of keys; one set of all keys, unless margins were asked for. Without keys: one row. Of
    several sets the column `SET` tells each group's.
    """

    name: str
    question: Question
    keys: tuple[Key, ...]
    grouping_sets: tuple[tuple[int, ...], ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, keys first."""
        told = [SET] if self.has_sets else []
        return (*(key.name for key in self.keys), *(aggregate.name for aggregate in self.aggregates), *told)

    @property
    def has_sets(self) -> bool:
        """Whether there are several grouping sets, and so a column that tells them apart."""
        return len(self.grouping_sets) > 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement: blocks first, then `sql` over their relations and public tables.

    names: of the result's columns, as the analyst wrote them. public: the public tables that `sql` reads. with_errors:
    positions of result columns that are an aggregate of a block as it is; `sql` has, behind all columns, an error and a
    kind of each, if they were asked for. inner: answers that conditions of the blocks are made with. labels: the names
    that PostgreSQL gives to the columns. json: the positions of those that are JSON.
    """

    blocks: tuple[Block, ...]
    sql: str
    names: tuple[str, ...]
    public: tuple[str, ...] = ()
    with_errors: tuple[int, ...] = ()
    inner: "tuple[Inner, ...]" = ()
    labels: tuple[str, ...] = field(default=(), compare=False)
    json: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Inner:
    """An answer that is a constant of the plan around it, where it is known by its name (see constants.py). kind: of
    its values. several: it may have many rows, as of IN."""

    name: str
    plan: Plan
    kind: Kind
    several: bool = False


@dataclass(frozen=True, slots=True)
class Local:
    """A statement answered without the database: rows as they are, or a SELECT without tables in `sql`.

    tag: the word that a client is told, as SELECT or SET. labels, json: as of a Plan.
    """

    tag: str
    names: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()
    sql: str | None = None
    labels: tuple[str, ...] = field(default=(), compare=False)
    json: tuple[int, ...] = field(default=(), compare=False)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions right below one."""
    if isinstance(expr, Op):
        return expr.args
    if isinstance(expr, Exists | PerUnit):
        return (expr.condition,)
    return ()


def bounds(expr: Expr) -> Iterator[Bound]:
    """Every column of an expression that is of the universe's own row or unit: not those inside Exists and PerUnit
    that are of their table's rows."""
    if isinstance(expr, Bound):
        yield expr
    elif isinstance(expr, Op):
        for arg in expr.args:
            yield from bounds(arg)
    elif isinstance(expr, Exists | PerUnit):
        yield from (bound for bound in bounds(expr.condition) if bound.table != expr.table)
        if isinstance(expr, Exists):
            yield from (own for own, _ in expr.by)


def conjuncts(expr: Expr) -> Iterator[Expr]:
    """The parts of a conjunction."""
    if isinstance(expr, Op) and expr.name == "and":
        for arg in expr.args:
            yield from conjuncts(arg)
    else:
        yield expr


def conjunction(parts: list[Expr]) -> Expr:
    """The conjunction of parts, TRUE of none."""
    parts = [part for part in parts if part != TRUE]
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Op("and", tuple(parts))
