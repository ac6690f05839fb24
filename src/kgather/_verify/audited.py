"""What audit.json and its page say, held against the tables of a release: what these decide is counted again."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from kgather._release.release import REPORT
from kgather._verify.page import is_same_page
from kgather._version import __version__

CHECK = ("check", "promised", "measured", "passed")
_METRIC = ("metric", "value")


def otherwise(con: duckdb.DuckDBPyConnection, audit: Mapping[str, Any]) -> list[str]:
    """What an audit of groups says and the tables of its release do not, by its path in the audit.

    What is measured with the ratings that are not published (counts of them, attacks) is not counted again. Checks and
    metrics are compared with the tables of the database in which they are told, too.
    """
    return [*_of_groups(con, audit), *_of_tables(con, audit)]


def _of_groups(con: duckdb.DuckDBPyConnection, audit: Mapping[str, Any]) -> Iterator[str]:
    said = audit.get("counts")
    counts = said if isinstance(said, dict) else {}
    sizes = con.sql("select try_cast(group_size as bigint) as size, count(*) from groups group by size").fetchall()
    known = [size for size, _ in sizes if size is not None]
    counted = {
        "groups": sum(groups for _, groups in sizes),
        "largest_group": max(known, default=None),
        "members": sum(size * groups for size, groups in sizes if size is not None),
    }
    yield from (f"counts.{name}" for name, number in counted.items() if counts.get(name) != number)
    told = _mappings(audit.get("group_sizes"))
    if Counter(repr((each.get("size"), each.get("groups"))) for each in told) != Counter(map(repr, sizes)):
        yield "group_sizes"


def _of_tables(con: duckdb.DuckDBPyConnection, audit: Mapping[str, Any]) -> Iterator[str]:
    for key, columns in (("checks", CHECK), ("metrics", _METRIC)):
        try:
            found = con.sql(f"from release.kgather__{'audit' if key == 'checks' else key}")
            differ = said_otherwise(found.columns, found.fetchall(), audit.get(key), columns)
        except duckdb.Error:
            differ = 1
        if differ:
            yield key
    if audit.get("passed") is not all(each.get("passed") is True for each in _mappings(audit.get("checks"))):
        yield "passed"


def said_otherwise(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], said: Any, known: Sequence[str]) -> int:
    """The number of entries that are in one of both places alone: a table's rows, and the audit's list.

    columns: the table's. known: those that it has to have, a name and numbers, which are the keys of the list.
    """
    told = said if isinstance(said, list) else []
    if tuple(columns) != tuple(known):
        return max(len(rows), len(told), 1)
    listed = Counter(repr([name, *map(number, more)]) for name, *more in rows)
    named = Counter(
        repr([each.get(known[0]), *(number(each.get(key)) for key in known[1:])]) for each in _mappings(told)
    )
    return max((listed - named).total(), (named - listed).total())


def number(value: Any) -> float | None:
    """A number or a truth value; None for all else, and infinity for what no float holds."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return math.inf


def other_page(folder: Path, audit: Mapping[str, Any], render: Callable[[Mapping[str, Any]], str]) -> int:
    """Whether the page for people is another one than this version makes of the audit; 0 for one of another version."""
    if audit.get("kgather_version") != __version__:
        return 0
    try:
        written = (folder / REPORT).read_text(encoding="utf-8")
        return int(not is_same_page(written, render(audit)))
    # No page is made of an audit of another form.
    except (OSError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError):
        return 1


def _mappings(said: Any) -> list[Mapping[str, Any]]:
    return [each if isinstance(each, dict) else {} for each in said] if isinstance(said, list) else []
