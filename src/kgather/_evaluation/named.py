"""What a metric is called and what it says. Imports no kernel, so that a command may name metrics and start quickly."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from kgather._release.release import DATABASE
from kgather._sql_text import literal

# What each metric says, in a line.
ABOUT = {
    "discernibility": "sum of the squared sizes of the equivalence classes; the least possible is users x k",
    "average_class_size": "mean size of the equivalence classes, divided by k; 1 is the least",
    "generalized_information_loss": "mean width of a cell of the generalized table, as a share of the whole scale",
    "mean_absolute_error": "mean distance between a user's own rating and what is shown of the user",
    "root_mean_square_error": "root of the mean squared distance of users' own ratings to what is shown of them",
    "sum_of_squares": "sum of the squared distances of users' own ratings to what is shown (SSE)",
    "sum_of_squares_filled": "SSE over all cells shown; who has not rated counts with the fill",
    "armse_filled": "root mean square distance of a user's filled ratings to what is shown, mean over groups",
    "armse_preferences": "root mean square distance to the centroid, mean over groups, in what users are compared in",
    "maximal_radius": "largest distance of a member to the centroid, in what users are compared in",
    "total_distortion": "sum of the distances over all users and items; not rated and not shown count as 0",
    "tuple_distortion": "total distortion, mean over users",
    "items_shown": "share of the original's items that the release shows",
    "ratings_shown": "share of the original's ratings whose user is shown with a value for the item",
    "cells_shown": "share of all cells of groups (or users) x items that are shown",
    "entries_of_groups": "entries of the release, one row for each group (or for each user, if users have rows)",
    "entries_repeated": "entries of the release with the group's row repeated for each member",
    "entries_added": "entries with rows repeated, less those of the original",
    "cells_added": "cells that are shown although no member of the group rated the item",
    "popularity_of_means": "rank correlation of the items' mean ratings, original and release; 1 keeps the order",
    "popularity_of_counts": "rank correlation of how many rated an item and how many are shown with it",
}

# The mart holds what SQL can say of a release; the rest is measured in kgather._evaluation.metrics.
MART = "kgather__metrics"


@dataclass(frozen=True)
class Metric:
    """One metric: its name, its value, and what it says."""

    metric: str
    value: float
    about: str


def described(rows: Iterable[tuple[str, float]]) -> tuple[Metric, ...]:
    """Metrics from rows (metric, value), as the mart holds them."""
    return tuple(Metric(name, float(value), ABOUT.get(name, "")) for name, value in rows)


def read_metrics(release: Path) -> tuple[Metric, ...]:
    """The metrics that a release brings along in its database; none where it has no such table."""
    with duckdb.connect() as con:
        con.execute(f"attach {literal(release / DATABASE)} as release (read_only)")
        [(has,)] = con.execute(
            "select count(*) from duckdb_tables() where database_name = 'release' and table_name = ?", [MART]
        ).fetchall()
        return described(con.sql(f"select metric, value from release.{MART} order by metric").fetchall() if has else [])
