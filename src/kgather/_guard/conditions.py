"""Compiles expressions over rows of people into the algebra of plan.py; what is not listed here is refused.

Conditions and values know AND OR NOT, comparisons, BETWEEN, IN, LIKE, IS [NOT] NULL/TRUE/FALSE/DISTINCT FROM, the
operators + - * / %, CASE, COALESCE ABS ROUND FLOOR CEIL GREATEST LEAST, comparisons of tuples, functions of texts, and
the parts of dates.
What a column or another leaf means, and whether it may stand here, says whoever compiles. A date that is shown by a
grain is such a leaf: `grain`, of unit and column, which only what the grain tells of may be asked of.
"""

import math
import re
from collections.abc import Callable, Collection
from datetime import date, datetime, time, timedelta
from decimal import Decimal, localcontext
from typing import NamedTuple

import duckdb
from sqlglot import exp

from kgather._guard import dates
from kgather._guard.parsing import parser
from kgather._guard.plan import NUMERIC, Bound, Exists, Expr, Kind, Literal, Op, PerUnit, Value, children
from kgather._guard.refused import TOO_COMPLEX, Refused, Rule, refused

Leaf = Callable[[exp.Expr], Expr | None]
Digits = Callable[[Expr], int | None]

_SIZE = 10_000
"""How many operations one expression may have, after everything in it is spelt out."""
_DECIMALS = 15
_HUGE = 2**127
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is not distinct",
    exp.NullSafeNEQ: "is not distinct",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_OF_TEXT: dict[type[exp.Expr], str] = {
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Trim: "trim",
    exp.Length: "length",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
    exp.Left: "left",
    exp.Right: "right",
    exp.Substring: "substring",
    exp.Reverse: "reverse",
    exp.StrPosition: "strpos",
}
_ANSWERS: dict[str, Kind] = {
    "length": "integer",
    "strpos": "integer",
    "starts_with": "boolean",
    "ends_with": "boolean",
    "contains": "boolean",
}
"""What functions of texts give that is no text."""
_OF_NUMBERS: dict[type[exp.Expr], str] = {
    exp.Sqrt: "sqrt",
    exp.Ln: "ln",
    exp.Exp: "exp",
    exp.Trunc: "trunc",
}
_PATTERNS: dict[type[exp.Expr], str] = {
    exp.RegexpLike: "regexp_matches",
    exp.RegexpFullMatch: "regexp_full_match",
    exp.SimilarTo: "regexp_full_match",
    exp.RegexpExtract: "regexp_extract",
}
_TWICE = {"sqrt", "ln", "log2", "log10"}
"""What is written with its argument twice: once to see whether it is defined."""
_WITHIN = 4  # how many of them may be within one another
_PARTS_OF_CALLS = ("this", "expression", "substr", "start", "length")
_LONGER = 16  # characters that REPLACE may put for others
_PATTERN = 200  # characters of a regular expression
_CONDITIONS = (exp.Predicate, exp.Connector, exp.Not)
_CHARACTERS = 10_000  # of a text, that may be counted off
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "doy",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.TimeToUnix: "epoch",
}
_KNOWN = (
    "Over rows of people there are comparisons, AND, OR, NOT, BETWEEN, IN, IS, + - * /, CASE, COALESCE, ABS, "
    "ROUND, FLOOR, CEIL, GREATEST and LEAST"
)
_MORE = (
    "Over rows of people there are comparisons, AND, OR, NOT, BETWEEN, IN, LIKE, IS, + - * / % //, CASE, COALESCE, "
    "ABS, ROUND, FLOOR, CEIL, GREATEST, LEAST, ||, LOWER, UPPER, TRIM, LENGTH, SUBSTR, LEFT, RIGHT, STARTS_WITH, "
    "ENDS_WITH, CONTAINS, STRFTIME, and the parts of dates"
)
GRAIN = "grain"
"""The leaf that a column is which is shown by a grain; it is in no finished expression."""
_ROUNDING: dict[type[exp.Expr], str] = {exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil"}
_CHOICES: dict[type[exp.Expr], str] = {exp.Coalesce: "coalesce", exp.Greatest: "greatest", exp.Least: "least"}
_CAST_KINDS: dict[exp.DType, Kind] = {
    exp.DType.TINYINT: "integer",
    exp.DType.SMALLINT: "integer",
    exp.DType.INT: "integer",
    exp.DType.BIGINT: "integer",
    exp.DType.FLOAT: "number",
    exp.DType.DOUBLE: "number",
    exp.DType.VARCHAR: "text",
    exp.DType.TEXT: "text",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp",
}
_NULL = Literal(None, "null")
_EPOCH = date(1970, 1, 1)
_STEPS = {"day": (1, 0), "week": (7, 0), "month": (0, 1), "quarter": (0, 3), "year": (0, 12)}
"""How many days, or months, a unit of an interval has."""


class _When(NamedTuple):
    """One branch of CASE."""

    condition: Expr
    value: Expr


class Terms:
    """Compiles the expressions of one clause. leaf: what a node means that is no operation, None if it is one. more:
    with LIKE, functions of texts, % and //, and the parts of dates, too. conditions: what compiles the conditions
    inside values, where fewer columns may stand in them. digits: how many digits after the point a value has, where it
    is computed as DECIMAL: what is computed is rounded to them, so that 0.06 + 0.01 is 0.07."""

    def __init__(
        self,
        leaf: Leaf,
        rule: Rule = Rule.CONDITIONS,
        *,
        more: bool = False,
        conditions: "Terms | None" = None,
        digits: Digits | None = None,
    ) -> None:
        self.leaf = leaf
        self.rule = rule
        self.more = more
        self.conditions = conditions
        self.digits = digits

    def condition(self, node: exp.Expr) -> Expr:
        """Compile a condition. Raises Refused for what is none, or not in the lists."""
        expr = self.value(node)
        if expr.kind not in ("boolean", "null"):
            raise refused(self.rule, "This is no condition", node, allow="Compare it with something")
        return expr

    def value(self, node: exp.Expr) -> Expr:
        """Compile an expression of any type. Raises Refused for what is not in the lists."""
        expr = self._value(node)
        if expr.size > _SIZE:
            reason = f"An expression of more than {_SIZE} operations"
            raise refused(Rule.LIMITS, reason, allow="Ask for less at once", code=TOO_COMPLEX)
        return expr

    def _value(self, node: exp.Expr) -> Expr:
        node = node.unnest()
        if self.conditions is not None and isinstance(node, (*_CONDITIONS, *_OF_TEXT)):
            return self.conditions.value(node)
        known = self.leaf(node)
        if known is not None:
            if isinstance(known, Op) and known.name == GRAIN:
                raise self.by_grain(known, node)
            return known
        if isinstance(node, exp.And | exp.Or):
            parts = [self.condition(part) for part in node.flatten()]
            return Op("and" if isinstance(node, exp.And) else "or", tuple(parts))
        if isinstance(node, exp.Not):
            return Op("not", (self.condition(node.this),))
        if type(node) in _COMPARISONS:
            return self._comparison(node)
        if isinstance(node, exp.Between):
            return Op(
                "and",
                (self._compare(">=", node.this, node.args["low"]), self._compare("<=", node.this, node.args["high"])),
            )
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Is):
            return self._is(node)
        if type(node) in _ARITHMETIC or isinstance(node, exp.Neg):
            return self._arithmetic(node)
        if type(node) in _ROUNDING:
            return Op(_ROUNDING[type(node)], (self.number(node.this),), "number")
        if isinstance(node, exp.Round):
            return self._round(node)
        if type(node) in _CHOICES:
            parts = self._alike([self.value(part) for part in [node.this, *node.expressions]], node)
            return Op(_CHOICES[type(node)], tuple(parts), _kind(parts))
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.If):
            no = node.args.get("false")
            condition = (self.conditions or self).condition(node.this)
            return self._cases([_When(condition, self.value(node.args["true"]))], no, node)
        found = self._more(node) if self.more else None
        if found is None:
            found = constant(node) or self._same(node)
        if found is None:
            raise self._unknown(node)
        return found

    def _same(self, node: exp.Expr) -> Expr | None:
        """What a cast means that no value can fail: of a number, or a truth value, to a number which holds it; of
        anything to text; of a date to another. None of other casts."""
        if not self.more or not isinstance(node, exp.Cast) or isinstance(node, exp.TryCast):
            return None
        if node.to.this == exp.DType.DECIMAL:
            return self._as_decimal(node)
        if node.to.expressions:
            return None
        if node.to.this in (exp.DType.VARCHAR, exp.DType.TEXT):
            return self.as_text(node.this)
        if node.to.this == exp.DType.DATE:
            return self._as_date(node)
        if node.to.this in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ):
            return self._as_moment(node)
        to = _CAST_KINDS.get(node.to.this)
        if node.to.this not in (exp.DType.INT, exp.DType.BIGINT, exp.DType.DOUBLE):
            return None
        of = self.value(node.this)
        if of.kind == "boolean":
            no = Op("is false", (of,))
            return Op("case", (of, Literal(1, "integer"), no, Literal(0, "integer"), _NULL), "integer")
        return of if of.kind == to or (of.kind == "integer" and node.to.this == exp.DType.DOUBLE) else None

    def as_text(self, node: exp.Expr) -> Expr | None:
        """A value as VARCHAR; None of what may be written in several ways, as it was computed."""
        of = self.operand(node)
        if isinstance(of, Op) and of.name == GRAIN:
            return Op("strftime", (cut(of), Literal("%Y-%m-%d", "text")), "text") if _is_whole(of) else None
        if isinstance(of, Op) and of.name == "date_trunc":
            return Op("strftime", (of, Literal("%Y-%m-%d %H:%M:%S", "text")), "text")
        if of.kind in ("text", "null"):
            return of
        if of.kind in ("integer", "boolean") or (of.kind == "date" and isinstance(of, Bound)):
            return Op("text", (of,), "text")
        return None

    def _as_date(self, node: exp.Cast) -> Expr | None:
        """A date without its time of day, as it is shown."""
        of = self.operand(node.this)
        if isinstance(of, Op) and of.name == GRAIN:
            if of.args[0] != Literal("day", "text"):
                raise self.by_grain(of, node.this)
            return cut(of)
        if of.kind in ("date", "timestamp") and isinstance(of, Op):
            return Op("date_trunc", (Literal("day", "text"), of), "timestamp")
        return of if of.kind == "date" else None

    def _as_moment(self, node: exp.Cast) -> Expr | None:
        """A date, or a moment, as TIMESTAMP."""
        of = self.operand(node.this)
        if isinstance(of, Op) and of.name == GRAIN:
            if of.args[0] != Literal("day", "text"):
                raise self.by_grain(of, node.this)
            return cut(of)
        if of.kind == "date" and not isinstance(of, Literal):
            return Op("date_trunc", (Literal("day", "text"), of), "timestamp")
        return of if of.kind == "timestamp" else None

    def _as_decimal(self, node: exp.Cast) -> Expr | None:
        """A number rounded to the digits of a DECIMAL; None of what is no number. One that is too long for the type
        stays as it is: DuckDB would fail on it, and say so."""
        given = [constant(one.this) for one in node.to.expressions]
        digits = given[1:2] or [Literal(0 if given else 3, "integer")]
        of = self.value(node.this)
        if of.kind not in NUMERIC or digits[0] is None or not 0 <= int(str(digits[0].value)) <= _DECIMALS:
            return None
        return Op("round", (of, digits[0]), "number")

    def _of_pattern(self, node: exp.Expr) -> Expr | None:
        """A match of a regular expression, which is a constant that DuckDB reads; None of another one."""
        name, pattern = _PATTERNS[type(node)], constant(node.expression)
        flags = [value for part, value in node.args.items() if part in ("flag", "parameters", "position") and value]
        if pattern is None or pattern.kind != "text" or flags:
            return None
        if len(str(pattern.value)) > _PATTERN or not is_pattern(str(pattern.value)):
            return None
        if name != "regexp_extract":
            return Op(name, (self.text(node.this), pattern))
        group = constant(node.args["group"]) if node.args.get("group") is not None else Literal(0, "integer")
        if group is None or group.value not in range(str(pattern.value).count("(") + 1):
            return None
        return Op(name, (self.text(node.this), pattern, group), "text")

    def _more(self, node: exp.Expr) -> Expr | None:
        """An operation over texts, whole numbers or dates; None of another one."""
        if type(node) in _PATTERNS:
            return self._of_pattern(node)
        if type(node) in _OF_NUMBERS and not [part for part, value in node.args.items() if part != "this" and value]:
            return self._not_deep(Op(_OF_NUMBERS[type(node)], (self.number(node.this),), "number"), node)
        if isinstance(node, exp.Log):
            return self._log(node)
        if isinstance(node, exp.Pow):
            return self._pow(node)
        if isinstance(node, exp.Nullif):
            value = self.value(node.this)
            if _deep(value, {"case"}) >= _WITHIN:
                raise refused(self.rule, f"More than {_WITHIN} of NULLIF and CASE within one another", node)
            equal = self._compare("=", node.this, node.expression)
            return Op("case", (equal, _NULL, value), value.kind)
        if type(node) is exp.Concat:  # not CONCAT_WS, which is one to the parser
            texts = [self.as_text(part) for part in node.expressions]
            parts = [Op("coalesce", (one, Literal("", "text")), "text") for one in texts if one is not None]
            return Op("concat", tuple(parts), "text") if len(parts) == len(texts) else None
        if isinstance(node, exp.Replace | exp.SplitPart):
            return self._cut_text(node)
        if isinstance(node, exp.LastDay) and not node.args.get("unit"):
            return self._last_day(node)
        moved = self.moved(node)
        if moved is not None:
            return moved
        if isinstance(node, exp.Like | exp.ILike):
            return self._like(node)
        if isinstance(node, exp.Mod):
            return constant(node) or Op("%", (self.number(node.this), self.number(node.expression)), "number")
        if isinstance(node, exp.IntDiv):
            return self._int_div(node)
        if type(node) in _OF_TEXT:
            return self._of_text(node)
        if isinstance(node, exp.DPipe):
            return Op("concat", tuple(self.as_text(part) or self.text(part) for part in node.flatten()), "text")
        part = part_of_date(node)
        if part is not None:
            return self._part(part, node)
        if isinstance(node, exp.TimeToStr):
            return self._formatted(node.this, constant(node.args["format"]), node)
        if isinstance(node, exp.Monthname | exp.Dayname) and not node.args.get("abbreviated"):
            fmt = "%B" if isinstance(node, exp.Monthname) else "%A"
            return self._formatted(node.this, Literal(fmt, "text"), node)
        if isinstance(node, exp.DateDiff):
            unit = node.args["unit"].name.lower() if node.args.get("unit") is not None else "day"
            return self._between(unit, node.expression, node.this, node)
        return None

    def _like(self, node: exp.Like | exp.ILike) -> Expr:
        pattern = constant(node.expression)
        if pattern is None or pattern.kind != "text":
            raise refused(self.rule, "LIKE takes a text as its pattern", node)
        like = Op("like" if isinstance(node, exp.Like) else "ilike", (self.text(node.this), pattern))
        return Op("not", (like,)) if node.args.get("negate") else like

    def _int_div(self, node: exp.IntDiv) -> Expr:
        divisor, dividend = constant(node.expression), self.number(node.this)
        if divisor is None or not isinstance(divisor.value, int) or divisor.value < 1 or dividend.kind != "integer":
            raise refused(self.rule, "// takes a whole number, and a constant one above zero", node)
        return Op("//", (dividend, divisor), "integer")

    def text(self, node: exp.Expr) -> Expr:
        """Compile a text."""
        expr = self.value(node)
        if expr.kind not in ("text", "null"):
            raise refused(self.rule, f"{_a(expr.kind)} stands where a text has to", node)
        return expr

    def _of_text(self, node: exp.Expr) -> Expr:
        name = _OF_TEXT[type(node)]
        if any(value for part, value in node.args.items() if part not in _PARTS_OF_CALLS):
            raise refused(self.rule, f"{name.upper()} with more than it takes here", node)
        more = [node.args[part] for part in _PARTS_OF_CALLS[1:] if node.args.get(part) is not None]
        constants = [constant(one) for one in more]
        wanted: Kind = "integer" if name in ("left", "right", "substring") else "text"
        args: list[Expr] = []
        for one in constants:
            if one is None or one.kind != wanted or (isinstance(one.value, int) and abs(one.value) > _CHARACTERS):
                raise refused(self.rule, f"{name.upper()} takes constants besides a text", node)
            args.append(one)
        return Op(name, (self.text(node.this), *args), _ANSWERS.get(name, "text"))

    def _cut_text(self, node: exp.Expr) -> Expr | None:
        """REPLACE and SPLIT_PART, by constants that make no text much longer; None by others."""
        name = "replace" if isinstance(node, exp.Replace) else "split_part"
        parts = ("expression", "replacement") if name == "replace" else ("delimiter", "part_index")
        first, second = (constant(node.args[part]) if node.args.get(part) is not None else None for part in parts)
        if first is None or second is None or first.kind != "text" or not first.value:
            return None
        if isinstance(second.value, str) and name == "replace":
            known = len(second.value) <= max(_LONGER, len(str(first.value)))
        else:
            known = second.kind == "integer" and name != "replace" and abs(int(str(second.value))) <= _CHARACTERS
        return Op(name, (self.text(node.this), first, second), "text") if known else None

    def _log(self, node: exp.Log) -> Expr | None:
        """LOG, LOG10 and LOG2; None to another base."""
        base = 10 if node.expression is None else getattr(constant(node.this), "value", None)
        of = node.this if node.expression is None else node.expression
        return self._not_deep(Op(f"log{base}", (self.number(of),), "number"), node) if base in (2, 10) else None

    def _not_deep(self, made: Op, node: exp.Expr) -> Op:
        """An operation as it is. Raises Refused where many that write their argument twice are within one another: what
        is written would double with each of them."""
        if _deep(made, _TWICE) > _WITHIN:
            reason = f"More than {_WITHIN} of SQRT, LN and LOG within one another"
            raise refused(self.rule, reason, node)
        return made

    def _pow(self, node: exp.Pow) -> Expr | None:
        """A power whose exponent is a constant that is not large; None of another one."""
        by = constant(node.expression)
        if by is None or not isinstance(by.value, int | float) or abs(by.value) > _DECIMALS:
            return None
        return Op("pow", (self.number(node.this), by), "number")

    # Dates

    def _last_day(self, node: exp.LastDay) -> Expr | None:
        """The last day of a month, which its first day tells; None where the grain does not tell it."""
        of = self.operand(node.this)
        if isinstance(of, Op) and of.name == GRAIN:
            if not dates.is_coarse("month", str(of.args[0].value)):  # type: ignore[union-attr]
                return None
            of = of.args[1]
        if of.kind not in ("date", "timestamp"):
            return None
        return Op("last_day", (Op("date_trunc", (Literal("month", "text"), of), "timestamp"),), "date")

    def moved(self, node: exp.Expr) -> Expr | None:
        """A date that is shown by the day, so many days or months later; None of another expression."""
        if isinstance(node, exp.DateAdd):
            node = exp.Add(this=node.this, expression=node.expression)
        if not isinstance(node, exp.Add | exp.Sub) or constant(node) is not None:
            return None
        start, by = (one.unnest() for one in (node.this, node.expression))
        if isinstance(node, exp.Add) and isinstance(start, exp.Interval):
            start, by = by, start
        if isinstance(by, exp.Interval):
            many, unit = constant(by.this) if by.this is not None else None, by.args.get("unit")
            days, months = _STEPS.get(unit.name.lower().removesuffix("s") if unit is not None else "", (0, 0))
        else:
            many, days, months = constant(by), 1, 0
        if many is None or not (days or months) or not re.fullmatch(r"-?[0-9]{1,5}", str(many.value)):
            return None
        known = self.leaf(start)
        if known is None or _reads_rows(known) or _is_moved(known):
            return None
        if isinstance(known, Op) and known.name == GRAIN:
            if not _is_whole(known):
                return None
            known = cut(known)
        elif known.kind not in ("date", "timestamp"):
            return None
        number = int(str(many.value)) * (days or months) * (-1 if isinstance(node, exp.Sub) else 1)
        unit_ = Literal("day" if days else "month", "text")
        return Op("moved", (known, Literal(number, "integer"), unit_), "timestamp")

    def operand(self, node: exp.Expr) -> Expr:
        """A value, or a column that is shown by a grain."""
        known = self.leaf(node.unnest())
        return known if isinstance(known, Op) and known.name == GRAIN else self.value(node)

    def by_grain(self, of: Op, node: exp.Expr) -> Refused:
        """The refusal of what lies within the grain of a date."""
        unit = str(of.args[0].value).upper()  # type: ignore[union-attr]
        name = node.sql("duckdb")[:60]
        allow = (
            f"Use DATE_TRUNC('{unit.lower()}', {name}), or compare it by < or >= with the first day of a {unit.lower()}"
        )
        return refused(self.rule, f"{name} is shown by {unit}: what it is within one is not told", node, allow=allow)

    def _part(self, part: "Part", node: exp.Expr) -> Expr:
        of = self.operand(part.of)
        if isinstance(of, Op) and of.name == GRAIN:
            grain = str(of.args[0].value)  # type: ignore[union-attr]
            if part.name not in dates.PARTS[grain] and (part.name, grain) != ("epoch", "day"):
                raise self.by_grain(of, part.of)
            of = cut(of)
        if of.kind not in ("date", "timestamp"):
            raise refused(self.rule, f"{part.name.upper()} of what is no date", node)
        if part.name == "epoch" and isinstance(of, Op) and of.name == "date_trunc":
            since = Op("date_diff", (Literal("day", "text"), Literal(_EPOCH, "date"), of), "integer")
            return Op("*", (since, Literal(86_400, "integer")), "number")
        if part.name not in dates.PARTS["day"]:
            raise refused(self.rule, f"{part.name.upper()[:30]} of a date", node, allow=f"There are {_LISTED}")
        return Op("date_part", (Literal(part.name, "text"), of), "integer")

    def _between(self, unit: str, first: exp.Expr, last: exp.Expr, node: exp.Expr) -> Expr:
        """How many beginnings of a unit lie between two dates."""
        if unit not in dates.UNITS:
            allow = f"There are {', '.join(dates.UNITS)}"
            raise refused(self.rule, f"DATE_DIFF by {unit.upper()[:30]}", node, allow=allow)
        parts: list[Expr] = []
        for one in (first, last):
            of = self.operand(one)
            if isinstance(of, Op) and of.name == GRAIN:
                if not dates.is_coarse(unit, str(of.args[0].value)):  # type: ignore[union-attr]
                    raise self.by_grain(of, one)
                of = cut(of)
            if isinstance(of, Literal) and of.kind == "text":
                of = coerced(of, "date", one, self.rule)
            if of.kind not in ("date", "timestamp"):
                raise refused(self.rule, "DATE_DIFF of what is no date", node)
            parts.append(of)
        return Op("date_diff", (Literal(unit, "text"), *parts), "integer")

    def _formatted(self, date_: exp.Expr, fmt: Literal | None, node: exp.Expr) -> Expr:
        of = self.operand(date_)
        if fmt is None or fmt.kind != "text":
            raise refused(self.rule, "STRFTIME takes a text as its format", node)
        grain = str(of.args[0].value) if isinstance(of, Op) and of.name == GRAIN else "day"  # type: ignore[union-attr]
        if of.kind not in ("date", "timestamp"):
            raise refused(self.rule, "STRFTIME of what is no date", node)
        if not dates.tells(str(fmt.value), grain):
            reason = f"This format says more than a date by {grain}"
            allow = "By month there are %Y, %y, %m, %b and %B; by day, %d and more"
            raise refused(self.rule, reason, node, allow=allow)
        return Op("strftime", (cut(of) if isinstance(of, Op) and of.name == GRAIN else of, fmt), "text")

    def _unknown(self, node: exp.Expr) -> Refused:
        allow = _MORE if self.more else _KNOWN
        if isinstance(node, exp.Cast):
            return refused(self.rule, "A cast over rows of people, which could fail on some of them", node)
        if isinstance(node, exp.AggFunc | exp.Window | exp.Filter):
            return refused(self.rule, f"{node.key.upper()} inside a condition or a key", node)
        return refused(self.rule, f"{node.key.upper()} over rows of people", node, allow=allow)

    def number(self, node: exp.Expr) -> Expr:
        """Compile a number."""
        expr = self.value(node)
        if isinstance(expr, Literal) and expr.kind == "text":
            expr = coerced(expr, "number", node)
        if expr.kind not in (*NUMERIC, "null"):
            raise refused(self.rule, f"{_a(expr.kind)} stands where a number has to", node)
        return expr

    def _arithmetic(self, node: exp.Expr) -> Expr:
        folded = constant(node)
        if folded is not None:
            return folded
        later = self.moved(node) if self.more else None
        if later is not None:
            return later
        if isinstance(node, exp.Neg):
            return Op("neg", (self.number(node.this),), "number")
        if isinstance(node, exp.Sub) and self.more:
            ends = [self.operand(one) for one in (node.this, node.expression)]
            if all(one.kind == "date" for one in ends):  # of two dates, how many days lie between them
                return self._between("day", node.expression, node.this, node)
        return self._exact(
            Op(_ARITHMETIC[type(node)], (self.number(node.this), self.number(node.expression)), "number")
        )

    def _exact(self, made: Op) -> Op:
        """A number as DECIMAL has it: no sum or product of those has digits beyond it."""
        digits = self.digits(made) if self.digits is not None else None
        return Op("round", (made, Literal(digits, "integer")), "number") if digits else made

    def _round(self, node: exp.Round) -> Expr:
        digits = constant(node.args["decimals"]) if node.args.get("decimals") is not None else Literal(0, "integer")
        if digits is None or not isinstance(digits.value, int) or abs(digits.value) > _DECIMALS:
            raise refused(self.rule, "ROUND takes a number of digits", node)
        return Op("round", (self.number(node.this), digits), "number")

    def _comparison(self, node: exp.Expr) -> Expr:
        left, right = node.this.unnest(), node.expression.unnest()
        if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
            equal = self._tuples(left, right, node)
            if isinstance(node, exp.EQ | exp.NullSafeEQ):
                return equal
            if isinstance(node, exp.NEQ | exp.NullSafeNEQ):
                return Op("not", (equal,))
            raise refused(self.rule, "Tuples are compared by = and <> only", node)
        compared = self._compare(_COMPARISONS[type(node)], node.this, node.expression)
        return Op("not", (compared,)) if isinstance(node, exp.NullSafeNEQ) else compared

    def _tuples(self, left: exp.Expr, right: exp.Expr, node: exp.Expr) -> Expr:
        """Whether tuples are equal. NULL equals NULL in them, as DuckDB has it."""
        if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
            raise refused(self.rule, "A tuple is compared with a tuple", node)
        if len(left.expressions) != len(right.expressions) or not left.expressions:
            raise refused(self.rule, "The tuples have different lengths", node)
        pairs = zip(left.expressions, right.expressions, strict=True)
        return Op("and", tuple(self._compare("is not distinct", one, other) for one, other in pairs))

    def _compare(self, name: str, one: exp.Expr, other: exp.Expr) -> Expr:
        operands = [self.operand(one), self.operand(other)]
        at = next((at for at, of in enumerate(operands) if isinstance(of, Op) and of.name == GRAIN), None)
        if at is not None:
            return self._by_its_grain(name, operands, at, (one, other)[at])
        if {part.kind for part in operands} == {"date", "timestamp"} and not any(
            isinstance(part, Literal) for part in operands
        ):
            return Op(name, tuple(operands))
        parts = self._alike(operands, one)
        kind = _kind(parts)
        if kind == "other":
            raise refused(self.rule, "A column of this type cannot be compared", one)
        if kind == "boolean" and name in ("<", "<=", ">", ">="):
            raise refused(self.rule, "Conditions are compared by = and <> only", one)
        return Op(name, tuple(parts))

    def _by_its_grain(self, name: str, operands: list[Expr], at: int, node: exp.Expr) -> Expr:
        of, other = operands[at], operands[1 - at]
        assert isinstance(of, Op)
        if isinstance(other, Op) and other.name == GRAIN and _is_whole(of) and _is_whole(other):
            return Op(name, tuple(cut(one) for one in operands if isinstance(one, Op)))
        if not isinstance(other, Literal) and _is_whole(of) and other.kind in ("date", "timestamp"):
            if not (isinstance(other, Op) and other.name == GRAIN):
                return Op(name, tuple(cut(of) if one is of else one for one in operands))
            if other.args[0] == Literal("day", "text"):
                return Op(name, tuple(cut(one) for one in operands if isinstance(one, Op)))
        if not isinstance(other, Literal):
            raise self.by_grain(of, node)
        (constant_,) = (one for one in self._alike([of, other], node) if isinstance(one, Literal))
        turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(name, name) if at else name
        found = dates.compared(turned, cut(of), constant_)
        if found is None:
            raise self.by_grain(of, node)
        return found

    def equal(self, one: exp.Expr, other: exp.Expr) -> Expr:
        """Compile that two expressions are equal."""
        return self._compare("=", one, other)

    def _in(self, node: exp.In) -> Expr:
        if node.args.get("query") is not None:
            raise refused(Rule.SUBQUERIES, "IN with a subquery that does not name the privacy unit", node)
        left = node.this.unnest()
        if isinstance(left, exp.Tuple):
            parts = [self._tuples(left, part.unnest(), node) for part in node.expressions]
        else:
            parts = [self._compare("=", left, part) for part in node.expressions]
        if not parts:
            raise refused(self.rule, "IN of nothing", node)
        return parts[0] if len(parts) == 1 else Op("or", tuple(parts))

    def _is(self, node: exp.Is) -> Expr:
        what = node.expression
        if isinstance(what, exp.Null):
            of = self.operand(node.this)
            return Op("is null", (cut(of) if isinstance(of, Op) and of.name == GRAIN else of,))
        if isinstance(what, exp.Boolean):
            return Op("is true" if what.this else "is false", (self.condition(node.this),))
        raise refused(self.rule, "IS takes NULL, TRUE, FALSE or DISTINCT FROM", node)

    def _case(self, node: exp.Case) -> Expr:
        whens = []
        for when in node.args["ifs"]:
            terms = self.conditions or self
            condition = terms.condition(when.this) if node.this is None else terms.equal(node.this, when.this)
            whens.append(_When(condition, self.value(when.args["true"])))
        return self._cases(whens, node.args.get("default"), node)

    def _cases(self, whens: list[_When], default: exp.Expr | None, node: exp.Expr) -> Expr:
        values = [when.value for when in whens] + [self.value(default) if default is not None else _NULL]
        values = self._alike(values, node)
        args: list[Expr] = []
        for when, value in zip(whens, values, strict=False):
            args += [when.condition, value]
        return Op("case", (*args, values[-1]), _kind(values))

    def _alike(self, parts: list[Expr], node: exp.Expr) -> list[Expr]:
        """Bring constants to the type of what they are compared with; refuse what has no common type."""
        kinds = {part.kind for part in parts if not isinstance(part, Literal)} or {part.kind for part in parts}
        kinds.discard("null")
        if kinds and kinds <= set(NUMERIC):
            wanted: Kind = "number"
        elif len(kinds) == 1:
            wanted = kinds.pop()
        elif not kinds:
            return parts
        else:
            raise refused(
                self.rule, f"{' and '.join([_a(one) for one in sorted(kinds)]).capitalize()} are compared", node
            )
        return [coerced(part, wanted, node, self.rule) if isinstance(part, Literal) else part for part in parts]


def _is_whole(of: Op) -> bool:
    """Whether a column is shown as it is: days by day."""
    return of.kind == "date" and of.args[0] == Literal("day", "text")


def _reads_rows(expr: Expr) -> bool:
    """Whether an expression reads other rows than its own: DuckDB's TRY takes none of those."""
    return isinstance(expr, Exists | PerUnit) or any(_reads_rows(one) for one in children(expr))


def _is_moved(expr: Expr) -> bool:
    """Whether an expression moves a date. Each writes its date several times."""
    return _deep(expr, {"moved"}) > 0


def _deep(expr: Expr, names: Collection[str]) -> int:
    """How many operations of some names are within one another."""
    own = isinstance(expr, Op) and expr.name in names
    return own + max((_deep(one, names) for one in children(expr)), default=0)


def is_pattern(text: str) -> bool:
    """Whether DuckDB reads a text as a regular expression."""
    try:
        parser().execute("select regexp_matches('', $1)", [text])
    except duckdb.Error:
        return False
    return True


def cut(of: Op) -> Op:
    """A column that is shown by a grain, as it is shown."""
    return Op("date_trunc", of.args, "timestamp")


class Part(NamedTuple):
    """A part of a date, as of EXTRACT."""

    name: str
    of: exp.Expr


_LISTED = ", ".join(sorted({*dates.PARTS["day"]}))


def part_of_date(node: exp.Expr) -> Part | None:
    """The part of a date that a node is: by EXTRACT, DATE_PART, or a function of its name."""
    if type(node) in _PARTS:
        return Part(_PARTS[type(node)], node.this)
    if isinstance(node, exp.Extract):
        return Part(node.this.name.lower(), node.expression)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("date_part", "datepart"):
        given = node.expressions
        name = constant(given[0]) if len(given) == 2 else None
        return Part(str(name.value).lower(), given[1]) if name is not None and name.kind == "text" else None
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1 and str(node.this).lower() in dates.PARTS["day"]:
        return Part(str(node.this).lower(), node.expressions[0])
    return None


def _a(kind: Kind, what: str = "") -> str:
    """A type with its article, at the beginning of a sentence."""
    return f"{'An' if kind in ('integer', 'other') else 'A'} {kind} {what}".strip()


def _kind(parts: list[Expr]) -> Kind:
    kinds = {part.kind for part in parts} - {"null"}
    if not kinds:
        return "null"
    if kinds <= set(NUMERIC):
        return "integer" if kinds == {"integer"} else "number"
    return kinds.pop()


def constant(node: exp.Expr) -> Literal | None:
    """The value of a constant, None if the node is none. Raises Refused for a number that is out of range."""
    node = node.unnest()
    if isinstance(node, exp.Null):
        return _NULL
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this), "boolean")
    if isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string):
        return Literal(str(node.this), "text")
    if isinstance(node, exp.Literal):
        return _number(node)
    if isinstance(node, exp.Neg):
        inner = constant(node.this)
        if inner is None or inner.value is None:
            return inner
        if inner.kind not in NUMERIC:
            return None
        return Literal(-inner.value, inner.kind)  # type: ignore[operator]
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        inner = constant(node.this)
        kind = _CAST_KINDS.get(node.to.this)
        if inner is None or kind is None or node.to.expressions:
            return None
        if kind == "integer" and not (isinstance(inner.value, int) or inner.kind == "text"):
            return None
        return coerced(inner, kind, node)
    if isinstance(node, exp.Add | exp.Sub):
        return _moved(node) or _sum_of(node)
    if isinstance(node, exp.Mul):
        return _sum_of(node)
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        of = constant(node.this)
        unit = node.args["unit"].name.lower()
        if of is None or not isinstance(of.value, date) or unit not in dates.UNITS:
            return None
        start = dates.beginning(of.value, unit)
        return Literal(start, "date") if of.kind == "date" else Literal(datetime.combine(start, time()), "timestamp")
    part = part_of_date(node)
    if part is not None:
        of = constant(part.of)
        known = dates.part(of.value, part.name) if of is not None and isinstance(of.value, date) else None
        return None if known is None else Literal(known, "integer")
    return None


def _sum_of(node: exp.Add | exp.Sub | exp.Mul) -> Literal | None:
    """Two constant numbers together, as decimals where they are written as such: 0.06 + 0.01 is 0.07. None where that
    is no number in range."""
    found = _exact(node)
    if found is None:
        return None
    if found.as_tuple().exponent == 0 and abs(found) < _HUGE:
        return Literal(int(found), "integer")
    number = float(found)
    return Literal(number, "number") if math.isfinite(number) else None


def _exact(node: exp.Expr) -> Decimal | None:
    """The value of a constant number as it is written, without an exponent; None of others."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = _exact(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        text = str(node.this)
        return Decimal(text) if re.fullmatch(r"[0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40}", text) else None
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return None
    one, other = _exact(node.this), _exact(node.expression)
    if one is None or other is None:
        return None
    with localcontext() as context:
        context.prec = 200
        if isinstance(node, exp.Mul):
            return one * other
        return one + other if isinstance(node, exp.Add) else one - other


def _moved(node: exp.Add | exp.Sub) -> Literal | None:
    """A constant date and an interval, added up; None where it is another thing."""
    start, interval = constant(node.this), node.expression.unnest()
    if not isinstance(interval, exp.Interval):
        days = constant(interval)
        if start is None or start.kind != "date" or not isinstance(start.value, date):
            return None
        if days is None or not isinstance(days.value, int) or isinstance(days.value, bool):
            return None
        try:
            by = timedelta(days=days.value if isinstance(node, exp.Add) else -days.value)
            return Literal(start.value + by, "date")
        except OverflowError:
            return None
    many = constant(interval.this) if interval.this is not None else None
    unit = interval.args.get("unit")
    if start is None or many is None or unit is None or start.kind not in ("date", "timestamp"):
        return None
    try:
        number = int(str(many.value)) * (1 if isinstance(node, exp.Add) else -1)
        moved = dates.moved(start.value, number, unit.name.lower().removesuffix("s"))  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None
    return Literal(moved, start.kind) if moved is not None else None


def _number(node: exp.Literal) -> Literal:
    text = str(node.this)
    if text.isdigit() and len(text) < 40 and int(text) < _HUGE:
        return Literal(int(text), "integer")
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise refused(Rule.CONDITIONS, f"{text[:30]} is no number in range", node)
    return Literal(number, "number")


def coerced(literal: Literal, kind: Kind, node: exp.Expr, rule: Rule = Rule.CONDITIONS) -> Literal:
    """A constant as another type. Raises Refused if it has no such value."""
    value = literal.value
    if value is None or literal.kind == kind or (kind == "number" and literal.kind == "integer"):
        return literal
    made: Value = None
    try:
        if kind in NUMERIC and literal.kind == "text":
            made = int(str(value)) if str(value).lstrip("+-").isdigit() and kind == "integer" else float(str(value))
        elif kind == "number":
            made = float(value) if literal.kind in NUMERIC else None  # type: ignore[arg-type]
        elif kind == "text":
            made = str(value) if literal.kind == "integer" else None
        elif kind == "boolean" and literal.kind == "text":
            made = {"true": True, "false": False}[str(value).lower()]
        elif kind in ("date", "timestamp"):
            made = _moment(value, kind)
    except (ValueError, KeyError, OverflowError):
        made = None
    if made is None or (isinstance(made, float) and not math.isfinite(made)):
        raise refused(rule, f"{_a(literal.kind, 'constant')} is no {kind}", node)
    if isinstance(made, float) and made.is_integer() and abs(made) < 2**53 and literal.kind == "text":
        return Literal(int(made), "integer")
    return Literal(made, kind)


def _moment(value: Value, kind: Kind) -> Value:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if isinstance(moment, datetime):
        if moment.utcoffset():
            return None
        moment = moment.replace(tzinfo=None)  # UTC, as Grafana writes it: columns have no zone
        if kind == "timestamp":
            return moment
        return moment.date() if moment.time() == time() else None
    if isinstance(moment, date):
        return moment if kind == "date" else datetime.combine(moment, time())
    return None
