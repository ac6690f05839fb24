"""Recoding: losses of intervals, Mondrian, clustering, and merging until models are kept."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_data import check_growth
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs.recoding import cluster, lattice, mdav, mondrian
from kgather.udfs.recoding.loss import FORBIDDEN, ColumnLoss, interval_loss, losses
from kgather.udfs.recoding.models import Model, failing, merge_until_kept


def line(codes: int, *, nullable: bool = False, most: float = 1.0, weight: float = 1.0) -> ColumnLoss:
    ends = np.arange(codes) / max(codes - 1, 1)
    if nullable:
        ends = np.append(0.0, np.arange(codes - 1) / max(codes - 2, 1))
    return ColumnLoss(codes, low=ends, high=ends, nullable=nullable, most=most, weight=weight)


def tree(codes: int, width: int = 3, weight: float = 1.0) -> ColumnLoss:
    """Leaves in nodes of some, these again, up to one."""
    levels = [np.arange(codes)]
    while levels[-1].max() > 0:
        levels.append(levels[-1] // width)
    nodes = np.zeros((len(levels), codes), dtype=np.int32)
    costs: list[float] = []
    for level, of in enumerate(levels):
        nodes[level] = of + len(costs)
        costs += ((np.bincount(of) - 1) / max(codes - 1, 1)).tolist()
    return ColumnLoss(codes, nodes=nodes, costs=np.array(costs), weight=weight)


@pytest.mark.parametrize(
    "column",
    [
        line(7), line(7, nullable=True), line(9, most=0.3, weight=2.0), tree(10), tree(1), line(1),
        line(700), line(700, nullable=True, weight=3.0), line(700, most=0.4), tree(700), tree(1024, 2, weight=0.5),
    ],
)  # fmt: skip
def test_kernels_look_up_what_a_column_says(column: ColumnLoss) -> None:
    priced = losses([line(5), column])
    random = np.random.default_rng(0)
    low = random.integers(0, column.codes, 500)
    high = np.maximum(low, random.integers(0, column.codes, 500))
    wanted = column.of(low, high)
    for a, b, loss in zip(low, high, wanted, strict=True):
        found = interval_loss(*priced.parts, 1, a, b)
        if loss >= FORBIDDEN:
            assert found >= FORBIDDEN / 2
        else:
            assert found == pytest.approx(loss * column.weight, abs=1e-5)


def test_losses_by_hand() -> None:
    # Six leaves in two nodes of three.
    column = tree(6)
    assert column.of(np.array([0, 0, 0, 2]), np.array([0, 2, 3, 3])).tolist() == pytest.approx([0, 2 / 5, 1, 1])
    ages = ColumnLoss(3, low=np.array([0, 0.25, 0.5]), high=np.array([0.25, 0.5, 1.0]))
    assert ages.of(np.array([0, 0, 1]), np.array([0, 1, 2])).tolist() == pytest.approx([0.25, 0.5, 0.75])


def rows_of(groups: NDArray[np.integer], counts: NDArray[np.integer]) -> NDArray[np.float64]:
    return np.bincount(groups, weights=counts)


def summed(
    codes: NDArray[np.int32], group: NDArray[np.integer], rows: NDArray[np.integer], columns: Sequence[ColumnLoss]
) -> float:
    """The loss of classes, written down apart from the kernels."""
    total = 0.0
    for g in np.unique(group):
        inside = codes[group == g]
        low, high = inside.min(axis=0), inside.max(axis=0)
        each = sum(float(c.of(low[j : j + 1], high[j : j + 1])[0]) for j, c in enumerate(columns))
        total += each * rows[group == g].sum()
    return total


def table(m: int, seed: int, sizes: Sequence[int] = (50, 12, 3)) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    codes = np.unique(
        np.stack([np.minimum(random.geometric(3 / size, m), size) - 1 for size in sizes], axis=1).astype(np.int32),
        axis=0,
    )
    return codes, random.geometric(0.4, len(codes)).astype(np.int64)


COLUMNS = [line(50), tree(12), tree(3)]


@given(st.integers(1, 60), st.integers(0, 30), st.sampled_from(["mondrian", "relaxed", "mdav", "cluster"]))
def test_classes_have_k_rows_and_all_rows(k: int, seed: int, method: str) -> None:
    codes, counts = table(120, seed)
    if method == "mondrian":
        group, owner, rows = mondrian.gather(codes, counts, losses(COLUMNS), k), np.arange(len(codes)), counts
    elif method == "relaxed":
        owner, group, rows = mondrian.gather_relaxed(codes, counts, losses(COLUMNS), k)
    elif method == "mdav":
        owner, group, rows = mdav.gather(codes, counts, codes / 50, losses(COLUMNS), k, block=60)
    else:
        owner, group, rows = cluster.gather(codes, counts, losses(COLUMNS), k, seed=seed)
    assert rows_of(group, rows).min() >= k
    assert np.array_equal(rows_of(owner, rows), counts)
    assert set(group) == set(range(group.max() + 1))


@given(st.integers(1, 40), st.integers(0, 30))
def test_relaxed_classes_have_fewer_than_2k_rows_and_lose_no_more(k: int, seed: int) -> None:
    codes, counts = table(120, seed)
    strict = mondrian.gather(codes, counts, losses(COLUMNS), k)
    owner, group, rows = mondrian.gather_relaxed(codes, counts, losses(COLUMNS), k)
    assert summed(codes[owner], group, rows, COLUMNS) <= summed(codes, strict, counts, COLUMNS) + 1e-6
    for g in range(group.max() + 1):
        assert rows[group == g].sum() < 2 * k or len(set(owner[group == g])) == 1


def test_relaxed_cuts_equal_rows_by_hand() -> None:
    # Two rows of code 0 and seven of code 9, k = 3: strict Mondrian cannot cut, as two are too few.
    codes = np.array([[0, 0], [9, 0]], dtype=np.int32)
    columns = [line(50), tree(12)]
    assert mondrian.gather(codes, np.array([2, 7]), losses(columns), 3).tolist() == [0, 0]
    owner, group, rows = mondrian.gather_relaxed(codes, np.array([2, 7]), losses(columns), 3)
    found = sorted(zip(owner.tolist(), group.tolist(), rows.tolist(), strict=True))
    assert [(o, r) for o, _, r in found] in ([(0, 2), (1, 1), (1, 6)], [(0, 2), (1, 6), (1, 1)])


def test_mdav_by_hand() -> None:
    # Around 0, 10 and 40: the farthest row from the mean and those nearest to it are a class.
    codes = np.array([[0], [1], [10], [11], [40], [41]], dtype=np.int32)
    owner, group, rows = mdav.gather(codes, np.full(6, 1), codes / 50, losses([line(50)]), 2)
    assert rows.tolist() == [1] * 6
    classes = sorted(sorted(owner[group == g].tolist()) for g in range(group.max() + 1))
    assert classes == [[0, 1], [2, 3], [4, 5]]


def test_mdav_takes_heavy_combinations_apart() -> None:
    codes = np.array([[0], [49]], dtype=np.int32)
    owner, group, rows = mdav.gather(codes, np.array([1_000_000, 3]), codes / 50, losses([line(50)]), 5)
    assert np.bincount(owner, weights=rows).tolist() == [1_000_000, 3]
    assert np.bincount(group, weights=rows).min() >= 5
    assert rows.max() >= 1_000_000 - 10


def test_mondrian_cuts_the_widest_column_at_its_median() -> None:
    # By hand: the line is wider than the tree; its median leaves five rows on both sides.
    codes = np.array([[0, 0], [10, 0], [20, 1], [49, 1]], dtype=np.int32)
    columns = [line(50), tree(12)]
    group = mondrian.gather(codes, np.array([3, 2, 2, 3]), losses(columns), 5)
    assert group.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_clustering_loses_less_than_mondrian_and_rounds_lose_ever_less(seed: int) -> None:
    codes, counts = table(400, seed)
    by_cuts = summed(codes, mondrian.gather(codes, counts, losses(COLUMNS), 5), counts, COLUMNS)
    by_rounds = []
    for rounds in (0, 1, 3):
        owner, group, rows = cluster.gather(codes, counts, losses(COLUMNS), 5, rounds=rounds)
        by_rounds.append(summed(codes[owner], group, rows, COLUMNS))
    assert by_cuts > by_rounds[1]
    assert by_rounds[0] > by_rounds[1] >= by_rounds[2]


def test_clustering_is_the_same_for_any_threads_and_blocks_share_no_class() -> None:
    codes, counts = table(500, 2)
    one = cluster.gather(codes, counts, losses(COLUMNS), 4, block=60, threads=1)
    two = cluster.gather(codes, counts, losses(COLUMNS), 4, block=60, threads=2)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert rows_of(one[1], one[2]).min() >= 4


def test_boxes_are_clustered_as_boxes() -> None:
    low = np.array([[0], [1], [40], [41]], dtype=np.int32)
    high = np.array([[2], [3], [42], [43]], dtype=np.int32)
    owner, group, _ = cluster.gather(low, np.ones(4, np.int64), losses([line(50)]), 2, high=high)
    by_box = dict(zip(owner.tolist(), group.tolist(), strict=True))
    assert by_box[0] == by_box[1] != by_box[2] == by_box[3]


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
def test_degenerate_tables(method: str) -> None:
    def gather(codes: NDArray[np.int32], counts: NDArray[np.int64], k: int) -> NDArray[np.float64]:
        if method == "mondrian":
            return rows_of(mondrian.gather(codes, counts, losses([line(50)]), k), counts)
        _, group, rows = cluster.gather(codes, counts, losses([line(50)]), k)
        return rows_of(group, rows)

    one = np.zeros((1, 1), dtype=np.int32)
    assert gather(one, np.array([1_000_000]), 5).sum() == 1_000_000
    assert gather(one, np.array([5]), 5).tolist() == [5]
    far = np.array([[0], [1], [49]], dtype=np.int32)
    assert gather(far, np.array([4, 4, 1]), 4).min() >= 4
    with pytest.raises(InputError, match="too few"):
        gather(one, np.array([4]), 5)


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
@pytest.mark.parametrize("shape", ["different", "skewed", "lines"])
def test_time_grows_with_rows_not_with_their_square(method: str, shape: str) -> None:
    def work(n: int) -> None:
        random = np.random.default_rng(0)
        if shape == "different":
            codes = random.permutation(n)[:, None].astype(np.int32)
            columns = [line(n)]
        elif shape == "skewed":
            codes = np.unique(np.minimum(random.geometric(0.02, (n, 3)), 500).astype(np.int32) - 1, axis=0)
            columns = [tree(500)] * 3
        else:
            codes = np.stack([np.arange(n), np.zeros(n)], axis=1).astype(np.int32)
            columns = [line(n), tree(2)]
        counts = np.ones(len(codes), np.int64)
        if method == "mondrian":
            mondrian.gather(codes, counts, losses(columns), 5)
        else:
            cluster.gather(codes, counts, losses(columns), 5, rounds=1, block=1000)

    check_growth(work, 32_000 if method == "mondrian" else 8_000)


# Six values below three labels, these below two, these below one.
TREE = np.array([[0, 1, 2, 3, 4, 5], [6, 6, 7, 7, 8, 8], [9, 9, 9, 9, 10, 10], [11] * 6], dtype=np.int32)


def by_hand(counts: Sequence[int], model: Model, values: Sequence[int], whole: Sequence[int]) -> bool:
    share = np.array(counts) / sum(counts)
    if model.kind == "distinct":
        return len(counts) >= model.bound
    if model.kind == "entropy":
        return float(np.exp(-(share * np.log(share)).sum())) >= model.bound - 1e-9
    if model.kind == "recursive":
        ordered = sorted(counts, reverse=True)
        return ordered[0] < model.c * sum(ordered[int(model.bound) - 1 :]) - 1e-9
    if model.kind == "alpha":
        return max(share) <= model.bound + 1e-9
    own = np.zeros(len(whole))
    own[list(values)] = share
    gaps = own - np.array(whole) / sum(whole)
    if model.kind == "t_hierarchical":
        # On a tree all that passes an edge is paid for half a level.
        assert model.nodes is not None
        nodes = model.nodes[:, : len(whole)]
        edges = sum(abs(gaps[level == node].sum()) for level in nodes[:-1] for node in np.unique(level))
        return float(edges) / (2 * (len(nodes) - 1)) <= model.bound + 1e-9
    if model.kind == "t_equal":
        return float(np.maximum(gaps, 0).sum()) <= model.bound + 1e-9
    return float(np.abs(np.cumsum(gaps)).sum()) / max(len(whole) - 1, 1) <= model.bound + 1e-9


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=40),
    st.sampled_from(
        [Model(0, "distinct", 2), Model(0, "entropy", 1.7), Model(0, "recursive", 2, 1.5), Model(0, "alpha", 0.6),
         Model(0, "t_equal", 0.3), Model(0, "t_ordered", 0.2), Model(0, "t_hierarchical", 0.25, nodes=TREE)]
    ),
)  # fmt: skip
def test_models_are_measured_as_by_hand(rows: list[tuple[int, int, int]], model: Model) -> None:
    group = np.unique([row[0] for row in rows], return_inverse=True)[1].astype(np.int64)
    value = np.unique([row[1] for row in rows], return_inverse=True)[1].astype(np.int64)
    weight = np.array([row[2] for row in rows], dtype=np.int64)
    if model.nodes is not None:
        model = replace(model, nodes=np.ascontiguousarray(model.nodes[:, : value.max() + 1]))
    fails = failing(group, value[:, None], weight, [model])
    whole = np.bincount(value, weights=weight)
    for g in range(group.max() + 1):
        counts = np.bincount(value[group == g], weights=weight[group == g], minlength=len(whole))
        present = np.flatnonzero(counts)
        assert fails[g] != by_hand(counts[present].tolist(), model, present.tolist(), whole.tolist())


def test_failing_classes_are_merged_with_the_cheapest() -> None:
    # By hand: class 0 has one value; class 1 lies nearer to it than class 2.
    boxes = np.array([[0], [1], [10], [11], [40], [41]], dtype=np.int32)
    group = np.array([0, 0, 1, 1, 2, 2])
    values = np.array([0, 0, 0, 1, 0, 1])[:, None]
    merged = merge_until_kept(
        boxes, boxes, group, values, np.ones(6, np.int64), losses([line(50)]), [Model(0, "distinct", 2)], ["illness"]
    )
    assert merged.tolist() == [0, 0, 0, 0, 1, 1]


def test_a_model_that_all_rows_together_do_not_keep_is_refused() -> None:
    boxes = np.arange(4, dtype=np.int32)[:, None]
    with pytest.raises(InputError, match="'illness'"):
        merge_until_kept(
            boxes, boxes, np.arange(4), np.zeros((4, 1), np.int64), np.ones(4, np.int64), losses([line(50)]),
            [Model(0, "distinct", 2)], ["illness"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("codes", "counts", "told"),
    [
        (np.array([[50]]), np.array([5]), "none of their column's"),
        (np.array([[-1]]), np.array([5]), "none of their column's"),
        (np.array([[0.5]]), np.array([5]), "must be whole numbers"),
        (np.array([[1, 2]]), np.array([5]), "1 columns"),
        (np.array([[1]]), np.array([0]), "above 0"),
        (np.array([[1]]), np.array([5, 5]), "one for each"),
    ],
)
def test_what_makes_no_sense_is_refused(codes: NDArray[np.integer], counts: NDArray[np.integer], told: str) -> None:
    for gather in (mondrian.gather, cluster.gather):
        with pytest.raises(InputError, match=told):
            gather(codes, counts, losses([line(50)]), 2)
    with pytest.raises(InputError, match="no column"):
        losses([])


@given(st.integers(2, 30), st.integers(0, 20), st.integers(0, 40))
def test_a_lattice_finds_the_optimum(k: int, seed: int, most: int) -> None:
    """Against all combinations of levels, looked at one by one."""
    codes, counts = table(60, seed, sizes=(9, 6, 3))
    columns = [line(9), tree(6, 2), tree(3)]
    n, best = counts.sum(), np.inf
    for levels in itertools.product(*(range(len(column.levels())) for column in columns)):
        boxes = [column.levels()[level] for column, level in zip(columns, levels, strict=True)]
        shown = np.stack([first[codes[:, j]] for j, (first, _) in enumerate(boxes)], axis=1)
        group = np.unique(shown, axis=0, return_inverse=True)[1].ravel()
        small = rows_of(group, counts)[group] < k
        left = counts[small].sum()
        if left and not k <= left <= most:
            continue
        loss = sum(
            (counts * np.where(small, 1.0, column.of(first[codes[:, j]], last[codes[:, j]]))).sum()
            for j, (column, (first, last)) in enumerate(zip(columns, boxes, strict=True))
        )
        best = min(best, loss / n)
    if counts.sum() < k:
        return
    levels, group, left_out = lattice.search(codes, counts, columns, k, suppressed=most)
    found = sum(
        (counts * np.where(left_out, 1.0, column.of(*(each[codes[:, j]] for each in column.levels()[level])))).sum()
        for j, (column, level) in enumerate(zip(columns, levels, strict=True))
    )
    assert found / n == pytest.approx(best)
    assert rows_of(group, counts)[np.unique(group[~left_out])].min(initial=k) >= k


def test_too_large_a_lattice_is_refused() -> None:
    codes = np.zeros((5, 20), dtype=np.int32)
    with pytest.raises(InputError, match="combinations of levels"):
        lattice.search(codes, np.ones(5, np.int64), [tree(10)] * 20, 2)
