"""People are counted once in each group, however many of their rows are in it."""

from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from worlds_of_people import GENEROUS, guarded, silent

from kgather._guard.guard import Guard

POLICY = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  ratings:
    privacy_unit: user_id
    grain: rows
    unique: item_id
    artifacts: [item_id, rating, place]
    bounds: {{rating: [1, 5], place: [0, 3]}}
    rows_per_person: 40
  items: {{public: true}}
joins: [ratings.item_id = items.item_id]
principals: {{a: {{}}}}
"""


def rated() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = pd.DataFrame({"user_id": rng.integers(0, 300, 4_000), "item_id": rng.integers(0, 30, 4_000)})
    rows = rows.drop_duplicates().reset_index(drop=True)
    return rows.assign(rating=rng.integers(1, 6, len(rows)), place=rng.integers(0, 4, len(rows)))


def items() -> pd.DataFrame:
    return pd.DataFrame({"item_id": range(30), "genre": [*"abc"] * 10, "year": [1990 + at % 7 for at in range(30)]})


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return guarded(tmp_path, {"ratings": rated(), "items": items()}, POLICY, silent)


JOINED = "FROM ratings JOIN items ON ratings.item_id = items.item_id"


@pytest.mark.parametrize(
    ("keys", "condition"),
    [
        (["genre"], ""),
        (["genre"], "rating >= 3"),
        (["genre"], "rating >= 3 AND place < 2"),
        (["genre", "year"], "rating <> 3"),
        (["year"], "year > 1991 AND (rating = 5 OR place = 0)"),
    ],
)
def test_each_person_once(guard: Guard, keys: list[str], condition: str) -> None:
    listed, where = ", ".join(keys), f"WHERE {condition}" if condition else ""
    told = guard.query(f"SELECT {listed}, COUNT(DISTINCT user_id) AS n {JOINED} {where} GROUP BY {listed}")
    joined = rated().merge(items(), on="item_id")
    if condition:
        words = {"<>": "!=", " = ": " == ", " AND ": " and ", " OR ": " or "}
        joined = joined.query(reduce(lambda text, word: text.replace(word, words[word]), words, condition))
    true = joined.groupby(keys)["user_id"].nunique()
    found = {tuple(row[key] for key in keys): row["n"] for row in told.to_pylist()}
    assert found == {(key if isinstance(key, tuple) else (key,)): number for key, number in true.items()}
    assert found
