"""Inputs that are not files of this machine: standard input and addresses, copied to a private folder for a while."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import duckdb

from kgather._errors import InputError
from kgather._loaders.sources import FETCHED_PREFIX
from kgather._sql_text import literal

STANDARD_INPUT = "-"
SCHEMES = ("http", "https", "s3", "gcs", "gs", "r2", "hf")


@contextmanager
def fetched(inputs: Sequence[str]) -> Iterator[list[str]]:
    """The inputs with `-` and addresses replaced by copies, which are gone when the context is left.

    Only the owner may read the copies. Addresses are read by DuckDB's extension httpfs, with its secrets.

    Raises:
        InputError: Standard input is named twice, is a terminal or is empty; an address cannot be read.
    """
    if not any(_is_elsewhere(given) for given in inputs):
        yield list(inputs)
        return
    if list(inputs).count(STANDARD_INPUT) > 1:
        message = "standard input (-) can be read once, and is named twice."
        raise InputError(message)
    with tempfile.TemporaryDirectory(prefix=FETCHED_PREFIX) as folder:
        yield [
            _copied(given, Path(folder) / str(number)) if _is_elsewhere(given) else given
            for number, given in enumerate(inputs)
        ]


def _is_elsewhere(given: str) -> bool:
    return given == STANDARD_INPUT or urlsplit(given).scheme.lower() in SCHEMES


def _copied(given: str, folder: Path) -> str:
    folder.mkdir()
    if given == STANDARD_INPUT:
        return str(_from_standard_input(folder / "standard input"))
    address = urlsplit(given)
    # What follows the path of an address may be a password.
    name = Path(address.path).name or address.netloc
    _from_address(given, folder / name, f"{address.scheme}://{address.hostname or ''}{address.path}")
    return str(folder / name)


def _from_standard_input(file: Path) -> Path:
    if sys.stdin.isatty():
        message = (
            "standard input (-) is a terminal. Pipe a file into it, as `cat ratings.csv | kgather publish -` does."
        )
        raise InputError(message)
    with file.open("xb") as stream:
        shutil.copyfileobj(sys.stdin.buffer, stream)
    if not file.stat().st_size:
        message = "standard input (-) is empty, there are no ratings in it."
        raise InputError(message)
    return file


def _from_address(given: str, file: Path, shown: str) -> None:
    with duckdb.connect() as con:
        try:
            con.execute("load httpfs")
        except duckdb.Error:
            message = (
                f"{shown} is read by DuckDB's extension httpfs, which is not installed here. Install it once with "
                "python -c \"import duckdb; duckdb.sql('install httpfs')\", or download the file first."
            )
            raise InputError(message) from None
        try:
            if file.suffix.lower() == ".parquet":
                con.execute(f"copy (from read_parquet({literal(given)})) to {literal(str(file))} (format parquet)")
                return
            [(content,)] = con.execute(f"select content from read_blob({literal(given)})").fetchall()
        except (duckdb.Error, ValueError) as error:
            # Its text may quote what follows the address.
            message = f"{shown} cannot be read ({type(error).__name__}). Look at the address and at DuckDB's secrets."
            raise InputError(message) from None
    file.write_bytes(content)
