"""Two releases that follow each other: what they promise together, and who came and left between them."""

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shadow_data import UNPROTECTED, ratings

from kgather._attacks import run
from kgather._attacks.attacked import Attacked
from kgather._attacks.chain import Chain
from kgather._attacks.intersection import Second
from kgather._attacks.pairs import pairs
from kgather._attacks.roc import auc_among_alike
from kgather._attacks.runner import WHEN_NAMED, Extra
from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence, Scale
from kgather._evaluation.in_memory import Made, make
from kgather._settings.publication import PublishSettings
from kgather.udfs.ratings.matrix import RatingMatrix

K, PEOPLE, OLD = 5, 240, 200
COMPANIONS = ("", "_1", "_half", "_rest")
Pair = tuple[Attacked, Second]


def _evidence(table: RatingMatrix, made: Made, asked: PublishSettings, users: range) -> Evidence:
    return Evidence(
        original=table,
        shown=made.shown,
        truth=made.groups,
        groups=made.groups,
        shown_items=~np.isnan(made.shown.item_levels),
        items=pa.array(range(table.n_items)),
        scale=Scale(1.0, 5.0, 1.0),
        parameters=asked.model_dump(mode="json") | {"homogenize": asked.form},
        group_ids=np.arange(len(made.shown.sizes)),
        user_ids=pa.array(users),
    )


def chain(second: PublishSettings | None = None, *, kept: bool = True, **settings: Any) -> tuple[Evidence, Evidence]:
    """A release of 200 people, and one that has 40 more."""
    table = ratings(n=PEOPLE)
    asked = PublishSettings(**({"k": K, "history": True, "reserve": 0} | settings))
    few = table.with_users(np.arange(OLD))
    one = make(few, asked, scale=(1.0, 5.0), secret=b"one" * 12, threads=1)
    stay = np.full(PEOPLE, -1, dtype=np.int64)
    stay[:OLD] = one.groups if kept else -1
    after = second or asked
    two = make(table, after, scale=(1.0, 5.0), secret=b"two" * 12, last=one.shown, kept=stay, threads=1)
    return _evidence(few, one, asked, range(OLD)), _evidence(table, two, after, range(PEOPLE))


def both(releases: tuple[Evidence, Evidence]) -> Pair:
    one, two = (Attacked.of(each) for each in releases)
    assert releases[0].user_ids is not None
    assert releases[1].user_ids is not None
    return one, Second.of(one, two, releases[0].user_ids, releases[1].user_ids)


@pytest.fixture(scope="module")
def unprotected() -> Pair:
    return both(chain(**UNPROTECTED))


def test_groups_that_stay_in_memory_stay() -> None:
    first, second = chain()
    joint = {tuple(pair) for pair in np.stack([first.groups, second.groups[:OLD]], axis=1).tolist()}
    assert len(joint) == len(first.group_sizes)
    assert not set(second.groups[:OLD].tolist()) & set(second.groups[OLD:].tolist())
    assert second.group_sizes.min() >= K


def test_a_reserve_is_gathered_in_memory_too() -> None:
    first, _ = chain(reserve=3)
    assert first.group_sizes.min() >= K + 3


def test_a_chain_that_is_kept_says_so() -> None:
    found = Chain.of(*both(chain()))
    assert (found.promised, found.measured >= K, found.other_settings, found.broken) == (K, True, (), ())


def test_a_release_that_does_not_follow_breaks_the_promise() -> None:
    """Of two that were made anew, one is of a chain: people's two groups have fewer than k in common."""
    found = Chain.of(*both(chain(kept=False)))
    assert found.promised == K > found.measured >= 1
    assert "the promise over both releases is not kept: 5 people" in found.broken[0]
    report = run(chain(kept=False)[0], known=(4,), attacks=["label"], extra=Extra(second=both(chain(kept=False))[1]))
    assert report.chain is not None
    assert report.as_dict()["chain"]["broken"] == list(found.broken)


def test_two_releases_that_follow_nothing_promise_nothing() -> None:
    found = Chain.of(*both(chain(kept=False, history=False)))
    assert (found.promised, found.broken) == (None, ())
    assert found.measured < K


def test_two_kinds_of_one_chain_are_said() -> None:
    found = Chain.of(*both(chain(PublishSettings(k=K, history=True, reserve=0, item_noise=4.0, outliers=0.9))))
    assert found.other_settings == ("item_noise", "outliers")
    assert "two kinds (item_noise, outliers)" in found.broken[0]


def test_who_came_and_who_left_are_told_the_better_the_more_companions_are_known(unprotected: Pair) -> None:
    result = pairs(*unprotected, asked=48, threads=2)
    found = result.details
    assert {f"{kind}{end}" for kind in ("came", "left") for end in COMPANIONS} < set(found)
    assert {f"controlled{end}" for end in COMPANIONS[1:]} < set(found)
    assert found["came_rest"] > found["came"] + 0.02
    assert found["left_rest"] > found["left"] + 0.05 > 0.6
    # Who knows all others subtracts two releases; without noise little hides what is left.
    assert found["items_known"] > 0.7
    assert 0.4 < found["items"] < 0.6
    assert (found["pairs"], found["tested"], found["people"]) == (48, 16, PEOPLE)


def test_noise_hides_what_a_newcomer_rated_from_who_knows_all_others() -> None:
    found = pairs(*both(chain(item_noise=20.0)), asked=24, threads=2).details
    assert found["items_known"] < 0.62


def test_pairs_hang_on_the_seed_and_not_on_threads(unprotected: Pair) -> None:
    one = pairs(*unprotected, asked=12, seed=1, threads=1).details
    assert one == pairs(*unprotected, asked=12, seed=1, threads=2).details
    assert one != pairs(*unprotected, asked=12, seed=2, threads=2).details


def test_pairs_run_if_named_and_need_a_second_release(unprotected: Pair) -> None:
    assert "pairs" in WHEN_NAMED
    first, second = unprotected
    with pytest.raises(InputError, match="pairs needs a second release"):
        run(first.evidence, attacks=["pairs"])
    report = run(first.evidence, attacks=["pairs"], shadows=12, extra=Extra(second=second), original_too=False)
    assert [result.attack for result in report.results] == ["pairs"]
    assert {best.measure for best in report.best()} == {"came", "left", "items"}


def test_too_few_people_are_refused() -> None:
    first, second = chain()
    few = dataclasses.replace(first, truth=np.where(np.arange(OLD) < 20, first.truth, -1))
    one, two = Attacked.of(few), Attacked.of(second)
    with pytest.raises(InputError, match="needs more people"):
        pairs(one, Second.of(one, two, few.user_ids, second.user_ids), asked=12)


def test_items_of_a_newcomer_are_told_among_items_of_as_many_raters(unprotected: Pair) -> None:
    """That people rate what many rate is no find."""
    raters = np.array([1, 1, 1, 1, 100, 100, 100, 100])
    own = np.array([False, False, False, True, True, True, True, False])
    assert auc_among_alike(raters.astype(float), own, raters) == 0.5
    assert auc_among_alike(np.array([0, 0, 0, 1, 3, 3, 3, 2.0]), own, raters) == 1.0
    assert np.isnan(auc_among_alike(raters.astype(float), np.ones(8, dtype=bool), raters))
    first, second = unprotected
    [changed] = run(first.evidence, attacks=["changes"], extra=Extra(second=second), original_too=False).results
    assert 0.35 < changed.details["newcomer_auc"] < 0.65
