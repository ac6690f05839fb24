"""From the text of a statement, with its parameters, to one syntax tree; and what needs no tree at all.

What is too large is refused before it is parsed, so that no text takes long. The tree is only ever read: what runs is
written anew from it, and DuckDB's own parser has to agree about what was written (`witness`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import NamedTuple

import duckdb
from sqlglot import Dialect, exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from kgather._guard.allowed import CLIENT_SETTINGS
from kgather._guard.dates import UNITS
from kgather._guard.parsing import parser
from kgather._guard.pivots import as_select
from kgather._guard.plan import Local, Value
from kgather._guard.policy import Limits, Policy
from kgather._guard.refused import PARAMETERS, SYNTAX, TOO_COMPLEX, Refused, Rule, refused
from kgather._guard.written_out import write_out
from kgather._version import __version__

Parameters = Sequence[Value] | Mapping[str, Value]

_DUCKDB = Dialect.get_or_raise("duckdb")
_TOKENS = 8_000
_LISTS = 200
_NODE_DEPTH = 4  # nodes deep per bracket of the policy's depth
_NUMBER_LENGTH = 60
_OPEN = {TokenType.L_PAREN, TokenType.CASE, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSE = {TokenType.R_PAREN, TokenType.END, TokenType.R_BRACKET, TokenType.R_BRACE}
_QUERY = {TokenType.SELECT, TokenType.FROM, TokenType.WITH, TokenType.L_PAREN, TokenType.VALUES} | {
    *(TokenType.PIVOT, TokenType.UNPIVOT)
}
_TRANSACTIONS = {
    "BEGIN": "BEGIN",
    "BEGIN TRANSACTION": "BEGIN",
    "START TRANSACTION": "BEGIN",
    "COMMIT": "COMMIT",
    "END": "COMMIT",
    "ROLLBACK": "ROLLBACK",
}


class _Probe(NamedTuple):
    label: str
    answer: str


_PROBES: dict[type[exp.Expr], _Probe] = {
    exp.CurrentVersion: _Probe("version()", f"kgather {__version__}"),
    exp.CurrentSchema: _Probe("current_schema()", "main"),
    exp.CurrentDatabase: _Probe("current_database()", "kgather"),
    exp.CurrentCatalog: _Probe("current_catalog()", "kgather"),
}
"""What clients ask for when they connect, and what they are told."""
_CHAINS = (exp.And, exp.Or, exp.SetOperation)


def read(
    text: str, policy: Policy, limits: Limits, parameters: Parameters = (), today: date | None = None
) -> exp.Query | Local:
    """Read one statement: a query's tree with literals for its parameters and for the day on which it is asked (of
    UTC; today's, if it is not given), or the answer to what needs no query.

    Linear in the text, which is at most limits.statement_bytes long. Raises Refused.
    """
    tokens = tokenize(text, limits)
    local = _local(tokens, policy)
    if local is not None:
        if parameters:
            raise refused(Rule.PARAMETERS, "This statement takes no parameters", code=PARAMETERS)
        return local
    if tokens[0].token_type not in _QUERY:
        name = tokens[0].text.upper()
        reason = f"{name[:30]} is no statement that the guard answers"
        raise refused(Rule.STATEMENT, reason, allow="It answers SELECT, and SHOW TABLES")
    tokens, tail = _tail_of_pivot(_numbered(tokens))
    try:
        (tree,) = (tree for tree in _DUCKDB.parser().parse(tokens, text) if tree is not None)
        more = _DUCKDB.parser().parse([*_DUCKDB.tokenize("SELECT * FROM t"), *tail], text)[0] if tail else None
    except (SqlglotError, ValueError) as error:  # or none, or several
        reason = f"This is no statement that the guard can read{_where(error)}"
        told = refused(Rule.STATEMENT, reason, allow="Write it as a plain SELECT", code=SYNTAX)
        told.position = _stopped(error, text)
        raise told from None
    while isinstance(tree, exp.Subquery) and not any(value for part, value in tree.args.items() if part != "this"):
        tree = tree.this
    tree = as_select(tree)
    for part in ("order", "limit", "offset"):
        if more is not None and more.args.get(part) is not None:
            tree.set(part, more.args[part])
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Values):
        raise refused(Rule.STATEMENT, f"{tree.key.upper()} is no SELECT", allow="The guard answers SELECT")
    _check_depth(tree, limits)
    _bind(tree, parameters)
    _fix_moments(tree, today or datetime.now(UTC).date())
    tree = write_out(tree)
    if tree.find(exp.Table) is None:
        _answer_probes(tree)
    tree.meta["text"] = text
    return tree


def _fix_moments(tree: exp.Expr, today: date) -> None:
    """Put the day for CURRENT_DATE, and for moments of it that are cut to days; and moments of UTC for those that are
    written with a time zone."""
    for node in list(tree.find_all(exp.TimestampTrunc, exp.DateTrunc, exp.Cast)):
        of = node.this.unnest()
        whole = node.to.this == exp.DType.DATE if isinstance(node, exp.Cast) else _cuts_days(node)
        if whole and is_clock(of):
            of.replace(constant(today if isinstance(node, exp.Cast) else datetime.combine(today, time())))
    for node in list(tree.find_all(exp.Anonymous)):
        if str(node.this).lower() == "age" and len(node.expressions) == 1:
            node.set("expressions", [constant(today), *node.expressions])
    for node in list(tree.find_all(exp.CurrentDate, exp.Cast)):
        if not isinstance(node, exp.Cast):
            if not node.this:
                made = constant(today)
                alone = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
                # As a column it keeps its name.
                node.replace(exp.alias_(made, "current_date", quoted=True) if alone else made)
            continue
        of = node.this
        if node.to.this != exp.DType.TIMESTAMPTZ or not isinstance(of, exp.Literal) or not of.is_string:
            continue
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(str(of.this).strip())
            moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
            node.replace(constant(moment))


_CLOCKS = {"now", "get_current_timestamp", "transaction_timestamp"}


def is_clock(node: exp.Expr) -> bool:
    """Whether a node is the moment at which it is asked."""
    if isinstance(node, exp.CurrentTimestamp | exp.Localtimestamp):
        return not node.this
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in _CLOCKS and not node.expressions


def _cuts_days(node: exp.Expr) -> bool:
    """Whether DATE_TRUNC cuts off the time of day."""
    return node.args["unit"].name.lower() in UNITS


def _where(error: Exception) -> str:
    """Where the parser stopped, if it says so."""
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    word, line, column = (found.get(part) for part in ("highlight", "line", "col"))
    if not word or not line:
        return ""
    return f": it stops making sense at {str(word)[:30]!r} (line {line}, column {column})"


def _stopped(error: Exception, text: str) -> int | None:
    """The character of the text, from 1, where the parser stopped, if it says so."""
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    word, line, column = (found.get(part) for part in ("highlight", "line", "col"))
    if not word or not line:
        return None
    before = sum(len(each) + 1 for each in text.split("\n")[: int(line) - 1])
    return max(before + int(column or 0) - len(str(word)) + 1, 1)


def split(text: str) -> list[str]:
    """The statements of a text, with ; between them. Raises Refused where it ends inside a quotation."""
    try:
        tokens = _DUCKDB.tokenize(text)
    except (SqlglotError, ValueError):
        raise refused(Rule.STATEMENT, "The text ends inside a quotation or a comment", code=SYNTAX) from None
    ends = [token.start for token in tokens if token.token_type == TokenType.SEMICOLON]
    parts = [text[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True)]
    kept = []
    for part in parts:
        if _DUCKDB.tokenize(part):
            kept.append(part.strip())
    return kept


def tokenize(text: str, limits: Limits) -> list[Token]:
    """Cut a text into tokens, none of which opens too many brackets. Raises Refused."""
    if len(text) > limits.statement_bytes or len(text.encode("utf-8", "replace")) > limits.statement_bytes:
        raise refused(
            Rule.LIMITS,
            f"The statement is longer than {limits.statement_bytes} bytes",
            allow="limits.statement_bytes in the policy says how long it may be",
            code=TOO_COMPLEX,
        )
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise refused(Rule.STATEMENT, "The text holds characters that no SQL has", code=SYNTAX)
    try:
        tokens = _DUCKDB.tokenize(text)
    except (SqlglotError, ValueError):
        raise refused(Rule.STATEMENT, "The text ends inside a quotation or a comment", code=SYNTAX) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise refused(Rule.STATEMENT, "There is no statement", code=SYNTAX)
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise refused(Rule.STATEMENT, "These are several statements", allow="Send one at a time")
    if len(tokens) > _TOKENS:
        reason = f"The statement has more than {_TOKENS} words"
        raise refused(Rule.LIMITS, reason, allow="Ask for less at once", code=TOO_COMPLEX)
    if sum(token.token_type == TokenType.L_BRACKET for token in tokens) > _LISTS:
        reason = f"The statement has more than {_LISTS} lists and subscripts"
        raise refused(Rule.LIMITS, reason, allow="Ask for less at once", code=TOO_COMPLEX)
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > limits.depth:
            raise _too_deep(limits)
    return tokens


def witness(sql: str, tables: Iterable[str]) -> None:
    """Have DuckDB's parser read what was written from the tree: one SELECT over exactly these tables.

    Raises Refused if it reads anything else: then guard and engine would not speak of the same statement.
    """
    connection = parser()
    wanted = set(tables)
    try:
        kinds = [statement.type.name for statement in connection.extract_statements(sql)]
        names = {name.strip('"') for name in connection.get_table_names(sql)} if kinds == ["SELECT"] else None
    except duckdb.Error:
        kinds, names = [], None
    if kinds != ["SELECT"] or names != wanted:
        raise refused(Rule.WITNESS, "The database reads this statement otherwise than the guard does")


def _too_deep(limits: Limits) -> Refused:
    return refused(
        Rule.LIMITS,
        f"The statement nests deeper than {limits.depth} levels",
        allow="Write it flatter; limits.depth in the policy says how deep it may be",
        code=TOO_COMPLEX,
    )


def _check_depth(tree: exp.Expr, limits: Limits) -> None:
    """Refuse trees that a recursion would not come to the end of; chains of AND, OR and UNION do not count."""
    stack: list[tuple[exp.Expr, int]] = [(tree, 1)]
    most = limits.depth * _NODE_DEPTH
    while stack:
        node, depth = stack.pop()
        if depth > most:
            raise _too_deep(limits)
        for child in node.iter_expressions():
            chained = isinstance(node, _CHAINS) and type(child) is type(node)
            stack.append((child, depth if chained else depth + 1))


def _local(tokens: list[Token], policy: Policy) -> Local | None:
    """The answer to statements that clients send without meaning the data."""
    words = [token.text.upper() for token in tokens[:6]]
    phrase = " ".join(token.text.upper() for token in tokens) if len(tokens) <= 3 else ""
    if phrase == "SHOW TABLES":
        return Local("SHOW", ("name",), tuple((name,) for name in sorted(policy.tables)))
    if phrase in _TRANSACTIONS:
        return Local(_TRANSACTIONS[phrase])
    if words[0] == "SHOW" and len(words) == 2 and words[1].lower() in CLIENT_SETTINGS:
        name = words[1].lower()
        return Local("SHOW", (name,), ((CLIENT_SETTINGS[name],),))
    if words[0] == "SET" and len(tokens) >= 2:
        at = 2 if words[1] == "SESSION" else 1
        name = tokens[at].text.lower() if len(tokens) > at else ""
        if len(tokens) == at + 3 and name in CLIENT_SETTINGS and words[at + 1] in ("=", "TO"):
            return Local("SET")
        raise refused(
            Rule.STATEMENT,
            f"SET {name[:30]} is not accepted",
            allow=f"Settings that are, without effect: {', '.join(CLIENT_SETTINGS)}",
        )
    return None


def _answer_probes(tree: exp.Expr) -> None:
    """Put the answers to what clients ask when they connect into a SELECT without tables."""
    for node in list(tree.find_all(*_PROBES)):
        if any(node.args.values()):
            continue
        probe = _PROBES[type(node)]
        literal: exp.Expr = exp.Literal.string(probe.answer)
        if isinstance(node.parent, exp.Select):
            literal = exp.Alias(this=literal, alias=exp.to_identifier(probe.label, quoted=True))
        node.replace(literal)


def _tail_of_pivot(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """A statement that begins with PIVOT, and ORDER BY and LIMIT behind it, which the parser does not know there."""
    depth = 0
    for at, token in enumerate(tokens if tokens[0].token_type in (TokenType.PIVOT, TokenType.UNPIVOT) else []):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type in (TokenType.ORDER_BY, TokenType.LIMIT):
            return tokens[:at], tokens[at:]
    return tokens, []


def _numbered(tokens: list[Token]) -> list[Token]:
    """Write the parameters ? as $1, $2 and so on; refuse them beside others."""
    if not any(token.token_type == TokenType.PLACEHOLDER for token in tokens):
        return tokens
    numbered: list[Token] = []
    count = 0
    for token in tokens:
        if token.token_type == TokenType.PARAMETER:
            reason = "Parameters are written as ?, or by name or number, not both"
            raise refused(Rule.PARAMETERS, reason, code=PARAMETERS)
        if token.token_type != TokenType.PLACEHOLDER:
            numbered.append(token)
            continue
        count += 1
        for type_, text in ((TokenType.PARAMETER, "$"), (TokenType.NUMBER, str(count))):
            numbered.append(Token(type_, text, token.line, token.col, token.start, token.end))
    return numbered


def _bind(tree: exp.Expr, parameters: Parameters) -> None:
    """Put literals where parameters stand."""
    places = [node for node in tree.walk() if isinstance(node, exp.Placeholder | exp.Parameter)]
    names = [str(node.this.name if isinstance(node.this, exp.Expr) else node.this or "") for node in places]
    if isinstance(parameters, Mapping):
        values = {str(name): value for name, value in parameters.items()}
    else:
        values = {str(at): value for at, value in enumerate(parameters, 1)}
    if set(values) != set(names):
        missing, extra = sorted(set(names) - set(values)), sorted(set(values) - set(names))
        told = f"{', '.join(missing)} is missing" if missing else f"there is no place for {', '.join(extra)}"
        reason = f"The statement takes {len(set(names))} parameters, {len(values)} are given: {told[:80]}"
        raise refused(Rule.PARAMETERS, reason, code=PARAMETERS)
    for node, name in zip(places, names, strict=True):
        node.replace(constant(values[name]))


def constant(value: Value) -> exp.Expr:
    """The tree of a parameter's value, by its Python type. Raises Refused for a type that is none of SQL's."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        if "\0" in value:
            raise refused(Rule.PARAMETERS, "A text parameter holds a zero byte", code=PARAMETERS)
        return exp.Literal.string(value)
    if isinstance(value, int | float | Decimal):
        if not math.isfinite(value):
            raise refused(Rule.PARAMETERS, "A number parameter is not finite", code=PARAMETERS)
        written = (
            repr(float(value))
            if isinstance(value, float)
            else format(value, "f" if isinstance(value, Decimal) else "d")
        )
        if len(written) > _NUMBER_LENGTH:
            raise refused(Rule.PARAMETERS, "A number parameter has too many digits", code=PARAMETERS)
        number = exp.Literal.number(written.removeprefix("-"))
        return exp.Neg(this=number) if written.startswith("-") else number
    if isinstance(value, date):  # a datetime is a date, too
        kind = "TIMESTAMP" if isinstance(value, datetime) else "DATE"
        if isinstance(value, datetime) and value.tzinfo is not None:
            raise refused(
                Rule.PARAMETERS, "A timestamp parameter has a time zone", allow="Give it without", code=PARAMETERS
            )
        return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build(kind))
    raise refused(Rule.PARAMETERS, f"A parameter of type {type(value).__name__} is no value of SQL", code=PARAMETERS)
