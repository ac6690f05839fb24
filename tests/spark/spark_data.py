"""Ratings for tests of the engine spark, with all that can be wrong with a row."""

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def messy(path: Path, users: int = 150, items: int = 30, seed: int = 1) -> Path:
    """Write made-up ratings as Parquet: texts as ids of users, numbers as ids of items, and bad rows."""
    rng = np.random.default_rng(seed)
    taste, kind = rng.normal(0, 1, (users, 2)), rng.normal(0, 1, (items, 2))
    rated = np.argwhere(rng.random((users, items)) < 0.4)
    score = 3 + (taste[rated[:, 0]] * kind[rated[:, 1]]).sum(axis=1) + rng.normal(0, 0.5, len(rated))
    rows = [
        (f"person-{user:05d}", int(item), float(value), int(1_600_000_000 + at))
        for at, ((user, item), value) in enumerate(zip(rated, np.clip(np.round(score), 1, 5), strict=True))
    ]
    first = rows[0]
    rows += [
        (first[0], first[1], 1.0, first[3] + 5),
        (first[0], first[1], 2.0, first[3] + 5),
        (None, 3, 4.0, 1_600_000_000),
        ("", 3, 4.0, 1_600_000_000),
        ("person-00001", None, 4.0, 1_600_000_000),
        ("person-00002", 4, None, 1_600_000_000),
        ("person-00003", 5, float("nan"), 1_600_000_000),
        ("person-00004", 6, 17.0, 1_600_000_000),
    ]
    rng.shuffle(rows)
    names = ("user_id", "item_id", "rating", "timestamp")
    kinds = (pa.string(), pa.int64(), pa.float64(), pa.int64())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    pq.write_table(pa.Table.from_arrays(columns, names=names), path)
    return path


def groups_of(folder: Path) -> set[frozenset[str]]:
    """Who is with whom, of a secret map."""
    table = pq.read_table(folder)
    found: dict[int, set[str]] = {}
    for user, group in zip(table["user_id"].to_pylist(), table["group_id"].to_pylist(), strict=True):
        found.setdefault(group, set()).add(user)
    return {frozenset(members) for members in found.values()}


def spark_home(folder: Path) -> str:
    """A home of Spark's of its own: executors of a local-cluster write their logs to the folder `work` in it."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    folder.mkdir()
    for each in Path(spec.origin).parent.iterdir():
        if each.name != "work":
            (folder / each.name).symlink_to(each)
    return str(folder)
