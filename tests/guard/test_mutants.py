"""Statements patched together from parts of the fixtures: each is refused, or answered as the engine answers it."""

import random
from collections import defaultdict
from pathlib import Path

import duckdb
import pytest
import sqlglot
from guard_data import Ask, Unguarded, rows_of, statements
from sqlglot import exp

from kgather._guard.plan import Plan
from kgather._guard.refused import Refused

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "guard"
ROUNDS = 150
CLAUSES = ("where", "group", "having", "order")


def trees() -> list[exp.Query]:
    found = []
    for path in sorted(FIXTURES.glob("*.sql")):
        if path.stem.startswith("statement"):
            continue
        for sql in statements(path):
            tree = sqlglot.parse_one(sql, dialect="duckdb")
            if isinstance(tree, exp.Select | exp.Union) and exchangeable(tree):
                found.append(tree)
    return found


def kind(node: exp.Expr) -> str | None:
    """What a node may be exchanged with."""
    if isinstance(node, exp.Where | exp.Group | exp.Having | exp.Order | exp.Join | exp.CTE):
        return node.key
    if isinstance(node, exp.Table | exp.Subquery):
        return "table"
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
        return "condition"
    if isinstance(node, exp.Column | exp.Func | exp.Binary | exp.Literal | exp.Window | exp.Filter):
        return "value"
    return None


def exchangeable(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of a statement that may be exchanged."""
    return [node for node in tree.walk() if kind(node) and node.parent is not None]


@pytest.mark.parametrize("seed", range(4))
def test_refused_or_right(
    ask: Ask, database: duckdb.DuckDBPyConnection, turned: duckdb.DuckDBPyConnection, unguarded: Unguarded, seed: int
) -> None:
    chance = random.Random(seed)
    whole = trees()
    parts: dict[str, list[exp.Expr]] = defaultdict(list)
    for tree in whole:
        for node in tree.walk():
            if (named := kind(node)) is not None:
                parts[named].append(node)
    answered = 0
    for _ in range(ROUNDS):
        tree = chance.choice(whole).copy()
        for _ in range(chance.randint(1, 2)):
            node = chance.choice(exchangeable(tree))
            node.replace(chance.choice(parts[kind(node) or ""]).copy())
        if chance.random() < 0.3 and isinstance(tree, exp.Select):
            clause = chance.choice(CLAUSES)
            tree.set(clause, chance.choice(parts[clause]).copy())
        sql = tree.sql("duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE)
        try:
            made = ask(sql)
        except Refused:
            continue
        if not isinstance(made, Plan):
            continue
        try:
            wanted = rows_of(database.cursor().execute(sql).fetchall())
            other = rows_of(turned.cursor().execute(sql).fetchall())
        except duckdb.Error:
            continue
        if other == wanted:  # LIMIT, windows and lists without an order mean whichever rows come first
            answered += 1
            assert rows_of(unguarded.answer(made)) == wanted, sql
    assert answered > 5
