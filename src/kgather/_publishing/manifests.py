"""The parsed dbt project, kept from run to run: parsing is most of the work of a small publication.

What a project parses to hangs on kgather's own files, on the versions of dbt, and on the settings that shape the graph
of models. All other settings only reach the Python models, as one text, which is put in after a manifest is read. So
one manifest serves any k, seed or scale; and what is kept on the disk tells of no ids, columns or values.
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

# Settings by which models, their references or their contracts differ. A test parses with values of all others.
SHAPING = frozenset(
    {
        "ratings",
        "item_id_type",
        "user_attributes",
        "method",
        "solver",
        "homogenize",
        "cells",
        "single_rater",
        "fill",
        "generalize",
        "hierarchy",
        "metrics",
        "diversity_l",
        "method_facts",
        "release_database",
    }
)
# Of these only whether there is a value, and how it is told from a number or a list, matters.
BY_PRESENCE = ("sensitive_l", "sensitive_items", "sensitive_columns", "personal_columns", "level_column", "scale")
_MOST_KEPT = 40
_SETTINGS = "settings"


def manifest_for(variables: Mapping[str, Any], parse: Callable[[], Any], package: Path) -> Any:
    """The dbt manifest for these settings: from the user's cache, or what `parse` gives, which is then kept."""
    from dbt.contracts.graph.manifest import Manifest

    file = _folder() / f"{_key(variables, package)}.msgpack"
    manifest: Any = None
    # Whatever is wrong with a file of the cache, the project can be parsed instead.
    with contextlib.suppress(Exception):
        manifest = Manifest.from_msgpack(file.read_bytes())
        file.touch()
    if manifest is None:
        manifest = parse()
        _put(manifest, "")
        _keep(file, manifest)
    _put(manifest, json.dumps({"prefixed": dict(variables)}))
    return manifest


def _put(manifest: Any, settings: str) -> None:
    """Hand the settings to the Python models, as their configuration in _steps.yml would."""
    for node in manifest.nodes.values():
        if _SETTINGS in getattr(node.config, "meta", {}):
            node.config.meta[_SETTINGS] = settings
            node.unrendered_config = {}
            if "meta" in node.config_call_dict:
                node.config_call_dict = {}
            node.meta = dict(node.config.meta)


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


def _key(variables: Mapping[str, Any], package: Path) -> str:
    shape = {name: value for name, value in variables.items() if name in SHAPING}
    shape |= {name: bool(variables.get(name)) for name in BY_PRESENCE}
    said = {
        "shape": shape,
        "package": package_digest(package),
        "settings": list(ProjectSettings.model_fields),
        "dbt": [version(name) for name in ("dbt-core", "dbt-adapters", "dbt-common", "dbt-duckdb")],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:32]
