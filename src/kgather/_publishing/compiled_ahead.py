"""What a publication compiles in a process of its own, while it reads: all that it calls after groups are gathered."""

import numpy as np

from kgather.udfs.refining import refine


def compile_all() -> None:
    """Compile what every publication calls after its groups are gathered."""
    refine.compile_all()
    _compile_attackers()


def _compile_attackers() -> None:
    """Attack four users with ratings of their own, as every publication is attacked at its end."""
    # Imported here: refining is waited for first.
    import pyarrow as pa

    from kgather._attacks import quick
    from kgather._evaluation.candidates import ShownCells
    from kgather._evaluation.evidence import Evidence, Scale
    from kgather.udfs.ratings.matrix import RatingMatrix

    indptr, items = np.arange(0, 41, 10), np.tile(np.arange(10, dtype=np.int32), 4)
    ratings = RatingMatrix(4, 10, indptr, items, (1 + items * np.arange(40) % 5).astype(np.float32))
    own = np.arange(4, dtype=np.int32)
    quick(
        Evidence(
            original=ratings,
            shown=ShownCells.from_ratings(ratings),
            truth=own,
            groups=own,
            shown_items=np.ones(10, dtype=np.bool_),
            items=pa.array(range(10)),
            scale=Scale(1.0, 5.0, 1.0),
            parameters={"homogenize": "predicted", "rank": 1},
            group_ids=own.astype(np.int64),
        )
    )
