"""From what people look like in releases with and without them to a score for releases that were not seen before.

The likelihood ratio of Carlini, Chien, Nasr, Song, Terzis and Tramer 2022: what a number of a person is in releases
with and without the person is taken to be normal. Online attackers know both distributions of each person; offline ones
know that of releases without the person, and what being in changes for other people. Several numbers are taken to be
normal together, with the same correlations for all people. With few shadows, what is learnt of a person is noise, and
is drawn to what holds for all.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

_STEADY = 1e-3  # added to correlations, so that numbers that say the same do no harm
_TYPICAL = 8.0  # releases that a person's variance counts beside those learnt from, of the typical variance at most ...
_LEAST = 0.1  # ... and of this share of it at least: what did not vary so far may vary yet


@dataclass(frozen=True)
class Learnt:
    """What q numbers of n people are like. inside, outside float64[n, q]: their means where the person is in the data
    and where not. spread float64[n, q]: standard deviations. shift float64[n, q]: how many standard deviations being in
    changes, and usual float64[q]: on average over people. precision float64[q, q]: the inverse of the correlations.
    """

    inside: NDArray[np.float64]
    outside: NDArray[np.float64]
    spread: NDArray[np.float64]
    shift: NDArray[np.float64]
    usual: NDArray[np.float64]
    precision: NDArray[np.float64]

    @classmethod
    def of(cls, numbers: NDArray[np.float64], member: NDArray[np.bool_]) -> Self:
        """numbers float64[s, n, q] of s releases, each person in half of them: member bool[s, n]. O(s n q^2)."""
        releases, _, q = numbers.shape
        times = np.maximum(member.sum(axis=0), 1)[:, None]
        others = np.maximum((~member).sum(axis=0), 1)[:, None]
        inside = np.einsum("snq,sn->nq", numbers, member.astype(np.float64)) / times
        outside = np.einsum("snq,sn->nq", numbers, (~member).astype(np.float64)) / others
        gaps = numbers - np.where(member[:, :, None], inside, outside)
        own = np.einsum("snq,snq->nq", gaps, gaps)
        typical = own.mean(axis=0) / releases
        drawn = np.clip(own / releases, _LEAST * typical, typical)
        spread = np.sqrt((own + _TYPICAL * drawn) / (releases - 2 + _TYPICAL) + 1e-18)
        flat = (gaps / spread).reshape(-1, q)
        scale = np.sqrt(np.maximum((flat**2).mean(axis=0), 1e-12))
        flat /= scale
        correlations = flat.T @ flat / len(flat)
        raw = (inside - outside) / spread
        usual = raw.mean(axis=0)
        seen = raw.var(axis=0)
        # Of how differently being in shows in people, so much is no more than the noise of few releases.
        noise = (1.0 / times + 1.0 / others).mean()
        kept = np.clip((seen - noise) / np.maximum(seen, 1e-12), 0.0, 1.0)
        return cls(
            inside,
            outside,
            spread,
            usual + kept * (raw - usual),
            usual,
            np.linalg.inv(correlations + _STEADY * np.eye(q)),
        )

    def online(self, numbers: NDArray[np.float64], chosen: list[int]) -> NDArray[np.float64]:
        """The logarithm of the likelihood ratio by the chosen numbers, float64[s, n]; numbers float64[s, n, q]."""
        middle = (self.inside + self.outside)[:, chosen] / 2
        return self._score(numbers, chosen, middle, self.shift[:, chosen])

    def offline(self, numbers: NDArray[np.float64], chosen: list[int]) -> NDArray[np.float64]:
        """The same of who has no release with the person: being in changes for everybody what it does on average."""
        shift = np.broadcast_to(self.usual, self.shift.shape)[:, chosen]
        middle = self.outside[:, chosen] + shift * self.spread[:, chosen] / 2
        return self._score(numbers, chosen, middle, shift)

    def _score(
        self,
        numbers: NDArray[np.float64],
        chosen: list[int],
        middle: NDArray[np.float64],
        shift: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        among = np.linalg.inv(np.linalg.inv(self.precision)[np.ix_(chosen, chosen)])
        weights = shift @ among
        return np.einsum("snq,nq->sn", (numbers[..., chosen] - middle) / self.spread[:, chosen], weights)
