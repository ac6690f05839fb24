"""Nothing takes longer or more than the policy allows, and nothing that the engine says ever gets out."""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from guard_files import atoms_of, truth, write_exact_files, write_files
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from work import count_calls

from kgather._errors import InputError
from kgather._guard.base import Base
from kgather._guard.deadline import LIMITS_MESSAGE, Deadline
from kgather._guard.guard import Guard
from kgather._guard.measured.answering import Answering as MeasuredAnswering
from kgather._guard.plan import Plan, Question
from kgather._guard.refused import TOO_FEW_MESSAGE, Refused, Rule

PUBLIC_ROWS = 30_000


def enlarge(folder: Path) -> None:
    with duckdb.connect(folder / "fixture.duckdb") as con:
        con.execute(f"insert into items select i, 't' || i, 'g' || (i % 7) from range(100, {PUBLIC_ROWS}) r(i)")


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    folder = tmp_path_factory.mktemp("guard")
    return Guard.from_policy(write_files(folder))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    """A guard with little time and memory, and a large public table."""
    folder = tmp_path_factory.mktemp("short")
    policy = write_files(folder, limits={"time_ms": 400, "memory": "150MB"})
    enlarge(folder)
    guard = Guard.from_policy(policy)
    answer(guard, "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 1")
    return guard


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    """A guard in mode exact: of mode measured no time that a reading takes can be seen."""
    return Guard.from_policy(write_exact_files(tmp_path_factory.mktemp("exact"), limits={"time_ms": 400}))


def answer(guard: Guard, sql: str) -> pa.Table:
    """The answer to a small query: kernels are compiled in a first run, and a busy machine may need some more."""
    for _ in range(20):
        with suppress(Refused):
            return guard.query(sql)
    pytest.fail("a small query is over the limits")


def refusal(guard: Guard, sql: str) -> Refused:
    with pytest.raises(Refused) as told:
        guard.query(sql)
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__ or told.value.__context__ is None
    return told.value


def reason(guard: Guard, sql: str) -> str:
    """Why a query is refused, or nothing."""
    try:
        assert isinstance(guard.query(sql), pa.Table)
    except Refused as told:
        return (
            told.reason if told.static or told.reason in (TOO_FEW_MESSAGE, LIMITS_MESSAGE) else "Error: " + told.reason
        )
    return ""


# Time and memory

HEAVY = {
    "pairs of pairs": "SELECT COUNT(*) FROM items a JOIN items b ON a.item_id <> b.item_id"
    " JOIN items c ON c.title <> b.title",
    "sorted pairs": "SELECT a.title FROM items a JOIN items b ON a.item_id <> b.item_id ORDER BY b.title, a.title",
    "pairs beside people": "SELECT n, (SELECT COUNT(*) FROM items a JOIN items b ON a.item_id <> b.item_id"
    " JOIN items c ON c.title <> b.title) FROM (SELECT COUNT(*) AS n FROM ratings_wide) t",
}


@pytest.mark.parametrize("name", HEAVY)
def test_what_takes_too_much_is_ended(short: Guard, name: str) -> None:
    """Without an end by the clock each would take days."""
    told = refusal(short, HEAVY[name])
    if not told.static:
        assert (told.rule, told.reason, told.code) == (Rule.LIMITS, LIMITS_MESSAGE, "54001")


def test_one_of_them_is_ended_by_the_clock(short: Guard) -> None:
    """At least one of the heavy ones gets as far as the engine."""
    assert {refusal(short, HEAVY[name]).reason for name in HEAVY} & {LIMITS_MESSAGE}


def test_after_the_end_of_one_the_next_is_answered(short: Guard) -> None:
    refusal(short, HEAVY["sorted pairs"])
    rows = truth(short.policy.database.parent, "select count(*) from items")[0][0]
    assert answer(short, "SELECT COUNT(*) AS n FROM items").to_pylist() == [{"n": rows}]


def test_conditions_are_ended_too(exact: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection that holds the rows is interrupted; nothing is recorded and nothing is told."""
    engine = atoms_of(exact)
    stamp = engine.ledger.stamp()

    def slow(*_: object) -> None:
        engine._state.base.con.sql("select count(*) from range(1000000) a, range(1000000) b").fetchall()

    monkeypatch.setattr("kgather._guard.base.Base.outcome", slow)
    told = refusal(exact, "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 2")
    assert told.reason == LIMITS_MESSAGE
    assert engine.ledger.stamp() == stamp


def test_what_no_engine_runs_is_ended_at_the_next_step(exact: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgather._guard.answers.Answering.cut_for", lambda *_: time.sleep(0.6))
    stamp = atoms_of(exact).ledger.stamp()
    assert refusal(exact, "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 3").reason == LIMITS_MESSAGE
    assert atoms_of(exact).ledger.stamp() == stamp


def test_how_long_a_measurement_takes_is_not_to_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In mode measured it is finished, however long it takes: an end by the clock would say something of the rows."""
    guard = Guard.from_policy(write_files(tmp_path, limits={"time_ms": 250}))
    answer(guard, "SELECT COUNT(*) AS n FROM items")
    plain = MeasuredAnswering.blocks

    def slow(self: MeasuredAnswering, made: Plan) -> object:
        time.sleep(0.6)
        return plain(self, made)

    monkeypatch.setattr(MeasuredAnswering, "blocks", slow)
    [[true]] = truth(tmp_path, "select count(*) from ratings_wide where warcross >= 2")
    assert guard.query("SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= 2").to_pylist() == [{"n": true}]


def test_a_principal_may_have_less_time(tmp_path: Path) -> None:
    policy = write_exact_files(tmp_path, principals={"analyst": {}, "hasty": {"time_ms": 1}})
    guard = Guard.from_policy(policy)
    assert guard.query("SELECT COUNT(*) AS n FROM items", principal="analyst").num_rows == 1
    with pytest.raises(Refused, match="more time or memory"):
        guard.query("SELECT COUNT(*) FROM ratings_wide WHERE warcross = 2", principal="hasty")


def test_memory_for_results_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    policy = write_files(tmp_path, limits={"memory": "20MB", "time_ms": 60_000})
    enlarge(tmp_path)
    guard = Guard.from_policy(policy)
    sql = "SELECT a.title, b.title FROM items a JOIN items b ON a.item_id < b.item_id ORDER BY b.title, a.title"
    assert refusal(guard, sql).reason == LIMITS_MESSAGE
    assert not (tmp_path / ".tmp").exists(), "answers were written to the disk"


def test_a_database_that_does_not_fit_is_named(tmp_path: Path) -> None:
    policy = write_exact_files(tmp_path, limits={"memory": "10MB"})
    with duckdb.connect(tmp_path / "fixture.duckdb") as con:
        con.execute(
            "insert into ratings_wide select i, * exclude (user_id, i) from range(1000, 500000) r(i), "
            "(from ratings_wide limit 1)"
        )
    with pytest.raises(InputError, match=r"does not fit into 10MB\. Raise limits\.memory"):
        Guard.from_policy(policy)


def test_the_deadline_ends_with_its_block() -> None:
    with duckdb.connect() as con:
        with Deadline(50) as deadline, deadline.watching(con):
            con.sql("select 1").fetchall()
        time.sleep(0.15)
        assert con.sql("select count(*) from range(1000000)").fetchall() == [(1_000_000,)]


def test_an_interrupt_between_two_statements_is_not_lost() -> None:
    def work() -> None:
        with duckdb.connect() as con, Deadline(50) as deadline, deadline.watching(con):
            time.sleep(0.2)
            con.sql("select count(*) from range(1000000) a, range(1000000) b").fetchall()

    with pytest.raises(Refused, match="more time"):
        work()


COMPILED = """
import sys
from kgather._guard import atoms, ledger
from kgather._guard.guard import Guard
from kgather._guard.warm import compile_kernels

def signatures():
    found = {f"{m.__name__}.{n}": list(f.signatures)
             for m in (atoms, ledger) for n, f in vars(m).items()
             if hasattr(f, "signatures") and f.py_func.__module__ == m.__name__}
    assert len(found) >= 8
    return found

compile_kernels()
before = signatures()
assert all(before.values()), [name for name, of in before.items() if not of]
guard = Guard.from_policy(sys.argv[1])
for sql in sys.argv[2:]:
    guard.answer(sql, errors=True)
assert signatures() == before
"""


@pytest.mark.slow
def test_kernels_are_compiled_before_the_clock_starts(tmp_path: Path) -> None:
    """A query compiles none: else the first one after an installation would be over the limits."""
    policy = write_exact_files(tmp_path)
    queries = [
        "SELECT education, AVG(salary), COUNT(*) FROM ratings_wide GROUP BY education",
        "SELECT COUNT(*), SUM(age) FROM ratings_wide WHERE warcross >= 3",
        "SELECT COUNT(DISTINCT user_id) FROM ratings_wide",
    ]
    subprocess.run([sys.executable, "-c", COMPILED, str(policy), *queries], check=True)


# Size

LARGE = {
    "ten megabytes": "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 1" + " OR warcross = 1" * 650_000,
    "ten thousand or": "SELECT COUNT(*) FROM ratings_wide WHERE " + " OR ".join(["warcross = 1"] * 10_000),
    "many values": "SELECT COUNT(*) FROM ratings_wide WHERE warcross IN (" + ", ".join(map(str, range(9_000))) + ")",
    "deep": "SELECT COUNT(*) FROM ratings_wide WHERE " + "(" * 5_000 + "TRUE" + ")" * 5_000,
    "not": "SELECT COUNT(*) FROM ratings_wide WHERE " + "NOT " * 9_000 + "TRUE",
    "one huge value": "SELECT COUNT(*) FROM ratings_wide WHERE city = '" + "x" * 60_000 + "'",
    "one huge number": "SELECT COUNT(*) FROM ratings_wide WHERE warcross > " + "9" * 60_000,
    "one huge name": "SELECT COUNT(*) AS " + "n" * 60_000 + " FROM ratings_wide",
    "nul": "SELECT COUNT(*) FROM ratings_wide\0 WHERE TRUE",
    "nothing": "",
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_ends_quickly(guard: Guard, name: str) -> None:
    said: list[str] = []
    assert count_calls(lambda: said.append(reason(guard, LARGE[name]))) < 10_000_000
    assert len(said[0]) < 2_000


def test_one_huge_parameter(guard: Guard) -> None:
    for value in ("x" * 5_000_000, 10**5000, [1] * 100_000):
        with pytest.raises(Refused):
            guard.query("SELECT COUNT(*) FROM ratings_wide WHERE warcross = ?", parameters=[value])  # type: ignore[list-item]


# The engine's words

ARTIFACTS = ("warcross", "joy_ride", "egomaniac")
ODD = (
    "0",
    "-1",
    "1e308",
    "1e308 * 10",
    "-1e308 * 10",
    "1e-320",
    "9223372036854775807",
    "9223372036854775808",
    "170141183460469231731687303715884105727",
    "1.7976931348623157e308",
    "0.1 + 0.2",
    "1 / 0",
    "0 / 0",
    "5 % 0",
    "'5'",
    "'abc'",
    "''",
    "'1e999'",
    "NULL",
    "TRUE",
    "DATE '2024-02-29'",
    "DATE '2023-02-29'",
    "DATE '0001-01-01'",
    "TIMESTAMP '294247-01-10 04:00:54.775806'",
    "'infinity'",
    "'nan'",
    "-(-9223372036854775808)",
    "CAST('x' AS DOUBLE)",
    "CAST(1e300 AS BIGINT)",
    "ROUND(1e308, -308)",
    "ABS(-9223372036854775808)",
)

values = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(2**130), 2**130).map(str),
    st.floats().map(repr),
    st.text(max_size=6).map(lambda text: "'" + text.replace("'", "''") + "'"),
)
columns = st.sampled_from(ARTIFACTS)
terms = st.one_of(
    columns,
    values,
    st.builds("({} {} {})".format, columns, st.sampled_from(["+", "-", "*", "/", "%", "//", "**"]), values),
    st.builds("{}({})".format, st.sampled_from(["ABS", "ROUND", "FLOOR", "CEIL", "SQRT", "LN"]), columns),
    st.builds("COALESCE({}, {})".format, columns, values),
    st.builds("CASE WHEN {} = {} THEN {} ELSE {} END".format, columns, values, values, columns),
)
conditions = st.recursive(
    st.one_of(
        st.builds("{} {} {}".format, terms, st.sampled_from(["=", "<>", "<", ">=", "IS NOT DISTINCT FROM"]), terms),
        st.builds("{} IN ({}, {})".format, columns, values, values),
        st.builds("{} BETWEEN {} AND {}".format, columns, values, values),
        st.builds("{} IS NULL".format, columns),
        st.builds("{} LIKE {}".format, columns, values),
    ),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=3,
)
aggregates = st.one_of(
    st.sampled_from(
        [
            "COUNT(*)",
            "SUM(salary)",
            "AVG(salary * 1e300)",
            "AVG(1e308 * salary + 1e308)",
            "STDDEV(age)",
            "CORR(salary, age)",
            "COUNT(DISTINCT city)",
            "MAX(salary)",
        ]
    ),
    st.builds("{} {} {}".format, st.just("SUM(salary)"), st.sampled_from(["+", "*", "/", "%", "//"]), values),
    st.builds("CAST(COUNT(*) {} {} AS {})".format, st.sampled_from("+*/"), values, st.sampled_from(["BIGINT", "DATE"])),
    st.builds("ROUND(AVG(age), {})".format, values),
)
statements = st.builds(
    "SELECT {} FROM ratings_wide WHERE {}{}".format,
    aggregates,
    conditions,
    st.sampled_from(["", "", " GROUP BY city", " GROUP BY warcross HAVING COUNT(*) > 1e308 * 10", " LIMIT 'x'"]),
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(statements)
@example("SELECT COUNT(*) FROM ratings_wide WHERE warcross * 1e308 * 10 > 1")
@example("SELECT CAST(AVG(salary) * 1e300 AS BIGINT) FROM ratings_wide WHERE warcross >= 1")
@example("SELECT 5 % 0")
@example("SELECT '\ud800'")
@example("SELECT CAST('x' AS INTEGER)")
def test_only_tables_and_refusals_come_out(guard: Guard, sql: str) -> None:
    told = reason(guard, sql).replace(sql, "")
    for word in ("Error:", "LINE ", "duckdb", "Candidate", "kg_", "Traceback"):
        assert word not in told


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(conditions)
def test_no_condition_fails_on_data(exact: Guard, condition: str) -> None:
    """An error that the data raise would be a word about them: what passes the check never raises one."""
    failed: list[str] = []
    outcome = Base.outcome

    def watched(base: Base, question: Question) -> object:
        try:
            return outcome(base, question)
        except Exception as error:
            failed.append(str(error))
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgather._guard.base.Base.outcome", watched)
        reason(exact, f"SELECT COUNT(*) FROM ratings_wide WHERE {condition}")
    assert failed == []


@pytest.mark.parametrize(
    "error",
    [
        duckdb.ConversionException("Conversion Error: Could not convert string 'Ada' to INT32"),
        duckdb.OutOfRangeException("Out of Range Error: 999999"),
        duckdb.InternalException("INTERNAL Error: 999999"),
        pa.ArrowInvalid("Ada"),
        OverflowError("999999"),
        MemoryError("999999"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["outcome", "column"])
def test_what_breaks_inside_says_nothing(
    exact: Guard, error: Exception, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"kgather._guard.base.Base.{where}", broken)
    told = refusal(exact, "SELECT SUM(salary) FROM ratings_wide WHERE joy_ride = 4")
    assert told.reason in (TOO_FEW_MESSAGE, LIMITS_MESSAGE)
    assert told.static is False


# What a refusal says


@pytest.mark.parametrize("value", [77, 1])
def test_a_refusal_is_one_text(tmp_path: Path, value: int) -> None:
    guard = Guard.from_policy(write_exact_files(tmp_path, k=150))
    told = refusal(guard, f"SELECT COUNT(*) FROM ratings_wide WHERE pachinko = {value}")
    assert (told.reason, told.code, told.rule, told.static) == (TOO_FEW_MESSAGE, "KG001", Rule.TOO_FEW, False)


def test_a_statement_of_constants_that_fails_says_so(guard: Guard) -> None:
    told = refusal(guard, "SELECT 5 % 0")
    assert (told.static, told.rule) == (True, Rule.STATEMENT)
