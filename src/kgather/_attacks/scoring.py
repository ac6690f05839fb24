"""Scoring: the attack that found people in the Netflix Prize data (Narayanan and Shmatikov 2008, section 4).

Candidates that look the same are one, so that their equal scores do not hide how far they stand out from the others.
Gaps are on a scale of width 4: the paper's constants belong to ratings from 1 to 5.
"""

import numpy as np

from kgather._attacks.guesses import Guesses
from kgather._attacks.results import AttackResult
from kgather.udfs.attacking._scoring import SCORING

ECCENTRICITY = 1.5


def scoring(guesses: Guesses, *, seed: int = 0, eccentricity: float = ECCENTRICITY) -> AttackResult:
    """Take the best score; believe in it where it is `eccentricity` standard deviations above the second."""
    matched = guesses.stands_out(SCORING) >= eccentricity
    details = {
        "best_is_right": float(np.mean(guesses.right(SCORING))) if len(matched) else 0.0,
        "rightly_matched": float(np.mean(guesses.right(SCORING) * matched)) if len(matched) else 0.0,
    }
    return guesses.result("scoring", guesses.known.knowledge.ratings, SCORING, seed, matched, details)
