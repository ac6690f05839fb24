"""Values that are equal are the same value for all that is done with them. Which of them was read first, or in which of
two ways one person wrote it, is seen nowhere."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from sensitivity import moves, recorded, without
from worlds_of_people import GENEROUS, charged, engine_of, guarded, rows_of, seeded, silent

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.policy import parse_policy
from kgather._guard.refused import Refused

HEAD = f"version: 1\ndatabase: db.duckdb\nk: 3\n{GENEROUS}\n"
TAIL = "principals: {a: {}}\n"


def _written(path: Path, statements: Sequence[str]) -> Path:
    with duckdb.connect(path) as con:
        for statement in statements:
            con.execute(statement)
    return path


def _asked(folder: Path, statements: Sequence[str], policy: str, questions: Sequence[str]) -> Guard:
    folder.mkdir(exist_ok=True)
    _written(folder / "db.duckdb", statements)
    guard = guarded(folder, None, f"{HEAD}{policy}{TAIL}", silent)
    for question in questions:
        rows_of(guard, question)
    return guard


def _numbers(guard: Guard) -> list[object]:
    return [one.numbers.tolist() for one in engine_of(guard).ledger.measurements()]


BIG = 2**55
UHUGE = [
    "create table items(item bigint, genre integer)",
    f"insert into items select {BIG} + i, i % 3 from range(60) t(i)",
    "create table people(id integer, fav uhugeint)",
    f"insert into people select i, cast('{BIG}' as uhugeint) + i % 7 from range(90) t(i)",
]
OF_UHUGE = """tables:
  people: {privacy_unit: id, grain: unit, artifacts: [fav]}
  items: {public: true}
joins: [people.fav = items.item]
"""
LISTED = "tables:\n  people: {privacy_unit: id, grain: unit, artifacts: [fav], values: {fav: [VALUES]}}\n"


@pytest.mark.parametrize("listed", [False, True])
def test_large_whole_numbers_are_told_apart_exactly(tmp_path: Path, listed: bool) -> None:
    """As doubles, numbers beyond 2^53 are equal to their neighbours, and a person would be of many classes."""
    policy = LISTED.replace("VALUES", ", ".join(str(BIG + at) for at in range(60))) if listed else OF_UHUGE
    question = (
        "SELECT fav, COUNT(*) AS n FROM people GROUP BY fav"
        if listed
        else "SELECT genre, COUNT(*) AS n FROM people JOIN items ON people.fav = items.item GROUP BY genre"
    )
    with recorded() as wanted:
        guard = _asked(tmp_path, UHUGE, policy, [question])
    told = {row["fav" if listed else "genre"]: row["n"] for row in rows_of(guard, question) or []}
    assert sum(told.values()) == 90
    other = without(tmp_path / "db.duckdb", tmp_path / "other.duckdb", 7, {"people": "id"})
    assert wanted
    for each, found, reach in moves(guard, wanted, other):
        assert found <= reach, each.name


def test_numbers_beyond_all_types_are_missing(tmp_path: Path) -> None:
    guard = _asked(
        tmp_path,
        ["create table people as select i as id, cast('340282366920938463463374607431768211455' as uhugeint) as fav "
         "from range(50) t(i)"],
        "tables:\n  people: {privacy_unit: id, grain: unit, artifacts: [fav]}\n",
        [],
    )  # fmt: skip
    assert rows_of(guard, "SELECT COUNT(*) AS n FROM people WHERE fav IS NULL") == [{"n": 50}]


TIES = {
    "text": ("varchar collate nocase", "'WIEN'", "'wien'", "SELECT x, COUNT(*) AS n FROM people GROUP BY x"),
    "zero": ("double", "0.0", "-0.0", "SELECT COUNT(*) AS n FROM people WHERE 1 / x > 0"),
    "nan": ("double", "'nan'", "'-nan'", "SELECT x, COUNT(*) AS n FROM people GROUP BY x"),
}


@pytest.mark.parametrize("kind", TIES)
@pytest.mark.parametrize("place", ["first", "between"])
def test_which_of_a_persons_rows_stays_is_not_up_to_others(tmp_path: Path, kind: str, place: str) -> None:
    """Each of 2,000 people has two rows that are equal and written otherwise. Somebody's 100,000 rows before them, or
    between, change nothing for them."""
    type_, one, other, question = TIES[kind]
    found = []
    for at, many in enumerate((0, 100_000, 0)):
        own = f"insert into people select -1, {one} from range({many}) t(i)"
        rows = [f"insert into people select i, {value} from range(2000) t(i)" for value in (one, other)]
        order = [own, *rows] if place == "first" else [rows[0], own, rows[1]]
        policy = "tables:\n  people: {privacy_unit: id, grain: unit, artifacts: [x]}\n"
        statements = [f"create table people(id integer, x {type_})", *order]
        guard = _asked(tmp_path / str(at), statements, policy, [question])
        (counts,) = [one for one in engine_of(guard).ledger.measurements() if one.kind == "counts"]
        found.append(counts.numbers)
    assert abs(found[0] - found[1]).sum() == 1
    assert (found[0] == found[2]).all()


SPELT = [
    "create table people(email varchar collate nocase, city varchar)",
    "insert into people select 'person ' || i, ['Graz', 'Wien'][1 + i % 2] from range(100) t(i)",
    "insert into people values ('ABCDEF', 'Graz')",
    "create table ratings(email varchar, stars integer)",
    "insert into ratings select 'person ' || i % 100, 1 + i % 5 from range(400) t(i)",
    *(f"insert into ratings values ('{''.join(c.lower() if at >> i & 1 else c for i, c in enumerate('ABCDEF'))}', 5)"
      for at in range(64)),
]  # fmt: skip
OF_SPELT = """tables:
  people: {privacy_unit: email, grain: unit, artifacts: [city]}
  ratings: {privacy_unit: email, grain: rows, artifacts: [stars], bounds: {stars: [1, 5]}, rows_per_person: 5}
joins: [people.email = ratings.email]
"""


def test_people_are_told_apart_by_how_their_id_is_written(tmp_path: Path) -> None:
    """Whatever a collation takes for equal: else a person's rows in one table would belong to 64 people of another."""
    question = "SELECT city, COUNT(*) AS n, AVG(stars) AS a FROM ratings JOIN people ON people.email = ratings.email"
    asked = [f"{question} GROUP BY city", "SELECT COUNT(DISTINCT email) AS n FROM ratings WHERE stars = 5"]
    with recorded() as wanted:
        guard = _asked(tmp_path, SPELT, OF_SPELT, asked)
    target = tmp_path / "other.duckdb"
    target.write_bytes((tmp_path / "db.duckdb").read_bytes())
    _written(target, [f"delete from {table} where cast(email as varchar) collate \"binary\" = 'ABCDEF'"
                      for table in ("people", "ratings")])  # fmt: skip
    assert len(wanted) >= 3
    for each, found, reach in moves(guard, wanted, target):
        assert found <= reach, each.name


@pytest.mark.parametrize("question", ["COUNT(*)", "AVG(spent)"])
def test_values_that_are_equal_and_written_otherwise_are_no_groups(tmp_path: Path, question: str) -> None:
    """'30 days' and '1 month' are equal; which of them is told would be one person's choice."""
    statements = [
        "create table visits as select i % 100 as who, to_days(30 * (1 + i // 100)) as every, 1.5 as spent "
        "from range(300) t(i)"
    ]
    policy = (
        "tables:\n  visits: {privacy_unit: who, grain: rows, unique: every, artifacts: [every], measures: [spent]}\n"
    )
    guard = _asked(tmp_path, statements, policy, [])
    before = charged(guard)
    with pytest.raises(Refused, match="values are not told apart") as refusal:
        guard.query(f"SELECT every, {question} FROM visits GROUP BY every")
    assert refusal.value.static
    with pytest.raises(Refused, match="values are not told apart"):
        guard.query("SELECT COUNT(DISTINCT every) FROM visits")
    assert charged(guard) == before


def test_a_sum_of_nothing_is_missing(tmp_path: Path) -> None:
    statements = [
        "create table visits as select i % 100 as who, case when i < 100 then 4 end as spent from range(200) t(i)"
    ]
    policy = "tables:\n  visits: {privacy_unit: who, grain: rows, artifacts: [spent], rows_per_person: 5}\n"
    guard = _asked(tmp_path, statements, policy, [])
    inner = "FROM (SELECT who, SUM(spent) AS s FROM visits GROUP BY who) AS t"
    assert rows_of(guard, f"SELECT COUNT(*) AS n {inner} WHERE s = 4") == [{"n": 100}]
    assert rows_of(guard, f"SELECT COUNT(*) AS n {inner} WHERE s < 0") is None


# Grains


def _tables(count: int) -> list[str]:
    return [f"create table t{at} as select i as id, i % 4 as x from range(40) t(i)" for at in range(count)]


def _of_tables(count: int, ledger: str = "") -> str:
    named = "".join(f"  t{at}: {{privacy_unit: id, artifacts: [x]}}\n" for at in range(count))
    return f"version: 1\ndatabase: db.duckdb\nk: 3\n{ledger}tables:\n{named}{TAIL}"


def test_grains_cost_a_small_part_of_the_budget(tmp_path: Path) -> None:
    """However many tables say none; the others are taken to have several rows a person."""
    _written(tmp_path / "db.duckdb", _tables(60))
    guard = Guard(parse_policy(_of_tables(60)), tmp_path, noise=seeded(1))
    assert 0 < charged(guard) <= 0.04 * engine_of(guard).prices.total
    assert {info.grain for info in guard.catalog.tables.values()} == {"unit", "rows"}
    again = Guard(parse_policy(_of_tables(60)), tmp_path, noise=seeded(2))
    assert charged(again) == charged(guard)
    assert [info.grain for info in again.catalog.tables.values()] == [
        info.grain for info in guard.catalog.tables.values()
    ]


def test_grains_of_changed_data_are_not_measured_under_the_old_version(tmp_path: Path) -> None:
    _written(tmp_path / "db.duckdb", _tables(3))
    first = Guard(parse_policy(_of_tables(2)), tmp_path, noise=silent)
    before = charged(first)
    _written(tmp_path / "db.duckdb", ["insert into t2 values (1, 1)"])
    guard = Guard(parse_policy(_of_tables(3)), tmp_path, noise=silent)
    assert charged(guard) == before
    assert guard.catalog.tables["t2"].grain == "rows"
    engine_of(guard).next_version()
    rows_of(guard, "SELECT COUNT(*) AS n FROM t0")
    kinds = [one.kind for one in engine_of(guard).ledger.measurements()]
    assert kinds.count("grain") == 3
    assert guard.catalog.tables["t2"].grain == "unit"


def test_whom_a_budget_protects_does_not_change_with_the_case_of_a_name(tmp_path: Path) -> None:
    _written(tmp_path / "db.duckdb", ["create table people as select i as id, i // 2 as house from range(40) t(i)"])
    policy = "version: 1\ndatabase: db.duckdb\nk: 3\ntables:\n  {}: {{privacy_unit: {}, grain: rows}}\n"
    policy += TAIL.replace("{", "{{").replace("}", "}}")
    Guard(parse_policy(policy.format("people", "id")), tmp_path, noise=silent)
    Guard(parse_policy(policy.format("PEOPLE", "ID")), tmp_path, noise=silent)
    with pytest.raises(InputError, match="Whom a budget protects does not change"):
        Guard(parse_policy(policy.format("People", "house")), tmp_path, noise=silent)
