"""What utility was lost: worked by hand, against whole tables, for every form of release."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from built import Build
from evidence_data import evidence_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kgather._evaluation import candidates, metrics
from kgather._evaluation.candidates import ShownVectors
from kgather._evaluation.evidence import Evidence, read_evidence
from kgather._evaluation.metrics import (
    ABOUT,
    Metric,
    described,
    group_size_distribution,
    measure,
    shown_errors,
    shown_values,
    spearman,
)
from kgather._evaluation.naive_bayes import naive_bayes
from kgather._publishing.publish import Published
from kgather.udfs.measuring.quality import armse, maximal_radius
from kgather.udfs.preferences.filled import filled_ratings, filled_scores
from kgather.udfs.preferences.model import Preferences

NAN = float("nan")


def values_of(found: tuple[Metric, ...]) -> dict[str, float]:
    named = {metric.metric: metric.value for metric in found}
    assert len(named) == len(found)
    return named


# Published examples ----------------------------------------------------------------------------------------------


def test_distortion_of_the_papers_tuple_is_1() -> None:
    # Sun and Sun, section 6.1: not rated is 0.
    found = values_of(measure(evidence_of([[5, 6, NAN]], [[5, 5, NAN]], [0], scale=(1, 10))))
    assert (found["tuple_distortion"], found["total_distortion"]) == (1, 1)


def test_distortion_of_the_papers_data_set_is_4() -> None:
    original = [[5, 6, NAN], [2, 5, NAN], [4, 7, NAN], [5, 6, NAN]]
    anonymized = [[5, 5, NAN], [3, 5, NAN], [3, 7, NAN], [5, 7, NAN]]
    found = values_of(measure(evidence_of(original, anonymized, [0, 1, 2, 3], scale=(1, 10))))
    assert (found["tuple_distortion"], found["total_distortion"]) == (1, 4)


# Worked by hand --------------------------------------------------------------------------------------------------


def test_a_small_release_worked_by_hand() -> None:
    # Users 0 and 1 are shown as candidate 0, user 2 as candidate 1, user 3 was set aside.
    original = [[5, 1, NAN], [4, NAN, NAN], [NAN, 4, 3], [1, NAN, NAN]]
    found = values_of(measure(evidence_of(original, [[4, 2, NAN], [3, 5, NAN]], [0, 0, 1, -1])))
    # Gaps 1, 1, 0 and 1; 3 is the fill, so that user 1 adds |2 - 3| and user 2 |3 - 3| to the filled cells.
    assert found["mean_absolute_error"] == 0.75
    assert found["sum_of_squares"] == 3
    assert found["sum_of_squares_filled"] == 3 + 1 + 0
    # Squares of candidate 0: 1 + 1 + 0 + 1 of two users; of candidate 1: 0 + 1.
    assert found["armse_filled"] == pytest.approx((1.5**0.5 + 1) / 2)
    # Not rated is 0: user 1's b is 2 away, user 2's a 3, and c, which is not shown, 3.
    assert found["total_distortion"] == 3 + 2 + 3 + 3
    assert (found["items_shown"], found["ratings_shown"], found["cells_shown"]) == (
        pytest.approx(2 / 3),
        pytest.approx(4 / 6),
        pytest.approx(4 / 6),
    )
    assert (found["entries_of_groups"], found["entries_repeated"], found["entries_added"]) == (4, 6, 1)
    assert found["cells_added"] == 1


def test_ranges_count_by_their_midpoint() -> None:
    found = values_of(measure(evidence_of([[4, 2]], [[3, 1]], [0], high=[[5, 2]])))
    assert (found["mean_absolute_error"], found["sum_of_squares"]) == (0.25, 0.25)


def test_nothing_is_lost_where_all_is_shown() -> None:
    original = np.array([[5, 1, NAN], [4, NAN, 2], [NAN, 4, 3]])
    evidence = evidence_of(original, original, [0, 1, 2])
    found = values_of(measure(evidence))
    exact = {"items_shown", "ratings_shown", "popularity_of_means", "popularity_of_counts"}
    for name, value in found.items():
        if name.startswith(("query_error", "mean_abs", "root", "sum_of_squares", "total", "tuple", "entries_added")):
            assert value == 0, name
        elif name in exact:
            assert value == pytest.approx(1), name
    assert found["cells_shown"] == pytest.approx(6 / 9)


def test_what_is_known_is_not_measured_again() -> None:
    evidence = evidence_of([[5, 1], [4, 2]], [[4, 2]], [0, 0])
    known = described([("sum_of_squares", 17.0), ("discernibility", 4.0)])
    found = measure(evidence, known=known)
    assert found[:2] == known
    assert values_of(found)["sum_of_squares"] == 17


def test_closeness_is_of_what_users_were_compared_in() -> None:
    evidence = evidence_of([[5, 1], [4, 2], [1, 1], [2, 5]], [[4, 2], [1, 1]], [0, 0, 1, -1])
    assert "maximal_radius" not in values_of(measure(evidence))
    vectors = np.array([[0.0], [4.0], [7.0], [100.0]], dtype=np.float32)  # the last user is not shown
    values = values_of(measure(replace(evidence, vectors=vectors)))
    assert values["armse_preferences"] == pytest.approx((2 + 0) / 2)
    assert values["maximal_radius"] == pytest.approx(2)


def test_what_is_not_rated_counts_with_the_fill_that_was_asked_for() -> None:
    original = [[5, 1, NAN], [5, NAN, NAN], [NAN, 4, 5], [4, NAN, NAN]]
    evidence = evidence_of(original, [[4, 2, NAN], [3, 5, NAN]], [0, 0, 1, -1])
    found = measure(replace(evidence, parameters={"fill": "mean"}))
    # Ratings 5, 1, 5 and 4 are shown as 4, 2, 4 and 5; users 1 and 2 have no rating of an item that is shown.
    mean = 24 / 6
    by_hand = 1 + 1 + 1 + (mean - 2) ** 2 + (mean - 3) ** 2 + 1
    assert values_of(found)["sum_of_squares_filled"] == pytest.approx(by_hand)
    [about] = [metric.about for metric in found if metric.metric == "sum_of_squares_filled"]
    assert about.endswith(": the mean of all ratings")
    [about] = [metric.about for metric in measure(evidence) if metric.metric == "armse_filled"]
    assert about.endswith(": the middle of the scale")


def test_predictions_fill_as_if_they_were_written_out() -> None:
    rng = np.random.default_rng(5)
    table = np.where(rng.random((30, 12)) < 0.4, rng.integers(1, 6, (30, 12)), NAN)
    truth = np.append(np.arange(27) // 9, [-1, -1, -1])
    shown = np.where(rng.random((3, 12)) < 0.8, rng.uniform(1, 5, (3, 12)), NAN)
    evidence = replace(evidence_of(table, shown, truth), parameters={"fill": "prediction"})
    learnt = Preferences(*(rng.normal(size=shape).astype(np.float32) for shape in (30, (30, 4), 12, (12, 4))))
    gaps = filled_ratings(evidence.original, fill=learnt)[:27] - evidence.shown.columns(np.arange(12))[0].T[truth[:27]]
    found = measure(replace(evidence, preferences=learnt))
    values = values_of(found)
    assert values["sum_of_squares_filled"] == pytest.approx(np.nansum(gaps**2))
    of_groups = [np.sqrt(np.nansum(gaps[truth[:27] == group] ** 2) / 9) for group in range(3)]
    assert values["armse_filled"] == pytest.approx(np.mean(of_groups))
    [about] = [metric.about for metric in found if metric.metric == "armse_filled"]
    assert about.endswith(": the prediction")
    # Without what was learnt nobody knows: nothing is told rather than something else.
    assert not {"sum_of_squares_filled", "armse_filled"} & values_of(measure(evidence)).keys()


def test_means_of_personal_attributes_are_asked_for() -> None:
    # Both groups show 1 and 2 of the one item, so that a query finds all four; one of them asks for two.
    table = [[1.0], [2.0], [1.0], [2.0]]
    evidence = evidence_of(table, [[1.0], [1.0]], [0, 0, 1, 1], high=[[2.0], [2.0]])
    ages = np.array([10.0, 30.0, 10.0, 30.0])
    values = values_of(measure(evidence, personal={"age": ages}))
    assert values["query_error_average_age_or_1"] == pytest.approx(0.5)  # 10 or 30 for 20
    shown = values_of(measure(evidence_of(table, table, [0, 1, 2, 3]), personal={"age": ages}))
    assert shown["query_error_average_age_or_1"] == 0
    assert not any("age_or" in name for name in values_of(measure(evidence)) if "average_age" in name)


def test_a_classifier_that_can_tell_is_right_and_one_that_cannot_names_the_commoner() -> None:
    pytest.importorskip("sklearn")
    draws = np.random.default_rng(0)
    taste = draws.random(200) < 0.75
    table = np.where(taste[:, None], 5.0, 1.0) * np.ones((1, 4))
    told = {metric.metric: metric.value for metric in naive_bayes(evidence_of(table, table, np.arange(200)))}
    assert told["naive_bayes"] == told["naive_bayes_original"] == 1
    assert told["naive_bayes_commoner"] == pytest.approx(0.75, abs=0.08)
    blind = {metric.metric: metric.value for metric in naive_bayes(evidence_of(table, [[3.0] * 4], [0] * 200))}
    assert blind["naive_bayes"] == blind["naive_bayes_commoner"] < blind["naive_bayes_original"]
    assert naive_bayes(evidence_of([[5.0], [1.0]], [[5.0]], [0, 0])) == ()


def test_users_who_are_all_set_aside_break_nothing() -> None:
    evidence = evidence_of([[5, 1], [4, 2]], [[4, 2]], [0, -1])
    assert values_of(measure(evidence))["ratings_shown"] == 0.5
    assert shown_errors(evidence, np.array([1, -1]), np.array([0, 0]), np.array([4.0, 4.0]))[2] == 0


def test_every_metric_says_what_it_means() -> None:
    found = measure(evidence_of([[5, 1, 2], [4, 2, NAN]], [[4, 2, 1]], [0, 0]))
    assert all(metric.about for metric in found)
    assert {metric.metric for metric in found if not metric.metric.startswith("query_error")} <= ABOUT.keys()


def test_errors_on_ratings_asked_for() -> None:
    evidence = evidence_of([[5, 1, NAN], [4, NAN, NAN]], [[4, 2, NAN]], [0, 0])
    users, items = np.array([1, 0, 1, -1, 0]), np.array([1, 0, 2, 0, -1])
    np.testing.assert_array_equal(shown_values(evidence, users, items), [2, 4, NAN, NAN, NAN])
    mae, rmse, covered = shown_errors(evidence, users, items, np.array([4.0, 5.0, 1.0, 1.0, 1.0]))
    assert (mae, covered) == (1.5, 0.4)
    assert rmse == pytest.approx(2.5**0.5)


def test_group_sizes_are_counted() -> None:
    evidence = evidence_of([[1.0]] * 6, [[1.0]] * 3, [0, 0, 1, 1, 2, -1])
    assert group_size_distribution(evidence) == ((1, 1), (2, 2))


def test_ranks_of_equal_values_are_their_mean() -> None:
    assert spearman(np.array([5, 3, 3, 1]), np.array([5, 4, 2, 1])) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert np.isnan(spearman(np.array([1, 1, 1]), np.array([1, 2, 3])))
    assert np.isnan(spearman(np.array([1]), np.array([1])))


# Against whole tables --------------------------------------------------------------------------------------------

rating = st.one_of(st.just(NAN), st.integers(1, 5).map(float))


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    users, items, rows = draw(st.integers(1, 8)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    original = draw(arrays.arrays(float, (users, items), elements=rating))
    original[0, 0] = 3  # a rating matrix has ratings
    low = draw(arrays.arrays(float, (rows, items), elements=rating))
    high = low + draw(arrays.arrays(float, (rows, items), elements=st.sampled_from([0.0, 0.0, 1.0])))
    truth = draw(st.lists(st.integers(-1, rows - 1), min_size=users, max_size=users))
    truth[0] = 0
    return evidence_of(original, low, truth, high=high)


@given(evidence=evidences())
@settings(max_examples=80, deadline=None)
def test_sums_are_those_of_whole_tables(evidence: Evidence) -> None:
    items = np.arange(evidence.original.n_items)
    everything = np.full((evidence.original.n_users, len(items)), NAN)
    for user in range(evidence.original.n_users):
        entries = slice(*evidence.original.indptr[user : user + 2])
        everything[user, evidence.original.items[entries]] = evidence.original.values[entries]
    low, high = evidence.shown.columns(items)
    gathered = evidence.gathered
    shown = ((low + high) / 2).T[evidence.truth[gathered]].astype(float)
    original = everything[gathered]
    gaps = (original - shown)[~np.isnan(original) & ~np.isnan(shown)]
    filled = np.where(np.isnan(original), 3, original) - shown
    found = values_of(measure(evidence))
    if len(gaps):
        assert found["sum_of_squares"] == pytest.approx((gaps**2).sum())
        assert found["mean_absolute_error"] == pytest.approx(np.abs(gaps).mean())
    else:
        assert "sum_of_squares" not in found
    if not np.isnan(filled).all():
        assert found["sum_of_squares_filled"] == pytest.approx(np.nansum(filled**2), abs=1e-6)
    distortion = np.abs(np.nan_to_num(original) - np.nan_to_num(shown)).sum()
    assert found["total_distortion"] == pytest.approx(distortion, abs=1e-6)
    assert found["ratings_shown"] == pytest.approx(len(gaps) / evidence.original.nnz)
    assert found["entries_added"] == (~np.isnan(shown)).sum() - (~np.isnan(original)).sum()
    rated = {(evidence.truth[user], item) for user, item in zip(*np.nonzero(~np.isnan(everything)), strict=True)}
    used = np.unique(evidence.truth[gathered])
    cells = {(row, item) for item, row in zip(*np.nonzero(~np.isnan(low)), strict=True) if row in used}
    assert found["cells_added"] == len(cells - rated)
    assert found["entries_of_groups"] == len(cells)


def test_chunks_change_nothing(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = build().evidence
    whole = values_of(measure(evidence, threads=1))
    monkeypatch.setattr(candidates, "_CHUNK", 300)
    monkeypatch.setattr(metrics, "_RATINGS_AT_ONCE", 100)
    parts = values_of(measure(evidence, threads=3))
    assert parts == {name: pytest.approx(value, rel=1e-9) for name, value in whole.items()}
    users = np.repeat(np.arange(evidence.original.n_users), np.diff(evidence.original.indptr))
    mae, _, covered = shown_errors(evidence, users, evidence.original.items, evidence.original.values)
    assert (mae, covered) == (pytest.approx(whole["mean_absolute_error"]), 1)


def test_vectors_say_what_their_cells_say() -> None:
    rng = np.random.default_rng(3)
    original = np.where(rng.random((40, 30)) < 0.3, rng.integers(1, 6, (40, 30)), NAN)
    truth = (np.arange(40) // 8).astype(np.int32)
    vectors = ShownVectors(
        sizes=np.bincount(truth),
        group_levels=rng.normal(0, 0.5, 5).astype(np.float32),
        group_factors=rng.normal(0, 0.5, (5, 3)).astype(np.float32),
        item_levels=np.where(np.arange(30) < 28, rng.normal(3, 1, 30), NAN).astype(np.float32),
        item_factors=rng.normal(0, 0.5, (30, 3)).astype(np.float32),
        scale=(1.0, 5.0),
    )
    shown = vectors.columns(np.arange(30))[0]
    of_cells = evidence_of(original, shown.T, truth)
    of_vectors = replace(of_cells, shown=vectors)
    assert values_of(measure(of_vectors)) == pytest.approx(values_of(measure(of_cells)))


SPACES = [
    ({"metric": "filled"}, "z-scores by item of the ratings, filled with the middle of the scale"),
    ({"metric": "filled", "fill": "mean"}, "z-scores by item of the ratings, filled with the mean of all ratings"),
    ({"metric": "filled", "fill": "prediction"}, "z-scores by item of the ratings, filled with the prediction"),
    ({"metric": "preference"}, "preferences, the factors alone"),
    ({}, "predicted ratings"),
    (
        {"method": "k_likeness"},
        "the artifact table, where not rated is 0; method k_likeness looks at: the artifact table",
    ),
    ({"method": "epsilon"}, "predicted ratings; method epsilon looks at: sets of rated items, ratings"),
]


@pytest.mark.parametrize(("settings", "space"), SPACES)
def test_closeness_is_measured_where_the_groups_were_made(
    publish_to: Callable[..., Published], sample: Path, settings: dict[str, str], space: str
) -> None:
    published = publish_to(sample, k=5, **settings)
    with duckdb.connect() as con:
        con.execute(f"attach '{published.work_database}' as work (read_only)")
        con.execute(f"attach '{published.folder / 'release.duckdb'}' as release (read_only)")
        evidence = read_evidence(con, "work", "release", published.audit.parameters, vectors=True)
    users = evidence.gathered
    assert evidence.space == space
    assert evidence.vectors is not None
    if settings.get("method") == "k_likeness":
        # Each column of the space is an item's ratings, 0 where there is none.
        table = np.zeros((evidence.original.n_users, evidence.original.n_items))
        rows = np.repeat(np.arange(len(table)), np.diff(evidence.original.indptr))
        table[rows, evidence.original.items] = evidence.original.values
        of_items = {tuple(column) for column in table[users].T.tolist()}
        assert {tuple(column) for column in evidence.vectors[users].T.tolist()} <= of_items
        assert evidence.vectors.shape[1] > 1
    elif settings.get("metric") == "filled":
        assert evidence.preferences is not None
        middle = (evidence.scale.low + evidence.scale.high) / 2
        by = {"mean": float(evidence.original.values.mean(dtype=np.float64)), "prediction": evidence.preferences}
        assert np.array_equal(
            evidence.vectors, filled_scores(evidence.original, fill=by.get(settings.get("fill", ""), middle))
        )
    found = measure(evidence)
    values = values_of(found)
    assert values["armse_preferences"] == pytest.approx(armse(evidence.vectors[users], evidence.groups[users]))
    assert values["maximal_radius"] == pytest.approx(maximal_radius(evidence.vectors[users], evidence.groups[users]))
    assert [metric.about.endswith(f": {space}") for metric in found if metric.metric == "maximal_radius"] == [True]


# Real data -------------------------------------------------------------------------------------------------------


def test_loss_of_microaggregation_is_that_of_the_paper(build: Build, data_dir: Path) -> None:
    # Casino et al., table II, k = 10: SSE 120 thousand, over all cells, with 3 where a user has not rated.
    built = build(
        data_dir / "ml-100k" / "u.data",
        k=10,
        method="mdav",
        metric="filled",
        homogenize="microaggregated",
        refine=False,
        solver="none",
    )
    assert values_of(measure(built.evidence))["sum_of_squares_filled"] == pytest.approx(120_400, rel=0.001)
    assert built.mart["sum_of_squares"] > 0
