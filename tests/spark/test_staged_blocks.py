"""Blocks are staged by the project's own SQL: together they have what the engine duckdb has of the same rows."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_data import messy

from kgather._loaders.options import LoadOptions
from kgather._settings.publication import PublishSettings
from kgather._spark import statements
from kgather._spark.blocks import Items, Staging, matrix_of, numbers, unpacked
from kgather.udfs.preferences.item_noise import secret_of, secret_of_lines

SCALE = {"scale": [1.0, 5.0], "max_rejected_share": 0.05}


@pytest.mark.slow
def test_blocks_have_what_the_engine_duckdb_has(tmp_path: Path, publish_to: Callable[..., Any]) -> None:
    file = messy(tmp_path / "ratings.parquet")
    whole = publish_to(file, k=5, **SCALE).audit
    rows = pq.read_table(file)
    settings = PublishSettings.from_options({"k": 5, **SCALE}, [])
    sql = statements.staging(settings, {"user": "VARCHAR", "item": "BIGINT"}, verbose=False)
    staging = Staging(sql, LoadOptions(), inferred=False)
    # Who has no id is in some block, too.
    place = np.array([int(user[-1]) % 3 if user else 0 for user in rows["user_id"].to_pylist()])
    blocks = [staging.of(at, rows.filter(pa.array(place == at))).to_pylist()[0] for at in range(3)]
    counts = whole.counts
    for name, column in (("read_rows", "read"), ("staged_rows", "staged"), ("users", "users")):
        assert sum(block[column] for block in blocks) == counts[name]
    rejected: Counter[str] = Counter()
    for block in blocks:
        rejected.update(dict(json.loads(block["rejected"])))
    assert dict(rejected) == counts["rejected_by_reason"]
    assert len(rejected) >= 5
    # In any order, a block is the same to the last byte.
    mixed = rows.filter(pa.array(place == 0))
    order = np.random.default_rng(0).permutation(len(mixed))
    assert staging.of(0, mixed.take(order)).to_pylist()[0] == blocks[0]
    # The secret of the noise is that of the engine duckdb, which makes it of the same numbers.
    one = staging.of(0, rows).to_pylist()[0]
    people = sorted(int(each) for block in blocks for each in unpacked(block["rated_so"]).to_pylist())
    assert people == sorted(int(each) for each in unpacked(one["rated_so"]).to_pylist())
    lines = [f"{each}\n".encode() for each in people]
    pieces = [b"".join(lines[:7]), b"".join(lines[7:])]
    assert secret_of_lines(bytes(32), pieces) == secret_of(bytes(32), people[::-1])
    raters: Counter[int] = Counter()
    for block in blocks:
        raters.update(
            dict(zip(unpacked(block["item_ids"]).to_pylist(), numbers(block["raters"], np.int64).tolist(), strict=True))
        )
    items = Items(pa.array(sorted(raters)))
    assert len(raters) == counts["items"]
    matrices = [matrix_of(items.coded(block), len(raters)) for block in blocks]
    assert sum(matrix.raters() for matrix in matrices).tolist() == [raters[item] for item in sorted(raters)]
    for matrix in matrices:
        for user in range(matrix.n_users):
            assert (np.diff(matrix.items[matrix.indptr[user] : matrix.indptr[user + 1]]) > 0).all()
