"""Many connections at once: no wrong answer, no crash, no leaked connection, memory flat; races for one ledger."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import yaml
from flight_clients import Raw
from kills import charged, replayed
from load import Load, resident, settled
from server_process import PASSWORDS, Server, postgres, write_server_files
from test_serve import metric
from waiting import no_error, until

from kgather._guard.measured.ledger import Ledger

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


RACES = (
    "SELECT SUM(salary) AS v FROM ratings_wide WHERE joy_ride >= 4",
    "SELECT COUNT(*) AS v FROM ratings_wide WHERE joy_ride >= 2 AND pachinko >= 3",
    "SELECT AVG(age) AS v FROM ratings_wide WHERE egomaniac >= 4 OR warcross >= 4",
    "SELECT COUNT(*) AS v FROM ratings WHERE item_id = 2 AND rating >= 4",
)


def test_no_race_measures_twice(start: Callable[..., Server], tmp_path: Path) -> None:
    """Two servers over one ledger, two wires, two principals: each thing is measured and charged once, what is charged
    is in the audit log, and what was told follows from the ledger."""
    folder = write_server_files(tmp_path / "server")
    servers = [start(folder=folder), start(folder=folder)]
    barrier = threading.Barrier(8)
    answers: list[float] = []
    failed: list[Exception] = []

    def run(number: int) -> None:
        server, over_flight = servers[number // 2 % 2], number >= 4
        name = ("analyst", "other")[number % 2]
        try:
            raw = Raw(server.flight_port, name) if over_flight else None
            with postgres(server, name) as connection:
                barrier.wait(60)
                for sql in RACES if number % 3 else RACES[::-1]:
                    if raw is not None:
                        value = raw.get(raw.statement(sql).endpoints[0].ticket)["v"][0].as_py()
                    else:
                        value = connection.execute(sql).fetchall()[0][0]
                    answers.append(float(value))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(answers) == 8 * len(RACES)
    for server in servers:
        assert server.stop() == 0
    ledger = Ledger(folder / "ledger.duckdb")
    measured = ledger.measurements()
    assert len(measured) > 0
    assert len({(one.version, one.name, one.domains) for one in measured}) == len(measured)
    assert charged(folder) == {(one.number, one.name, one.rho) for one in measured}
    found = replayed(folder)
    assert len(found) == 8 * len(RACES)
    assert {again.result for again in found} == {"agrees"}, [(again.entry["text"], again.why) for again in found]
