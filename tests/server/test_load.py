"""Many connections at once: no wrong answer, no crash, no leaked connection, memory flat; races for one ledger."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pytest
import yaml
from flight_clients import Raw
from guard_files import truth
from load import Load, resident, settled
from server_process import PASSWORDS, Server, postgres, write_server_files
from test_serve import metric
from waiting import no_error, until

from kgather._guard.ledger import Ledger

pytestmark = pytest.mark.long

GOOD = (
    "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= 3",
    "SELECT city, COUNT(*) AS n FROM ratings_wide GROUP BY city ORDER BY city",
    "SELECT COUNT(*) AS n FROM ratings WHERE item_id = 2 AND rating >= 4",
    "SELECT AVG(age) AS a FROM ratings_wide WHERE joy_ride <= 2",
    "SELECT item_id, title FROM items ORDER BY item_id",
)
REFUSED = {
    "SELECT salary FROM ratings_wide": "42501",
    "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 99": "KG001",
    "SELECT COUNT(*) FROM nothing": "42P01",
    "SELECT zip FROM users": "42501",
}


def test_thirty_connections(start: Callable[..., Server], tmp_path: Path) -> None:
    folder = write_server_files(tmp_path / "server")
    good = settled(folder / "policy.yml", GOOD, list(REFUSED), "analyst")
    config = folder / "server.yml"
    config.write_text(yaml.safe_dump({"connections_per_principal": 60, "queries_per_principal": 60}))
    server = start("--config", config, "--metrics-port", 0, folder=folder)
    load = Load(server.port, "analyst", PASSWORDS["analyst"], good, REFUSED)
    first = asyncio.run(load.run(30, times=12))
    before = resident(server.process.pid)
    second = asyncio.run(load.run(30, times=12))
    assert first.wrong + second.wrong == []
    assert len(second.seconds) > 200
    assert all(second.counts[what] for what in ("good", "refused", "garbage", "cancel", "again"))
    assert resident(server.process.pid) < before + 60
    until(lambda: metric(server, "kgather_connections{") == 0)
    assert [line for line in server.log if line["level"] == "error"] == []
    assert server.stop() == 0


def test_more_connections_than_allowed_are_turned_away(start: Callable[..., Server]) -> None:
    server = start("--max-connections", 3)
    kept = [postgres(server) for _ in range(3)]
    with pytest.raises(psycopg.OperationalError, match="connections"):
        postgres(server)
    kept.pop().close()
    until(lambda: no_error(lambda: postgres(server).close(), psycopg.OperationalError))
    for connection in kept:
        connection.close()


def differing_pairs(folder: Path) -> list[tuple[str, str]]:
    """Pairs of sums over sets of people that differ by fewer than k."""
    pairs = []
    for item, other, third in (("joy_ride", "pachinko", "geekerella"), ("egomaniac", "warcross", "pachinko")):
        for value in (1, 3, 5):
            narrow = f"FROM ratings_wide WHERE {item} >= 4"
            wide = f"{narrow} OR ({item} = 2 AND {other} = {value} AND {third} IS NULL)"
            more, less = (truth(folder, f"SELECT COUNT(*) {half}")[0][0] for half in (wide, narrow))
            if 0 < int(str(more)) - int(str(less)) < 5:
                pairs.append((f"SELECT SUM(salary) AS v {wide}", f"SELECT SUM(salary) AS v {narrow}"))
    return pairs


def test_no_race_gets_both_halves(start: Callable[..., Server], tmp_path: Path) -> None:
    """Two servers over one ledger, two wires, two principals, each connection with one half of every pair."""
    folder = write_server_files(tmp_path / "server")
    pairs = differing_pairs(folder)
    assert len(pairs) >= 3
    servers = [start(folder=folder), start(folder=folder)]
    barrier = threading.Barrier(8)
    answers: list[tuple[int, int, float]] = []
    failed: list[Exception] = []

    def run(number: int) -> None:
        half, server, over_flight = number % 2, servers[number // 2 % 2], number >= 4
        name = ("analyst", "other")[half]
        try:
            raw = Raw(server.flight_port, name) if over_flight else None
            with postgres(server, name) as connection:
                barrier.wait(60)
                for at, pair in enumerate(pairs if number % 3 else pairs[::-1]):
                    if raw is not None:
                        value = raw.get(raw.statement(pair[half]).endpoints[0].ticket)["v"][0].as_py()
                    else:
                        value = connection.execute(pair[half]).fetchall()[0][0]
                    answers.append((at if number % 3 else len(pairs) - 1 - at, half, float(value)))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(answers) == 8 * len(pairs)
    for number, pair in enumerate(pairs):
        exact = [float(str(truth(folder, half)[0][0])) for half in pair]
        told = [any(abs(v - exact[h]) < 0.5 for at, half, v in answers if (at, half) == (number, h)) for h in (0, 1)]
        assert told != [True, True], f"pair {number} tells of fewer than k people"
    for server in servers:
        assert server.stop() == 0
    kept = Ledger(folder / "ledger.duckdb").read(5)["unit"]
    assert np.unique(kept.atoms[kept.atoms >= 0], return_counts=True)[1].min() >= 5
    with duckdb.connect(folder / "ledger.duckdb", read_only=True) as con:
        decisions = [row[0] for row in con.execute("select distinct decision from splits order by 1").fetchall()]
    assert decisions == list(range(1, len(decisions) + 1)), "two decided at once"
