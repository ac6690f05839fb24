"""Made-up preferences of any number of users, always the same ones: twelve tastes of unequal size, heavy tails."""

import numpy as np

_TASTES = 12


def made_up_preferences(n: int, d: int = 10, seed: int = 7) -> np.ndarray:
    """float64[n, d], every column with mean 0 and population standard deviation 1."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(0.0, 1.0, (_TASTES, d))
    shares = rng.dirichlet(np.full(_TASTES, 2.0))
    taste = rng.choice(_TASTES, size=n, p=shares)
    rows = tastes[taste] + 0.7 * rng.standard_t(6, (n, d))
    return np.ascontiguousarray((rows - rows.mean(axis=0)) / rows.std(axis=0))
