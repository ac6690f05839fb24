"""Whether the server can answer now: database and ledger can be read, and the disk takes what has to be written."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from kgather._guard.guard import Guard
from kgather._server.full_disk import try_writing

_AGAIN = 2.0  # seconds for which what was found is told again
_MAGIC = slice(8, 12)


class Readiness:
    """Looks at what answers need. guard: the one that answers now; takes_queries: False while shutting down."""

    def __init__(self, guard: Callable[[], Guard], takes_queries: Callable[[], bool]) -> None:
        self._guard = guard
        self._takes_queries = takes_queries
        self._lock = threading.Lock()
        self._found: dict[str, bool] = {}
        self._until = 0.0

    def look(self) -> dict[str, bool]:
        """What works, by its name. At most once in two seconds, however many ask."""
        with self._lock:
            if time.monotonic() >= self._until:
                guard = self._guard()
                self._found = {
                    "database": _works(lambda: _read(guard.policy.database)),
                    "ledger": _works(guard.look),
                    "disk": _works(lambda: try_writing(guard.policy.ledger.parent)),
                }
                log = guard.policy.audit_log
                if log is not None:
                    self._found["audit_log"] = _works(lambda: try_writing(log.parent))
                self._until = time.monotonic() + _AGAIN
            return {"queries": self._takes_queries(), **self._found}


def _works(look: Callable[[], object]) -> bool:
    try:
        look()
    except Exception:  # of whatever kind: what is asked is whether it works
        return False
    return True


def _read(database: Path) -> None:
    with database.open("rb") as stream:
        if stream.read(_MAGIC.stop)[_MAGIC] != b"DUCK":
            raise ValueError(_MAGIC)
