"""What may stand in a statement: the allow-lists of the guard, all in one place. What is not listed is refused."""

from typing import NamedTuple

from sqlglot import exp

_ONE = frozenset({"this"})
_TWO = frozenset({"this", "expression"})
_SET = frozenset({"with_", "this", "expression", "distinct", "order", "limit", "offset"})
_MANY = frozenset({"this", "expressions"})

STRUCTURE: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"with_", "distinct", "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit"}
        | {"offset"}
    ),
    exp.Union: _SET,
    exp.Intersect: _SET,
    exp.Except: _SET,
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias", "materialized"}),
    exp.Subquery: frozenset({"this", "alias", "pivots"}),
    exp.From: _ONE,
    exp.Pivot: frozenset({"this", "expressions", "fields", "using", "group", "columns", "alias", "default_on_null"})
    | {"identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming", "unpivot", "include_nulls"}
    | {"value_columns_first"},
    exp.PivotAlias: frozenset({"this", "alias"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Table: frozenset({"this", "alias", "db", "catalog", "pivots"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Where: _ONE,
    exp.Group: frozenset({"expressions", "all"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Having: _ONE,
    exp.Qualify: _ONE,
    exp.Order: frozenset({"this", "expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Distinct: frozenset({"expressions", "on"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Star: frozenset({"except_", "replace", "rename"}),
    exp.Paren: _ONE,
    exp.Tuple: frozenset({"expressions"}),
}
"""Nodes that build a statement, each with the parts that it may have."""

CONSTANTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Literal: frozenset({"this", "is_string"}),
    exp.RawString: _ONE,
    exp.Boolean: _ONE,
    exp.Null: frozenset(),
    exp.Var: _ONE,
}

OPERATORS: dict[type[exp.Expr], frozenset[str]] = {
    exp.And: _TWO,
    exp.Or: _TWO,
    exp.Not: _ONE,
    exp.EQ: _TWO,
    exp.NEQ: _TWO,
    exp.LT: _TWO,
    exp.LTE: _TWO,
    exp.GT: _TWO,
    exp.GTE: _TWO,
    exp.NullSafeEQ: _TWO,
    exp.NullSafeNEQ: _TWO,
    exp.Is: _TWO,
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Add: _TWO,
    exp.Sub: _TWO,
    exp.Mul: _TWO,
    exp.Div: _TWO | {"typed", "safe"},
    exp.Neg: _ONE,
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Abs: _ONE,
    exp.Round: frozenset({"this", "decimals"}),
    exp.Floor: _ONE,
    exp.Ceil: _ONE,
    exp.Coalesce: _MANY,
    exp.Greatest: _MANY | {"ignore_nulls"},
    exp.Least: _MANY | {"ignore_nulls"},
    exp.Exists: _ONE,
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.DateTrunc: frozenset({"this", "unit"}),
}
"""Operators and functions that conditions and keys of protected tables know; conditions.py says how."""

POSTPROCESSING: dict[type[exp.Expr], frozenset[str]] = {
    exp.Nullif: _TWO,
    exp.Cast: frozenset({"this", "to"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _ONE,
    exp.Like: _TWO | {"negate"},
    exp.ILike: _TWO | {"negate"},
    exp.Upper: _ONE,
    exp.Lower: _ONE,
    exp.Length: _ONE,
    exp.Sign: _ONE,
    exp.Sqrt: _ONE,
    exp.Ln: _ONE,
    exp.Mod: _TWO,
    exp.IntDiv: _TWO,
}
"""Functions over protected results and public tables."""

TYPES = frozenset(
    {
        exp.DType.TINYINT,
        exp.DType.SMALLINT,
        exp.DType.INT,
        exp.DType.BIGINT,
        exp.DType.INT128,
        exp.DType.FLOAT,
        exp.DType.DOUBLE,
        exp.DType.DECIMAL,
        exp.DType.VARCHAR,
        exp.DType.TEXT,
        exp.DType.BOOLEAN,
        exp.DType.DATE,
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPNTZ,
        exp.DType.UTINYINT,
        exp.DType.USMALLINT,
        exp.DType.UINT,
        exp.DType.UBIGINT,
        exp.DType.TIME,
        exp.DType.INTERVAL,
    }
)
"""What a cast may lead to."""


class AggregateName(NamedTuple):
    """The policy's word for an aggregate, and the function of a plan."""

    word: str
    function: str


AGGREGATES: dict[type[exp.Expr], AggregateName] = {
    exp.Count: AggregateName("COUNT", "COUNT"),
    exp.Sum: AggregateName("SUM", "SUM"),
    exp.Avg: AggregateName("AVG", "AVG"),
    exp.Stddev: AggregateName("STDDEV", "STDDEV_SAMP"),
    exp.StddevSamp: AggregateName("STDDEV", "STDDEV_SAMP"),
    exp.StddevPop: AggregateName("STDDEV", "STDDEV_POP"),
    exp.Variance: AggregateName("VAR", "VAR_SAMP"),
    exp.VariancePop: AggregateName("VAR", "VAR_POP"),
    exp.CovarSamp: AggregateName("COVAR", "COVAR_SAMP"),
    exp.CovarPop: AggregateName("COVAR", "COVAR_POP"),
    exp.Corr: AggregateName("CORR", "CORR"),
    exp.Min: AggregateName("MIN", "MIN"),
    exp.Max: AggregateName("MAX", "MAX"),
}
"""Aggregates."""

AGGREGATE_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys(AGGREGATES, _ONE),
    exp.Count: frozenset({"this", "big_int"}),
    exp.CovarSamp: _TWO,
    exp.CovarPop: _TWO,
    exp.Corr: _TWO,
    exp.Filter: _TWO,
}

WINDOWS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.RowNumber: frozenset(),
    exp.Rank: frozenset(),
    exp.DenseRank: frozenset(),
    exp.PercentRank: frozenset(),
}

WINDOWS_OF_PUBLIC: dict[type[exp.Expr], frozenset[str]] = {
    exp.Lag: frozenset({"this", "offset", "default"}),
    exp.Lead: frozenset({"this", "offset", "default"}),
    exp.FirstValue: _ONE,
    exp.LastValue: _ONE,
    exp.Ntile: _ONE,
    exp.CumeDist: frozenset(),
}
"""Window functions that tell values of single rows: of answers, and of public tables."""

NODES: dict[type[exp.Expr], frozenset[str]] = {
    **STRUCTURE,
    **CONSTANTS,
    **OPERATORS,
    **POSTPROCESSING,
    **AGGREGATE_PARTS,
    **WINDOWS,
    **WINDOWS_OF_PUBLIC,
}
"""Everything that may stand anywhere."""

RANKS: tuple[type[exp.Expr], ...] = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, *WINDOWS_OF_PUBLIC)
"""Functions that only make sense with OVER."""


class JoinKind(NamedTuple):
    """The words before JOIN."""

    side: str = ""
    kind: str = ""

    @classmethod
    def of(cls, join: exp.Join | None) -> "JoinKind":
        """The words of a join; none for the first member of a FROM."""
        return cls(str(join.args.get("side") or ""), str(join.args.get("kind") or "")) if join is not None else cls()

    def __str__(self) -> str:
        return self.side or self.kind


JOINS = {
    JoinKind(),
    JoinKind(kind="INNER"),
    JoinKind(kind="CROSS"),
    JoinKind("LEFT"),
    JoinKind("LEFT", "OUTER"),
}
"""Joins of protected tables."""

JOINS_OF_RESULTS = JOINS | {
    JoinKind("RIGHT"),
    JoinKind("RIGHT", "OUTER"),
    JoinKind("FULL"),
    JoinKind("FULL", "OUTER"),
}

CLIENT_SETTINGS = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "extra_float_digits": "1",
    "intervalstyle": "postgres",
    "standard_conforming_strings": "on",
    "timezone": "UTC",
}
"""Settings that clients of PostgreSQL make when they connect: accepted, and without effect."""
