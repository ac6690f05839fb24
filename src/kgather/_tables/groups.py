"""Who looks the same, as a file of the publisher's: other tables are made within it, and it is kept if asked for.

It says whom each class has, so it is as secret as the table itself and never lies in a release.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._loaders import LoadOptions, as_written
from kgather._settings.table import TableSettings
from kgather._sql_text import identifier, literal

_WITHIN, _BESIDE = "loaded.within", "loaded.beside"


def read_groups(con: duckdb.DuckDBPyConnection, settings: TableSettings) -> TableSettings:
    """The settings with relations of the connection in place of files of groups.

    Each file, or FILE.duckdb:TABLE, has the column of the unit and `group_id`. Raises InputError where one cannot be
    read.
    """
    if settings.unit is None:
        return settings
    con.execute("create schema if not exists loaded")
    within = settings.within
    if within is not None:
        within = _loaded(con, within, settings.unit, _WITHIN)
    beside = [_loaded(con, given, settings.unit, f"{_BESIDE}{place}") for place, given in enumerate(settings.beside, 1)]
    return settings.model_copy(update={"within": within, "beside": beside})


def _loaded(con: duckdb.DuckDBPyConnection, given: str, unit: str, table: str) -> str:
    with as_written.opened(con, given, LoadOptions(), [unit, "group_id"]) as found:
        view = found.view(con, "kgather_groups", [unit, "group_id"])
        named = f"{identifier(unit)}, group_id"
        con.execute(f"create or replace table {table} as select {named} from {view}")
        con.execute(f"drop view if exists {view}")
    return table


def check_place(file: Path, target: Path, inputs: Sequence[str], *, force: bool) -> None:
    """Refuse a file for the groups that lies in the release, or stands already."""
    place = file.resolve()
    if target == place or target in place.parents:
        msg = f"{file} lies in the release: who is in which class would go out with it. Give another --keep-groups."
        raise InputError(msg)
    if any(Path(given).resolve() == place for given in inputs) or place.is_dir():
        msg = f"{file} is an input, or a folder. Give another --keep-groups."
        raise InputError(msg)
    if place.exists() and not force:
        msg = f"{file} exists. Give another --keep-groups, or --force to replace it."
        raise InputError(msg)
    if not place.parent.is_dir():
        msg = f"{place.parent} is no folder. Give another --keep-groups."
        raise InputError(msg)


def write_groups(con: duckdb.DuckDBPyConnection, table: str, file: Path) -> None:
    """Write the groups as Parquet that nobody but its owner reads."""
    con.execute(f"copy {table} to {literal(file)} (format parquet)")
    file.chmod(0o600)
