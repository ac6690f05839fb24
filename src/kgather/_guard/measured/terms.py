"""The terms that answers are given under, as text: the policy, and the tables and columns of the database.

The ledger keeps them, so that an answer can be given again without the database, and after the policy was changed.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import yaml

from kgather._guard.catalog import Catalog
from kgather._guard.policy import Policy

_IDLE = ("match", "round", "diversity")  # entries of other modes
_PLACES = ("database", "attach", "files", "ledger", "audit_log")  # where files are is no term


def written(catalog: Catalog) -> str:
    """The terms of a catalog."""
    policy = {name: value for name, value in _plain(catalog.policy.model_dump()).items() if name not in _PLACES}
    tables = catalog.tables.values()
    schema = {info.name: {column.name: column.type for column in info.columns.values()} for info in tables}
    return json.dumps(
        {
            "policy": yaml.safe_dump(policy, sort_keys=False, allow_unicode=True),
            "schema": schema,
            "grains": {info.name: info.grain for info in tables},
        }
    )


def digest_of(text: str) -> str:
    """What terms are named by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read(text: str) -> Catalog:
    """The catalog of written terms. Its policy names no database and no ledger."""
    kept = json.loads(text)
    entries = yaml.safe_load(kept["policy"])
    # A ledger may have been begun when a policy could still name what does nothing in its mode.
    entries = {name: value for name, value in entries.items() if name not in _IDLE}
    policy = Policy(database=Path(), **entries)
    return Catalog.of(policy, kept["schema"], kept["grains"])


def _plain(value: Any) -> Any:
    """A value in lists and mappings, as YAML writes it."""
    if isinstance(value, Mapping):
        return {key: _plain(of) for key, of in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(of) for of in value]
    return str(value) if isinstance(value, PurePath) else value
