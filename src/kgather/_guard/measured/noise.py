"""Noise of the discrete Gaussian, safe against attacks on floating point, from the randomness of the operating system.

It comes from OpenDP: exact sampling over whole numbers (Canonne, Kamath and Steinke 2020).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Noise = Callable[[int, float], NDArray[np.int64]]
"""Draws so many whole numbers, int64[n], of a standard deviation."""


def discrete_gaussian(count: int, sd: float) -> NDArray[np.int64]:
    """Draw from the discrete Gaussian, int64[count], about 25 microseconds each. sd: above 0."""
    if not count:
        return np.zeros(0, dtype=np.int64)
    from opendp.measurements import make_gaussian

    return np.asarray(make_gaussian(*_space(), sd)([0] * count), dtype=np.int64)


@cache
def _space() -> tuple[Any, Any]:
    """Vectors of whole numbers and their distance, of OpenDP. It is loaded when noise is drawn first, and of it only
    what is used: all of it would load other libraries, too. Its Gaussian is one of those whose proofs are still under
    review there."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
