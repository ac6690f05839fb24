"""Recommenders tested on ratings that did not enter the release."""

import stat
from pathlib import Path

import duckdb
import numpy as np
import pytest
from evidence_data import evidence_of

from kgather._errors import InputError
from kgather._evaluation import recommenders
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.recommenders import recommender_errors
from kgather._republishing import held_out as module
from kgather._republishing.held_out import held_out
from kgather._settings.publication import PublishSettings

NAN = float("nan")


@pytest.fixture(scope="module")
def sampled(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, module.Test]:
    folder = tmp_path_factory.mktemp("held_out")
    found = held_out([str(sample)], PublishSettings(k=5), seed=3, folder=folder)
    assert not list(folder.iterdir())
    return found


@pytest.mark.slow
def test_a_fifth_is_left_out_and_all_else_is_published(sampled: tuple[Evidence, module.Test], sample: Path) -> None:
    evidence, (users, items, ratings) = sampled
    assert evidence.original.nnz + len(ratings) == 5256
    assert len(ratings) == pytest.approx(5256 / 5, rel=0.1)
    assert (users.dtype, items.dtype) == (np.int32, np.int32)
    assert users.min() >= 0  # nobody loses all ratings
    rows = {
        (user, item): float(rating)
        for user, item, rating, *_ in (line.split(",") for line in sample.read_text().splitlines()[1:])
    }
    user_ids, item_ids = evidence.user_ids.to_pylist(), evidence.items.to_pylist()
    trained = {
        (int(user), int(item))
        for user, item in zip(
            np.repeat(np.arange(evidence.original.n_users), np.diff(evidence.original.indptr)),
            evidence.original.items,
            strict=True,
        )
    }
    for user, item, rating in zip(users, items, ratings, strict=True):
        assert (user, item) not in trained
        assert rows[str(user_ids[user]), str(item_ids[item])] == rating


def test_the_seed_decides_what_is_left_out(sample: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def published(*_: object, **__: object) -> None:
        msg = "stop"
        raise InputError(msg)

    monkeypatch.setattr(module, "publish", published)
    seen: list[int] = []
    copied = module.rows_of

    def spy(indptr: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        [folder] = tmp_path.glob("kgather-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        seen.append(hash(chosen.tobytes()))
        return copied(indptr, chosen)

    monkeypatch.setattr(module, "rows_of", spy)
    for seed in (1, 1, 2):
        with pytest.raises(InputError, match="stop"):
            held_out([str(sample)], PublishSettings(k=5), seed=seed, folder=tmp_path)
    assert seen[0] == seen[1] != seen[2]
    assert not list(tmp_path.iterdir())


def test_a_repeated_pair_is_in_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ratings.csv"
    lines = [f"{user},{item},{1 + (user + item) % 5},2024-01-0{day}" for user in range(20) for item in range(10)
             for day in (1, 2)]  # fmt: skip
    lines += ["1,99,0,2024-01-01", "2,98,77,2024-01-01", "3,97,,2024-01-01"]
    file.write_text("\n".join(["user_id,item_id,rating,rated_at", *lines]) + "\n")
    counted = {}

    def published(inputs: list[str], *_: object, **__: object) -> None:
        train, test = inputs[0], Path(inputs[0]).with_name("test.parquet")
        counted["both"] = duckdb.sql(f"from '{train}' semi join '{test}' using (user_id, item_id)").fetchall()
        counted["train"] = len(duckdb.sql(f"from '{train}'").fetchall())
        counted["test"] = duckdb.sql(f"from '{test}'").fetchall()
        msg = "stop"
        raise InputError(msg)

    monkeypatch.setattr(module, "publish", published)
    with pytest.raises(InputError, match="stop"):
        held_out([str(file)], PublishSettings(k=2, not_rated=0, scale=(1, 5)), folder=tmp_path)
    assert counted["both"] == []
    # Rows that the pipeline would set aside stay in the training part, for it to set aside, and are never tested.
    assert counted["train"] + 2 * len(counted["test"]) == len(lines) - 1
    assert all(1 <= rating <= 5 for *_, rating in counted["test"])


@pytest.mark.parametrize("share", [0, 1, -0.1, NAN])
def test_a_share_that_makes_no_sense_is_refused(sample: Path, share: float) -> None:
    with pytest.raises(InputError, match="share must be"):
        held_out([str(sample)], PublishSettings(k=5), share=share)


def test_nothing_left_to_test_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user_id,item_id,rating\n" + "".join(f"{user},1,{1 + user % 5}\n" for user in range(9)))
    with pytest.raises(InputError, match="leaves nothing to test"):
        held_out([str(file)], PublishSettings(k=2))


def values_of(evidence: Evidence, test: module.Test, **options: object) -> dict[str, float]:
    found = recommender_errors(evidence, test, **options)  # type: ignore[arg-type]
    assert all(metric.about for metric in found)
    return {metric.metric: metric.value for metric in found}


@pytest.mark.slow
def test_recommenders_are_tested_on_both_sides(sampled: tuple[Evidence, module.Test]) -> None:
    evidence, test = sampled
    found = values_of(evidence, test, threads=1)
    assert found.keys() == {
        "direct_covered",
        *(f"{name}_{error}" for name in ("direct", "svd", "neighbours") for error in ("mae", "rmse")),
        *(f"{name}_{error}_original" for name in ("svd", "neighbours") for error in ("mae", "rmse")),
    }
    # A constant in the middle of the scale is what all of them have to beat.
    constant = float(np.abs(test[2] - 3).mean())
    assert all(0 < value < constant for name, value in found.items() if "mae" in name)
    assert all(found[name.replace("mae", "rmse")] >= value for name, value in found.items() if "mae" in name)
    assert values_of(evidence, test, threads=3) == found


def test_a_release_of_the_ratings_themselves_loses_nothing() -> None:
    rng = np.random.default_rng(5)
    table = np.where(rng.random((60, 20)) < 0.5, rng.integers(1, 6, (60, 20)), NAN)
    test = (rng.integers(0, 60, 100).astype(np.int32), rng.integers(0, 20, 100).astype(np.int32), np.full(100, 3.0))
    found = values_of(evidence_of(table, table, np.arange(60)), test)
    for name in ("svd_mae", "svd_rmse", "neighbours_mae", "neighbours_rmse"):
        assert found[name] == pytest.approx(found[f"{name}_original"], rel=1e-5)


def test_few_rows_do_not_pull_items_to_the_mean() -> None:
    # Two groups of 50 show the items at 1 and 5 throughout: a level of so many users is hardly pulled.
    table = np.tile([[1.0, 5.0]], (100, 1))
    evidence = evidence_of(table, [[1, 5], [1, 5]], np.repeat([0, 1], 50))
    users = np.arange(100, dtype=np.int32)
    found = values_of(evidence, (users, (users % 2).astype(np.int32), np.where(users % 2, 5.0, 1.0)))
    assert found["svd_mae"] < 0.1


def test_unknown_users_and_items_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = evidence_of([[5, 1], [4, 2], [3, 3]], [[4, 2]], [0, 0, -1])
    unknown = (np.array([-1, 0, 2]), np.array([0, -1, 0]), np.array([1.0, 2.0, 3.0]))
    assert values_of(evidence, unknown) == {"direct_covered": 0}
    known = (np.array([0]), np.array([0]), np.array([5.0]))
    assert "svd_mae" in values_of(evidence, known)
    monkeypatch.setattr(recommenders, "_MOST_CELLS", 1)
    assert "svd_mae" not in values_of(evidence, known)
    assert "svd_mae_original" in values_of(evidence, known)


def test_ml_100k_is_predicted_as_well_as_it_was(data_dir: Path) -> None:
    file = data_dir / "ml-100k" / "u.data"
    found = values_of(*held_out([str(file)], PublishSettings(k=10, metrics="none"), seed=0))
    assert found["direct_covered"] > 0.99
    assert found["direct_mae"] == pytest.approx(0.73, abs=0.015)
    assert found["svd_mae_original"] == pytest.approx(0.715, abs=0.015)
    assert found["svd_mae"] == pytest.approx(0.735, abs=0.02)
    # Means of items have 0.816 to 0.818.
    assert found["neighbours_mae"] < 0.75
    assert found["neighbours_mae_original"] < 0.75
