"""Opens a release beside its original, on the publisher's side, where both are at hand."""

import dataclasses
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence, OtherReleaseError, Released, read_evidence, read_released
from kgather._loaders import LoadOptions
from kgather._publishing.publish import publish
from kgather._release.reading import refuse_table
from kgather._release.release import AUDIT, DATABASE
from kgather._settings.publication import PublishSettings
from kgather._sql_text import literal

_DIFFERENT = (
    "the release cannot be made again from {originals}: {why}. Give what was published, with the same options and "
    "--seed, or the working database that publish --keep-work kept."
)


def open_evidence(
    release: Path,
    originals: Sequence[str],
    *,
    seed: int = 0,
    load_options: LoadOptions | None = None,
    assignments: Sequence[str] = (),
    days: bool = False,
    vectors: bool = False,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> Evidence:
    """Open a release together with the secret map that nobody but its publisher can know.

    originals: the work.duckdb that `publish --keep-work` kept, or what was published. From the latter the pipeline is
    run again, in a private folder, with the parameters that the release names, `assignments` (VAR=VALUE) and the seed:
    same input, seed and version give the same groups, which are then found in the release by what they show. days: read
    when the ratings were given, too; vectors: what users were compared in.

    Raises InputError where there is no release, or the originals are not what it was made of.
    """
    refuse_table(release)
    parameters = _parameters(release)
    work = _working_database(originals)
    with duckdb.connect() as con:
        con.execute(f"attach {literal(release / DATABASE)} as release (read_only)")
        if work is not None:
            con.execute(f"attach {literal(work)} as work (read_only)")
            return read_evidence(con, "work", "release", parameters, days=days, vectors=vectors)
        with tempfile.TemporaryDirectory(prefix="kgather-") as folder:
            again = Path(folder)
            publish(
                originals,
                again / "release",
                _settings(parameters, seed, assignments, release),
                load_options or LoadOptions(),
                keep_work=again / "work",
                report=report,
            )
            con.execute(f"attach {literal(again / 'work' / 'work.duckdb')} as work (read_only)")
            con.execute(f"attach {literal(again / 'release' / DATABASE)} as again (read_only)")
            named = ", ".join(originals)
            try:
                released = read_released(con, "work", "release")
            except OtherReleaseError:
                raise InputError(_DIFFERENT.format(originals=named, why="it shows other items")) from None
            found = _found_in(
                released,
                read_evidence(con, "work", "again", parameters, days=days, vectors=vectors),
                read_released(con, "work", "again"),
                named,
            )
            con.execute("detach again")
            con.execute("detach work")
            return found


def _parameters(release: Path) -> Mapping[str, Any]:
    try:
        return dict(json.loads((release / AUDIT).read_text(encoding="utf-8"))["parameters"]) | _scale(release)
    except (OSError, ValueError, KeyError, TypeError):
        msg = f"{release} is no release: {AUDIT} is missing or does not say what it was made with."
        raise InputError(msg) from None


def _scale(release: Path) -> dict[str, Any]:
    """The scale, where it was declared and not seen from the ratings."""
    scale = json.loads((release / AUDIT).read_text(encoding="utf-8")).get("scale", {})
    if not scale.get("declared"):
        return {}
    return {"scale": [number for number in (scale["min"], scale["max"], scale.get("step")) if number is not None]}


def _working_database(originals: Sequence[str]) -> Path | None:
    """The one original, if it is a working database."""
    path = Path(originals[0]) if len(originals) == 1 else None
    if path is None or not path.is_file():
        return None
    with path.open("rb") as stream:
        if stream.read(12)[8:] != b"DUCK":
            return None
    with duckdb.connect(path, read_only=True) as con:
        tables = {name for (name,) in con.sql("select table_name from duckdb_tables()").fetchall()}
    return path if "int_kgather__gathered" in tables else None


def is_working_database(originals: Sequence[str]) -> bool:
    """Whether what was given is the database that publish kept."""
    return _working_database(originals) is not None


def _settings(parameters: Mapping[str, Any], seed: int, assignments: Sequence[str], release: Path) -> PublishSettings:
    if parameters.get("engine") == "spark":
        msg = (
            f"{release} was made by the engine spark, and publishing its original again gives other groups. Its "
            f"{AUDIT} has what quick attackers got."
        )
        raise InputError(msg)
    if any(parameters.get(name) for name in ("level_column", "personal_columns", "sensitive_columns")):
        msg = (
            f"{release} was made with users' attributes, which its original alone does not tell. Give the working "
            "database that publish --keep-work kept."
        )
        raise InputError(msg)
    if str(parameters.get("cells")).startswith("popular"):
        msg = (
            f"{release} shows cells that were chosen with noise, which its original alone does not tell. Give the "
            "working database that publish --keep-work kept."
        )
        raise InputError(msg)
    return PublishSettings.from_options(
        {name: value for name, value in parameters.items() if name in PublishSettings.model_fields}
        | {"seed": seed, "i_know_this_is_not_anonymous": True, "items_confirmed": True},
        list(assignments),
    )


def _found_in(released: Released, made: Evidence, again: Released, originals: str) -> Evidence:
    """The evidence made again, with its candidates replaced by those of the release that show the same."""
    if len(released.shown.sizes) != len(again.shown.sizes):
        raise InputError(_DIFFERENT.format(originals=originals, why="it has other groups"))
    places = _partners(again.shown.fingerprints(), released.shown.fingerprints())
    if (places < 0).any():
        raise InputError(_DIFFERENT.format(originals=originals, why="its groups show something else"))
    truth = np.where(made.truth >= 0, places[made.truth], -1).astype(np.int32)
    groups = truth if released.member_groups is None else np.where(truth >= 0, released.member_groups[truth], -1)
    return dataclasses.replace(
        made, shown=released.shown, truth=truth, groups=groups.astype(np.int32), group_ids=released.group_ids
    )


def _partners(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.int64]:
    """For each of my rows a row of theirs that is the same, int64[n], each taken once; -1 where none is left."""
    here, there = np.lexsort(mine.T), np.lexsort(theirs.T)
    places = np.full(len(mine), -1)
    at = 0
    for row in here:
        while at < len(there) and tuple(theirs[there[at]][::-1]) < tuple(mine[row][::-1]):
            at += 1
        if at < len(there) and np.array_equal(theirs[there[at]], mine[row]):
            places[row] = there[at]
            at += 1
    return places
