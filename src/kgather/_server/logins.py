"""Failed logins: counted by address, which slows down whoever guesses, and logged without names."""

import ipaddress
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

_FIRST, _LONGEST = 0.5, 5.0  # seconds
_FORGOTTEN = 600.0  # seconds without a failure
_MOST = 10_000
_SHAPE = 32
_PREFIX = 64

_log = logging.getLogger("kgather._server")


class FailedLogins:
    """How often logins from each address failed, over whichever wire. An address of IPv6 stands for its network. Safe
    to share among threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def delay(self, address: str | None) -> float:
        """Seconds to wait before a login from there is answered, right or wrong: none without failures, and twice as
        long with each."""
        with self._lock:
            count = self._count(_network(address))
        return min(_FIRST * 2 ** (count - 1), _LONGEST) if count else 0.0

    def failed(self, wire: str, address: str | None, name: str) -> None:
        """Count a failure and log it. name: as the client gave it; the log has its shape only, because a password may
        have slipped into its place."""
        network = _network(address)
        with self._lock:
            count = self._count(network) + 1
            self._failures[network] = (count, self._clock())
            self._failures.move_to_end(network)
            while len(self._failures) > _MOST:
                self._failures.popitem(last=False)
        _log.warning(
            "a login failed", extra={"wire": wire, "address": address, "name_shape": shape(name), "failures": count}
        )

    def _count(self, network: str) -> int:
        count, at = self._failures.get(network, (0, 0.0))
        return count if count and self._clock() - at < _FORGOTTEN else 0


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
