"""People as a database that a guard opens."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from guard_people import People
from numpy.typing import NDArray


def store(folder: Path, people: People) -> None:
    """Write people.duckdb: the table people, with user_id and whole numbers or texts; NULL where there is no value."""
    size = len(next(iter(people.values())))

    def column(values: NDArray) -> pa.Array:
        if values.dtype.kind == "U":
            return pa.array(values)
        return pa.array(np.nan_to_num(values).astype(np.int64), mask=np.isnan(values))

    given = pa.table({"user_id": np.arange(size), **{name: column(values) for name, values in people.items()}})
    with duckdb.connect(str(folder / "people.duckdb")) as con:
        con.register("given", given)
        con.execute("create table people as from given")
