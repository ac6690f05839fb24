"""What noise hangs on: the rows that are asked for, not how."""

import numpy as np

from kgather._guard import atoms

KEYS = np.array([11, 22, 33, 44, 55], dtype=np.uint64)


def _sums(*outcome: int, keys: np.ndarray = KEYS, seed: int = 3) -> list[int]:
    told = np.array(outcome, dtype=np.int8)
    unit = np.arange(len(told), dtype=np.int32)
    groups = max(0, max(outcome) - 1)
    return sorted(atoms.describe(told, unit, keys[: len(told)], np.uint64(seed), groups)[0].tolist())


def test_false_and_unknown_are_alike_not_asked_for() -> None:
    assert _sums(0, 1, 2, 2) == _sums(1, 0, 2, 2) == _sums(0, 0, 2, 2)
    assert _sums(0, 1, 2, 3, 4) == _sums(1, 0, 2, 3, 4)


def test_names_of_groups_say_nothing() -> None:
    assert _sums(3, 2, 0, 3) == _sums(2, 3, 1, 2)


def test_other_rows_or_other_groups_are_another_question() -> None:
    told = [_sums(2, 2, 0), _sums(2, 0, 0), _sums(0, 2, 2), _sums(2, 3, 0), _sums(2, 3, 3)]
    assert len({tuple(sums) for sums in told}) == len(told)
    assert _sums(2, 2, seed=3) != _sums(2, 2, seed=4)


def test_rows_that_come_or_go_beside_what_is_asked_for_change_nothing() -> None:
    assert _sums(2, 2, 0) == _sums(2, 2, 0, 0, 1)
    # Rows are known by their keys, wherever they lie.
    assert _sums(2, 0, 2) == _sums(2, 2, 0, keys=KEYS[[0, 2, 1]])


def test_people_are_counted_once_in_each_group_and_in_all() -> None:
    outcome, unit = np.array([2, 3, 2, 0, 3, 1], dtype=np.int32), np.array([0, 0, 0, 1, 2, 3], dtype=np.int32)
    _, people = atoms.describe(outcome, unit, np.arange(6, dtype=np.uint64), np.uint64(1), 2)
    assert people.tolist() == [1, 2, 2]
