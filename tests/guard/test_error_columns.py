"""Standard errors and kinds in columns beside the numbers that they are of."""

import json
from pathlib import Path

import numpy as np
import pytest
from guard_files import write_files
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.policy import load_policy

CITIES = "SELECT city, COUNT(*) AS n, AVG(age) AS mean FROM ratings_wide GROUP BY city"
BOTH = ("n", "n_error", "n_kind", "mean", "mean_error", "mean_kind")


def opened(folder: Path, **changes: object) -> Guard:
    """A guard of a moderate budget, with noise of a fixed seed."""
    random = np.random.default_rng(1)

    def noise(count: int, sd: float) -> NDArray[np.int64]:
        return np.rint(random.normal(size=count) * sd).astype(np.int64)

    path = write_files(folder, **{"mode": "measured", "budget": {"epsilon": 1000, "delta": 1.0e-6}, **changes})
    return Guard(load_policy(path), folder, noise=noise)


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    return opened(tmp_path_factory.mktemp("columns"), audit_log="audit.jsonl")


SHAPES = {
    CITIES: ("city", *BOTH),
    # Positions are those of the statement.
    "SELECT COUNT(*) AS n, city FROM ratings_wide GROUP BY city ORDER BY 2 DESC, 1": ("n", "n_error", "n_kind", "city"),
    "SELECT COUNT(*) AS n, AVG(age) AS mean FROM ratings_wide": BOTH,
    "SELECT city, (COUNT(*)) AS n FROM ratings_wide GROUP BY city HAVING COUNT(*) > 5": (
        *("city", "n", "n_error", "n_kind"),
    ),
    # Through queries that leave a number as it is.
    f"WITH g AS ({CITIES}) SELECT * FROM g WHERE n > 1 ORDER BY mean LIMIT 2": ("city", *BOTH),
    f"SELECT mean AS n, RANK() OVER (ORDER BY n) AS r FROM ({CITIES}) AS g": ("n", "n_error", "n_kind", "r"),
    "SELECT i.title, g.n FROM (SELECT item_id, COUNT(*) AS n FROM ratings GROUP BY item_id) AS g"
    " JOIN items AS i ON g.item_id = i.item_id": ("title", "n", "n_error", "n_kind"),
    "SELECT SUM(age) / COUNT(*) AS n, AVG(age) AS mean FROM ratings_wide": BOTH,
    "SELECT AVG(many) AS n FROM (SELECT user_id, COUNT(*) AS many FROM ratings GROUP BY user_id) AS o": (
        *("n", "n_error", "n_kind"),
    ),
    # What is made of numbers otherwise has no error that is known.
    "SELECT city, COUNT(*) * 2 AS n FROM ratings_wide GROUP BY city": ("city", "n"),
    f"SELECT SUM(n) AS n FROM ({CITIES}) AS g": ("n",),
    f"SELECT city, MAX(n) AS n FROM ({CITIES}) AS g GROUP BY city": ("city", "n"),
    f"SELECT DISTINCT n FROM ({CITIES}) AS g": ("n",),
    f"{CITIES} UNION ALL {CITIES}": ("city", "n", "mean"),
    "SELECT COUNT(*) AS n FROM items": ("n",),
    "SELECT 1 AS n": ("n",),
}


@pytest.mark.parametrize("sql", SHAPES)
def test_columns_stand_beside_the_aggregates(guard: Guard, sql: str) -> None:
    """Everything else is the answer without them."""
    found = guard.answer(sql, errors="columns").table
    assert tuple(found.column_names) == SHAPES[sql]
    plain = guard.query(sql)
    kept = [at for at, name in enumerate(found.column_names) if not name.endswith(("_error", "_kind"))]
    assert sorted(map(str, found.select(kept).to_pylist())) == sorted(map(str, plain.to_pylist()))


def test_they_are_the_errors_of_the_blocks(guard: Guard) -> None:
    answer = guard.answer(f"SELECT g.* FROM ({CITIES}) AS g ORDER BY n", errors="columns")
    (errors,) = answer.errors.values()
    expected = {row["key_1"]: row for row in errors.to_pylist()}
    rows = answer.table.to_pylist()
    assert len(rows) >= 3
    for row in rows:
        told = expected[row["city"]]
        assert (row["n_error"], row["n_kind"]) == (told["value_1_error"], told["value_1_kind"])
        assert (row["mean_error"], row["mean_kind"]) == (told["value_2_error"], told["value_2_kind"])
        assert row["n_error"] > 0
        assert row["n_kind"] == "measured"


def test_a_name_may_be_there_twice(guard: Guard) -> None:
    sql = "SELECT COUNT(*) AS n, AVG(age) AS n_error FROM ratings_wide"
    names = guard.answer(sql, errors="columns").table.column_names
    assert names == ["n", "n_error", "n_kind", "n_error", "n_error_error", "n_error_kind"]


def test_the_audit_log_knows_one_answer(guard: Guard) -> None:
    for errors in (False, True, "columns"):
        guard.answer(CITIES + " ORDER BY city", errors=errors)
    log = guard.policy.audit_log
    assert log is not None
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert len({line["answer"] for line in lines[-3:]}) == 1


def test_an_answer_says_how_it_came_about(guard: Guard) -> None:
    (note,) = guard.answer(CITIES).notes
    assert note.startswith("The numbers are measured; the largest standard error is ")
    assert len(guard.answer(f"{CITIES} UNION ALL {CITIES}").notes) == 2
    assert guard.answer("SELECT COUNT(*) FROM items").notes == ()


def test_other_modes_have_no_standard_errors(tmp_path: Path) -> None:
    guard = Guard.from_policy(write_files(tmp_path, mode="generalized"))
    with pytest.raises(InputError, match=r"Mode generalized has no standard errors to put into columns\. Ask with"):
        guard.answer("SELECT COUNT(*) FROM ratings_wide", errors="columns")
    answer = guard.answer("SELECT COUNT(*) FROM ratings_wide", errors=True)
    assert answer.notes == ("The numbers are sums over the classes of a release, counted as the policy's match says.",)
