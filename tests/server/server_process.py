"""A server as a process of its own, its files, and certificates for it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
from guard_files import AMPLE, write_files

from kgather._server import users

PASSWORDS = {"analyst": "correct horse battery", "other": "staple, staple"}
KGATHER = [sys.executable, "-c", "from kgather._cli import main; main()"]
_PATIENCE = 90  # seconds; the machine may be busy


def write_server_files(folder: Path, **changes: object) -> Path:
    """Put database, policy and users into a folder; changes: entries of the policy. Returns the folder."""
    named = {
        "audit_log": "audit.jsonl",
        "principals": {name: {} for name in PASSWORDS},
        "mode": "measured",
        **changes,
    }
    if named["mode"] == "measured":
        named.setdefault("budget", AMPLE)
    write_files(folder, **named).chmod(0o600)
    (folder / "fixture.duckdb").chmod(0o600)
    for name, password in PASSWORDS.items():
        users.add(folder / "users.scram", name, password)
    return folder


def postgres(server: "Server", name: str = "analyst", **options: object) -> psycopg.Connection:
    """A connection of psycopg's."""
    given = {"host": "127.0.0.1", "sslmode": "disable", "connect_timeout": 30, **options}
    return psycopg.connect(
        port=server.port,
        user=name,
        password=PASSWORDS[name],
        dbname="kgather",
        autocommit=True,
        **given,
    )


class Server:
    """`kgather serve` as a process. log: the lines that it has written so far."""

    def __init__(self, folder: Path, *options: object, env: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.log: list[dict[str, Any]] = []
        self.other: list[str] = []
        root = ["--allow-root"] if os.geteuid() == 0 and "--user" not in options else []
        command = ["serve", "--policy", folder / "policy.yml", "--port", 0, "--flight-port", 0, *root, *options]
        self.process = subprocess.Popen(
            [*KGATHER, *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                self.other.append(line)

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """The line of the log that tells of an event, or of its `count`th time."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            found = [line for line in list(self.log) if line["event"] == event]
            if len(found) >= count:
                return found[count - 1]
            if self.process.poll() is not None and not self._reader.is_alive():
                break
            time.sleep(0.01)
        msg = f"no {event!r} in the log: {self.log} {''.join(self.other)}"
        raise AssertionError(msg)

    def wait_until_ready(self) -> None:
        self.ready = self.wait_for("ready")

    @property
    def port(self) -> int:
        return int(self.ready["port"])

    @property
    def flight_port(self) -> int:
        return int(self.ready["flight_port"])

    @property
    def metrics_port(self) -> int:
        return int(self.ready["metrics_port"])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """End it as systemd does; its exit code."""
        self.signal(signal.SIGTERM)
        code = self.process.wait(_PATIENCE)
        self._reader.join()
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()

    def failed(self) -> str:
        """What it said when it did not start; it has to end with 2."""
        assert self.process.wait(_PATIENCE) == 2, (self.log, self.other)
        self._reader.join()
        return "".join(self.other)


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    key.chmod(0o600)
    return certificate, key
