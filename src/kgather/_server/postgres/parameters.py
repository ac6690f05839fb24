"""Parameters of statements: which types they have where a client does not say, and what stands for them.

PostgreSQL takes the type of an undeclared parameter from what is around it. Here, too, where that is simple: beside a
column, a constant or an aggregate, under a cast, in LIMIT. Anything else is text.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from typing import Any

from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from kgather._guard import describe as described
from kgather._guard.catalog import Catalog
from kgather._guard.labels import label
from kgather._guard.plan import Kind, Value
from kgather._guard.policy import fold
from kgather._server.postgres import types
from kgather._server.postgres.errors import NOT_SUPPORTED, PROTOCOL, WRONG_BINARY, WRONG_ENCODING, WRONG_TEXT, PgError
from kgather._server.postgres.types import BINARY, UnreadableError, read_parameter

_DUCKDB = Dialect.get_or_raise("duckdb")
MOST = 1_000
_QUERY = {TokenType.SELECT, TokenType.FROM, TokenType.WITH, TokenType.L_PAREN}

_KINDS: Mapping[int, Kind] = {
    types.BOOL.oid: "boolean",
    types.INT2.oid: "integer",
    types.INT4.oid: "integer",
    types.INT8.oid: "integer",
    types.OID.oid: "integer",
    types.FLOAT4.oid: "number",
    types.FLOAT8.oid: "number",
    types.NUMERIC.oid: "number",
    types.DATE.oid: "date",
    types.TIMESTAMP.oid: "timestamp",
    types.TIMESTAMPTZ.oid: "timestamp",
    **dict.fromkeys((types.CHAR.oid, 19, types.STRING.oid, 705, 1042, types.VARCHAR.oid), "text"),
    **dict.fromkeys((types.REGCLASS.oid, types.REGTYPE.oid), "text"),
}
"""Types that the guard has values of."""

KNOWN = frozenset(_KINDS) | frozenset(types.ELEMENTS)
"""Types that there are values of."""

_OIDS: Mapping[Kind, int] = {
    "integer": types.INT8.oid,
    "number": types.FLOAT8.oid,
    "text": types.STRING.oid,
    "boolean": types.BOOL.oid,
    "date": types.DATE.oid,
    "timestamp": types.TIMESTAMP.oid,
}
_CASTS = {
    exp.DType.TINYINT: types.INT2.oid,
    exp.DType.SMALLINT: types.INT2.oid,
    exp.DType.INT: types.INT4.oid,
    exp.DType.BIGINT: types.INT8.oid,
    exp.DType.FLOAT: types.FLOAT4.oid,
    exp.DType.DOUBLE: types.FLOAT8.oid,
    exp.DType.DECIMAL: types.NUMERIC.oid,
    exp.DType.BOOLEAN: types.BOOL.oid,
    exp.DType.DATE: types.DATE.oid,
    exp.DType.TIMESTAMP: types.TIMESTAMP.oid,
    exp.DType.TIMESTAMPNTZ: types.TIMESTAMP.oid,
}
_BESIDE = (exp.Binary, exp.Between, exp.In, exp.Coalesce, exp.Greatest, exp.Least)
_WORDS = {
    **dict.fromkeys(("int2", "smallint"), types.INT2.oid),
    **dict.fromkeys(("int4", "int", "integer"), types.INT4.oid),
    **dict.fromkeys(("int8", "bigint"), types.INT8.oid),
    "oid": types.OID.oid,
    "regclass": types.REGCLASS.oid,
    "regtype": types.REGTYPE.oid,
    **dict.fromkeys(("text", "varchar", "name"), types.STRING.oid),
    "bool": types.BOOL.oid,
    "boolean": types.BOOL.oid,
}
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)
_WHOLE = (types.INT2.oid, types.INT4.oid, types.INT8.oid)
_ARRAYS = {21: 1005, 23: 1007, 20: 1016, 26: 1028, 25: 1009}


def guessed(
    text: str, declared: Sequence[int], catalog: Catalog, arrays: frozenset[int] = frozenset(), least: int = 0
) -> tuple[int, ...]:
    """The types of a statement's parameters. declared: by the client, 0 or missing where it does not say. arrays: the
    numbers of those that stand for all values of an array. least: how many there are, whether the text can be read or
    not."""
    tree = _tree(text)
    places = around(tree, lambda node: _beside(node, tree, catalog)) if tree is not None else {}
    count = max([len(declared), least, *places])
    if count > MOST:
        raise PgError(PROTOCOL, f"A statement takes {MOST:,} parameters at most.")
    said = [*declared, *[0] * (count - len(declared))]
    found = [oid or places.get(at, types.STRING.oid) for at, oid in enumerate(said, 1)]
    return tuple(
        types.ARRAY_OF.get(oid, types.ARRAY_OF[types.STRING.oid]) if at in arrays and oid not in types.ELEMENTS else oid
        for at, oid in enumerate(found, 1)
    )


def around(tree: exp.Expr, beside: Callable[[exp.Expr], int | None]) -> Mapping[int, int]:
    """The types of a tree's parameters by what is around them. beside: the type of an expression, None where it is not
    known."""
    found: dict[int, int] = {}
    for node in tree.find_all(exp.Parameter, exp.Placeholder):
        number = _number(node)
        if number is not None and number not in found:
            found[number] = _guess(node, beside)
    return found


def begins_a_query(tokens: Sequence[Token]) -> bool:
    """Whether these are the words of a query, as far as the first says."""
    return bool(tokens) and tokens[0].token_type in _QUERY


def kinds(oids: Sequence[int], arrays: frozenset[int] = frozenset()) -> tuple[Kind, ...]:
    """What the guard knows these types as. arrays: the numbers of those that are known as their elements. Raises
    PgError for one that it does not know."""
    elements = [types.ELEMENTS.get(oid, oid) if at in arrays else oid for at, oid in enumerate(oids, 1)]
    for at, oid in enumerate(elements, 1):
        if oid not in _KINDS:
            raise _unknown(at)
    return tuple(_KINDS[oid] for oid in elements)


def values(
    oids: Sequence[int],
    raw: Sequence[bytes | None],
    formats: Sequence[int],
    zone: tzinfo,
    declared: Sequence[int] = (),
) -> tuple[Any, ...]:
    """The values of parameters. declared: the types that the client said; one that was guessed to be a whole number
    may be any number. Raises PgError."""
    if len(raw) != len(oids):
        raise PgError(PROTOCOL, f"The statement takes {len(oids)} parameters, {len(raw)} are given.")
    found: list[Value] = []
    for at, (oid, each, form) in enumerate(zip(oids, raw, formats, strict=True), 1):
        if oid not in _KINDS and oid not in types.ELEMENTS:
            raise _unknown(at)
        try:
            found.append(None if each is None else read_parameter(oid, each, form, zone))
        except UnreadableError:
            number = _number_instead(oid, each, form, zone) if not any(declared[at - 1 : at]) else None
            if number is not None:
                found.append(number)
                continue
            if oid in (types.STRING.oid, types.VARCHAR.oid) and each is not None and not _is_text(each):
                raise PgError(WRONG_ENCODING, f"Parameter ${at} is no text in UTF-8 without zero bytes.") from None
            code = WRONG_BINARY if form == BINARY else WRONG_TEXT
            raise PgError(code, f"Parameter ${at} is no value of its type.") from None
    return tuple(found)


def _is_text(raw: bytes) -> bool:
    try:
        return "\0" not in raw.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _number_instead(oid: int, raw: bytes | None, form: int, zone: tzinfo) -> Value:
    """A number with a fraction where a whole one was expected: a column is compared with it all the same."""
    if oid not in _WHOLE or form == BINARY or raw is None:
        return None
    with suppress(UnreadableError):
        number = read_parameter(types.NUMERIC.oid, raw, form, zone)
        return number if number.is_finite() else None
    return None


def _unknown(at: int) -> PgError:
    return PgError(NOT_SUPPORTED, f"Parameter ${at} is of a type that the guard has no values of.")


def neutral(oids: Sequence[int], arrays: frozenset[int] = frozenset(), *, wide: bool = False) -> tuple[Any, ...]:
    """What stands for parameters whose values are not known yet. arrays: as for `kinds`; wide: whole numbers that do
    not fit into an integer, where the type has such. Raises PgError as `kinds`."""
    found: list[Any] = list(described.neutral(kinds(oids, arrays)))
    for at, oid in enumerate(oids):
        if wide and oid == types.INT8.oid:
            found[at] = _WIDE
        if at + 1 in arrays:
            found[at] = [found[at]]
    return tuple(found)


_WIDE = 1 << 31


def bare(text: str) -> Mapping[int, tuple[int, str]]:
    """Which columns of a SELECT are a parameter and nothing else: its number, and the name of the column. The column
    has the parameter's type."""
    tree = _tree(text)
    if not isinstance(tree, exp.Select) or any(one.is_star for one in tree.expressions):
        return {}
    found = {}
    for at, one in enumerate(tree.expressions):
        node = one.unalias().unnest()
        number = _number(node) if isinstance(node, exp.Parameter | exp.Placeholder) else None
        if number is not None:
            found[at] = (number, label(one))
    return found


def _tree(text: str) -> exp.Expr | None:
    try:
        tokens = _DUCKDB.tokenize(text)
        # Of other statements the parser would log the text.
        return _DUCKDB.parser().parse(tokens, text)[0] if begins_a_query(tokens) else None
    except (SqlglotError, ValueError, IndexError, RecursionError):
        return None


def bind(tree: exp.Expr, given: Sequence[Any] | None, oids: Sequence[int]) -> None:
    """Put literals where the parameters of a question about the catalog stand, NULL of its type for what is not known
    yet. oids: their types, 0 where nothing says it. Raises PgError."""
    for node in list(tree.find_all(exp.Parameter, exp.Placeholder)):
        number = _number(node)
        if number is None or (given is not None and number > len(given)):
            raise PgError(PROTOCOL, "The statement has parameters that are not given.")
        if given is not None and given[number - 1] is not None:
            node.replace(_literal(given[number - 1]))
            continue
        oid = oids[number - 1] if number <= len(oids) else 0
        alone = isinstance(node.parent, exp.Select | exp.Alias) and node.arg_key in ("expressions", "this")
        name = _DUCKDB_NAMES.get(oid, "text" if alone and not oid else "")
        node.replace(exp.cast(exp.Null(), name) if name else exp.Null())


_DUCKDB_NAMES = {
    **{types.BOOL.oid: "boolean", types.INT2.oid: "smallint", types.INT4.oid: "int", types.INT8.oid: "bigint"},
    **{types.FLOAT4.oid: "real", types.FLOAT8.oid: "double", types.DATE.oid: "date"},
    **{types.TIMESTAMP.oid: "timestamp", types.STRING.oid: "text", types.VARCHAR.oid: "text"},
}


def casts(tokens: Sequence[Token]) -> tuple[int, ...]:
    """The types of parameters by the casts behind them, as $1::oid[]; 0 where there is none."""
    found: dict[int, int] = {}
    for at, token in enumerate(tokens[:-1]):
        if token.token_type != TokenType.PARAMETER or not tokens[at + 1].text.isdigit():
            continue
        number = int(tokens[at + 1].text)
        if number > MOST:
            raise PgError(PROTOCOL, f"A statement takes {MOST:,} parameters at most.")
        words = [each.text.lower() for each in tokens[at + 2 : at + 8] if each.text.lower() not in ("pg_catalog", ".")]
        oid = _WORDS.get(words[1], 0) if len(words) > 1 and words[0] == "::" else 0
        if words[2:4] == ["[", "]"]:
            oid = _ARRAYS.get(oid, 0)
        found[number] = found.get(number) or oid
    return tuple(found.get(at, 0) for at in range(1, max(found, default=0) + 1))


def _literal(value: Any) -> exp.Expr:
    if isinstance(value, list):
        return exp.Paren(this=exp.Array(expressions=[_literal(each) for each in value]))
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
    return exp.Literal.string(str(value))


def _number(node: exp.Expr) -> int | None:
    name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this or "")
    return int(name) if name.isdigit() and len(name) < 6 and int(name) > 0 else None


def _guess(node: exp.Expr, beside: Callable[[exp.Expr], int | None]) -> int:
    above, is_array = node.parent, False
    while isinstance(above, exp.Paren | exp.Neg | exp.Any | exp.All):
        is_array = is_array or isinstance(above, exp.Any | exp.All)
        node, above = above, above.parent
    found = _guess_value(node, above, beside)
    return types.ARRAY_OF.get(found, types.ARRAY_OF[types.STRING.oid]) if is_array else found


def _guess_value(node: exp.Expr, above: exp.Expr | None, beside: Callable[[exp.Expr], int | None]) -> int:
    if isinstance(above, exp.Cast):
        return _CASTS.get(above.to.this, types.STRING.oid)
    if isinstance(above, exp.Limit | exp.Offset):
        return types.INT8.oid
    if isinstance(above, exp.Like | exp.ILike) or not isinstance(above, _BESIDE):
        return types.STRING.oid
    for other in above.iter_expressions():
        if other is not node and (found := beside(other.unnest())) is not None:
            # A number with a fraction may be given where a whole one is beside it: so the result may have one.
            return types.NUMERIC.oid if isinstance(above, _ARITHMETIC) and found in _WHOLE else found
    return types.STRING.oid


def _beside(node: exp.Expr, tree: exp.Expr, catalog: Catalog) -> int | None:
    kind = _kind(node, tree, catalog)
    return None if kind is None else _OIDS.get(kind, types.STRING.oid)


def _kind(node: exp.Expr, tree: exp.Expr, catalog: Catalog, depth: int = 8) -> Kind | None:
    """What an expression is, None where that is not simple."""
    if depth == 0 or isinstance(node, exp.Parameter | exp.Placeholder):
        return None
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "integer" if node.name.isdigit() else "number"
    if isinstance(node, exp.Count):
        return "integer"
    if isinstance(node, exp.AggFunc):
        return "number"
    if isinstance(node, exp.Cast):
        return _KINDS.get(_CASTS.get(node.to.this, types.STRING.oid))
    if isinstance(node, exp.Column):
        return _of_column(node, tree, catalog, depth)
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        return "timestamp"
    if isinstance(node, exp.Div | exp.Round | exp.Floor | exp.Ceil):
        return "number"
    if isinstance(
        node, exp.Add | exp.Sub | exp.Mul | exp.Coalesce | exp.Greatest | exp.Least | exp.Paren | exp.Abs | exp.Neg
    ):
        found = {_kind(each, tree, catalog, depth - 1) for each in node.iter_expressions()} - {None}
        return "number" if "number" in found else next(iter(found), None)
    return None


def _of_column(node: exp.Column, tree: exp.Expr, catalog: Catalog, depth: int) -> Kind | None:
    """The kind of a column of that name in the tables of the statement, or of what is named so in it."""
    tables = [table for each in tree.find_all(exp.Table) if (table := catalog.table(each.name)) is not None]
    found = {column.kind for table in tables if (column := table.column(node.name)) is not None}
    if len(found) == 1:
        return found.pop()
    for alias in tree.find_all(exp.Alias):
        if not found and fold(alias.alias) == fold(node.name):
            return _kind(alias.this.unnest(), tree, catalog, depth - 1)
    return None
