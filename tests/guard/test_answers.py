"""What noise hangs on: the rows that are asked for, not how."""

import numpy as np

from kgather.guard.answers import _groups_alone


def _meaning(*outcome: int) -> bytes:
    return _groups_alone(np.array(outcome, dtype=np.int32)).tobytes()


def test_false_and_unknown_are_alike_not_asked_for() -> None:
    assert _meaning(0, 1, 2, 2) == _meaning(1, 0, 2, 2) == _meaning(0, 0, 2, 2)
    assert _meaning(0, 1, 2, 3, 4) == _meaning(1, 0, 2, 3, 4)


def test_names_of_groups_say_nothing() -> None:
    assert _meaning(3, 2, 0, 3) == _meaning(2, 3, 1, 2) == _meaning(7, 5, 0, 7)


def test_other_rows_or_other_groups_are_another_question() -> None:
    told = [_meaning(2, 2, 0), _meaning(2, 0, 0), _meaning(0, 2, 2), _meaning(2, 3, 0), _meaning(2, 3, 3)]
    assert len(set(told)) == len(told)
