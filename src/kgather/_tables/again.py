"""A release of a table beside its original: it is made again, which nobody but its publisher can do."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._recoding import sql
from kgather._recoding.recode import Evidence, Recoded, recode
from kgather._recoding.told import told
from kgather._release.release import AUDIT
from kgather._settings.table import TableSettings, table_settings
from kgather._sql_functions import load
from kgather._sql_text import identifier, literal
from kgather._tables.release import PEOPLE, read_people
from kgather._tables.run import named, refuse_missing
from kgather._verify.connection import bounded
from kgather._verify.table import FILE, is_table

Report = Callable[[str, int, int], None]
_LAST = "kg_texts"
_DIFFERENT = (
    "the release cannot be made again from {original}: its classes are other ones. Give what was anonymized, with the "
    "same --seed, the same options of reading and the same hierarchies."
)


@dataclass(frozen=True)
class Dictionaries:
    """The columns of a table as the kernels take them: of each its type, its different values and, int[m], the value of
    each combination; counts int64[m], its rows. Quasi-identifiers come first. person int64[m]: whose combination it is,
    where people have several rows."""

    types: list[str]
    values: list[list[str | None]]
    ids: list[NDArray[np.int64]]
    counts: NDArray[np.int64]
    person: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Opened:
    """A release whose classes are known: what it promised, the table, and what became of it."""

    settings: TableSettings
    table: Dictionaries
    recoded: Recoded

    @property
    def evidence(self) -> Evidence:
        """The table beside its classes."""
        return self.recoded.evidence


def release_settings(release: Path, *, seed: int = 0, hierarchies: Mapping[str, str] | None = None) -> TableSettings:
    """The settings that a release of a table names, with the seed and the files of hierarchies, which it does not.

    Raises InputError where the folder is no release of a table, or a hierarchy is missing.
    """
    try:
        said = json.loads((release / AUDIT).read_text(encoding="utf-8"))
        parameters = dict(said["parameters"])
    except (OSError, ValueError, KeyError, TypeError):
        said = {}
    if not is_table(said):
        msg = f"{release} is no release of a table: {AUDIT} is missing or cannot be read."
        raise InputError(msg)
    elsewhere = {"k_map": "a population", "presence": "a population", "within": "groups of people"}
    for name, what in elsewhere.items():
        if parameters.get(name):
            msg = f"{release} was made with {what} ({name}), which it does not hold: it cannot be made again."
            raise InputError(msg)
    parameters.pop("beside", None)  # what was only measured
    given = dict(hierarchies or {})
    columns = {name: dict(asked) for name, asked in parameters.get("quasi_identifiers", {}).items()}
    unknown = [name for name in given if name not in columns]
    if unknown:
        msg = f"--hierarchy names {', '.join(unknown)}, which is no quasi-identifier of {release}."
        raise InputError(msg)
    for name, asked in columns.items():
        if name in given:
            asked["hierarchy"] = given[name]
        elif isinstance(asked.get("hierarchy"), str):
            msg = (
                f"{release} was made with a hierarchy of '{name}': give --hierarchy {name}=FILE ({asked['hierarchy']})."
            )
            raise InputError(msg)
    return table_settings({**parameters, "quasi_identifiers": columns, "seed": seed})


def opened(
    release: Path,
    original: str,
    settings: TableSettings,
    load_options: LoadOptions,
    *,
    report: Report = lambda *_: None,
) -> Opened:
    """Make the classes of a release again, and see that they are those of its file.

    original: what was anonymized. Raises InputError where it is not, or a part cannot be read.
    """
    with bounded() as con:
        read_people(con, original, settings, load_options, report)
        load(con)
        table = dictionaries(con, PEOPLE, settings)
        report("anonymize", 0, 1)
        recoded = recode(settings, table.types, table.values, table.ids, table.counts, person=table.person)
        report("anonymize", 1, 1)
        found = Opened(settings, table, recoded)
        if _differ(con, release, found):
            raise InputError(_DIFFERENT.format(original=original))
        return found


def dictionaries(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings) -> Dictionaries:
    """The different combinations of a relation's quasi-identifiers and sensitive columns, as the pipeline has them.

    Raises InputError where the relation lacks a column, or has rows that the pipeline refuses.
    """
    refuse_missing(con, "the table", relation, named(settings))
    made = []
    for step in sql.steps(relation, settings, "{}"):
        with told():
            con.execute(f"create or replace temp {'table' if step.kept else 'view'} {step.name} as {step.query}")
        made.append(f"drop {'table' if step.kept else 'view'} temp.{step.name}")
        if step.name == _LAST:
            break
    coded = con.sql("select kg_types, kg_ids, kg_rows, kg_texts from kg_coded, kg_texts").to_arrow_table()
    for statement in reversed(made):
        con.execute(statement)
    if not len(coded) or coded["kg_rows"][0].values is None:
        msg = "the table has no rows."
        raise InputError(msg)
    types = coded["kg_types"][0].as_py()
    ids = [each.values.to_numpy(zero_copy_only=False).astype(np.int64) for each in coded["kg_ids"][0].values]
    return Dictionaries(
        types,
        [each.as_py() for each in coded["kg_texts"][0].values],
        ids[: len(types)],
        coded["kg_rows"][0].values.to_numpy(zero_copy_only=False).astype(np.int64),
        ids[len(types)] if settings.has_several_rows else None,  # in the order of kgather._recoding.sql
    )


def _differ(con: duckdb.DuckDBPyConnection, release: Path, found: Opened) -> bool:
    """Whether the file does not have as many rows of each class with each sensitive value."""
    settings, evidence = found.settings, found.evidence
    quasi, sensitive = list(settings.quasi_identifiers), list(settings.sensitive)
    columns: dict[str, Any] = {}
    for j in range(len(quasi)):
        columns[f"c{j}"] = pa.array(found.recoded.shown[j], pa.string()).take(pa.array(evidence.group))
    for j in range(len(sensitive)):
        texts = pa.array(found.table.values[len(quasi) + j], pa.string())
        columns[f"c{len(quasi) + j}"] = texts.take(pa.array(evidence.sensitive[evidence.combination, j]))
    con.register("kg_again", pa.table({**columns, "n": evidence.rows}))
    names = ", ".join(f"c{place}" for place in range(len(quasi) + len(sensitive)))
    shown = ", ".join(
        f"cast({identifier(name)} as varchar) as c{place}" for place, name in enumerate([*quasi, *sensitive])
    )
    try:
        [(differ,)] = con.execute(
            f"with again as (select {names}, sum(n)::bigint as n from kg_again group by {names}), "
            f"shown as (select {shown} from read_parquet({literal(release / FILE)})), "
            f"written as (select {names}, count(*) as n from shown group by {names}) "
            "select count(*) from ((from again except from written) union all (from written except from again))"
        ).fetchall()
    except duckdb.Error as error:
        msg = f"{release} is no release: {FILE} cannot be read ({type(error).__name__})."
        raise InputError(msg) from None
    con.unregister("kg_again")
    return bool(differ)
