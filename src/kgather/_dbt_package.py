"""The dbt package: where it lies, beside this module, in a wheel and in an editable install alike."""

import hashlib
from functools import cache
from pathlib import Path


def dbt_path() -> Path:
    """Return the folder to name in a packages.yml as `local:`."""
    return Path(__file__).parent / "dbt"


@cache
def package_digest(folder: Path | None = None) -> str:
    """One number for all text of the dbt package, by which a change is seen. O(its size)."""
    found = hashlib.sha256()
    root = folder or dbt_path()
    for file in sorted(file for kind in ("py", "sql", "yml", "md") for file in root.rglob(f"*.{kind}")):
        found.update(f"{file.relative_to(root)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


@cache
def macro_sql(name: str) -> str:
    """The text that creates a SQL macro of the package, which is plain SQL of DuckDB's. O(files)."""
    [file] = (dbt_path() / "sql").rglob(f"{name}.sql")
    return file.read_text(encoding="utf-8")
