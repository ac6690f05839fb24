"""Releases of tables that somebody changed, and whose page and checksums were made to fit afterwards."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgather._report import render_table

FILES = ("table.parquet", "release.duckdb", "report.html")


def renewed(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None, *, page: bool = True) -> None:
    """Change the audit of a release, and write its page and the checksums anew. page: whether the page is made anew."""
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    change(audit)
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES[:2]}
    if page:
        (folder / "report.html").write_text(render_table({**audit, "files": sums}), encoding="utf-8")
    sums["report.html"] = hashlib.sha256((folder / "report.html").read_bytes()).hexdigest()
    (folder / "audit.json").write_text(json.dumps({**audit, "files": sums}, indent=2) + "\n", encoding="utf-8")
