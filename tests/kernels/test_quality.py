import numpy as np
import pytest

from kgather._errors import InputError
from kgather.udfs.measuring.quality import armse, maximal_radius, sse


def test_by_hand() -> None:
    # group 4: 0 and 2 around 1; group 9: (0, 0), (0, 3), (0, 6) around (0, 3)
    vectors = np.array([[0, 0], [0, 0], [0, 3], [2, 0], [0, 6]], dtype=np.float32)
    groups = np.array([4, 9, 9, 4, 9])
    assert sse(vectors, groups) == pytest.approx(2 + 18)
    assert armse(vectors, groups) == pytest.approx((1 + np.sqrt(6)) / 2)
    assert maximal_radius(vectors, groups) == pytest.approx(3)
    assert maximal_radius(vectors[::-1], np.zeros(5, int)) == pytest.approx(np.sqrt(0.4**2 + 4.2**2))


def test_groups_of_one_lose_nothing() -> None:
    vectors = np.random.default_rng(0).standard_normal((50, 3))
    assert sse(vectors, np.arange(50)) == 0
    assert armse(vectors, np.arange(50)) == 0
    assert maximal_radius(vectors, np.arange(50)) == 0


@pytest.mark.parametrize(
    ("vectors", "groups"),
    [
        (np.zeros((3, 2)), np.zeros(2, int)),
        (np.zeros(3), np.zeros(3, int)),
        (np.zeros((3, 2)), np.zeros(3)),
        (np.zeros((0, 2)), np.zeros(0, int)),
    ],
)
def test_refuses(vectors: np.ndarray, groups: np.ndarray) -> None:
    for measure in (sse, armse, maximal_radius):
        with pytest.raises(InputError):
            measure(vectors, groups)
