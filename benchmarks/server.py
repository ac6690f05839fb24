"""The server under load: what a query costs over the wire, many connections for minutes, and kills.

    make bench-server         (which finds the server's tests, whose load this is)

Cost: one guarded count over ml-1m (20 films as columns, k = 10), asked again and again over PostgreSQL's protocol and
in the process, in turns. Load: 50 connections for $KGATHER_BENCH_SECONDS (300), good, refused and malformed statements
and bytes that are none, each as soon as the last one is answered. Kills: $KGATHER_KILLS (50) at random moments.
Needs real data under $KGATHER_DATA. Writes benchmarks/results/server.{md,json}.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import yaml
from guard import save, wide
from harness import Claim, Result, Timing
from kills import KEY, Killing
from load import Load, resident, settled
from server_process import PASSWORDS, Server, postgres

from kgather._guard.guard import Guard
from kgather._server import users

ROOT = Path(__file__).parent.parent
CONNECTIONS = 50
RUNS = 300
COUNT = "select count(*) as n from people where i0 >= 4 and i1 >= 3"
GOOD = (
    COUNT,
    "select count(*) as n, avg(age) as a from people where i2 <= 3",
    "select count(*) as n from people where i3 = 5 or i4 = 1",
    "select sum(age) as s from people where i5 is not null",
    "select i6, count(*) as n from people group by i6 order by i6",
)
REFUSED = {
    "select age from people": "42501",
    "select count(*) from people where i0 = 77": "KG001",
    "select count(*) from nothing": "42P01",
    "select count(*) frm people": "42601",
    "select max(age) from people": "42501",
}


def prepared(data: Path, folder: Path) -> None:
    """ml-1m as a database with policy and users."""
    save(wide(data, "ml-1m", 20), folder)
    policy = yaml.safe_load((folder / "guard.yml").read_text(encoding="utf-8"))
    policy |= {"limits": {"memory": "2GB", "time_ms": 60_000}, "principals": {name: {} for name in PASSWORDS}}
    # The same name as the files of the tests, so that one class starts both.
    (folder / "policy.yml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    for name in ("policy.yml", "people.duckdb"):
        (folder / name).chmod(0o600)
    for name, password in PASSWORDS.items():
        users.add(folder / "users.scram", name, password)
    limits = {"connections_per_principal": 2 * CONNECTIONS, "queries_per_principal": 2 * CONNECTIONS}
    (folder / "server.yml").write_text(yaml.safe_dump(limits), encoding="utf-8")


def cost(guard: Guard, server: Server) -> tuple[Timing, Timing]:
    """Seconds of one count over the wire and in the process, in turns."""
    ours, rival = [], []
    with postgres(server) as connection:
        for _ in range(RUNS):
            start = time.perf_counter()
            connection.execute(COUNT).fetchall()
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            guard.query(COUNT, principal="analyst")
            rival.append(time.perf_counter() - start)
    return Timing(tuple(ours)), Timing(tuple(rival))


def main() -> None:
    data = Path(os.environ.get("KGATHER_DATA", ROOT.parent / "shared" / "data"))
    if not (data / "ml-1m").is_dir():
        sys.exit(f"No ml-1m under {data}. Set KGATHER_DATA.")
    seconds = float(os.environ.get("KGATHER_BENCH_SECONDS", "300"))
    kills = int(os.environ.get("KGATHER_KILLS", "50"))
    result = Result("server")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared(data, folder)
        good = settled(folder / "policy.yml", GOOD, list(REFUSED), "analyst")
        guard = Guard.from_policy(folder / "policy.yml")
        server = Server(folder, "--config", folder / "server.yml", "--metrics-port", 0)
        try:
            server.wait_until_ready()
            under_cost(result, guard, server)
            under_load(result, server, Load(server.port, "analyst", PASSWORDS["analyst"], good, REFUSED), seconds)
        finally:
            server.kill()
    with tempfile.TemporaryDirectory() as name:
        under_kills(result, Path(name), kills)


def under_cost(result: Result, guard: Guard, server: Server) -> None:
    ours, rival = cost(guard, server)
    result.add(
        Claim(
            f"ml-1m: a guarded count, asked again, p50 of {RUNS}",
            f"{1000 * ours.median:.2f} ms over PostgreSQL's protocol",
            f"{1000 * rival.median:.2f} ms in the process",
            ours.median / rival.median,
            "at most 3 times",
            ours.median <= 3 * rival.median,
        )
    )


def under_load(result: Result, server: Server, load: Load, seconds: float) -> None:
    asyncio.run(load.run(CONNECTIONS, min(30.0, seconds / 3)))
    sizes: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(min(1.0, seconds / 30)):
            sizes.append(resident(server.process.pid))

    watching = threading.Thread(target=watch)
    watching.start()
    seen = asyncio.run(load.run(CONNECTIONS, seconds))
    done.set()
    watching.join()
    third = len(sizes) // 3
    first, last = statistics.median(sizes[:third]), statistics.median(sizes[-third:])
    time.sleep(2)
    left = _connections(server)
    errors = [line for line in server.log if line["level"] == "error"]
    alive = server.process.poll() is None
    counts = ", ".join(f"{count:,} {what}" for what, count in sorted(seen.counts.items()))
    waits = sorted(seen.seconds)
    result.add(
        Claim(
            f"{CONNECTIONS} connections for {seconds:.0f} s: wrong answers, crashes, connections left",
            f"{len(seen.wrong)} wrong, {len(errors)} errors in the log, {left:.0f} connections left",
            "none",
            1.0,
            "none of either",
            not seen.wrong and not errors and not left and alive,
            f"{counts}; p50 {1000 * waits[len(waits) // 2]:.0f} ms, p99 {1000 * waits[len(waits) * 99 // 100]:.0f} ms",
        )
    )
    for wrong in seen.wrong[:5]:
        print(wrong)
    result.add(
        Claim(
            "memory, the last third of that time against the first",
            f"{last:.0f} MB",
            f"{first:.0f} MB",
            last / first,
            "at most 1.1 times",
            last <= 1.1 * first,
        )
    )


def under_kills(result: Result, folder: Path, kills: int) -> None:
    os.environ["KGATHER_GUARD_KEY"] = KEY
    started: list[Server] = []

    def start(**options: object) -> Server:
        server = Server(**options)
        started.append(server)
        server.wait_until_ready()
        return server

    draw = random.Random(11)
    killing = Killing(folder / "server", start, folder / "undisturbed")
    forgotten = 0
    try:
        for _ in range(kills + 1):
            killing.round(draw.uniform(0.05, 1.5))
    except AssertionError as error:
        print(error)
        forgotten = 1
    finally:
        for server in started:
            server.kill()
    result.add(
        Claim(
            f"{kills} kills -9 under load: splits that were told and are not in the ledger",
            f"{forgotten} in {killing.told:,} answers and {len(started)} starts",
            "an undisturbed guard, asked the same",
            1.0,
            "none",
            not forgotten,
            "after each start the partitions are compared row by row",
        )
    )


def _connections(server: Server) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith("kgather_connections{")), 0.0)


if __name__ == "__main__":
    main()
