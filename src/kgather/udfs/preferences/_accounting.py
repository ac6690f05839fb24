"""What Gaussian noise costs in differential privacy, and the noise itself.

All measurements here add Gaussian noise to a sum over users. One with L2 sensitivity s and noise of standard deviation
sigma costs rho = s^2 / (2 sigma^2) of zero-concentrated differential privacy (Bun and Steinke 2016), the same as
mu-Gaussian differential privacy with mu^2 = 2 rho (Dong, Roth and Su 2022). Both add up: the sum of all rho of
adaptive measurements is the rho of them together. Which measurements are made may be chosen from the outcome of the
first, if for each outcome those that follow cost the same together. From rho to (epsilon, delta) there are two ways,
which hold in both directions of add-or-remove:

- `epsilon_of`, `delta_of`, `rho_of`: the curve of Gaussian mechanisms, exact for one and true of any number of them,
  delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu) (Balle and Wang 2018, Theorem 8; Dong, Roth
  and Su, Corollary 2.13 and Theorem 3.2). It needs all charges to be Gaussian, as they are here.
- `zcdp_epsilon_of`: true of any rho-zCDP, so also where other mechanisms are added to these (Canonne, Kamath and
  Steinke 2020, Proposition 12 with the best alpha). It is larger.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.options import whole

MOST_EPSILON = 500.0  # e^epsilon is a finite number with room to spare
LEAST_DELTA = 1e-15  # below, the difference that makes delta is rounding
_HALVINGS = 200
_SAFE = 1.0 - 1e-9  # of a rho found by halving: rounding is on the side of privacy


@dataclass(frozen=True)
class Charge:
    """A measurement and what it cost.

    what: what was measured. sensitivity: how far, in L2, one user with all ratings can move the sum. deviation:
    standard deviation of the Gaussian noise added to each number of the sum, in the sum's unit. numbers: how many.
    """

    what: str
    sensitivity: float
    deviation: float
    numbers: int

    @property
    def rho(self) -> float:
        """Zero-concentrated differential privacy that was spent."""
        return self.sensitivity**2 / (2.0 * self.deviation**2)


def delta_of(rho: float, epsilon: float) -> float:
    """The smallest delta at epsilon >= 0 of Gaussian measurements that cost rho > 0 together."""
    mu = math.sqrt(2.0 * rho)
    return max(_phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * _phi(-mu / 2 - epsilon / mu), 0.0)


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest epsilon at delta of Gaussian measurements that cost rho together, to rounding from above."""
    if rho <= 0.0 or delta_of(rho, 0.0) <= delta:
        return 0.0
    low, high = 0.0, MOST_EPSILON
    if delta_of(rho, high) > delta:
        return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(rho, middle) > delta else (low, middle)
    return high


def rho_of(epsilon: float, delta: float) -> float:
    """The rho that Gaussian measurements may cost together at (epsilon, delta), to rounding from below."""
    low, high = 0.0, 2.0 * MOST_EPSILON
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(middle, epsilon) > delta else (middle, high)
    return low * _SAFE


def zcdp_epsilon_of(rho: float, delta: float) -> float:
    """An epsilon at delta that holds for anything that is rho-zCDP, min over alpha > 1 of
    alpha rho + (ln(1 / delta) - ln alpha) / (alpha - 1) + ln(1 - 1 / alpha).
    """
    if rho <= 0.0:
        return 0.0
    # every alpha gives a true epsilon; in x = ln(alpha - 1) there is one minimum
    low, high = -12.0, 40.0
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(_HALVINGS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if _renyi_epsilon(rho, delta, left) < _renyi_epsilon(rho, delta, right):
            high = right
        else:
            low = left
    return max(_renyi_epsilon(rho, delta, (low + high) / 2), 0.0)


def _renyi_epsilon(rho: float, delta: float, x: float) -> float:
    less = math.exp(x)
    alpha = 1.0 + less
    return alpha * rho - (math.log(delta) + math.log(alpha)) / less + x - math.log(alpha)


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


class Noise:
    """Gaussian noise that depends on a secret and the options alone, a stream of its own for each measurement.

    The numbers are doubles: Philox, keyed by a hash of the secret, the options and the measurement's name, and numpy's
    normal distribution. Doubles are not real numbers. Which sums are possible can show in the last bits of sum plus
    noise (Mironov 2012), so the proof, which is about real numbers, wants released values rounded far above that;
    rounding takes nothing away from the guarantee. Another version of numpy may draw other numbers.

    secret: bytes, not empty, or a whole number from 0 to 2^256 - 1. options: other options have other noise.
    Raises InputError for another secret.
    """

    def __init__(self, secret: bytes | int, options: str) -> None:
        if isinstance(secret, bytes):
            if not secret:
                msg = "the noise seed must not be empty."
                raise InputError(msg)
            kept = b"b" + secret
        else:
            kept = b"i" + whole("the noise seed", secret, 0, (1 << 256) - 1).to_bytes(32, "big")
        self._key = hashlib.sha512(kept).digest()
        self._options = options

    def draw(self, what: str, deviation: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """float64 of that shape and standard deviation, mean 0, the same for the same secret, options and name."""
        named = f"{self._options}\n{what}".encode()
        key = hashlib.blake2b(named, key=self._key, digest_size=16).digest()
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big")))
        noise = generator.standard_normal(shape)
        noise *= deviation
        return noise
