"""A made-up database with its policy, users, a certificate, and a server that runs in a thread of its own."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from guard_files import spend

from kgather._guard.guard import Guard
from kgather._server.postgres import PostgresServer
from kgather._server.service import Service
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry
from kgather._server.users import Users, Verifier

USER, PASSWORD = "ana", "correct horse"
OTHER, OTHER_PASSWORD = "bob", "battery staple"

POLICY = """
version: 1
database: people.duckdb
ledger: ledger.duckdb
k: 5
budget: {epsilon: 1.0e+6, delta: 1.0e-6}
tables:
  people:
    privacy_unit: person_id
    artifacts: [film_a, film_b, score, seen]
    measures: [salary, age]
    dimensions: [city]
    coarsened: {born: year}
    hidden: [zip]
  cities:
    public: true
principals:
  ana: {}
  bob: {}
"""

_SQL = """
create table people as
  select i as person_id, 1 + hash(i) % 5 as film_a, cast(1 + hash(i, 'b') % 5 as integer) as film_b,
    cast(hash(i, 's') % 100 as double) / 4 as score, hash(i, 'v') % 2 = 0 as seen,
    20000 + 100 * cast(hash(i, 'm') % 300 as integer) as salary, cast(18 + hash(i, 'a') % 60 as integer) as age,
    ['Graz', 'Lyon', 'Ghent'][1 + i % 3] as city, date '1950-01-01' + cast(hash(i, 'd') % 20000 as integer) as born,
    'Z' || i as zip
  from range(300) t(i);
update people set film_a = 77 where person_id = 7;
create table cities as
  select * from (values
    ('Graz', 291072, 127.5::decimal(8, 2), date '1128-01-01', true, timestamp '2024-05-06 07:08:09.5'),
    ('Lyon', 522250, 47.87, date '2000-01-01', false, timestamp '1999-12-31 23:59:59'),
    ('Ghent', 262219, null, null, null, null)) t(city, inhabitants, area, founded, capital, updated);
"""
ONE = "select count(*) as n from people where film_a = 77"
"""A question about one person."""


@cache
def _folder(of: str) -> TemporaryDirectory[str]:
    """A folder that goes with the process."""
    return TemporaryDirectory(prefix=f"kgather-{of}-")


@cache
def files() -> Path:
    """A folder with database and policy."""
    folder = Path(_folder("wire").name)
    with duckdb.connect(folder / "people.duckdb") as con:
        con.execute(_SQL)
    (folder / "policy.yml").write_text(POLICY, encoding="utf-8")
    return folder


@cache
def certificate() -> Path | None:
    """A certificate of this machine with its key, in one file; None where there is no openssl to make it."""
    folder = Path(_folder("tls").name)
    made = folder / "both.pem"
    try:
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
                *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-keyout", folder / "key.pem", "-out", folder / "cert.pem"),
            ],
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    made.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return made


@cache
def logins() -> Users:
    return Users({USER: Verifier.of(PASSWORD), OTHER: Verifier.of(OTHER_PASSWORD)})


@cache
def guard() -> Guard:
    return Guard.from_policy(files() / "policy.yml")


@cache
def spent() -> Guard:
    """A guard of the same people whose budget is spent; they were counted before."""
    folder = Path(_folder("spent").name)
    shutil.copy(files() / "people.duckdb", folder)
    policy = folder / "policy.yml"
    policy.write_text(POLICY, encoding="utf-8")
    spend(policy, "select count(*) as n from people", USER)
    return Guard.from_policy(policy)


@dataclass
class Running:
    """A server and the loop that it runs in."""

    server: PostgresServer
    service: Service
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread

    @property
    def port(self) -> int:
        return self.server.port

    def dsn(self, user: str = USER, password: str = PASSWORD, **more: str) -> str:
        parts = {"host": "127.0.0.1", "port": str(self.port), "user": user, "password": f"'{password}'", **more}
        return " ".join(f"{name}={value}" for name, value in {"dbname": "kgather", **parts}.items())

    def do(self, work: Coroutine[Any, Any, Any], seconds: float = 20) -> Any:
        """Have the server's loop do something."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)

    def stop(self, grace: float = 5) -> None:
        if self.loop.is_running():
            self.do(self.server.stop(grace))
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
        self.service.end()


def start(service: Service | None = None, tls: ssl.SSLContext | None = None, **settings: object) -> Running:
    """Start a server on a free port."""
    made = ServerSettings.model_validate({"port": 0, "authentication_timeout_s": 10, **settings})
    telemetry = Telemetry()
    service = service or Service(guard(), made, telemetry)
    server = PostgresServer(service, logins(), made, telemetry, tls)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = Running(server, service, loop, thread)
    running.do(server.start())
    return running
