"""A population beside a release: how many of its people look like each class."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError, quoted
from kgather._loaders import LoadOptions, as_written
from kgather._recoding.columns import coded
from kgather._recoding.costs import shown_boxes
from kgather._settings.table import TableSettings
from kgather._sql_text import identifier
from kgather._tables.again import Opened, dictionaries
from kgather._verify.connection import bounded
from kgather.udfs.attacking._boxes import points_in
from kgather.udfs.recoding.loss import losses

_ROWS = "kgather_population"


@dataclass(frozen=True)
class Population:
    """people: how many there are. alike int64[g]: of each class those who look like it."""

    people: int
    alike: NDArray[np.int64]


def read_population(given: str, opened: Opened, load_options: LoadOptions) -> Population:
    """Read a table of a population, a row a person, with all quasi-identifiers by the same names.

    Raises InputError where it cannot be read, lacks a column, or a value is none that the release's column may have.
    """
    settings = opened.settings
    quasi = list(settings.quasi_identifiers)
    types = opened.table.types[: len(quasi)]
    with bounded() as con:
        try:
            with as_written.opened(con, given, load_options, quasi) as table:
                relation = table.view(con, _ROWS, quasi)
                existing = {str(name).lower() for name, *_ in con.execute(f"describe {relation}").fetchall()}
                missing = [name for name in quasi if name.lower() not in existing]
                if missing:
                    msg = f"{given} has no column {quoted(missing)}, which the release shows."
                    raise InputError(msg)
                columns = ", ".join(
                    f"cast({identifier(name)} as {kind}) as {identifier(name)}"
                    for name, kind in zip(quasi, types, strict=True)
                )
                con.execute(f"create temp table population as select {columns} from {relation}")
        except duckdb.Error as error:
            msg = f"{given} cannot be read with the types of the release's columns ({type(error).__name__})."
            raise InputError(msg) from None
        # A row is a person there.
        only_quasi = TableSettings(k=settings.k, quasi_identifiers=settings.quasi_identifiers, seed=settings.seed)
        found = dictionaries(con, "population", only_quasi)
    points, first, last, parts = _in_one(opened, found.values, found.ids)
    return Population(int(found.counts.sum()), points_in(points, found.counts, parts, first, last))


def _in_one(opened: Opened, values: Sequence[Sequence[str | None]], ids: Sequence[NDArray[np.int64]]):  # type: ignore[no-untyped-def]
    """The population's codes and what the classes cover, in the codes of all values of both tables."""
    evidence, settings = opened.evidence, opened.settings
    low, high = np.empty_like(evidence.low), np.empty_like(evidence.high)
    points = np.empty((len(ids[0]), len(values)), dtype=np.int32)
    every = []
    for j, (name, theirs) in enumerate(zip(settings.quasi_identifiers, values, strict=True)):
        own = opened.table.values[j]
        rows = np.bincount(opened.table.ids[j], weights=opened.table.counts, minlength=len(own))
        known = set(own)
        more = [value for value in theirs if value not in known]
        both = [*own, *more]
        # Values of the population alone have no rows, so that cuts that are found in the data stay where they are.
        counts = np.append(rows, np.zeros(len(more))).astype(np.int64)
        column = coded(name, settings.quasi_identifiers[name], opened.table.types[j], both, counts, settings.k)
        place = {value: at for at, value in enumerate(both)}
        points[:, j] = column.codes[[place[value] for value in theirs]][ids[j]]
        moved = np.arange(max(evidence.columns[j].loss.codes, column.loss.codes), dtype=np.int32)
        moved[evidence.columns[j].codes] = column.codes[: len(own)]
        low[:, j], high[:, j] = moved[evidence.low[:, j]], moved[evidence.high[:, j]]
        every.append(column)
    first, last = shown_boxes(every, low, high, evidence.suppressed)
    return points, first, last, losses([column.loss for column in every]).parts
