"""Load on a server: good, refused and malformed statements over PostgreSQL's protocol, and bytes that are none."""

import asyncio
import math
import random
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

GARBAGE = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00\x00\x00\x08\x04\xd2\x16\x2e",  # wants encryption with GSSAPI, and leaves
    b"\x00\x00\x00\x04",
    b"\x7f\xff\xff\xff\x00\x03\x00\x00",
    b"\x00\x00\x00\x10\x00\x03\x00\x00user\x00a\x00\x00\x00",
    b"\x00\x00\x00\x10\x04\xd2\x16\x2f\x00\x00\x00\x01\x00\x00\x00\x02",  # cancels nothing
    random.Random(64).randbytes(64),
)

_MOST = 50
Rows = list[tuple[Any, ...]]


@dataclass
class Seen:
    """What clients saw. wrong: what they should not have."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Load:
    """good: statement -> its rows. refused: statement -> its SQLSTATE."""

    port: int
    user: str
    password: str
    good: Mapping[str, Rows]
    refused: Mapping[str, str]

    async def connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            password=self.password,
            database="kgather",
            ssl=False,
            timeout=60,
            command_timeout=120,
        )

    async def run(self, connections: int, seconds: float = math.inf, times: float = math.inf) -> Seen:
        """Ask as much as `connections` clients can, each when it has its answer, for some seconds or times."""
        seen = Seen()
        until = time.monotonic() + seconds
        await asyncio.gather(*(self._client(number, until, times, seen) for number in range(connections)))
        return seen

    async def _client(self, number: int, until: float, times: float, seen: Seen) -> None:
        draw = random.Random(number)
        connection = await self.connect()
        try:
            asked = 0
            while time.monotonic() < until and asked < times:
                asked += 1
                what = draw.choices(("good", "refused", "garbage", "cancel", "again"), (70, 20, 4, 3, 3))[0]
                seen.counts[what] += 1
                if what == "good":
                    await self._good(connection, draw, seen)
                elif what == "refused":
                    await self._refused(connection, draw, seen)
                elif what == "garbage":
                    await asyncio.to_thread(_garbage, self.port, draw.choice(GARBAGE))
                elif what == "cancel":
                    with suppress(TimeoutError, asyncpg.QueryCanceledError):
                        await connection.fetch(draw.choice(list(self.good)), timeout=0.005)
                    # asyncpg hangs up where a second time is over before the first query is known to be cancelled.
                    await connection.fetch("select 1")
                else:
                    await connection.close()
                    connection = await self.connect()
        except Exception as error:
            seen.wrong.append(f"{type(error).__name__}: {error}")
        finally:
            with suppress(Exception):
                await connection.close()

    async def _good(self, connection: asyncpg.Connection, draw: random.Random, seen: Seen) -> None:
        sql = draw.choice(list(self.good))
        start = time.perf_counter()
        rows = [tuple(row.values()) for row in await connection.fetch(sql)]
        seen.seconds.append(time.perf_counter() - start)
        if rows != self.good[sql]:
            seen.wrong.append(f"{sql}: {rows}, not {self.good[sql]}")

    async def _refused(self, connection: asyncpg.Connection, draw: random.Random, seen: Seen) -> None:
        sql, code = draw.choice(list(self.refused.items()))
        try:
            rows = await connection.fetch(sql)
            seen.wrong.append(f"{sql}: {rows}, not refused")
        except asyncpg.PostgresError as error:
            if error.sqlstate != code:
                seen.wrong.append(f"{sql}: {error.sqlstate} {error}, not {code}")


def _garbage(port: int, data: bytes) -> None:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.settimeout(0.2)
        client.sendall(data)
        client.recv(1000)


def settled(policy: Path, statements: Sequence[str], others: Sequence[str], principal: str) -> dict[str, Rows]:
    """The answers once nothing is measured any more, by a guard that remembers nothing, in whatever order. others: what
    is refused."""
    asked = [*others, *statements]
    for _ in range(_MOST):
        guard = Guard.from_policy(policy)
        before = guard.spending
        answers: dict[str, Rows] = {}
        for sql in asked:
            with suppress(Refused):
                answers[sql] = [tuple(row.values()) for row in guard.query(sql, principal=principal).to_pylist()]
        if guard.spending == before:
            return {sql: answers[sql] for sql in statements}
        asked.reverse()
    msg = f"after {_MOST} times each statement is still measured"
    raise AssertionError(msg)


def resident(pid: int) -> float:
    """Megabytes of memory that a process has in use."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
