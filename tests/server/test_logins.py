"""Failed logins: who waits, and what the log says."""

import logging

import pytest

from kgather._server.logins import LONGEST_WAIT, FailedLogins, TooManyLoginsError, shape

HERE = "192.0.2.1"


class Clock:
    """A clock that only a test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def judged(failed: FailedLogins, name: str, *, right: bool, address: str = HERE) -> float:
    """Log in, waiting as long as it takes; how long that was."""
    clock = failed._clock
    assert isinstance(clock, Clock)
    began = clock.now
    with failed.queue(address, name) as turn:
        while seconds := turn.wait():
            clock.now += seconds
        if right:
            failed.succeeded(address, name)
        else:
            failed.failed("postgres", address, name)
    return clock.now - began


def test_each_failure_of_a_name_makes_the_next_login_wait_twice_as_long() -> None:
    failed = FailedLogins(Clock())
    assert [judged(failed, "anna", right=False) for _ in range(7)] == pytest.approx([0, 0.5, 1, 2, 4, 5, 5])
    assert judged(failed, "bert", right=True) == 0
    assert judged(failed, "anna", right=True, address="192.0.2.2") == 0
    assert judged(failed, "anna", right=True) == pytest.approx(5)
    assert judged(failed, "anna", right=True) == 0


def test_who_comes_later_than_the_wait_does_not_wait() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    for _ in range(7):
        judged(failed, "anna", right=False)
    clock.now += 5
    assert judged(failed, "anna", right=False) == 0
    clock.now += 600
    assert judged(failed, "anna", right=False) == 0
    assert judged(failed, "anna", right=False) == pytest.approx(0.5)


def test_guesses_in_parallel_are_judged_one_after_the_other() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    turns = [failed.queue(HERE, "anna") for _ in range(20)]
    judged_at, turned_away = [], 0
    for at, turn in enumerate(turns):
        try:
            assert all(later.wait() for later in turns[at + 1 :])
            with turn:
                while seconds := turn.wait():
                    clock.now += seconds
                failed.failed("postgres", HERE, "anna")
            judged_at.append(clock.now - turn.since)
        except TooManyLoginsError:
            turned_away += 1
    assert judged_at == pytest.approx([0, 0.5, 1.5, 3.5, 7.5], abs=0.1)
    assert turned_away == 15


def test_nobody_waits_longer_than_a_bound() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    for _ in range(5):
        judged(failed, "anna", right=False)
    first = failed.queue(HERE, "anna")
    with pytest.raises(TooManyLoginsError, match="Try again in 10 seconds"):
        failed.queue(HERE, "anna")
    clock.now += 5
    with first, failed.queue(HERE, "anna") as second:
        assert first.wait() == 0
        assert 0 < second.wait() < LONGEST_WAIT
    assert judged(failed, "anna", right=True) == 0


def test_many_logins_at_once_wait_for_nothing_where_none_failed() -> None:
    failed = FailedLogins(Clock())
    turns = [failed.queue(HERE, "anna") for _ in range(100)]
    for turn in turns:
        with turn:
            assert turn.wait() == 0
            failed.succeeded(HERE, "anna")


def test_many_names_of_one_address_are_slowed_down_together() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    waited = [judged(failed, f"name{at}", right=False) for at in range(20)]
    assert waited == pytest.approx([0] * 11 + [0.5] * 9)
    guesses = [failed.queue(HERE, f"name{at}") for at in range(5)]
    clock.now += 6
    with failed.queue(HERE, "bert") as turn:  # nobody guessed at it: it comes first
        assert turn.wait() == 0
        assert all(guess.wait() for guess in guesses)


def test_what_is_kept_is_bounded() -> None:
    failed = FailedLogins(Clock())
    for at in range(300):
        failed.failed("postgres", HERE, f"name{at}")
    assert len(failed._addresses[HERE].names) == 100


def test_an_address_of_ipv6_stands_for_its_network() -> None:
    failed = FailedLogins(Clock())
    judged(failed, "anna", right=False, address="2001:db8::1")
    assert judged(failed, "anna", right=False, address="2001:db8:0:1::1") == 0
    assert judged(failed, "anna", right=False, address="2001:db8::2") == pytest.approx(0.5)


def test_the_log_has_the_shape_of_a_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        FailedLogins().failed("postgres", HERE, "hunter2 secret")
    (line,) = caplog.records
    assert (line.address, line.name_shape, line.failures) == (HERE, "aaaaaa9.aaaaaa", 1)
    assert "hunter2" not in str(vars(line))
    assert shape("x" * 40) == "a" * 32 + "+"
