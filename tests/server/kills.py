"""Kills a server while it answers, again and again, and looks whether its ledger has all that was told."""

import json
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import psycopg
from guard_files import statements
from server_process import Server, postgres, write_server_files

from kgather._guard.measured.ledger import Ledger
from kgather._guard.measured.replay import Repeated, Replay
from kgather._guard.warehouse import Warehouse

_NOISE = ("SELECT salary FROM ratings_wide", "SELECT COUNT(*) FROM nothing", "SELEC")


class Killing:
    """A server over a folder of its own. before: what its ledger had after the last kill. told: what it told."""

    def __init__(self, folder: Path, start: Callable[..., Server]) -> None:
        self.folder = write_server_files(folder)
        self.start = start
        self.asking = statements(1)
        self.in_flight: str | None = None
        self.before: dict[tuple[int, str], bytes] = {}
        self.told: dict[str, object] = {}

    def round(self, seconds: float) -> None:
        """Start, ask until a kill after `seconds`, and start again; nothing that was told may be forgotten."""
        server = self.start(folder=self.folder)
        with postgres(server) as connection:
            self._check()
            if self.in_flight is not None:
                # It may have been measured, and not told.
                self._ask(connection, self.in_flight)
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
        """Ask the server, and keep what it tells."""
        try:
            self.told[sql] = connection.execute(sql).fetchall()
        except psycopg.Error as error:
            if connection.closed:
                raise psycopg.OperationalError from error  # killed
            self.told[sql] = error.sqlstate

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

    def _check(self) -> None:
        """The ledger of the server still has all that it had, and all that the audit log says was charged."""
        found = {(one.number, one.name): one.numbers.tobytes() for one in ledger_of(self.folder).measurements()}
        assert self.before.items() <= found.items(), "a measurement was forgotten"
        assert {(number, name) for number, name, _ in charged(self.folder)} <= found.keys(), "a charge was forgotten"
        self.before = found


def ledger_of(folder: Path) -> Ledger:
    return Ledger(folder / "ledger.duckdb")


def charged(folder: Path) -> set[tuple[int, str, float]]:
    """Number, name and charge of each measurement in the audit log."""
    charges = [one for line in audited(folder) for one in cast(list[dict[str, Any]], line.get("measured", []))]
    return {(one["number"], one["name"], one["rho"]) for one in charges}


def replayed(folder: Path) -> list[Repeated]:
    """Everything that was told of people, given again from the ledger."""
    again = Replay(ledger_of(folder), Warehouse(folder / "fixture.duckdb"))
    return [again.repeated(entry) for entry in again.entries(iter(audited(folder)))]


def audited(folder: Path) -> list[dict[str, object]]:
    """Whole lines of the audit log; a kill may leave the last one half."""
    if not (folder / "audit.jsonl").exists():
        return []
    lines = []
    for line in (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):
            lines.append(json.loads(line))
    return lines
