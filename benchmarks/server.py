"""The server: how long a start takes, what a query costs over the wire, many connections for minutes, and kills.

    make bench-server                                  all parts
    make bench-server PARTS="start"                    some of: start cost load kills

make finds the server's tests, whose load this is. All but kills ask about ml-1m (20 films as columns, k = 10, mode
measured). Start: seconds until somebody can log in, on the clock and of all threads' work, with everything compiled
before. Cost: one guarded count, asked again and again over PostgreSQL's protocol and in the process, in turns. Load: 50
connections for $KGATHER_BENCH_SECONDS (300), good, refused and malformed statements and bytes that are none, each as
soon as the last one is answered. Kills: $KGATHER_KILLS (50) at random moments. Needs real data under $KGATHER_DATA.
Writes benchmarks/results/server_{part}.{md,json}.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from guard_people import raters
from guard_stored import store
from harness import Claim, Result, Timing
from kills import Killing, charged, replayed
from load import Load, resident, settled
from server_process import PASSWORDS, Server, postgres

from kgather._guard.guard import Guard
from kgather._server import users

ROOT = Path(__file__).parent.parent
PARTS = ("start", "cost", "load", "kills")
FILMS, RATINGS = 20, (1, 5)
K, EPSILON, DELTA = 10, 8.0, 1e-6
STARTS = 5
LONGEST_START = 3.0
"""Seconds that a start may take on a machine that does nothing else."""
CONNECTIONS = 50
RUNS = 300
COUNT = "select count(*) as n from people where f0 >= 4 and f1 >= 3"
GOOD = (
    COUNT,
    "select count(*) as n, avg(age) as a from people where f2 <= 3",
    "select count(*) as n from people where f3 = 5 or f4 = 1",
    "select sum(age) as s from people where f5 is not null",
    "select f6, count(*) as n from people group by f6 order by f6",
)
REFUSED = {
    "select age from people": "42501",
    "select count(*) from people where f0 = 77": "KG001",
    "select count(*) from nothing": "42P01",
    "select count(*) frm people": "42601",
    "select max(age) from people": "42501",
}


def prepared(data: Path, folder: Path) -> None:
    """ml-1m as a database with policy and users."""
    people = raters(data, "ml-1m", FILMS)
    store(folder, people)
    ages = people["age"]
    bounds = {name: list(RATINGS) for name in people if name != "age"} | {"age": [int(ages.min()), int(ages.max())]}
    told = {"privacy_unit": "user_id", "grain": "unit", "artifacts": [name for name in people if name != "age"]}
    policy = {
        "version": 1,
        "database": "people.duckdb",
        "k": K,
        "budget": {"epsilon": EPSILON, "delta": DELTA},
        "tables": {"people": told | {"measures": ["age"], "bounds": bounds}},
        "limits": {"memory": "2GB", "time_ms": 60_000},
        "principals": {name: {} for name in PASSWORDS},
    }
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
    wanted = sys.argv[1:] or PARTS
    if not set(wanted) <= set(PARTS):
        sys.exit(f"Parts are {', '.join(PARTS)}.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared(data, folder)
        if "start" in wanted:
            under_starts(Result("server_start"), folder)
        good = settled(folder / "policy.yml", GOOD, list(REFUSED), "analyst") if {"cost", "load"} & set(wanted) else {}
        if "cost" in wanted:
            guard = Guard.from_policy(folder / "policy.yml")
            with running(folder) as server:
                under_cost(Result("server_cost"), guard, server)
        if "load" in wanted:
            with running(folder) as server:
                load = Load(server.port, "analyst", PASSWORDS["analyst"], good, REFUSED)
                under_load(Result("server_load"), server, load, seconds)
    if "kills" in wanted:
        with tempfile.TemporaryDirectory() as name:
            under_kills(Result("server_kills"), Path(name), kills)


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server that takes logins. It may keep bytecode, as one that is installed does."""
    server = Server(folder, "--config", folder / "server.yml", "--metrics-port", 0, env={"PYTHONDONTWRITEBYTECODE": ""})
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.kill()


def under_starts(result: Result, folder: Path) -> None:
    with running(folder):
        pass  # the first compiles
    wall, work = [], []
    before = machine_load()
    for _ in range(STARTS):
        start = time.perf_counter()
        with running(folder) as server, postgres(server):
            wall.append(time.perf_counter() - start)
            work.append(cpu(server.process.pid))
    seconds, busy = Timing(tuple(wall)), Timing(tuple(work))
    result.add(
        Claim(
            "a start until somebody is logged in, with kernels and bytecode kept",
            str(seconds),
            f"{LONGEST_START:g} s",
            seconds.median / LONGEST_START,
            "at most 1, on a machine that does nothing else",
            seconds.median <= LONGEST_START,
            f"work of all threads: {busy}; {before}",
        )
    )


def machine_load() -> str:
    """What else the machine does."""
    return f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def cpu(pid: int) -> float:
    """Seconds of work that a process has done, its own and the kernel's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def under_cost(result: Result, guard: Guard, server: Server) -> None:
    before = machine_load()
    ours, rival = cost(guard, server)
    result.add(
        Claim(
            f"ml-1m: a guarded count, asked again, p50 of {RUNS}",
            f"{1000 * ours.median:.2f} ms over PostgreSQL's protocol",
            f"{1000 * rival.median:.2f} ms in the process",
            ours.median / rival.median,
            "at most 3 times",
            ours.median <= 3 * rival.median,
            before,
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
    started: list[Server] = []

    def start(**options: object) -> Server:
        server = Server(**options)
        started.append(server)
        server.wait_until_ready()
        return server

    draw = random.Random(11)
    killing = Killing(folder / "server", start)
    forgotten = "none"
    try:
        for _ in range(kills + 1):
            killing.round(draw.uniform(0.05, 1.5))
        # A busy machine answers little in a second.
        while len(killing.told) <= kills and len(started) < 2 * kills + 40:
            killing.round(draw.uniform(2.0, 4.0))
        different = [again.entry["text"] for again in replayed(killing.folder) if again.result != "agrees"]
        forgotten = f"{len(different)} answers do not follow from the ledger" if different else "none"
    except AssertionError as error:
        forgotten = str(error)
    finally:
        for server in started:
            server.kill()
    enough = len(killing.told) > kills and len(charged(killing.folder)) > 0
    result.add(
        Claim(
            f"{kills} kills -9 under load: what was told and does not follow from the ledger",
            f"{forgotten}; {len(killing.told):,} answers, {len(started)} starts",
            "none",
            1.0,
            "none, with more answers than kills",
            forgotten == "none" and enough,
            "after each start the ledger is compared with the one before and with the audit log",
        )
    )


def _connections(server: Server) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith("kgather_connections{")), 0.0)


if __name__ == "__main__":
    main()
