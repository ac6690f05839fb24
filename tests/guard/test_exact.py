"""Mode exact: what it refuses by the text, how it rounds, and what it says of itself."""

from pathlib import Path

import duckdb
import pytest
from duck import insert
from guard_files import truth, write_exact_files
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import InputError
from kgather._guard.guard import WARNING
from kgather._guard.policy import parse_policy
from kgather._guard.refused import Rule
from kgather.guard import Guard, Refused

POLICY = """
version: 1
database: people.duckdb
k: 5
mode: exact
tables:
  people:
    privacy_unit: person
    artifacts: [film]
    measures: [pay, age]
    bounds: {pay: [-50, 100]}
  films: {public: true}
joins: [people.film = films.film]
aggregates: [COUNT, COUNT_DISTINCT, SUM, AVG, STDDEV, VAR, COVAR, CORR]
principals: {analyst: {}}
"""
SIX = (10, 20, 30, 40, 33, 100_000)
"""What those who gave film 1 earn: 100,000 is beyond the bounds."""


def _write(folder: Path, policy: str = POLICY) -> Path:
    with duckdb.connect(folder / "people.duckdb") as con:
        con.execute("create table people (person integer, film integer, pay double, age integer)")
        rows = [(at, 1, pay, 20 + at) for at, pay in enumerate(SIX)]
        rows += [(10 + at, 2, 7, 50) for at in range(6)]
        insert(con, "people", rows)
        con.execute("create table films as select 1 as film, 9.5 as length union all select 2, 1.5")
    (folder / "guard.yml").write_text(policy, encoding="utf-8")
    return folder / "guard.yml"


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return Guard.from_policy(_write(tmp_path))


# What is refused


@pytest.mark.parametrize(
    ("sql", "rule", "reason"),
    [
        ("select stddev(pay) from people", Rule.AGGREGATES, "Mode exact does not answer STDDEV "),
        ("select var_pop(pay) from people", Rule.AGGREGATES, "Mode exact does not answer VAR "),
        ("select corr(pay, age) from people", Rule.AGGREGATES, "Mode exact does not answer CORR "),
        ("select max(pay) from people", Rule.AGGREGATES, "Mode exact does not answer MAX "),
        ("select sum(pay * 1000) from people", Rule.ARGUMENTS, "Mode exact adds up columns as they are"),
        ("select avg(pay + 1) from people", Rule.ARGUMENTS, "Mode exact adds up columns as they are"),
        ("select sum(film) from people", Rule.ARGUMENTS, "Mode exact adds up measures, which no condition uses"),
    ],
)
def test_what_would_be_a_code_is_refused_by_its_text(guard: Guard, sql: str, rule: Rule, reason: str) -> None:
    for ask in (guard.query, guard.explain, guard.describe):
        with pytest.raises(Refused, match=reason) as refusal:
            ask(sql)
        assert (refusal.value.rule, refusal.value.static) == (rule, True)
        assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    "sql", ["select count(*) from people where pay > 5", "select pay, count(*) from people group by 1"]
)
def test_a_measure_chooses_nobody(guard: Guard, sql: str) -> None:
    with pytest.raises(Refused) as refusal:
        guard.query(sql)
    assert refusal.value.static


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            "  visits: {privacy_unit: person, artifacts: [day]}\n",
            "tables.visits: mode exact answers about one protected",
        ),
        ("  other: {privacy_unit: person, grain: unit, artifacts: [a]}\n", "people is another. Use mode measured."),
    ],
)
def test_a_second_protected_table_is_refused(more: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        parse_policy(POLICY.replace("  films:", f"{more}  films:"))
    assert told in str(error.value)


def test_a_long_table_is_refused_where_the_policy_says_so_and_where_the_data_do(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"policy:9: tables\.people\.grain: mode exact answers .* this one has several"
    ):
        parse_policy(POLICY.replace("privacy_unit: person", "privacy_unit: person\n    grain: rows"))
    path = _write(tmp_path)
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("insert into people values (0, 2, 5, 20)")
    with pytest.raises(
        InputError, match=r"guard.yml:7: tables\.people: mode exact answers .* this one has several\. Use mode measured"
    ):
        Guard.from_policy(path)


# What is told


def test_sums_are_rounded_to_what_one_person_can_add(guard: Guard) -> None:
    # 10 + 20 + 30 + 40 + 33, and 100 of the one beyond: 233 is 2 times 100.
    [row] = guard.query("select count(*) as n, sum(pay) as s, avg(pay) as a from people where film = 1").to_pylist()
    assert row == {"n": 6, "s": 200.0, "a": pytest.approx(200 / 6)}
    # 42 in all.
    [row] = guard.query("select count(pay) as n, sum(pay) as s, avg(pay) as a from people where film = 2").to_pylist()
    assert row == {"n": 6, "s": 0.0, "a": 0.0}


def test_one_value_that_is_known_is_recognised_in_no_rounded_total(tmp_path: Path) -> None:
    """All pay ends in 0 but one person's: on which side of a condition that one is, rounded totals do not tell."""
    told = []
    for film in (1, 2):
        folder = tmp_path / str(film)
        folder.mkdir()
        path = _write(folder)
        with duckdb.connect(folder / "people.duckdb") as con:
            con.execute("update people set pay = 30 where pay is not null")
            con.execute("delete from people where person in (5, 15)")
            con.execute(f"insert into people values (99, {film}, 37, 40), (98, {3 - film}, 30, 40)")
        told.append(Guard.from_policy(path).query("select sum(pay) from people where film = 1").to_pylist())
    assert told[0] == told[1]


def test_a_value_that_stands_out_is_recognised_where_there_are_no_bounds(tmp_path: Path) -> None:
    """Ages end in 0 but one person's: an exact total tells on which side of a condition that one is. The answer says
    that it does."""
    path = _write(tmp_path)
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("update people set age = if(person = 0, 37, 40)")
    answers = [
        Guard.from_policy(path).answer(f"select sum(age) as s from people where film = {film}") for film in (1, 2)
    ]
    assert [answer.table.to_pylist() for answer in answers] == [[{"s": 5 * 40.0 + 37}], [{"s": 6 * 40.0}]]
    assert all("who recognises a value in a total" in (answer.warning or "") for answer in answers)


def test_without_bounds_numbers_are_as_they_are(guard: Guard) -> None:
    answer = guard.answer("select sum(age) as s, avg(age) as a from people where film = 1")
    assert answer.table.to_pylist() == [{"s": 135.0, "a": 22.5}]
    assert answer.warning is not None
    assert answer.warning.endswith("Of age the policy gives no bounds: sums and means are as they are.")


def test_every_answer_says_what_it_does_not_protect_against(guard: Guard) -> None:
    for sql in ("select count(*) from people", "select film, sum(pay) from people group by film"):
        answer = guard.answer(sql)
        assert answer.warning is not None
        for part in ("knows the others in a part", "recognises a value in a total", "learns from what is refused"):
            assert part in answer.warning
        assert answer.table.schema.metadata[WARNING].decode() == answer.warning
        assert guard.query(sql).schema.metadata[WARNING].decode() == answer.warning
        assert answer.notes == (answer.warning,)
    told = guard.answer("select sum(pay) from people").warning or ""
    assert "Sums are rounded to what one person can add, and means are made of them: pay to multiples of 100." in told


@pytest.mark.parametrize("sql", ["select count(*) from films", "select 1", "show tables"])
def test_where_nobody_is_in_it_there_is_nothing_to_say(guard: Guard, sql: str) -> None:
    answer = guard.answer(sql)
    assert answer.warning is None
    assert WARNING not in (answer.table.schema.metadata or {})


def test_the_command_line_says_it_on_standard_error(tmp_path: Path) -> None:
    path = _write(tmp_path)
    found = CliRunner().invoke(
        app, ["query", "--policy", str(path), "select count(*) as n from people", "--format", "csv"]
    )
    assert found.stdout == "n\n12\n"
    assert "recognises a value in a total" in " ".join(found.stderr.split())


def test_what_is_cut_off_may_change_without_a_trace(tmp_path: Path) -> None:
    path, sql = _write(tmp_path), "select sum(pay) as s from people where film = 1"
    first = Guard.from_policy(path).query(sql)
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("update people set pay = 70000 where person = 5")
    assert Guard.from_policy(path).query(sql).equals(first)


def test_counts_are_those_of_the_database(tmp_path: Path) -> None:
    guard = Guard.from_policy(write_exact_files(tmp_path))
    for sql in (
        "select count(*) as n from ratings_wide where warcross >= 3",
        "select count(*) as n, sum(salary) as s from ratings_wide where warcross >= 3 and joy_ride is not null",
        "select count(distinct user_id) as n, avg(age) as a from ratings_wide where warcross < 3",
    ):
        assert [tuple(row.values()) for row in guard.query(sql).to_pylist()] == [
            tuple(pytest.approx(value) for value in row) for row in truth(tmp_path, sql)
        ]


def test_a_part_of_fewer_than_k_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """Two conditions that differ by fewer than k people: whichever comes first is answered, the other is not."""
    path = write_exact_files(tmp_path)
    cells = "select joy_ride, egomaniac, count(*) as n from ratings_wide where warcross = 2 group by all"
    chosen = truth(tmp_path, f"from ({cells}) where n < 5 and joy_ride + egomaniac > 0 order by all limit 1")
    [[one, other, _]] = chosen
    more = f"warcross = 2 and joy_ride = {one} and egomaniac = {other}"
    narrow = "select count(*) as n from ratings_wide where warcross >= 3"
    for first, second in ((narrow, f"{narrow} or {more}"), (f"{narrow} or {more}", narrow)):
        for file in tmp_path.glob("ledger*"):
            file.unlink()
        guard = Guard.from_policy(path)
        told = guard.query(first)
        with pytest.raises(Refused) as refusal:
            guard.query(second)
        assert not refusal.value.static
        assert guard.query(first).equals(told)


def test_who_is_gone_takes_a_part_along_and_that_is_said(tmp_path: Path) -> None:
    """A part of fewer than k is told of no more. How much may be missing is in the errors, never nothing."""
    guard = Guard.from_policy(_write(tmp_path))
    by_film = "SELECT film, COUNT(*) AS n FROM people GROUP BY film"
    assert guard.query(by_film).to_pylist() == [{"film": 1, "n": 6}, {"film": 2, "n": 6}]
    (errors,) = guard.answer(by_film, errors=True).errors.values()
    assert errors["uncertain"].to_pylist() == [0.0, 0.0]
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("delete from people where person in (0, 1)")
    answer = Guard.from_policy(tmp_path / "guard.yml").answer(by_film, errors=True)
    told = {row["film"]: row["n"] for row in answer.table.to_pylist()}
    (errors,) = answer.errors.values()
    for row in errors.to_pylist():
        true = {1: 4, 2: 6}[row["key_1"]]
        assert abs(told[row["key_1"]] - true) <= row["uncertain"] * max(true, told[row["key_1"]]) + 1e-9
    assert set(told) == {2}
    assert errors["uncertain"].to_pylist() == [0.4]
