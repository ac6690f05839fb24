"""Groups that are made of whole groups of another release."""

import numpy as np
import pytest

from kgather._errors import InputError, PromiseError
from kgather._methods import Users
from kgather._settings.publication import PublishSettings
from kgather._steps.gathering import gather_beside, gather_groups
from kgather.udfs.preferences.model import Preferences

N, ITEMS, RANK = 90, 12, 2


def users(k: int, method: str) -> Users:
    rng = np.random.default_rng(5)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    def no_ratings() -> None:
        raise AssertionError

    return Users(
        n=N,
        read_ratings=no_ratings,  # type: ignore[arg-type]
        preferences=Preferences(draw(N), draw(N, RANK), draw(ITEMS), draw(ITEMS, RANK)),
        artifacts=np.empty((0, 0)),
        levels=np.full(N, k, dtype=np.int32),
        sensitive=np.empty((N, 0)),
        sensitive_names=[],
        identifying=np.ones(ITEMS, dtype=bool),
        scale=(1, 5),
        asked=PublishSettings(k=k, method=method),
        threads=1,
    )


@pytest.mark.parametrize("method", ["bkg", "mdav", "bounded_t_means"])
@pytest.mark.parametrize("k", [4, 11, 20])
def test_every_group_of_the_other_release_is_whole_in_one_of_k(method: str, k: int) -> None:
    origins = np.repeat(np.arange(100, 118), 5)
    origins[:1] = 101  # one of four, one of six
    origins = np.random.default_rng(1).permutation(origins)
    asked = users(k, method)
    found = gather_groups(asked, asked.asked.of_method, asked.asked.options, origins).groups  # type: ignore[attr-defined]
    assert found.shape == (N,)
    assert min(np.bincount(found)) >= k
    for origin in np.unique(origins):
        assert len(np.unique(found[origins == origin])) == 1
    # The same for the same seed, and for other numbers of the other release's groups in the same order.
    again = users(k, method)
    same = gather_groups(again, again.asked.of_method, again.asked.options, origins * 3).groups  # type: ignore[attr-defined]
    assert (same == found).all()


def test_the_mean_of_a_set_is_that_of_its_members() -> None:
    asked = users(4, "mdav")
    of_user = np.arange(N) % 9
    means = asked.means(of_user, np.bincount(of_user), 2)
    assert asked.preferences is not None
    assert means.preferences is not None
    for place in range(9):
        members = of_user == place
        assert np.isclose(means.preferences.user_level[place], asked.preferences.user_level[members].mean(), atol=1e-6)
        assert np.allclose(
            means.preferences.user_factors[place], asked.preferences.user_factors[members].mean(axis=0), atol=1e-6
        )
    with pytest.raises(InputError, match="looks at users' ratings"):
        means.read_ratings()


def test_too_few_groups_for_one_of_k_are_refused() -> None:
    asked = users(50, "mdav")
    with pytest.raises(InputError, match="has 3 groups, and a group of k = 50 is made of 5 of them"):
        gather_groups(asked, asked.asked.of_method, asked.asked.options, np.repeat([1, 2, 3], [10, 40, 40]))  # type: ignore[attr-defined]


def test_groups_that_stay_are_kept_and_new_ones_put_together_among_themselves() -> None:
    asked = users(11, "mdav")
    origins = np.repeat(np.arange(18), 5)
    kept = np.where(origins < 12, origins // 4 + 7, -1)

    def gathered(kept: np.ndarray, origins: np.ndarray, least: int = 13) -> np.ndarray:
        return gather_beside(asked, asked.asked.of_method, asked.asked.options, kept, least, origins).groups  # type: ignore[attr-defined]

    found = gathered(kept, origins)
    assert (found[kept >= 0] == kept[kept >= 0] - 7).all()
    assert (found[kept < 0] == gathered(kept, origins)[kept < 0]).all()
    new = np.bincount(found[kept < 0])[3:]
    assert min(new) >= 13
    for origin in range(12, 18):
        assert len(np.unique(found[origins == origin])) == 1
    # Enough people in fewer groups than one of k would take, if all were as small as the smallest.
    few = np.where(origins < 12, origins, np.where(origins < 13, 12, 13))
    assert set(gathered(kept, few)[kept < 0]) == {3}
    with pytest.raises(PromiseError, match="1 groups of the release that this one is within are in two groups"):
        gathered(np.where(np.arange(N) == 0, 8, kept), origins)
