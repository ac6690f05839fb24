"""Asked again, by a guard that remembers nothing, everything is as it was."""

from itertools import islice
from pathlib import Path

import pytest
from guard_files import atoms_of, statements, write_exact_files, write_files

from kgather._guard.refused import Refused
from kgather.guard import Guard

EXACT = (
    "SELECT education, COUNT(*) AS n, AVG(salary) AS a FROM ratings_wide GROUP BY education ORDER BY education",
    "SELECT warcross, COUNT(*) AS n FROM ratings_wide GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n, SUM(salary) AS s FROM ratings_wide WHERE warcross >= 3 AND joy_ride <= 2",
)
MEASURED = (
    "SELECT city, COUNT(*) AS n, AVG(salary) AS a FROM ratings_wide GROUP BY city ORDER BY city",
    "SELECT warcross, joy_ride, COUNT(*) AS n FROM ratings_wide GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT item_id, rating, COUNT(*) AS n FROM ratings GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT COUNT(*) AS n, SUM(salary) AS s FROM ratings_wide WHERE warcross >= 3 AND joy_ride <= 2",
)


@pytest.mark.parametrize("sql", EXACT)
def test_what_was_cut_is_cut(tmp_path: Path, sql: str) -> None:
    policy = write_exact_files(tmp_path)
    first = Guard.from_policy(policy).query(sql)
    again = Guard.from_policy(policy)
    before = atoms_of(again).ledger.stamp()
    assert again.query(sql).equals(first)
    assert atoms_of(again).ledger.stamp() == before, "it cut again"


@pytest.mark.parametrize("sql", MEASURED)
def test_what_was_measured_is_told_with_the_same_noise(tmp_path: Path, sql: str) -> None:
    policy = write_files(tmp_path, budget={"epsilon": 1000.0, "delta": 1.0e-6})
    first = Guard.from_policy(policy).query(sql)
    assert Guard.from_policy(policy).query(sql).equals(first)


def _told(guard: Guard, sql: str) -> object:
    try:
        return guard.query(sql).to_pylist()
    except Refused as refusal:
        return refusal.code


def test_a_guard_that_starts_again_answers_as_one_that_stays(tmp_path: Path) -> None:
    stays = Guard.from_policy(write_exact_files(tmp_path / "stays"))
    policy = write_exact_files(tmp_path / "starts")
    starts = Guard.from_policy(policy)
    for at, sql in enumerate(islice(statements(seed=1), 30)):
        if at % 3 == 0:
            starts = Guard.from_policy(policy)
        assert _told(stays, sql) == _told(starts, sql), sql
