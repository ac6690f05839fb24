"""Attacks that start from items of few raters: columns, one rare item, changes between two releases, far groups."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from kgather._attacks import farthest
from kgather._attacks.attacked import Attacked
from kgather._attacks.changes import changes
from kgather._attacks.columns import columns
from kgather._attacks.intersection import Second
from kgather._attacks.posterior import Posterior
from kgather._attacks.rare_item import rare_item
from kgather._attacks.runner import quick, run
from kgather._evaluation.candidates import Candidates, ShownCells, ShownVectors
from kgather._evaluation.evidence import Evidence, Scale
from kgather.udfs.ratings.matrix import RatingMatrix

GROUPS, SIZE, POPULAR, OWN = 20, 5, 30, 4
USERS = GROUPS * SIZE


def ratings(seed: int = 0) -> RatingMatrix:
    """Everybody rates popular items, and four items that nobody else rates."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(USERS):
        popular = np.sort(rng.choice(POPULAR, 15, replace=False))
        rows.append(np.concatenate([popular, POPULAR + user * OWN + np.arange(OWN)]))
    items = np.concatenate(rows).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    values = np.random.default_rng(seed + 1).integers(1, 6, len(items)).astype(np.float32)
    return RatingMatrix(USERS, POPULAR + USERS * OWN, indptr, items, values)


def release(*, own_vectors: bool, cells: bool = False, seed: int = 0) -> Evidence:
    """A low-rank release in which an item of one rater points where its rater is, or anywhere."""
    original = ratings(seed)
    rng = np.random.default_rng(seed + 2)
    groups = np.repeat(np.arange(GROUPS), SIZE).astype(np.int32)
    places = rng.normal(size=(GROUPS, 3))
    people = places[groups] + 0.1 * rng.normal(size=(USERS, 3))
    signs = rng.choice([-0.05, 0.05], USERS * OWN) * rng.uniform(0.5, 1, USERS * OWN)
    rare = people[np.repeat(np.arange(USERS), OWN)] * signs[:, None]
    if not own_vectors:
        rare = 0.05 * rng.normal(size=rare.shape)
    item_factors = np.concatenate([rng.normal(size=(POPULAR, 3)) * 0.3, rare]).astype(np.float32)
    levels = np.full(len(item_factors), 3, dtype=np.float32)
    sizes = np.full(GROUPS, SIZE, dtype=np.int64)
    shown: Candidates = ShownVectors(
        sizes, np.zeros(GROUPS, dtype=np.float32), places.astype(np.float32), levels, item_factors, (-100.0, 100.0)
    )
    if cells:
        low = shown.columns(np.arange(len(levels)))[0]
        items, rows = np.nonzero(np.ones_like(low))
        shown = ShownCells.from_cells(sizes, len(levels), rows, items, low[items, rows], low[items, rows])
    return Evidence(
        original=original, shown=shown, truth=groups, groups=groups, shown_items=np.ones(len(levels), dtype=bool),
        items=pa.array(range(len(levels))), scale=Scale(1.0, 5.0, 1.0),
        parameters={"homogenize": "predicted", "rank": 3, "k": SIZE}, group_ids=np.arange(GROUPS),
        user_ids=pa.array(range(USERS)),
    )  # fmt: skip


@pytest.mark.parametrize("cells", [False, True])
def test_items_of_one_person_are_found_by_their_direction(cells: bool) -> None:
    found = columns(Attacked.of(release(own_vectors=True, cells=cells)))
    assert found.targets == USERS * OWN
    # In cells, where items of which nothing was learnt point has to be guessed.
    assert found.details["linked"] > (0.75 if cells else 0.95)
    assert found.details["linked_by_chance"] == pytest.approx(3 / 399)
    assert found.details["equal"] == 0


def test_directions_drawn_at_random_tell_nothing() -> None:
    found = columns(Attacked.of(release(own_vectors=False)))
    assert found.matched is not None
    assert found.matched.low <= found.details["linked_by_chance"] + 0.005


@pytest.mark.parametrize("cells", [False, True])
def test_equal_columns_tell_raters_where_each_has_a_vector_of_its_own(cells: bool) -> None:
    leaking = release(own_vectors=True, cells=False)
    assert isinstance(leaking.shown, ShownVectors)
    factors = leaking.shown.item_factors.copy()
    factors[POPULAR:] = np.repeat(np.abs(factors[POPULAR::OWN]), OWN, axis=0)  # one person's items are all alike
    shown: Candidates = dataclasses.replace(leaking.shown, item_factors=factors)
    if cells:
        low = shown.columns(np.arange(shown.n_items))[0]
        items, rows = np.nonzero(np.ones_like(low))
        shown = ShownCells.from_cells(leaking.shown.sizes, len(low), rows, items, low[items, rows], low[items, rows])
    found = columns(Attacked.of(dataclasses.replace(leaking, shown=shown)))
    assert found.details["equal"] == found.details["telling"] == USERS * (OWN - 1)
    assert found.details["telling_by_chance"] < 5


def test_equal_columns_of_a_shared_vector_tell_nothing() -> None:
    shared = release(own_vectors=True)
    assert isinstance(shared.shown, ShownVectors)
    factors = shared.shown.item_factors.copy()
    factors[POPULAR:] = 0.0
    found = columns(
        Attacked.of(dataclasses.replace(shared, shown=dataclasses.replace(shared.shown, item_factors=factors)))
    )
    assert found.details["equal"] == USERS * OWN - 1
    # Neighbours by item code are one person's here, as codes follow people: that is the frame's, not the columns'.
    assert found.details["linked"] == pytest.approx(found.details["linked_by_chance"])


@pytest.mark.parametrize("known", [0, 4])
def test_a_rare_item_points_to_its_raters_group(known: int) -> None:
    attacked = Attacked.of(release(own_vectors=True))
    [found] = rare_item(attacked, Posterior(attacked), known=known, seed=1)
    assert found.group is not None
    assert found.group.value > 0.45
    assert found.user is not None
    assert found.user.value == pytest.approx(found.group.value / SIZE)
    assert found.details["stranger"] < 0.2
    assert found.details["times_stranger"] > 3
    assert found.knowledge == "one item of 1 rater" + (f", {known} exact ratings" if known else "")


def test_a_rare_item_without_a_vector_of_its_own_points_nowhere() -> None:
    attacked = Attacked.of(release(own_vectors=False))
    [found] = rare_item(attacked, Posterior(attacked), seed=1)
    assert found.group is not None
    assert found.group.low <= max(found.details["stranger"], 1 / GROUPS)


def test_releases_without_items_of_few_raters_have_no_such_result() -> None:
    original = RatingMatrix(
        4, 2, np.arange(0, 9, 2), np.tile(np.arange(2, dtype=np.int32), 4), np.arange(8, dtype=np.float32) % 5 + 1
    )
    groups = np.array([0, 0, 1, 1], dtype=np.int32)
    shown = ShownCells.from_cells(
        np.array([2, 2]), 2, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.arange(4.0), np.arange(4.0)
    )
    attacked = Attacked.of(
        Evidence(
            original=original, shown=shown, truth=groups, groups=groups, shown_items=np.ones(2, dtype=bool),
            items=pa.array(range(2)), scale=Scale(1.0, 5.0, 1.0), parameters={"k": 2}, group_ids=np.arange(2),
        )
    )  # fmt: skip
    assert rare_item(attacked, Posterior(attacked)) == []
    assert columns(attacked).targets == 0


def moved(first: Evidence, user: int, amount: float) -> Evidence:
    """The same release without a user, whose items' values are lower by `amount` in the direction of the ratings."""
    own = slice(first.original.indptr[user], first.original.indptr[user + 1])
    kept = np.ones(first.original.nnz, dtype=bool)
    kept[own] = False
    lengths = np.diff(first.original.indptr)
    lengths[user] = 0
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    items, values = first.original.items, first.original.values
    without = RatingMatrix(USERS, first.original.n_items, indptr, items[kept], values[kept])
    assert isinstance(first.shown, ShownVectors)
    level = first.shown.item_levels + np.random.default_rng(9).normal(size=len(first.shown.item_levels)) * 1e-3
    level[items[own]] -= amount * np.sign(values[own] - values[own].mean())
    truth = first.truth.copy()
    truth[user] = -1
    shown = dataclasses.replace(first.shown, item_levels=level.astype(np.float32))
    return dataclasses.replace(first, original=without, shown=shown, truth=truth, groups=truth)


def both(amount: float) -> tuple[Attacked, Second]:
    whole = release(own_vectors=False)
    less = Attacked.of(moved(whole, 17, amount))
    more = Attacked.of(whole)
    ids = pa.array(range(USERS))
    return less, Second.of(less, more, ids, ids)


def test_what_one_person_more_rated_is_seen_in_the_difference_of_two_releases() -> None:
    found = changes(*both(0.05)).details
    assert found["changed"] == pytest.approx(19 / (POPULAR + USERS * OWN))
    assert found["changed_auc"] == 1.0
    assert found["sign_auc"] == 1.0


def test_what_did_not_move_is_not_seen() -> None:
    found = changes(*both(0.0)).details
    # One person's items are mostly popular, which the release does not say.
    assert found["changed_auc"] == pytest.approx(found["changed_by_raters"], abs=0.06)
    assert 0.2 < found["sign_auc"] < 0.8


def test_two_equal_releases_have_no_changes() -> None:
    whole = Attacked.of(release(own_vectors=False))
    ids = pa.array(range(USERS))
    found = changes(whole, Second.of(whole, whole, ids, ids)).details
    assert found == {"changed": 0.0}


def test_ranks_say_how_far_groups_are_from_the_mean() -> None:
    far = release(own_vectors=False)
    assert isinstance(far.shown, ShownVectors)
    levels = np.zeros(GROUPS, dtype=np.float32)
    levels[3] = 50.0
    attacked = Attacked.of(dataclasses.replace(far, shown=dataclasses.replace(far.shown, group_levels=levels)))
    rank = farthest.ranks(attacked)
    assert rank[3] == rank.max() == 0.95
    users = np.arange(USERS)
    told = farthest.of_the_farthest(attacked, rank, users, (far.groups[users] == 3).astype(float))
    assert told["farthest_tenth"] == 0.5  # groups at ranks .9 and .95
    assert told["farthest_tenth_user"] == pytest.approx(0.5 / SIZE)
    assert "farthest_3_percent" not in told  # of twenty groups no one is beyond .97


def test_they_are_run_by_name_and_in_every_publication() -> None:
    evidence = release(own_vectors=True)
    report = run(evidence, known=[4], attacks=["rare_item", "columns"], original_too=False)
    assert [result.attack for result in report.results] == ["rare_item", "rare_item", "columns"]
    best = {(one.question, one.kind) for one in report.best()}
    assert best == {("singling out", "an item of few raters"), ("linkability", "items of one person")}
    assert {"rare_item", "columns"} <= {result.attack for result in quick(evidence).results}
