"""Writes expressions and plans as SQL, in a form that cannot raise an error on data.

Numbers are compared and computed as DOUBLE, unless both sides are whole numbers and compared as they are, so that no
cast and no sum leaves its range; a division by zero is infinite, or no number.
"""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

from kgather._guard.plan import (
    NUMERIC,
    TRUE,
    Aggregate,
    Bound,
    Exists,
    Expr,
    Literal,
    Lookup,
    Op,
    PerUnit,
    Plan,
    Question,
    Universe,
)

Naming = Callable[[Bound], str]
Units = Callable[[str], str]
_COMPARISONS = {
    "=": "=",
    "<>": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "is not distinct": "IS NOT DISTINCT FROM",
}
_INFIX = {"+", "-", "*", "/"}
_FUNCTIONS = {"abs", "floor", "ceil"}
_CHOICES = {"coalesce", "greatest", "least"}


def identifier(name: str) -> str:
    """Quote a name."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Quote a text."""
    return "'" + value.replace("'", "''") + "'"


def column(bound: Bound) -> str:
    """Write a column as table.column."""
    return f"{identifier(bound.table)}.{identifier(bound.column)}"


def literal(constant: Literal) -> str:
    """Write a constant."""
    value = constant.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return f"CAST('{float(value)!r}' AS DOUBLE)"
    if isinstance(value, datetime):
        return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
    if isinstance(value, str):
        return text(value)
    return f"CAST('{value.isoformat()}' AS DATE)"


def expression(expr: Expr, unit: Units, name: Naming = column) -> str:
    """Write an expression. name: how columns are written. unit: the privacy unit's column of a protected table; the
    unit that an Exists or a PerUnit is about is written `kg_unit.id`."""
    return _Writer(unit, name).write(expr)


class _Writer:
    def __init__(self, unit: Units, name: Naming) -> None:
        self.unit = unit
        self.name = name

    def write(self, expr: Expr) -> str:
        if isinstance(expr, Bound):
            return self.name(expr)
        if isinstance(expr, Literal):
            return literal(expr)
        if isinstance(expr, Exists):
            return f"EXISTS (SELECT 1 {self._rows(expr)})"
        if isinstance(expr, PerUnit):
            argument = "*" if expr.argument is None else self.name(expr.argument)
            if expr.function == "SUM":  # whole numbers could leave their range
                argument = f"CAST({argument} AS DOUBLE)"
            function = "ANY_VALUE" if expr.function == "VALUE" else expr.function
            return f"(SELECT {function}({argument}) {self._rows(expr)})"
        return self._operation(expr)

    def _rows(self, expr: Exists | PerUnit) -> str:
        table = identifier(expr.table)
        looked_up = "".join(lookup(entry, self.name) for entry in expr.lookups)
        unit = f"{table}.{identifier(self.unit(expr.table))} = kg_unit.id"
        more = "" if expr.condition == TRUE else f" AND {self.write(expr.condition)}"
        return f"FROM {table}{looked_up} WHERE {unit}{more}"

    def _operation(self, expr: Op) -> str:
        args = expr.args
        if expr.name in ("and", "or"):
            return "(" + f" {expr.name.upper()} ".join(self.write(arg) for arg in args) + ")"
        if expr.name in _COMPARISONS:
            whole = all(arg.kind == "integer" for arg in args)
            left, right = (self.write(arg) if whole else self._double(arg) for arg in args)
            return f"({left} {_COMPARISONS[expr.name]} {right})"
        if expr.name == "not":
            return f"(NOT {self.write(args[0])})"
        if expr.name.startswith("is "):
            return f"({self.write(args[0])} {expr.name.upper()})"
        if expr.name in _INFIX:
            return f"({self._double(args[0])} {expr.name} {self._double(args[1])})"
        if expr.name == "neg":
            return f"(- {self._double(args[0])})"
        if expr.name == "round":
            return f"ROUND({self._double(args[0])}, {self.write(args[1])})"
        if expr.name in _FUNCTIONS:
            return f"{expr.name.upper()}({self._double(args[0])})"
        if expr.name in _CHOICES:
            return f"{expr.name.upper()}(" + ", ".join(self._as(arg, expr) for arg in args) + ")"
        if expr.name == "case":
            whens = "".join(
                f" WHEN {self.write(args[i])} THEN {self._as(args[i + 1], expr)}" for i in range(0, len(args) - 1, 2)
            )
            return f"CASE{whens} ELSE {self._as(args[-1], expr)} END"
        if expr.name == "date_trunc":
            return f"DATE_TRUNC({self.write(args[0])}, {self.write(args[1])})"
        msg = f"no operation {expr.name!r}"
        raise AssertionError(msg)

    def _as(self, arg: Expr, whole: Op) -> str:
        return self._double(arg) if whole.kind == "number" else self.write(arg)

    def _double(self, arg: Expr) -> str:
        """An argument as DOUBLE, if it is a number that is none yet."""
        written = self.write(arg)
        if arg.kind not in NUMERIC or (isinstance(arg, Op) and arg.kind == "number"):
            return written
        if isinstance(arg, Literal) and isinstance(arg.value, float | Decimal):
            return written
        return f"CAST({written} AS DOUBLE)"


def lookup(entry: Lookup, name: Naming = column) -> str:
    """Write a lookup as a join."""
    kind = " JOIN" if entry.required else " LEFT JOIN"
    return f"{kind} {identifier(entry.right.table)} ON {name(entry.left)} = {name(entry.right)}"


def relation(universe: Universe, unit: Units) -> str:
    """Write a universe as the FROM of a SELECT that has a column kg_unit.id."""
    if universe.kind == "rows":
        first = identifier(universe.table or "")
        start = (
            f"FROM {first} JOIN kg_units AS kg_unit ON {first}.{identifier(unit(universe.table or ''))} = kg_unit.id"
        )
    else:
        start = "FROM kg_units AS kg_unit"
    tables = "".join(
        f" {'JOIN' if entry.required else 'LEFT JOIN'} {identifier(entry.table)}"
        f" ON {identifier(entry.table)}.{identifier(unit(entry.table))} = kg_unit.id"
        for entry in universe.references
    )
    return start + tables + "".join(lookup(entry) for entry in universe.lookups)


def argument(aggregate: Aggregate, at: int) -> str:
    """Write an argument, with its scale."""
    a, b = aggregate.scale[at]
    written = column(aggregate.arguments[at])
    if (a, b) == (1, 0):
        return written
    return f"CAST('{a!r}' AS DOUBLE) * CAST({written} AS DOUBLE) + CAST('{b!r}' AS DOUBLE)"


def aggregate_sql(aggregate: Aggregate) -> str:
    """Write an aggregate as a call."""
    if aggregate.function == "COUNT_UNITS":
        return "COUNT(DISTINCT kg_unit.id)"
    name = "COUNT" if aggregate.function == "COUNT_DISTINCT" else aggregate.function
    args = ", ".join(argument(aggregate, at) for at in range(len(aggregate.arguments))) or "*"
    return f"{name}({'DISTINCT ' if aggregate.distinct else ''}{args})"


def question_sql(question: Question, values: list[str], unit: Units) -> str:
    """Write a question as one SELECT over the protected tables: what would run if there were no guard."""
    keys = [expression(key, unit) for key in question.keys]
    where = "" if question.condition == TRUE else f"\nWHERE {expression(question.condition, unit)}"
    group = "\nGROUP BY " + ", ".join(keys) if keys else ""
    return f"SELECT {', '.join([*keys, *values]) or '1'}\n{relation(question.universe, unit)}{where}{group}"


def explain(plan: Plan, unit: Units) -> str:
    """Write a plan as SQL to read: each block's questions, then what is made of their answers. Touches no data."""
    parts = []
    for block in plan.blocks:
        questions: dict[Question, list[Aggregate]] = {block.question: []}
        for aggregate in block.aggregates:
            questions.setdefault(aggregate.question, []).append(aggregate)
        lines = [f"-- {block.name}: {', '.join(block.columns)}"]
        if len(block.grouping_sets) > 1:
            sets = ", ".join(
                "(" + ", ".join(block.keys[at].name for at in chosen) + ")" for chosen in block.grouping_sets
            )
            lines.append(f"-- grouping sets {sets}")
        for question, aggregates in questions.items():
            if not aggregates and len(questions) > 1:
                continue
            what = "privacy units" if question.universe.kind == "unit" else f"rows of {question.universe.table}"
            values = [f"{aggregate_sql(one)} AS {identifier(one.name)}" for one in aggregates]
            lines.append(f"/* atoms of {what} */\n{question_sql(question, values, unit)};")
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"-- the answer\n{plan.sql};"])
