"""What a list of questions would cost, before any of them is asked."""

from pathlib import Path

import pytest
from worlds_of_people import charged, engine_of, guarded, policy_of_raters, raters, seeded

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.measured.workload import workload
from kgather._guard.statement import split

QUESTIONS = [
    "SELECT COUNT(*) FROM people WHERE f0 = 1",
    "SELECT f0, f1, COUNT(*) FROM people GROUP BY f0, f1",
    "SELECT COUNT(*) FROM people WHERE f0 >= 4",
    "SELECT f2, AVG(age) FROM people GROUP BY f2",
    "SELECT nothing FROM people",
]


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return guarded(tmp_path, {"people": raters(300, 3, 1)}, policy_of_raters(3), seeded(1))


def test_it_says_what_asking_costs(guard: Guard) -> None:
    found = workload(engine_of(guard), QUESTIONS)
    assert [at for at, _ in found.refused] == [5]
    assert found.known == 1
    assert charged(guard) == 0
    assert found.left == pytest.approx(engine_of(guard).prices.total)
    for question in QUESTIONS[:4]:
        guard.query(question)
    measurements = engine_of(guard).ledger.measurements()
    assert found.rho == pytest.approx(charged(guard))
    assert len(found.needed) == len(measurements)
    for one, taken in zip(found.needed, measurements, strict=True):
        assert one.rho == pytest.approx(taken.rho)
        if one.sd is not None:
            assert one.sd == pytest.approx(taken.sd, rel=0.01)
    assert workload(engine_of(guard), QUESTIONS).needed == ()


def test_the_lines(guard: Guard) -> None:
    told = guard.workload("; ".join(QUESTIONS))
    assert told[-1].startswith("Questions: 5. Measurements: 4, for rho 0.")
    assert told[-1].endswith("Questions that need nothing new: 1. Refused: 1.")
    assert any(line.startswith("question 5 is refused: There is no column 'nothing' here") for line in told)
    assert "standard error" in told[0]
    with pytest.raises(InputError, match="there is no statement in it"):
        guard.workload(" ; -- nothing\n")


def test_statements_are_told_apart() -> None:
    assert split("SELECT ';' AS a; -- b;\nSELECT 2;;") == ["SELECT ';' AS a", "-- b;\nSELECT 2"]
