"""What was read, said: files, columns, how users and items look, the scale. Never a value of an id."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from kgather._loaders.checksums import sha256
from kgather._loaders.expressions import first_row
from kgather._loaders.report import LoadReport
from kgather._loaders.sources import Source

_LONGEST_SHAPE = 24
MOST_SHAPES = 3
"""Of ids, that are told."""
_MOST_FILES = 100


def inputs(loaded: LoadReport, sources: Sequence[Source]) -> dict[str, Any]:
    """The files that were read, and how many ids were written in several ways.

    Each file has its name (not its folder), the day it was last changed, its checksum, rows and layout. Of very many
    only the first are listed.
    """
    listed = _files(loaded, sources)
    more = listed[_MOST_FILES:]
    further = {"files": len(more), "rows": sum(each["rows"] for each in more)}
    attributes = loaded.user_attributes
    return {
        "files": listed[:_MOST_FILES],
        **({"further_files": further} if more else {}),
        "merged": {"users": loaded.merged_users, "items": loaded.merged_items},
        **({} if loaded.catalogue is None else {"catalogue": {"items": loaded.catalogue.items}}),
        **(
            {}
            if attributes is None
            else {"user_attributes": {"users": attributes.users, "columns": attributes.columns}}
        ),
    }


def _files(loaded: LoadReport, sources: Sequence[Source]) -> list[dict[str, Any]]:
    return [
        {
            "file": each.source.rpartition("/")[2],
            "changed": datetime.fromtimestamp(source.path.stat().st_mtime, UTC).date().isoformat(),
            "sha256": sha256(source.path),
            "rows": each.rows,
            "set_aside": each.problem_rows,
            **each.model_dump(
                mode="json", include={"format", "compression", "encoding", "delimiter", "header", "columns"}
            ),
        }
        for each, source in zip(loaded.inputs, sources, strict=False)
    ]


def ids(con: duckdb.DuckDBPyConnection, relation: str, column: str, k: int) -> dict[str, Any]:
    """How ids look: how many, of what type, and the usual shapes, as `A######`; none that fewer than k ids have.

    Args:
        con: The connection.
        relation: What may stand after FROM; one row for each id.
        column: The column of ids.
        k: The size of group.
    """
    count, kind = first_row(con, f"select count(*), any_value(typeof({column})) from {relation}") or (0, None)
    shapes = con.execute(
        f"select shape from (select {shape_sql(column)} as shape from {relation}) where shape is not null "
        f"group by shape having count(*) >= {k} order by count(*) desc, shape asc limit {MOST_SHAPES}"
    ).fetchall()
    return {
        "count": int(count),
        "type": "text" if kind == "VARCHAR" else "whole numbers",
        "shapes": [shape for (shape,) in shapes],
    }


def shape_sql(column: str) -> str:
    """SQL: the shape of an id, cut where it is long."""
    shape = f"regexp_replace(cast({column} as varchar), '[0-9]', '#', 'g')"
    shape = f"regexp_replace({shape}, '\\p{{Lu}}', 'A', 'g')"
    shape = f"regexp_replace({shape}, '[\\p{{Ll}}\\p{{Lo}}\\p{{Lm}}\\p{{Lt}}]', 'a', 'g')"
    shape = f"regexp_replace({shape}, '[^#@._:/+ Aa-]', '?', 'g')"
    return f"case when length({shape}) > {_LONGEST_SHAPE} then left({shape}, {_LONGEST_SHAPE}) || '…' else {shape} end"


def sentences(seen: Mapping[str, Any]) -> Iterator[str]:
    """What was read, for people, line by line."""
    if not seen:
        return
    for file in seen["files"]:
        layout = [f"encoding {file['encoding']}"] if file.get("encoding") else []
        layout += [f"separator {file['delimiter']!r}"] if file.get("delimiter") else []
        if file.get("header") is not None:
            layout.append("the first line names the columns" if file["header"] else "no line names the columns")
        compression = f" in {file['compression']}" if file.get("compression") else ""
        # Where people wait for a later release, the rows of a file would count their ratings.
        rows = f", {file['rows']:,} rows, {file['set_aside']:,} of them cannot be read" if "rows" in file else ""
        yield (
            f"{file['file']}: {file['format']}{compression}{rows}; "
            f"{'; '.join([*layout, 'sha256 ' + file['sha256'][:12]])}"
        )
        columns = ", ".join(f"{role} = {column}" for role, column in file["columns"].items() if column is not None)
        yield f"  {columns}"
    if "further_files" in seen:
        yield f"and {seen['further_files']['files']:,} more files with {seen['further_files']['rows']:,} rows"
    for role in ("users", "items"):
        about = seen[role]
        shapes = f", as {', '.join(about['shapes'])}" if about["shapes"] else ""
        yield f"{role}: {about['count']:,}, {about['type']}{shapes}"
    scale = seen["scale"]
    if scale["min"] is None:
        return
    declared = "as declared" if scale["declared"] else "not declared: the lowest and the highest that were read"
    yield f"ratings: {scale['min']:g} to {scale['max']:g} ({declared})"
    if seen["repeats"]:
        yield f"repeats: {seen['repeats']:,} rows are of a pair of user and item that was there before"
    for reason, rows in seen["set_aside"].items():
        yield f"set aside: {rows:,} rows, {reason}"
    for role in ("users", "items"):
        if seen["merged"][role]:
            yield f"{seen['merged'][role]:,} {role} were written in several ways, as 7 and 7.0, and are one each"
