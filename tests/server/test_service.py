"""What clients are told, whatever happens: once, in fixed words, and never more than the guard says."""

import asyncio
import errno
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from waiting import until

from kgather._errors import InputError
from kgather._guard.guard import Answer, Spending
from kgather._guard.measured.measuring import CHANGED, DataChanged
from kgather._guard.refused import Refused, Rule
from kgather._server.service import Cancel, Internal, Service, Unavailable
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry

ANSWER = Answer(pa.table({"n": [12]}))


class Guarded:
    """A guard that does what it is told, and waits where a test wants that."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.entered = threading.Semaphore(0)
        self.finished: list[str] = []
        self.does: Callable[[], Answer] = lambda: ANSWER

    def answer(self, sql: str, **_: object) -> Answer:
        self.entered.release()
        if sql == "wait":
            assert self.go.wait(10)
        self.finished.append(sql)
        return self.does()

    def describe(self, *_: object, **__: object) -> pa.Schema:
        return ANSWER.table.schema


@pytest.fixture
def guarded() -> Guarded:
    return Guarded()


@pytest.fixture
def make(guarded: Guarded) -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def run(**settings: object) -> Service:
        made.append(Service(guarded, ServerSettings(**settings), Telemetry()))  # type: ignore[arg-type]
        return made[-1]

    yield run
    guarded.go.set()
    for service in made:
        service.end()


def metric(service: Service, name: str, **labels: str) -> float:
    return service.telemetry.registry.get_sample_value(name, labels) or 0.0


def outcome(service: Service, name: str) -> float:
    return metric(service, "kgather_queries_total", outcome=name)


def test_an_answer(make: Callable[..., Service]) -> None:
    service = make()
    assert asyncio.run(service.ask("analyst", "SELECT 1")) is ANSWER
    assert service.wait(service.start("analyst", "SELECT 1")) is ANSWER
    assert outcome(service, "answered") == 2
    assert asyncio.run(service.describe("analyst", "SELECT 1")) == ANSWER.table.schema
    assert service.describe_now("analyst", "SELECT 1") == ANSWER.table.schema
    assert outcome(service, "answered") == 2, "a description is no query"
    until(lambda: service.running() == 0)
    assert metric(service, "kgather_queries_running") == 0


def _as_input_error(of: Exception) -> None:
    try:
        raise of
    except Exception:
        msg = "It cannot be written."
        raise InputError(msg) from None


def _full_sqlite() -> None:
    with closing(sqlite3.connect(":memory:")) as con:
        con.execute("pragma max_page_count = 2")
        con.execute("create table t (x blob)")
        con.execute("insert into t values (zeroblob(100000))")


@pytest.mark.parametrize(
    ("fails", "full"),
    [
        (lambda: _as_input_error(OSError(errno.ENOSPC, "it is full")), True),
        (lambda: _as_input_error(OSError(errno.EDQUOT, "too much")), True),
        (lambda: Path("/dev/full").write_text("x"), True),
        (lambda: _full_sqlite(), True),
        (lambda: _as_input_error(duckdb.IOException("Could not write file: No space left on device")), True),
        (lambda: _as_input_error(OSError(errno.EACCES, "not permitted")), False),
        (lambda: _as_input_error(sqlite3.OperationalError("disk I/O error")), False),
        (lambda: _as_input_error(duckdb.IOException("Could not read")), False),
    ],
)
def test_a_full_disk_is_told(
    make: Callable[..., Service], guarded: Guarded, fails: Callable[[], object], full: bool
) -> None:
    def answer() -> Answer:
        fails()
        return ANSWER

    guarded.does = answer
    service = make()
    with pytest.raises(Unavailable if full else Internal) as told:
        asyncio.run(service.ask("analyst", "SELECT 1"))
    assert told.value.code == ("53100" if full else "XX000")
    assert ("disk of the server is full" in told.value.reason) == full
    assert outcome(service, "disk_full") == full


def test_a_refusal_is_passed_on(make: Callable[..., Service], guarded: Guarded) -> None:
    service = make()
    refusal = Refused.too_few()

    def refuse() -> Answer:
        raise refusal

    guarded.does = refuse
    with pytest.raises(Refused) as told:
        asyncio.run(service.ask("analyst", "SELECT 1"))
    assert told.value is refusal
    assert outcome(service, "refused") == 1
    assert metric(service, "kgather_refusals_total", rule="too_few") == 1


@pytest.mark.parametrize(
    "error", [KeyError("Ada"), MemoryError(), InputError("the ledger is gone"), RuntimeError("Ada")]
)
def test_anything_else_is_an_incident(
    make: Callable[..., Service], guarded: Guarded, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    service = make()

    def fail() -> Answer:
        raise error

    guarded.does = fail
    logging.getLogger("kgather._server").propagate = True
    with caplog.at_level(logging.ERROR, "kgather._server"), pytest.raises(Internal) as told:
        asyncio.run(service.ask("analyst", "SELECT 'secret'"))
    assert told.value.incident in str(told.value)
    assert "Ada" not in str(told.value)
    assert "ledger" not in str(told.value)
    (record,) = [record for record in caplog.records if record.name == "kgather._server"]
    said: Any = record
    assert said.incident == told.value.incident
    assert said.error == type(error).__name__
    assert said.told == (str(error) if isinstance(error, InputError) else None)
    assert "Ada" not in str(vars(record))
    assert "secret" not in str(vars(record))


def test_data_that_changed_are_no_incident(make: Callable[..., Service], guarded: Guarded) -> None:
    """A client is told what it can do, and that the owner has something to do; not where the files are."""
    service = make()

    def fail() -> Answer:
        raise DataChanged(CHANGED)

    guarded.does = fail
    with pytest.raises(Unavailable) as told:
        asyncio.run(service.ask("analyst", "SELECT 1"))
    assert told.value.code == "55000"
    assert "the owner begins the next version" in str(told.value)


@pytest.mark.parametrize("ends", ["answer", "few", "static", "error"])
def test_a_cancelled_query_says_the_same_whatever_the_data(
    make: Callable[..., Service], guarded: Guarded, ends: str
) -> None:
    """What the guard finds later changes neither what was told nor what the metrics say; its decision is finished."""
    service = make()

    def end() -> Answer:
        if ends == "few":
            raise Refused.too_few()
        if ends == "static":
            reason = "no such table"
            raise Refused(reason, rule=Rule.TABLES)
        if ends == "error":
            raise KeyError(ends)
        return ANSWER

    guarded.does = end
    cancel = Cancel()
    told = service.start("analyst", "wait", cancel=cancel)
    assert guarded.entered.acquire(timeout=10)
    cancel.cancel()
    with pytest.raises(Unavailable) as first:
        service.wait(told)
    assert (first.value.kind, first.value.code) == ("cancelled", "57014")
    before = service.telemetry.text()
    guarded.go.set()
    until(lambda: guarded.finished == ["wait"] and service.running() == 0)
    after = service.telemetry.text()
    assert [line for line in before.splitlines() if b"running" not in line] == [
        line for line in after.splitlines() if b"running" not in line
    ]
    assert str(told.exception()) == str(first.value)
    cancel.cancel()


def test_a_query_that_waits_for_its_turn_is_cancelled_without_being_asked(
    make: Callable[..., Service], guarded: Guarded
) -> None:
    service = make(queries_at_once=1)
    first = service.start("analyst", "wait")
    assert guarded.entered.acquire(timeout=10)
    cancel = Cancel()
    second = service.start("analyst", "second", cancel=cancel)
    cancel.cancel()
    guarded.go.set()
    assert service.wait(first) is ANSWER
    with pytest.raises(Unavailable, match="cancelled"):
        service.wait(second)
    until(lambda: service.running() == 0)
    assert guarded.finished == ["wait"]


def test_cancelled_before_it_began(make: Callable[..., Service]) -> None:
    cancel = Cancel()
    cancel.cancel()
    service = make()
    with pytest.raises(Unavailable, match="cancelled"):
        asyncio.run(service.ask("analyst", "SELECT 1", cancel=cancel))


@pytest.mark.parametrize(("server", "client"), [(100, None), (60_000, 100), (None, 100), (100, 60_000)])
def test_the_shortest_timeout_holds(
    make: Callable[..., Service], guarded: Guarded, server: int | None, client: int | None
) -> None:
    service = make(statement_timeout_ms=server)
    with pytest.raises(Unavailable) as told:
        asyncio.run(service.ask("analyst", "wait", timeout_ms=client))
    assert (told.value.kind, told.value.code) == ("timeout", "57014")
    assert service.running() == 1, "the decision is finished, and its place taken until then"
    guarded.go.set()
    until(lambda: service.running() == 0)
    assert guarded.finished == ["wait"]


def test_a_connection_that_goes_cancels(make: Callable[..., Service]) -> None:
    service = make()

    async def go() -> None:
        task = asyncio.create_task(service.ask("analyst", "wait"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    until(lambda: outcome(service, "cancelled") == 1)


def test_a_thread_whose_client_has_gone(make: Callable[..., Service]) -> None:
    service = make()
    with pytest.raises(Unavailable, match="cancelled"):
        service.wait(service.start("analyst", "wait"), gone=lambda: True)


def test_queries_are_limited_by_principal_and_in_all(make: Callable[..., Service], guarded: Guarded) -> None:
    service = make(queries_at_once=1, queries_waiting=2, queries_per_principal=2)
    mine = [service.start("analyst", "wait") for _ in range(2)]
    with pytest.raises(Unavailable, match="Too many queries") as told:
        service.start("analyst", "wait")
    assert told.value.code == "53000"
    theirs = service.start("other", "wait")
    with pytest.raises(Unavailable, match="Too many queries"):
        service.start("third", "wait")
    assert outcome(service, "busy") == 2
    guarded.go.set()
    for future in (*mine, theirs):
        assert service.wait(future) is ANSWER
    until(lambda: service.running() == 0)
    assert service.wait(service.start("analyst", "SELECT 1")) is ANSWER


def test_shutting_down(make: Callable[..., Service], guarded: Guarded) -> None:
    service = make(queries_at_once=1)
    running, waiting = service.start("analyst", "wait"), service.start("analyst", "second")
    assert service.takes_queries()
    service.drain()
    assert not service.takes_queries()
    with pytest.raises(Unavailable, match="shutting down") as told:
        service.start("analyst", "SELECT 1")
    assert told.value.code == "57P01"
    assert not service.wait_until_idle(0.05)
    service.end()
    for future in (running, waiting):
        with pytest.raises(Unavailable, match="shutting down"):
            service.wait(future)
    assert service.wait_until_idle(1)
    guarded.go.set()
    until(lambda: service.running() == 0)
    assert guarded.finished == ["wait"], "what waited for its turn was not asked"


def test_what_runs_is_finished_within_the_grace(make: Callable[..., Service], guarded: Guarded) -> None:
    service = make()
    running = service.start("analyst", "wait")
    service.drain()
    threading.Timer(0.1, guarded.go.set).start()
    assert service.wait_until_idle(10)
    assert service.wait(running) is ANSWER


def test_who_was_taken_out_is_not_answered(make: Callable[..., Service]) -> None:
    service = make()
    service.permit({"other"})
    with pytest.raises(Unavailable) as told:
        service.start("analyst", "SELECT 1")
    assert told.value.code == "28000"
    assert service.wait(service.start("other", "SELECT 1")) is ANSWER


def test_the_budget_is_shown(make: Callable[..., Service]) -> None:
    telemetry = make().telemetry
    telemetry.watch_budget(lambda: Spending(0.25, 1.5, 7))
    value = telemetry.registry.get_sample_value
    assert value("kgather_budget_spent_rho") == 0.25
    assert value("kgather_budget_total_rho") == 1.5
    assert value("kgather_measurements") == 7


def test_metrics_outlive_a_ledger_that_is_gone(make: Callable[..., Service], caplog: pytest.LogCaptureFixture) -> None:
    def gone() -> Spending:
        msg = "the ledger is gone."
        raise InputError(msg)

    telemetry = make().telemetry
    telemetry.watch_budget(gone)
    logging.getLogger("kgather._server").propagate = True
    with caplog.at_level(logging.ERROR, "kgather._server"):
        text = telemetry.text()
    assert b"kgather_queries_running" in text
    assert b"kgather_budget" not in text
    assert [record.message for record in caplog.records] == ["the budget cannot be read"]


def test_atoms_are_counted(make: Callable[..., Service], guarded: Guarded) -> None:
    service = make()
    guarded.atoms = {"unit": 7}  # type: ignore[attr-defined]
    service.telemetry.watch_atoms(lambda: service.guard.atoms)
    assert b'kgather_atoms{universe="unit"} 7.0' in service.telemetry.text()
