"""Failed logins: who waits, and what the log says."""

import logging

import pytest

from kgather._server.logins import FailedLogins, shape


def test_an_address_waits_twice_as_long_with_each_failure() -> None:
    now = [0.0]
    failed = FailedLogins(lambda: now[0])
    assert failed.delay("192.0.2.1") == 0
    waited = []
    for _ in range(6):
        failed.failed("postgres", "192.0.2.1", "anna")
        waited.append(failed.delay("192.0.2.1"))
    assert waited == [0.5, 1, 2, 4, 5, 5]
    assert failed.delay("192.0.2.2") == 0
    now[0] = 601
    assert failed.delay("192.0.2.1") == 0


def test_an_address_of_ipv6_stands_for_its_network() -> None:
    failed = FailedLogins()
    failed.failed("postgres", "2001:db8::1", "anna")
    assert failed.delay("2001:db8::2") == 0.5
    assert failed.delay("2001:db8:0:1::1") == 0


def test_the_log_has_the_shape_of_a_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        FailedLogins().failed("postgres", "192.0.2.1", "hunter2 secret")
    (line,) = caplog.records
    assert (line.address, line.name_shape, line.failures) == ("192.0.2.1", "aaaaaa9.aaaaaa", 1)
    assert "hunter2" not in str(vars(line))
    assert shape("x" * 40) == "a" * 32 + "+"
