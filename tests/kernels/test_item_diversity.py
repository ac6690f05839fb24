"""(b, l)-diversity: small releases by hand, against brute force, by lot, on MovieLens, and bad input."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import matrix_of, movielens_100k

from kgather._errors import InputError
from kgather.udfs.diversity.item_diversity import added_cells, least_coverage
from kgather.udfs.gathering.bkg import gather
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.ratings.matrix import RatingMatrix

Cells = tuple[np.ndarray, np.ndarray]


def rated(*sets: tuple[int, ...], n_items: int) -> RatingMatrix:
    """One user for each set of items; rated 3."""
    users = [user for user, items in enumerate(sets) for _ in items]
    items = [item for items in sets for item in items]
    return matrix_of((users, items, [3.0] * len(items)), len(sets), n_items)


def cells_of(*groups: str) -> Cells:
    """Cells of groups given by the digits of their items, as "013"."""
    pairs = [(group, int(item)) for group, items in enumerate(groups) for item in items]
    return np.array([pair[0] for pair in pairs], dtype=np.int32), np.array([pair[1] for pair in pairs], dtype=np.int32)


def added(cells: Cells, n_groups: int, matrix: RatingMatrix, *, seed: int = 0, **options: object) -> list:
    groups, items = added_cells(cells, n_groups, matrix, random=np.random.default_rng(seed), **options)
    assert groups.dtype == items.dtype == np.int32
    return list(zip(groups.tolist(), items.tolist(), strict=True))


def coverage(cells: Cells, more: list, sets: list[tuple[int, ...]]) -> list[int]:
    """How many groups show each set."""
    shown: dict[int, set] = {}
    for group, item in [*zip(*(codes.tolist() for codes in cells), strict=True), *more]:
        shown.setdefault(group, set()).add(item)
    return [sum(set(one) <= items for items in shown.values()) for one in sets]


def sets_of(matrix: RatingMatrix, items: np.ndarray, b: int) -> list[tuple[int, ...]]:
    """Every item, and every set of 2 to b of them that some user rated."""
    sets = {(int(item),) for item in np.flatnonzero(items)}
    for user in range(matrix.n_users):
        own = [int(i) for i in matrix.items[matrix.indptr[user] : matrix.indptr[user + 1]] if items[i]]
        for size in range(2, b + 1):
            sets.update(combinations(own, size))
    return sorted(sets)


def test_forced_cells_by_hand() -> None:
    # item 0 is shown by all, 1 by one, 2 by none (nobody rated it), and there are but three groups
    matrix = rated((0, 1), (0,), n_items=3)
    cells = cells_of("01", "0", "0")
    assert added(cells, 3, matrix, b=1, l=3) == [(0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert added(cells, 3, matrix, b=1, l=3, items=np.array([True, True, False])) == [(1, 1), (2, 1)]
    assert added(cells, 3, matrix, b=1, l=1, items=np.array([True, True, False])) == []
    assert least_coverage(cells, 3, matrix, b=1) == 0
    assert least_coverage(cells, 3, matrix, np.array([True, True, False]), b=1) == 1


def test_a_pair_is_completed_where_one_item_is_missing() -> None:
    # the pair is shown by group 0; groups 1 to 3 miss item 1, groups 4 to 6 item 0, group 7 both
    matrix = rated((0, 1), n_items=2)
    cells = cells_of("01", "0", "0", "0", "1", "1", "1", "")
    found = Counter(tuple(added(cells, 8, matrix, b=2, l=2, seed=seed)) for seed in range(120))
    assert set(found) == {((group, int(group < 4)),) for group in range(1, 7)}
    assert min(found.values()) >= 8
    found = {tuple(added(cells, 8, matrix, b=2, l=4, seed=seed)) for seed in range(300)}
    assert found == {tuple((group, int(group < 4)) for group in three) for three in combinations(range(1, 7), 3)}
    # nobody rated both: enough that each is shown
    assert added(cells, 8, rated((0,), (1,), n_items=2), b=2, l=4) == []


def test_three_items_are_completed_where_one_item_is_missing() -> None:
    # each two of them are shown by two groups, all three by group 0
    matrix = rated((0, 1, 2), n_items=3)
    cells = cells_of("012", "01", "02", "12", "0", "")
    assert added(cells, 6, matrix, b=2, l=2) == []
    found = {tuple(added(cells, 6, matrix, b=3, l=2, seed=seed)) for seed in range(40)}
    assert found == {((1, 2),), ((2, 1),), ((3, 0),)}
    assert len(added(cells, 6, matrix, b=3, l=6)) == 8


def test_an_item_that_is_not_in_the_release_is_not_looked_at() -> None:
    matrix = rated((0, 1, 2), n_items=3)
    cells = cells_of("01", "01")
    only = np.array([True, True, False])
    for b in (1, 2, 3):
        assert added(cells, 2, matrix, items=only, b=b, l=2) == []
        assert least_coverage(cells, 2, matrix, only, b=b) == 2
    assert least_coverage(cells, 2, matrix, np.zeros(3, dtype=bool), b=3) == 2


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_promises_against_brute_force(data: st.DataObject) -> None:
    n_users, n_items = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 9))
    n_groups = data.draw(st.sampled_from([1, 2, 3, 5, 63, 64, 65, 130]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    taste = rng.random((n_users, n_items)) < data.draw(st.sampled_from([0.2, 0.6, 1.0]))
    taste[0, 0] = True
    matrix = matrix_of((*np.nonzero(taste), np.ones(taste.sum())), n_users, n_items)
    shown = rng.random((n_groups, n_items)) < data.draw(st.sampled_from([0.0, 0.05, 0.5, 0.95]))
    cells = np.nonzero(shown)
    if data.draw(st.booleans()):  # any order, some twice
        some = rng.integers(0, len(cells[0]), 2 * len(cells[0])) if len(cells[0]) else np.empty(0, dtype=int)
        cells = (cells[0][some], cells[1][some])
    items = None if data.draw(st.booleans()) else rng.random(n_items) < 0.7
    b, least = data.draw(st.integers(1, 3)), data.draw(st.integers(1, n_groups))
    sets = sets_of(matrix, np.ones(n_items, dtype=bool) if items is None else items, b)

    more = added(cells, n_groups, matrix, seed=5, items=items, b=b, l=least)
    assert more == sorted(set(more))
    before = set(zip(*(codes.tolist() for codes in cells), strict=True))
    assert not before & set(more)
    covered = coverage(cells, more, sets)
    assert min(covered, default=least) >= least
    was = coverage(cells, [], sets)
    if b == 1:  # no more than necessary
        assert covered == [max(old, least) for old in was]
    wanted = {item for one in sets for item in one}
    assert {item for _, item in more} <= wanted
    for now, expected in ((more, covered), ([], was)):
        full = tuple(np.append(codes, [cell[at] for cell in now]).astype(int) for at, codes in enumerate(cells))
        assert least_coverage(full, n_groups, matrix, items, b=b) == min(expected, default=n_groups)


@pytest.mark.parametrize("least", [3, 18], ids=["few wanted", "most wanted"])
def test_every_group_is_as_likely(least: int) -> None:
    # item i is shown by group 0 of 20: l - 1 of the other 19 are drawn for each of 4,000 items
    n_groups, n_items = 20, 4000
    matrix = rated((0,), n_items=n_items)
    cells = (np.zeros(n_items, dtype=int), np.arange(n_items))
    groups, _ = added_cells(cells, n_groups, matrix, b=1, l=least, random=np.random.default_rng(3))
    drawn = np.bincount(groups, minlength=n_groups)
    assert drawn[0] == 0
    assert drawn.sum() == n_items * (least - 1)
    share = (least - 1) / 19
    limit = 5 * np.sqrt(n_items * share * (1 - share))
    assert np.abs(drawn[1:] - n_items * share).max() < limit


def test_the_generator_decides_and_moves_on() -> None:
    matrix = rated((0, 1, 2), (3, 4), n_items=5)
    cells = cells_of("012", "34", *[""] * 30)
    for b in (1, 2, 3):
        assert added(cells, 32, matrix, b=b, l=4, seed=1) == added(cells, 32, matrix, b=b, l=4, seed=1)
        assert added(cells, 32, matrix, b=b, l=4, seed=1) != added(cells, 32, matrix, b=b, l=4, seed=2)
    random = np.random.default_rng(1)
    first = added_cells(cells, 32, matrix, b=1, l=4, random=random)
    assert not np.array_equal(first, added_cells(cells, 32, matrix, b=1, l=4, random=random))


def movielens(data_dir) -> tuple[Cells, int, RatingMatrix]:
    ratings, n, m = movielens_100k(data_dir)
    matrix = matrix_of(ratings, n, m)
    groups = gather(comparison_vectors(learn(matrix)), 10)
    owner = groups[np.repeat(np.arange(n), np.diff(matrix.indptr))].astype(np.int64)
    cells = np.unique(owner * m + matrix.items)
    return (cells // m, cells % m), int(groups.max()) + 1, matrix


def test_movielens(data_dir) -> None:
    cells, n_groups, matrix = movielens(data_dir)
    covered = np.bincount(cells[1], minlength=matrix.n_items)
    assert 140 <= (covered == 1).sum() <= 150
    for least, share in ((3, 0.13), (5, 0.21)):
        groups, items = added_cells(cells, n_groups, matrix, b=1, l=least, random=np.random.default_rng(0))
        assert len(np.unique(items)) / matrix.n_items == pytest.approx(share, abs=0.015)
        assert len(groups) == np.maximum(least - covered, 0).sum()
    some = np.arange(matrix.n_items) % 3 == 0  # a third of the items leaves a 27th of the sets to count
    for b, least, audited in ((2, 3, None), (3, 2, some)):
        assert least_coverage(cells, n_groups, matrix, audited, b=b) == 1
        more = added_cells(cells, n_groups, matrix, b=b, l=least, random=np.random.default_rng(0))
        full = tuple(np.concatenate(pair) for pair in zip(cells, more, strict=True))
        assert len(np.unique(full[0] * matrix.n_items + full[1])) == len(cells[0]) + len(more[0])
        assert least_coverage(full, n_groups, matrix, audited, b=b) == least


def test_thousands_of_groups() -> None:
    rng = np.random.default_rng(0)
    n_users, n_items, n_groups = 4000, 300, 3000
    taste = rng.random((n_users, n_items)) < rng.beta(0.3, 3, n_items)
    users, items = np.nonzero(taste)
    matrix = matrix_of((users, items, np.ones(len(users))), n_users, n_items)
    cell = np.unique((users % n_groups) * n_items + items)
    cells = (cell // n_items, cell % n_items)
    more = added_cells(cells, n_groups, matrix, b=2, l=3, random=rng)
    assert least_coverage(cells, n_groups, matrix, b=2) < 3
    full = tuple(np.concatenate(pair) for pair in zip(cells, more, strict=True))
    assert least_coverage(full, n_groups, matrix, b=2) == 3


def test_too_many_sets_are_refused_with_their_number() -> None:
    matrix = rated(tuple(range(100)), tuple(range(50, 90)), n_items=100)
    cells = cells_of("0", "1")
    options = {"b": 3, "l": 2, "random": np.random.default_rng(0)}
    sets = 161_700 + 9_880  # of 100 and of 40 items
    with pytest.raises(
        InputError, match=f"{sets} sets of items, more than {sets - 1}: choose a smaller b, fewer items"
    ):
        added_cells(cells, 2, matrix, max_sets=sets - 1, **options)
    assert len(added_cells(cells, 2, matrix, max_sets=sets, **options)[0]) == 198
    few = np.arange(100) < 60  # 60 of the first user's items, 10 of the second's
    with pytest.raises(InputError, match=f"{34_220 + 120} sets"):
        added_cells(cells, 2, matrix, few, max_sets=1000, **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"b": 0}, "b must be between 1 and 3, not 0"),
        ({"b": 4}, "b must be between 1 and 3, not 4"),
        ({"b": 1.5}, "b must be a whole number"),
        ({"l": 0}, "l must be at least 1"),
        ({"l": 3}, "l = 3 groups shall show every item, but there are only 2: choose a smaller l or k"),
        ({"l": "2"}, "l must be a whole number"),
        ({"n_groups": 0}, "number of groups must be at least 1"),
        ({"max_sets": 0}, "max_sets must be at least 1"),
        ({"random": 7}, "random must be a generator of numpy, not int"),
        ({"items": np.ones(2, dtype=bool)}, "true or false for each of 3 items"),
        ({"items": np.ones(3)}, "true or false for each of 3 items, not float64 3"),
        ({"cells": (np.array([0, 2]), np.array([0, 1]))}, "group codes of the cells must be within 0..1"),
        ({"cells": (np.array([0, 1]), np.array([0, 3]))}, "item codes of the cells must be within 0..2"),
        ({"cells": (np.array([0, 1]), np.array([-1, 0]))}, "item codes of the cells must be within 0..2"),
        ({"cells": (np.array([0, 1]), np.array([0]))}, "one item for each group"),
        ({"cells": (np.array([0.0]), np.array([0]))}, "must be a list of whole numbers"),
    ],
)
def test_refuses(options: dict, says: str) -> None:
    usual = {"cells": cells_of("01", "02"), "n_groups": 2, "b": 1, "l": 2, "random": np.random.default_rng(0)}
    with pytest.raises(InputError, match=says):
        added_cells(matrix=rated((0, 1), (0, 2), n_items=3), **{**usual, **options})
