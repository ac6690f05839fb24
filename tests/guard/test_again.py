"""Asked again, by a guard that remembers nothing, everything is as it was."""

from itertools import islice
from pathlib import Path

import pytest
from guard_files import statements, write_files

from kgather._guard.refused import Refused
from kgather.guard import Guard

STATEMENTS = (
    "SELECT city, COUNT(*) AS n, AVG(salary) AS a FROM ratings_wide GROUP BY city ORDER BY city",
    "SELECT warcross, joy_ride, COUNT(*) AS n FROM ratings_wide GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT item_id, rating, COUNT(*) AS n FROM ratings GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT COUNT(*) AS n, SUM(salary) AS s FROM ratings_wide WHERE warcross >= 3 AND joy_ride <= 2",
)


def test_the_answer_is_the_same(tmp_path: Path) -> None:
    for at, sql in enumerate(STATEMENTS * 3):
        policy = write_files(tmp_path / str(at))
        first = Guard.from_policy(policy).query(sql)
        again = Guard.from_policy(policy)
        before = again.ledger.stamp()
        assert again.query(sql).equals(first)
        assert again.ledger.stamp() == before, "it cut again"


def _told(guard: Guard, sql: str) -> object:
    try:
        return guard.query(sql).to_pylist()
    except Refused as refusal:
        return refusal.code


def test_a_guard_that_starts_again_answers_as_one_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGATHER_GUARD_KEY", "0123456789abcdef-kills")
    stays = Guard.from_policy(write_files(tmp_path / "stays"))
    policy = write_files(tmp_path / "starts")
    starts = Guard.from_policy(policy)
    for at, sql in enumerate(islice(statements(seed=1), 30)):
        if at % 3 == 0:
            starts = Guard.from_policy(policy)
        assert _told(stays, sql) == _told(starts, sql), sql
