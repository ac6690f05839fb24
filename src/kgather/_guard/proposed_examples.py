"""Example questions for a database, to stand in the policy that is proposed for it."""

import re
from collections.abc import Container, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

import duckdb

from kgather._guard.guessed import NUMBERS, Column, Table
from kgather._guard.proposed_costs import Costs
from kgather._guard.proposed_values import FEW, halves
from kgather._guard.render import identifier, text

_SHARE = 0.7  # of an equal part of all people, which a group may well have
_STEPS = (10, 4)  # a histogram of activity is cut at these parts of rows_per_person, which few people pass


class Examples:
    """Writes questions. con: any connection; it tells which names are words of SQL. costs: say which are told from
    noise."""

    def __init__(self, con: duckdb.DuckDBPyConnection, costs: Costs) -> None:
        self._con, self._costs = con, costs
        listed = con.execute("select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'")
        self._words = frozenset(word for (word,) in listed.fetchall())

    def of(self, tables: Sequence[Table], shown: Container[str]) -> Iterator[str]:
        """Questions about tables of people, each in one line; those about people first. shown: the tables of whose
        things, such as films, so many people have rows that they are shown."""
        people = [table for table in tables if table.grain == "unit"]
        for table in people:
            yield from self._of_people(table)
        for table in tables:
            if table.grain == "rows":
                yield from self._of_rows(table, things=table.name in shown)
                yield from self._of_both(table, people)
                yield from self._of_parent(table, tables)

    def _of_people(self, table: Table) -> Iterator[str]:
        name = self._table(table)
        groups, numbers = _groups(table), _numbers(table)
        yield f"SELECT COUNT(*) AS people FROM {name}"
        if groups:
            group = self._name(groups[0].name)
            yield f"SELECT {group}, COUNT(*) AS people FROM {name} GROUP BY {group}"
        for column in _opinions(table)[:1]:
            level = self._name(column.name)
            yield f"SELECT {level}, COUNT(*) AS people FROM {name} GROUP BY {level}"
        yield from self._mean(table, numbers, groups)
        yield from (f"SELECT COUNT(*) AS people FROM {name} WHERE {part}" for part in self._conditions(table))
        yield from self._by_date(table, "people")

    def _of_rows(self, table: Table, *, things: bool) -> Iterator[str]:
        name = self._table(table)
        unit = None if table.unit is None else self._name(table.unit.name)
        if unit is not None:
            yield f"SELECT COUNT(DISTINCT {unit}) AS people FROM {name}"
        groups, numbers = (_things(table) if things else []) + _groups(table), _numbers(table) or _opinions(table)
        if groups and groups[0].is_id and numbers:
            group, number = self._name(groups[0].name), self._name(numbers[0].name)
            yield f"SELECT {group}, AVG({number}) AS average FROM {name} GROUP BY {group}"
        else:
            yield from self._mean(table, numbers, groups)
        for column in (_opinions(table) or _groups(table))[:1]:
            level = self._name(column.name)
            yield f"SELECT {level}, COUNT(*) AS in_rows FROM {name} GROUP BY {level}"
        yield from (f"SELECT COUNT(*) AS in_rows FROM {name} WHERE {part}" for part in self._conditions(table))
        yield from self._by_date(table, "in_rows")
        if table.rows_per_person is not None and unit is not None:
            yield self._activity(name, unit, table.rows_per_person)

    def _mean(self, table: Table, numbers: Sequence[Column], groups: Sequence[Column]) -> Iterator[str]:
        """The mean of a number by the groups of a column, or of all, as far as it is told from noise."""
        name = self._table(table)
        for column in numbers[:1]:
            mean = f"AVG({self._name(column.name)}) AS average"
            few = [one for one in groups if self._costs.tells_means(table, column, _SHARE / max(one.distinct, 1))]
            if few:
                group = self._name(few[0].name)
                yield f"SELECT {group}, {mean} FROM {name} GROUP BY {group}"
            elif self._costs.tells_means(table, column, 1.0):
                yield f"SELECT {mean} FROM {name}"

    def _conditions(self, table: Table) -> Iterator[str]:
        """Conditions that many rows meet: one of a listed value, one of a number."""
        for column in _groups(table)[-1:]:
            if column.kind == "boolean":
                yield self._name(column.name)
            elif isinstance(common := table.values[column.name][0], str):
                yield f"{self._name(column.name)} <> {text(common)}"
        for column in _numbers(table)[:1]:
            half = halves(self._con, table, column, self._costs.least_people, self._costs.least_rows(table))
            if column.role == "artifact" and half is not None:
                yield f"{self._name(column.name)} < {_plain(half)}"

    def _by_date(self, table: Table, count: str) -> Iterator[str]:
        """How many there are by a part of the calendar."""
        for column in [one for one in table.of_role("coarsened") if one.shown_by][:1]:
            part = f"DATE_TRUNC('{column.shown_by}', {self._name(column.name)})"
            yield f"SELECT {part} AS {column.shown_by}, COUNT(*) AS {count} FROM {self._table(table)} GROUP BY 1"

    def _activity(self, name: str, unit: str, usual: int) -> str:
        """How many people have how many rows."""
        ends = sorted({max(usual // step, 2) for step in _STEPS})
        cases = [f"WHEN n < {ends[0]} THEN 'below {ends[0]}'"]
        cases += [f"WHEN n < {end} THEN '{start} to {end - 1}'" for start, end in pairwise(ends)]
        of = f"SELECT {unit}, COUNT(*) AS n FROM {name} GROUP BY {unit}"
        return (
            f"SELECT CASE {' '.join(cases)} ELSE '{ends[-1]} and more' END AS in_rows, COUNT(*) AS people "
            f"FROM ({of}) AS activity GROUP BY 1"
        )

    def _of_both(self, table: Table, people: Sequence[Table]) -> Iterator[str]:
        """A question about rows by something of their people."""
        numbers = _numbers(table) or _opinions(table)
        for one in people if table.unit is not None else ():
            assert one.unit is not None
            assert table.unit is not None
            groups = _groups(one)
            if not groups or not numbers:
                continue
            if not self._costs.tells_means(table, numbers[0], _SHARE / max(groups[0].distinct, 1)):
                continue
            name, other = self._table(table), self._table(one)
            group = f"{other}.{self._name(groups[0].name)}"
            yield (
                f"SELECT {group}, AVG({name}.{self._name(numbers[0].name)}) AS average FROM {name} JOIN {other} "
                f"ON {name}.{self._name(table.unit.name)} = {other}.{self._name(one.unit.name)} GROUP BY {group}"
            )
            return

    def _of_parent(self, table: Table, tables: Sequence[Table]) -> Iterator[str]:
        """A question about rows by something of the rows that they belong to."""
        parent = next((one for one in tables if table.parent is not None and one.name == table.parent.to), None)
        if parent is None or table.parent is None:
            return
        name, other = self._table(table), self._table(parent)
        on = " AND ".join(
            f"{name}.{self._name(own)} = {other}.{self._name(key)}" for own, key in table.parent.columns.items()
        )
        for column in _groups(parent)[:1]:
            group = f"{other}.{self._name(column.name)}"
            yield f"SELECT {group}, COUNT(*) AS in_rows FROM {name} JOIN {other} ON {on} GROUP BY {group}"

    def _table(self, table: Table) -> str:
        if not table.schema:
            return self._name(table.name)
        return f"{self._name(table.schema)}.{self._name(table.name.removeprefix(f'{table.schema}.'))}"

    def _name(self, name: str) -> str:
        """A name as SQL writes it, in quotes where it needs them."""
        plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in self._words
        return name if plain else identifier(name)


def _groups(table: Table) -> list[Column]:
    """Columns to group by whose values are listed, or are true and false; those with the fewest values first."""
    listed = [c for c in table.of_role("artifact") if c.kind not in NUMBERS]
    known = [c for c in listed if c.kind == "boolean" or len(table.values.get(c.name, ())) > 1]
    return sorted(known, key=lambda column: column.distinct)


def _opinions(table: Table) -> list[Column]:
    """Columns of whole numbers of few values that people are counted by."""
    few = [c for c in table.of_role("artifact") if c.kind in NUMBERS and c.name in table.bounds and not c.is_id]
    return [c for c in few if c.kind == "integer" and table.bounds[c.name].high - table.bounds[c.name].low <= FEW]


def _things(table: Table) -> list[Column]:
    """What rows are about: the column that names them first."""
    things = [c for c in table.of_role("artifact") if c.is_id]
    return sorted(things, key=lambda column: column.name != table.unique)


def _numbers(table: Table) -> list[Column]:
    """Columns to take means of."""
    few = _opinions(table)
    summed = [*table.of_role("measure"), *table.of_role("artifact")]
    return [c for c in summed if c.kind in NUMBERS and c.name in table.bounds and not c.is_id and c not in few]


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"
