"""Diverse groups: the papers' examples, against brute force, on MovieLens, and on bad data."""

import math
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import matrix_of, movielens_100k

from kgather._errors import InputError
from kgather.udfs.diversity.sensitive_diversity import KINDS, check_reachable, least_diversity, merge_until_diverse
from kgather.udfs.gathering.bkg import gather
from kgather.udfs.measuring.quality import sse
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors

NULL = np.nan


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def in_one_group(values: list, kind: str, c: float | None = None) -> float:
    return least_diversity(np.zeros(len(values), dtype=int), column(*values), kind=kind, c=c)[0]


def brute(values: list, kind: str, c: float | None) -> float | None:
    """The measure from its definition; None if there are no values."""
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return None
    if kind == "deviation":
        mean = math.fsum(values) / len(values)
        return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    counts = sorted(Counter(values).values(), reverse=True)
    if kind == "distinct":
        return len(counts)
    if kind == "entropy":
        return math.exp(-math.fsum(count / len(values) * math.log(count / len(values)) for count in counts))
    return max((at for at in range(1, len(counts) + 1) if counts[0] < c * sum(counts[at - 1 :])), default=0)


def test_deviation_of_the_papers_table() -> None:
    column_3, column_4 = column(NULL, NULL, NULL, 5, 6), column(6, 1, 1, 1, 5)
    assert in_one_group([6, 1, 1, 1, 5], "deviation") == pytest.approx(2.227, abs=0.0005)
    assert in_one_group([1, 5], "deviation") == 2.0
    groups = np.array([7, 1, 1, 3, 3])
    # t2 and t3 all say 1; t4 and t5 say 1 and 5: (2, 1, 2) holds for these only; t1 is alone
    assert least_diversity(groups[1:3], column_4[1:3], kind="deviation") == [0.0]
    assert least_diversity(groups[3:], np.hstack([column_3, column_4])[3:], kind="deviation").tolist() == [0.5, 2.0]
    # t1 and {t2, t3} fail and become one, whose deviation is 2.357
    near = np.array([[5.0], [6.0], [6.0], [1.0], [1.0]])
    merged = merge_until_diverse(near, groups, column_4, kind="deviation", l=2)
    assert merged.tolist() in ([0, 0, 0, 1, 1], [1, 1, 1, 0, 0])
    with pytest.raises(InputError, match=r"standard deviation of all users together allows l = 2\.227 at most"):
        merge_until_diverse(near, groups, column_4, kind="deviation", l=2.3)
    assert merge_until_diverse(near, groups, column_4, kind="deviation", l=2.227).tolist() == [0] * 5


def test_a_null_does_not_widen_the_deviation() -> None:
    # with "null minus mean = mean" as the paper has it, this would be 3.54, more than half of 1..5
    assert in_one_group([5, NULL], "deviation") == 0.0
    assert in_one_group([1, NULL, 5, NULL], "deviation") == 2.0


def test_measures_by_hand() -> None:
    # the counts are 5, 3, 2, 1: r1 < 2 (r_l + ...) is 5 < 22, 12, 6, 2
    values = [1] * 5 + [2] * 3 + [3] * 2 + [4]
    assert in_one_group(values, "distinct") == 4
    assert in_one_group(values, "recursive", c=2) == 3
    assert in_one_group(values, "recursive", c=0.4) == 0
    # not more than, but less than: 3 < 3 * 1 is false
    assert in_one_group([1, 1, 1, 2], "recursive", c=3) == 1
    assert in_one_group([1, 1, 1, 2], "recursive", c=3.01) == 2
    assert in_one_group([1] * 3 + [2] * 30, "recursive", c=10.0000001) == 2
    # equally frequent values: as many as there are, exactly
    for kinds in range(1, 40):
        assert in_one_group(list(range(kinds)) * 3, "entropy") == kinds
    assert in_one_group([1, 1, 1, 2], "entropy") == pytest.approx(4 / 3**0.75)


def test_nulls_are_skipped_and_groups_without_values_pass() -> None:
    sensitive = column(1, 2, NULL, NULL, NULL, 3, NULL)
    groups = np.array([0, 0, 0, 1, 1, 2, 2])
    assert least_diversity(groups, sensitive, kind="distinct") == [1]
    assert least_diversity(groups[:5], sensitive[:5], kind="distinct") == [2]
    assert np.isnan(least_diversity(groups[3:5], sensitive[3:5], kind="distinct")).all()
    # the third group has one value and joins the first, the only other one with values, though the second is nearer
    where = np.array([[0.0]] * 3 + [[9.0]] * 2 + [[10.0]] * 2)
    assert merge_until_diverse(where, groups, sensitive, kind="distinct", l=2).tolist() == [0, 0, 0, 1, 1, 0, 0]
    # nobody has any value: nothing to do
    assert merge_until_diverse(where, groups, sensitive * NULL, kind="entropy", l=5).tolist() == groups.tolist()


def test_the_cheapest_partner_that_helps() -> None:
    # group 0 holds one value; 1 is nearest but holds the same one, 2 and 3 help, 3 at less cost as it is smaller
    where = np.array([[0.0]] * 2 + [[1.0]] * 2 + [[3.0]] * 40 + [[-3.2]] * 2)
    groups = np.repeat([0, 1, 2, 3], [2, 2, 40, 2])
    sensitive = column(*[5] * 4, *[1, 5] * 20, 1, 5)
    merged = merge_until_diverse(where, groups, sensitive, kind="distinct", l=2)
    assert merged[0] == merged[-1]
    assert merged[2] == merged[4]
    assert merged.max() == 1


@pytest.mark.parametrize("width", [1, 2, 6])
def test_the_nearest_of_many_is_found(width: int) -> None:
    rng = np.random.default_rng(width)
    where = rng.normal(size=(2000, width)).astype(np.float32)
    groups = np.repeat(np.arange(2000), 2)
    for alone in rng.integers(0, 2000, 20):
        sensitive = np.tile([1.0, 2.0], 2000)[:, None]
        sensitive[2 * alone] = 2  # all others are diverse, and of the same size
        merged = merge_until_diverse(where[groups], groups, sensitive, kind="distinct", l=2)[::2]
        distance = ((where.astype(float) - where[alone]) ** 2).sum(axis=1)
        distance[alone] = np.inf
        assert merged[distance.argmin()] == merged[alone]
        assert merged.max() == 1998


def test_diverse_groups_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.arange(60) // 6) * 3 - 7
    sensitive = np.empty((60, 1))
    for group in np.unique(groups):
        sensitive[groups == group, 0] = rng.permutation([0, 0, 1, 1, 2, 2])
    merged = merge_until_diverse(rng.random((60, 2)), groups, sensitive, kind="entropy", l=3)
    assert merged.dtype == np.int32
    assert np.array_equal(merged, np.unique(groups, return_inverse=True)[1])


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_promises_against_brute_force(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    n = data.draw(st.integers(1, 60))
    width, attributes = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    vectors = rng.integers(-2, 3, (n, width)) if data.draw(st.booleans()) else rng.normal(size=(n, width))
    groups = rng.integers(0, data.draw(st.integers(1, 20)), n)
    sensitive = np.floor(rng.exponential(data.draw(st.sampled_from([0.3, 1.0, 5.0])), (n, attributes)))
    sensitive[rng.random((n, attributes)) < data.draw(st.sampled_from([0.0, 0.5, 0.95]))] = NULL
    c = data.draw(st.sampled_from([0.5, 1.0, 2.0, 5.5])) if kind == "recursive" else None
    least = data.draw(st.sampled_from([1, 2, 3] if kind in ("distinct", "recursive") else [1, 1.3, 1.75, 2.5]))

    def measures(of: np.ndarray) -> np.ndarray:
        found = [[brute(list(values[of == group]), kind, c) for group in np.unique(of)] for values in sensitive.T]
        return np.array([min((m for m in some if m is not None), default=NULL) for some in found])

    assert least_diversity(groups, sensitive, kind=kind, c=c) == pytest.approx(measures(groups), nan_ok=True)
    reached = measures(np.zeros(n))
    if (reached < least - 1e-9).any():
        first = int(np.argmax(reached < least - 1e-9)) + 1
        with pytest.raises(InputError, match=f"too much for sensitive attribute {first}:"):
            merge_until_diverse(vectors, groups, sensitive, kind=kind, l=least, c=c)
        return
    merged = merge_until_diverse(vectors, groups, sensitive, kind=kind, l=least, c=c)
    assert set(merged) == set(range(merged.max() + 1))
    assert len(set(zip(groups, merged, strict=True))) == len(set(groups))  # whole groups only
    assert not (measures(merged) < least - 1e-9).any()
    assert not (least_diversity(merged, sensitive, kind=kind, c=c) < least).any()
    assert np.array_equal(merged, merge_until_diverse(vectors, groups, sensitive, kind=kind, l=least, c=c))


def test_numbers_and_order_of_the_groups_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    vectors, groups = rng.random((400, 3)), rng.permutation(np.arange(400) // 5)
    sensitive = column(*np.floor(rng.exponential(1, 400)))
    options = {"kind": "entropy", "l": 2.5}
    merged = merge_until_diverse(vectors, groups, sensitive, **options)
    before = vectors.copy(), groups.copy(), sensitive.copy()
    again = merge_until_diverse(np.asfortranarray(vectors), groups * 7 - 3, sensitive * -2.5, **options)
    assert np.array_equal(merged, again)
    assert all(np.array_equal(*pair) for pair in zip(before, (vectors, groups, sensitive), strict=True))


def test_movielens(data_dir) -> None:
    ratings, n, m = movielens_100k(data_dir)
    matrix = matrix_of(ratings, n, m)
    vectors = comparison_vectors(learn(matrix))
    groups = gather(vectors, 10)
    people = [line.split("|") for line in (data_dir / "ml-100k" / "u.user").read_text("latin-1").splitlines()]
    sex = column(*[float(person[2] == "M") for person in people])
    merged = merge_until_diverse(vectors, groups, sex, kind="entropy", l=1.5)
    assert least_diversity(groups, sex, kind="entropy") < 1.5
    assert least_diversity(merged, sex, kind="entropy") >= 1.5
    assert np.bincount(merged).min() >= 10
    assert merged.max() > 0.7 * groups.max()
    assert sse(vectors, merged) < 1.15 * sse(vectors, groups)
    # five items, from the most rated one on; whoever has not rated one has no value
    rated = np.full((n, m), NULL)
    rated[np.repeat(np.arange(n), np.diff(matrix.indptr)), matrix.items] = matrix.values
    items = rated[:, np.argsort(-np.bincount(matrix.items))[[0, 100, 200, 300, 400]]]
    merged = merge_until_diverse(vectors, groups, items, kind="distinct", l=2)
    assert least_diversity(groups, items, kind="distinct").min() == 1
    assert least_diversity(merged, items, kind="distinct").min() >= 2
    assert merged.max() > 0.2 * groups.max()


HARD = {
    # what the groups need is far away or rare, or only all users together have it
    "equal users, one in 1,000 differs": ("distinct", 2, lambda n, _: (np.arange(n) % 1000 == 0).astype(float), 1),
    "one user differs": ("distinct", 2, lambda n, _: (np.arange(n) == 7).astype(float), 2),
    "one of 1,000 has a value": (
        "distinct",
        3,
        lambda n, rng: np.where(rng.random(n) < 0.001, rng.integers(0, 5, n), NULL),
        2,
    ),
    "all values there are": (
        "distinct",
        500,
        lambda n, rng: np.append(np.arange(500), rng.integers(0, 400, n - 500)),
        2,
    ),
    "never quite": (
        "entropy",
        1.960131704,
        lambda n, _: np.concatenate([np.zeros(5), np.tile([0.0, 0, 0, 1, 1], n // 5 - 2), np.ones(5)]),
        1,
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_data_takes_no_quadratic_time(name: str) -> None:
    # No claim of speed: merging 20,000 groups pair by pair would take thousands of times as long as the usual.
    n = 100_000
    rng = np.random.default_rng(0)
    groups = np.arange(n) // 5
    usual = _seconds(rng.normal(size=(n, 2)), groups, column(*rng.integers(0, 3, n)), kind="distinct", l=2)
    kind, least, values, width = HARD[name]
    where = np.zeros((n, width)) if name.startswith("equal") else np.arange(n)[:, None] ** np.linspace(1, 1.5, width)
    sensitive = values(n, rng)[:, None]
    assert _seconds(where, groups, sensitive, kind=kind, l=least) <= 200 * max(usual, 0.1)
    merged = merge_until_diverse(where, groups, sensitive, kind=kind, l=least)
    assert least_diversity(merged, sensitive, kind=kind) >= least


def _seconds(vectors: np.ndarray, groups: np.ndarray, sensitive: np.ndarray, **options: object) -> float:
    start = time.perf_counter()
    merge_until_diverse(vectors, groups, sensitive, **options)
    return time.perf_counter() - start


def test_equal_users_do_not_all_join_the_same_group() -> None:
    n = 20_000
    merged = merge_until_diverse(
        np.zeros((n, 2)), np.arange(n) // 5, column(*(np.arange(n) % 100 == 0)), kind="distinct", l=2
    )
    assert merged.max() + 1 == n // 100
    assert np.bincount(merged).max() < n / 10


def test_what_is_out_of_reach_is_told_up_front() -> None:
    sensitive = np.array([[1, 1.0], [1, 2], [2, NULL], [1, 3], [1, 4]])
    groups, vectors = np.zeros(5, dtype=int), np.zeros((5, 1))
    names = ("illness", "income")

    def told(**options: object) -> str:
        with pytest.raises(InputError) as error:
            merge_until_diverse(vectors, groups, sensitive, names=names, **options)
        with pytest.raises(InputError) as early:
            check_reachable(sensitive, names=names, **options)
        assert str(early.value) == str(error.value)
        return str(error.value)

    first = "l = 3 is too much for sensitive attribute 1 ('illness'): "
    together = " of all users together allows l = "
    assert told(kind="distinct", l=3) == f"{first}the number of different values{together}2 at most."
    assert told(kind="recursive", l=3, c=9.5) == (
        f"{first}the frequency of the values{together}2 at most with c = 9.5; choose a smaller l or a larger c."
    )
    assert told(kind="entropy", l=3) == f"{first}the entropy{together}1.649 at most."
    assert told(kind="deviation", l=0.5).endswith("('illness'): the standard deviation" + together + "0.4 at most.")
    sensitive[:, 0] = 5
    assert told(kind="distinct", l=2).endswith("allows l = 1 at most; leave the attribute out.")
    # an l that is allowed works
    assert check_reachable(sensitive[:, 1:], kind="deviation", l=1.118) == 1.118
    assert merge_until_diverse(vectors, groups, sensitive[:, 1:], kind="deviation", l=1.118).tolist() == [0] * 5


def test_small_and_large_values() -> None:
    for factor in (1e-150, 1e-9, 1e9, 1e90):
        assert in_one_group([1 * factor, 5 * factor], "deviation") == pytest.approx(2 * factor, rel=1e-9)
    # equal values have no deviation at all, and many far from zero have the right one
    assert in_one_group([0.1] * 7, "deviation") == 0
    assert in_one_group([1e9 + 1, 1e9 + 3] * 500, "deviation") == 1
    sensitive = column(*[0.1] * 6, *[0.1, 0.3] * 3)
    merged = merge_until_diverse(np.arange(12)[:, None], np.arange(12) // 3, sensitive, kind="deviation", l=1e-20)
    assert merged.max() == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "closeness"}, "no diversity 'closeness'; there are: distinct, entropy, recursive, deviation"),
        ({"l": 0}, "l must be at least 1"),
        ({"l": 1.5}, "l must be a whole number"),
        ({"l": True}, "l must be a whole number"),
        ({"kind": "entropy", "l": 0.5}, "l must be at least 1"),
        ({"kind": "entropy", "l": NULL}, "l must be a finite number"),
        ({"kind": "deviation", "l": -1}, "l must be at least 0"),
        ({"kind": "recursive"}, "recursive diversity needs c"),
        ({"kind": "recursive", "c": 0}, "c must be more than 0"),
        ({"c": 2}, "c belongs to recursive diversity, distinct diversity has none"),
        ({"names": ["a"]}, "1 names for 2 sensitive attributes"),
        ({"sensitive": np.array([[1, 2.0], [2, np.inf], [3, 4]])}, "some sensitive values are infinite"),
        ({"sensitive": np.ones(3)}, "must be numbers, one row a user"),
        ({"sensitive": np.array([["a"], ["b"], ["c"]])}, "must be numbers, one row a user"),
        ({"sensitive": np.empty((0, 2))}, "must be numbers, one row a user"),
        ({"sensitive": np.full((3, 1), 1e101), "kind": "deviation"}, "larger than 1e\\+100"),
        ({"groups": np.zeros(2, dtype=int)}, "one whole number for each of 3 users"),
        ({"groups": np.zeros(3)}, "one whole number for each of 3 users"),
        ({"vectors": np.zeros((2, 1))}, "2 preference vectors for 3 users"),
        ({"vectors": np.array([[1.0], [NULL], [2.0]])}, "1 of 3 preference vectors"),
    ],
)
def test_refuses(options: dict, says: str) -> None:
    usual = {
        "vectors": np.zeros((3, 1)),
        "groups": np.zeros(3, dtype=int),
        "sensitive": np.array([[1.0, 2], [2, 3], [3, NULL]]),
        "kind": "distinct",
        "l": 2,
    }
    with pytest.raises(InputError, match=says):
        merge_until_diverse(**{**usual, **options})
