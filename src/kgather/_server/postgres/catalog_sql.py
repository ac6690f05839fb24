"""From a client's question about the catalog, in PostgreSQL's SQL, to a SELECT over the shadow catalog in DuckDB's.

Words come first: what PostgreSQL spells in its own way (pg_catalog., OPERATOR(...), casts to oid and name) is taken out
before the text is parsed. Then relations, casts to regclass and its kin, and functions are rewritten in the tree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from kgather._server.postgres.catalog_lists import (
    CHARS,
    FROM_NAME,
    HARMLESS,
    LABELS,
    MACROS,
    SAME_IN_DUCKDB,
    SESSION,
    SHOWN,
    TO_NAME,
    TYPES,
    VALUES,
    VALUES_OF_CALLS,
)
from kgather._server.postgres.errors import NOT_SUPPORTED, PgError
from kgather._server.postgres.parameters import begins_a_query, bind, casts
from kgather._server.postgres.session_settings import Settings

_POSTGRES = Dialect.get_or_raise("postgres")
_SCHEMAS = {"pg_catalog": "kg_pg", "information_schema": "kg_info"}
_LONGEST = 65_536
_TOKENS = 8_000
_DEEPEST = 200

_TOLD = "This question about the catalog is not answered here."
_APART = "Ask about the catalog and about data in statements of their own."

_ABOUT = re.compile(
    r"\b(?:_?pg_\w|inet_(?:server|client)_|has_\w+_privilege\b|txid_current\b|(?:information_schema|obj_description|"
    r"col_description|format_type|to_reg\w+|reg(?:class|type|proc|namespace|role|oper|config)\w*|"
    rf"{'|'.join(sorted(SESSION))})\b)",
    re.IGNORECASE,
)
"""What a statement has to hold to be worth parsing: most are not about the catalog."""


@dataclass(frozen=True)
class Question:
    """A question about the catalog. labels: of its columns, none where there is a star; settings: what it sets."""

    tree: exp.Expr
    labels: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    types: tuple[int, ...] = ()
    """Of its parameters, as far as it says; 0 where it does not."""
    chars: frozenset[str] = field(default=CHARS, repr=False)

    def sql(self, settings: Settings) -> str:
        """The SELECT for the shadow catalog. Raises PgError."""
        return _written(self.tree.copy(), settings)


def may_ask(text: str) -> bool:
    """Whether a statement is worth reading as a question about the catalog; quick, and never false for one that is."""
    return len(text) <= _LONGEST and _ABOUT.search(text) is not None


def read(
    text: str,
    known: frozenset[tuple[str, str]],
    data: frozenset[str],
    parameters: Sequence[Any] | None = None,
) -> Question | None:
    """Read a question about the catalog; None where a statement is none. known: (schema, table) of the shadow catalog.
    data: names of the policy's tables, which go before those of pg_catalog. parameters: None where not known yet.

    Raises PgError where it asks about the catalog in a way that is not answered.
    """
    if not may_ask(text):
        return None
    try:
        tokens = _POSTGRES.tokenize(text)
        if len(tokens) > _TOKENS or not begins_a_query(tokens):
            return None
        trees = [tree for tree in _POSTGRES.parser().parse(_plainer(tokens), text) if tree is not None]
    except (SqlglotError, ValueError, RecursionError):
        if re.search(r"\b(?:pg_catalog|information_schema)\b", text, re.IGNORECASE):
            raise PgError(NOT_SUPPORTED, _TOLD) from None
        return None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return None
    tree = trees[0]
    if _depth(tree) > _DEEPEST:
        return None
    ours = [_ours(table, known, data, tree) for table in tree.find_all(exp.Table)]
    if not all(ours):
        if any(ours) and any(
            own and not _is_local(table, tree) for own, table in zip(ours, tree.find_all(exp.Table), strict=True)
        ):
            raise PgError(NOT_SUPPORTED, _APART)
        return None
    if not ours and not _asks_of_session(tree):
        return None
    types = casts(tokens)
    bind(tree, parameters if parameters is not None else (None,) * len(types))
    for table in tree.find_all(exp.Table):
        _place(table, known)
    return Question(tree, _labels(tree), _configured(tree), types)


# Words


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
            at += 2
        elif word == "operator" and types[:1] == [TokenType.L_PAREN]:
            end = next((to for to in range(at + 2, len(tokens)) if tokens[to].token_type == TokenType.R_PAREN), at + 1)
            inside = [each for each in tokens[at + 2 : end] if each.token_type != TokenType.DOT]
            found += [each for each in inside if each.text.lower() != "pg_catalog"]
            at = end + 1
        elif word == "collate" and rest and _skipped(rest) is not None:
            at += 1 + (_skipped(rest) or 0)
        elif (
            found
            and found[-1].token_type in (TokenType.DCOLON, TokenType.ALIAS)
            and word in TYPES
            and (found[-1].token_type == TokenType.DCOLON or types[:1] == [TokenType.R_PAREN])
        ):
            kind = TYPES[word]
            found.append(Token(kind, kind.name, token.line, token.col, token.start, token.end))
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


_AFTER_NAME: tuple[list[TokenType], ...] = ([TokenType.COMMA], [TokenType.FROM], [])


def _skipped(rest: list[Token]) -> int | None:
    """How many words after COLLATE name a collation of pg_catalog."""
    words = [each.text.lower() for each in rest]
    if words[:2] == ["pg_catalog", "."]:
        return 3
    return 1 if words[0] in ("default", "c", "posix") else None


# Relations


def _ours(table: exp.Table, known: frozenset[tuple[str, str]], data: frozenset[str], tree: exp.Expr) -> bool:
    """Whether a relation is of the catalog, a function, or made in the statement itself."""
    if isinstance(table.this, exp.Func):
        return True  # which ones there may be is looked at later
    if not isinstance(table.this, exp.Identifier):
        return False
    if _is_local(table, tree):
        return True
    schema, name = table.db.lower(), table.name.lower()
    if table.catalog:
        return False
    if schema:
        return schema in _SCHEMAS
    return name not in data and (("kg_pg", name) in known or name.startswith("pg_"))


def _is_local(table: exp.Table, tree: exp.Expr) -> bool:
    return not table.db and table.name.lower() in {cte.alias.lower() for cte in tree.find_all(exp.CTE)}


def _asks_of_session(tree: exp.Expr) -> bool:
    for node in tree.walk():
        if isinstance(node, exp.CurrentSchema | exp.CurrentVersion | exp.CurrentDatabase | exp.CurrentUser):
            return True
        if isinstance(node, exp.SessionUser | exp.CurrentSchemas | exp.CurrentCatalog | exp.CurrentRole):
            return True
        if isinstance(node, exp.Cast) and isinstance(node.to, exp.ObjectIdentifier):
            return True
        if isinstance(node, exp.Anonymous) and (node.name.lower() in MACROS or node.name.lower() in SESSION):
            return True
    return False


def _place(table: exp.Table, known: frozenset[tuple[str, str]]) -> None:
    if not isinstance(table.this, exp.Identifier):
        return
    schema, name = table.db.lower(), table.name.lower()
    place = _SCHEMAS.get(schema, "kg_pg")
    if not schema and not name.startswith("pg_"):
        return  # made in the statement
    if (place, name) not in known:
        raise PgError(NOT_SUPPORTED, _TOLD)
    shown = SHOWN.get(name, name)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    table.set("this", exp.to_identifier(shown, quoted=True))
    table.set("db", exp.to_identifier(place))


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
    return tuple(_label(each) for each in tree.expressions)


def _label(node: exp.Expr) -> str:
    if isinstance(node, exp.Alias):
        name = node.args["alias"]
        return name.name if name.args.get("quoted") else name.name.lower()
    if isinstance(node, exp.Column | exp.Dot):
        last = node.this if isinstance(node, exp.Column) else node.expression
        return last.name if last.args.get("quoted") else last.name.lower()
    if isinstance(node, exp.Cast):
        inner = _label(node.this)
        kind = node.to.sql("postgres").lower().removesuffix("[]")
        return inner if inner != "?column?" else {"boolean": "bool", "bigint": "int8", "int": "int4"}.get(kind, kind)
    if isinstance(node, exp.Paren):
        return _label(node.this)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return _label(node.this.expressions[0])
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return next((name for kind, name in LABELS.items() if isinstance(node, kind)), "?column?")


def _configured(tree: exp.Expr) -> tuple[tuple[str, str], ...]:
    """What calls of set_config set."""
    calls = [node for node in tree.find_all(exp.Anonymous) if node.name.lower() == "set_config"]
    found = []
    for call in calls:
        name, value = [_plain(each) for each in call.expressions[:2]] if len(call.expressions) == 3 else (None, None)
        if name is None or value is None:
            raise PgError(NOT_SUPPORTED, _TOLD)
        found.append((name, value))
    return tuple(found)


# Writing


def _written(tree: exp.Expr, settings: Settings) -> str:
    for node in list(tree.walk(bfs=True))[::-1]:  # what is inside comes first
        new = _rewritten(node, settings)
        if new is None:
            continue
        if node is tree:
            tree = new
        else:
            node.replace(new)
    return tree.sql("duckdb", comments=False)


def _rewritten(node: exp.Expr, settings: Settings) -> exp.Expr | None:
    """What a node becomes, None where it stays. Raises PgError for a function that is in no list."""
    if isinstance(node, exp.Cast) and isinstance(node.to, exp.ObjectIdentifier):
        return _regged(node)
    for kind, text in VALUES.items():
        if isinstance(node, kind):
            return _parsed(text)
    if isinstance(node, exp.Any | exp.All):
        listed = _listed(node.this.unnest())
        return type(node)(this=exp.Paren(this=listed)) if listed is not None else None
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DType.ARRAY) and (listed := _listed(node.this)) is not None:
        return exp.cast(listed, node.to)
    if isinstance(node, exp.Format):
        form = node.this.copy()
        if isinstance(form, exp.Literal):
            form = exp.Literal.string(re.sub("%[IL]", "%s", form.name))
        return exp.Anonymous(this="printf", expressions=[form, *(each.copy() for each in node.expressions)])
    if isinstance(node, exp.Column) and node.name.lower() == "tableoid":
        return exp.Literal.number(0)
    if isinstance(node, exp.Anonymous):
        return _called(node, settings)
    if isinstance(node, exp.Func) and type(node).__name__ not in HARMLESS:
        raise PgError(NOT_SUPPORTED, _TOLD)
    return None


def _called(node: exp.Anonymous, settings: Settings) -> exp.Expr | None:
    name = node.name.lower()
    if name in ("current_setting", "set_config"):
        first = _plain(node.expressions[0]) if node.expressions else None
        if first is None:
            raise PgError(NOT_SUPPORTED, _TOLD)
        if name == "set_config":
            return node.expressions[1].copy()
        try:
            return exp.Literal.string(settings.get(first))
        except PgError:
            if len(node.expressions) > 1:
                return exp.Null()
            raise
    if name == "all" and len(node.expressions) == 1:
        listed = _listed(node.expressions[0])
        return exp.Anonymous(this="ALL", expressions=[listed]) if listed is not None else None
    if name in ("json_build_object", "jsonb_build_object"):
        return exp.Anonymous(this="json_object", expressions=[each.copy() for each in node.expressions])
    if name in VALUES_OF_CALLS:
        return _parsed(VALUES_OF_CALLS[name])
    if name not in MACROS and name not in SAME_IN_DUCKDB:
        raise PgError(NOT_SUPPORTED, _TOLD)
    return None


def _is_name(node: exp.Expr) -> bool:
    """Whether what is cast to regclass is a name, and no number."""
    if isinstance(node, exp.Literal):
        return not node.name.isdigit()
    made = isinstance(node, exp.Anonymous) and node.name.lower() in ("printf", "quote_ident")
    return made or isinstance(node, exp.Concat | exp.DPipe | exp.Null)


def _plain(node: exp.Expr) -> str | None:
    """The text that a constant is, under whatever casts; None for any other expression."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node.name if isinstance(node, exp.Literal) else None


def _listed(node: exp.Expr) -> exp.Array | None:
    """The array that a text as '{a,b}' is, None for any other expression."""
    if not isinstance(node, exp.Literal) or not re.fullmatch(r"\{[^\"\\{}]*\}", node.name):
        return None
    return exp.Array(expressions=[exp.Literal.string(item.strip()) for item in node.name[1:-1].split(",") if item])


def _regged(node: exp.Cast) -> exp.Expr:
    """A cast to regclass or its kin: of a name to its number, of a number to its name."""
    kind = str(node.to.this).upper()
    inner = node.this.unnest()
    while isinstance(inner, exp.Cast) and not isinstance(inner.to, exp.ObjectIdentifier):
        inner = inner.this.unnest()
    if _is_name(inner):
        function = FROM_NAME.get(kind)
        return exp.func(function, inner.copy()) if function else inner.copy()
    function = TO_NAME.get(kind)
    if function is None:
        return exp.cast(node.this.copy(), "text")
    number = exp.cast(node.this.copy(), "bigint")
    return exp.func(function, number, *([exp.Null()] if function == "format_type" else []))


def _parsed(text: str) -> exp.Expr:
    parsed: object = exp.maybe_parse(text, dialect="duckdb")
    assert isinstance(parsed, exp.Expr)
    return parsed


def _depth(tree: exp.Expr) -> int:
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack += [(child, depth + 1) for child in node.iter_expressions()]
    return deepest
