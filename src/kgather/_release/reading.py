"""Reads what a release says of itself."""

import json
from pathlib import Path

from kgather._errors import InputError
from kgather._release.release import AUDIT, Audit, Check


def holds_table(folder: Path) -> bool:
    """Whether a folder holds the release of a table of people; where it holds none, whoever reads on says so."""
    try:
        return json.loads((folder / AUDIT).read_text(encoding="utf-8")).get("kind") == "table"
    except (OSError, ValueError, AttributeError):
        return False


def refuse_table(folder: Path) -> None:
    """Raise InputError where a folder holds the release of a table of people: it cannot be read as one of ratings."""
    if holds_table(folder):
        msg = (
            f"{folder} is the release of a table of people, not of ratings. Its {AUDIT} says what risks are left, and "
            "the commands attack and metrics take it."
        )
        raise InputError(msg)


def read_audit(folder: Path) -> Audit:
    """Read audit.json of a release. Raises InputError where the folder has none or it is not readable."""
    refuse_table(folder)
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
