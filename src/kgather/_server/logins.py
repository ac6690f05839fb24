"""Failed logins: they slow down whoever guesses, by address and by name, and are logged without names.

Logins of one name from one address are judged one after the other. After a failure the next waits for a while, however
many connections there are. So guesses in parallel are not faster than one after the other, and who guesses at one name
does not keep out another that logs in from the same address.
"""

import ipaddress
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kgather._errors import KgatherError

_FIRST, _LONGEST = 0.5, 5.0  # seconds
_FORGOTTEN = 600.0  # seconds without a failure
_FREE, _PACE = 10, 0.5
"""So many failures of an address, under whichever names; after each further one all logins from there wait."""
LONGEST_WAIT = 8.0
"""Seconds that a login waits at most; one that would have to wait longer is turned away at once."""
_MOST, _MOST_NAMES = 10_000, 100
_GLANCE = 0.02  # seconds between two looks at whether it is a login's turn
_SHAPE = 32
_PREFIX = 64

_log = logging.getLogger("kgather._server")


class TooManyLoginsError(KgatherError):
    """Logins of this name from this address failed, and others wait already. seconds: after which one need not wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Logins from this address failed, and others wait. Try again in {seconds:.0f} seconds.")


@dataclass
class _Name:
    """Logins of one name from one address. free: when the next may be judged."""

    failures: int = 0
    at: float = 0.0
    free: float = 0.0
    waiting: "deque[Turn]" = field(default_factory=deque)


@dataclass
class _Address:
    """Logins from one address, by the hashes of names."""

    failures: int = 0
    at: float = 0.0
    free: float = 0.0
    names: "OrderedDict[int, _Name]" = field(default_factory=OrderedDict)


class Turn:
    """A login that waits to be judged. Use it as a context, so that others have their turn afterwards."""

    def __init__(self, of: "FailedLogins", address: _Address, name: _Name, number: int) -> None:
        self._of = of
        self.address = address
        self.name = name
        self.number = number
        self.since = of.now()

    def wait(self) -> float:
        """Seconds after which to ask again; 0 where the login is to be judged now. Raises TooManyLoginsError where that
        takes too long."""
        return self._of._wait(self)

    def __enter__(self) -> "Turn":
        return self

    def __exit__(self, *_: object) -> None:
        self._of._leave(self)


class FailedLogins:
    """How often logins failed, over whichever wire. An address of IPv6 stands for its network. Safe to share among
    threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._addresses: OrderedDict[str, _Address] = OrderedDict()
        self._number = 0

    def now(self) -> float:
        """Seconds of the clock that waits are measured by."""
        return self._clock()

    def queue(self, address: str | None, name: str) -> Turn:
        """Have a login wait for its turn. name: as the client gave it, whether anybody has it or not. Raises
        TooManyLoginsError where that takes too long."""
        with self._lock:
            now = self._clock()
            found, of_name = self._found(address, name)
            known = of_name.failures
            # As if all that are ahead failed, too.
            ahead = sum(self.delay(known + at) for at in range(1, len(of_name.waiting) + 1)) if known else 0.0
            seconds = max(of_name.free, found.free, now) - now + ahead
            if seconds > LONGEST_WAIT:
                raise TooManyLoginsError(seconds)
            self._number += 1
            turn = Turn(self, found, of_name, self._number)
            of_name.waiting.append(turn)
            return turn

    def failed(self, wire: str, address: str | None, name: str) -> None:
        """Count a failure and log it. The log has the shape of the name only, because a password may have slipped into
        its place."""
        with self._lock:
            now = self._clock()
            found, of_name = self._found(address, name)
            found.failures, found.at = found.failures + 1, now
            of_name.failures, of_name.at = of_name.failures + 1, now
            of_name.free = now + self.delay(of_name.failures)
            found.free = now + (self.delay(1) and _PACE) if found.failures > _FREE else 0.0
            count = found.failures
        _log.warning(
            "a login failed", extra={"wire": wire, "address": address, "name_shape": shape(name), "failures": count}
        )

    def succeeded(self, address: str | None, name: str) -> None:
        """Forget the failures of a name from an address: whoever has its password logged in from there."""
        with self._lock:
            _, of_name = self._found(address, name)
            of_name.failures, of_name.free = 0, 0.0

    def delay(self, failures: int) -> float:
        """Seconds that the next login waits after so many failures: twice as long with each."""
        return min(_FIRST * 2 ** min(failures - 1, 10), _LONGEST)

    def _wait(self, turn: Turn) -> float:
        with self._lock:
            now = self._clock()
            if now - turn.since > LONGEST_WAIT:
                raise TooManyLoginsError(LONGEST_WAIT)
            if turn.name.waiting[0] is not turn:
                return max(turn.name.free - now, _GLANCE)
            if (seconds := max(turn.name.free, turn.address.free) - now) > 0:
                return seconds
            if turn.address.failures > _FREE:
                # Names that nobody guessed at come first.
                heads = [one for one in turn.address.names.values() if one.waiting and one.free <= now]
                first = min(heads, key=lambda one: (one.failures, one.waiting[0].number))
                if first is not turn.name:
                    return _GLANCE
            return 0.0

    def _leave(self, turn: Turn) -> None:
        with self._lock:
            turn.name.waiting.remove(turn)

    def _found(self, address: str | None, name: str) -> tuple[_Address, _Name]:
        """What is known of an address and a name, made if there is nothing. Old failures are forgotten."""
        now = self._clock()
        found = self._addresses.setdefault(network := _network(address), _Address())
        self._addresses.move_to_end(network)
        of_name = found.names.setdefault(hash(name), _Name())
        found.names.move_to_end(hash(name))
        for one in (found, of_name):
            if now - one.at >= _FORGOTTEN:
                one.failures, one.free = 0, 0.0
        _trim(self._addresses, _MOST, lambda one: any(each.waiting for each in one.names.values()))
        _trim(found.names, _MOST_NAMES, lambda one: bool(one.waiting))
        return found, of_name


Key = TypeVar("Key")
Of = TypeVar("Of")


def _trim(kept: "OrderedDict[Key, Of]", most: int, waits: Callable[[Of], bool]) -> None:
    """Forget the oldest, if there are too many, but none that somebody waits for."""
    while len(kept) > most:
        oldest = next(iter(kept))
        if waits(kept[oldest]):
            return
        del kept[oldest]


def shape(name: str) -> str:
    """What a name looks like: a for each letter, 9 for each digit, a dot for anything else."""
    signs = ("a" if c.isalpha() else "9" if c.isdigit() else "." for c in name[:_SHAPE])
    return "".join(signs) + ("+" if len(name) > _SHAPE else "")


def _network(address: str | None) -> str:
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return address or ""
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _PREFIX), strict=False))
    return str(found)
