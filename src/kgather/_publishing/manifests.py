"""The parsed dbt project, kept from run to run: parsing is most of the work of a small publication.

What a project parses to hangs on kgather's own files, on the versions of dbt, and on the settings that shape the graph
of models. Only these are given to dbt when it parses, with stand-ins for those whose presence alone counts. All
settings reach the Python models afterwards, as one text, which is put into the manifest when it is used. So one
manifest serves any k, seed or scale, and what is kept on the disk cannot tell of ids, columns or values.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kgather._dbt_package import package_digest
from kgather._settings.project import ProjectSettings

# Settings by which models, their references or their contracts differ.
SHAPING = frozenset(
    {
        "ratings",
        "item_id_type",
        "user_attributes",
        "items",
        "rare_items",
        "method",
        "solver",
        "homogenize",
        "cells",
        "single_rater",
        "fill",
        "generalize",
        "hierarchy",
        "metrics",
        "personal",
        "diversity_l",
        "history",
        "method_facts",
        "release_database",
        "prepared",
        "takes_over",
    }
)
# Of these only whether there is a value matters, or that it is a list: dbt parses with these instead.
STAND_INS: Mapping[str, Any] = {
    "sensitive_l": 2.0,
    "sensitive_items": ["item"],
    "sensitive_columns": ["column"],
    "personal_columns": ["column"],
    "personal_shared": ["column"],
    "categorical_artifacts": ["column"],
    "level_column": "column",
    "scale": [0, 1],
    "artifacts": ["item"],
    "min_ratings": 2,
    "item_epsilon": 1.0,
}
_MOST_KEPT = 40
_SETTINGS = "settings"


def manifest_for(variables: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], Any], package: Path) -> Any:
    """The dbt manifest for these settings: kept by an earlier run, or what `parse` makes of their shape."""
    from dbt.contracts.graph.manifest import Manifest

    shape = shape_of(variables)
    file = _folder() / f"{_key(shape, package)}.msgpack"
    manifest: Any = None
    # Whatever is wrong with a file of the cache, the project can be parsed instead.
    with contextlib.suppress(Exception):
        manifest = Manifest.from_msgpack(file.read_bytes())
        file.touch()
    if manifest is None:
        manifest = parse(shape)
        _keep(file, manifest)
    _put(manifest, json.dumps({"prefixed": dict(variables)}))
    return manifest


def shape_of(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that shape the graph of models, and stand-ins for those whose presence does."""
    shape = {name: value for name, value in variables.items() if name in SHAPING}
    for name, stand_in in STAND_INS.items():
        if _counts(name, variables.get(name)):
            shape[name] = stand_in
    return shape


def _counts(name: str, value: Any) -> bool:
    """Whether dbt reads the project another way with this value than without one."""
    if name == "artifacts":
        return isinstance(value, list)  # a number of items is no list of them
    if name == "min_ratings":
        return value is not None and value > 1  # every user has one rating
    return value not in (None, [])


def _put(manifest: Any, settings: str) -> None:
    """Hand the settings to the Python models, where their configuration in _steps.yml has what dbt parsed with."""
    for node in manifest.nodes.values():
        if _SETTINGS in getattr(node.config, "meta", {}):
            node.config.meta[_SETTINGS] = settings


def _keep(file: Path, manifest: Any) -> None:
    # A cache that cannot be written to, on a full disk or in a locked-down home, is done without.
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
            part.write(manifest.to_msgpack())
        Path(part.name).replace(file)
        kept = sorted(file.parent.glob("*.msgpack"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-_MOST_KEPT]:
            old.unlink(missing_ok=True)


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "kgather" / "manifests"


def _key(shape: Mapping[str, Any], package: Path) -> str:
    said = {
        "shape": shape,
        "package": package_digest(package),
        "settings": list(ProjectSettings.model_fields),
        "dbt": [version(name) for name in ("dbt-core", "dbt-adapters", "dbt-common", "dbt-duckdb")],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:32]
