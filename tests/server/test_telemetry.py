"""Logs and metrics: what they say, and what they never say."""

import json
import logging
import socket
import stat
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import no_error, until

from kgather._errors import InputError
from kgather._guard.refused import Refused, Rule
from kgather._server.service import Unavailable
from kgather._server.telemetry import MetricsServer, Telemetry, log, reopen_logs, start_logging


@pytest.fixture
def logging_to(tmp_path: Path) -> Iterator[Path]:
    """The log of the server in a file; the loggers of the tests are put back."""
    root = logging.getLogger()
    before = (log.handlers[:], log.level, log.propagate, root.handlers[:], root.level)
    hooks = (threading.excepthook, sys.unraisablehook)
    start_logging(tmp_path / "server.log", "info")
    yield tmp_path / "server.log"
    log.handlers[:], log.level, log.propagate, root.handlers[:], root.level = before
    threading.excepthook, sys.unraisablehook = hooks


@pytest.fixture
def works() -> dict[str, bool]:
    return {"database": True, "ledger": True}


@pytest.fixture
def metrics(works: dict[str, bool]) -> Iterator[MetricsServer]:
    server = MetricsServer("127.0.0.1", 0, Telemetry(), lambda: works)
    server.start()
    yield server
    server.stop()


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_line_by_hand(logging_to: Path) -> None:
    log.info("ready", extra={"port": 5432, "flight_port": None})
    log.debug("not at this level")
    (line,) = lines(logging_to)
    assert list(line) == ["at", "level", "event", "port"]
    assert (line["level"], line["event"], line["port"]) == ("info", "ready", 5432)
    assert str(line["at"]).endswith("Z")
    assert stat.S_IMODE(logging_to.stat().st_mode) == 0o600


def test_what_libraries_say_is_not_quoted(logging_to: Path) -> None:
    other = logging.getLogger("some.package")
    try:
        raise KeyError("Ada")  # noqa: EM101
    except KeyError:
        other.exception("row %s of secret", "Ada")
    other.info("Ada is only a detail")
    (line,) = lines(logging_to)
    assert (line["event"], line["logger"], line["error"]) == ("a library reports", "some.package", "KeyError")
    assert "Ada" not in logging_to.read_text()


def test_a_thread_that_fails_is_not_quoted(logging_to: Path) -> None:
    def fail() -> None:
        raise KeyError("Ada")  # noqa: EM101

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    (line,) = lines(logging_to)
    assert (line["event"], line["error"]) == ("a thread failed", "KeyError")
    assert "Ada" not in logging_to.read_text()


def test_an_extra_does_not_hide_the_time(logging_to: Path) -> None:
    log.info("x", extra={"at": "elsewhere"})
    (line,) = lines(logging_to)
    assert str(line["at"]).endswith("Z")
    assert line["at_"] == "elsewhere"


def test_a_log_that_was_renamed_is_begun_anew(logging_to: Path) -> None:
    log.info("one")
    logging_to.rename(logging_to.with_name("server.log.1"))
    reopen_logs()
    assert logging_to.exists()
    log.info("two")
    assert [line["event"] for line in lines(logging_to)] == ["two"]
    assert [line["event"] for line in lines(logging_to.with_name("server.log.1"))] == ["one"]


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none/server\.log, the log, cannot be written: No such file"):
        start_logging(tmp_path / "none" / "server.log", "info")


def test_metrics_by_hand() -> None:
    telemetry = Telemetry()
    telemetry.told(None, 0.004)
    telemetry.told(Refused.too_few(), 0.2)
    reason = "no such table"
    telemetry.told(Refused(reason, rule=Rule.TABLES), 0.2)
    telemetry.told(Unavailable("timeout"), 20)
    telemetry.told(KeyError("Ada"), 1)
    telemetry.connected("postgres", +1)
    telemetry.turned_away("postgres", "connections")
    telemetry.login("flight", ok=False)
    value = telemetry.registry.get_sample_value
    for outcome, count in {"answered": 1, "refused": 2, "timeout": 1, "failed": 1}.items():
        assert value("kgather_queries_total", {"outcome": outcome}) == count
    assert value("kgather_refusals_total", {"rule": "too_few"}) == 1
    assert value("kgather_refusals_total", {"rule": "tables"}) == 1
    assert value("kgather_query_seconds_count") == 5
    assert value("kgather_query_seconds_bucket", {"le": "0.005"}) == 1
    assert value("kgather_query_seconds_bucket", {"le": "0.25"}) == 3
    assert value("kgather_connections", {"wire": "postgres"}) == 1
    assert value("kgather_connections_refused_total", {"wire": "postgres", "reason": "connections"}) == 1
    assert value("kgather_logins_total", {"wire": "flight", "outcome": "failed"}) == 1
    text = telemetry.text().decode()
    assert "Ada" not in text
    assert reason not in text


def test_times_do_not_tell_answers_from_refusals() -> None:
    one, other = Telemetry(), Telemetry()
    one.told(None, 0.02)
    other.told(Refused.too_few(), 0.02)
    seconds = [[line for line in of.text().decode().splitlines() if "query_seconds" in line] for of in (one, other)]
    assert seconds[0] == seconds[1]


def test_metrics_and_health_over_http(metrics: MetricsServer) -> None:
    base = f"http://127.0.0.1:{metrics.port}"
    with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert b"kgather_info" in answer.read()
        assert "Python" not in str(answer.headers)
    with urllib.request.urlopen(f"{base}/healthz", timeout=10) as answer:
        assert answer.read() == b"alive\n"
    for path in ("/", "/metrics/../etc/passwd", "/metrics?x=1"):
        with pytest.raises(urllib.error.HTTPError) as told:
            urllib.request.urlopen(base + path, timeout=10)
        assert told.value.code == 404


def test_what_is_not_ready_is_named(metrics: MetricsServer, works: dict[str, bool]) -> None:
    url = f"http://127.0.0.1:{metrics.port}/readyz"
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.read() == b"database: ok\nledger: ok\n"
    works["ledger"] = False
    with pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(url, timeout=10)
    assert (told.value.code, told.value.read()) == (503, b"database: ok\nledger: fails\n")


def test_who_asks_slowly_keeps_nobody_out(metrics: MetricsServer) -> None:
    slow = [socket.create_connection(("127.0.0.1", metrics.port)) for _ in range(4)]
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/healthz", timeout=3) as answer:
        assert answer.read() == b"alive\n"
    for client in slow:
        client.close()


def test_too_many_scrapes_are_turned_away_and_room_comes_back(metrics: MetricsServer) -> None:
    slow = [socket.create_connection(("127.0.0.1", metrics.port)) for _ in range(12)]
    url = f"http://127.0.0.1:{metrics.port}/healthz"
    with pytest.raises(OSError):  # noqa: PT011 - closed or reset, as the moment has it
        urllib.request.urlopen(url, timeout=3)
    for client in slow:
        client.close()
    until(lambda: no_error(lambda: urllib.request.urlopen(url, timeout=30).close(), OSError))


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"127\.0\.0\.1:{port}: Address already in use\. Choose another"):
            MetricsServer("127.0.0.1", port, Telemetry(), lambda: True)
