"""The protocol, message by message: what a client may do in which order, and what it is told."""

import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from raw_client import (
    GSS,
    SSL,
    Bind,
    Close,
    ClosedError,
    Describe,
    Execute,
    Flush,
    Parse,
    Query,
    RawClient,
    Sync,
    columns,
    error_of,
    errors,
    kinds,
    rows,
)
from waiting import until
from wire_files import ONE, OTHER, OTHER_PASSWORD, PASSWORD, USER, Running, spent

from kgather._guard.measured.engine import MeasuredEngine
from kgather._guard.refused import TOO_FEW_MESSAGE
from kgather._server.logins import FailedLogins
from kgather._server.service import Service
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry

COUNT = "select count(*) as n from people"
CITIES = "select city, inhabitants from cities order by inhabitants"
TOO_FEW = {
    "S": "ERROR",
    "V": "ERROR",
    "C": "KG001",
    "M": TOO_FEW_MESSAGE,
}


def asked(text: str, *values: bytes | None, types: tuple[int, ...] = (), form: int = 0, most: int = 0) -> list[object]:
    return [
        Parse(query=text, param_types=list(types)),
        Bind(param_values=list(values), param_formats=[form]),
        Describe(kind="P"),
        Execute(max_rows=most),
        Sync(),
    ]


# Simple queries


def test_a_simple_query(client: RawClient) -> None:
    found = client.query(CITIES)
    assert kinds(found) == "TDDDCZ"
    assert columns(found) == [("city", 25, 0), ("inhabitants", 23, 0)]
    assert rows(found) == [(b"Ghent", b"262219"), (b"Graz", b"291072"), (b"Lyon", b"522250")]
    assert found[-2:] == [(b"C", b"SELECT 3\0"), (b"Z", b"I")]


@pytest.mark.parametrize("text", ["", "  ", ";", "-- nothing\n;;", "/* nothing */"])
def test_an_empty_query(client: RawClient, text: str) -> None:
    assert kinds(client.query(text)) == "IZ"


def test_a_refusal_by_the_text_has_code_and_position(client: RawClient) -> None:
    (error,) = errors(client.query("select avg(salary)\nfrom people where zip = 'Z7'"))
    assert set(error) == set("SVCMPH")
    assert (error["C"], error["P"]) == ("42501", str(len("select avg(salary)\nfrom people where ") + 1))


def test_a_budget_that_is_spent_has_a_code(servers: Callable[..., Running]) -> None:
    with RawClient(servers(Service(spent(), ServerSettings(), Telemetry()))) as client:
        (error,) = errors(client.query("select film_b, count(*) from people group by film_b"))
        assert kinds(client.query(COUNT)) == "NNTDCZ", "what was measured is answered, with a warning"
    assert (error["S"], error["C"]) == ("ERROR", "KG002")
    assert error["M"].startswith("The budget of the ledger is spent")


# How answers came about


NOTE = "The numbers are measured; the largest standard error is "


def test_a_protected_answer_says_how_it_came_about(client: RawClient) -> None:
    found = client.query(COUNT)
    assert kinds(found) == "NTDCZ"
    said = error_of(found[0][1])
    assert {name: said[name] for name in "SVC"} == {"S": "NOTICE", "V": "NOTICE", "C": "00000"}
    assert set(said) == set("SVCM")
    assert re.fullmatch(NOTE + r"[0-9.e-]+% of its number\.", said["M"])
    both = client.query("select city, count(*) from people group by 1 union all select 'all', count(*) from people")
    notices = [error_of(content)["M"] for kind, content in both if kind == b"N"]
    assert [notice[:14] for notice in notices] == ["Block 1 of 2: ", "Block 2 of 2: "]


@pytest.mark.parametrize("text", [CITIES, "select 1", "show timezone", "select count(*) from cities"])
def test_what_nobody_is_in_says_nothing(client: RawClient, text: str) -> None:
    assert "N" not in kinds(client.query(text))


def test_a_portal_says_it_once(client: RawClient) -> None:
    text = "select city, count(*) from people group by city"
    assert kinds(client.ask(*asked(text))) == "12TNDDDCZ"
    client.query("begin")
    client.ask(Parse(query=text), Bind(portal="p"), Sync())
    portions = [kinds(client.ask(Execute(portal="p", max_rows=2), Sync())) for _ in range(2)]
    assert portions == ["NDDsZ", "DCZ"]


@pytest.mark.parametrize(("level", "said"), [("warning", ""), ("error", ""), ("notice", "N"), ("debug1", "N")])
def test_notices_are_switched_off(client: RawClient, level: str, said: str) -> None:
    client.query(f"set client_min_messages = {level}")
    assert kinds(client.query(COUNT)) == f"{said}TDCZ"
    client.query("reset client_min_messages")
    assert kinds(client.query(COUNT)) == "NTDCZ"


# More of simple queries


def test_a_refusal_by_the_data_is_always_the_same(client: RawClient) -> None:
    told = [errors(client.query(text))[0] for text in (ONE, ONE.replace("77", "78"), ONE.replace("= 77", "is null"))]
    assert told == [TOO_FEW] * 3


def test_the_tag_counts_what_is_shown(client: RawClient) -> None:
    """Groups of too few are not in it: film_a is 77 for one person."""
    found = client.query("select film_a, count(*) from people group by film_a")
    shown = len(rows(found))
    assert shown == 5
    assert found[-2] == (b"C", f"SELECT {shown}\0".encode())


def test_errors_of_the_engine_do_not_get_out(client: RawClient) -> None:
    for text in ("select cast('x' as integer)", "select cast(city as integer) from cities", "select 1/0, 'x' + 1"):
        for error in errors(client.query(text)):
            assert set(error) <= set("SVCMPH")
            assert "Error" not in error["M"]
            assert "Conversion" not in error["M"]


@pytest.mark.parametrize(
    "text",
    [
        "copy people to '/tmp/x'",
        "prepare x as select 1",
        "execute x",
        "listen x",
    ],
)
@pytest.mark.parametrize("extended", [False, True])
def test_what_is_refused_in_every_form(client: RawClient, text: str, extended: bool) -> None:
    found = client.ask(*asked(text)) if extended else client.query(text)
    assert kinds(found) == "EZ"
    assert errors(found)[0]["C"] == "0A000"


@pytest.mark.parametrize(
    "text", ["explain select 1", "insert into cities values (1)", "attach 'x'", "pragma version", "call x()"]
)
def test_other_statements_are_refused_by_the_guard(client: RawClient, text: str) -> None:
    found = client.query(text)
    assert kinds(found) == "EZ"


def test_texts_are_not_logged(
    client: RawClient, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for text in (
        "explain select 17171 from pg_class",
        "create table pg_class (a17171 int)",
        "select 17171 from nothing",
    ):
        client.query(text)
        client.ask(*asked(text))
    assert "17171" not in caplog.text
    assert "17171" not in "".join(capfd.readouterr())


# Extended queries


def test_an_extended_query(client: RawClient) -> None:
    found = client.ask(*asked("select city, inhabitants from cities where inhabitants > $1 order by 1", b"270000"))
    assert kinds(found) == "12TDDCZ"
    assert rows(found) == [(b"Graz", b"291072"), (b"Lyon", b"522250")]


def test_the_check_runs_with_the_values_of_each_bind(client: RawClient) -> None:
    """What was harmless with one value is refused with the next."""
    text = "select count(*) as n from people where film_a >= $1"
    client.ask(Parse(statement="s", query=text), Sync())
    told = []
    for value in (b"2", b"77", b"2"):
        found = client.ask(Bind(statement="s", param_values=[value]), Execute(), Sync())
        told.append(errors(found) or rows(found))
    assert told[0] == told[2] != []
    assert told[1] == [TOO_FEW]


def test_describe_before_bind_says_types_and_touches_no_data(client: RawClient, running: Running) -> None:
    before = running.service.guard.spending
    assert before is not None
    found = client.ask(
        Parse(
            query="select city, count(*) as n, avg(salary) as m from people where score > $1 and film_b = $2 group by 1"
        ),
        Describe(kind="S"),
        Sync(),
    )
    assert kinds(found) == "1tTZ"
    assert columns(found) == [("city", 25, 0), ("n", 20, 0), ("m", 701, 0)]
    assert found[1][1] == struct.pack("!hII", 2, 701, 20)
    assert running.service.guard.spending == before


def test_describe_says_the_same_for_questions_about_few(client: RawClient) -> None:
    found = client.ask(Parse(query=ONE), Bind(), Describe(kind="P"), Describe(kind="S"), Sync())
    assert kinds(found) == "12TtTZ"


def test_describe_of_a_statement_that_is_refused(client: RawClient) -> None:
    found = client.ask(Parse(query="select max(zip) from people"), Describe(kind="S"), Sync())
    assert kinds(found) == "1EZ"
    assert errors(found)[0]["C"] == "42501"


def test_describe_of_what_has_no_rows(client: RawClient) -> None:
    assert kinds(client.ask(*asked("set timezone to 'UTC'"))) == "12nCZ"
    assert kinds(client.ask(*asked(""))) == "12nIZ"
    assert kinds(client.ask(*asked("show timezone"))) == "12TDCZ"


def test_rows_in_portions(client: RawClient) -> None:
    client.query("begin")
    client.ask(Parse(query=CITIES), Bind(portal="p"), Sync())
    first = client.ask(Execute(portal="p", max_rows=2), Sync())
    assert kinds(first) == "DDsZ"
    second = client.ask(Execute(portal="p", max_rows=2), Sync())
    assert (kinds(second), second[1]) == ("DCZ", (b"C", b"SELECT 1\0"))
    assert kinds(client.ask(Execute(portal="p"), Sync())) == "CZ"
    client.query("commit")
    assert errors(client.ask(Execute(portal="p"), Sync()))[0]["C"] == "34000"


def test_fetch_of_a_portal_that_was_only_bound(client: RawClient) -> None:
    client.query("begin")
    client.ask(Parse(query=CITIES), Bind(portal="p"), Sync())
    described = client.ask(Parse(query="fetch 1 from p"), Describe(kind="S"), Sync())
    assert kinds(described) == "1tTZ"
    moved = client.query("move 1 from p")
    assert moved[0] == (b"C", b"MOVE 1\0")
    assert kinds(client.query("fetch 1 from p")) == "TDCZ"
    last = client.ask(Execute(portal="p"), Sync())
    assert (kinds(last), last[1]) == ("DCZ", (b"C", b"SELECT 1\0"))
    client.query("commit")


def test_a_parameter_that_names_a_relation_is_described_as_one(client: RawClient) -> None:
    text = "select 1 from pg_class where oid = $1::regclass and reltype <> $2::regtype"
    found = client.ask(Parse(query=text), Describe(kind="S"), Sync())
    assert next(body for kind, body in found if kind == b"t") == struct.pack("!hII", 2, 2205, 2206)


def test_fetch_of_a_portal_of_fetch(client: RawClient) -> None:
    """There is nothing to ask: a FETCH is no question, not even of itself."""
    client.query("begin")
    client.ask(Parse(query="fetch 1 from p"), Bind(portal="p"), Sync())
    assert errors(client.ask(Execute(portal="p"), Sync()))[0]["C"] == "55000"
    client.query("rollback")


def test_portions_are_of_the_protected_result(client: RawClient) -> None:
    """The refusal comes before the first row, and portions show no group that the whole does not."""
    text = "select film_a, count(*) from people group by film_a order by 1"
    whole = rows(client.query(text))
    client.query("begin")
    client.ask(Parse(query=text), Bind(portal="p"), Sync())
    portions = [rows(client.ask(Execute(portal="p", max_rows=1), Sync())) for _ in range(len(whole) + 1)]
    assert [row for portion in portions for row in portion] == whole
    assert kinds(client.ask(Parse(query=ONE), Bind(), Execute(max_rows=1), Sync())) == "12EZ"


def test_portals_end_with_the_implicit_transaction(client: RawClient) -> None:
    client.ask(Parse(query=CITIES), Bind(portal="p"), Execute(portal="p", max_rows=1), Sync())
    assert errors(client.ask(Execute(portal="p"), Sync()))[0]["C"] == "34000"


def test_after_an_error_everything_is_skipped_to_sync(client: RawClient) -> None:
    found = client.ask(
        Parse(query=ONE), Bind(), Execute(), Parse(query=CITIES), Bind(), Execute(), Query(query_string=COUNT), Sync()
    )
    assert kinds(found) == "12EZ"
    assert kinds(client.query(CITIES)) == "TDDDCZ"


def test_flush_sends_what_there_is(client: RawClient) -> None:
    client.send(Parse(query=CITIES), Flush())
    assert client.next()[0] == b"1"


def test_close_and_names(client: RawClient) -> None:
    client.ask(Parse(statement="s", query=CITIES), Sync())
    assert errors(client.ask(Parse(statement="s", query=CITIES), Sync()))[0]["C"] == "42P05"
    assert (
        kinds(client.ask(Bind(statement="s", portal="p"), Close(kind="S", name="s"), Execute(portal="p"), Sync()))
        == "23EZ"
    )
    assert errors(client.ask(Bind(statement="s"), Sync()))[0]["C"] == "26000"
    assert kinds(client.ask(Close(kind="S", name="never"), Close(kind="P", name="never"), Sync())) == "33Z"


@pytest.mark.parametrize(
    ("values", "formats"), [((), (0,)), ((b"1", b"2"), (0,)), ((b"1",), (0, 0)), ((b"1",), (2,))], ids=str
)
def test_bind_that_does_not_fit(client: RawClient, values: tuple[bytes, ...], formats: tuple[int, ...]) -> None:
    bind = Bind(param_values=list(values), param_formats=list(formats))
    found = client.ask(Parse(query="select count(*) from people where film_a = $1"), bind, Sync())
    assert (kinds(found), errors(found)[0]["C"]) == ("1EZ", "08P01")


def test_formats_of_the_result_that_do_not_fit(client: RawClient) -> None:
    found = client.ask(Parse(query=CITIES), Bind(result_formats=[0, 1, 0]), Describe(kind="P"), Sync())
    assert kinds(found) == "12EZ"


def test_values_that_are_none_of_their_type(client: RawClient) -> None:
    text = "select count(*) from people where film_a = $1"
    for value, form, code in ((b"x", 0, "22P02"), (b"", 0, "22P02"), (b"1", 1, "22P03"), (b"\xff", 0, "22P02")):
        (error,) = errors(client.ask(*asked(text, value, types=(20,), form=form)))
        assert error["C"] == code
        assert set(error) == set("SVCM")


def test_types_that_the_guard_has_no_values_of(client: RawClient) -> None:
    for oid, value in ((2950, b"1"), (114, b"1"), (17, b"1"), (1007, b"{1}")):
        (error,) = errors(client.ask(*asked("select count(*) from people where film_a = $1", value, types=(oid,))))
        assert error["C"] == "0A000"


def test_there_is_an_end_to_what_is_kept(client: RawClient) -> None:
    found = client.ask(*[Parse(statement=f"s{at}", query="select 1") for at in range(1001)], Sync())
    assert errors(found)[0]["C"] == "54000"
    client.query("begin")
    found = client.ask(*[Bind(statement="s1", portal=f"p{at}") for at in range(101)], Sync())
    assert errors(found)[0]["C"] == "54000"


def test_there_is_an_end_to_the_size_of_what_is_kept(client: RawClient) -> None:
    client.query("begin")
    client.ask(Parse(statement="s", query="select $1"), Sync())
    binds = [Bind(statement="s", portal=f"p{at}", param_values=[b"x" * 1_000_000]) for at in range(9)]
    found = client.ask(*binds, Sync())
    assert (kinds(found), errors(found)[0]["C"]) == ("2" * 8 + "EZ", "54000")


def test_function_calls_are_refused(client: RawClient) -> None:
    found = client.ask(b"F" + struct.pack("!iIhhh", 14, 1, 0, 0, 0))
    assert (kinds(found), errors(found)[0]["C"]) == ("EZ", "0A000")


def test_data_of_a_copy_is_not_answered(client: RawClient) -> None:
    client.send(b"d" + struct.pack("!i", 8) + b"data", b"c" + struct.pack("!i", 4), b"f" + struct.pack("!i", 5) + b"\0")
    assert kinds(client.query(CITIES)) == "TDDDCZ"


# Transactions


def test_transactions_are_told_of(client: RawClient) -> None:
    steps = [
        ("begin", "BEGIN", b"T"),
        (CITIES, "SELECT 3", b"T"),
        ("select nope", "42703", b"E"),
        (CITIES, "25P02", b"E"),
        ("set timezone to 'UTC'", "25P02", b"E"),
        ("commit", "ROLLBACK", b"I"),
        ("start transaction isolation level serializable, read only", "START TRANSACTION", b"T"),
        ("savepoint a", "SAVEPOINT", b"T"),
        (ONE, "KG001", b"E"),
        ("rollback to savepoint a", "ROLLBACK", b"T"),
        ("release a", "RELEASE", b"T"),
        ("release a", "3B001", b"E"),
        ("end", "ROLLBACK", b"I"),
        ("savepoint a", "25P01", b"I"),
    ]
    for text, told, status in steps:
        found = client.query(text)
        said = errors(found)[0]["C"] if errors(found) else found[-2][1][:-1].decode()
        assert (said, found[-1][1]) == (told, status), text


@pytest.mark.parametrize("extended", [False, True])
def test_a_bind_that_was_on_its_way_does_not_hold_up_the_rollback(client: RawClient, extended: bool) -> None:
    rollback = [Parse(query="rollback"), Bind(), Execute(), Sync()] if extended else [Query(query_string="rollback")]
    stale = Bind(param_values=[b"x"])
    client.query("begin")
    assert kinds(client.ask(Parse(query="select count(*) from people where zip = $1"), Sync())) == "1Z"
    assert errors(client.ask(Describe(kind="S"), Sync()))[0]["C"] != "25P02"
    assert errors(client.ask(stale, Execute(), Sync()))[0]["C"] == "25P02"
    assert client.ask(stale, *rollback)[-1] == (b"Z", b"I")
    assert errors(client.ask(Execute(), Sync()))[0]["C"] == "34000"


def test_in_a_failed_transaction_nothing_is_prepared_either(client: RawClient) -> None:
    client.query("begin")
    client.query("select nope")
    found = client.ask(Parse(query=CITIES), Describe(kind="S"), Sync())
    assert (errors(found)[0]["C"], found[-1]) == ("25P02", (b"Z", b"E"))


# Settings


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("timezone = 'Europe/Vienna'", "Europe/Vienna"),
        ("TIME ZONE 'UTC'", "UTC"),
        ("datestyle to iso, dmy", "ISO, MDY"),
        ("session extra_float_digits = 3", "3"),
        ("application_name = 'a ''b'''", "a 'b'"),
        ("client_encoding to 'utf-8'", "UTF8"),
        ("NAMES 'UTF8'", "UTF8"),
        ("statement_timeout = '2s'", "2s"),
        ("search_path to main, public", "main, public"),
        ("standard_conforming_strings = on", "on"),
        ("session characteristics as transaction read only", "on"),
    ],
)
def test_settings_that_are_kept(client: RawClient, setting: str, shown: str) -> None:
    assert kinds(client.query(f"set {setting}")).strip("S") == "CZ"
    words = setting.replace("=", " ").lower().split()
    name = {"time": "timezone", "names": "client_encoding", "session": words[1], "local": words[1]}.get(
        words[0], words[0]
    )
    name = "transaction_read_only" if "characteristics" in words else name
    assert rows(client.query(f"show {name}")) == [(shown.encode(),)]


@pytest.mark.parametrize(
    "setting",
    [
        "search_path = x",
        "enable_profiling = 'json'",
        "memory_limit = '100GB'",
        "role = postgres",
        "session authorization x",
        "client_encoding = latin1",
        "standard_conforming_strings = off",
        "datestyle = german",
        "server_version = '9'",
        "timezone = '../../etc/passwd'",
        "bytea_output = escape",
        "extra_float_digits = 99",
        "statement_timeout = -1",
        "default_transaction_read_only = off",
        "variable x = 1",
        "x",
    ],
)
def test_settings_that_are_refused(client: RawClient, setting: str) -> None:
    assert kinds(client.query(f"set {setting}")) == "EZ"


def test_changes_of_settings_are_reported_and_reset(client: RawClient) -> None:
    found = client.query("set application_name = 'x'")
    assert found[0] == (b"S", b"application_name\0x\0")
    found = client.query("discard all")
    assert found[0] == (b"S", b"application_name\0\0")
    assert kinds(client.query("deallocate all")) == "CZ"
    assert errors(client.query("deallocate x"))[0]["C"] == "26000"


def test_settings_of_the_startup_message(running: Running) -> None:
    with RawClient(running, options="-c statement_timeout=5s --application-name=a\\ b", TimeZone="UTC") as client:
        assert client.parameters["application_name"] == "a b"
        assert rows(client.query("show statement_timeout")) == [(b"5s",)]


@pytest.mark.parametrize(
    "more",
    [
        {"options": "-c search_path=x -c enable_profiling=json"},
        {"options": "-c timezone"},
        {"options": "-f x"},
        {"enable_profiling": "json"},
        {"client_encoding": "SQL_ASCII"},
        {"replication": "database"},
    ],
    ids=str,
)
def test_settings_of_the_startup_message_that_are_refused(running: Running, more: dict[str, str]) -> None:
    with RawClient(running, log_in=False) as client:
        client.startup(**more)
        ((kind, content),) = client.to_the_end()
        assert (kind, error_of(content)["S"]) == (b"E", "FATAL")


def test_a_timeout_that_the_client_sets(client: RawClient) -> None:
    client.query("set statement_timeout = 1")
    (error,) = errors(
        client.query("select film_a, film_b, city, count(*), stddev_samp(salary) from people group by all")
    )
    assert error["C"] == "57014"


# Logging in


@pytest.mark.parametrize(
    ("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD), (USER, OTHER_PASSWORD), (OTHER, PASSWORD)]
)
def test_a_wrong_password_and_a_wrong_name_are_told_the_same(running: Running, user: str, password: str) -> None:
    with pytest.raises(ClosedError) as told:
        RawClient(running, user=user, password=password)
    assert told.value.args[0] == {"S": "FATAL", "V": "FATAL", "C": "28P01", "M": "The name or the password is wrong."}


def test_an_unknown_name_always_has_the_same_salt(running: Running) -> None:
    salts = []
    for user in ("nobody", "nobody", "somebody"):
        with RawClient(running, log_in=False) as client:
            client.startup(user=user)
            client.next()
            first = b"n,,n=,r=abcdefgh"
            client.send(
                b"p"
                + struct.pack("!i", 4 + 14 + 4 + len(first))
                + b"SCRAM-SHA-256\0"
                + struct.pack("!i", len(first))
                + first
            )
            salts.append(client.next()[1].split(b",")[1])
    assert salts[0] == salts[1] != salts[2]


def test_several_principals(running: Running) -> None:
    with RawClient(running, user=OTHER, password=OTHER_PASSWORD) as client:
        assert rows(client.query("select current_user")) == [(b"bob",)]


def test_no_user(running: Running) -> None:
    with RawClient(running, log_in=False) as client:
        client.startup(user="")
        assert errors(client.to_the_end())[0]["C"] == "28000"


@pytest.mark.parametrize(
    "message", [Query(query_string=COUNT), Parse(query=COUNT), Sync()], ids=["query", "parse", "sync"]
)
def test_nothing_is_answered_before_the_password(running: Running, message: object) -> None:
    with RawClient(running, log_in=False) as client:
        client.startup()
        client.send(message)
        found = client.to_the_end()
        assert kinds(found) == "RE"
        assert errors(found)[0]["S"] == "FATAL"


def test_protocol_versions(running: Running) -> None:
    with RawClient(running, version=0x30002) as client:
        assert len(client.keys[1]) == 32
        assert client.negotiated == []
    with RawClient(running, version=0x3270F, **{"_pq_.news": "1"}) as client:
        assert client.negotiated == [struct.pack("!ii", 0x30002, 1) + b"_pq_.news\0"]
    with RawClient(running) as client:
        assert len(client.keys[1]) == 4
    for version in (0x20000, 0x40000):
        with RawClient(running, log_in=False) as client:
            client.startup(version=version)
            assert errors(client.to_the_end())[0]["C"] == "0A000"


def test_encryption_that_there_is_not(running: Running) -> None:
    with RawClient(running, log_in=False) as client:
        client.send(SSL)
        assert client.exactly(1) == b"N"
        client.send(GSS)
        assert client.exactly(1) == b"N"
        client.log_in()
        assert kinds(client.query(CITIES)) == "TDDDCZ"


@pytest.mark.parametrize("behind", [b"x", b"\0\0\0\x08\x04\xd2\x16\x2f", SSL], ids=bytes.hex)
def test_bytes_behind_a_request_to_encrypt_are_refused(secure: Running, behind: bytes) -> None:
    with RawClient(secure, log_in=False) as client:
        client.send(SSL + behind)
        assert errors(client.to_the_end())[0]["C"] == "08P01"


def test_with_a_certificate_everybody_encrypts(secure: Running) -> None:
    with RawClient(secure, log_in=False) as client:
        client.startup()
        assert errors(client.to_the_end())[0]["C"] == "28000"


# Limits


def test_too_many_connections(servers: Callable[..., Running]) -> None:
    small = servers(max_connections=3, connections_per_principal=2)
    with RawClient(small) as first, RawClient(small) as second:
        with pytest.raises(ClosedError) as told:
            RawClient(small)
        assert told.value.args[0]["C"] == "53300"
        with RawClient(small, user=OTHER, password=OTHER_PASSWORD), RawClient(small, log_in=False) as fourth:
            fourth.startup()
            assert errors(fourth.to_the_end())[0]["C"] == "53300"
        assert kinds(first.query(CITIES)) == kinds(second.query(CITIES)) == "TDDDCZ"
    until(lambda: small.server.connections == 0)
    with RawClient(small) as client:
        assert kinds(client.query(CITIES)) == "TDDDCZ"


def test_who_logs_in_slowly_is_sent_away(servers: Callable[..., Running]) -> None:
    hasty = servers(authentication_timeout_s=0.4)
    waiting = [RawClient(hasty, log_in=False) for _ in range(3)]
    waiting[1].send(b"\0")
    waiting[2].startup()
    for client in waiting:
        found = client.to_the_end()
        assert errors(found)[-1]["S"] == "FATAL"
        client.close()
    assert kinds(RawClient(hasty).query(CITIES)) == "TDDDCZ"


def test_silent_connections_do_not_push_out_who_is_logging_in(servers: Callable[..., Running]) -> None:
    small = servers(max_unauthenticated=3)
    with RawClient(small, log_in=False) as greeted:
        greeted.startup()
        assert greeted.next()[0] == b"R"
        silent = [RawClient(small, log_in=False) for _ in range(9)]
        (told,) = errors(silent[0].to_the_end())
        assert (told["S"], told["C"]) == ("FATAL", "53300")
        greeted.send(b"p" + struct.pack("!i", 4))
        assert errors(greeted.to_the_end())[-1]["S"] == "FATAL"
        for client in silent:
            client.close()


def test_guesses_in_parallel_are_not_faster(servers: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one name; another name of the same address logs in meanwhile."""
    monkeypatch.setattr(FailedLogins, "delay", lambda _, failures: 0.1 * 2 ** (failures - 1))
    monkeypatch.setattr("kgather._server.logins.LONGEST_WAIT", 1.0)
    server = servers()

    def guess(_: int) -> str:
        with pytest.raises(ClosedError) as told:
            RawClient(server, password="wrong")
        return str(told.value.args[0]["C"])

    with ThreadPoolExecutor(12) as pool:
        guesses = [pool.submit(guess, at) for at in range(12)]
        RawClient(server, user=OTHER, password=OTHER_PASSWORD).close()
        assert not all(each.done() for each in guesses)
        codes = Counter(each.result() for each in guesses)
    failures = server.server._failed._addresses["127.0.0.1"].failures
    assert codes["28P01"] == failures < 8, codes
    assert codes["53300"] == 12 - failures


def test_who_says_nothing_is_sent_away(servers: Callable[..., Running]) -> None:
    with RawClient(servers(idle_timeout_s=0.3)) as client:
        assert errors(client.to_the_end())[0]["C"] == "57P05"


def test_a_message_of_any_size_within_bounds(servers: Callable[..., Running]) -> None:
    small = servers(max_message_bytes=100_000)
    with RawClient(small) as client:
        (error,) = errors(client.query("select " + "1" * 90_000))
        assert error["C"] == "54001"
        client.send(b"Q" + struct.pack("!i", 100_001))
        assert errors(client.to_the_end())[0] == {
            "S": "FATAL",
            "V": "FATAL",
            "C": "08P01",
            "M": "Protocol violation: the length of a message is out of bounds.",
        }


# Cancelling and stopping


class Slow:
    """Makes a guard wait before it answers, until it is told to go on."""

    def __init__(self, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on, self.began = threading.Event(), threading.Event()
        guard = running.service.guard
        before = guard.answer

        def slow(*arguments: object, **named: object) -> object:
            self.began.set()
            self.go_on.wait(10)
            return before(*arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(guard, "answer", slow)


def cancel(running: Running, pid: int, key: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", running.port), 5) as connection:
        connection.sendall(struct.pack("!iii", 12 + len(key), 80877102, pid) + key)
        return connection.recv(100)


@pytest.mark.parametrize("text", [COUNT, ONE], ids=["many", "one"])
@pytest.mark.parametrize("version", [0x30000, 0x30002])
def test_cancelling(running: Running, monkeypatch: pytest.MonkeyPatch, text: str, version: int) -> None:
    """What is cancelled says so, whether there would have been an answer or too few people for one."""
    slow = Slow(running, monkeypatch)
    with RawClient(running, version=version) as client:
        client.send(Query(query_string=text))
        assert slow.began.wait(5)
        pid, key = client.keys
        for wrong in (bytes(len(key)), key[:-1] + b"?" if key[-1:] != b"?" else key[:-1] + b"!"):
            assert cancel(running, pid, wrong) == b""
        assert cancel(running, pid + 1, key) == b""
        assert cancel(running, pid, key) == b""
        found = client.until(b"Z")
        slow.go_on.set()
        assert [error["C"] for error in errors(found)] == ["57014"]
        assert kinds(client.query(CITIES)) == "TDDDCZ"


def test_cancelling_nothing(client: RawClient, running: Running) -> None:
    assert cancel(running, *client.keys) == b""
    assert kinds(client.query(CITIES)) == "TDDDCZ"


def test_who_leaves_while_the_guard_thinks_leaves_nothing_behind(
    servers: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = servers()
    slow = Slow(running, monkeypatch)
    client = RawClient(running)
    client.send(Query(query_string=COUNT))
    assert slow.began.wait(5)
    client.close()
    until(lambda: running.server.connections == 0)
    slow.go_on.set()


def test_stopping(servers: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks nothing is told at once, who waits for an answer gets it first."""
    running = servers()
    slow = Slow(running, monkeypatch)
    idle, busy = RawClient(running), RawClient(running)
    busy.send(Query(query_string=COUNT))
    assert slow.began.wait(5)
    stopping = threading.Thread(target=running.stop)
    stopping.start()
    assert errors(idle.to_the_end())[0]["C"] == "57P01"
    with pytest.raises(OSError, match="refused"):
        RawClient(running, log_in=False)
    slow.go_on.set()
    found = busy.to_the_end()
    assert kinds(found) == "NTDCZE"
    assert errors(found)[0]["C"] == "57P01"
    stopping.join(10)


def test_stopping_when_the_grace_is_over(servers: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> None:
    running = servers()
    slow = Slow(running, monkeypatch)
    busy = RawClient(running)
    busy.send(Query(query_string=COUNT))
    assert slow.began.wait(5)
    running.do(running.server.stop(0.2))
    assert errors(busy.to_the_end())[-1]["C"] in ("57P01", "57014")
    slow.go_on.set()


# Frames


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"Q\0\0\0\x08abcd", "08P01"),
        (b"Q\0\0\0\x09ab\0cd", "08P01"),
        (b"Q\0\0\0\x0fselect\0 1;\0", "08P01"),
        (b"Q\0\0\0\x08\xff\xff\xff\0", "22021"),
        (b"P\0\0\0\x0c\0\xff\xff\xff\xff\0\0\0", "22021"),
        (b"D\0\0\0\4", "08P01"),
        (b"E\0\0\0\5\0", "08P01"),
        (b"P\0\0\0\x08\0\0\0\1", "08P01"),
        (b"B\0\0\0\x12\0\0\0\0\0\1\xff\xff\xff\xfe\0\0\0\0", "08P01"),
        (b"B\0\0\0\x10\0\0\0\0\0\1\0\0\0\x63\0\0", "08P01"),
        (b"D\0\0\0\6X\0", "08P01"),
        (b"C\0\0\0\6?\0", "08P01"),
    ],
)
def test_bad_contents_are_an_error_and_the_connection_stays(client: RawClient, bad: bytes, code: str) -> None:
    """Where a message ends is known: what is in it is an error like any other."""
    client.send(bad)
    (_, content) = client.next()
    error = error_of(content)
    assert (error["S"], error["C"]) == ("ERROR", code)
    client.ask(Sync())
    if bad[:1] == b"Q":
        client.next()
    assert rows(client.query("select 1")) == [(b"1",)]


@pytest.mark.parametrize(
    "bad",
    [
        b"Q\0\0\0\x03",
        b"Q\0\0\0\0",
        b"Q\xff\xff\xff\xff",
        b"Q\x7f\xff\xff\xff",
        b"\0\0\0\0\0",
        b"!\0\0\0\4",
        b"p\0\0\0\x08abc\0",
    ],
    ids=bytes.hex,
)
def test_bad_frames_end_the_connection(running: Running, bad: bytes) -> None:
    with RawClient(running) as client:
        client.send(bad)
        found = client.to_the_end()
        assert kinds(found) == "E"
        error = error_of(found[0][1])
        assert (error["S"], error["C"]) == ("FATAL", "08P01")


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack("!i", 3),
        struct.pack("!i", -1),
        struct.pack("!i", 1 << 30),
        struct.pack("!ii", 8, 0),
        struct.pack("!ii", 9, 80877103) + b"x",
        struct.pack("!ii", 8, 80877102),
        struct.pack("!ii", 9, 0x30000) + b"x",
        struct.pack("!ii", 14, 0x30000) + b"user\0\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00",
    ],
    ids=bytes.hex,
)
def test_bad_beginnings_end_the_connection(running: Running, bad: bytes) -> None:
    with RawClient(running, log_in=False) as client:
        client.send(bad)
        assert kinds(client.to_the_end()) == "E"


def test_who_does_not_read_does_not_hold_up_others(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgather._server.postgres.stream._PATIENCE", 0.5)
    text = f"select '{'x' * 1000}' as x from " + ", ".join(f"cities {name}" for name in "abcdefg")
    client, before = RawClient(running), running.server.connections
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.send(*[Query(query_string=text)] * 8)
    with RawClient(running) as other:
        assert kinds(other.query(CITIES)) == "TDDDCZ"
    until(lambda: running.server.connections < before)
    client.close()


# Races


def test_what_many_ask_at_once_is_measured_once(servers: Callable[..., Running]) -> None:
    """All are told the same numbers, and the ledger has one measurement of each thing."""
    running = servers()
    halves = ["select sum(salary) from people where film_a <= 5", "select sum(salary) from people where film_a <= 77"]
    clients = [RawClient(running) for _ in range(6)]
    for at, client in enumerate(clients):
        client.send(Query(query_string=halves[at % 2]))
    answers = [rows(client.until(b"Z"))[0][0] for client in clients]
    assert len(set(answers[0::2])) == len(set(answers[1::2])) == 1
    engine = running.service.guard.engine
    assert isinstance(engine, MeasuredEngine)
    names = [(one.name, one.domains) for one in engine.ledger.measurements()]
    assert len(names) == len(set(names)) > 0
    for client in clients:
        client.close()


def test_a_message_that_cannot_be_read_is_an_error_as_a_whole(client: RawClient) -> None:
    """PostgreSQL reads a message before it runs anything in it, and so nothing before the mistake is done."""
    for text in (
        "begin; selec; select 1",
        "begin; select count(*) from people where; select 1",
        "set application_name = 'changed'; select 'open",
        "begin; select count(*) frm people",
    ):
        found = client.query(text)
        assert (kinds(found), errors(found)[0]["C"], found[-1][1]) == ("EZ", "42601", b"I"), text
    assert rows(client.query("show application_name")) == [(b"",)]


def test_a_mistake_of_names_is_an_error_in_its_place(client: RawClient) -> None:
    found = client.query("begin; select nothing from people; select 1")
    assert (kinds(found), errors(found)[0]["C"], found[-1][1]) == ("CEZ", "42703", b"E")
    # What cannot be read is told as such, also where nothing else is answered any more.
    assert errors(client.query("selec"))[0]["C"] == "42601"
    assert errors(client.query("select 1"))[0]["C"] == "25P02"
    client.query("rollback")


@pytest.mark.parametrize("value", [b"a\0b", b"\xff", b"Gr\xc3"])
@pytest.mark.parametrize("form", [0, 1])
def test_a_value_that_is_no_text_leaves_the_connection(client: RawClient, value: bytes, form: int) -> None:
    messages = (
        Parse(statement="", query="select count(*) from people where film_a > 0 and $1 = 'x'", param_types=[25]),
        Bind(portal="", statement="", param_formats=[form], param_values=[value], result_formats=[]),
        Execute(portal="", max_rows=0),
        Sync(),
    )
    assert errors(client.ask(*messages))[0]["C"] == "22021"
    assert rows(client.query("select 1")) == [(b"1",)]


@pytest.mark.parametrize("kind", [b"D", b"C"])
def test_what_is_neither_statement_nor_portal(client: RawClient, kind: bytes) -> None:
    found = client.ask(kind + struct.pack("!i", 6) + b"X\0", Sync())
    assert (kinds(found), errors(found)[0]["C"]) == ("EZ", "08P01")
