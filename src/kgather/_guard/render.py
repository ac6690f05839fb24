"""Writes expressions and plans as SQL, in a form that cannot raise an error on data.

Numbers are compared and computed as DOUBLE, unless both sides are whole numbers and compared as they are, so that no
cast and no sum leaves its range; a division by zero is infinite, or no number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
_POINT = 2.0**40
"""Into how many parts one is cut where a person's values are summed up."""
_LARGEST = 2.0**60
"""The largest value that is not cut off there."""
_INFIX = {"+", "-", "*", "/", "%"}
_FUNCTIONS = {"abs", "floor", "ceil"}
_OF_TEXTS = {"date_trunc", "date_part", "date_diff", "strftime", "lower", "upper", "trim", "length", "substring"} | {
    *("left", "right", "starts_with", "ends_with", "contains", "replace", "split_part", "strpos", "reverse"),
    *("regexp_matches", "regexp_full_match", "regexp_extract"),
}
_LEAST_OF: Mapping[str, str] = {"sqrt": ">= 0", "ln": "> 0", "log2": "> 0", "log10": "> 0"}
"""From what on functions of numbers are defined. Of an infinite number they are, too."""
_MOMENTS = "TIMESTAMP '0009-12-31 23:59:59.999999'", "TIMESTAMP '10000-01-01 00:00:00'"
"""The last moment before all dates that are shown, and the first one after them."""
_OF_NUMBERS = {"exp", "pow", "trunc"}
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
    def __init__(self, unit: Units, name: Naming, depth: int = 0) -> None:
        self.unit = unit
        self.name = name
        self.depth = depth

    def write(self, expr: Expr) -> str:
        if isinstance(expr, Bound):
            return self.name(expr)
        if isinstance(expr, Literal):
            return literal(expr)
        if isinstance(expr, Exists):
            return f"EXISTS (SELECT 1 {self._rows(expr, self._inside(expr))})"
        if isinstance(expr, PerUnit):
            inside = self._inside(expr)
            argument = "*" if expr.argument is None else inside.write(expr.argument)
            if expr.function == "SUM":
                return f"(SELECT {_sum(argument)} {self._rows(expr, inside)})"
            # Of several rows where one was declared, the least value: it follows from the person's own rows alone.
            function = {"VALUE": "MIN(", "COUNT_DISTINCT": "COUNT(DISTINCT "}.get(expr.function, f"{expr.function}(")
            return f"(SELECT {function}{argument}) {self._rows(expr, inside)})"
        return self._operation(expr)

    def _inside(self, expr: Exists | PerUnit) -> "_Writer":
        """What writes expressions over the rows of a subquery. They have an alias that nothing else has: a table of the
        same name around would be hidden, and the condition would be about everybody's rows."""
        alias = _alias(self.depth + 1)

        def name(bound: Bound) -> str:
            return f"{alias}.{identifier(bound.column)}" if bound.table == expr.table else self.name(bound)

        return _Writer(self.unit, name, self.depth + 1)

    def _rows(self, expr: Exists | PerUnit, inside: "_Writer") -> str:
        alias = _alias(inside.depth)
        looked_up = "".join(lookup(entry, inside.name) for entry in expr.lookups)
        unit = f"{alias}.{identifier(self.unit(expr.table))} = "
        if isinstance(expr, Exists) and expr.by:
            around = expr.by[0][0]
            unit += self.name(Bound(around.table, self.unit(around.table), around.kind))
            unit += "".join(f" AND {inside.name(there)} = {self.name(own)}" for own, there in expr.by)
        else:
            unit += "kg_unit.id"
        more = "" if expr.condition == TRUE else f" AND {inside.write(expr.condition)}"
        return f"FROM {identifier(expr.table)} AS {alias}{looked_up} WHERE {unit}{more}"

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
        if expr.name == "measure":
            return self._double(args[0])
        if expr.name == "//":
            return f"({self.write(args[0])} // {self.write(args[1])})"
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
        if expr.name in ("like", "ilike"):
            return f"({self.write(args[0])} {expr.name.upper()} {self.write(args[1])})"
        if expr.name in _OF_TEXTS:
            return f"{expr.name.upper()}({', '.join(self.write(arg) for arg in args)})"
        if expr.name in _LEAST_OF:
            number = self._double(args[0])
            return f"CASE WHEN {number} {_LEAST_OF[expr.name]} THEN {expr.name.upper()}({number}) END"
        if expr.name in _OF_NUMBERS:
            return f"{expr.name.upper()}({', '.join(self._double(arg) for arg in args)})"
        if expr.name == "text":
            return f"CAST({self.write(args[0])} AS VARCHAR)"
        if expr.name == "last_day":
            return f"TRY(LAST_DAY({self.write(args[0])}))"
        if expr.name == "moved":
            unit = "MONTHS" if args[2] == Literal("month", "text") else "DAYS"
            later = f"TRY(CAST({self.write(args[0])} AS TIMESTAMP) + TO_{unit}({self.write(args[1])}))"
            # As of columns, what is beyond the years that all operations take is missing.
            before, after = _MOMENTS
            return f"NULLIF(NULLIF(LEAST(GREATEST({later}, {before}), {after}), {before}), {after})"
        if expr.name == "concat":  # as ||, of which one NULL makes NULL
            return "(" + " || ".join(self.write(arg) for arg in args) + ")"
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


def _alias(depth: int) -> str:
    """What the rows of a subquery are called. No table and no column of a policy begins so."""
    return f"kg_of{depth}"


def _sum(argument: str) -> str:
    """Write the sum of one person's values: in fixed point, as a sum of fractions would depend on the order in which
    the engine reads them, and so on other people's rows. No value leaves its range; one that is missing is none."""
    value = f"LEAST(GREATEST(CAST({argument} AS DOUBLE), -{_LARGEST!r}), {_LARGEST!r})"
    there = f"CASE WHEN {argument} IS NOT NULL THEN {value} END"  # the ends would stand in for what is missing
    return f"CAST(SUM(CAST(ROUND({there} * {_POINT!r}) AS HUGEINT)) AS DOUBLE) / {_POINT!r}"


def lookup(entry: Lookup, name: Naming = column) -> str:
    """Write a lookup as a join."""
    kind = " JOIN" if entry.required else " LEFT JOIN"
    alias = "" if entry.table == entry.right.table else f" AS {identifier(entry.right.table)}"
    keys = " AND ".join(f"{name(left)} = {name(right)}" for left, right in entry.pairs)
    return f"{kind} {identifier(entry.table)}{alias} ON {keys}"


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


def argument(aggregate: Aggregate, at: int, unit: Units) -> str:
    """Write an argument, with its scale."""
    a, b = aggregate.scale[at]
    of = aggregate.arguments[at]
    written = column(of) if isinstance(of, Bound) else expression(of, unit)
    if (a, b) == (1, 0):
        return written
    return f"CAST('{a!r}' AS DOUBLE) * CAST({written} AS DOUBLE) + CAST('{b!r}' AS DOUBLE)"


def parts_of(aggregate: Aggregate) -> tuple[tuple[float, Aggregate], ...]:
    """What an aggregate is the sum of, each times a number: of those that are not COMBINED, itself."""
    return aggregate.parts or ((1, aggregate),)


def combined_sql(aggregate: Aggregate, values: Sequence[str]) -> str:
    """Write an aggregate as the sum of its parts, given as SQL: a count of nobody is 0."""
    parts = [
        f"coalesce({value}, 0)" if aggregate.parts or part.function.startswith("COUNT") else value
        for (_, part), value in zip(parts_of(aggregate), values, strict=True)
    ]
    factors = [factor for factor, _ in parts_of(aggregate)]
    return " + ".join(part if by == 1 else f"{by!r} * {part}" for by, part in zip(factors, parts, strict=True))


def aggregate_sql(aggregate: Aggregate, unit: Units) -> str:
    """Write an aggregate as a call."""
    if aggregate.function == "COUNT_UNITS":
        return "COUNT(DISTINCT kg_unit.id)"
    name = {"COUNT_DISTINCT": "COUNT", "HISTOGRAM_BINS": "HISTOGRAM"}.get(aggregate.function, aggregate.function)
    args = ", ".join(argument(aggregate, at, unit) for at in range(len(aggregate.arguments))) or "*"
    if aggregate.fraction is not None:
        args += f", {aggregate.fraction!r}"
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
    for inner in plan.inner:
        parts.append(f"-- kg_constants.{identifier(inner.name)}, an answer of its own:\n{explain(inner.plan, unit)}")
    for block in plan.blocks:
        questions: dict[Question, list[Aggregate]] = {block.question: []}
        combined = []
        for aggregate in block.aggregates:
            names = [f"{aggregate.name}_{at}" for at in range(1, len(aggregate.parts) + 1)]
            for name, (_, part) in zip(names or [aggregate.name], parts_of(aggregate), strict=True):
                questions.setdefault(part.question, []).append(replace(part, name=name))
            if names:
                combined.append(f"-- {aggregate.name} = {combined_sql(aggregate, names)}")
        lines = [f"-- {block.name}: {', '.join(block.columns)}"]
        if block.has_sets:
            sets = ", ".join(
                "(" + ", ".join(block.keys[at].name for at in chosen) + ")" for chosen in block.grouping_sets
            )
            lines.append(f"-- grouping sets {sets}")
        for question, aggregates in questions.items():
            if not aggregates and len(questions) > 1:
                continue
            what = "people" if question.universe.kind == "unit" else f"rows of {question.universe.table}"
            values = [f"{aggregate_sql(one, unit)} AS {identifier(one.name)}" for one in aggregates]
            lines.append(f"/* of {what} */\n{question_sql(question, values, unit)};")
        parts.append("\n".join([*lines, *combined]))
    return "\n\n".join([*parts, f"-- the answer\n{plan.sql};"])
