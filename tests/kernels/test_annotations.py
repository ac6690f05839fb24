"""Arrays are of the types that signatures say: in kernels, and where the private packages pass arrays around."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from annotation_data import Watch, modules_of
from kernel_data import made_up, matrix_of

import kgather
from kgather import _attacks, _evaluation, _steps, _verify, udfs
from kgather._attacks import runner
from kgather._attacks.attacked import Attacked
from kgather._attacks.intersection import Second
from kgather._attacks.membership import Others
from kgather._attacks.row_order import Members
from kgather._evaluation.candidates import ShownCells, ShownVectors
from kgather._evaluation.evidence import Evidence, Scale
from kgather._evaluation.metrics import measure, shown_errors
from kgather._evaluation.recommenders import recommender_errors
from kgather._guard import atoms, outcomes, partition
from kgather._methods import Users, built_in
from kgather._settings.publication import PublishSettings
from kgather._steps.gathering import gather
from kgather.udfs._shared import ordering
from kgather.udfs.checking import item_sets, satisfaction
from kgather.udfs.diversity import item_diversity, sensitive_diversity
from kgather.udfs.gathering.blocks import gather_in_blocks
from kgather.udfs.measuring import generalization_loss, quality, query_error
from kgather.udfs.preferences import learning, metric, model
from kgather.udfs.preferences.filled import filled_ratings, filled_scores
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix
from kgather.udfs.refining.refine import refine

N, M, K = 60, 20, 3
RATED = """
    create table r as
    select user_id, item_id, 1 + (user_id * item_id) % 5 as rating
    from range(40) as users (user_id), range(9) as items (item_id)
    where (user_id + item_id) % 4 > 0
"""


@pytest.fixture
def watch() -> Watch:
    """Looks at kernels, attacks, evaluation, steps, verification and the guard's partitions."""
    packages = (udfs, _attacks, _evaluation, _steps, _verify, atoms, outcomes, partition)
    return Watch(module for package in packages for module in modules_of(package))


@pytest.fixture(scope="module")
def ratings() -> RatingMatrix:
    return matrix_of(made_up(N, M, 0.6, seed=5), N, M)


@pytest.fixture(scope="module")
def preferences(ratings: RatingMatrix) -> Preferences:
    return learning.learn(ratings, rank=3)


def users(ratings: RatingMatrix, preferences: Preferences, **options: object) -> Users:
    rng = np.random.default_rng(3)
    sensitive = rng.integers(0, 4, (N, 1)).astype(np.float64)
    sensitive[:5] = np.nan
    artifacts = rng.integers(1, 6, (N, 4)).astype(np.float64)
    artifacts[rng.random((N, 4)) < 0.2] = np.nan
    return Users(
        n=N,
        read_ratings=lambda: ratings,
        preferences=preferences,
        artifacts=artifacts,
        # BOKG knows two levels.
        levels=(
            np.where(rng.random(N) < 0.3, 1, K) if options.get("method") == "bokg" else rng.integers(1, 5, N)
        ).astype(np.int32),
        sensitive=sensitive,
        sensitive_names=["attribute"],
        identifying=np.arange(M) > 0,
        scale=(1.0, 5.0),
        # Not checked: what two settings say against each other is none of this test's business.
        asked=PublishSettings(k=K).model_copy(update=options),
        threads=2,
        on_artifacts=built_in()[str(options.get("method", "bkg"))].gathers_on == "artifacts",
    )


def gathered(chosen: Users) -> None:
    method = built_in()[chosen.asked.method]
    gather(chosen, method, method.options())


def evidence(ratings: RatingMatrix, preferences: Preferences, form: str) -> Evidence:
    """A release of groups of four that shows one user's ratings of each group, ranges, or predictions."""
    groups = np.arange(N, dtype=np.int32) // 4
    groups[-1] = -1
    sizes = np.bincount(groups[:-1])
    if form == "vectors":
        leaders = np.arange(0, N, 4)
        shown = ShownVectors(
            sizes,
            preferences.user_level[leaders],
            preferences.user_factors[leaders],
            preferences.item_level,
            preferences.item_factors,
            (1.0, 5.0),
        )
    else:
        cells = np.arange(0, len(sizes) * M, 2)
        low = 1.0 + cells % 4
        shown = ShownCells.from_cells(sizes, M, cells // M, cells % M, low, low + (form == "ranges"))
    return Evidence(
        original=ratings,
        shown=shown,
        truth=groups,
        groups=groups,
        shown_items=np.ones(M, dtype=np.bool_),
        items=pa.array(range(M)),
        scale=Scale(1.0, 5.0, 1.0),
        parameters={"k": K},
        group_ids=np.arange(len(sizes), dtype=np.int64) * 10,
        days=np.arange(ratings.nnz, dtype=np.float32),
    )


def test_a_wrong_annotation_is_found(ratings: RatingMatrix) -> None:
    watch = Watch(modules_of(udfs))

    def run() -> None:
        filled_ratings(RatingMatrix(N, M, ratings.indptr, ratings.items, ratings.values.astype(np.float64)), fill=3.0)

    assert "kgather.udfs.preferences.filled.filled_ratings(matrix).values" in {
        told.split(" is ")[0] for told in watch.over(run)
    }


def test_a_wrong_annotation_of_a_kernel_is_found() -> None:
    watch = Watch([ordering])

    def run() -> None:
        ordering.ascending(np.array([True, False]))

    assert "kgather.udfs._shared.ordering.ascending(values)" in {told.split(" is ")[0] for told in watch.over(run)}


@pytest.mark.parametrize("solver", ["als", "funk"])
def test_learning(watch: Watch, solver: str) -> None:
    def run() -> None:
        ratings = matrix_of(made_up(N, M, 0.6, seed=6), N, M)
        shuffled = tuple(part[::-1] for part in made_up(N, M, 0.6, seed=6))
        assert np.array_equal(matrix_of(shuffled, N, M).values, ratings.values)
        learnt = learning.learn(ratings, solver=solver, rank=3, threads=2, scale=(1, 5))
        again = model.from_table(model.to_table(learnt))
        metric.comparison_vectors(again)
        metric.comparison_vectors(again, "preference")
        filled_scores(ratings, fill=again)
        filled_scores(ratings.with_items(np.arange(M) > 2), fill=3.0)

    assert watch.over(run) == set()


@pytest.mark.parametrize("method", built_in())
def test_gathering(watch: Watch, ratings: RatingMatrix, preferences: Preferences, method: str) -> None:
    chosen = users(ratings, preferences, method=method, refine=method == "bkg")

    def run() -> None:
        gathered(chosen)

    assert watch.over(run) == set()


def test_gathering_otherwise(watch: Watch, ratings: RatingMatrix, preferences: Preferences) -> None:
    def run() -> None:
        gathered(users(ratings, preferences, method="mdav", metric="filled", block_size=20, refine=True))
        diverse = users(ratings, preferences, method="bkg", sensitive_l=2.0, sensitive_diversity="deviation")
        gathered(diverse.__class__(**(vars(diverse) | {"sensitive": np.arange(N * 1.0).reshape(N, 1)})))
        gathered(users(ratings, preferences, method="bokg", sensitive_l=2.0, metric="preference"))
        vectors = preferences.user_factors.astype(np.float64)
        groups = gather_in_blocks(vectors, K, lambda rows, k: np.arange(len(rows)) // k % (len(rows) // k))
        refine(vectors, groups, K, passes=2)

    assert watch.over(run) == set()


def test_checking(watch: Watch, ratings: RatingMatrix) -> None:
    rng = np.random.default_rng(1)

    def run() -> None:
        satisfaction.fewest_neighbours(ratings, 2.0, r=4.0, at_most=K, threads=2)
        satisfaction.least_deviation(ratings, rng.random((N, 2)), 2.0, r=4.0)
        for m in (1, 2, 3):
            item_sets.violations(ratings, m, K)

    assert watch.over(run) == set()


def test_diversity(watch: Watch, ratings: RatingMatrix) -> None:
    rng = np.random.default_rng(1)
    cells = (rng.integers(0, 6, 40).astype(np.int32), rng.integers(0, M, 40).astype(np.int32))

    def run() -> None:
        for b in (1, 2, 3):
            item_diversity.added_cells(cells, 6, ratings, b=b, l=2, random=rng)
            item_diversity.least_coverage(cells, 6, ratings, b=b)
        groups, values = np.arange(N) // 4, rng.integers(0, 5, (N, 2)).astype(np.float64)
        for kind, c in (("distinct", None), ("entropy", None), ("recursive", 2.0), ("deviation", None)):
            sensitive_diversity.least_diversity(groups, values, kind=kind, c=c)
            least = 1 if kind == "deviation" else 2
            sensitive_diversity.merge_until_diverse(rng.random((N, 3)), groups, values, kind=kind, l=least, c=c)

    assert watch.over(run) == set()


def test_measuring(watch: Watch) -> None:
    rng = np.random.default_rng(1)
    table, groups = rng.integers(1, 6, (N, 4)).astype(np.float64), np.arange(N) // 5

    def run() -> None:
        low, high = generalization_loss.class_ranges(table, groups)
        classes = generalization_loss.equivalence_classes(low, high, groups)
        generalization_loss.discernibility(classes)
        generalization_loss.average_class_size(classes, 5)
        generalization_loss.information_loss(low, high, groups, 5.0)
        quality.sse(table, groups)
        quality.armse(table, groups)
        domain = query_error.domain_of(table)
        truth = query_error.masks_of_ranges(table, table, domain)
        shown = query_error.masks_of_sets(table, groups, domain)
        for conjunction in (False, True):
            query_error.query_errors(truth, shown, table[:, 0], domain, attributes=2, conjunction=conjunction)

    assert watch.over(run) == set()


@pytest.mark.parametrize("form", ["cells", "ranges", "vectors"])
def test_attacks_and_metrics(watch: Watch, ratings: RatingMatrix, preferences: Preferences, form: str) -> None:
    released = evidence(ratings, preferences, form)
    ids = pa.array(range(N))
    outside = matrix_of(made_up(30, M, 0.6, seed=9), 30, M)

    def run() -> None:
        attacked = Attacked.of(released)
        extra = runner.Extra(
            members=Members(
                np.repeat(released.group_ids, 4)[:-1],
                ids.cast(pa.string()).to_numpy(False)[:-1].astype(str),
                released.group_ids,
            ),
            second=Second.of(attacked, Attacked.of(evidence(ratings, preferences, "cells")), ids, ids),
            others=Others.of(outside),
        )
        runner.run(released, known=(1, 4), targets=20, extra=extra, threads=2)
        runner.quick(released, threads=1)
        measure(released, threads=1)
        test = np.arange(10), np.arange(10), np.full(10, 3.0)
        shown_errors(released, *test)
        recommender_errors(released, test, rank=2)

    assert watch.over(run) == set()


def test_functions_of_sql(watch: Watch) -> None:
    def run() -> None:
        con = duckdb.connect()
        kgather.load(con)
        con.execute(RATED)
        con.execute("create table p as select unnest(kg_preferences(list(r)), recursive := true) from r")
        for method in ("bkg", "mdav", "bounded_t_means"):
            con.execute(f"select kg_gather(list(p), 4, p_method := '{method}') from p").fetchall()

    assert watch.over(run) == set()


def test_partitions(watch: Watch) -> None:
    values = np.arange(N) % 7 * 1.0
    values[3] = np.nan

    def run() -> None:
        column = partition.Column(values)
        whole = partition.Partition.whole(np.arange(N, dtype=np.int32)).with_column("x", column, K)
        for kind in (np.int8, np.int32):
            outcome = (np.arange(N) // 20).astype(kind)
            spread = whole.spread(outcome)
            codes = (np.arange(N) % 4).astype(np.int32)
            finer = whole.refined(spread, K, {"x": column}, diverse=[codes], l=2)
            finer.means("x", column, K)
            finer.units()
            finer.refined(finer.spread((np.arange(N) % 2).astype(kind)), K, {"x": column})

    assert watch.over(run) == set()
