"""The examples that load a low-rank release into recommender libraries say what the release says."""

import sys
import types
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from kgather._publishing.publish import Published

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def low_rank(publish_to, sample) -> Published:
    return publish_to(sample, k=5, cells="low_rank")


@pytest.fixture(autouse=True)
def _examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.fixture
def vectors(low_rank: Published) -> Any:
    from release_vectors import read_vectors

    return read_vectors(low_rank.folder)


def _table(low_rank: Published) -> dict[tuple[int, int], float]:
    with duckdb.connect(low_rank.folder / "release.duckdb", read_only=True) as con:
        cells = con.sql("select group_id, item_id, rating from kgather__ratings").fetchall()
    return {(group, item): rating for group, item, rating in cells}


def test_numpy(low_rank: Published, vectors: Any) -> None:
    groups, items = np.indices((len(vectors.group_ids), len(vectors.item_ids))).reshape(2, -1)
    predicted = vectors.predict(groups, items)
    left, right = vectors.plain()
    assert np.clip((left @ right.T).reshape(-1), *vectors.scale) == pytest.approx(predicted, abs=1e-5)
    cells = _table(low_rank)
    assert len(cells) == len(predicted)
    for group, item, rating in zip(groups, items, predicted, strict=True):
        assert cells[vectors.group_ids[group], vectors.item_ids[item]] == pytest.approx(rating, abs=0.00501)


def test_the_script_prints_what_a_group_likes(
    low_rank: Published, vectors: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from release_vectors import main

    group = vectors.group_ids[1]
    monkeypatch.setattr(sys, "argv", ["release_vectors.py", str(low_rank.folder), str(group)])
    main()
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    cells = _table(low_rank)
    ratings = sorted((rating for (of, _), rating in cells.items() if of == group), reverse=True)
    assert [float(rating) for _, rating in printed] == pytest.approx(ratings[:10], abs=0.006)
    assert all(cells[group, int(item)] == pytest.approx(float(rating), abs=0.006) for item, rating in printed)


def test_a_release_without_vectors_is_told_so(released: Published) -> None:
    from release_vectors import read_vectors

    with pytest.raises(SystemExit, match="--cells low_rank"):
        read_vectors(released.folder)


def _best(vectors: Any, group: int) -> tuple[np.ndarray, np.ndarray]:
    left, right = vectors.plain()
    scores = right @ left[group]
    order = np.argsort(-scores, kind="stable")[:10]
    return order, scores[order]


def test_implicit(vectors: Any) -> None:
    pytest.importorskip("implicit", reason="implicit is not installed: the stand-in test alone checks the example")
    from load_implicit import load, recommend

    model = load(vectors)
    for group in (0, 3):
        found = recommend(model, group)
        places, scores = _best(vectors, group)
        assert [score for _, score in found] == pytest.approx(scores, abs=1e-4)
        assert {item for item, _ in found} == set(places.tolist())


class _Named:
    """Takes any arguments and remembers them, as the classes do for which it stands."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named


def test_implicit_by_a_stand_in(vectors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    als = types.ModuleType("implicit.cpu.als")
    als.AlternatingLeastSquares = _Named  # type: ignore[attr-defined]
    for name in ("implicit", "implicit.cpu"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "implicit.cpu.als", als)
    from load_implicit import load

    model = load(vectors)
    assert model.named == {"factors": vectors.item_factors.shape[1] + 2}
    left, right = vectors.plain()
    assert model.user_factors @ model.item_factors.T == pytest.approx(left @ right.T)
    assert model.user_factors.dtype == model.item_factors.dtype == np.float32


def test_lenskit(vectors: Any) -> None:
    pytest.importorskip(
        "lenskit", reason="lenskit is not installed (it brings torch): the stand-in test alone checks it"
    )
    from lenskit.data import ItemList, RecQuery
    from load_lenskit import load

    scores = load(vectors)(RecQuery(user_id=vectors.group_ids[3]), ItemList(vectors.item_ids)).scores()
    left, right = vectors.plain()
    assert scores == pytest.approx(right @ left[3], abs=1e-4)


def test_lenskit_by_a_stand_in(vectors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"lenskit.als": "BiasedMFScorer", "lenskit.basic": "BiasModel", "lenskit.data": "Vocabulary"}
    monkeypatch.setitem(sys.modules, "lenskit", types.ModuleType("lenskit"))
    for module, name in named.items():
        stand_in = types.ModuleType(module)
        setattr(stand_in, name, _Named)
        monkeypatch.setitem(sys.modules, module, stand_in)
    from load_lenskit import load

    scorer = load(vectors)
    # As LensKit scores: the product of the embeddings, and the biases beside.
    bias = scorer.bias.named
    scores = bias["global_bias"] + bias["item_biases"] + bias["user_biases"][3]
    scores = scores + scorer.item_embeddings @ scorer.user_embeddings[3]
    left, right = vectors.plain()
    assert scores == pytest.approx(right @ left[3], abs=1e-5)
    assert scorer.items.given == (vectors.item_ids,)
    assert scorer.users.given == (vectors.group_ids,)
    assert not scorer.items.named["reorder"]
    assert bias["users"] is scorer.users
