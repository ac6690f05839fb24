"""Arrow Flight SQL: what ADBC clients get, and what nobody gets."""

import time
from collections.abc import Iterator
from pathlib import Path

import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from flight_clients import Raw, ask, connected
from guard_files import truth
from server_process import PASSWORDS

from kgather._guard.guard import Guard
from kgather._guard.refused import TOO_FEW_MESSAGE, Refused
from kgather._server import users as user_file
from kgather._server.flight import server as flight_server
from kgather._server.flight import wire
from kgather._server.flight.server import FlightServer
from kgather._server.service import Service
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry
from kgather._server.users import Users

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(salary) AS mean FROM ratings_wide GROUP BY city ORDER BY city"
FEW = "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross = 99"
ONE = "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross = 1 AND joy_ride = 1"


class Running:
    def __init__(self, guard: Guard, logins: Users, **settings: object) -> None:
        self.settings = ServerSettings(flight_port=0, **settings)
        self.telemetry = Telemetry()
        self.service = Service(guard, self.settings, self.telemetry)
        self.users = logins
        self.flight = FlightServer(self.service, logins, self.settings, self.telemetry)
        self.flight.start()
        self.port = self.flight.port

    def stop(self) -> None:
        self.service.end()
        self.flight.stop(1)


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_server, "_DELAY", 0.0)
    monkeypatch.setattr(flight_server, "_LAST_CALLS", 0.0)


@pytest.fixture
def running(guard: Guard, logins: Users) -> Iterator[Running]:
    made = Running(guard, logins)
    yield made
    made.stop()


# What clients get


def test_a_statement_as_the_guard_answers_it(running: Running, guard: Guard) -> None:
    expected = guard.query(BY_CITY, principal="analyst")
    assert expected.num_rows >= 3
    found = ask(running.port, BY_CITY)
    assert found.equals(expected)
    assert found.schema == expected.schema


def test_values_are_bound_and_checked_each_time(running: Running, guard: Guard) -> None:
    """The same statement is answered for one value and refused for another."""
    sql = "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= ?"
    with connected(running.port) as connection, connection.cursor() as cursor:
        for value in (4, 2):
            cursor.execute(sql, [value])
            assert cursor.fetchall() == [
                tuple(guard.query(sql, principal="analyst", parameters=[value]).to_pylist()[0].values())
            ]
        with pytest.raises(adbc_driver_manager.Error, match=TOO_FEW_MESSAGE):
            cursor.execute(sql, [99])
        cursor.execute(sql, [4])
        assert len(cursor.fetchall()) == 1


def test_a_prepared_statement_says_its_columns(running: Running, guard: Guard) -> None:
    raw = Raw(running.port)
    (made,) = raw.act(
        "CreatePreparedStatement", wire.packed("ActionCreatePreparedStatementRequest", {1: BY_CITY.encode()})
    )
    packed = wire._Fields(wire._Fields(made.body.to_pybytes()).bytes(2))
    schema = pa.ipc.read_schema(pa.py_buffer(packed.bytes(2)))
    assert schema.names == ["city", "n", "mean"]
    info = raw.info(wire.packed("CommandPreparedStatementQuery", {1: packed.bytes(1)}))
    assert raw.get(info.endpoints[0].ticket).equals(guard.query(BY_CITY, principal="analyst"))
    raw.act("ClosePreparedStatement", wire.packed("ActionClosePreparedStatementRequest", {1: packed.bytes(1)}))
    with pytest.raises(flight.FlightServerError, match=flight_server.NO_STATEMENT):
        raw.info(wire.packed("CommandPreparedStatementQuery", {1: packed.bytes(1)}))


def test_listings_show_what_the_policy_shows(running: Running) -> None:
    with connected(running.port) as connection:
        found = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        (catalog,) = found
        assert catalog["catalog_name"] == "kgather"
        (schema,) = catalog["catalog_db_schemas"]
        assert schema["db_schema_name"] == "main"
        tables = {t["table_name"]: [c["column_name"] for c in t["table_columns"]] for t in schema["db_schema_tables"]}
        assert set(tables) == {"ratings_wide", "ratings", "users", "items"}
        assert tables["users"] == ["user_id", "age", "gender"]
        assert connection.adbc_get_table_types() == ["TABLE"]
        assert connection.adbc_get_info()["vendor_name"] == "kgather"
        assert connection.adbc_get_table_schema("users").names == ["user_id", "age", "gender"]


def test_a_schema_without_an_answer(running: Running) -> None:
    raw = Raw(running.port)
    descriptor = flight.FlightDescriptor.for_command(wire.packed("CommandStatementQuery", {1: FEW.encode()}))
    assert raw.client.get_schema(descriptor, raw.options).schema.names == ["n"]


# What is refused


@pytest.mark.parametrize(("sql", "people"), [(FEW, range(1)), (ONE, range(1, 5))], ids=["nobody", "few"])
def test_too_few_has_one_text(running: Running, folder: Path, sql: str, people: range) -> None:
    assert truth(folder, sql)[0][0] in people
    with pytest.raises(flight.FlightServerError) as told:
        Raw(running.port).statement(sql)
    assert str(told.value).startswith(f"KG001: {TOO_FEW_MESSAGE}. Detail: Failed")
    assert "raceback" not in str(told.value)


def test_a_static_refusal_is_the_guards(running: Running, guard: Guard) -> None:
    sql = "SELECT salary FROM ratings_wide"
    with pytest.raises(Refused) as expected:
        guard.query(sql, principal="analyst")
    with pytest.raises(flight.FlightServerError) as told:
        Raw(running.port).statement(sql)
    assert str(told.value).startswith(f"{expected.value.code}: {expected.value.reason}")


@pytest.mark.parametrize(
    "command",
    [
        wire.packed("CommandStatementUpdate", {1: b"DELETE FROM users"}),
        wire.packed("CommandStatementSubstraitPlan", {1: b"x"}),
        wire.packed("CommandGetPrimaryKeys", {3: b"users"}),
        wire.packed("CommandGetXdbcTypeInfo", {}),
        wire.packed("CommandStatementIngest", {}),
        wire.packed("TicketStatementQuery", {1: b"x"}),
        wire.packed("ActionCreatePreparedStatementRequest", {1: b"SELECT 1"}),
        wire.written({1: b"type.googleapis.com/google.protobuf.Empty", 2: b""}),
    ],
    ids=["update", "substrait", "keys", "types", "ingest", "ticket", "action", "empty"],
)
def test_everything_else_is_refused(running: Running, command: bytes) -> None:
    with pytest.raises(flight.FlightServerError, match=flight_server.UNSUPPORTED):
        Raw(running.port).info(command)


def test_other_calls_are_refused(running: Running) -> None:
    raw = Raw(running.port)
    descriptor = flight.FlightDescriptor.for_path("users")
    calls = {
        "flights": lambda: list(raw.client.list_flights(options=raw.options)),
        "path": lambda: raw.client.get_flight_info(descriptor, raw.options),
        "action": lambda: raw.act("BeginTransaction", b""),
        "cancel": lambda: raw.act("CancelFlightInfo", b""),
        "get": lambda: raw.get(flight.Ticket(wire.packed("CommandGetTables", {}))),
        "exchange": lambda: raw.client.do_exchange(descriptor, raw.options)[1].read_all(),
        "put": lambda: _put(raw, descriptor),
        "transaction": lambda: raw.info(wire.packed("CommandStatementQuery", {1: b"SELECT 1", 2: b"t"})),
    }
    for name, call in calls.items():
        with pytest.raises(flight.FlightServerError) as told:
            call()
        assert str(told.value).startswith((flight_server.UNSUPPORTED, flight_server.NO_TRANSACTIONS)), name
        assert "raceback" not in str(told.value), name
    assert {action.type for action in raw.client.list_actions(raw.options)} == {
        "CreatePreparedStatement",
        "ClosePreparedStatement",
    }


def _put(raw: Raw, descriptor: flight.FlightDescriptor) -> None:
    writer, _ = raw.client.do_put(descriptor, pa.schema([("x", pa.int64())]), raw.options)
    writer.close()


@pytest.mark.parametrize("rows", [0, 2, 5000])
def test_values_are_one_row(running: Running, rows: int) -> None:
    raw = Raw(running.port)
    sql = b"SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= ?"
    (made,) = raw.act("CreatePreparedStatement", wire.packed("ActionCreatePreparedStatementRequest", {1: sql}))
    handle = wire._Fields(wire._Fields(made.body.to_pybytes()).bytes(2)).bytes(1)
    descriptor = flight.FlightDescriptor.for_command(wire.packed("CommandPreparedStatementQuery", {1: handle}))
    table = pa.table({"a": [4] * rows}, pa.schema([("a", pa.int64())]))
    with pytest.raises(flight.FlightServerError, match=flight_server.ONE_ROW):
        _written(raw, descriptor, table)
    _written(raw, descriptor, table.slice(0, 1) if rows else pa.table({"a": [4]}))
    info = raw.info(descriptor.command)
    assert raw.get(info.endpoints[0].ticket).num_rows == 1


def _written(raw: Raw, descriptor: flight.FlightDescriptor, table: pa.Table) -> None:
    writer, _ = raw.client.do_put(descriptor, table.schema, raw.options)
    with writer:
        writer.write_table(table)


def test_an_unforeseen_error_says_nothing(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = Raw(running.port)

    def broken(*_: object, **__: object) -> None:
        msg = "row 'Ada' in /secret/path"
        raise KeyError(msg)

    monkeypatch.setattr(flight_server, "listed", broken)
    monkeypatch.setattr(running.service.guard, "query", broken)
    for call in (lambda: raw.info(wire.packed("CommandGetTables", {})), lambda: raw.statement(BY_CITY)):
        with pytest.raises(flight.FlightInternalError) as told:
            call()
        assert "Ada" not in str(told.value)
        assert "secret" not in str(told.value)
        assert "raceback" not in str(told.value)


# Who may ask


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("analyst", "wrong"),
        ("analyst", ""),
        ("nobody", PASSWORDS["analyst"]),
        ("", ""),
        ("other", PASSWORDS["analyst"]),
    ],
    ids=["wrong", "empty", "unknown", "nothing", "another's"],
)
def test_wrong_logins_are_one(running: Running, name: str, password: str) -> None:
    client = flight.connect(f"grpc://127.0.0.1:{running.port}")
    with pytest.raises(flight.FlightUnauthenticatedError) as told:
        client.authenticate_basic_token(name, password)
    assert str(told.value).startswith(flight_server.LOG_IN)
    assert "raceback" not in str(told.value)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer AAAA",
        "Bearer ====",
        "Basic YTpi",
        "Basic !!!",
        "Digest x",
        "Bearer " + "A" * 56,
    ],
)
def test_without_a_token_there_is_nothing(running: Running, header: str) -> None:
    raw = Raw(running.port, None)
    raw.options = flight.FlightCallOptions(headers=[(b"authorization", header.encode())] if header else [])
    descriptor = flight.FlightDescriptor.for_command(wire.packed("CommandGetTables", {}))
    for call in (
        lambda: raw.statement(BY_CITY),
        lambda: raw.info(wire.packed("CommandGetTables", {})),
        lambda: raw.client.get_schema(descriptor, raw.options),
        lambda: raw.get(flight.Ticket(b"x")),
        lambda: raw.act("CreatePreparedStatement", b""),
        lambda: list(raw.client.list_actions(raw.options)),
        lambda: list(raw.client.list_flights(options=raw.options)),
        lambda: _put(raw, descriptor),
        lambda: raw.client.do_exchange(descriptor, raw.options)[1].read_all(),
    ):
        # The client has no kind of its own for this error of get_schema.
        with pytest.raises((flight.FlightUnauthenticatedError, OSError)) as told:
            call()
        assert str(told.value).startswith(flight_server.LOG_IN)
        assert "Detail: Unauthenticated" in str(told.value)


def test_two_credentials_are_none(running: Running) -> None:
    raw = Raw(running.port)
    raw.options = flight.FlightCallOptions(headers=[(b"authorization", raw.token), (b"authorization", raw.token)])
    with pytest.raises(flight.FlightUnauthenticatedError):
        raw.statement(BY_CITY)


def test_a_token_changed_in_one_place_is_none(running: Running) -> None:
    raw = Raw(running.port)
    scheme, token = raw.token.split(b" ")
    for at in range(0, len(token), 7):
        other = b"A" if token[at : at + 1] != b"A" else b"B"
        changed = token[:at] + other + token[at + 1 :]
        raw.options = flight.FlightCallOptions(headers=[(b"authorization", scheme + b" " + changed)])
        with pytest.raises(flight.FlightUnauthenticatedError):
            raw.statement(BY_CITY)


def test_a_token_expires(guard: Guard, logins: Users) -> None:
    running = Running(guard, logins, session_s=0.5)
    try:
        raw = Raw(running.port)
        raw.info(wire.packed("CommandGetTables", {}))
        time.sleep(0.6)
        with pytest.raises(flight.FlightUnauthenticatedError):
            raw.info(wire.packed("CommandGetTables", {}))
    finally:
        running.stop()


def test_who_was_taken_out_is_out(running: Running) -> None:
    raw, other = Raw(running.port), Raw(running.port, "other")
    verifiers = {name: running.users.verifier(name) for name in ("other",)}
    running.users.replaced_by(Users(verifiers))
    with pytest.raises(flight.FlightUnauthenticatedError):
        raw.statement(BY_CITY)
    assert other.statement(BY_CITY).total_records > 0
    running.users.replaced_by(Users({"other": user_file.Verifier.of("another password")}))
    with pytest.raises(flight.FlightUnauthenticatedError):
        other.statement(BY_CITY)


def test_whoever_has_too_many_tokens_loses_the_oldest(guard: Guard, logins: Users) -> None:
    running = Running(guard, logins, connections_per_principal=2)
    try:
        other = Raw(running.port, "other")
        first, second, third = (Raw(running.port) for _ in range(3))
        with pytest.raises(flight.FlightUnauthenticatedError):
            first.info(wire.packed("CommandGetTables", {}))
        for raw in (second, third, other):
            raw.info(wire.packed("CommandGetTables", {}))
    finally:
        running.stop()


# Results


def test_a_result_is_its_principals_and_fetched_once(running: Running) -> None:
    mine, theirs = Raw(running.port), Raw(running.port, "other")
    ticket = mine.statement(BY_CITY).endpoints[0].ticket
    with pytest.raises(flight.FlightServerError, match=flight_server.NO_TICKET):
        theirs.get(ticket)
    assert mine.get(ticket).num_rows >= 3
    with pytest.raises(flight.FlightServerError, match=flight_server.NO_TICKET):
        mine.get(ticket)


def test_a_guessed_ticket_is_none(running: Running) -> None:
    raw = Raw(running.port)
    handle = wire.read(raw.statement(BY_CITY).endpoints[0].ticket.ticket)
    assert isinstance(handle, wire.StatementTicket)
    assert len(handle.handle) == 42
    for guess in (b"", b"\0" * 42, handle.handle[:-1], handle.handle[:-1] + bytes([handle.handle[-1] ^ 1])):
        with pytest.raises(flight.FlightServerError, match=flight_server.NO_TICKET):
            raw.get(flight.Ticket(wire.packed("TicketStatementQuery", {1: guess})))


def test_a_result_does_not_wait_for_ever(guard: Guard, logins: Users) -> None:
    running = Running(guard, logins, result_s=0.3)
    try:
        raw = Raw(running.port)
        ticket = raw.statement(BY_CITY).endpoints[0].ticket
        time.sleep(0.4)
        with pytest.raises(flight.FlightServerError, match=flight_server.NO_TICKET):
            raw.get(ticket)
    finally:
        running.stop()


def test_results_that_wait_are_bounded(running: Running) -> None:
    raw, other = Raw(running.port), Raw(running.port, "other")
    kept = other.statement(BY_CITY).endpoints[0].ticket
    tickets = [raw.statement(BY_CITY).endpoints[0].ticket for _ in range(flight_server._RESULTS + 1)]
    with pytest.raises(flight.FlightServerError, match=flight_server.NO_TICKET):
        raw.get(tickets[0])
    assert raw.get(tickets[1]).num_rows >= 3
    assert other.get(kept).num_rows >= 3


def test_a_statement_is_asked_once(running: Running, guard: Guard) -> None:
    """The log of the guard has one line for a result that was asked for and fetched."""
    log = guard.policy.audit_log
    assert log is not None
    before = len(log.read_text(encoding="utf-8").splitlines())
    ask(running.port, BY_CITY)
    assert len(log.read_text(encoding="utf-8").splitlines()) == before + 1


def test_a_server_that_shuts_down_says_so(running: Running) -> None:
    raw = Raw(running.port)
    running.service.drain()
    with pytest.raises(flight.FlightUnavailableError, match="57P01: The server is shutting down"):
        raw.statement(BY_CITY)
    with pytest.raises(flight.FlightUnavailableError, match="57P01: The server is shutting down"):
        Raw(running.port)


def test_a_slow_statement_times_out(guard: Guard, logins: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(guard, logins, statement_timeout_ms=200)
    monkeypatch.setattr(running.service, "guard", Slow())
    try:
        with pytest.raises(flight.FlightTimedOutError, match="longer than the statement timeout"):
            Raw(running.port).statement(BY_CITY)
    finally:
        running.stop()


class Slow:
    def query(self, *_: object, **__: object) -> pa.Table:
        time.sleep(1)
        return pa.table({})
