"""Databases whose values carry their own names, policies over them in mode exact, and statements that ask about them.

people: one row a user; `full*` hold a power of two for each user, `gap*` are 1 for one user, 0 for others, and missing
for the same users in all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from oracle import BITS, Oracle, decoded, powers

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused


@dataclass(frozen=True)
class World:
    """A database. people: user -> (a, b, c, city). gap: users with gap columns."""

    k: int
    people: dict[int, tuple[Any, ...]]
    gap: tuple[int, ...]

    @property
    def users(self) -> list[int]:
        return sorted(self.people)

    @property
    def fulls(self) -> list[str]:
        return [f"full{at}" for at in range(-(-len(self.people) // BITS))]

    def oracle(self) -> Oracle:
        """The oracle, with nothing heard."""
        return Oracle(self.k, {"full": self.users, "gap": self.gap})

    def policy(self) -> str:
        """The policy as YAML."""
        gaps = "".join(f", gap{at}" for at in range(len(self.gap)))
        return f"""
version: 1
database: world.duckdb
k: {self.k}
mode: exact
margins: true
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [a, b, c]
    measures: [{", ".join(self.fulls)}{gaps}]
    dimensions: [city]
principals: {{one: {{}}, two: {{}}}}
"""

    def write(self, folder: Path) -> None:
        """Make the database and the policy."""
        full = powers(len(self.users))
        (folder / "world.duckdb").unlink(missing_ok=True)
        people = []
        for at, user in enumerate(self.users):
            a, b, c, city = self.people[user]
            known = user in self.gap
            gaps = {f"gap{i}": float(other == user) if known else None for i, other in enumerate(self.gap)}
            fulls = {name: float(full[i, at]) for i, name in enumerate(self.fulls)}
            people.append({"user_id": user, "a": a, "b": b, "c": c, "city": city} | fulls | gaps)
        kinds = {"city": pa.string()} | {name: pa.int32() for name in ("user_id", "a", "b", "c")}
        schema = pa.schema([(column, kinds.get(column, pa.float64())) for column in people[0]])
        with duckdb.connect(folder / "world.duckdb") as con:
            con.register("made", pa.Table.from_pylist(people, schema))
            con.execute("create table people as from made")
            con.unregister("made")
        (folder / "policy.yml").write_text(self.policy())


def of_units(world: World, only: str = "") -> str:
    """Aggregates over users; only: a condition of FILTER."""
    more = f" filter (where {only})" if only else ""
    return ", ".join([f"count(*){more} as n", *(f"sum(p.{name}){more} as {name}" for name in world.fulls)])


def of_gaps(world: World) -> str:
    """Aggregates over the users with gap columns."""
    return ", ".join(f"sum(p.gap{at}) as gap{at}" for at in range(len(world.gap)))


def hear(world: World, oracle: Oracle, answer: pa.Table) -> None:
    """Tell the oracle what an answer told."""
    for row in answer.to_pylist():
        sums = [row.get(name) for name in world.fulls]
        if any(total is not None for total in sums):
            weights = decoded(sums, len(world.users))
            assert weights.sum() == row["n"]
            oracle.hear("full", weights)
        if row.get("gap0") is not None:
            oracle.hear("gap", [row[f"gap{at}"] for at in range(len(world.gap))])


def ask_all(
    folder: Path, world: World, asks: list[tuple[str, str]], oracle: Oracle, *, reopen: tuple[int, ...] = ()
) -> int:
    """Ask in order, the guard opened anew before the places `reopen`; how many were answered."""
    guard = Guard.from_policy(folder / "policy.yml")
    answered = 0
    for at, (principal, sql) in enumerate(asks):
        if at in reopen:
            guard = Guard.from_policy(folder / "policy.yml")
        try:
            answer = guard.query(sql, principal=principal)
        except Refused as refusal:
            if refusal.static:
                raise AssertionError(sql) from refusal
            continue
        answered += 1
        hear(world, oracle, answer)
    return answered


# What hypothesis makes


@st.composite
def worlds(draw: Callable[..., Any], most: int = 60) -> World:
    """A world of 15 to `most` users."""
    n = draw(st.integers(15, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(2, 6))

    def some(low: int, high: int, missing: float) -> int | None:
        return None if random.random() < missing else int(random.integers(low, high + 1))

    spread = draw(st.sampled_from((2, 3, 5)))
    missing = draw(st.sampled_from((0.0, 0.1, 0.4)))
    people = {
        user: (some(1, spread, missing), some(1, 3, missing), some(1, 2, 0.3), ("N", "O", "S")[int(random.integers(3))])
        for user in range(1, n + 1)
    }
    if draw(st.booleans()):  # one person unlike all others
        people[1] = (spread, 3, 1, "W")
    share = draw(st.sampled_from((0.3, 0.6, 0.9)))
    gap = tuple(user for user in people if random.random() < share)[:24]
    return World(k, people, gap or (1,))


_INT = st.integers(0, 5)
_OPS = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))


def conditions(columns: tuple[str, ...], more: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Conditions over artifacts. more: ready-made ones."""
    column = st.sampled_from(columns)
    compare = st.builds("{} {} {}".format, column, _OPS, _INT)
    leaf = st.one_of(
        compare,
        compare,
        st.builds("{} is null".format, column),
        st.builds("{} is not null".format, column),
        st.builds("{} between {} and {}".format, column, _INT, _INT),
        st.builds("{} in ({}, {}, null)".format, column, _INT, _INT),
        st.builds("{} not in ({}, {})".format, column, _INT, _INT),
        st.builds("{} is distinct from {}".format, column, _INT),
        st.builds("({} = {}) is not true".format, column, _INT),
        st.builds("{} + 2 * {} > {}".format, column, column, _INT),
        st.builds("coalesce({}, {}) >= {}".format, column, _INT, _INT),
        st.builds("greatest({}, {}) = {}".format, column, column, _INT),
        st.builds("case when {} = {} then true when {} > {} then false end".format, column, _INT, column, _INT),
        st.just("true"),
        *(st.just(text) for text in more),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("not ({})".format, inner),
        ),
        max_leaves=4,
    )


@st.composite
def statements(draw: Callable[..., Any], world: World) -> str:
    """One statement of any kind."""
    unit = conditions(("p.a", "p.b", "p.c"))
    where = draw(unit)
    u = of_units(world)
    key = draw(st.sampled_from(("p.a", "p.b", "p.city", "p.a is null", "case when p.a > 2 then 'hi' else 'lo' end")))
    texts: dict[str, Callable[[], str]] = {
        "where": lambda: f"select {u} from people p where {where}",
        "filter": lambda: f"select {of_units(world, draw(unit))} from people p where {where}",
        "group": lambda: f"select {key} as key, {u} from people p where {where} group by 1",
        "sets": lambda: f"select p.a, p.city, {u} from people p group by grouping sets ((p.a), (p.city), ())",
        "gaps": lambda: f"select {of_gaps(world)} from people p where {where}",
        "cte": lambda: f"with p as (select * from people q where q.b >= 2) select {u} from p where {where}",
        "union": lambda: (
            f"select {u} from people p where {where} union all select {u} from people p where {draw(unit)}"
        ),
        "above": lambda: (
            f"with t as (select {key} as key, {u} from people p group by 1) select * from t where n >= 1 order by n"
            " desc limit 2"
        ),
        "values": lambda: f"select count(distinct p.a) from people p where {where}",
        "mean": lambda: f"select avg(p.full0), count(p.gap0) from people p where {where}",
    }
    return texts[draw(st.sampled_from(_KINDS))]()


_KINDS = (
    "where", "where", "where", "filter", "group", "group", "sets", "gaps", "cte", "union", "above", "values", "mean",
)  # fmt: skip
