"""What Spark does not have, said before any work."""

import importlib.util
from collections.abc import Iterator

from kgather._errors import InputError
from kgather._loaders.options import LoadOptions
from kgather._settings.publication import PublishSettings

_HAS = frozenset(
    {
        "scale", "not_rated", "repeats", "rating_cap", "rating_log", "min_ratings", "max_rejected_share",
        "items_confirmed", "k", "method", "method_options", "solver", "solver_options", "rank", "metric", "fill",
        "bisection_tries", "refine", "block_size", "artifacts", "seed", "threads", "homogenize", "generalize", "cells",
        "min_raters", "rare_items", "item_noise", "outliers", "single_rater", "max_cells", "metrics", "user_attributes",
        "level_column", "items", "item_epsilon", "item_delta",
    }
)  # fmt: skip
"""Settings that Spark looks at; of the others it takes the default only."""
_METHODS = ("bkg", "mdav", "bounded_t_means", "customized", "bokg")
_CELLS = {"predicted": ("all", "low_rank", "rated"), "padded": ("rated",), "pure": ("all", "rated")}
"""Which cells each form shows. Those of pure are the rated ones whatever is asked for."""
_READING = frozenset({"user_column", "item_column", "rating_column", "time_column", "missing", "items"})


def check_installed() -> None:
    """Raise InputError where the extra is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        msg = "the engine spark needs pyspark, which is not installed. Install kgather[spark]."
        raise InputError(msg)


def refuse(settings: PublishSettings, options: LoadOptions) -> None:
    """Raise InputError for what Spark does not have, in one sentence each."""
    said = [*_refused(settings), *_unread(options)]
    if said:
        raise InputError("\n".join(said))


def refuse_frames(settings: PublishSettings, ratings: object, user_attributes: object, items: object) -> None:
    """Raise InputError where what is read is no DataFrame of a classic session, or is named and not given."""
    for name, asked, given in (
        ("ratings", True, ratings),
        ("user_attributes", settings.user_attributes, user_attributes),
        ("items", settings.items, items),
    ):
        if given is None and asked is None:
            continue
        if not hasattr(given, "sparkSession"):
            msg = f"the engine spark takes {name} as a DataFrame, and on the command line as Parquet or a table."
            raise InputError(msg)
        if type(given).__module__.startswith("pyspark.sql.connect"):
            msg = "Spark Connect keeps nothing on the executors from one statement to the next. Use a classic session."
            raise InputError(msg)
        if getattr(given, "isStreaming", False):
            msg = f"{name} is a stream, which has no end. Write it to a table, and give that."
            raise InputError(msg)


def refuse_sizes(**sizes: object) -> None:
    """Raise InputError where a size is no whole number of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            msg = f"{name} is a whole number of at least 1, not {size!r}."
            raise InputError(msg)


def _refused(settings: PublishSettings) -> Iterator[str]:
    for name, field in PublishSettings.model_fields.items():
        if name not in _HAS and getattr(settings, name) != field.default:
            yield f"the engine spark does not have {name}. Leave it out, or publish with the engine duckdb."
    if settings.method not in _METHODS:
        yield f"the engine spark gathers by method {_listed(_METHODS)}, not {settings.method}."
    if settings.form not in _CELLS:
        yield f"the engine spark shows homogenize {_listed(tuple(_CELLS))}, not {settings.form}."
    if settings.generalization != "none":
        yield f"the engine spark has no generalized table: set generalize to none, not {settings.generalization}."
    shown = _CELLS.get(settings.form, ())
    if shown and settings.cells not in shown:
        yield f"the engine spark shows cells {_listed(shown)} of homogenize {settings.form}, not {settings.cells}."
    if settings.solver != "als":
        yield f"the engine spark learns by solver als, not {settings.solver}."
    if settings.metric == "filled":
        yield "the engine spark compares users in metric prediction or preference, not filled."
    if settings.repeats in ("sum", "count") and settings.rating_cap is None:
        yield (
            f"repeats {settings.repeats} needs rating_cap on the engine spark: which value k users reach is not "
            "looked for there."
        )


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _unread(options: LoadOptions) -> Iterator[str]:
    for name, field in LoadOptions.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if name not in _READING and getattr(options, name) != default:
            yield (
                f"the engine spark reads tables with typed columns, and does not have {name}. Leave it out, or publish "
                "with the engine duckdb."
            )
