"""Kills a server while it answers, again and again, and compares its ledger with that of an undisturbed guard."""

import json
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psycopg
from guard_files import statements
from server_process import Server, postgres, write_server_files

from kgather._guard.guard import Guard
from kgather._guard.ledger import Ledger
from kgather._guard.refused import Refused

KEY = "0123456789abcdef-kills"
_NOISE = ("SELECT salary FROM ratings_wide", "SELECT COUNT(*) FROM nothing", "SELEC")


class Killing:
    """A server over a folder of its own, and an undisturbed guard, with the same key, that is asked the same."""

    def __init__(self, folder: Path, start: Callable[..., Server], undisturbed: Path) -> None:
        self.folder = write_server_files(folder)
        self.start = start
        self.undisturbed = Guard.from_policy(write_server_files(undisturbed, audit_log=None) / "policy.yml")
        self.asking = statements(1)
        self.in_flight: str | None = None
        self.told = 0

    def round(self, seconds: float) -> None:
        """Start, ask until a kill after `seconds`, and start again; nothing that was told may be forgotten."""
        server = self.start(folder=self.folder, env={"KGATHER_GUARD_KEY": KEY})
        with postgres(server) as connection:
            if self.in_flight is not None:
                # It may have been decided, and not told. Asked first, it is decided in its place either way.
                self._ask(connection, self.in_flight)
                self._compare()
            noise = [threading.Thread(target=self._noise, args=(server,)) for _ in range(3)]
            for thread in noise:
                thread.start()
            killer = threading.Timer(seconds, lambda: server.process.send_signal(signal.SIGKILL))
            killer.start()
            with suppress(psycopg.OperationalError):
                while True:
                    self.in_flight = next(self.asking)
                    self._ask(connection, self.in_flight)
        assert server.process.wait(30) == -signal.SIGKILL
        for thread in (killer, *noise):
            thread.join()

    def _ask(self, connection: psycopg.Connection, sql: str) -> None:
        """Ask the server, and what it tells, the undisturbed guard."""
        told: object
        try:
            told = connection.execute(sql).fetchall()
        except psycopg.Error as error:
            if connection.closed:
                raise psycopg.OperationalError from error  # killed
            told = error.sqlstate
        expected: object
        try:
            expected = [tuple(row.values()) for row in self.undisturbed.query(sql, principal="analyst").to_pylist()]
        except Refused as refusal:
            expected = refusal.code
        assert told == expected, f"{sql}: {told}, undisturbed {expected}"
        self.told += 1

    def _noise(self, server: Server) -> None:
        with suppress(psycopg.OperationalError), postgres(server, "other") as connection:
            while server.process.poll() is None:
                for sql in _NOISE:
                    try:
                        connection.execute(sql)
                    except psycopg.OperationalError:
                        return
                    except psycopg.Error:
                        continue
                time.sleep(0.01)

    def _compare(self) -> None:
        """The ledger of the server, read from its file, holds the parts that the undisturbed guard has."""
        k = self.undisturbed.policy.k
        with Ledger(self.folder / "ledger.duckdb").deciding():
            found = Ledger(self.folder / "ledger.duckdb").read(k)
        expected = Ledger(self.undisturbed.ledger.path).read(k)
        assert found.keys() == expected.keys()
        for name, kept in found.items():
            assert np.array_equal(kept.keys, expected[name].keys), name
            assert np.array_equal(_first(kept.atoms), _first(expected[name].atoms)), f"{name}: a split was forgotten"
            if name == "unit":
                assert np.unique(kept.atoms[kept.atoms >= 0], return_counts=True)[1].min() >= k


def _first(atoms: np.ndarray) -> np.ndarray:
    """Of each row, the first row of its atom: a partition without the names of its parts."""
    _, first, of = np.unique(atoms, return_index=True, return_inverse=True)
    return first[of]


def audited(folder: Path) -> list[dict[str, object]]:
    """Whole lines of the audit log; a kill may leave the last one half."""
    lines = []
    for line in (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):
            lines.append(json.loads(line))
    return lines
