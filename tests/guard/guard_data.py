"""A made-up database with the tables of a policy, and what executes plans over it without protection."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from kgather._guard.catalog import Catalog
from kgather._guard.plan import Block, Local, Plan, Question
from kgather._guard.refused import Refused
from kgather._guard.render import aggregate_sql, question_sql

ITEMS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")
USERS = 200
_REFUSED = "__refused"

POLICY = """
version: 1
database: fixture.duckdb
ledger: ledger.duckdb
k: 5
mode: adaptive
tables:
  ratings_wide:
    privacy_unit: user_id
    pivot_of: {table: ratings, key: item_id, value: rating, names: {1: warcross, 2: joy_ride, 3: egomaniac, 4: pachinko,
      5: geekerella}}
    artifacts: [warcross, joy_ride, egomaniac, pachinko, geekerella]
    measures: [salary, age]
    dimensions: [marital_status, city, education]
  ratings:
    privacy_unit: user_id
    artifacts: [item_id, rating]
    coarsened: {rated_at: month}
  users:
    privacy_unit: user_id
    measures: [age]
    same_as: {age: ratings_wide.age}
    dimensions: [gender]
    hidden: [occupation, zip]
  items:
    public: true
joins:
  - ratings.user_id = users.user_id
  - ratings.user_id = ratings_wide.user_id
  - ratings.item_id = items.item_id
principals:
  analyst: {}
"""

Ask = Callable[..., Plan | Local]


def build(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill a database: users who rated some of five items, one of them unlike all others."""
    random = np.random.default_rng(7)
    chosen = random.random((USERS, 5)) < 0.6
    values = random.integers(1, 6, (USERS, 5))
    connection.execute(
        "create table users (user_id integer, age integer, gender varchar, occupation varchar, zip varchar)"
    )
    columns = ", ".join(f"{item} integer" for item in ITEMS)
    connection.execute(
        f"create table ratings_wide (user_id integer, {columns}, salary integer, age integer, marital_status varchar,"
        " city varchar, education varchar)"
    )
    connection.execute("create table ratings (user_id integer, item_id integer, rating integer, rated_at timestamp)")
    connection.execute("create table items (item_id integer, title varchar, genre varchar)")
    genres = ("sf", "thriller", "memoir", "game", "romance")
    connection.executemany("insert into items values (?, ?, ?)", list(zip(range(1, 6), ITEMS, genres, strict=True)))
    connection.execute("insert into items values (6, 'unread', 'sf')")
    people, wide, long = [], [], []
    for user in range(1, USERS + 1):
        age = int(random.integers(18, 70))
        row = [int(v) if c else None for v, c in zip(values[user - 1], chosen[user - 1], strict=True)]
        city = "Bergen" if user == 42 else ("Graz", "Lyon", "Ghent")[int(random.integers(3))]
        salary = 999_999 if user == 42 else int(random.integers(12, 71)) * 1000
        education = ("BSc", "MSc", "PhD")[int(random.integers(3))]
        wide.append([user, *row, salary, age, ("single", "married")[int(random.integers(2))], city, education])
        people.append([user, age, "FM"[int(random.integers(2))], "chef", f"10{int(random.integers(100)):03}"])
        long += [
            [user, item, value, f"2024-{int(random.integers(1, 13)):02}-01 12:00:00"]
            for item, value in enumerate(row, 1)
            if value is not None
        ]
    for table, rows in (("users", people), ("ratings_wide", wide), ("ratings", long)):
        marks = ", ".join("?" for _ in rows[0])
        connection.executemany(f"insert into {table} values ({marks})", rows)
    # Who is in one table need not be in another.
    for table in ("ratings_wide", "ratings"):
        connection.execute(f"delete from {table} where user_id in (7, 8)")
    connection.execute("delete from users where user_id in (8, 9, 10)")


@dataclass(frozen=True)
class Refusal:
    """A statement of a fixture `<rule>__refused.sql`. reason: what the refusal says first, without the position."""

    rule: str
    reason: str
    sql: str


def statements(path: Path) -> list[str]:
    """The statements of a fixture: each ends with a semicolon at the end of a line."""
    if path.stem.endswith(_REFUSED):
        return [refusal.sql for refusal in refusals(path)]
    return _parts(path)


def refusals(path: Path) -> list[Refusal]:
    """The statements of a fixture of what is refused: before each stands the reason, as a comment of one line."""
    found = []
    for part in _parts(path):
        comment, _, sql = part.partition("\n")
        assert comment.startswith("-- "), f"{path.name}: no reason before {part[:60]}"
        found.append(Refusal(path.stem.removesuffix(_REFUSED), comment.removeprefix("-- "), sql))
    return found


def said(refused: Refused) -> str:
    """What a refusal says, without the position in the text."""
    return re.sub(r" \(line \d+, column \d+\)", "", str(refused))


def _parts(path: Path) -> list[str]:
    return [part.strip() for part in path.read_text(encoding="utf-8").split(";\n") if part.strip()]


def rows_of(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows in a form that can be compared: in order, numbers to nine digits."""
    return sorted(str(tuple(_rounded(value) for value in row)) for row in rows)


def _rounded(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, float | int | Decimal):
        return str(value)
    return f"{float(value):.9g}"


class Unguarded:
    """Executes plans without any protection: what it answers is what the database answers to the statement itself."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
        self.connection = connection.cursor()
        self.catalog = catalog
        tables = ("users", "ratings_wide", "ratings")
        units = " union ".join(f"select user_id as id from {table}" for table in tables)
        self.connection.execute(f"create or replace temp table kg_units as {units}")

    def answer(self, made: Plan) -> list[tuple[Any, ...]]:
        for block in made.blocks:
            self._relation(block)
        return self.connection.execute(made.sql).fetchall()

    def _relation(self, block: Block) -> None:
        parts = [self._groups(block, chosen) for chosen in block.grouping_sets]
        sql = " union all ".join(f"({part})" for part in parts)
        self.connection.execute(f"create or replace temp table {block.name} as {sql}")

    def _groups(self, block: Block, chosen: tuple[int, ...]) -> str:
        def asked(question: Question, value: str | None) -> str:
            kept = replace(question, keys=tuple(question.keys[at] for at in chosen))
            names = ", ".join([*(f"k{at}" for at in chosen), *(["v"] if value else [])])
            sql = question_sql(kept, [value] if value else [], self.catalog.unit)
            return f"select * from ({sql}) as q({names or 'one'})"

        keys = ", ".join(
            f"g.k{at} as key_{at + 1}" if at in chosen else f"null as key_{at + 1}" for at in range(len(block.keys))
        )
        groups = asked(block.question, None) if chosen else "select 1 as one"
        joins, values = "", ""
        for at, aggregate in enumerate(block.aggregates):
            on = " and ".join(f"g.k{key} is not distinct from a{at}.k{key}" for key in chosen) or "true"
            joins += f" left join ({asked(aggregate.question, aggregate_sql(aggregate))}) as a{at} on {on}"
            value = f"a{at}.v"
            counts = aggregate.function.startswith("COUNT")
            values += f", {f'coalesce({value}, 0)' if counts else value} as {aggregate.name}"
        return f"select {(keys + values).lstrip(', ')} from ({groups}) as g{joins}"
