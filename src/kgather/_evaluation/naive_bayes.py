"""How well a Naive Bayes classifier tells from some ratings whether people like something else."""

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.metrics import Metric, artifact_tables, artifacts_of

_HALVES = 5
_LIKED = 0.75  # of the way from the lowest rating to the highest: 4 of 5
_STEPS = 20  # of a scale without any


def naive_bayes(evidence: Evidence, *, seed: int = 0) -> tuple[Metric, ...]:
    """How well a classifier that is taught on half of the users tells of the others whether they like an item.

    Each of the ten most rated items in turn is what is asked for: whether its raters gave it three quarters of the
    scale or more, by their own ratings, told from what is shown of the nine others (a range by its midpoint). The mean
    over items and 5 halves, drawn by the seed; beside it the same from the original, and always naming the answer that
    is commoner among those taught. Nothing where all or none like every item. O(users) for each.

    Raises InputError where scikit-learn is not installed.
    """
    items = artifacts_of(evidence)
    if len(items) < 2 or len(evidence.gathered) == 0:
        return ()
    table, low, high = artifact_tables(evidence, items)
    scale = evidence.scale
    step = scale.step or scale.width / _STEPS
    codes = 1 + round(scale.width / step)
    original, shown = (1 + (values - scale.low) / step for values in (table, (low + high) / 2))
    found: list[tuple[float, float, float]] = []
    for target in range(len(items)):
        rated = np.flatnonzero(~np.isnan(table[:, target]))
        likes = table[rated, target] >= scale.low + _LIKED * scale.width
        for half in range(_HALVES):
            order = np.random.default_rng((seed, target, half)).permutation(len(rated))
            learn, test = order[: len(order) // 2], order[len(order) // 2 :]
            if len(np.unique(likes[learn])) < 2:
                continue
            by_release, by_original = (
                accuracy_of(values[learn], likes[learn], values[test], likes[test], highest=codes)
                for values in (np.delete(of, target, axis=1)[rated] for of in (shown, original))
            )
            commoner = likes[learn].mean() >= 0.5
            found.append((by_release, by_original, float((likes[test] == commoner).mean())))
    if not found:
        return ()
    about = "share of right answers of Naive Bayes, whether users like one of the most rated items, "
    told = (
        "taught and asked by the release, which was made of the answers",
        "by the original",
        "if it always names the commoner answer",
    )
    names = ("naive_bayes", "naive_bayes_original", "naive_bayes_commoner")
    means = np.mean(found, axis=0)
    return tuple(Metric(name, float(mean), about + how) for name, mean, how in zip(names, means, told, strict=True))


def accuracy_of(
    learnt: NDArray[np.floating],
    likes: NDArray[np.bool_],
    tested: NDArray[np.floating],
    truth: NDArray[np.bool_],
    *,
    highest: int,
) -> float:
    """The share of right answers: learnt from (learnt float[n, a], likes bool[n]), asked for (tested, truth) likewise.

    Cells are codes from 1 to `highest`, rounded where they lie between; NaN: not rated, a code of its own. Laplace's
    smoothing of 1. Sun and Sun, section 7.3, with scikit-learn's classifier for theirs. O(n a).

    Raises InputError where scikit-learn is not installed.
    """
    try:
        from sklearn.naive_bayes import CategoricalNB
    except ImportError:
        msg = "a Naive Bayes classifier needs scikit-learn: pip install 'kgather[paper]'."
        raise InputError(msg) from None
    model = CategoricalNB(min_categories=highest + 1).fit(_codes(learnt, highest), likes)
    return float((model.predict(_codes(tested, highest)) == truth).mean())


def _codes(table: NDArray[np.floating], highest: int) -> NDArray[np.int64]:
    return np.where(np.isnan(table), 0, np.clip(np.rint(np.nan_to_num(table)), 1, highest)).astype(np.int64)
