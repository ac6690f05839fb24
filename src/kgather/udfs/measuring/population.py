"""How many people of a population look like somebody in a sample of it.

Of a class of f people in a sample that holds the share p of a population, the population has F >= f, and F is taken for
negative binomial given f (Benedetti and Franconi, Statistical and technological solutions for controlled data
dissemination, 1998; Franconi and Polettini, Individual risk estimation in mu-Argus, 2004). The chance to pick the right
one of F people is E[1/F | f].
"""

import numpy as np
from numpy.typing import NDArray

from kgather.udfs._shared.options import real

_NODES = 256
_MANY = 200


def chance_of_one(sizes: NDArray[np.integer], fraction: float) -> NDArray[np.float64]:
    """E[1/F | f] for classes of f people, float64 of the shape of `sizes`: whole numbers above 0.

    fraction: p, the share of the population that is in the sample, above 0 and at most 1; at 1 it is 1/f.
    Exact up to rounding for f up to 200, beyond by p / (f - q) with q = 1 - p, which is off by less than one part in f.
    Raises InputError where the fraction is out of its range.
    """
    p = real("sampling_fraction", fraction, 0.0, 1.0, above=True)
    f = np.asarray(sizes, dtype=np.float64)
    q = 1.0 - p
    if q < 1e-9:
        return 1.0 / f
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    at = (nodes + 1) / 2
    # E = integral of p w^(f-1) / (p + q w) over w in 0..1; with p + q w = p^(1-z) it is smooth, however small p is.
    w = p / q * np.expm1(-at * np.log(p))
    small = np.minimum(f, _MANY)
    exact = -np.log(p) * p / q * (weights / 2 * w ** (small[..., None] - 1)).sum(axis=-1)
    return np.asarray(np.where(f <= _MANY, exact, p / (f - q)))
