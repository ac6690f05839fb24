"""Atoms: pieces, cuts, choices and marks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgather._guard import atoms

SEED = np.uint64(7)


def pieces_of(atom: list[int], outcome: list[int], unit: list[int]) -> atoms.Pieces:
    return atoms.cut_into_pieces(*(np.array(x, dtype=np.int32) for x in (atom, outcome, unit)))


def cut(atom: list[int], outcome: list[int], unit: list[int], k: int, sd: float = 0.0) -> list[int]:
    """The new atom of each row."""
    pieces = pieces_of(atom, outcome, unit)
    names = np.arange(max(atom) + 1, dtype=np.int64)
    return atoms.split(pieces, np.array(unit, dtype=np.int32), names, k, seed=SEED, sd=sd)[pieces.of_row].tolist()


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


def test_thresholds_are_k_or_more_and_hang_on_the_atom() -> None:
    names = np.arange(2000, dtype=np.int64)
    least = atoms._thresholds(names, 5, SEED, 1.0)
    assert least.min() == 5
    # |N(0, 1)| rounds to 0 with 0.383, to 1 with 0.484.
    assert np.mean(least == 5) == pytest.approx(0.383, abs=0.04)
    assert np.mean(least == 6) == pytest.approx(0.484, abs=0.04)
    assert (atoms._thresholds(names, 5, SEED, 1.0) == least).all()
    assert (atoms._thresholds(names, 5, np.uint64(8), 1.0) != least).any()
    assert (atoms._thresholds(names, 5, SEED, 0.0) == 5).all()


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


@given(cuts(), st.sampled_from([0.0, 1.0, 3.0]), st.integers(0, 2**64 - 1))
def test_new_atoms_have_k_units_and_lie_in_old_ones(
    case: tuple[np.ndarray, np.ndarray, np.ndarray, int], sd: float, seed: int
) -> None:
    atom, outcome, unit, k = case
    pieces = atoms.cut_into_pieces(atom, outcome, unit)
    names = np.arange(int(atom.max()) + 1, dtype=np.int64)
    new = atoms.split(pieces, unit, names, k, seed=np.uint64(seed), sd=sd)
    assert (new == atoms.split(pieces, unit, names, k, seed=np.uint64(seed), sd=sd)).all()
    assert set(new.tolist()) == set(range(int(new.max()) + 1))
    row = new[pieces.of_row]
    for own in range(int(new.max()) + 1):
        assert len(set(unit[row == own].tolist())) >= k
        assert len(set(atom[row == own].tolist())) == 1
    # Cutting goes no further than pieces: rows of one piece stay together.
    assert all(len(set(row[pieces.of_row == piece].tolist())) == 1 for piece in range(len(pieces.atom)))


def choose(sizes: list[int], hits: list[int], target: float, sd: float = 0.0) -> list[bool]:
    names = np.arange(len(sizes), dtype=np.int64)
    return atoms.choose(np.array(sizes), np.array(hits), names, target, SEED, sd).tolist()


def test_choices_by_hand() -> None:
    assert choose([10, 10, 10], [9, 1, 5], 14.0) == [True, False, False]
    # As near with it as without: it is taken.
    assert choose([10, 10, 10], [9, 1, 5], 15.0) == [True, False, True]
    assert choose([10, 10, 10], [9, 1, 5], 16.0) == [True, False, True]
    assert choose([10], [4], 4.0) == [False]
    assert choose([10], [6], 6.0) == [True]
    # By shares 10 + 6; an exchange brings the sum nearer to 13: 10 + 3.
    assert sum(size for size, own in zip([10, 6, 3], choose([10, 6, 3], [9, 4, 1], 13.0), strict=True) if own) == 13
    assert choose([], [], 3.0) == []


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=40), st.integers(0, 99))
def test_what_is_chosen_adds_up_about_to_the_target(atoms_: list[tuple[int, int]], seed: int) -> None:
    sizes = np.array([size for size, _ in atoms_])
    hits = np.array([min(size, own) for size, own in atoms_])
    names = np.arange(len(sizes), dtype=np.int64)
    target = float(hits.sum())
    chosen = atoms.choose(sizes, hits, names, target, np.uint64(seed), 1.0)
    assert abs(sizes[chosen].sum() - target) <= max(sizes) / 2 + 1e-9
    assert (chosen == atoms.choose(sizes, hits, names, target, np.uint64(seed), 1.0)).all()


def test_assignment_by_hand() -> None:
    # Atom 0 is all group 1, atom 1 is mixed: 3 of 4 rows group 2; atom 2 is not asked for.
    pieces = pieces_of([0, 0, 1, 1, 1, 1, 2], [1, 1, 2, 2, 2, 0, 0], list(range(7)))
    assert atoms.assign(pieces, np.arange(3), seed=SEED, sd=0.0).tolist() == [1, 2, 0]
    # A mixed atom counts for one group only: the one with more rows in mixed atoms comes first.
    pieces = pieces_of([0] * 5, [1, 1, 2, 2, 2], list(range(5)))
    assert atoms.assign(pieces, np.arange(1), seed=SEED, sd=0.0).tolist() == [2]


@given(cuts(), st.integers(0, 2**64 - 1))
def test_atoms_count_for_an_outcome_they_have_and_pure_ones_for_their_own(
    case: tuple[np.ndarray, np.ndarray, np.ndarray, int], seed: int
) -> None:
    atom, outcome, unit, _ = case
    pieces = atoms.cut_into_pieces(atom, outcome, unit)
    names = np.arange(int(atom.max()) + 1, dtype=np.int64)
    found = atoms.assign(pieces, names, seed=np.uint64(seed), sd=1.0)
    assert (found == atoms.assign(pieces, names, seed=np.uint64(seed), sd=1.0)).all()
    for own, got in enumerate(found.tolist()):
        had = set(outcome[atom == own].tolist())
        assert got in had or got == 0
        assert len(had) > 1 or {got} == had


def test_noise_is_normal_and_sticky() -> None:
    drawn = np.array([atoms.noisy_total(0, seed=np.uint64(seed)) for seed in range(4000)])
    assert drawn.mean() == pytest.approx(0.0, abs=0.06)
    assert drawn.std() == pytest.approx(1.0, abs=0.05)
    assert atoms.noisy_total(9, seed=SEED) == atoms.noisy_total(9, seed=SEED)
    assert atoms.noisy_total(9, seed=SEED, sd=0.0) == 9


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
