"""A made-up database with the tables of a policy, and what executes plans over it without protection."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from duck import insert

from kgather._guard.catalog import Catalog
from kgather._guard.constants import values_of, with_constants
from kgather._guard.plan import SET, Block, Inner, Local, Plan, Question
from kgather._guard.refused import Refused
from kgather._guard.render import aggregate_sql, combined_sql, parts_of, question_sql

ITEMS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")
USERS = 200
_REFUSED = "__refused"

OF_WHAT_IS_TOLD = {
    "H01": "HAVING chooses among groups that are shown",
    "H07": "HAVING chooses among groups that are shown",
    "D01": "SELECT DISTINCT is GROUP BY",
    "W03": "a window over an answer",
    "W05": "QUALIFY chooses among groups that are shown",
    "L11": "a histogram is of noisy counts in bins",
    "L15": "a median is of noisy counts in bins",
    "X07": "a mean of cut values is measured as any other",
}
"""Entries of the corpus that want to be refused, and that mode measured answers: they are about groups that are shown,
and about noisy numbers."""

POLICY = """
version: 1
database: fixture.duckdb
ledger: ledger.duckdb
k: 5
mode: measured
budget: {epsilon: 1.0e+6, delta: 1.0e-6}
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
    grain: unit
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
        insert(connection, table, rows)
    # Who is in one table need not be in another.
    for table in ("ratings_wide", "ratings"):
        connection.execute(f"delete from {table} where user_id in (7, 8)")
    connection.execute("delete from users where user_id in (8, 9, 10)")


def turn(connection: duckdb.DuckDBPyConnection) -> None:
    """Put the rows of each table of a database in the opposite order: an answer that changes was never determined."""
    for (table,) in connection.execute("select table_name from duckdb_tables()").fetchall():
        connection.execute(f"create table turned as select * from {table} order by rowid desc")
        connection.execute(f"drop table {table}")
        connection.execute(f"alter table turned rename to {table}")


@dataclass(frozen=True)
class Refusal:
    """A statement of a fixture `<rule>__refused.sql`. reason: what the refusal says first, without the position. mode:
    the mode of the policy, where that is not measured."""

    rule: str
    reason: str
    sql: str
    mode: str | None = None

    @property
    def changes(self) -> dict[str, object]:
        """What is changed in the policy of the fixtures."""
        return {} if self.mode is None else {"mode": self.mode}


def statements(path: Path) -> list[str]:
    """The statements of a fixture: each ends with a semicolon at the end of a line."""
    if path.stem.endswith(_REFUSED):
        return [refusal.sql for refusal in refusals(path)]
    return _parts(path)


def refusals(path: Path) -> list[Refusal]:
    """The statements of a fixture of what is refused: before each stands the reason, as a comment of one line. Behind
    `In mode generalized:` it is the reason in that mode; mode measured answers such a statement, or says another."""
    found = []
    for part in _parts(path):
        comment, _, sql = part.partition("\n")
        assert comment.startswith("-- "), f"{path.name}: no reason before {part[:60]}"
        told = re.fullmatch(r"-- (?:In mode (\w+): )?(.*)", comment)
        assert told is not None
        found.append(Refusal(path.stem.removesuffix(_REFUSED), told[2], sql, told[1]))
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

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        tables: tuple[str, ...] = ("users", "ratings_wide", "ratings"),
    ) -> None:
        self.connection = connection.cursor()
        self.catalog = catalog
        units = " union ".join(f"select user_id as id from {table}" for table in tables)
        self.connection.execute(f"create or replace temp table kg_units as {units}")

    def answer(self, made: Plan) -> list[tuple[Any, ...]]:
        """The rows. Raises Refused where a subquery that is a constant has several."""
        made = with_constants(made, {one.name: self._constant(one) for one in made.inner}) if made.inner else made
        for block in made.blocks:
            self._relation(block)
        return self.connection.execute(made.sql).fetchall()

    def _constant(self, inner: Inner) -> tuple[Any, ...]:
        return values_of(inner, [value for (value,) in self.answer(inner.plan)])

    def _relation(self, block: Block) -> None:
        parts = [self._groups(block, at) for at in range(len(block.grouping_sets))]
        sql = " union all ".join(f"({part})" for part in parts)
        self.connection.execute(f"create or replace temp table {block.name} as {sql}")

    def _groups(self, block: Block, number: int) -> str:
        chosen = block.grouping_sets[number]

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
            for place, (_, part) in enumerate(parts_of(aggregate)):
                on = " and ".join(f"g.k{key} is not distinct from a{at}_{place}.k{key}" for key in chosen) or "true"
                own = asked(part.question, aggregate_sql(part, self.catalog.unit))
                joins += f" left join ({own}) as a{at}_{place} on {on}"
            of = [f"a{at}_{place}.v" for place in range(len(parts_of(aggregate)))]
            values += f", {combined_sql(aggregate, of)} as {aggregate.name}"
        told = f", {number} as {SET}" if block.has_sets else ""
        return f"select {(keys + values + told).lstrip(', ')} from ({groups}) as g{joins}"
