"""What the engine says of an error of the pipeline, as an error of kgather's own."""

import re
from typing import Any

import duckdb

from kgather._errors import InputError, KgatherError, PromiseError
from kgather._recoding import sql

_TOLD = re.compile(r"\b(InputError|PromiseError): (.*)", re.DOTALL)


class told:  # noqa: N801
    """Raises what a function of ours raised within SQL as what it is; all else as an error that quotes no data."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, duckdb.Error):
            return
        found = _TOLD.search(str(error))
        if found:
            # DuckDB adds its own copy of the query below.
            message = re.split(r"\n\s*\n?(?:LINE \d+:|At:|\s+\^)", found[2])[0].strip()
            raise (InputError if found[1] == "InputError" else PromiseError)(message) from None
        for own in sql.REFUSALS:
            if own in str(error):
                raise InputError(str(error).removeprefix("Invalid Input Error: ").partition("\n")[0]) from None
        if isinstance(error, duckdb.OutOfRangeException):
            msg = (
                "a number is beyond the range of its type, as a sum may be. Cast the column to DOUBLE, or aggregate it "
                "in another way."
            )
            raise InputError(msg) from None
        msg = f"the table could not be read or grouped ({type(error).__name__})."
        raise KgatherError(msg) from None
