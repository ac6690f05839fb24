"""From a client's question about the catalog, in PostgreSQL's SQL, to a SELECT over the shadow catalog in DuckDB's.

Words come first: what PostgreSQL spells in its own way (pg_catalog., OPERATOR(...), casts to oid and name) is taken out
before the text is parsed. Then relations, casts to regclass and its kin, and functions are rewritten in the tree.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from kgather._guard.labels import label
from kgather._server.postgres.catalog_growth import is_bounded
from kgather._server.postgres.catalog_lists import CHARS, MACROS, SCHEMAS, SESSION, SHOWN, TYPE_NAMES, TYPES
from kgather._server.postgres.catalog_writing import NAMES, USERS, is_null, plain, spell_names, truth, written
from kgather._server.postgres.errors import (
    NOT_SUPPORTED,
    TOLD,
    UNDEFINED_OBJECT,
    UNDEFINED_SCHEMA,
    UNDEFINED_TABLE,
    PgError,
    no_parameter,
)
from kgather._server.postgres.lexer import tokens as lex
from kgather._server.postgres.parameters import around, begins_a_query, bind, casts
from kgather._server.postgres.session_settings import Settings
from kgather._server.postgres.types import INT8

_POSTGRES = Dialect.get_or_raise("postgres")
_SCHEMAS = {"pg_catalog": "kg_pg", "information_schema": "kg_info"}
Known = Mapping[tuple[str, str], Mapping[str, int]]
"""Relations by schema and name: the types of their columns by name."""
_LONGEST = 65_536
_TOKENS = 8_000
_DEEPEST = 200

_APART = "Ask about the catalog and about data in statements of their own."

_ABOUT = re.compile(
    r"\b(?:_?pg_\w|inet_(?:server|client)_|has_\w+_privilege\b|txid_current\b|(?:information_schema|obj_description|"
    r"col_description|format_type|to_reg\w+|reg(?:class|type|proc|namespace|role|oper|config)\w*|"
    rf"{'|'.join(sorted(SESSION))}|now|current_(?:date|time|timestamp|role)|local(?:time|timestamp)|(?:clock|transaction|statement)_timestamp|user|generate_series)\b)|/",
    re.IGNORECASE,
)
"""What a statement has to hold to be worth parsing: most are not about the catalog."""


@dataclass(frozen=True)
class Question:
    """A question about the catalog. labels: of its columns, none where there is a star; settings: what it sets, and
    whether for the transaction only."""

    tree: exp.Expr
    labels: tuple[str, ...]
    settings: tuple[tuple[str, str, bool], ...] = ()
    types: tuple[int, ...] = ()
    """Of its parameters, as far as it says; 0 where it does not."""
    chars: frozenset[str] = field(default=CHARS, repr=False)

    def sql(self, settings: Settings) -> str:
        """The SELECT for the shadow catalog. Raises PgError."""
        return written(self.tree.copy(), settings)


def may_ask(text: str) -> bool:
    """Whether a statement is worth reading as a question about the catalog; quick, and never false for one that is."""
    return len(text) <= _LONGEST and _ABOUT.search(text) is not None


def relations(text: str) -> tuple[str, ...]:
    """The relations of PostgreSQL's catalog that a statement names, as far as its words tell: for the log, which holds
    nothing else of what clients write."""
    found = re.findall(r"\b(pg_[a-z0-9_]{1,40}|information_schema\s*\.\s*[a-z_]{1,40})\b", text.lower())
    named = (re.sub(r"\s", "", name) for name in found)
    return tuple(dict.fromkeys(name for name in named if name != "pg_catalog"))[:_MOST_NAMED]


_MOST_NAMED = 16


def read(
    text: str,
    known: Known,
    data: frozenset[str],
    parameters: Sequence[Any] | None = None,
) -> Question | None:
    """Read a question about the catalog; None where a statement is none. known: the relations of the shadow catalog.
    data: names of the policy's tables, which go before those of pg_catalog. parameters: None where not known yet.

    Raises PgError where it asks about the catalog in a way that is not answered.
    """
    if not may_ask(text):
        return None
    try:
        tokens = _whole_tables(_POSTGRES.tokenize(_apart(text)))
        if len(tokens) > _TOKENS or not begins_a_query(tokens):
            return None
        trees = [tree for tree in _POSTGRES.parser().parse(_plainer(tokens), text) if tree is not None]
    except (SqlglotError, ValueError, RecursionError):
        if re.search(r"\b(?:pg_catalog|information_schema)\b", text, re.IGNORECASE):
            raise PgError(NOT_SUPPORTED, TOLD) from None
        return None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return None
    tree = trees[0]
    if _depth(tree) > _DEEPEST:
        return None
    ours = [_ours(table, known, data, tree) for table in tree.find_all(exp.Table)]
    if not all(ours):
        if any(
            own and isinstance(table.this, exp.Identifier) and not _is_local(table, tree)
            for own, table in zip(ours, tree.find_all(exp.Table), strict=True)
        ):
            raise PgError(NOT_SUPPORTED, _APART)
        return None
    tree.meta["text"] = text  # which words there were
    if not ours and not _asks_of_session(tree):
        return None
    near = around(tree, lambda node: _beside(node, tree, known))
    types = tuple(oid or near.get(at, 0) for at, oid in enumerate(casts(tokens), 1))
    if parameters is not None:
        _check_given(tokens, len(parameters))
    labels = _labels(tree)
    bind(tree, parameters, types)
    for column in tree.find_all(exp.Column):
        if (
            column.db.lower() in _SCHEMAS
        ):  # information_schema.tables.table_name: relations have aliases without schemas
            column.set("db", None)
            column.set("catalog", None)
    for table in tree.find_all(exp.Table):
        _place(table, known)
    for cast in list(tree.find_all(exp.Cast)):
        spell_names(cast)
    for cast in tree.find_all(exp.Cast):
        _check_name(cast, known, data)
    own = (node.name.lower() for node in tree.find_all(exp.Anonymous))
    if any(name in _OURS or name.startswith("kg_") for name in own) or not is_bounded(tree):
        raise PgError(NOT_SUPPORTED, TOLD)
    return Question(tree, labels, _configured(tree), types)


_OURS = frozenset({"range", "error", "divide"})
"""Functions of DuckDB that only this server writes."""


# Words


def _check_given(tokens: Sequence[Token], count: int) -> None:
    """Raises PgError for a parameter that has no value."""
    for token, behind in pairwise(tokens):
        if token.token_type == TokenType.PARAMETER and behind.text.isdecimal() and int(behind.text[:9]) > count:
            raise no_parameter(behind.text[:20], token.start + 1)


def _apart(text: str) -> str:
    """A text with parameters that no quotation begins with, as it does in ($1,$2); all else stays in its place."""
    marks = [token.start for token in lex(text) if token.kind == "parameter"] if "$" in text else []
    for at in marks:
        text = f"{text[:at]}@{text[at + 1 :]}"
    return text


def _whole_tables(tokens: list[Token]) -> list[Token]:
    """TABLE name is SELECT * FROM name."""
    if len(tokens) < 2 or tokens[0].token_type != TokenType.TABLE:
        return tokens
    first = tokens[0]
    words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    made = [Token(kind, word, first.line, first.col, first.start, first.end) for kind, word in words]
    return [*made, *tokens[1:]]


def _plainer(tokens: list[Token]) -> list[Token]:
    """Take out what only PostgreSQL has words for."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token, rest = tokens[at], tokens[at + 1 : at + 6]
        word = token.text.lower()
        types = [each.token_type for each in rest]
        if types[:1] == [TokenType.DOT] and (
            word == "pg_catalog" or (word == "information_schema" and rest[1:] and rest[1].text.lower() in MACROS)
        ):
            if len(found) > 1 and found[-1].token_type == TokenType.DOT:
                del found[-2:]  # the name of the database
            at += 2
        elif word == "operator" and types[:1] == [TokenType.L_PAREN]:
            end = next((to for to in range(at + 2, len(tokens)) if tokens[to].token_type == TokenType.R_PAREN), at + 1)
            inside = [each for each in tokens[at + 2 : end] if each.token_type != TokenType.DOT]
            found += [each for each in inside if each.text.lower() != "pg_catalog"]
            at = end + 1
        elif word == "collate" and rest and _skipped(rest) is not None:
            at += 1 + (_skipped(rest) or 0)
        elif (
            token.token_type == TokenType.SELECT
            and types[:1] == [TokenType.FROM]
            and not (found and found[-1].token_type == TokenType.ALIAS)
        ):
            # Rows without columns, as in EXISTS.
            found += [token, Token(TokenType.NULL, "NULL", token.line, token.col, token.start, token.end)]
            at += 1
        elif word == "oid" and found and found[-1].token_type == TokenType.DCOLON and types[:2] == _BRACKETS:
            found.append(Token(TokenType.BIGINT, "BIGINT", token.line, token.col, token.start, token.end))
            at += 1
        elif (
            found
            and found[-1].token_type in (TokenType.DCOLON, TokenType.ALIAS)
            and word in TYPES
            and (found[-1].token_type == TokenType.DCOLON or types[:1] == [TokenType.R_PAREN])
        ):
            kind = TYPES[word]
            found.append(Token(kind, kind.name, token.line, token.col, token.start, token.end))
            at += 1
        elif found and found[-1].token_type == TokenType.DCOLON and word in _REGS and types[:2] == _BRACKETS:
            # The parser has no arrays of these.
            found.append(Token(TokenType.VAR, f"{NAMES}{word}", token.line, token.col, token.start, token.end))
            at += 1
        elif (
            found
            and found[-1].token_type == TokenType.ALIAS
            and token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
            and types[:1] in _AFTER_NAME
            and word.isidentifier()
        ):
            # Any word may be a name there.
            found.append(Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end))
            at += 1
        else:
            found.append(token)
            at += 1
    return found


_REGS = frozenset({"regtype", "regclass", "regproc", "regprocedure", "regoper", "regrole", "regnamespace"})
_BRACKETS = [TokenType.L_BRACKET, TokenType.R_BRACKET]
_AFTER_NAME: tuple[list[TokenType], ...] = ([TokenType.COMMA], [TokenType.FROM], [])


def _skipped(rest: list[Token]) -> int | None:
    """How many words after COLLATE name a collation of pg_catalog."""
    words = [each.text.lower() for each in rest]
    if words[:2] == ["pg_catalog", "."]:
        return 3
    return 1 if words[0] in ("default", "c", "posix") else None


# Relations


def _beside(node: exp.Expr, tree: exp.Expr, known: Known) -> int | None:
    """The type of a column of the catalog, or of a number."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return INT8.oid
    if not isinstance(node, exp.Column):
        return None
    found = set()
    for table in tree.find_all(exp.Table):
        if node.table and node.table.lower() != table.alias_or_name.lower():
            continue
        columns = known.get((_SCHEMAS.get(table.db.lower(), "kg_pg"), table.name.lower()), {})
        found.add(columns.get(node.name.lower()))
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _ours(table: exp.Table, known: Known, data: frozenset[str], tree: exp.Expr) -> bool:
    """Whether a relation is of the catalog, a function, or made in the statement itself."""
    if isinstance(table.this, exp.Func):
        return True  # which ones there may be is looked at later
    if not isinstance(table.this, exp.Identifier):
        return False
    if _is_local(table, tree):
        return True
    schema, name = table.db.lower(), table.name.lower()
    if schema:
        return schema in _SCHEMAS  # in whichever database: every name of one leads here
    return name not in data and (("kg_pg", name) in known or name.startswith("pg_"))


def _is_local(table: exp.Table, tree: exp.Expr) -> bool:
    return not table.db and table.name.lower() in {cte.alias.lower() for cte in tree.find_all(exp.CTE)}


_ALONE = (
    *(exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Localtime, exp.Localtimestamp),
    *(exp.Div, exp.GenerateSeries, exp.ExplodingGenerateSeries),
)
"""What the guard does not answer, or in another way than PostgreSQL. Without a table nothing is asked of data, so that
PostgreSQL's rules hold."""


def _asks_of_session(tree: exp.Expr) -> bool:
    for node in tree.walk():
        if isinstance(node, exp.CurrentSchema | exp.CurrentVersion | exp.CurrentDatabase | exp.CurrentUser):
            return True
        if isinstance(node, exp.SessionUser | exp.CurrentSchemas | exp.CurrentCatalog | exp.CurrentRole):
            return True
        if isinstance(node, exp.Cast) and isinstance(node.to, exp.ObjectIdentifier):
            return True
        if isinstance(node, _ALONE) and not tree.find(exp.Table):
            return True
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in USERS and not tree.find(exp.Table):
            return True
        if isinstance(node, exp.Anonymous) and (node.name.lower() in MACROS or node.name.lower() in SESSION):
            return True
    return False


def _place(table: exp.Table, known: Known) -> None:
    if not isinstance(table.this, exp.Identifier):
        return
    schema, name = table.db.lower(), table.name.lower()
    place = _SCHEMAS.get(schema, "kg_pg")
    if not schema and not name.startswith("pg_"):
        return  # made in the statement
    if (place, name) not in known:
        at = min((one.meta["start"] for one in table.find_all(exp.Identifier) if "start" in one.meta), default=None)
        told = f"{schema}.{name}" if schema else name
        raise PgError(UNDEFINED_TABLE, f'relation "{told[:80]}" does not exist', None if at is None else at + 1)
    shown = SHOWN.get(name, name)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    table.set("this", exp.to_identifier(shown, quoted=True))
    table.set("db", exp.to_identifier(place))
    table.set("catalog", None)


# Columns


def _labels(tree: exp.Expr) -> tuple[str, ...]:
    """The names that PostgreSQL gives the columns; none where there is a star."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select) or any(
        isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star))
        for each in tree.expressions
    ):
        return ()
    return tuple(label(each) for each in tree.expressions)


def _configured(tree: exp.Expr) -> tuple[tuple[str, str, bool], ...]:
    """What calls of set_config set, and whether for the transaction only."""
    calls = [node for node in tree.find_all(exp.Anonymous) if node.name.lower() == "set_config"]
    found = []
    for call in calls:
        if any(is_null(each) for each in call.expressions):
            continue
        if len(call.expressions) != 3:
            raise PgError(NOT_SUPPORTED, TOLD)
        name, value = (plain(each) for each in call.expressions[:2])
        local = truth(call.expressions[2])
        if name is None or value is None or local is None:
            raise PgError(NOT_SUPPORTED, TOLD)
        found.append((name, value, local))
    return tuple(found)


def _check_name(node: exp.Cast, known: Known, data: frozenset[str]) -> None:
    """Raises PgError for a constant that is cast to regclass or its kin and names nothing."""
    constant = node.this.unnest()
    while isinstance(constant, exp.Cast) and not isinstance(constant.to, exp.ObjectIdentifier):
        constant = constant.this.unnest()
    if not isinstance(node.to, exp.ObjectIdentifier) or not isinstance(constant, exp.Literal):
        return
    kind, name = str(node.to.this).upper(), constant.name
    if not constant.is_string or name.isdigit() or name == "-":
        return
    *before, last = [_folded(part) for part in _PART.findall(name)] or [""]
    schema = before[-1] if before else ""
    if kind == "REGCLASS":
        there = last in data and schema in ("", "main")
        there = there or (_SCHEMAS.get(schema or "pg_catalog", ""), last) in known
        code, told = UNDEFINED_TABLE, "relation"
    elif kind == "REGNAMESPACE":
        there, code, told = last in SCHEMAS, UNDEFINED_SCHEMA, "schema"
    elif kind == "REGTYPE":
        there, code, told = _is_type(last, data), UNDEFINED_OBJECT, "type"
    else:
        return
    if not there:
        at = constant.meta.get("start")
        raise PgError(code, f'{told} "{name[:80]}" does not exist', None if at is None else at + 1)


_PART = re.compile(r'"(?:[^"]|"")*"|[^."]+')
"""A part of a name."""


def _folded(part: str) -> str:
    """A part of a name, as it is kept."""
    part = part.strip()
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()


def _is_type(name: str, data: frozenset[str]) -> bool:
    name = re.sub(r"\s*\([\d, ]*\)", "", name)
    return name.removesuffix("[]").removeprefix("_").strip() in TYPE_NAMES | data


def _depth(tree: exp.Expr) -> int:
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack += [(child, depth + 1) for child in node.iter_expressions()]
    return deepest
