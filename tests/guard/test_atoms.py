"""Atoms: pieces, cuts and marks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgather._guard import atoms

SEED = np.uint64(7)


def pieces_of(atom: list[int], outcome: list[int], unit: list[int]) -> atoms.Pieces:
    return atoms.cut_into_pieces(*(np.array(x, dtype=np.int32) for x in (atom, outcome, unit)))


def cut(atom: list[int], outcome: list[int], unit: list[int], k: int) -> list[int]:
    """The new atom of each row."""
    pieces = pieces_of(atom, outcome, unit)
    return atoms.split(pieces, np.array(unit, dtype=np.int32), max(atom) + 1, k)[pieces.of_row].tolist()


def test_pieces_by_hand() -> None:
    # Unit 1 has two rows, in two pieces of atom 0; unit 3 has two rows in one piece.
    pieces = pieces_of([0, 0, 0, 0, 1, 1], [0, 0, 2, 2, 1, 1], [0, 1, 1, 2, 3, 3])
    assert pieces.atom.tolist() == [0, 0, 1]
    assert pieces.outcome.tolist() == [0, 2, 1]
    assert pieces.rows.tolist() == [2, 2, 2]
    assert pieces.units.tolist() == [2, 2, 1]
    assert pieces.of_row.tolist() == [0, 0, 1, 1, 2, 2]


def test_pieces_are_the_same_where_they_are_too_many_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    atom, outcome = (random.integers(0, n, 500).astype(np.int32) for n in (9, 4))
    unit = np.sort(random.integers(0, 100, 500)).astype(np.int32)
    dense = atoms.cut_into_pieces(atom, outcome, unit)
    monkeypatch.setattr(atoms, "_DENSE", 0)
    sparse = atoms.cut_into_pieces(atom, outcome, unit)
    for name in ("atom", "outcome", "rows", "units", "of_row"):
        assert (getattr(dense, name) == getattr(sparse, name)).all()


def test_units_are_counted_once() -> None:
    part, unit = np.array([0, 1, 0, -1, 0], dtype=np.int64), np.array([4, 4, 4, 5, 6], dtype=np.int32)
    assert atoms.count_units(part, unit, 3).tolist() == [2, 1, 0]
    assert atoms.count_units(part[:0], unit[:0], 2).tolist() == [0, 0]


def test_cuts_by_hand() -> None:
    users = list(range(6))
    assert cut([0] * 6, [0, 0, 0, 1, 1, 1], users, 3) == [0, 0, 0, 1, 1, 1]
    # Two on one side are too few: nothing is cut.
    assert cut([0] * 6, [0, 0, 0, 0, 1, 1], users, 3) == [0] * 6
    # 3, 2 and 1: the small ones are three together.
    assert cut([0] * 6, [0, 0, 0, 1, 1, 2], users, 3) == [0, 0, 0, 1, 1, 1]
    # 4 and 2 and 3: the two stay with the largest.
    assert cut([0] * 9, [0, 0, 0, 0, 1, 1, 2, 2, 2], list(range(9)), 3) == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    # Only small pieces: none is cut off, though they are many.
    assert cut([0] * 6, [0, 0, 1, 1, 2, 2], users, 3) == [0] * 6
    # Rows of one unit are no units.
    assert cut([0] * 6, [0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 3, 3], 2) == [0] * 6
    # Small pieces that share their units are not more of them together.
    assert cut([0] * 7, [0, 0, 0, 1, 2, 1, 2], [0, 1, 2, 3, 3, 4, 4], 3) == [0] * 7


@st.composite
def cuts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Atoms of at least k units, outcomes, units, k."""
    k = draw(st.integers(1, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_atoms = draw(st.integers(1, 6))
    of_unit = np.repeat(np.arange(n_atoms), random.integers(k, 4 * k + 1, n_atoms))
    unit = np.repeat(np.arange(len(of_unit)), random.integers(1, 4, len(of_unit)))
    outcome = random.integers(0, draw(st.integers(1, 9)), len(unit))
    return of_unit[unit].astype(np.int32), outcome.astype(np.int32), unit.astype(np.int32), k


@given(cuts())
def test_new_atoms_have_k_units_and_lie_in_old_ones(case: tuple[np.ndarray, np.ndarray, np.ndarray, int]) -> None:
    atom, outcome, unit, k = case
    pieces = atoms.cut_into_pieces(atom, outcome, unit)
    n_atoms = int(atom.max()) + 1
    new = atoms.split(pieces, unit, n_atoms, k)
    assert (new == atoms.split(pieces, unit, n_atoms, k)).all()
    assert set(new.tolist()) == set(range(int(new.max()) + 1))
    row = new[pieces.of_row]
    for own in range(int(new.max()) + 1):
        assert len(set(unit[row == own].tolist())) >= k
        assert len(set(atom[row == own].tolist())) == 1
    # Cutting goes no further than pieces: rows of one piece stay together.
    assert all(len(set(row[pieces.of_row == piece].tolist())) == 1 for piece in range(len(pieces.atom)))


def spread_of(atom: list[int], outcome: list[int]) -> atoms.Spread:
    of, told = np.array(atom, dtype=np.int32), np.array(outcome, dtype=np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(of))])
    return atoms.spread(of, told, np.arange(len(of), dtype=np.int32), atoms.rows_by_atom(of, start), start)


def test_an_atom_counts_for_the_group_that_all_of_it_is_in() -> None:
    # False and unknown are alike not asked for; 2 and 3 are the first and the second group.
    told = spread_of([0, 0, 1, 1, 2, 2, 3], [0, 1, 2, 2, 3, 3, 1])
    assert not told.undecided
    assert told.group.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("outcome", [[0, 2], [1, 2], [2, 3]])
def test_an_atom_of_several_groups_is_undecided(outcome: list[int]) -> None:
    assert spread_of([0, 1, 1], [2, *outcome]).undecided


def test_marks_see_what_comes_goes_and_changes() -> None:
    part = np.array([0, 0, 1, 1], dtype=np.int32)
    values = np.array([1.0, 2.0, 3.0, np.nan])
    one = atoms.marks(part, values, 2)
    assert (one < -1).all()
    assert (atoms.marks(part, values[[1, 0, 2, 3]], 2) == one).all()
    for changed in ([1.0, 2.5, 3.0, np.nan], [1.0, np.nan, 3.0, np.nan]):
        other = atoms.marks(part, np.array(changed), 2)
        assert other[0] != one[0]
        assert other[1] == one[1]
    assert atoms.marks(part, np.array([1.0, 2.0, 3.0, 0.0]), 2)[1] != one[1]
    keys = atoms.mark_keys(SEED, np.arange(1000, dtype=np.int64))
    assert len(np.unique(keys)) == 1000
    assert (atoms.mark_keys(np.uint64(8), np.arange(1000, dtype=np.int64)) != keys).all()
