"""Reads what a release says of itself."""

import json
from pathlib import Path

from kgather._errors import InputError
from kgather._release.release import AUDIT, Audit, Check


def read_audit(folder: Path) -> Audit:
    """Read audit.json of a release. Raises InputError where the folder has none or it is not readable."""
    try:
        said = json.loads((folder / AUDIT).read_text(encoding="utf-8"))
        return Audit(
            parameters=dict(said["parameters"]),
            counts=dict(said["counts"]),
            scale=dict(said["scale"]),
            checks=tuple(Check(**check) for check in said["checks"]),
            metrics=tuple(said["metrics"]),
            attacks=said["attacks"],
            group_sizes=tuple(said["group_sizes"]),
            sweep=tuple(said.get("sweep", ())),
            read=said.get("read"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        msg = f"{folder} is no release: {AUDIT} is missing or cannot be read."
        raise InputError(msg) from None
