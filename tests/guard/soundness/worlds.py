"""Databases whose values carry their own names, policies over them, and statements that ask about them.

people: one row a user; `full*` hold a power of two for each user, `gap*` are 1 for one user, 0 for others, and missing
for the same users in all of them. extra: one row of some users, with a copy of `full*`. ratings: rows of (user, item)
with `code`, a power of two for each row, and `hole*`, as gap*, by rows. people shows the codes of items 1 and 2, too
(w1, w2). visits: rows of users, some of them equal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from oracle import BITS, Oracle, decoded_alike, powers

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

ITEMS = (1, 2, 3)
_GENRES = {1: "x", 2: "x", 3: "y"}


@dataclass(frozen=True)
class World:
    """A database. people: user -> (a, b, c, city). extra: user -> e. ratings: (user, item) -> rating. visits: (user, v)
    each. gap: users with gap columns. hole: places of ratings with hole columns.
    """

    k: int
    mode: str
    people: dict[int, tuple[Any, ...]]
    extra: dict[int, Any]
    ratings: dict[tuple[int, int], Any]
    visits: tuple[tuple[int, int], ...]
    gap: tuple[int, ...]
    hole: tuple[int, ...]

    @property
    def users(self) -> list[int]:
        return sorted(self.people)

    @property
    def rows(self) -> list[tuple[int, int]]:
        return sorted(self.ratings)

    @property
    def fulls(self) -> list[str]:
        return [f"full{at}" for at in range(-(-len(self.people) // BITS))]

    @property
    def codes(self) -> list[str]:
        return [f"code{at}" for at in range(-(-len(self.ratings) // BITS))]

    def oracle(self) -> Oracle:
        """The oracle, with nothing heard."""
        return Oracle(
            self.k,
            {
                "full": self.users,
                "people": self.users,
                "gap": self.gap,
                "code": [user for user, _ in self.rows],
                "rows": [user for user, _ in self.rows],
                "hole": [self.rows[at][0] for at in self.hole],
            },
        )

    def policy(self) -> str:
        """The policy as YAML."""
        gaps = "".join(f", gap{at}" for at in range(len(self.gap)))
        holes = ", ".join(f"hole{at}" for at in range(len(self.hole)))
        same = ", ".join(f"{name}: people.{name}" for name in self.fulls)
        return f"""
version: 1
database: world.duckdb
k: {self.k}
mode: {self.mode}
margins: true
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [a, b, c, w1, w2]
    measures: [{", ".join(self.fulls)}{gaps}]
    dimensions: [city]
    pivot_of: {{table: ratings, key: item, value: code0, names: {{1: w1, 2: w2}}}}
  extra:
    privacy_unit: user_id
    grain: unit
    artifacts: [e]
    measures: [{", ".join(self.fulls)}]
    same_as: {{{same}}}
  ratings:
    privacy_unit: user_id
    grain: rows
    artifacts: [item, rating, {", ".join(self.codes)}]
    measures: [{holes}]
  visits:
    privacy_unit: user_id
    grain: rows
    artifacts: [v]
  items: {{public: true}}
joins:
  - people.user_id = extra.user_id
  - people.user_id = ratings.user_id
  - people.user_id = visits.user_id
  - ratings.item = items.item
principals: {{one: {{}}, two: {{}}, strict: {{mode: exact}}}}
"""

    def write(self, folder: Path) -> None:
        """Make the database and the policy. Values of users that are left out stay reserved for them."""
        full = powers(len(self.users))
        code = powers(len(self.rows))
        (folder / "world.duckdb").unlink(missing_ok=True)
        people, extra, ratings = [], [], []
        for at, user in enumerate(self.users):
            a, b, c, city = self.people[user]
            shown = {
                item: float(code[0, self.rows.index((user, item))]) for item in (1, 2) if (user, item) in self.ratings
            }
            known = user in self.gap
            gaps = {f"gap{i}": float(other == user) if known else None for i, other in enumerate(self.gap)}
            fulls = {name: float(full[i, at]) for i, name in enumerate(self.fulls)}
            people.append(
                {"user_id": user, "a": a, "b": b, "c": c, "city": city, "w1": shown.get(1), "w2": shown.get(2)}
                | fulls
                | gaps
            )
            if user in self.extra:
                extra.append({"user_id": user, "e": self.extra[user]} | fulls)
        for at, (user, item) in enumerate(self.rows):
            holes = {f"hole{i}": float(place == at) if at in self.hole else None for i, place in enumerate(self.hole)}
            codes = {name: float(code[i, at]) for i, name in enumerate(self.codes)}
            ratings.append({"user_id": user, "item": item, "rating": self.ratings[user, item]} | codes | holes)
        whole = {name: pa.int32() for name in ("user_id", "a", "b", "c", "e", "item", "rating", "v")}
        tables = {
            "people": people,
            "extra": extra,
            "ratings": ratings,
            "visits": [{"user_id": user, "v": v} for user, v in self.visits],
            "items": [{"item": item, "genre": genre} for item, genre in _GENRES.items()],
        }
        with duckdb.connect(folder / "world.duckdb") as con:
            for name, rows in tables.items():
                kinds = {"city": pa.string(), "genre": pa.string()} | whole
                schema = pa.schema([(column, kinds.get(column, pa.float64())) for column in rows[0]])
                con.register("made", pa.Table.from_pylist(rows, schema))
                con.execute(f"create table {name} as from made")
                con.unregister("made")
        (folder / "policy.yml").write_text(self.policy())


@dataclass(frozen=True)
class Ask:
    """A statement. of: units or rows, whose columns it tells of; other: nothing that is read out."""

    sql: str
    of: str = "other"


def of_units(world: World, table: str = "p", only: str = "", copy: str | None = None) -> str:
    """Aggregates over users; only: a condition of FILTER; copy: where full* is read instead."""
    more = f" filter (where {only})" if only else ""
    fulls = [f"sum({copy or table}.{name}){more} as {name}" for name in world.fulls]
    gaps = [f"sum({table}.gap{at}){more} as gap{at}" for at in range(len(world.gap))]
    return ", ".join([f"count(*){more} as n", *fulls, *gaps])


def of_rows(world: World, only: str = "") -> str:
    """Aggregates over rows of ratings."""
    more = f" filter (where {only})" if only else ""
    codes = [f"sum(r.{name}){more} as {name}" for name in world.codes]
    holes = [f"sum(r.hole{at}){more} as hole{at}" for at in range(len(world.hole))]
    return ", ".join([f"count(*){more} as n", *codes, *holes])


def hear(world: World, oracle: Oracle, ask: Ask, answer: pa.Table) -> None:
    """Tell the oracle what an answer told."""
    for row in answer.to_pylist():
        if ask.of == "units":
            _hear(oracle, row, ("full", "people", "gap"), world.fulls, "gap")
        elif ask.of == "rows":
            _hear(oracle, row, ("code", "rows", "hole"), world.codes, "hole")
        elif ask.of == "pivot" and row["w"] is not None:
            oracle.hear("code", decoded_alike([row["w"]], len(world.rows), row["m"]))


def _hear(oracle: Oracle, row: dict[str, Any], names: tuple[str, str, str], codes: list[str], gap: str) -> None:
    full, counted, holes = names
    sums = [row[name] for name in codes]
    if any(total is not None for total in sums):
        # As many cells as the count beside says, or they would not be found.
        weights = decoded_alike(sums, len(oracle.users[full]), row["n"])
        oracle.hear(full, weights)
        oracle.hear(counted, weights)
    found = [row[f"{gap}{at}"] for at in range(len(oracle.users[holes]))]
    if found and found[0] is not None:
        oracle.hear(holes, found)


def ask_all(
    folder: Path, world: World, asks: list[tuple[str, Ask]], oracle: Oracle, *, reopen: tuple[int, ...] = ()
) -> int:
    """Ask in order, the guard opened anew before the places `reopen`; how many were answered."""
    guard = Guard.from_policy(folder / "policy.yml")
    answered = 0
    for at, (principal, ask) in enumerate(asks):
        if at in reopen:
            guard = Guard.from_policy(folder / "policy.yml")
        try:
            answer = guard.query(ask.sql, principal=principal)
        except Refused as refusal:
            if refusal.static:
                raise AssertionError(ask.sql) from refusal
            continue
        answered += 1
        hear(world, oracle, ask, answer)
    return answered


# What hypothesis makes


def _maybe(values: st.SearchStrategy[Any], gaps: bool = True) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, st.none()) if gaps else values


@st.composite
def worlds(
    draw: Callable[..., Any], most: int = 24, modes: tuple[str, ...] = ("adaptive", "adaptive", "exact")
) -> World:
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
    extra = {user: some(1, 3, 0.1) for user in people if random.random() < draw(st.sampled_from((0.5, 0.9)))} or {1: 1}
    share = draw(st.sampled_from((0.3, 0.6)))
    ratings = {(user, item): some(1, 3, 0.1) for user in people for item in ITEMS if random.random() < share}
    ratings = ratings or {(1, 1): 1}
    visits = tuple((int(random.integers(1, n + 1)), int(random.integers(1, 3))) for _ in range(n))
    share = draw(st.sampled_from((0.3, 0.6, 0.9)))
    gap = tuple(user for user in people if random.random() < share)[:24]
    hole = tuple(at for at in range(len(ratings)) if random.random() < share)[:16]
    # Pivots show code0 only.
    ratings = dict(sorted(ratings.items())[:BITS])
    hole = tuple(at for at in hole if at < len(ratings)) or (0,)
    return World(k, draw(st.sampled_from(modes)), people, extra, ratings, visits, gap or (1,), hole)


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


_ABOUT = (
    "p.user_id in (select user_id from ratings where item = 1 and rating >= 2)",
    "p.user_id not in (select user_id from visits where v = 1)",
    "exists (select 1 from visits v where v.user_id = p.user_id and v.v = 2)",
    "exists (select 1 from ratings r join items i on r.item = i.item where r.user_id = p.user_id and i.genre = 'x')",
    "p.w1 is null",
    "p.w2 is not null",
)


@st.composite
def statements(draw: Callable[..., Any], world: World) -> Ask:
    """One statement of any kind."""
    unit = conditions(("p.a", "p.b", "p.c"), _ABOUT)
    row = conditions(("r.item", "r.rating"))
    where = draw(unit)
    kind = draw(st.sampled_from(_KINDS))
    u, r = of_units(world), of_rows(world)
    per_user = "(select user_id, count(*) as n, sum(rating) as s from ratings group by user_id)"
    key = draw(st.sampled_from(("p.a", "p.b", "p.city", "p.w1 is null", "case when p.a > 2 then 'hi' else 'lo' end")))
    item = draw(st.sampled_from((1, 2)))
    texts: dict[str, Callable[[], Ask]] = {
        "where": lambda: Ask(f"select {u} from people p where {where}", "units"),
        "filter": lambda: Ask(f"select {of_units(world, only=draw(unit))} from people p where {where}", "units"),
        "group": lambda: Ask(f"select {key} as key, {u} from people p where {where} group by 1", "units"),
        "sets": lambda: Ask(
            f"select p.a, p.city, {u} from people p group by grouping sets ((p.a), (p.city), (p.a, p.city), ())",
            "units",
        ),
        "extra": lambda: Ask(
            f"select {of_units(world, copy='x')} from people p join extra x using (user_id) "
            f"where {draw(conditions(('x.e', 'p.a')))}",
            "units",
        ),
        "left": lambda: Ask(
            f"select {u} from people p left join extra x on p.user_id = x.user_id "
            f"where {draw(conditions(('x.e', 'p.b')))}",
            "units",
        ),
        "pinned": lambda: Ask(
            # COUNT(*) would count rows, from their own partition.
            f"select {u.replace('count(*)', 'count(distinct p.user_id)')} from people p join ratings r using (user_id) "
            f"where r.item = {item} and {draw(row)}",
            "units",
        ),
        "deferred": lambda: Ask(
            f"select {u} from people p join {per_user} as t using (user_id) "
            f"where t.n >= {draw(st.integers(1, 3))} and {where}",
            "units",
        ),
        "cte": lambda: Ask(
            f"with p as (select * from people q where q.b >= 2) select {u} from p where {where}", "units"
        ),
        "union": lambda: Ask(
            f"select {u} from people p where {where} union all select {u} from people p where {draw(unit)}", "units"
        ),
        "above": lambda: Ask(
            f"with t as (select {key} as key, {u} from people p group by 1) select * from t where n >= 1 order by n"
            " desc limit 2",
            "units",
        ),
        "rows": lambda: Ask(f"select {r} from ratings r where {draw(row)}", "rows"),
        "rows by item": lambda: Ask(f"select r.item, {r} from ratings r where {draw(row)} group by r.item", "rows"),
        "rows by genre": lambda: Ask(
            f"select i.genre, {r} from ratings r join items i on r.item = i.item where {draw(row)} group by i.genre",
            "rows",
        ),
        "rows of people": lambda: Ask(
            f"select {r} from ratings r join people p using (user_id) where {where} and {draw(row)}", "rows"
        ),
        "rows filtered": lambda: Ask(f"select {of_rows(world, only=draw(row))} from ratings r", "rows"),
        "pivot": lambda: Ask(f"select sum(p.w{item}) as w, count(p.w{item}) as m from people p where {where}", "pivot"),
        "per user": lambda: Ask(
            "select sum(t.s) as w, sum(t.n) as m from (select user_id, sum(code0) as s, count(*) as n from ratings "
            f"where {draw(conditions(('item', 'rating')))} group by user_id) as t",
            "pivot",
        ),
        "distinct": lambda: Ask(f"select count(distinct r.user_id) from ratings r where {draw(row)}"),
        "values": lambda: Ask(f"select count(distinct p.a) from people p where {where}"),
        "spread": lambda: Ask(f"select avg(p.full0), stddev_pop(p.full0), count(p.gap0) from people p where {where}"),
    }
    return texts[kind]()


_KINDS = (
    "where", "where", "where", "filter", "group", "group", "sets", "extra", "left", "pinned", "deferred", "cte",
    "union", "above", "rows", "rows", "rows by item", "rows by genre", "rows of people", "rows filtered", "pivot",
    "per user", "distinct", "values", "spread",
)  # fmt: skip
