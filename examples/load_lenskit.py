"""A low-rank release as a scorer of LensKit 2025 (https://lenskit.org).

pip install lenskit
python examples/load_lenskit.py RELEASE

The scorer is LensKit's own biased matrix factorization with the release's numbers in place of what it would have
learnt. Its users are the groups.
"""

import sys
from pathlib import Path
from typing import Any

from release_vectors import Vectors, read_vectors


def load(vectors: Vectors) -> Any:
    """A BiasedMFScorer that answers RecQuery(user_id=group id). Scores are not clipped to the scale."""
    from lenskit.als import BiasedMFScorer
    from lenskit.basic import BiasModel
    from lenskit.data import Vocabulary

    # In the order given: vectors are found by place.
    users = Vocabulary(vectors.group_ids, name="user", reorder=False)
    items = Vocabulary(vectors.item_ids, name="item", reorder=False)
    scorer = BiasedMFScorer(embedding_size=vectors.item_factors.shape[1])
    scorer.users, scorer.items = users, items
    scorer.user_embeddings, scorer.item_embeddings = vectors.group_factors, vectors.item_factors
    mean = float(vectors.item_levels.mean())
    scorer.bias = BiasModel(
        damping=0.0,
        global_bias=mean,
        items=items,
        item_biases=vectors.item_levels - mean,
        users=users,
        user_biases=vectors.group_levels,
    )
    return scorer


def main() -> None:
    from lenskit.data import ItemList, RecQuery

    vectors = read_vectors(Path(sys.argv[1]))
    scores = load(vectors)(RecQuery(user_id=vectors.group_ids[0]), ItemList(vectors.item_ids))
    table = scores.to_df().sort_values("score", ascending=False).head(10)
    print(table[["item_id", "score"]].to_string(index=False))


if __name__ == "__main__":
    main()
