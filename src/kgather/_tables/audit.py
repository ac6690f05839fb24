"""What an anonymized table promises, measured on what was written, with the measures that check any table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._release.release import Check
from kgather._settings.table import TableSettings
from kgather._sql_text import literal
from kgather._verify import people
from kgather._verify.connection import bounded
from kgather._verify.risks import risks
from kgather._verify.table import FILE
from kgather._verify.table import checks as verify_promises


@dataclass(frozen=True)
class TableAudit:
    """The checks of an anonymized table; `report` says how it was made and what it cost, `risks` what is left, and
    `class_sizes` how many classes there are of each size, as (rows, classes)."""

    checks: tuple[Check, ...]
    report: dict[str, Any]
    risks: dict[str, Any]
    class_sizes: tuple[tuple[int, int], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check is passed."""
        return all(check.passed for check in self.checks)


def checks(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings) -> tuple[Check, ...]:
    """Check a relation for all that the settings promise. relation: what may stand after FROM."""
    found = verify_promises(con, relation, settings.model_dump(mode="json"))
    con.execute("drop view if exists temp.kgather_verified")
    return found


def of_people(settings: TableSettings, measured: Mapping[str, Any]) -> tuple[Check, ...]:
    """What is promised of people where they have several rows or are in other tables, too. It was counted before it was
    left out whose each row is. measured: `kg_people` of `kgather._recoding.people`."""

    def line(check: str, key: str, promised: int | None) -> Check:
        number = measured.get(key) or 0
        return Check(check, promised, number, promised is None or number >= promised)

    found = []
    if settings.has_several_rows:
        found += [
            line(people.IN_CLASS, "in_class", settings.k),
            line(people.IN_SET, "in_set", settings.k),
        ]
        found += _of_sensitive(settings, measured.get("sensitive", {}))
    if settings.within is not None:
        torn = measured.get("torn") or 0
        found += [
            line(people.IN_GROUP, "in_group", settings.k),
            Check(people.TORN, 0, torn, torn == 0),
        ]
    if settings.beside:
        found.append(line(people.IN_INTERSECTION, "beside", None))
    return tuple(found)


def _of_sensitive(settings: TableSettings, measured: Mapping[str, Mapping[str, float]]) -> Iterator[Check]:
    """What is promised of sensitive columns, of people: see `kgather.udfs.recoding.holders`."""
    for name, asked in settings.sensitive.items():
        yield from people.of_sensitive(name, asked.model_dump(), measured.get(name, {}), asked.diversity)


def risks_of_release(release: Path, settings: TableSettings) -> dict[str, Any]:
    """The same of a release folder. Raises InputError where its table cannot be read."""
    with bounded() as con:
        try:
            return risks(con, f"read_parquet({literal(release / FILE)})", settings)
        except duckdb.Error as error:
            msg = f"{release} is no release: {FILE} cannot be read ({type(error).__name__})."
            raise InputError(msg) from None
