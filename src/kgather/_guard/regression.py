"""REGR_SLOPE and its kin, made of counts, means, variances and covariances of whom has both values."""

from collections.abc import Callable, Mapping

from sqlglot import exp

Aggregate = Callable[[exp.Expr], exp.Expr]

_KINDS: Mapping[type[exp.Expr], str] = {
    exp.RegrCount: "count",
    exp.RegrAvgx: "avgx",
    exp.RegrAvgy: "avgy",
    exp.RegrSxx: "sxx",
    exp.RegrSyy: "syy",
    exp.RegrSxy: "sxy",
    exp.RegrSlope: "slope",
    exp.RegrIntercept: "intercept",
    exp.RegrR2: "r2",
}


def is_regression(call: exp.Expr) -> bool:
    """Whether a call is one of those that describe a line through values of two columns."""
    return type(call) in _KINDS


def regression(call: exp.Expr, aggregate: Aggregate) -> exp.Expr:
    """Write a call with other aggregates, as ISO SQL defines it. aggregate: writes each of them, of whom has both
    values. The columns of the call are named by the same nodes, so that they mean the same."""
    y, x = call.this, call.expression
    kind = _KINDS[type(call)]

    def count() -> exp.Expr:
        return aggregate(exp.Count(this=exp.Star(), big_int=True))

    def mean(of: exp.Expr) -> exp.Expr:
        return aggregate(exp.Avg(this=of))

    def spread(of: exp.Expr) -> exp.Expr:
        return aggregate(exp.VariancePop(this=of))

    def both() -> exp.Expr:
        return aggregate(exp.CovarPop(this=y, expression=x))

    def slope() -> exp.Expr:
        return _over(both(), exp.Nullif(this=spread(x), expression=exp.Literal.number(0)))

    match kind:
        case "count":
            return count()
        case "avgx" | "avgy":
            return mean(x if kind == "avgx" else y)
        case "sxx" | "syy":
            return exp.Paren(this=exp.Mul(this=count(), expression=spread(x if kind == "sxx" else y)))
        case "sxy":
            return exp.Paren(this=exp.Mul(this=count(), expression=both()))
        case "slope":
            return slope()
        case "intercept":
            line = exp.Mul(this=slope(), expression=mean(x))
            return exp.Paren(this=exp.Sub(this=mean(y), expression=line))
        case _:
            correlation = aggregate(exp.Corr(this=y, expression=x))
            return exp.Pow(this=correlation, expression=exp.Literal.number(2))


def _over(number: exp.Expr, by: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Div(this=number, expression=by, typed=False, safe=False))
