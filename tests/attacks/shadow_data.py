"""Releases made in memory of made-up ratings, for attackers who make the like again."""

import numpy as np
import pyarrow as pa

from kgather._evaluation.evidence import Evidence, Scale
from kgather._evaluation.in_memory import make
from kgather._settings.publication import PublishSettings
from kgather.udfs.ratings.matrix import RatingMatrix

UNPROTECTED = {"min_raters": 1, "item_noise": 0.0, "outliers": 1.0}
DROWNED = {"item_noise": 1000.0}


def ratings(n: int = 120, m: int = 60, rarest: float = 0.12, seed: int = 3) -> RatingMatrix:
    """n people and m items, which from a share `rarest` to 0.8 of the people rate: 1 to 5, with tastes behind them."""
    draw = np.random.default_rng(seed)
    level = 3.2 + draw.normal(0, 0.5, (n, 1)) + draw.normal(0, 0.5, (1, m))
    taste = draw.normal(0, 0.6, (n, 3)) @ draw.normal(0, 0.6, (3, m))
    likely = np.geomspace(rarest, 0.8, m)
    users, items = np.nonzero(draw.random((n, m)) < likely)
    values = np.clip(np.rint(level + taste + draw.normal(0, 0.5, (n, m))), 1, 5)[users, items]
    batch = pa.record_batch(
        {
            "user_code": pa.array(users, pa.int32()),
            "item_code": pa.array(items, pa.int32()),
            "rating": pa.array(values, pa.float64()),
        }
    )
    return RatingMatrix.from_batches([batch], n, m)


def published(table: RatingMatrix | None = None, **settings: object) -> Evidence:
    """A release of ratings with groups of 5, beside them."""
    original = ratings() if table is None else table
    asked = PublishSettings(**({"k": 5} | settings))
    made = make(original, asked, scale=(1.0, 5.0), secret=b"the real noise is another's secret", threads=1)
    return Evidence(
        original=original,
        shown=made.shown,
        truth=made.groups,
        groups=made.groups,
        shown_items=~np.isnan(made.shown.item_levels),
        items=pa.array(range(original.n_items)),
        scale=Scale(1.0, 5.0, 1.0),
        parameters=asked.model_dump(mode="json"),
        group_ids=np.arange(len(made.shown.sizes), dtype=np.int64),
    )
