"""Rows of ratings for the tests of releases that follow each other."""

import csv
from pathlib import Path

Rows = list[dict[str, str]]


def written(path: Path, rows: Rows) -> str:
    """The name of a CSV file, which the rows are written to."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return str(path)
