"""Reads the vectors of a low-rank release, made with `kgather publish ... --cells low_rank`.

python examples/release_vectors.py RELEASE GROUP

A prediction is the group's level + the item's level + the product of the factors, clipped to the scale. Prints what
the members of a group are shown to like best, with nothing but numpy to compute it.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Vectors:
    """Groups and items by their place: ids, levels float32[n], factors float32[n, r]; the ends of the scale."""

    group_ids: list[int]
    group_levels: np.ndarray
    group_factors: np.ndarray
    item_ids: list[int | str]
    item_levels: np.ndarray
    item_factors: np.ndarray
    scale: tuple[float, float]

    def predict(self, groups: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The rating that is shown of each pair of places, before it is rounded."""
        product = np.einsum("ij,ij->i", self.group_factors[groups], self.item_factors[items])
        return np.clip(self.group_levels[groups] + self.item_levels[items] + product, *self.scale)

    def plain(self) -> tuple[np.ndarray, np.ndarray]:
        """The same as two matrices whose product is the prediction before clipping, for libraries without levels."""
        one = np.ones((len(self.group_levels), 1), dtype=np.float32)
        groups = np.concatenate([self.group_levels[:, None], one, self.group_factors], axis=1)
        one = np.ones((len(self.item_levels), 1), dtype=np.float32)
        return groups, np.concatenate([one, self.item_levels[:, None], self.item_factors], axis=1)


def read_vectors(release: Path) -> Vectors:
    """Read a release. Raises SystemExit where it has no vectors."""
    try:
        groups = pq.read_table(release / "group_vectors.parquet")
        items = pq.read_table(release / "item_vectors.parquet")
        scale = json.loads((release / "audit.json").read_text(encoding="utf-8"))["scale"]
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is missing: publish with --cells low_rank to get vectors.")
    return Vectors(
        groups["group_id"].to_pylist(), *_columns(groups), items["item_id"].to_pylist(), *_columns(items),
        (scale["min"], scale["max"]),
    )  # fmt: skip


def _columns(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    factors = table["factor"].combine_chunks()
    width = len(factors.flatten()) // max(len(table), 1)
    return table["level"].to_numpy(), factors.flatten().to_numpy().reshape(len(table), width)


def main() -> None:
    vectors = read_vectors(Path(sys.argv[1]))
    group = vectors.group_ids.index(int(sys.argv[2])) if len(sys.argv) > 2 else 0
    places = np.arange(len(vectors.item_ids))
    ratings = vectors.predict(np.full(len(places), group), places)
    for place in np.argsort(-ratings, kind="stable")[:10]:
        print(vectors.item_ids[place], f"{ratings[place]:.2f}")


if __name__ == "__main__":
    main()
