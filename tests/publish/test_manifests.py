"""A parsed project is kept by the settings that shape it, and by no others."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kgather._loaders import LoadOptions, load
from kgather._publishing import manifests, pipeline
from kgather._settings.project import ProjectSettings
from kgather._settings.publication import PublishSettings

pytestmark = pytest.mark.long

# Another value of every setting that is said to shape nothing.
OTHERS: dict[str, Any] = {
    "k": 7,
    "not_rated": 99,
    "max_rejected_share": 0.5,
    "method_options": {"leftovers": "own"},
    "solver_options": {"sweeps": 3},
    "rank": 2,
    "metric": "preference",
    "bisection_tries": 2,
    "refine": False,
    "block_size": 100,
    "epsilon": 2,
    "seed": 5,
    "threads": 1,
    "sensitive_diversity": "entropy",
    "sensitive_c": 1,
    "popular_noise": 2,
    "max_cells": 10_000_000,
    "diversity_b": 2,
    "noise_sigma": 2,
    "noise_clip": False,
    "i_know_this_is_not_anonymous": True,
    "items_confirmed": True,
    "repeats": "sum",
    "rating_cap": 4,
    "rating_log": True,
    "min_raters": 3,
    "item_noise": 4,
    "item_delta": 1e-5,
    "outliers": 0.9,
    "reserve": 3,
    "keep_group_ids": True,
}
# These go with other settings than those above: they are tried beside them.
OTHERS_OF_PEOPLE: dict[str, Any] = {"personal_recoding": {"age": {"step": 5}}}
PEOPLE: dict[str, Any] = {
    "personal_columns": ["age"],
    "user_attributes": "kgather_loaded_attributes",
    "personal": "separate",
}
# Of a project's own: its model of ratings, what its marts say, and several releases.
ELSEWHERE = {
    *("user_column", "item_column", "rating_column", "time_column"),
    *("release_id", "released_on", "releases", "within"),
}


def test_every_setting_shapes_the_project_or_is_tried_here() -> None:
    told = manifests.SHAPING | set(manifests.STAND_INS) | set(OTHERS) | set(OTHERS_OF_PEOPLE) | ELSEWHERE
    assert told >= set(ProjectSettings.model_fields)
    assert not (set(OTHERS) | set(OTHERS_OF_PEOPLE) | ELSEWHERE) & (manifests.SHAPING | set(manifests.STAND_INS))


def parsed(
    folder: Path, sample: Path, monkeypatch: pytest.MonkeyPatch, *, shape: bool = False, **settings: Any
) -> dict[str, Any]:
    """What dbt reads of the project, without names of this run and what the Python models are handed."""
    found: dict[str, Any] = {}

    class Enough(Exception):  # noqa: N818
        pass

    def look(given: Any, parse: Any, package: Path) -> Any:
        del package
        manifest = parse(manifests.shape_of(given) if shape else given)
        for node in manifest.nodes.values():
            if "settings" in getattr(node.config, "meta", {}):
                node.config.meta["settings"] = node.meta["settings"] = ""
                node.unrendered_config = {}
        found.update(manifest.to_dict(omit_none=True)["nodes"])
        raise Enough

    monkeypatch.setattr(pipeline, "manifest_for", look)
    workspace = pipeline.Workspace(folder, "1GB")
    with duckdb.connect(workspace.work_database) as con:
        load(con, [str(sample)], LoadOptions())
    workspace.write_profile()
    asked = PublishSettings(**{"k": 5, "method": "mdav", **settings}).model_dump(mode="json")
    with pytest.raises(Enough):
        pipeline.build(workspace, asked | {"ratings": "kgather_loaded", "item_id_type": "bigint"})
    return json.loads(json.dumps(found, default=str), object_hook=_without_the_run)


def _without_the_run(node: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in node.items() if name not in ("created_at", "invocation_id", "run_started_at")
    }


@pytest.mark.parametrize(
    "asked", [{}, {"scale": [1, 5], "artifacts": [1, 2], "sensitive_items": [1], "sensitive_l": 2, "min_ratings": 3}]
)
def test_stand_ins_do_for_values(
    tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    real = parsed(tmp_path / "one", sample, monkeypatch, **asked)
    shaped = parsed(tmp_path / "two", sample, monkeypatch, shape=True, **asked)
    assert shaped == real


@pytest.mark.parametrize(("beside", "others"), [({}, OTHERS), (PEOPLE, OTHERS_OF_PEOPLE)])
def test_other_settings_do_not_change_what_dbt_reads(
    tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch, beside: dict[str, Any], others: dict[str, Any]
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    usual = parsed(tmp_path / "one", sample, monkeypatch, **beside)
    other = parsed(tmp_path / "two", sample, monkeypatch, **beside, **others)
    assert other.keys() == usual.keys()
    unlike = [(name, key) for name, node in usual.items() for key in node if node[key] != other[name].get(key)]
    assert unlike == []


def test_what_is_kept_tells_of_no_values(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    workspace = pipeline.Workspace(tmp_path, "1GB")
    with duckdb.connect(workspace.work_database) as con:
        load(con, [str(sample)], LoadOptions())
    workspace.write_profile()
    asked = PublishSettings(k=5, sensitive_items=["unlikely-id"], sensitive_l=1, seed=918273645).model_dump(mode="json")
    pipeline.build(workspace, asked | {"ratings": "kgather_loaded", "item_id_type": "bigint"})
    [kept] = (tmp_path / "cache" / "kgather" / "manifests").iterdir()
    assert b"unlikely-id" not in kept.read_bytes()
    assert b"918273645" not in kept.read_bytes()
    assert kept.stat().st_mode & 0o077 == 0


def test_a_broken_cache_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    class Parsed:
        nodes: dict[str, Any] = {}  # noqa: RUF012

        def to_msgpack(self) -> bytes:
            return b"no manifest"

    def parse(shape: object) -> Parsed:
        del shape
        made.append(1)
        return Parsed()

    for _ in range(2):
        manifests.manifest_for({"k": 5}, parse, Path(manifests.__file__).parent)
    assert len(made) == 2
