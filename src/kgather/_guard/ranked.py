"""Aggregates that are read from the order of values, or from how often each occurs: medians, quantiles, the least and
the greatest value, modes and histograms, in the ways in which DuckDB writes them."""

from typing import NamedTuple

from sqlglot import exp

from kgather._guard.conditions import constant
from kgather._guard.plan import NUMERIC, Literal
from kgather._guard.refused import Rule, refused
from kgather._guard.sql_names import sql_name

QUANTILES = ("QUANTILE_CONT", "QUANTILE_DISC")
COUNTED = ("MODE", "HISTOGRAM")
BINNED = "HISTOGRAM_BINS"
"""A histogram of a measure, whose single values are not told."""
_DISC = (exp.Quantile, exp.PercentileDisc)
_MANY = 32  # quantiles of one call


class Ranked(NamedTuple):
    """A call. function: of QUANTILES or COUNTED. fractions: of quantiles; 0 of MIN, 1 of MAX. several: whether they are
    given as a list, and are answered as one. bins: of a histogram, where they end."""

    function: str
    argument: exp.Expr
    fractions: tuple[float, ...] = ()
    several: bool = False
    bins: tuple[Literal, ...] = ()

    @property
    def word(self) -> str:
        """The policy's word for it."""
        if self.fractions in ((0.0,), (1.0,)):
            return "MAX" if self.fractions[0] else "MIN"
        return "QUANTILE" if self.function in QUANTILES else "HISTOGRAM"


def is_histogram(node: exp.Expr) -> bool:
    """Whether a node is a call that the parser does not know as an aggregate."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "histogram"


def is_ranked(node: exp.Expr) -> bool:
    """Whether a node is such a call."""
    of = node.this if isinstance(node, exp.WithinGroup) else node
    kinds = (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile, exp.Mode)
    return isinstance(of, (*kinds, exp.Min, exp.Max)) or is_histogram(of)


def ranked(node: exp.Expr) -> Ranked:
    """Read a call. Raises Refused for what is not in order about it."""
    call, within = (node.this, node.expression) if isinstance(node, exp.WithinGroup) else (node, None)
    if is_histogram(call):
        bins = _bins(call.expressions[1:])
        if bins is None:
            allow = f"Write where they end as a list of at most {_MANY} constants, such as [20, 40, 60]"
            raise refused(Rule.ARGUMENTS, "HISTOGRAM with bins over rows of people", node, allow=allow)
        return Ranked("HISTOGRAM", call.expressions[0], bins=bins)
    if isinstance(call, exp.Mode):
        return Ranked("MODE", _by_order(within, node)[0] if within is not None else call.this)
    if isinstance(call, exp.Min | exp.Max):
        return Ranked("QUANTILE_DISC", call.this, (0.0 if isinstance(call, exp.Min) else 1.0,))
    if isinstance(call, exp.Median):
        return Ranked("QUANTILE_CONT", call.this, (0.5,))
    argument = call.this
    given = call.args.get("quantile") or call.args.get("expression")
    falling = False
    if within is not None:
        given = call.this
        argument, falling = _by_order(within, node)
    function = "QUANTILE_DISC" if isinstance(call, _DISC) else "QUANTILE_CONT"
    several = isinstance(given, exp.Array)
    found = [_fraction(one, node) for one in (given.expressions if isinstance(given, exp.Array) else [given])]
    if not found or len(found) > _MANY:
        raise refused(Rule.ARGUMENTS, f"{sql_name(call)} of no fractions, or of more than {_MANY}", node)
    return Ranked(function, argument, tuple(1 - one if falling else one for one in found), several)


def _bins(given: list[exp.Expr]) -> tuple[Literal, ...] | None:
    """Where bins end, in their order: nowhere where none are given. None of what is no list of constants."""
    if not given:
        return ()
    found = [constant(one) for one in given[0].expressions] if isinstance(given[0], exp.Array) else []
    ends = {float(str(one.value)): one for one in found if one is not None and isinstance(one.value, int | float)}
    if len(given) > 1 or not ends or len(ends) < len(found) or len(ends) > _MANY:
        return None
    return tuple(ends[end] for end in sorted(ends))


def _by_order(order: exp.Expr, node: exp.Expr) -> tuple[exp.Expr, bool]:
    """What WITHIN GROUP sorts by, and whether it falls."""
    if not isinstance(order, exp.Order) or len(order.expressions) != 1:
        raise refused(Rule.ARGUMENTS, "WITHIN GROUP takes one ORDER BY", node)
    (by,) = order.expressions
    return by.this, bool(by.args.get("desc"))


def _fraction(node: exp.Expr | None, call: exp.Expr) -> float:
    value = constant(node) if node is not None else None
    if value is None or value.kind not in NUMERIC or not 0 < float(value.value) < 1:  # type: ignore[arg-type]
        allow = "Write it as a constant between 0 and 1, such as 0.5; at the ends there are MIN and MAX"
        raise refused(Rule.ARGUMENTS, "A quantile at what is no fraction", call, allow=allow)
    return float(value.value)  # type: ignore[arg-type]
