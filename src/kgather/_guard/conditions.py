"""Compiles expressions over rows of people into the algebra of plan.py; what is not listed here is refused.

Conditions and values know AND OR NOT, comparisons, BETWEEN, IN, IS [NOT] NULL/TRUE/FALSE/DISTINCT FROM, + - * /, CASE,
COALESCE ABS ROUND FLOOR CEIL GREATEST LEAST, and comparisons of tuples. What a column or another leaf means, and
whether it may stand here, says whoever compiles.
"""

import math
from collections.abc import Callable
from datetime import date, datetime, time
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.plan import NUMERIC, Expr, Kind, Literal, Op, Value
from kgather._guard.refused import TOO_COMPLEX, Refused, Rule, refused

Leaf = Callable[[exp.Expr], Expr | None]

_SIZE = 10_000
"""How many operations one expression may have, after everything in it is spelt out."""
_DECIMALS = 15
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


class _When(NamedTuple):
    """One branch of CASE."""

    condition: Expr
    value: Expr


class Terms:
    """Compiles the expressions of one clause. leaf: what a node means that is no operation, None if it is one."""

    def __init__(self, leaf: Leaf, rule: Rule = Rule.CONDITIONS) -> None:
        self.leaf = leaf
        self.rule = rule

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
        known = self.leaf(node)
        if known is not None:
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
            return self._cases([_When(self.condition(node.this), self.value(node.args["true"]))], no, node)
        folded = constant(node)
        if folded is not None:
            return folded
        raise self._unknown(node)

    def _unknown(self, node: exp.Expr) -> Refused:
        allow = (
            "Over rows of people there are comparisons, AND, OR, NOT, BETWEEN, IN, IS, + - * /, CASE, COALESCE, ABS, "
            "ROUND, FLOOR, CEIL, GREATEST and LEAST"
        )
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
            raise refused(self.rule, f"A {expr.kind} stands where a number has to", node)
        return expr

    def _arithmetic(self, node: exp.Expr) -> Expr:
        folded = constant(node)
        if folded is not None:
            return folded
        if isinstance(node, exp.Neg):
            return Op("neg", (self.number(node.this),), "number")
        return Op(_ARITHMETIC[type(node)], (self.number(node.this), self.number(node.expression)), "number")

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
        parts = self._alike([self.value(one), self.value(other)], one)
        kind = _kind(parts)
        if kind == "other":
            raise refused(self.rule, "A column of this type cannot be compared", one)
        if kind == "boolean" and name in ("<", "<=", ">", ">="):
            raise refused(self.rule, "Conditions are compared by = and <> only", one)
        return Op(name, tuple(parts))

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
            return Op("is null", (self.value(node.this),))
        if isinstance(what, exp.Boolean):
            return Op("is true" if what.this else "is false", (self.condition(node.this),))
        raise refused(self.rule, "IS takes NULL, TRUE, FALSE or DISTINCT FROM", node)

    def _case(self, node: exp.Case) -> Expr:
        whens = []
        for when in node.args["ifs"]:
            condition = self.condition(when.this) if node.this is None else self._compare("=", node.this, when.this)
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
            raise refused(self.rule, f"A {' and a '.join(sorted(kinds))} are compared", node)
        return [coerced(part, wanted, node, self.rule) if isinstance(part, Literal) else part for part in parts]


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
    return None


def _number(node: exp.Literal) -> Literal:
    text = str(node.this)
    if text.isdigit() and int(text[:20]) < 2**63 and len(text) < 20:
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
        raise refused(rule, f"A {literal.kind} constant is no {kind}", node)
    if isinstance(made, float) and made.is_integer() and abs(made) < 2**53 and literal.kind == "text":
        return Literal(int(made), "integer")
    return Literal(made, kind)


def _moment(value: Value, kind: Kind) -> Value:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if isinstance(moment, datetime):
        if moment.tzinfo is not None:
            return None
        if kind == "timestamp":
            return moment
        return moment.date() if moment.time() == time() else None
    if isinstance(moment, date):
        return moment if kind == "date" else datetime.combine(moment, time())
    return None
