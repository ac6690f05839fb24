"""What mode exact answers, decided by the text and the policy alone, and what its answers say of themselves.

There is one protected table, with one row a person. Numbers of people are told of whole atoms, and sums and means of
measures, which no condition and no key can use: a number that both chose people and is added up would be a code.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kgather._guard.catalog import Catalog
from kgather._guard.plan import Aggregate, Bound, Plan, Scale
from kgather._guard.policy import ONE_TABLE, Policy, fold
from kgather._guard.refused import NOT_PERMITTED, Refused, Rule

_COUNTS, _SUMS = ("COUNT", "COUNT_DISTINCT"), ("SUM", "AVG")


class ColumnName(NamedTuple):
    """A column of a table, both names folded."""

    table: str
    column: str

    @classmethod
    def of(cls, bound: Bound) -> "ColumnName":
        """The name of a plan's column."""
        return cls(fold(bound.table), fold(bound.column))


class Range(NamedTuple):
    """Between what the numbers of a column lie. Those beyond are cut off."""

    low: float
    high: float

    @property
    def step(self) -> float:
        """What one person can add at most: sums are told in multiples of it."""
        return max(abs(self.low), abs(self.high))


def check_tables(catalog: Catalog) -> None:
    """Raise InputError where the protected table has several rows a person. How many tables there are was checked when
    the policy was read."""
    for info in catalog.tables.values():
        if info.protected and info.grain == "rows":
            told = f"{ONE_TABLE}, and this one has several. Use mode measured"
            raise catalog.policy.error(("tables", info.name), told)


def ranges(policy: Policy) -> Mapping[ColumnName, Range]:
    """The bounds of columns. None in other modes, where bounds mean other things."""
    if policy.mode != "exact":
        return {}
    return {
        ColumnName(fold(table), fold(column)): Range(*found)
        for table, entry in policy.tables.items()
        for column, found in entry.bounds.items()
    }


def check(made: Plan, catalog: Catalog) -> None:
    """Raise Refused where a plan asks for more than counts, and sums and means of measures as they are."""
    for aggregate in _aggregates(made):
        name = aggregate.function
        if name in _COUNTS:
            continue
        if name not in _SUMS:
            msg = f"Mode exact does not answer {name}. It answers COUNT, and SUM and AVG of measures."
            raise Refused(msg, code=NOT_PERMITTED, rule=Rule.AGGREGATES)
        [argument], [scale] = aggregate.columns, aggregate.scale
        if scale != Scale():
            msg = f"Mode exact adds up columns as they are, not expressions. Ask for {name}({argument.column})."
            raise Refused(msg, code=NOT_PERMITTED, rule=Rule.ARGUMENTS)
        if _role(argument, catalog) != "measure":
            msg = (
                f"Mode exact adds up measures, which no condition uses, and {argument.table}.{argument.column} is none."
                f" Ask for counts, or list the column under tables.{argument.table}.measures in the policy."
            )
            raise Refused(msg, code=NOT_PERMITTED, rule=Rule.ARGUMENTS)


def warning(made: Plan, policy: Policy) -> str | None:
    """What an answer does not protect against; None where nobody is in it."""
    if not made.blocks:
        return None
    told = (
        f"The numbers are exact figures of parts of at least {policy.k} people. They do not protect against somebody "
        "who knows the others in a part, who recognises a value in a total, or who learns from what is refused."
    )
    known = ranges(policy)
    added = dict.fromkeys(
        ColumnName.of(argument)
        for aggregate in _aggregates(made)
        if aggregate.function in _SUMS
        for argument in aggregate.columns
    )
    rounded = [f"{name.column} to multiples of {known[name].step:g}" for name in added if name in known]
    bare = [name.column for name in added if name not in known]
    if rounded:
        told += f" Sums are rounded to what one person can add, and means are made of them: {', '.join(rounded)}."
    if bare:
        told += f" Of {' and '.join(bare)} the policy gives no bounds: sums and means are as they are."
    return told


def _aggregates(made: Plan) -> Iterator[Aggregate]:
    return (aggregate for block in made.blocks for aggregate in block.aggregates)


def _role(argument: Bound, catalog: Catalog) -> str | None:
    table = catalog.table(argument.table)
    column = table.column(argument.column) if table is not None else None
    return column.role if column is not None else None
