"""The partition: it gets finer only, and so do the clusters of a column."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgather._guard.atoms import count_units
from kgather._guard.partition import Column, Partition


def refine(
    partition: Partition, outcome: list[int], k: int, columns: dict[str, Column] | None = None, **more: Any
) -> Partition:
    return partition.refined(partition.spread(np.array(outcome, dtype=np.int32)), k, columns or {}, **more)


def whole(n: int) -> Partition:
    return Partition.whole(np.arange(n, dtype=np.int32))


def column(*values: float | None) -> Column:
    return Column(np.array([np.nan if value is None else value for value in values], dtype=np.float64))


def sets(label: np.ndarray) -> set[tuple[int, ...]]:
    """Which places have the same label."""
    return {tuple(np.flatnonzero(label == own).tolist()) for own in np.unique(label)}


def test_cuts_by_hand() -> None:
    start = whole(6)
    assert (start.n_atoms, start.names.tolist(), start.next_name) == (1, [0], 1)
    same = refine(start, [0, 0, 0, 0, 0, 1], 2)
    assert same is start
    one = refine(start, [0, 0, 0, 0, 1, 1], 2)
    assert one.atom.tolist() == [0, 0, 0, 0, 1, 1]
    assert (one.names.tolist(), one.next_name) == ([1, 2], 3)
    assert one.units().tolist() == [4, 2]
    two = refine(one, [0, 0, 1, 1, 0, 1], 2)
    # The atom that was not cut keeps its name; atoms are in the order of their names.
    assert two.atom.tolist() == [1, 1, 2, 2, 0, 0]
    assert (two.names.tolist(), two.next_name) == ([2, 3, 4], 5)


def test_clusters_by_hand() -> None:
    values = column(1, 2, 3, 4, None, 6, None, None)
    start = whole(8).with_column("x", values, 2)
    assert start.clusters["x"].tolist() == [1]
    # Atoms of 4, 2 and 2 rows with 4, 1 and 0 cells: the one cell goes with the four, and no cells are by themselves.
    one = refine(start, [0, 0, 0, 0, 1, 1, 2, 2], 2, {"x": values})
    assert sets(one.clusters["x"]) in ({(0, 1, 2)}, {(0, 1), (2,)})
    # The four are cut: two parts with two cells each, and the one stays with one of them.
    two = refine(one, [0, 0, 1, 1, 0, 0, 0, 0], 2, {"x": values})
    assert two.n_atoms == 4
    # Atoms 0 and 1 are those of two rows that stay; the first of them has the one cell.
    assert sets(two.clusters["x"][[0, 2, 3]]) in ({(0, 1), (2,)}, {(0, 2), (1,)})


def test_atoms_whose_cells_are_few_are_a_cluster_if_they_are_enough_together() -> None:
    values = column(1, 2, 3, None, 5, None, 7, None)
    start = whole(8).with_column("x", values, 2)
    cut = refine(start, [0, 0, 1, 1, 2, 2, 3, 3], 2, {"x": values})
    assert sets(cut.clusters["x"]) == {(0,), (1, 2, 3)}
    # A column that is asked for afterwards is clustered alike.
    later = refine(whole(8), [0, 0, 1, 1, 2, 2, 3, 3], 2).with_column("x", values, 2)
    assert sets(later.clusters["x"]) == {(0,), (1, 2, 3)}
    assert later.with_column("x", column(*[None] * 8), 2) is later


def test_a_column_of_few_cells_is_one_cluster() -> None:
    values = column(1, None, None, None)
    cut = refine(whole(4).with_column("x", values, 2), [0, 0, 1, 1], 2, {"x": values})
    assert sets(cut.clusters["x"]) == {(0, 1)}


def test_clusters_that_are_closed_stay_closed() -> None:
    values = column(*range(8))
    start = Partition(
        np.arange(8, dtype=np.int32), np.zeros(8, dtype=np.int32), np.array([4]), 5, {"x": np.array([-6])}
    )
    cut = refine(start, [0, 0, 0, 0, 1, 1, 1, 1], 2, {"x": values})
    assert cut.n_atoms == 2
    assert (cut.clusters["x"] < 0).all()


def test_diverse_values_are_kept() -> None:
    codes = np.array([0, 0, 0, 1, 0, 1], dtype=np.int32)
    outcome = [0, 0, 0, 1, 1, 1]
    assert refine(whole(6), outcome, 2).n_atoms == 2
    assert refine(whole(6), outcome, 2, diverse=[codes], l=2).n_atoms == 1
    assert refine(whole(6), [0, 1, 1, 0, 1, 1], 2, diverse=[codes], l=2).n_atoms == 2


@st.composite
def histories(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray], Column, int, int]:
    """Units of rows, outcomes one after the other, a column with gaps, k, and when the column is asked for first."""
    k = draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    unit = np.repeat(np.arange(draw(st.integers(k, 60))), 1)
    unit = np.sort(np.concatenate([unit, random.choice(unit, draw(st.integers(0, 30)))])).astype(np.int32)
    outcomes = [
        (random.random(len(unit)) < random.random()).astype(np.int32) * random.integers(1, 4)
        + random.integers(0, draw(st.integers(1, 3)), len(unit)).astype(np.int32)
        for _ in range(draw(st.integers(1, 8)))
    ]
    values = np.where(random.random(len(unit)) < draw(st.sampled_from([0.1, 0.4, 0.8, 1.0])), 1.0, np.nan)
    return unit, [o.astype(np.int32) for o in outcomes], Column(values), k, draw(st.integers(0, len(outcomes)))


@given(histories())
def test_it_only_gets_finer(history: tuple[np.ndarray, list[np.ndarray], Column, int, int]) -> None:
    unit, outcomes, values, k, when = history
    names: dict[int, frozenset[int]] = {}
    partition = Partition.whole(unit)
    for at, outcome in enumerate([*outcomes, outcomes[0]]):
        if at == when:
            partition = partition.with_column("x", values, k)
        before, known = partition, "x" in partition.clusters
        partition = partition.refined(partition.spread(outcome), k, {"x": values})
        again = before.refined(before.spread(outcome), k, {"x": values})
        assert (again.atom == partition.atom).all()
        assert (again.names == partition.names).all()
        assert (partition.order == np.argsort(partition.atom, kind="stable")).all()
        assert (np.diff(partition.names) > 0).all()
        # Every row is in one atom of k units, inside an old one.
        assert sorted(set(partition.atom.tolist())) == list(range(partition.n_atoms))
        assert partition.units().min() >= k
        assert len(set(zip(partition.atom.tolist(), before.atom.tolist(), strict=True))) == partition.n_atoms
        # A name stands for the same rows for ever.
        for own, name in enumerate(partition.names.tolist()):
            rows = frozenset(np.flatnonzero(partition.atom == own).tolist())
            assert names.setdefault(name, rows) == rows
            assert name < partition.next_name
        if known:
            _check_clusters(before, partition, values, k)


def _check_clusters(before: Partition, after: Partition, values: Column, k: int) -> None:
    new = np.unique(after.clusters["x"], return_inverse=True)[1].reshape(-1)
    old = np.unique(before.clusters["x"], return_inverse=True)[1].reshape(-1)
    row_new, row_old = new[after.atom], old[before.atom]
    enough = int(count_units(np.where(values.present, 0, -1), after.unit, 1)[0]) >= k
    cells = count_units(np.where(values.present, row_new, -1).astype(np.int64), after.unit, int(new.max()) + 1)
    assert ((cells == 0) | (cells >= k)).all() or not enough
    # Each cluster's cells lie in one old cluster.
    pairs = set(zip(row_new[values.present].tolist(), row_old[values.present].tolist(), strict=True))
    assert len(pairs) == len({place for place, _ in pairs})
