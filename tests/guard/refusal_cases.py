"""What the guard has to refuse, each with the rule and the reason: the fixtures, and what no fixture can state.

A fixture is one short statement under the policy of `guard_data`. What needs another policy, parameters, a text too
long to read, or the data, is stated here.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import duckdb
from guard_data import refusals, said
from guard_files import atoms_of, changed, write_exact_files, write_files

from kgather._guard import exact
from kgather._guard.base import UNITS, Base
from kgather._guard.catalog import Catalog
from kgather._guard.constants import bound_of, values_of, with_constants
from kgather._guard.deadline import LIMITS_MESSAGE, Deadline
from kgather._guard.functions import witness_functions
from kgather._guard.generalized import Classes
from kgather._guard.guard import Guard
from kgather._guard.partition import Partition
from kgather._guard.plan import (
    TRUE,
    Block,
    Bound,
    Inner,
    Literal,
    Lookup,
    Op,
    PerUnit,
    Plan,
    Question,
    Reference,
    Universe,
)
from kgather._guard.planner import plan
from kgather._guard.policy import Policy
from kgather._guard.refused import TOO_FEW_MESSAGE, Refused, Rule
from kgather._guard.statement import split, witness

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "guard"


@dataclass
class World:
    """What cases ask: the planner under the policy of the fixtures or one with changes, and guards of files."""

    catalog: Catalog
    folder: Path
    _catalogs: dict[str, Catalog] = field(default_factory=dict)
    _guards: int = 0

    def plan(self, sql: str, *parameters: object, types: dict[str, str] | None = None, **changes: object) -> object:
        """Plan a statement. types: of columns, as table.column, that have another one. changes: to the policy."""
        name = repr((types, changes))
        if name not in self._catalogs:
            self._catalogs[name] = self._changed(types or {}, changes) if types or changes else self.catalog
        return plan(sql, self._catalogs[name], parameters)  # type: ignore[arg-type]

    def _changed(self, types: dict[str, str], changes: dict[str, object]) -> Catalog:
        plain = self.catalog.policy.model_dump()
        names = {"integer": "INTEGER", "text": "VARCHAR", "timestamp": "TIMESTAMP"}
        schema = {
            info.name: {c.name: types.get(f"{info.name}.{c.name}", names[c.kind]) for c in info.columns.values()}
            for info in self.catalog.tables.values()
        }
        tables = plain["tables"] | changes.pop("tables", {})  # type: ignore[operator]
        policy = Policy.model_validate(changed(plain, **changes, tables=tables))
        return Catalog.of(policy, schema, {info.name: info.grain for info in self.catalog.tables.values()})

    def exact(self, *statements: str, **changes: object) -> Guard:
        """A new guard of the fixtures' database in mode exact. statements: are run on the database before."""
        policy = write_exact_files(self._new_folder(), **changes)
        with duckdb.connect(policy.parent / "fixture.duckdb") as con:
            for sql in statements:
                con.execute(sql)
        return Guard.from_policy(policy)

    def _new_folder(self) -> Path:
        self._guards += 1
        return self.folder / str(self._guards)

    @cached_property
    def shared(self) -> Guard:
        """A guard that nothing is asked of which it keeps."""
        return Guard.from_policy(write_files(self._new_folder()))

    @cached_property
    def base(self) -> Base:
        """What a guard in mode generalized holds."""
        policy = write_files(self._new_folder(), mode="generalized")
        return atoms_of(Guard.from_policy(policy))._state.base


@dataclass(frozen=True)
class Case:
    """Something that has to be refused by a rule, for a reason: the beginning of what is said, without positions."""

    name: str
    rule: str
    reason: str
    run: Callable[[World], object]

    def refused(self, world: World) -> bool:
        """Whether it is refused by its rule for its reason; any other refusal or error is none."""
        try:
            self.run(world)
        except Refused as refusal:
            return refusal.rule == self.rule and said(refusal).startswith(self.reason)
        except Exception:
            return False
        return False


def of_fixtures() -> Iterator[Case]:
    """A case for each statement of the fixtures."""
    for path in sorted(FIXTURES.glob("*__refused.sql")):
        for at, refusal in enumerate(refusals(path), 1):
            yield Case(f"{path.stem}-{at}", refusal.rule, refusal.reason, _planned(refusal.sql, **refusal.changes))


def _planned(sql: str, *parameters: object, **changes: object) -> Callable[[World], object]:
    return lambda world: world.plan(sql, *parameters, **changes)  # type: ignore[arg-type]


def of_limits() -> Iterator[Case]:
    """Statements that are too large, each not much larger than it may be: without the limit they end, too."""

    def case(name: str, reason: str, sql: str, **changes: object) -> Case:
        return Case(name, Rule.LIMITS, reason, _planned(sql, **changes))

    keys = [f"warcross + {at}" for at in range(33)]
    doubled = ["{0} AS a0", *(f"a{at} + a{at} AS a{at + 1}" for at in range(13))]
    people = ["c0 AS (SELECT user_id FROM ratings_wide)"]
    people += [f"c{at} AS (SELECT a.user_id FROM c{at - 1} a JOIN c{at - 1} b USING (user_id))" for at in range(1, 5)]
    yield case(
        "bytes", "The statement is longer than 20 bytes.", "SELECT COUNT(*) FROM users", limits={"statement_bytes": 20}
    )
    yield case("words", "The statement has more than 8000 words.", "SELECT 1" + " + 1" * 4_000)
    deep = "The statement nests deeper than 10 levels."
    yield case("brackets", deep, "SELECT " + "(" * 11 + "1" + ")" * 11, limits={"depth": 10})
    yield case("nodes", deep, "SELECT " + "- " * 50 + "1", limits={"depth": 10})
    yield case("selects", "The statement holds more than 64 SELECTs.", " UNION ALL ".join(["SELECT 1"] * 65))
    yield case("columns", "A SELECT has more than 256 columns.", "SELECT " + ", ".join("1" * 257))
    yield case(
        "sources", "A FROM joins more than 16 tables.", "SELECT 1 FROM items t" + ", items t".join(map(str, range(18)))
    )
    yield case("blocks", "More than 24 blocks.", " UNION ALL ".join(["SELECT COUNT(*) FROM users"] * 25))
    yield case(
        "aggregates",
        "More than 64 aggregates.",
        f"SELECT {', '.join(f'SUM(salary + {at})' for at in range(65))} FROM ratings_wide",
    )
    yield case("keys", "More than 32 keys.", f"SELECT COUNT(*) FROM ratings_wide GROUP BY {', '.join(keys)}")
    yield case(
        "grouping sets",
        "More than 64 grouping sets.",
        f"SELECT COUNT(*) FROM ratings_wide GROUP BY CUBE ({', '.join(keys[:4])}), CUBE ({', '.join(keys[4:7])})",
        margins=True,
    )
    yield case(
        "cube",
        "CUBE of more than 6 keys.",
        f"SELECT COUNT(*) FROM ratings_wide GROUP BY CUBE ({', '.join(keys[:7])})",
        margins=True,
    )
    yield case("joined tables", "More than 12 tables are joined.", f"WITH {', '.join(people)} SELECT COUNT(*) FROM c4")
    yield case(
        "operations",
        "An expression of more than 10000 operations.",
        f"SELECT {', '.join(doubled).format('warcross')}, COUNT(*) FROM ratings_wide"
        " WHERE a13 > 0 AND salary > 0 GROUP BY ALL",
    )
    yield case(
        "parts",
        "The statement spells out to more than 20000 parts.",
        f"SELECT {', '.join(doubled[:-1]).format('COUNT(*)')} FROM ratings_wide",
    )
    yield case("lists", "The statement has more than 200 lists and subscripts.", "SELECT " + "+".join(["[1][1]"] * 101))
    listed = ", ".join(str(at) for at in range(201))
    yield case(
        "columns of a pivot",
        "PIVOT makes more than 200 columns.",
        f"PIVOT (SELECT city, COUNT(*) AS n FROM ratings_wide GROUP BY city) ON n IN ({listed}) USING SUM(n)",
    )
    whens = " ".join(f"WHEN warcross = {at} THEN {at + 2}" for at in range(65))
    yield case("branches", "CASE of more than 64 branches.", f"SELECT SUM(CASE {whens} END) FROM ratings_wide")
    texts = ["t0 AS (SELECT city AS x, COUNT(*) AS n FROM ratings_wide GROUP BY city)"]
    texts += [f"t{at + 1} AS (SELECT x || x AS x FROM t{at})" for at in range(13)]
    yield case(
        "doubled texts",
        "A text or list that could be made of more than 4096 others.",
        f"WITH {', '.join(texts)} SELECT x FROM t13",
    )
    yield Case("frames of Python", Rule.LIMITS, "The statement nests too deeply.", _in_little_stack)


def _in_little_stack(world: World) -> None:
    """Plan with a stack that is too small for the statement."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 60)
    try:
        world.plan("SELECT " + "ABS(" * 20 + "1" + ")" * 20)
    finally:
        sys.setrecursionlimit(most)


def of_texts() -> Iterator[Case]:
    """Texts that stand in no file, and parameters."""
    yield Case("nothing", Rule.STATEMENT, "There is no statement.", _planned(""))
    for name, sql in (("zero byte", "SELECT 1\0"), ("lone surrogate", "SELECT '\ud800'")):
        yield Case(name, Rule.STATEMENT, "The text holds characters that no SQL has.", _planned(sql))
    yield Case(
        "other statement",
        Rule.WITNESS,
        "The database reads this statement otherwise than the guard does.",
        lambda _: witness('SELECT * FROM "users"', {"items"}),
    )
    yield Case(
        "function that only the database reads",
        Rule.NODES,
        "The function GETENV is not in the guard's lists.",
        lambda _: witness_functions("SELECT abs(getenv('HOME'))"),
    )
    yield Case(
        "several statements",
        Rule.STATEMENT,
        "The text ends inside a quotation or a comment.",
        lambda _: split("SELECT 1; SELECT 'unfinished"),
    )
    where = "SELECT COUNT(*) FROM ratings_wide WHERE warcross = "

    def case(name: str, reason: str, sql: str, *values: object) -> Case:
        return Case(f"parameter {name}", Rule.PARAMETERS, reason, _planned(sql, *values))

    yield case("of SHOW", "This statement takes no parameters.", "SHOW TABLES", 1)
    yield case("? and $1", "Parameters are written as ?, or by name or number, not both.", f"{where}$1 + ?", 1, 2)
    yield case("missing", "The statement takes 1 parameters, 0 are given: 1 is missing.", f"{where}?")
    yield case("zero byte", "A text parameter holds a zero byte.", f"{where}?", "\0")
    yield case("infinite", "A number parameter is not finite.", f"{where}?", float("inf"))
    yield case("long", "A number parameter has too many digits.", f"{where}?", 10**80)
    yield case("of bytes", "A parameter of type bytes is no value of SQL.", f"{where}?", b"5")
    yield case("zone", "A timestamp parameter has a time zone.", f"{where}?", datetime(2024, 1, 1, tzinfo=UTC))


def of_parents() -> Iterator[Case]:
    """Statements about rows that belong to others, here ratings to rows of users."""
    tables = {
        "users": {"privacy_unit": "user_id", "grain": "rows", "dimensions": ["gender"]},
        "ratings": {"belongs_to": {"user_id": "users.user_id"}, "artifacts": ["item_id", "rating"]},
        "ratings_wide": {"privacy_unit": "user_id", "grain": "unit", "artifacts": ["warcross"]},
    }
    joins = ["users.user_id = ratings_wide.user_id", "ratings.item_id = items.item_id"]

    def case(name: str, rule: Rule, reason: str, sql: str) -> Case:
        return Case(name, rule, reason, _planned(sql, tables=tables, joins=joins))

    yield case(
        "key of rows",
        Rule.CONDITIONS,
        "ratings.user_id names single rows of people.",
        "SELECT COUNT(*) FROM ratings WHERE user_id = 3",
    )
    yield case(
        "left join of what belongs to a row",
        Rule.JOINS,
        "LEFT JOIN of rows that belong to others.",
        "SELECT COUNT(*) FROM users u LEFT JOIN ratings r ON r.user_id = u.user_id",
    )
    yield case(
        "exists of what belongs to a row, with more",
        Rule.SUBQUERIES,
        "EXISTS of rows that belong to a row, with another table of people.",
        "SELECT COUNT(*) FROM users o WHERE EXISTS (SELECT 1 FROM ratings r, users u, ratings_wide w"
        " WHERE r.user_id = o.user_id AND r.user_id = u.user_id AND u.user_id = w.user_id)",
    )


def of_policies() -> Iterator[Case]:
    """Statements under other policies."""
    yield Case(
        "more than a column",
        Rule.ARGUMENTS,
        "An argument that is more than a column.",
        _planned(
            "SELECT AVG(m) FROM (SELECT user_id, COUNT(*) + 1 AS m FROM ratings GROUP BY user_id) AS t",
            mode="generalized",
        ),
    )
    yield Case(
        "units not joined",
        Rule.JOINS,
        "users and ratings_wide are not declared to be joined.",
        _planned("SELECT COUNT(*) FROM users u JOIN ratings_wide w USING (user_id)", joins=[]),
    )
    yield Case(
        "units not joined by IN",
        Rule.JOINS,
        "The tables are not declared to be joined.",
        _planned("SELECT COUNT(*) FROM users WHERE user_id IN (SELECT user_id FROM ratings)", joins=[]),
    )
    yield Case(
        "values written in several ways",
        Rule.KEYS,
        "city is of a type whose values are not told apart.",
        _planned("SELECT city, COUNT(*) FROM ratings_wide GROUP BY city", types={"ratings_wide.city": "INTERVAL"}),
    )
    yield Case(
        "value per person as a key",
        Rule.PER_UNIT,
        "A value per person as a key of groups.",
        _planned(
            "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) t GROUP BY n",
            mode="generalized",
        ),
    )
    yield Case(
        "aggregate that is not listed",
        Rule.AGGREGATES,
        "AVG over rows of people. aggregates in the policy would allow it: [..., AVG].",
        _planned("SELECT AVG(salary) FROM ratings_wide", aggregates=["COUNT"]),
    )
    yield Case(
        "type not compared",
        Rule.CONDITIONS,
        "A column of this type cannot be compared.",
        _planned(
            "SELECT COUNT(*) FROM ratings JOIN items USING (item_id) WHERE genre = genre",
            types={"items.genre": "VARCHAR[]"},
        ),
    )
    rated = {"ratings": {"privacy_unit": "user_id", "artifacts": ["item_id", "rating", "rated_at"]}}
    yield Case(
        "part of a date that is shown as it is",
        Rule.CONDITIONS,
        "HOUR of a date.",
        _planned("SELECT COUNT(*) FROM ratings WHERE EXTRACT(hour FROM rated_at) = 12", tables=rated),
    )
    yield Case(
        "least text",
        Rule.ARGUMENTS,
        "MIN of what is no number and no date.",
        _planned("SELECT MIN(city) FROM ratings_wide", aggregates=["COUNT", "MIN"]),
    )
    yield Case(
        "text as number",
        Rule.ARGUMENTS,
        "AVG of what is no number.",
        _planned(
            "SELECT AVG(gender) FROM users", tables={"users": {"privacy_unit": "user_id", "measures": ["gender"]}}
        ),
    )


def of_answers() -> Iterator[Case]:
    """Statements that the data, or the time they take, decide; and what else is found only when they are answered."""

    def too_few(name: str, sql: str, *statements: str, **changes: object) -> Case:
        return Case(
            f"too few: {name}",
            Rule.TOO_FEW,
            TOO_FEW_MESSAGE,
            lambda world: world.exact(*statements, **changes).query(sql),
        )

    def over(name: str, run: Callable[[Deadline], object]) -> Case:
        return Case(f"over the limits: {name}", Rule.LIMITS, LIMITS_MESSAGE, lambda _: run(Deadline(60_000)))

    inner = Inner("constant 1", Plan((), "SELECT 1", ("n",)), "number")
    several = "A subquery that is compared with a value gives several rows."
    yield Case("constants: several rows", Rule.SUBQUERIES, several, lambda _: values_of(inner, [1, 2]))
    many = replace(inner, several=True)
    told = "A subquery of IN gives more than 200 values."
    yield Case("constants: many values", Rule.LIMITS, told, lambda _: values_of(many, [*range(201)]))
    told = "A subquery in a condition gives a value of another type than what it is compared with."
    made = Plan((Block("b", Question(Universe("unit"), bound_of("constant 1", "number")), (), ((),), ()),), "", ())
    outer = replace(made, inner=(inner,))
    yield Case("constants: types", Rule.SUBQUERIES, told, lambda _: with_constants(outer, {"constant 1": ("a",)}))
    yield too_few("nobody", "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 77")
    yield too_few("no rows", "SELECT COUNT(*) FROM ratings_wide", "delete from ratings_wide")
    yield too_few("no value", "SELECT AVG(salary) FROM ratings_wide", "update ratings_wide set salary = null")
    yield Case(
        "an aggregate in mode exact",
        Rule.AGGREGATES,
        "Mode exact does not answer STDDEV.",
        lambda world: world.exact().query("SELECT STDDEV(salary) FROM ratings_wide"),
    )
    yield Case("too few: mode exact", Rule.TOO_FEW, TOO_FEW_MESSAGE, _exactly)
    yield Case("too few: the engine fails", Rule.TOO_FEW, TOO_FEW_MESSAGE, _fails)
    yield over("checked", _late)
    yield over("interrupted", _interrupted)
    yield over("failed late", _failed_late)
    yield Case(
        "values that cannot be computed",
        Rule.STATEMENT,
        "The statement's values cannot be computed.",
        lambda world: world.shared.query("SELECT 5 % 0"),
    )
    yield Case(
        "parameter out of range",
        Rule.STATEMENT,
        "The statement holds a value that is out of range, or a text that cannot be read.",
        lambda world: world.shared.query("SELECT ?", parameters=[Decimal("sNaN")]),
    )
    yield Case(
        "columns without a type",
        Rule.RESULTS,
        "The types of the statement's columns cannot be told.",
        lambda world: world.shared.describe("SELECT title / 2 AS half FROM items"),
    )
    told = "Mode generalized answers about classes of users by their sets of values, not about "
    of_units = Universe("unit", None, (Reference("ratings_wide"),))
    one, other = (Bound("ratings_wide", name, "integer") for name in ("warcross", "joy_ride"))
    two = Literal(2, "integer")
    visited = PerUnit("COUNT", "ratings", None, TRUE, "integer")
    item = Bound("items", "item_id", "integer")
    looked_up = Universe("unit", None, (Reference("ratings_wide"),), (Lookup(one, item),))
    for what, question in (
        ("rows of a long table.", Question(Universe("rows", "ratings"), TRUE)),
        ("rows of a long table", Question(of_units, Op(">", (visited, two)))),
        ("columns of public tables.", Question(looked_up, Op("=", (item, two)))),
        ("groups.", Question(of_units, TRUE, (one,))),
        ("a condition on several columns at once.", Question(of_units, Op("=", (one, other)))),
    ):
        yield Case(f"classes: {what}", Rule.CONDITIONS, told + what, _of_one_class(question))


def _exactly(world: World) -> None:
    """Ask in mode exact for two sets that cut one another into parts of which one is too small."""
    guard = world.exact(k=20)
    guard.query("SELECT COUNT(*) FROM ratings_wide WHERE warcross >= 3")
    guard.query("SELECT COUNT(*) FROM ratings_wide WHERE joy_ride >= 3")


def _fails(_: World) -> None:
    with duckdb.connect() as con, Deadline(60_000) as deadline, deadline.watching(con):
        con.execute("select error('999999')")


def _late(deadline: Deadline) -> None:
    deadline.over = True
    deadline.check()


def _interrupted(deadline: Deadline) -> None:
    with duckdb.connect() as con, deadline, deadline.watching(con):
        raise duckdb.InterruptException


def _failed_late(deadline: Deadline) -> None:
    with duckdb.connect() as con, deadline, deadline.watching(con):
        deadline.over = True
        con.execute("select error('999999')")


def _of_one_class(question: Question) -> Callable[[World], object]:
    """Ask about one class that all are in."""

    def run(world: World) -> object:
        unit = world.base.rows[UNITS].unit
        return Classes(world.base, Partition.whole(unit), "any").shares(question)

    return run


def of_exact() -> Iterator[Case]:
    """What mode exact refuses by the text, whatever the policy's tables are."""

    def case(name: str, rule: Rule, reason: str, sql: str) -> Case:
        return Case(f"exact: {name}", rule, reason, lambda world: _checked(world, sql))

    yield case("STDDEV", Rule.AGGREGATES, "Mode exact does not answer", "SELECT STDDEV(salary) FROM ratings_wide")
    yield case("scale", Rule.ARGUMENTS, "Mode exact adds up columns as they are", "SELECT SUM(2 * age) FROM users")
    yield case("artifact", Rule.ARGUMENTS, "Mode exact adds up measures", "SELECT SUM(rating) FROM ratings")


def _checked(world: World, sql: str) -> None:
    made = world.plan(sql)
    assert isinstance(made, Plan)
    exact.check(made, world.catalog)


def cases() -> list[Case]:
    """Everything that has to be refused."""
    return [*of_fixtures(), *beside_fixtures()]


def of_margins() -> Iterator[Case]:
    """Grouping sets, which a policy allows that says margins: true."""
    for name, rule, reason, sql in (
        (
            "equal sets",
            Rule.KEYS,
            "Two grouping sets are the same.",
            "SELECT gender, COUNT(*) FROM users GROUP BY GROUPING SETS ((gender), (gender))",
        ),
        (
            "grouping of no key",
            Rule.KEYS,
            "GROUPING takes keys of GROUP BY.",
            "SELECT GROUPING(gender), COUNT(*) FROM users GROUP BY ROLLUP (LENGTH(gender))",
        ),
        (
            "grouping of some",
            Rule.AGGREGATES,
            "GROUPING with FILTER.",
            "SELECT GROUPING(gender) FILTER (WHERE TRUE), COUNT(*) FROM users GROUP BY ROLLUP (gender)",
        ),
    ):
        yield Case(name, rule, reason, _planned(sql, margins=True))


def beside_fixtures() -> list[Case]:
    """What no fixture can state."""
    return [*of_limits(), *of_margins(), *of_texts(), *of_policies(), *of_parents(), *of_answers(), *of_exact()]
