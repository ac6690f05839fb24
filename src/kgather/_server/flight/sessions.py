"""Bearer tokens, results that wait to be fetched, and prepared statements: random, of one principal, for a time.

Whoever has more of them than allowed loses the one that was used least lately, and nobody loses another's.
"""

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
NAME, SECRET = 9, 33  # bytes; the name finds an entry, the secret is compared


@dataclass
class _Entry(Generic[T]):
    secret: bytes
    principal: str
    value: T
    size: int
    until: float


class Kept(Generic[T]):
    """Values under handles that nobody can guess. Safe to share among threads.

    seconds: how long each is kept. each: how many a principal may have. total: bytes of all together; what does not
    fit is not kept.
    """

    def __init__(
        self, *, seconds: float, each: int, total: int = 2**63, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._each = each
        self._total = total
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, _Entry[T]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._entries)

    def add(self, principal: str, value: T, size: int = 0) -> bytes | None:
        """Keep a value; its handle, or None where there is no room for it."""
        name, secret = secrets.token_bytes(NAME), secrets.token_bytes(SECRET)
        with self._lock:
            self._expire()
            own = [name for name, entry in self._entries.items() if entry.principal == principal]
            for oldest in own[: max(len(own) - self._each + 1, 0)]:
                self._remove(oldest)
            if self._size + size > self._total:
                return None
            self._entries[name] = _Entry(secret, principal, value, size, self._clock() + self._seconds)
            self._size += size
        return name + secret

    def get(self, handle: bytes, principal: str | None = None) -> tuple[str, T] | None:
        """Whose a handle is and what it stands for; None where it is not known, not theirs, or too old."""
        with self._lock:
            found = self._found(handle, principal)
            if found is None:
                return None
            self._entries.move_to_end(handle[:NAME])
            return found.principal, found.value

    def replace(self, handle: bytes, principal: str, value: T, size: int = 0) -> bool:
        """Put another value under a handle; whether there is one, and room."""
        with self._lock:
            found = self._found(handle, principal)
            if found is None or self._size - found.size + size > self._total:
                return False
            self._size += size - found.size
            found.value, found.size = value, size
            return True

    def take(self, handle: bytes, principal: str) -> T | None:
        """As `get`, for the last time."""
        with self._lock:
            found = self._found(handle, principal)
            if found is None:
                return None
            self._remove(handle[:NAME])
            return found.value

    def _found(self, handle: bytes, principal: str | None) -> _Entry[T] | None:
        self._expire()
        entry = self._entries.get(handle[:NAME])
        if entry is None or not hmac.compare_digest(entry.secret, handle[NAME:]):
            return None
        return entry if principal in (None, entry.principal) else None

    def _expire(self) -> None:
        now = self._clock()
        for name in [name for name, entry in self._entries.items() if entry.until <= now]:
            self._remove(name)

    def _remove(self, name: bytes) -> None:
        self._size -= self._entries.pop(name).size
