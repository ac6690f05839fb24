"""A low-rank release as a model of the library implicit (https://github.com/benfred/implicit).

pip install implicit
python examples/load_implicit.py RELEASE

implicit knows no levels: they become two more factors, so that the product of the vectors is the prediction.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from release_vectors import Vectors, read_vectors


def load(vectors: Vectors) -> Any:
    """A model whose users are the groups; its ids are the places in `vectors`."""
    from implicit.cpu.als import AlternatingLeastSquares

    groups, items = vectors.plain()
    model = AlternatingLeastSquares(factors=groups.shape[1])
    model.user_factors = np.ascontiguousarray(groups, dtype=np.float32)
    model.item_factors = np.ascontiguousarray(items, dtype=np.float32)
    return model


def recommend(model: Any, group: int, n: int = 10) -> list[tuple[int, float]]:
    """Places and predictions of the items that a group likes best. A release does not say what has been rated."""
    from scipy.sparse import csr_matrix

    nothing = csr_matrix((1, len(model.item_factors)), dtype=np.float32)
    items, ratings = model.recommend(group, nothing, N=n, filter_already_liked_items=False)
    return list(zip(items.tolist(), ratings.tolist(), strict=True))


def main() -> None:
    vectors = read_vectors(Path(sys.argv[1]))
    for item, rating in recommend(load(vectors), 0):
        print(vectors.item_ids[item], f"{min(max(rating, vectors.scale[0]), vectors.scale[1]):.2f}")


if __name__ == "__main__":
    main()
