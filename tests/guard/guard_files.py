"""The made-up database and its policy as files."""

import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import yaml
from guard_data import POLICY, build

_ITEMS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")


@cache
def _folder() -> TemporaryDirectory[str]:
    """A folder that goes with the process."""
    return TemporaryDirectory(prefix="kgather-guard-")


@cache
def _database() -> Path:
    file = Path(_folder().name) / "fixture.duckdb"
    with duckdb.connect(file) as connection:
        build(connection)
    return file


def write_files(folder: Path, **changes: object) -> Path:
    """Put database and policy into a folder; changes: entries of the policy. Returns the policy's path."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_database(), folder / "fixture.duckdb")
    path = folder / "policy.yml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(POLICY), **changes}), encoding="utf-8")
    return path


def truth(folder: Path, sql: str) -> list[tuple[object, ...]]:
    """What the database itself answers."""
    with duckdb.connect(folder / "fixture.duckdb", read_only=True) as connection:
        return connection.sql(sql).fetchall()


def statements(seed: int) -> Iterator[str]:
    """Statements of which most cut atoms."""
    draw = random.Random(seed)
    while True:
        item, other = draw.sample(_ITEMS, 2)
        sign = draw.choice(("AND", "OR"))
        where = f"{item} >= {draw.randint(1, 5)} {sign} {other} <= {draw.randint(1, 5)}"
        yield draw.choice(
            (
                f"SELECT COUNT(*) AS n FROM ratings_wide WHERE {where}",
                f"SELECT AVG(salary) AS n FROM ratings_wide WHERE {where}",
                f"SELECT COUNT(*) AS n FROM ratings WHERE item_id = {draw.randint(1, 5)} AND rating >= 4",
            )
        )
