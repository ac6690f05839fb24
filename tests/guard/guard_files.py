"""The made-up database and its policy as files."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import duckdb
import yaml
from guard_data import POLICY, build


@cache
def _database() -> Path:
    file = Path(mkdtemp(prefix="kgather-guard-")) / "fixture.duckdb"
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
