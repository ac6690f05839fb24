"""Rows that Arrow can read, anonymized in a database in memory."""

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from kgather._errors import InputError
from kgather._loaders.columns import distinct_names
from kgather._settings.table import TableSettings
from kgather._tables.audit import TableAudit
from kgather._tables.run import Report, anonymize
from kgather._verify.connection import bounded

_ROWS, _TABLE, _GROUPS = "kgather_rows", "kgather_anonymized", "kgather_groups"
_WITHIN, _BESIDE = "kgather_within", "kgather_beside"
POPULATION = "kgather_population"


def anonymize_rows(
    rows: Any,
    settings: TableSettings,
    population: Any = None,
    *,
    within: Any = None,
    beside: Sequence[Any] = (),
    keep_groups: bool = False,
    report: Report = lambda *_: None,
) -> tuple[pa.Table, TableAudit, pa.Table | None]:
    """The anonymized rows as an Arrow table, what they promise, keep and cost, and who looks the same if asked for.

    rows: what has `__arrow_c_stream__`; it is read once. population: the same of the population, where the settings
    name `POPULATION`. within and beside: groups, such rows of (unit, group_id).
    Raises as `kgather._tables.run.anonymize` does.
    """
    with bounded() as con:
        _read(con, rows, _ROWS)
        if population is not None:
            _read(con, population, POPULATION)
        if within is not None:
            _read(con, within, _WITHIN)
        names = [f"{_BESIDE}{place}" for place in range(1, len(beside) + 1)]
        for other, name in zip(beside, names, strict=True):
            _read(con, other, name)
        asked = settings.model_copy(update={"within": None if within is None else _WITHIN, "beside": names})
        into = _GROUPS if keep_groups else None
        audit = anonymize(con, _ROWS, asked, _TABLE, groups_into=into, report=report)
        groups = con.table(_GROUPS).to_arrow_table() if keep_groups else None
        return con.table(_TABLE).to_arrow_table(), audit, groups


def _read(con: duckdb.DuckDBPyConnection, rows: Any, name: str) -> None:
    try:
        reader = pa.RecordBatchReader.from_stream(rows)
        distinct_names("the rows", reader.schema.names)
        con.register(f"{name}_stream", reader)
        con.execute(f"create temp table {name} as from {name}_stream")
        con.unregister(f"{name}_stream")
    except (duckdb.Error, pa.ArrowException) as error:
        msg = f"the rows cannot be read ({type(error).__name__})."
        raise InputError(msg) from None
