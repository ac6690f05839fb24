"""All metrics of the release of a table, beside its original."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kgather._errors import InputError
from kgather._evaluation.named import Metric
from kgather._loaders import LoadOptions
from kgather._recoding.costs import costs
from kgather._settings.table import Sensitive, TableSettings
from kgather._tables.again import opened, release_settings
from kgather._tables.attacks import refuse_uncounted

_QUERIES = 500
_ABOUT = {
    "loss": "normalized certainty penalty (NCP), mean over cells: 0 as it is, 1 for nothing",
    "discernibility": "sum of the squared sizes of the classes; the least possible is rows x k",
    "average_class_size": "mean size of the classes, divided by k; 1 is the least",
    "entropy": "non-uniform entropy: what cells leave open, as a share of what they would if they showed nothing",
    "distance": "between the distribution of the column and the one that a reader finds, 0 to 1",
    "moved": "earth mover's distance of the two on the line, as a share of its length",
}


def measure_table(
    release: Path,
    original: str,
    *,
    seed: int = 0,
    hierarchies: Mapping[str, str] | None = None,
    model: str | None = None,
    load_options: LoadOptions | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> tuple[Metric, ...]:
    """Every metric of the release of a table.

    original: what was anonymized. seed, hierarchies: those it was anonymized with. model: a column that is shown as it
    is, of which models are trained.
    Raises InputError where the release or the original are not what they should be.
    """
    settings = release_settings(release, seed=seed, hierarchies=hierarchies)
    options = load_options or LoadOptions()
    found = opened(release, original, settings, options, report=report)
    evidence, said = found.evidence, found.recoded.report
    measured = costs(
        list(settings.quasi_identifiers), evidence.columns, evidence.codes, evidence.counts, evidence.low,
        evidence.high, evidence.size, evidence.suppressed, settings.k, seed=seed,
        threads=settings.threads or os.cpu_count() or 1, queries=_QUERIES, alike=evidence.alike,
    )  # fmt: skip
    metrics = [Metric("loss", said["loss"], _ABOUT["loss"])]
    metrics += [Metric(name, value, _about(name)) for name, value in measured["all"].items() if name != "queries"]
    for name, of_column in said["columns"].items():
        metrics.append(Metric(f"loss of {name}", of_column["loss"], "normalized certainty penalty of the column"))
        metrics += [
            Metric(f"{each} of {name}", value, _ABOUT[each]) for each, value in measured["columns"][name].items()
        ]
    if model is not None:
        from kgather._tables.learning import model_metrics

        if settings.shows_more:
            msg = f"--model reads ranges and labels, and column '{settings.shows_more[0]}' shows more than these."
            raise InputError(msg)
        refuse_uncounted(settings, [])
        learnt = with_target(settings, model)
        table = found.table if learnt == settings else opened(release, original, learnt, options, report=report).table
        metrics += model_metrics(learnt, table, model, seed=seed)
    return tuple(metrics)


def with_target(settings: TableSettings, name: str) -> TableSettings:
    """Settings in which a column that is shown as it is counts as sensitive, with nothing promised of it.

    Raises InputError where the release does not show it as it is.
    """
    if name in settings.sensitive:
        return settings
    if name not in settings.others:
        known = ", ".join([*settings.sensitive, *settings.others]) or "none"
        msg = f"--model takes a column that the release shows as it is, not '{name}'. There are: {known}."
        raise InputError(msg)
    changed: dict[str, Any] = {
        "sensitive": {**settings.sensitive, name: Sensitive()},
        "others": [each for each in settings.others if each != name],
    }
    return settings.model_copy(update=changed)


def _about(name: str) -> str:
    if not name.startswith("query_error_"):
        return _ABOUT[name]
    asked = name.removeprefix("query_error_").removesuffix("_median")
    columns = "1 column" if asked == "1" else f"{asked} columns"
    return f"{'median' if name.endswith('_median') else 'mean'} relative error of a count of rows by {columns}"
