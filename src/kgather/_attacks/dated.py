"""Who knows when somebody rated, too.

The ratings themselves have dates, and with them people are found by fewer ratings (Narayanan and Shmatikov 2008). A
release has none, so there is nothing to compare a date with: what is left is the best use of the ratings.
"""

import dataclasses
from functools import partial

import numpy as np

from kgather._attacks.attacked import Attacked
from kgather._attacks.auxiliary import Known
from kgather._attacks.guesses import Kernel, Piece, look
from kgather._attacks.posterior import Posterior
from kgather._attacks.results import AttackResult
from kgather._attacks.scoring import ECCENTRICITY
from kgather._evaluation.candidates import ShownCells
from kgather.udfs.attacking._dated import judge_dated


def dated(attacker: Posterior, known: Known, *, seed: int = 0) -> AttackResult:
    """Attack a release, which shows no dates: the same as `posterior`."""
    found = attacker.ratings(known, seed=seed)
    return dataclasses.replace(found, attack="dated", knowledge=_said(known))


def dated_on_original(plain: Attacked, known: Known, *, seed: int = 0, threads: int | None = None) -> AttackResult:
    """Attack the ratings, whose days are in the evidence: scoring, with days beside the ratings.

    plain: the original as the release; see `attacked.original_of`. Days are known exactly.
    """
    original, days = plain.evidence.original, plain.evidence.days
    assert days is not None
    # People whose ratings are alike differ in their days, which stand where ranges have their ends.
    indptr, raters, values = original.transpose()
    _, _, when = dataclasses.replace(original, values=days).transpose()
    sizes = np.ones(original.n_users, dtype=np.int64)
    plain = Attacked.of(dataclasses.replace(plain.evidence, shown=ShownCells(sizes, indptr, raters, values, when)))
    entries = np.empty(known.items.shape, dtype=np.int64)
    for t, user in enumerate(known.users):
        start, end = original.indptr[user], original.indptr[user + 1]
        entries[t] = start + np.searchsorted(original.items[start:end], known.items[t])

    def judge(piece: Piece) -> Kernel:
        return partial(
            judge_dated,
            piece.low,
            piece.high,
            piece.places,
            piece.ratings,
            days[entries[piece.targets]],
            plain.weights[piece.items],
            plain.unit,
            *piece.truth,
            piece.found[:, 0],
        )

    guesses = look(plain, known, 1, judge, threads)
    return guesses.result("dated", _said(known), 0, seed, guesses.stands_out(0) >= ECCENTRICITY)


def _said(known: Known) -> str:
    return f"{known.knowledge.ratings} with dates"
