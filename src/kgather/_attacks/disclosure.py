"""Exact ratings in the open: cells whose value is the rating of the one person behind them.

Homogeneity of Chang, Thompson, Wang and Yao 2010 (section 6), looked at cell by cell. No attacker needs to find anybody
for this: whoever knows the group of a person knows what is counted here.
"""

from functools import partial

import numpy as np

from kgather._attacks.attacked import PIECE_BYTES, Attacked, in_threads
from kgather._attacks.results import AttackResult
from kgather._forms import forms
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users
from kgather.udfs.attacking._rated_cells import (
    ALIKE,
    EXACT,
    FIELDS,
    NEAR,
    ONE_RATER,
    RATED,
    SHOWN,
    WORKED_OUT,
    by_item,
    count_cells,
)

_CELLS = 2_000_000_000  # looked at in full; beyond, items are sampled


def disclosure(attacked: Attacked, *, seed: int = 0, cells: int = _CELLS, threads: int | None = None) -> AttackResult:
    """Count cells. details, as shares of the shown cells: `exact`, those that show the rating of their only rater;
    `near`, those less than half a step off it; `one_rater`, those with one rater; `alike`, those whose several raters
    all gave the value shown; `worked_out`, of a microaggregated release those whose only rating follows from the value
    and the group's size. `exact_of_one_rater` is a share of the cells with one rater.

    At most `cells` cells are looked at, of items that the seed samples. O(cells + nnz).
    """
    evidence = attacked.evidence
    shown = np.flatnonzero(evidence.shown_items).astype(np.int64)
    n = len(evidence.shown.sizes)
    most = max(1, cells // max(n, 1))
    items = shown if len(shown) <= most else np.sort(order_users(shown, seed64(seed))[:most])
    places = np.full(evidence.original.n_items, -1, dtype=np.int32)
    places[items] = np.arange(len(items))
    original = evidence.original
    indptr, candidates, ratings = by_item(
        original.indptr, original.items, original.values, evidence.truth, places, len(items)
    )
    counts = np.zeros((len(items), FIELDS), dtype=np.int64)
    form = forms().get(str(evidence.parameters.get("homogenize")))
    fill = evidence.fill if form is not None and form.fills_missing else np.nan
    sizes = np.array(evidence.shown.sizes, dtype=np.int64)  # may be written to, or the kernel is compiled once more
    at_once = max(1, PIECE_BYTES // (8 * max(n, 1)))
    for first in range(0, len(items), at_once):
        low, high = evidence.shown.columns(items[first : first + at_once])
        into = counts[first : first + len(low)]
        count = partial(
            count_cells, low, high, indptr, candidates, ratings, first, attacked.step / 2, sizes, fill, into
        )
        in_threads(count, len(low), threads)
    total = counts.sum(axis=0).tolist()
    seen, alone = max(total[SHOWN], 1), max(total[ONE_RATER], 1)
    return AttackResult(
        attack="disclosure",
        knowledge="the group",
        targets=len(evidence.gathered),
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        details={
            "cells": float(total[SHOWN]),
            "items": float(len(items)),
            "rated": total[RATED] / seen,
            "one_rater": total[ONE_RATER] / seen,
            "exact": total[EXACT] / seen,
            "exact_of_one_rater": total[EXACT] / alone,
            "near": total[NEAR] / seen,
            "alike": total[ALIKE] / seen,
            "worked_out": total[WORKED_OUT] / seen,
        },
    )
