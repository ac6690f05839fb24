"""What the tests of the loaders share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kgather._loaders import LoadOptions, LoadReport, load

Row = tuple[Any, ...]


class Loaded:
    """A load and what it gave."""

    def __init__(self, con: duckdb.DuckDBPyConnection, report: LoadReport) -> None:
        self.con = con
        self.report = report

    def rows(self, columns: str) -> list[Row]:
        """Some columns of all rows, in the order of the inputs and lines."""
        return self.con.execute(f"select {columns} from loaded.ratings order by source, line").fetchall()

    def good(self) -> list[Row]:
        """User, item and rating of the rows without a problem."""
        sql = "select user_id, item_id, rating from loaded.ratings where problem is null order by source, line"
        return self.con.execute(sql).fetchall()

    def problems(self) -> list[Row]:
        """Line and problem of the others."""
        sql = "select line, problem from loaded.ratings where problem is not null order by source, line"
        return self.con.execute(sql).fetchall()


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory."""
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a small file; text is written as UTF-8, line ends as they are."""

    def written(content: str | bytes, name: str = "ratings.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.fixture
def loaded(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> Callable[..., Loaded]:
    """Write one small file and load it."""

    def made(content: str | bytes, name: str = "ratings.txt", **options: Any) -> Loaded:
        return Loaded(con, load(con, [write(content, name)], LoadOptions(**options)))

    return made
