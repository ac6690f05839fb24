"""Arrow Flight SQL: what ADBC clients get, and what nobody gets."""

import base64
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from flight_clients import Raw, ask, connected
from guard_files import spend, truth
from server_process import PASSWORDS, write_server_files

from kgather._guard.guard import Answer, Guard
from kgather._guard.refused import TOO_FEW_MESSAGE, Refused
from kgather._server import users as user_file
from kgather._server.flight import logins as flight_logins
from kgather._server.flight import server as flight_server
from kgather._server.flight import wire
from kgather._server.flight.server import FlightServer
from kgather._server.logins import FailedLogins
from kgather._server.service import Service, Unavailable
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry
from kgather._server.users import Users

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(salary) AS mean FROM ratings_wide GROUP BY city ORDER BY city"
FEW = "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross = 99"
ONE = "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross = 1 AND joy_ride = 1"


class Running:
    def __init__(self, guard: Guard, logins: Users, failed: FailedLogins | None = None, **settings: object) -> None:
        self.settings = ServerSettings(flight_port=0, **settings)
        self.telemetry = Telemetry()
        self.service = Service(guard, self.settings, self.telemetry)
        self.users = logins
        self.flight = FlightServer(self.service, logins, self.settings, self.telemetry, failed=failed)
        self.flight.start()
        self.port = self.flight.port

    def stop(self) -> None:
        self.service.end()
        self.flight.stop(1)


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_logins, "_AFTER_FAILURE", 0.0)
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


def test_what_jdbc_asks_for(running: Running) -> None:
    """The metadata calls of the driver, the cancel of a result that waits, and the end of a session."""
    raw = Raw(running.port)
    for name, columns in (("PrimaryKeys", 6), ("ExportedKeys", 13), ("ImportedKeys", 13), ("CrossReference", 13)):
        found = raw.get(raw.info(wire.packed(f"CommandGet{name}", {3: b"users"})).endpoints[0].ticket)
        assert (found.num_rows, found.num_columns) == (0, columns), name
    types = raw.get(raw.info(wire.packed("CommandGetXdbcTypeInfo", {})).endpoints[0].ticket)
    assert types["type_name"].to_pylist() == ["BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP"]
    info = raw.statement(BY_CITY)
    request = wire.written({1: info.serialize()})
    for status in (1, 3):  # cancelled, and then there is nothing to cancel
        (result,) = raw.client.do_action(flight.Action("CancelFlightInfo", request), raw.options)
        assert result.body.to_pybytes() == bytes([8, status])
    with pytest.raises(flight.FlightServerError):
        raw.get(info.endpoints[0].ticket)
    info = raw.statement(BY_CITY)
    request = wire.packed("ActionCancelQueryRequest", {1: info.serialize()})
    for status in (1, 3):
        (result,) = raw.client.do_action(flight.Action("CancelQuery", request), raw.options)
        assert result.body.to_pybytes()[-2:] == bytes([8, status])
    with pytest.raises(flight.FlightServerError, match=flight_server.MALFORMED):
        raw.act("CancelQuery", wire.packed("ActionClosePreparedStatementRequest", {1: b"x"}))
    (result,) = raw.client.do_action(flight.Action("GetSessionOptions", b""), raw.options)
    assert wire.options(result.body.to_pybytes()) == {"catalog": "kgather", "schema": "main"}
    (result,) = raw.client.do_action(flight.Action("CloseSession", b""), raw.options)
    assert result.body.to_pybytes() == bytes([8, 1])


def test_a_prepared_statement_says_what_values_it_waits_for(running: Running, guard: Guard) -> None:
    """JDBC's driver binds no value to a statement that does not, and takes one without columns for an update."""
    raw = Raw(running.port)
    sql = "SELECT title, item_id AS n FROM items WHERE item_id >= ? AND title <> ? ORDER BY item_id -- ?"
    (made,) = raw.act("CreatePreparedStatement", wire.packed("ActionCreatePreparedStatementRequest", {1: sql.encode()}))
    packed = wire._Fields(wire._Fields(made.body.to_pybytes()).bytes(2))
    assert pa.ipc.read_schema(pa.py_buffer(packed.bytes(2))).names == ["title", "n"]
    waits = pa.ipc.read_schema(pa.py_buffer(packed.bytes(3)))
    assert waits.types == [pa.int64(), pa.string()]
    command = wire.packed("CommandPreparedStatementQuery", {1: packed.bytes(1)})
    with pytest.raises(flight.FlightServerError):
        raw.info(command)  # without values
    values = pa.record_batch([[2], ["pachinko"]], schema=waits)
    writer, reader = raw.client.do_put(flight.FlightDescriptor.for_command(command), waits, raw.options)
    writer.write_batch(values)
    writer.done_writing()
    assert wire._Fields(reader.read().to_pybytes()).bytes(1) == packed.bytes(1)
    writer.close()
    found = raw.get(raw.info(command).endpoints[0].ticket)
    assert found.equals(guard.query(sql, principal="analyst", parameters=[2, "pachinko"]))
    assert found.num_rows > 0


def test_a_statement_that_depends_on_its_values_is_prepared(running: Running) -> None:
    sql = "SELECT date_trunc(?, DATE '2024-02-29') AS d"
    with connected(running.port) as connection, connection.cursor() as cursor:
        cursor.execute(sql, ["month"])
        assert str(cursor.fetchall()[0][0]).startswith("2024-02-01")


@pytest.mark.parametrize("sql", ["SELECT 'a", "DELETE FROM users WHERE user_id = ?", "SELECT ? FROM", ""])
def test_what_cannot_be_prepared_is_refused(running: Running, sql: str) -> None:
    with pytest.raises(flight.FlightServerError) as told:
        Raw(running.port).act(
            "CreatePreparedStatement", wire.packed("ActionCreatePreparedStatementRequest", {1: sql.encode()})
        )
    assert str(told.value).startswith(("42601: ", "0A000: ")), told.value


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("catalog", {1: b"kgather"}, 0),
        ("schema", {1: b"main"}, 0),
        ("catalog", {1: b"another"}, 2),
        ("catalog", {}, 2),
        ("schema", {5: wire.written({1: b"main"})}, 2),
        ("password", {1: b"x"}, 1),
    ],
    ids=["catalog", "schema", "another", "nothing", "list", "unknown"],
)
def test_options_of_a_session(running: Running, name: str, value: dict[int, bytes], wrong: int) -> None:
    """JDBC's driver sets the catalog that its URL names; what could not be set is named, with the kind of fault."""
    raw = Raw(running.port)
    entry = wire.written({1: name.encode(), 2: wire.written(value)})
    (result,) = raw.act("SetSessionOptions", wire.written({1: entry}))
    expected = wire.written({1: wire.written({1: name.encode(), 2: bytes([8, wrong])})}) if wrong else b""
    assert result.body.to_pybytes() == expected


@pytest.mark.parametrize("body", [b"\x0a", b"\x0a\x02\xff\xff", b"\x08\x01", b"\x0a\x05\x0a\x03\xff\xfe\xfd"])
def test_options_that_are_none(running: Running, body: bytes) -> None:
    with pytest.raises(flight.FlightServerError, match=flight_server.MALFORMED):
        Raw(running.port).act("SetSessionOptions", body)


def test_the_driver_of_jdbc_reads_its_metadata(running: Running) -> None:
    """Each listing in the columns that Flight SQL gives it, with the patterns and facts that the driver asks for."""
    raw = Raw(running.port)

    def listing(name: str, fields: bytes = b"") -> pa.Table:
        named = ("type.googleapis.com/arrow.flight.protocol.sql.Command" + name).encode()
        command = wire.written({1: named, 2: fields})
        found = raw.get(raw.info(command).endpoints[0].ticket)
        described = raw.client.get_schema(flight.FlightDescriptor.for_command(command), raw.options)
        assert described.schema == found.schema, name
        return found

    facts = listing("GetSqlInfo")
    assert facts.schema.names == ["info_name", "value"]
    assert facts["info_name"].to_pylist() == sorted(set(facts["info_name"].to_pylist()))
    some = listing("GetSqlInfo", bytes([0x0A, 3, 0, 3, 4]))
    assert some["info_name"].to_pylist() == [0, 3, 4]
    assert [one.as_py() for one in some["value"]] == ["kgather", True, True]
    assert listing("GetCatalogs").to_pylist() == [{"catalog_name": "kgather"}]
    assert listing("GetDbSchemas", wire.written({1: b"kgather", 2: b"ma%"})).to_pylist() == [
        {"catalog_name": "kgather", "db_schema_name": "main"}
    ]
    assert listing("GetDbSchemas", wire.written({1: b"another"})).num_rows == 0
    assert listing("GetTableTypes").to_pylist() == [{"table_type": "TABLE"}]
    tables = listing("GetTables", wire.written({1: b"kgather", 2: b"main", 3: b"user_", 4: b"TABLE"}) + b"\x28\x01")
    assert tables["table_name"].to_pylist() == ["users"]
    (columns,) = tables["table_schema"].to_pylist()
    assert pa.ipc.read_schema(pa.py_buffer(columns)).names == ["user_id", "age", "gender"]
    assert "table_schema" not in listing("GetTables").schema.names
    assert listing("GetTables", wire.written({4: b"VIEW"})).num_rows == 0
    assert listing("GetXdbcTypeInfo", b"\x08\x0c")["type_name"].to_pylist() == ["VARCHAR"]


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


def test_a_result_says_how_it_came_about(running: Running) -> None:
    """In the metadata of its schema, whoever reads them."""
    raw = Raw(running.port)
    info = raw.statement(BY_CITY)
    for schema in (info.schema, raw.get(info.endpoints[0].ticket).schema, ask(running.port, BY_CITY).schema):
        (note,) = json.loads(schema.metadata[flight_server.NOTES])
        assert note.startswith("The numbers are measured; the largest standard error is ")
    public = raw.get(raw.statement("SELECT item_id FROM items").endpoints[0].ticket)
    assert flight_server.NOTES not in (public.schema.metadata or {})


def test_a_budget_that_is_spent_has_a_code(logins: Users, tmp_path: Path) -> None:
    folder = write_server_files(tmp_path)
    spend(folder / "policy.yml", BY_CITY, "analyst")
    running = Running(Guard.from_policy(folder / "policy.yml"), logins)
    try:
        raw = Raw(running.port)
        with pytest.raises(flight.FlightServerError, match="KG002: The budget of the ledger is spent"):
            raw.statement("SELECT gender, COUNT(*) FROM users GROUP BY gender")
        assert raw.statement(BY_CITY).total_records >= 3
    finally:
        running.stop()


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
        wire.packed("CommandStatementIngest", {}),
        wire.packed("TicketStatementQuery", {1: b"x"}),
        wire.packed("ActionCreatePreparedStatementRequest", {1: b"SELECT 1"}),
        wire.written({1: b"type.googleapis.com/google.protobuf.Empty", 2: b""}),
    ],
    ids=["update", "substrait", "ingest", "ticket", "action", "empty"],
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
        "CancelFlightInfo",
        "CancelQuery",
        "GetSessionOptions",
        "CloseSession",
        "SetSessionOptions",
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
    monkeypatch.setattr(running.service.guard, "answer", broken)
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
    """The handshake does not tell. Every call after it does."""
    raw = Raw(running.port, None)
    header = raw.client.authenticate_basic_token(name, password)
    assert len(header[1]) == len(Raw(running.port).token)
    raw.options = flight.FlightCallOptions(headers=[header])
    for command in (wire.packed("CommandGetTables", {}), wire.packed("CommandStatementQuery", {1: BY_CITY.encode()})):
        with pytest.raises(flight.FlightUnauthenticatedError) as told:
            raw.info(command)
        assert str(told.value).startswith(flight_logins.LOG_IN)
        assert "raceback" not in str(told.value)
    with (
        pytest.raises(adbc_driver_manager.Error, match="28000: Log in"),
        connected(running.port, name, password=password or "none") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(BY_CITY)


def test_failed_logins_are_logged_counted_and_slowed_down_by_address(
    guard: Guard, logins: Users, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of the other wire, with which they are counted together."""
    waited: list[float] = []
    now = [1_000.0]

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(flight_logins, "_sleep", sleep)
    failed = FailedLogins(lambda: now[0])
    failed.failed("postgres", "127.0.0.1", "analyst7")
    running = Running(guard, logins, failed=failed)
    try:
        early = Raw(running.port)
        early.info(wire.packed("CommandGetTables", {}))
        with caplog.at_level(logging.WARNING):
            for password in ("hunter2 hunter2", "hunter3 hunter3"):
                raw = Raw(running.port, None)
                raw.options = flight.FlightCallOptions(
                    headers=[raw.client.authenticate_basic_token("analyst7", password)]
                )
                with pytest.raises(flight.FlightUnauthenticatedError):
                    raw.info(wire.packed("CommandGetTables", {}))
        early.info(wire.packed("CommandGetTables", {}))  # who is in does not wait
        Raw(running.port).info(wire.packed("CommandGetTables", {}))  # nor does another who comes from there
    finally:
        running.stop()
    assert waited == [0.5, 0.0, 1.0, 0.0]  # for the failures before, and after each (which is nothing here)
    lines = [(each.wire, each.address, each.name_shape, each.failures) for each in caplog.records]
    assert lines[1:] == [("flight", "127.0.0.1", "aaaaaaa9", 2), ("flight", "127.0.0.1", "aaaaaaa9", 3)]
    assert "hunter" not in caplog.text
    text = running.telemetry.text().decode()
    assert 'kgather_logins_total{outcome="failed",wire="flight"} 2.0' in text
    assert 'kgather_logins_total{outcome="ok",wire="flight"} 2.0' in text


def test_tokens_that_wait_are_bounded(guard: Guard, logins: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever guesses with many calls at once is told that there is no room."""
    settings, telemetry = ServerSettings(), Telemetry()
    service = Service(guard, settings, telemetry)
    now = [1_000.0]
    made = flight_logins.Logins(logins, service, settings, telemetry, FailedLogins(lambda: now[0]))
    sessions = [made.session(made.token(base64.b64encode(b"nobody:a password").decode())) for _ in range(9)]
    told: list[str] = []

    def wait(_: float) -> None:
        """The next one comes while those before it wait."""
        told.append("waits")
        now[0] += 60
        try:
            assert made.admit(sessions[len(told)], "192.0.2.1") is False
        except Unavailable as error:
            told.append(error.kind)

    monkeypatch.setattr(flight_logins, "_sleep", wait)
    monkeypatch.setattr(flight_logins, "_AFTER_FAILURE", 0.5)
    assert made.admit(sessions[0], "192.0.2.1") is False
    service.end()
    assert told == ["waits"] * 8 + ["busy"]


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
        assert str(told.value).startswith(flight_logins.LOG_IN)
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
    def answer(self, *_: object, **__: object) -> Answer:
        time.sleep(1)
        return Answer(pa.table({}))
