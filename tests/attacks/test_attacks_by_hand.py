"""Every attack on a release small enough to work out on paper."""

import math

import numpy as np
import pyarrow as pa
import pytest
from attack_data import evidence, matrix

from kgather._attacks.attacked import Attacked, original_of
from kgather._attacks.auxiliary import Knowledge, Known, draw
from kgather._attacks.differences import differences
from kgather._attacks.disclosure import disclosure
from kgather._attacks.guesses import Guesses, guess
from kgather._attacks.homogeneity import homogeneity
from kgather._attacks.intersection import Second, intersection
from kgather._attacks.linkage import distance, linkage
from kgather._attacks.membership import Others, advantage, membership
from kgather._attacks.posterior import Posterior
from kgather._attacks.results import AIMS, AttackReport, Rate
from kgather._attacks.row_order import Members, row_order
from kgather._attacks.runner import run
from kgather._attacks.scoring import scoring
from kgather._attacks.structure import label, structure
from kgather._attacks.telling import People, fold
from kgather._errors import InputError
from kgather.udfs.attacking._folding import trace_scores
from kgather.udfs.attacking._posterior import judge_folded
from kgather.udfs.attacking._scoring import BEST, DISTANCE, LABEL, SCORING, STANDS_OUT, STRUCTURE, Behind, mean_gap

N = None
# Six users in three groups of two; the groups show means.
ORIGINAL = [
    [5, 4, N, 1],
    [5, 2, N, N],
    [1, N, 3, N],
    [2, N, 5, N],
    [4, 4, N, N],
    [N, 4, 2, N],
]
SHOWN = [
    [5.0, 3.0, N, 1.0],
    [1.5, N, 4.0, N],
    [4.0, 4.0, 2.0, N],
]
TRUTH = [0, 0, 1, 1, 2, 2]


def known_of(user: int, ratings: dict[int, float]) -> Known:
    """These ratings (by item) of a user."""
    return Known(
        Knowledge(len(ratings)),
        np.array([user]),
        np.array([list(ratings)], dtype=np.int32),
        np.array([list(ratings.values())], dtype=np.float32),
        1,
        0,
    )


def knows(attacked: Attacked, user: int, ratings: dict[int, float]) -> Guesses:
    """What an attacker finds who knows these ratings (by item) of a user."""
    return guess(attacked, known_of(user, ratings))


@pytest.fixture
def attacked() -> Attacked:
    return Attacked.of(evidence(ORIGINAL, SHOWN, TRUTH))


def test_weights_are_those_of_the_logarithm_of_the_raters(attacked: Attacked) -> None:
    # Items have 5, 4, 3 and 1 raters; one counts as two.
    assert attacked.weights.tolist() == pytest.approx([1 / math.log(n) for n in (5, 4, 3, 2)])


def test_scoring(attacked: Attacked) -> None:
    found = knows(attacked, 0, {0: 5, 1: 4})
    w0, w1 = 1 / math.log(5), 1 / math.log(4)
    scores = [w0 + w1 * math.exp(-1 / 1.5), w0 * math.exp(-3.5 / 1.5), w0 * math.exp(-1 / 1.5) + w1]
    best, second = sorted(scores)[::-1][:2]
    assert best == scores[2]
    assert found.best(SCORING) == [2]
    assert found.stands_out(SCORING) == pytest.approx([(best - second) / np.std(scores)])
    result = scoring(found)
    assert result.user.value == result.group.value == 0
    assert result.matched.value == 0


def test_a_right_match(attacked: Attacked) -> None:
    # Only the first group shows the fourth item.
    found = knows(attacked, 0, {3: 1})
    assert found.stands_out(SCORING) == pytest.approx([1 / np.std([1, 0, 0])])
    result = scoring(found)
    assert (result.user.value, result.group.value) == (0.5, 1)
    assert (result.matched.value, result.wrong_among_matched.value) == (1, 0)
    assert result.details == {"best_is_right": 1, "rightly_matched": 1}


def test_a_wrong_match_counts_as_such(attacked: Attacked) -> None:
    result = scoring(knows(attacked, 5, {3: 1}))
    assert (result.user.value, result.matched.value, result.wrong_among_matched.value) == (0, 1, 1)


def test_distance_counts_the_full_width_where_nothing_is_shown(attacked: Attacked) -> None:
    # |5-5| + |4-3| = 1; |5-1.5| + 4 = 7.5; |5-4| + |4-4| = 1: two tie, one of them is right.
    found = knows(attacked, 0, {0: 5, 1: 4})
    assert found.ties(DISTANCE) == [2]
    result = distance(found)
    assert (result.user.value, result.group.value) == (0.25, 0.5)
    # 4 + 4 + 0 for the second group's user 3 and items 2, 3: (4, 4), (1, 4), (3, 4).
    assert knows(attacked, 3, {2: 5, 3: 1}).best(DISTANCE) == [0]


def test_structure_knows_items_only(attacked: Attacked) -> None:
    found = knows(attacked, 4, {0: 1, 1: 1})
    assert found.ties(STRUCTURE) == [2]
    result = structure(found)
    assert (result.user.value, result.group.value, result.matched.value) == (0.25, 0.5, 0)
    alone = structure(knows(attacked, 2, {0: 9, 2: 9}))
    assert alone.group.value == 0.5
    assert structure(knows(attacked, 0, {3: 1})).matched.value == 1


def test_label_knows_ratings_within_a_step(attacked: Attacked) -> None:
    found = knows(attacked, 4, {0: 4, 1: 4})
    assert found.ties(LABEL) == [2]
    assert label(found).group.value == 0.5
    alone = label(knows(attacked, 4, {0: 3, 1: 4}))
    assert (alone.user.value, alone.group.value, alone.matched.value) == (0.5, 1, 1)
    nobody = label(knows(attacked, 4, {0: 3, 1: 1}))
    assert (nobody.user.value, nobody.group.value, nobody.matched.value) == (0, 0, 0)
    assert nobody.wrong_among_matched is None


@pytest.mark.parametrize(
    ("rating", "low", "high", "gap"),
    [(3, 3, 3, 0), (3, 1, 1, 2), (3, 1, 5, 1), (1, 1, 3, 1), (5, 1, 3, 3), (2, 1, 5, 1.25)],
)
def test_the_gap_to_a_range_is_the_mean_over_it(rating: float, low: float, high: float, gap: float) -> None:
    assert mean_gap(float(rating), float(low), float(high)) == gap


def test_ranges_are_consistent_within_their_bounds_and_a_step() -> None:
    attacked = Attacked.of(evidence([[1, 2], [5, 4]], [[1, 2], [4, 3]], [0, 1], high=[[2, 2], [5, 5]]))
    assert label(knows(attacked, 0, {0: 3})).group.value == 0.5
    assert label(knows(attacked, 0, {0: 2})).group.value == 1


def test_look_alikes_are_one_and_do_not_hide_who_stands_out() -> None:
    # Both users of the first group have rows of their own, which are the same.
    rows = [[5, 1], [5, 1], [1, 5], [1, 5]]
    attacked = Attacked.of(evidence(rows, rows, [0, 1, 2, 3], groups=[0, 0, 1, 1]))
    assert attacked.n_classes == 2
    assert attacked.users.tolist() == [2, 2]
    result = scoring(knows(attacked, 0, {0: 5, 1: 1}))
    assert (result.user.value, result.group.value) == (0.5, 1)
    assert result.matched.value == 1


def test_look_alikes_of_two_groups_share_the_blame() -> None:
    attacked = Attacked.of(evidence([[5]] * 5 + [[1]], [[5], [5], [1]], [0, 0, 1, 1, 1, 2]))
    result = scoring(knows(attacked, 0, {0: 5}))
    assert result.user.value == pytest.approx(1 / 5)
    assert result.group.value == pytest.approx(2 / 5)


def test_homogeneity() -> None:
    attacked = Attacked.of(evidence(ORIGINAL, SHOWN, TRUTH))
    result = homogeneity(knows(attacked, 0, {3: 1}))
    assert (result.matched.value, result.wrong_among_matched.value) == (1, 0)
    # Of the others, item 0 shows 5 (was 5), item 1 shows 3 (was 4); most frequent are 5 and 4.
    assert result.details == {"other_ratings": 2, "learnt": 0.5, "read": 0.5, "learnt_by_chance": 1}
    [best] = AttackReport((result,), (), {}).best()
    assert (best.measure, best.value, best.chance) == ("learnt", 0.5, 1)


def test_disclosure() -> None:
    attacked = Attacked.of(evidence(ORIGINAL, SHOWN, TRUTH))
    told = disclosure(attacked).details
    # Eight shown cells. One rater: group 0 item 3, group 2 items 0 and 2; all exact. Group 0 item 0 and group 2
    # item 1: two raters who said the same.
    assert told["cells"] == 8
    assert told["rated"] == 1
    assert told["one_rater"] == told["exact"] == told["near"] == 3 / 8
    assert told["exact_of_one_rater"] == 1
    assert told["alike"] == 2 / 8
    assert told["worked_out"] == 0


def test_what_the_mean_with_a_fill_gives_away_is_worked_out() -> None:
    # One of two rated 5, the fill is 3: the cell shows 4, which is no rating of anybody, but says it.
    told = disclosure(
        Attacked.of(evidence([[5], [N]], [[4]], [0, 0], parameters={"homogenize": "microaggregated"}))
    ).details
    assert (told["one_rater"], told["exact"], told["near"], told["worked_out"]) == (1, 0, 0, 1)


@pytest.mark.parametrize(("fill", "shown", "worked_out"), [("mean", 5, 1), ("median", 5, 0), ("prediction", 5, 0)])
def test_what_is_worked_out_is_of_the_fill_that_was_asked_for(fill: str, shown: float, worked_out: float) -> None:
    # The one rating, and so the mean, is 5: with it in the place of the other's the cell shows 5, with 3 it would not.
    parameters = {"homogenize": "microaggregated", "fill": fill}
    told = disclosure(Attacked.of(evidence([[5], [N]], [[shown]], [0, 0], parameters=parameters))).details
    assert told["worked_out"] == worked_out


def test_linkage_fills_as_the_release_was_filled() -> None:
    # The mean of all ratings is 5. Filled with it, the second original is (5, 5) and nearest to the first row.
    original, shown = [[5, 5], [N, 5]], [[5, 5], [3, 5]]
    by_mean = linkage(Attacked.of(evidence(original, shown, [0, 1], parameters={"fill": "mean"})))[0]
    assert by_mean.user.value == 1 / 2
    for fill in ("median", "prediction"):
        there = linkage(Attacked.of(evidence(original, shown, [0, 1], parameters={"fill": fill})))[0]
        assert there.user.value == 1


def test_linkage_in_both_directions() -> None:
    # Fill 3. Rows of originals: (5, 3), (1, 3), (3, 5); the release: (3, 3) for the first two, (3, 5) for the third.
    attacked = Attacked.of(evidence([[5, N], [1, N], [N, 5]], [[3, 3], [3, 5]], [0, 0, 1]))
    there, back = linkage(attacked)
    # All three are nearest to their own row; behind the first row are two.
    assert there.user.value == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert there.group.value == 1
    # From (3, 3) to the originals: all three are 2 away, two of them behind it. From (3, 5): the third.
    assert back.user.value == pytest.approx((2 / 3 + 1) / 3)
    assert back.group.value == pytest.approx((2 * 2 / 3 + 1) / 3)


def test_linkage_of_sampled_users_is_that_of_all_where_all_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    attacked = Attacked.of(evidence(ORIGINAL, SHOWN, TRUTH))
    whole = linkage(attacked)
    # 13 ratings and 4 items, each x 3 candidates, fit just so; one less, and a single candidate is linked back.
    monkeypatch.setattr("kgather._attacks.linkage._WORK", 51)
    assert linkage(attacked) == whole
    monkeypatch.setattr("kgather._attacks.linkage._WORK", 50)
    there, back = linkage(attacked)
    assert there == whole[0]
    assert back.targets == 2


def test_intersection() -> None:
    # The groups of the second release cut across those of the first: only user 0 is alone in both.
    first = Attacked.of(evidence([[5], [5], [1], [1]], [[5], [1]], [0, 0, 1, 1]))
    second = Attacked.of(evidence([[5], [1], [1], [1]], [[5], [1]], [0, 1, 1, 1]))
    ids = pa.array(["a", "b", "c", "d"])
    both = Second.of(first, second, ids, ids)
    result = intersection(first, both, Knowledge(1), targets=4)
    assert result.details == {"people": 4, "in_common": pytest.approx((1 + 1 + 2 + 2) / 4), "least_in_common": 1}
    assert result.matched.value == 0.5
    # Users 0, 2, 3 are found in both; 1 has another opinion in the second, where the first one misleads.
    assert result.group.value == pytest.approx(3 / 4)
    assert result.user.value == pytest.approx((1 + 0 + 1 / 2 + 1 / 2) / 4)


def test_intersection_matches_users_and_items_by_their_ids() -> None:
    first = Attacked.of(evidence([[5, 1], [1, 5]], [[5, 1], [1, 5]], [0, 1]))
    second = Attacked.of(evidence([[1, 5], [5, 1]], [[1, 5], [5, 1]], [0, 1]))
    both = Second.of(first, second, pa.array([7, 8]), pa.array(["8", "7"]))
    assert both.users.tolist() == [1, 0]
    result = intersection(first, both, Knowledge(2), targets=2)
    assert result.user.value == 1
    with pytest.raises(InputError, match="no user is in both"):
        Second.of(first, second, pa.array([1, 2]), pa.array([3, 4]))


def test_advantage_is_the_largest_gap_between_two_distributions() -> None:
    assert advantage(np.array([3.0, 3.0, 1.0]), np.array([2.0, 2.0, 0.0])) == pytest.approx(2 / 3)
    assert advantage(np.array([1.0]), np.array([1.0])) == 0
    assert advantage(np.array([1.0]), np.array([2.0])) == 0


def test_membership() -> None:
    # Four members twice, whose candidates show their very ratings.
    rows = [[5, 1, 3], [1, 5, 3], [3, 1, 5], [3, 5, 1]] * 2
    attacked = Attacked.of(evidence(rows, rows[:4], [0, 1, 2, 3] * 2))
    strangers = [[5, 5, 5], [1, 1, 1], [3, 3, 3], [5, 1, 3], [4, 4, 4], [2, 2, 2], [5, 5, 1], [1, 1, 5]]
    alone, more = membership(attacked, Others.of(matrix(strangers)), None)
    # Members are 0 away, and so is one of eight others; no distance tells more.
    assert alone.details["by_nearest"] == pytest.approx(7 / 8)
    assert alone.details["advantage"] == max(value for name, value in alone.details.items() if name.startswith("by_"))
    assert alone.details[f"by_{alone.by}"] == alone.details["advantage"]
    assert alone.details["others"] == alone.targets == 8
    # Seven ways were tried: the bound is that for the best of them, at 8 people on each side.
    assert alone.details["advantage_by_chance"] == pytest.approx(
        min(1, math.sqrt(-math.log(0.025 / 7) / 2) * math.sqrt(16 / 64))
    )
    assert alone.details["by_frame"] == 0
    assert more.knowledge == "all ratings, and ratings of other people"
    assert {name for name in more.details if name.startswith("by_")} == {"by_traced", "by_compared", "by_practised"}
    with pytest.raises(InputError, match="4 or more ratings"):
        list(membership(attacked, Others.of(matrix(strangers)), Knowledge(4)))


def test_who_rated_what_the_release_has_not_is_not_in_it() -> None:
    rows = [[5, 1], [1, 5]] * 4
    attacked = Attacked.of(evidence(rows, rows[:2], [0, 1] * 4))
    # Three of the eight others, who are no different otherwise, rated something else, too.
    others = Others(matrix(rows), np.array([0, 2, 1, 0, 0, 0, 1, 0]))
    alone, _ = membership(attacked, others, None)
    assert alone.details["by_frame"] == pytest.approx(3 / 8)
    assert alone.details["by_nearest"] == 0
    [known] = membership(attacked, others, Knowledge(2))
    assert "by_frame" not in known.details


def test_what_vectors_explain_beyond_as_many_random_ones() -> None:
    # Deviations from the means are 1, -1, 1, -1 along the one axis: all explained, where chance gives 1 of 3.
    axes = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    people = People.table(np.array([[0, 1, 2, 3]], dtype=np.int32), np.array([[4, 2, 4, 2]], dtype=np.float32))
    assert fold(people, np.full(4, 3.0), axes, 1e-9, 1) == pytest.approx([1 - 1 / 3])
    across = People.table(people.items.reshape(1, 4), np.array([[4, 4, 2, 2]], dtype=np.float32))
    assert fold(across, np.full(4, 3.0), axes, 1e-9, 1) == pytest.approx([-1 / 3])
    assert fold(across, np.array([np.nan, np.nan, 3.0, 3.0]), axes, 1e-9, 1) == [0]  # two ratings tell nothing


def test_item_means_lean_towards_who_is_in() -> None:
    # Usual is 3; the release shows 1 more of the first and 1 less of the second item. Own mean aside, (4, 2) leans
    # as the release does, (2, 4) against it.
    out = np.empty(2)
    people = People.table(np.array([[0, 1]] * 2, dtype=np.int32), np.array([[4, 2], [2, 4]], dtype=np.float32))
    trace_scores(people.indptr, people.items, people.ratings, np.array([3.0, 3.0]), np.array([1.0, -1.0]), out, 0, 2)
    assert out.tolist() == [1, -1]


def test_the_posterior_weighs_sizes_and_gaps() -> None:
    # A group of four that shows 4 and one of two that shows 2 (no step, so that nobody takes 4 for an own rating).
    attacked = Attacked.of(evidence([[4]] * 4 + [[2]] * 2, [[4], [2]], [0, 0, 0, 0, 1, 1], step=None))
    attacker = Posterior(attacked)
    assert attacker.own == 0
    # Ratings scatter by (4 x (2/3)^2 + 2 x (4/3)^2) / 6 = 8/9 around the usual 10/3, and of this 7 in 10 within groups.
    variance = 0.7 * 8 / 9
    assert attacker.variance == pytest.approx(8 / 9)
    odds = 4 / 2 * math.exp(-(1 - 1) / (2 * variance))
    in_between = attacker.guess(known_of(0, {0: 3}))
    assert in_between.best(0) == [0]
    assert in_between.stands_out(0) == pytest.approx([odds / (1 + odds)])
    nearer = 4 / 2 * math.exp(-(1.5**2 - 0.5**2) / (2 * variance))
    below = attacker.guess(known_of(0, {0: 2.5}))
    assert below.stands_out(0) == pytest.approx([max(nearer, 1) / (1 + nearer)])
    assert attacker.ratings(known_of(0, {0: 4})).matched.value == 1


def test_a_shown_rating_of_the_scale_may_be_the_targets_own() -> None:
    attacked = Attacked.of(evidence([[5]] * 2 + [[4]] * 2, [[5], [4]], [0, 0, 1, 1]))
    attacker = Posterior(attacked)
    assert attacker.own == 0.5
    variance = 0.7 * 0.25
    density = 1 / math.sqrt(2 * math.pi * variance)
    hit, miss = 0.5 + 0.5 * density, 0.5 * density * math.exp(-1 / (2 * variance))
    assert attacker.guess(known_of(0, {0: 5})).stands_out(0) == pytest.approx([hit / (hit + miss)])


def test_the_posterior_believes_ranges_and_what_is_not_shown() -> None:
    ranged = Attacked.of(evidence([[1], [2], [5], [4]], [[1], [4]], [0, 0, 1, 1], high=[[3], [5]]))
    # 2 is one of three values of the first range, and outside the second.
    assert Posterior(ranged).guess(known_of(0, {0: 2})).stands_out(0) == pytest.approx([(1 / 3) / (1 / 3 + 1e-4)])
    sparse = Attacked.of(evidence([[3, 3], [3, 3], [N, 3], [N, 3]], [[3, 3], [N, 3]], [0, 0, 1, 1], step=None))
    assert Posterior(sparse).guess(known_of(0, {0: 3})).best(0) == [0]
    assert Posterior(sparse).guess(known_of(0, {0: 3})).stands_out(0)[0] > 0.99


def test_items_alone_find_who_shows_few() -> None:
    # The first group shows one item, the second all three: who rated the first item is likelier of the first group.
    attacked = Attacked.of(evidence([[3, N, N]] * 2 + [[3, 3, 3]] * 2, [[3, N, N], [3, 3, 3]], [0, 0, 1, 1], step=None))
    attacker = Posterior(attacked)
    # Raters are 4, 2, 2 of 8: half of all for the first group.
    assert attacker.items(known_of(0, {0: 3})).group.value == 1
    assert attacker.items(known_of(2, {1: 3})).group.value == 1
    assert attacker.items(known_of(2, {0: 3})).group.value == 0


def test_folding_weighs_directions_as_the_covariance_says() -> None:
    """The kernel inverts in the space of the directions; here the covariance itself is inverted."""
    rng = np.random.default_rng(4)
    axes, places = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    items, ratings = np.array([[0, 2, 5]], dtype=np.int32), np.array([[4.0, 2.0, 5.0]], dtype=np.float32)
    users = np.array([3, 1, 4, 1, 5], dtype=np.int64)
    out = np.zeros((1, 5))
    behind = Behind(users, np.arange(6, dtype=np.int64), np.arange(5, dtype=np.int32), users)
    judge_folded(
        np.full(6, 3.0), axes, places, items, ratings, 0.8, 0.2,
        np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32), behind, out, 0, 1,
    )  # fmt: skip
    own = axes[items[0]]
    inverse = np.linalg.inv(0.8 * np.eye(3) + 0.2 * own @ own.T)
    gaps = ratings[0] - 3 - places @ own.T
    likely = users * np.exp(-0.5 * np.einsum("ci,ij,cj->c", gaps, inverse, gaps))
    assert out[0, BEST] == likely.argmax()
    assert out[0, STANDS_OUT] == pytest.approx(likely.max() / likely.sum())


def test_a_group_that_lost_one_person_gives_that_person_away() -> None:
    table = [[5, 1], [4, 2], [3, 3], [1, 5]]
    first = Attacked.of(evidence(table, [[4, 2], [1, 5]], [0, 0, 0, 1]))
    second = Attacked.of(evidence(table, [[4.5, 1.5], [2, 4]], [0, 0, 1, 1]))
    ids = pa.array(["a", "b", "c", "d"])
    told = differences(first, Second.of(first, second, ids, ids))
    # 3 x (4, 2) - 2 x (4.5, 1.5) = (3, 3), the ratings of the third person; 2 x (2, 4) - (1, 5) likewise.
    assert told.targets == 2
    assert (told.matched.value, told.wrong_among_matched.value) == (1, 0)
    assert told.details["alone"] == told.details["found_alone"] == 1
    assert told.details["off"] == pytest.approx(0)
    assert told.details["off_group"] == pytest.approx(1)
    assert told.details["overlap"] == pytest.approx((2 / 3 + 1) / 2)
    assert told.details["overlap_by_chance"] == pytest.approx(1 / 2)


def test_the_strongest_of_a_kind_is_told() -> None:
    report = run(evidence(ORIGINAL, SHOWN, TRUTH), known=(1, 2), attacks=["scoring", "distance", "posterior", "items"])
    for best in report.best():
        rivals = [
            result.group.value
            for result in report.results
            if AIMS[result.attack][0].kind == best.kind and result.known == int(best.knowledge.split()[0])
        ]
        assert best.value == max(rivals)
        assert best.low <= best.value <= best.high
    assert [(best.kind, best.knowledge) for best in report.best()] == [
        ("a few ratings", "1 exact rating"),
        ("a few ratings", "2 exact ratings"),
        ("items only", "1 item"),
        ("items only", "2 items"),
    ]
    assert len(report.as_dict()["best"]) == 4


def test_rows_in_the_original_order_are_found() -> None:
    attacked = Attacked.of(evidence(ORIGINAL, SHOWN, TRUTH))
    names = np.array(["f", "e", "d", "c", "b", "a"])
    groups = np.array([0, 0, 10, 10, 20, 20])
    results = row_order(attacked, Members(groups, names, np.array([20, 10, 0])), pseudonyms=names)
    shares = {result.knowledge: (result.user.value, result.group.value) for result in results}
    assert shares["row order of members"] == (1, 1)
    # In the order of names the rows are turned round: only the middle group stays where it is.
    assert shares["pseudonyms in order"] == (0, pytest.approx(2 / 6))
    assert shares["group ids in order"] == (1, 1)
    assert shares["row order of groups"] == (pytest.approx(2 / 6), pytest.approx(2 / 6))
    assert results[0].chance_group == pytest.approx(1 / 3)
    # Places 0..5 (sum of squares 17.5) with the means 0.5, 2.5 and 4.5 of their groups (16).
    assert results[0].details["correlation"] == pytest.approx(16 / math.sqrt(17.5 * 16))
    assert results[1].details["correlation"] == pytest.approx(-16 / math.sqrt(17.5 * 16))


def test_the_alarm_is_raised_where_chance_does_not_reach() -> None:
    # Twelve users in six pairs: 2 hits at random, with a standard deviation of sqrt(20 / 11) = 1.35.
    truth = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    attacked = Attacked.of(evidence([[3]] * 12, [[3]] * 6, truth))
    listed = np.arange(6) * 10
    for shifted, alarm in ((0, 1), (2, 0)):
        groups = np.roll(np.array(truth) * 10, shifted)
        by_file = row_order(attacked, Members(groups, np.array(list("lkjihgfedcba")), listed))[0]
        assert by_file.details["order_is_shown"] == alarm


def test_without_pseudonyms_a_group_gives_one_of_its_members() -> None:
    attacked = Attacked.of(evidence(ORIGINAL, SHOWN, TRUTH))
    members = Members(np.array([0, 0, 10, 10, 20, 20]), np.array(list("abcdef")), np.array([0, 10, 20]))
    assert [result.user.value for result in row_order(attacked, members)] == [0.5] * 4


def test_the_original_with_pseudonyms_is_broken() -> None:
    plain = Attacked.of(original_of(evidence(ORIGINAL, SHOWN, TRUTH)))
    known = draw(plain, Knowledge(2), targets=6)
    assert scoring(guess(plain, known)).user.value == 1
    assert linkage(plain)[0].user.value == 1
    assert disclosure(plain).details["exact"] == 1


def test_an_interval_by_hand() -> None:
    # Wilson, 8 of 10: (0.4902, 0.9433).
    rate = Rate.of(np.array([1.0] * 8 + [0.0] * 2), 10)
    assert (rate.value, rate.low, rate.high) == (0.8, pytest.approx(0.4902, abs=5e-5), pytest.approx(0.9433, abs=5e-5))
    assert Rate.of(np.array([]), 0) is None
    assert Rate.of(np.ones(4), 4).high == 1
