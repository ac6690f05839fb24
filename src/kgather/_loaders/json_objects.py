"""Reading JSON: an object for each rating, one a line or in one list. A field is named by its path, as `user.id`."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._loaders import columns, delimited, ratings_written, values
from kgather._loaders.columns import Columns
from kgather._loaders.expressions import as_no_pattern
from kgather._loaders.layout import Line
from kgather._loaders.lines import LONGEST_LINE, LineReader, registered
from kgather._loaders.options import LoadOptions
from kgather._loaders.ratings_written import Written
from kgather._loaders.sources import Source
from kgather._loaders.store import Parsed
from kgather._sql_text import literal

FORMAT = "json"
NOT_AN_OBJECT = "it is no JSON object"

_LINES, _OBJECTS = "__kgather_json_lines", "__kgather_json_objects"
_SAMPLE_OBJECTS = 500
# What DuckDB's own reader of JSON can uncompress.
_COMPRESSIONS = {"text": "none", "gzip": "gzip", "zstd": "zstd"}


@dataclass(frozen=True)
class Objects:
    """How the objects of a file are read. `pointers` are those of JSON (RFC 6901) to the chosen fields."""

    in_lines: bool
    names: tuple[str, ...]
    pointers: tuple[str, ...]
    columns: Columns
    written: Written
    warnings: tuple[str, ...] = ()

    def column_names(self) -> dict[str, str | None]:
        """For each role the path of its field."""
        chosen = {role: self.columns.position(role) for role in columns.ROLES}
        return {role: None if at is None or at >= len(self.names) else self.names[at] for role, at in chosen.items()}


def looks_like_json(sample: Sequence[Line]) -> bool:
    """Whether the first line that is not blank begins as an object or a list of them does."""
    first = sample[0][1].lstrip()
    return first.startswith("{") or (first.startswith("[") and first[1:].lstrip()[:1] in ("{", ""))


def detect(con: duckdb.DuckDBPyConnection, source: Source, sample: Sequence[Line], options: LoadOptions) -> Objects:
    """Tell the fields of the objects, and which of them hold users, items, ratings and times.

    Raises:
        InputError: It is no JSON that can be read, or (RolesUnknownError) no name is clear for a role.
    """
    in_lines = _object(sample[0][1]) is not None
    if in_lines:
        objects = [found for _, text in sample if (found := _object(text)) is not None]
    else:
        with _listed(con, source) as relation:
            rows = con.execute(f"select text from {relation} limit {_SAMPLE_OBJECTS}").fetchall()
        objects = [found for (text,) in rows if (found := _object(text)) is not None]
    # A field that few objects have is none of the roles. It may be an id that is used as a key, which is not told.
    often = Counter(path for each in objects for path in _leaves(each))
    paths = [path for path, times in often.items() if times > 1 and 10 * times >= len(objects)]
    if not paths:
        message = (
            f"{source.given} holds JSON, but not an object for each rating, one a line or all in one list, with fields "
            "for user, item and rating. Write it so first."
        )
        raise InputError(message)
    names = [".".join(path) for path in paths]
    shown = [[_text(each, path) for path in paths] for each in objects]
    chosen = columns.choose_by_name(source.given, names, options, shown)
    warnings: tuple[str, ...] = ()
    if chosen.time is not None and options.time_column is None:
        times = [row[chosen.time] for row in shown if not values.stands_for_no_time(row[chosen.time])]
        if times and not any(values.is_time(text, named=True) for text in times):
            warnings = (f"{source.given}: '{names[chosen.time]}' holds no readable times and is ignored.",)
            chosen = chosen.without_time()
    pointers = ["".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path) for path in paths]
    ratings = [row[chosen.rating] for row in shown if chosen.rating < len(row)]
    written = ratings_written.written(ratings, options.words)
    return Objects(in_lines, tuple(names), tuple(pointers), chosen, written, warnings)


def parse(
    con: duckdb.DuckDBPyConnection,
    source: Source,
    objects: Objects,
    options: LoadOptions,
    insert: Callable[[Parsed], int],
) -> int:
    """Give the SQL of the objects to `insert`, and return what it returns.

    Raises:
        InputError: The file is damaged.
    """
    if objects.in_lines:
        with registered(con, _LINES, LineReader(source, options)):
            return insert(Parsed(_rows_sql(_LINES, objects, options)))
    with _listed(con, source) as relation:
        return insert(Parsed(_rows_sql(relation, objects, options)))


@contextmanager
def _listed(con: duckdb.DuckDBPyConnection, source: Source) -> Iterator[str]:
    """The objects of a list, or written over several lines, as a table of `line` (their number) and `text`."""
    if source.kind not in _COMPRESSIONS:
        message = f"{source.given}: a list of JSON inside {source.kind} is not read. Uncompress it first."
        raise InputError(message)
    path = literal(as_no_pattern(source.path))
    try:
        con.execute(
            f"create or replace temp table {_OBJECTS} as select row_number() over () as line, json::varchar as text "
            f"from read_json_objects({path}, format = 'auto', maximum_object_size = {LONGEST_LINE}, "
            f"compression = {literal(_COMPRESSIONS[source.kind])})"
        )
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error:
        # Its text may quote data.
        message = (
            f"{source.given} begins like JSON and is none, or is damaged. JSON is read with an object for each rating, "
            "one a line or all in one list."
        )
        raise InputError(message) from None
    try:
        yield _OBJECTS
    finally:
        con.execute(f"drop table if exists {_OBJECTS}")


def _rows_sql(relation: str, objects: Objects, options: LoadOptions) -> str:
    def field(position: int) -> str:
        if position >= len(objects.pointers):
            return "'1'"
        return f"coalesce(json_extract_string(valid, {literal(objects.pointers[position])}), '')"

    chosen = objects.columns
    texts = (
        f"select line, text, {field(chosen.user)} as u, {field(chosen.item)} as i, {field(chosen.rating)} as r, "
        + (field(chosen.time) if chosen.time is not None else "null::varchar")
        + f" as t, case when valid is null then '{NOT_AN_OBJECT}' end as fault from (select line, text, "
        "case when json_valid(text) then case when json_type(text) = 'OBJECT' then text end end as valid "
        f"from {relation} where trim(text) <> '')"
    )
    rating = objects.written.sql("r")
    return delimited.checked_sql(texts, rating, has_time=chosen.time is not None, missing=options.missing)


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _leaves(value: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, below in value.items():
        if isinstance(below, dict):
            yield from _leaves(below, (*above, key))
        else:
            yield (*above, key)


def _text(value: Any, path: Sequence[str]) -> str:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
