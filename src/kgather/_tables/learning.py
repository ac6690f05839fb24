"""How well a model learns from an anonymized table: trained on the release and on the original, tested on people whom
neither has.

The classes are made anew from four fifths of the rows, with the settings of the release, so that the people on whom
models are tested had no part in it. A cell is a number (the middle of what it covers, on the scale of its column) or,
of a category, the share of each label among the leaves that it covers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.named import Metric
from kgather._recoding.costs import shown_boxes
from kgather._recoding.lines import Coded
from kgather._recoding.recode import recode
from kgather._settings.table import TableSettings
from kgather._tables.again import Dictionaries
from kgather.udfs._shared.options import seed_number

_TESTED = 0.2
_MOST_ROWS = 100_000  # that a model is trained on
_MOST_LABELS = 64
_MOST_CLASSES = 50


def model_metrics(settings: TableSettings, table: Dictionaries, target: str, *, seed: int = 0) -> tuple[Metric, ...]:
    """The accuracy of models of `target`, a sensitive column of the settings: trained on the original and on a release.

    Raises InputError where scikit-learn is missing or the column cannot be learnt.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        msg = "--model needs scikit-learn: pip install 'kgather[models]'."
        raise InputError(msg) from None
    d = len(settings.quasi_identifiers)
    place = d + list(settings.sensitive).index(target)
    wanted = table.ids[place]
    if not 1 < len(table.values[place]) <= _MOST_CLASSES:
        msg = f"column '{target}' has {len(table.values[place]):,} values: a model learns 2 to {_MOST_CLASSES} of them."
        raise InputError(msg)
    random = np.random.default_rng(seed_number(seed))
    # In an order of the combinations that hangs on what they are, not on how the database numbered them.
    order = np.lexsort(table.ids[::-1])
    people = random.permutation(np.repeat(order, table.counts[order]))
    test, train = np.split(people, [int(_TESTED * len(people))])
    counts = np.bincount(train, minlength=len(table.counts)).astype(np.int64)
    kept = np.flatnonzero(counts)
    ids = [each[kept] for each in table.ids]
    values = list(table.values)
    for j in range(d, len(ids)):  # sensitive values are numbered anew where some are in no row that is left
        used, ids[j] = np.unique(ids[j], return_inverse=True)
        values[j] = [values[j][value] for value in used]
    evidence = recode(settings, table.types, values, ids, counts[kept]).evidence
    back = np.unique(wanted[kept])
    answers = back[evidence.sensitive[evidence.combination, place - d]]
    pieces = random.permutation(np.repeat(np.arange(len(evidence.rows)), evidence.rows))[:_MOST_ROWS]
    first, last = shown_boxes(evidence.columns, evidence.low, evidence.high, evidence.suppressed)
    own = evidence.codes[evidence.combination[pieces]]
    tested = np.stack(
        [column.codes[ids_of[test]] for column, ids_of in zip(evidence.columns, table.ids, strict=False)], 1
    )
    features = {
        "original": _features(evidence.columns, own, own),
        "release": _features(evidence.columns, first[evidence.group[pieces]], last[evidence.group[pieces]]),
    }
    asked, truth = _features(evidence.columns, tested, tested), wanted[test]
    usual = np.bincount(answers[pieces]).argmax()
    found = [Metric("accuracy_usual", _digits((truth == usual).mean()), "always the most frequent value")]
    models: dict[str, tuple[str, Callable[[], Any]]] = {
        "logistic": ("logistic regression", lambda: LogisticRegression(max_iter=1000)),
        "boosting": ("boosted trees", lambda: HistGradientBoostingClassifier(random_state=seed % 2**32)),
    }
    for name, (told, make) in models.items():
        for source, known in features.items():
            model = make().fit(known, answers[pieces])
            right = float((model.predict(asked) == truth).mean())
            about = f"{told} of {target}, trained on the {source}, tested on other people's original rows"
            found.append(Metric(f"accuracy_{name}_{source}", _digits(right), about))
    return tuple(found)


def _features(columns: Sequence[Coded], first: NDArray[np.integer], last: NDArray[np.integer]) -> NDArray[np.float64]:
    """What cells say as numbers, float64[n, features]; first, last: int[n, d], the codes that they cover."""
    found = []
    for j, column in enumerate(columns):
        loss = column.loss
        width = loss.widths()
        upto = np.append(0.0, np.cumsum(width))
        total = upto[last[:, j] + 1] - upto[first[:, j]]
        if loss.nodes is None:
            assert loss.low is not None
            assert loss.high is not None
            middle = np.append(0.0, np.cumsum(width * (loss.low + loss.high) / 2))
            found.append(((middle[last[:, j] + 1] - middle[first[:, j]]) / total)[:, None])
            continue
        number = [len(np.unique(level)) for level in loss.nodes]
        level = loss.nodes[next(at for at, each in enumerate(number) if each <= _MOST_LABELS or at == len(number) - 1)]
        for node in np.unique(level):
            leaves = np.append(0.0, np.cumsum(level == node))
            found.append(((leaves[last[:, j] + 1] - leaves[first[:, j]]) / total)[:, None])
    return np.concatenate(found, axis=1)


def _digits(value: float) -> float:
    return round(float(value), 4)
