"""Asked again, by a guard that remembers nothing, everything is as it was."""

from pathlib import Path

from guard_files import write_files

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
