"""What is kept of a partition, and what is still answered about when rows came, went or changed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgather._guard.history import Present, present
from kgather._guard.ledger import Kept
from kgather._guard.partition import Column

K = 3


def today(
    users: Sequence[int], kept: Kept | None, values: Sequence[float] | None = None, *, one_row: bool = True
) -> Present:
    """The partition of users (their keys are 10 times their numbers; each has the value of its number)."""
    users = sorted(users)
    column = Column(np.array(users if values is None else values, dtype=np.float64))
    unit = np.unique(users, return_inverse=True)[1].reshape(-1).astype(np.int32)
    keys = np.array([user * 10 for user in users], dtype=np.uint64)
    if not one_row:
        keys = keys + np.arange(len(users), dtype=np.uint64)
    columns = {"x": column} if kept is not None else {}
    return replace(present(keys, unit, kept, columns, K, one_row_a_unit=one_row), values={"x": column})


def cut(here: Present, outcome: Sequence[int]) -> Present:
    column = here.columns(here.values)
    partition = here.partition.with_column("x", column["x"], K)
    made = partition.refined(partition.spread(np.array(outcome, dtype=np.int32)), K, column)
    return replace(here, partition=made)


def atoms_of(here: Present) -> dict[int, int]:
    """The name of each user's atom."""
    names = here.partition.names[here.partition.atom].tolist()
    return dict(zip((here.keys[here.rows] // np.uint64(10)).astype(int).tolist(), names, strict=True))


@pytest.fixture
def kept() -> Kept:
    """Users 0 to 3 in atom 1, 4 to 9 in atom 2."""
    here = cut(today(range(10), None), [0] * 4 + [1] * 6)
    assert atoms_of(here) == {user: 1 + (user > 3) for user in range(10)}
    return here.kept(None)


def told(here: Present) -> dict[int, bool]:
    """Of each atom, whether x is told of."""
    return dict(zip(here.partition.names.tolist(), (here.partition.clusters["x"] >= 0).tolist(), strict=True))


def test_fewer_than_k_are_never_answered_about() -> None:
    assert atoms_of(today(range(2), None)) == {}
    assert atoms_of(today(range(3), None)) == dict.fromkeys(range(3), 0)
    assert atoms_of(today([], None)) == {}


def test_nothing_changed(kept: Kept) -> None:
    here = today(range(10), kept)
    assert atoms_of(here) == {user: 1 + (user > 3) for user in range(10)}
    assert told(here) == {1: True, 2: True}
    again = here.kept(kept)
    assert sorted(zip(again.keys.tolist(), again.atoms.tolist(), strict=True)) == sorted(
        zip(kept.keys.tolist(), kept.atoms.tolist(), strict=True)
    )
    assert (again.next_name, again.clusters) == (kept.next_name, kept.clusters)


def test_new_users_wait_until_there_are_k(kept: Kept) -> None:
    two = today(range(12), kept)
    assert atoms_of(two) == {user: 1 + (user > 3) for user in range(10)}
    three = today(range(13), two.kept(kept))
    assert atoms_of(three) == {user: 1 + (user > 3) + (user > 9) for user in range(13)}
    assert three.partition.next_name == 4
    assert told(three) == {1: True, 2: True, 3: True}


def test_new_users_with_few_cells_are_counted_only(kept: Kept) -> None:
    here = today(range(13), kept, [*range(12), np.nan])
    assert atoms_of(here)[12] == 3
    assert told(here) == {1: True, 2: True, 3: False}


def test_an_atom_that_lost_a_user_is_closed(kept: Kept) -> None:
    here = today(range(1, 10), kept)
    assert atoms_of(here) == dict.fromkeys(range(4, 10), 2)
    # Also when the user is back after that was recorded.
    back = today(range(10), here.kept(kept))
    assert atoms_of(back) == dict.fromkeys(range(4, 10), 2)
    # Not recorded is not said.
    assert atoms_of(today(range(10), kept)) == {user: 1 + (user > 3) for user in range(10)}


def test_an_atom_that_lost_k_of_many_goes_on_without_sums_of_its_cells(kept: Kept) -> None:
    here = today([*range(7)], kept)
    assert atoms_of(here) == {user: 1 + (user > 3) for user in range(7)}
    assert told(here) == {1: True, 2: False}
    # A cluster that is closed is not opened by what happens later, and one more that goes is one.
    after = here.kept(kept)
    assert told(today(range(7), after)) == {1: True, 2: False}
    assert atoms_of(today(range(6), after)) == dict.fromkeys(range(4), 1)
    # Of six, two is too few to go, and four leave too few.
    assert atoms_of(today(range(8), kept)) == dict.fromkeys(range(4), 1)
    assert atoms_of(today(range(6), kept)) == dict.fromkeys(range(4), 1)


def test_rows_of_a_long_table_are_closed_whoever_they_are_of() -> None:
    users = [0, 1, 2, 3, 4, 5, 6, 7]
    here = cut(today(users, None, one_row=False), [0] * 8)
    rest = today(users[:5], here.kept(None), one_row=False)
    assert len(rest.rows) == 0


@pytest.mark.parametrize("value", [77.0, np.nan])
def test_a_cluster_whose_cell_changed_is_closed(kept: Kept, value: float) -> None:
    values = [float(user) for user in range(10)]
    values[5] = value
    here = today(range(10), kept, values)
    # The atom is counted still.
    assert atoms_of(here) == {user: 1 + (user > 3) for user in range(10)}
    assert told(here) == {1: True, 2: False}
    after = here.kept(kept)
    assert told(today(range(10), after, values)) == {1: True, 2: False}
    # Nor does it help to change the value back, or to cut.
    assert told(today(range(10), after)) == {1: True, 2: False}
    finer = cut(today(range(10), after, values), [0] * 4 + [1, 1, 1, 2, 2, 2])
    assert list(told(finer).values()) == [True, False, False]


def test_marks_are_kept_of_atoms_that_were_cut(kept: Kept) -> None:
    finer = cut(today(range(10), kept), [0] * 4 + [1, 1, 1, 2, 2, 2])
    after = finer.kept(kept)
    assert set(kept.keys.tolist()) <= set(after.keys.tolist())
    assert set(told(today(range(10), after)).values()) == {True}
    values = [float(user) for user in range(10)]
    values[9] = 0.5
    assert sorted(told(today(range(10), after, values)).values()) == [False, True, True]


def test_a_missing_mark_closes(kept: Kept) -> None:
    rows = kept.atoms >= 0
    bare = Kept(kept.keys[rows], kept.atoms[rows], kept.next_name, kept.clusters)
    assert set(told(today(range(10), bare)).values()) == {False}


def test_keys_need_no_order(kept: Kept) -> None:
    order = np.random.default_rng(1).permutation(len(kept.keys))
    mixed = Kept(kept.keys[order], kept.atoms[order], kept.next_name, kept.clusters)
    assert atoms_of(today(range(11), mixed)) == atoms_of(today(range(11), kept))
    assert told(today(range(11), mixed)) == {1: True, 2: True}


@given(st.lists(st.tuples(st.sets(st.integers(0, 29), max_size=25), st.integers(0, 2**32)), max_size=8))
def test_atoms_of_all_days_have_k_users_and_grow_by_nobody(days: list[tuple[set[int], int]]) -> None:
    """Whoever comes and goes, a name stands for fewer and fewer users, and less by k or all at once."""
    kept: Kept | None = None
    here = today(range(12), None)
    said: dict[int, set[int]] = {}
    for users, seed in [(set(range(12)), 0), *days]:
        here = today(sorted(users), kept) if kept is not None else here
        random = np.random.default_rng(seed)
        here = cut(here, random.integers(0, 3, len(here.rows)).tolist()) if len(here.rows) else here
        if len(here.rows):
            assert here.partition.units().min() >= K
        names = atoms_of(here)
        for name in set(names.values()):
            own = {user for user, other in names.items() if other == name}
            before = said.setdefault(name, own)
            assert own <= before
            assert own == before or len(before - own) >= K
            said[name] = own
        kept = here.kept(kept)
        assert len(np.unique(kept.keys)) == len(kept.keys)
        assert here.partition.next_name > max(said, default=-1)
