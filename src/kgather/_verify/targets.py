"""What is to be verified, however it is given: a release, a file, a table, or rows that Arrow can stream."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._relations import relation_in
from kgather._release.release import Check
from kgather._verify.asked import Asked
from kgather._verify.connection import bounded
from kgather._verify.folder import is_release, promised_size, verify_release
from kgather._verify.models import verify_models

_ROWS = "kgather_rows"


def verify_named(target: str, k: int | None, given: Mapping[str, Any]) -> tuple[Check, ...]:
    """Check a release folder, a Parquet or CSV file, or FILE.duckdb:TABLE.

    given: the other fields of `Asked`, by name; a release is checked as a whole and takes none.
    Raises InputError where the target cannot be read, or is not checked for what was asked.
    """
    if is_release(Path(target)):
        return _of_release(Path(target), k, given)
    asked = Asked(k=k, **given)
    with bounded() as con:
        relation = relation_in(con, target)
        with _readable(target):
            return verify_models(con, relation, asked)


def verify_rows(rows: Any, asked: Asked) -> tuple[Check, ...]:
    """Check rows that have `__arrow_c_stream__`. They are read once and kept where they may spill.

    Raises InputError where they cannot be read or are not what was asked for.
    """
    import pyarrow as pa  # it takes a moment, and the command line does not need it

    with bounded() as con, _readable("what was given", pa.ArrowException):
        # Checks look at the rows several times, and a stream can be read once.
        con.register(f"{_ROWS}_stream", pa.RecordBatchReader.from_stream(rows))
        con.execute(f"create temp table {_ROWS} as from {_ROWS}_stream")
        con.unregister(f"{_ROWS}_stream")
        return verify_models(con, _ROWS, asked)


def _of_release(folder: Path, k: int | None, given: Mapping[str, Any]) -> tuple[Check, ...]:
    asked = [f"--{name.replace('_', '-')}" for name, value in given.items() if value not in (None, ())]
    if asked:
        msg = (
            f"a release is checked as a whole, without {', '.join(asked)}. To check one of its tables, give it by "
            f"name, as {folder / 'members.parquet'}."
        )
        raise InputError(msg)
    return verify_release(folder, k if k is not None else promised_size(folder))


@contextmanager
def _readable(target: str, *others: type[Exception]) -> Iterator[None]:
    unreadable: tuple[type[Exception], ...] = (duckdb.Error, *others)
    try:
        yield
    except unreadable as error:
        # Its text may quote data.
        msg = f"{target} cannot be checked: its content cannot be read or compared ({type(error).__name__})."
        raise InputError(msg) from None
