"""Proposes a policy for a database: guesses what each column is, hides what it cannot guess, and marks what to decide.

Guesses are made from names, types and counts. Columns that repeat other columns are looked for, because the guard has
to know of them: the same column twice (same_as), and a wide table that shows a long one (pivot_of).
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import duckdb
import yaml

from kgather._errors import InputError
from kgather._guard.catalog import catalog_of, kind_of
from kgather._guard.plan import Kind
from kgather._guard.policy import fold, load_policy
from kgather._guard.render import identifier


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PEOPLE = _words(
    "user usr customer client person people patient member subject employee respondent student subscriber account "
    "visitor citizen participant rater reviewer player passenger household"
)
_OPINIONS = _words("rating score stars star vote grade opinion answer preference likes rank points")
_AMOUNTS = _words(
    "salary age income amount price spend spent spending balance revenue cost wage pay payment total quantity weight "
    "height duration minutes hours bonus debt budget"
)
_SECRETS = _words(
    "name firstname lastname surname email mail phone mobile address street zip zipcode postcode postal ssn iban card "
    "passport birth birthday dob ip device password token note notes comment comments text url"
)
_NUMBERS: tuple[Kind, ...] = ("integer", "number")
_FEW_VALUES = 20  # texts of a dimension
_OPINION_VALUES = 101  # of an artifact, as 0 to 100
_WIDE = 3  # columns of small whole numbers that make a wide table
_SMALL_RANGE = 20
_AT_ONCE = 200  # comparisons in one query
_ALMOST = 0.95


@dataclass
class _Column:
    name: str
    kind: Kind
    distinct: int
    low: float | None = None
    high: float | None = None
    role: str = "hidden"
    why: str = ""

    @property
    def words(self) -> set[str]:
        spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", self.name)
        return {word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word}


@dataclass
class _Table:
    name: str
    rows: int
    columns: list[_Column]
    unit: _Column | None = None
    grain: str = "rows"
    unique: str | None = None
    same_as: dict[str, str] = field(default_factory=dict)
    pivot: str = ""
    warnings: list[str] = field(default_factory=list)

    def of_role(self, role: str) -> list[_Column]:
        return [column for column in self.columns if column.role == role]


class _Listed(NamedTuple):
    """A column as the database lists it."""

    name: str
    type: str


class _Held(NamedTuple):
    """A column and its table."""

    table: _Table
    column: _Column


class _Score(NamedTuple):
    """What speaks for a column as the one that names people; what stands first counts most."""

    of_people: bool
    tables: int
    unique: bool


class _Guess(NamedTuple):
    """What a column seems to be, and why it is hidden where that can be told."""

    role: str
    why: str = ""


class _Pair(NamedTuple):
    """Columns of two tables that may be copies."""

    one: _Column
    other: _Column


class _Compared(NamedTuple):
    """Units that two tables have in common, and those of them for which two columns are the same."""

    common: int
    same: int


def write_policy(database: Path, out: Path, *, k: int = 10, unit: str | None = None) -> int:
    """Write a policy for a database; returns how many places are left to decide.

    Raises InputError where the file exists, the database cannot be read, or nothing in it names people.
    """
    if out.exists():
        msg = f"{out} exists. Give another name with --out, or remove it: it may hold decisions."
        raise InputError(msg)
    text = propose(database, k=k, unit=unit, folder=out.resolve().parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    policy = load_policy(out)
    with _opened(database) as con:
        catalog_of(con, policy)
    return text.count("# DECIDE:")


def propose(database: Path, *, k: int = 10, unit: str | None = None, folder: Path | None = None) -> str:
    """The text of a policy for a database, as seen from `folder`. Reads each table a few times.

    Raises InputError where the database cannot be read or nothing in it names people; unit: the column that does.
    """
    with _opened(database) as con:
        tables = _tables(con)
        name = _unit(tables, unit)
        for table in tables:
            table.unit = next((column for column in table.columns if fold(column.name) == fold(name)), None)
        protected = [table for table in tables if table.unit]
        for table in protected:
            _guess(con, table, tables)
        for table in protected:
            _find_pivot(con, table, protected)
        _find_copies(con, protected, k)
    path = os.path.relpath(database.resolve(), folder) if folder else str(database)
    return "\n".join(_lines(path, k, tables)) + "\n"


def _opened(database: Path) -> duckdb.DuckDBPyConnection:
    if not database.is_file():
        msg = f"{database} is no file. Name a DuckDB database."
        raise InputError(msg)
    try:
        return duckdb.connect(database, read_only=True)
    except duckdb.Error:
        msg = f"{database} cannot be opened as a DuckDB database."
        raise InputError(msg) from None


def _tables(con: duckdb.DuckDBPyConnection) -> list[_Table]:
    found: dict[str, list[_Listed]] = {}
    for table, column, type_ in con.execute(
        "select table_name, column_name, data_type from information_schema.columns"
        " where table_schema = current_schema() and table_catalog = current_database() order by 1, ordinal_position"
    ).fetchall():
        found.setdefault(table, []).append(_Listed(column, type_))
    return [_measured(con, table, columns) for table, columns in found.items() if not fold(table).startswith("kg_")]


def _measured(con: duckdb.DuckDBPyConnection, table: str, columns: list[_Listed]) -> _Table:
    parts = ["count(*)"]
    kinds = [kind_of(column.type) for column in columns]
    for column, kind in zip(columns, kinds, strict=True):
        cell = identifier(column.name)
        number = f"cast({cell} as double)" if kind in _NUMBERS else "null"
        parts += [f"count(distinct {cell})" if kind != "other" else "0", f"min({number})", f"max({number})"]
    try:
        rows, *numbers = con.execute(f"select {', '.join(parts)} from {identifier(table)}").fetchall()[0]
    except duckdb.Error:
        msg = f"Table {table} cannot be read. Remove it from the database, if it is a view of files that are gone."
        raise InputError(msg) from None
    measured = [
        _Column(column.name, kind, *numbers[3 * at : 3 * at + 3])
        for at, (column, kind) in enumerate(zip(columns, kinds, strict=True))
    ]
    return _Table(table, rows, measured)


def _is_id(column: _Column) -> bool:
    return column.kind in ("integer", "text") and ("id" in column.words or bool(column.words & _PEOPLE))


def _unit(tables: list[_Table], wanted: str | None) -> str:
    """The name of the column that names people: an id, best of people, in many tables, and unique in one."""
    if wanted is not None:
        if not any(fold(column.name) == fold(wanted) for table in tables for column in table.columns):
            msg = f"No table has a column {wanted!r}."
            raise InputError(msg)
        return wanted
    scores: dict[str, _Score] = {}
    for name in dict.fromkeys(column.name for table in tables for column in table.columns if _is_id(column)):
        having = [_Held(t, c) for t in tables for c in t.columns if fold(c.name) == fold(name)]
        unique = any(0 < column.distinct == table.rows for table, column in having)
        of_people = bool(having[0].column.words & _PEOPLE)
        if of_people or (unique and len(having) > 1):
            scores[name] = _Score(of_people, len(having), unique)
    if not scores:
        msg = (
            "No column seems to name people: an id that several tables have and that is unique in one, as user_id. "
            "Name it with --unit COLUMN."
        )
        raise InputError(msg)
    return max(scores, key=lambda name: scores[name])


def _guess(con: duckdb.DuckDBPyConnection, table: _Table, tables: list[_Table]) -> None:
    assert table.unit is not None
    table.unit.role = "unit"
    table.grain = "unit" if table.unit.distinct == table.rows else "rows"
    for column in table.columns:
        if column.role != "unit":
            column.role, column.why = _role(column, table, tables)
    wide = [
        column
        for column in table.columns
        if column.role == "hidden" and column.kind in _NUMBERS and not column.why and _is_small(column)
    ]
    if table.grain == "unit" and len(wide) >= _WIDE:
        for column in wide:
            column.role = "artifact"
    if table.grain == "rows":
        for column in table.of_role("artifact"):
            if column.kind in ("integer", "text") and "id" in column.words and _names_rows(con, table, column):
                table.unique = column.name


def _role(column: _Column, table: _Table, tables: list[_Table]) -> _Guess:
    """What a column seems to be."""
    words = column.words
    if words & _SECRETS:
        return _Guess("hidden", "its name sounds as if it told who somebody is")
    if column.kind in ("date", "timestamp"):
        return _Guess("coarsened")
    if "id" in words:
        looked_up = any(
            fold(other.name) == fold(column.name) and 0 < other.distinct == of.rows
            for of in tables
            if of is not table
            for other in of.columns
        )
        if table.grain == "rows" and column.kind in ("integer", "text") and (looked_up or column.distinct < table.rows):
            return _Guess("artifact")
        return _Guess("hidden", "an id that names few people, or one")
    if column.kind in _NUMBERS:
        if words & _OPINIONS and column.distinct <= _OPINION_VALUES:
            return _Guess("artifact")
        return _Guess("measure" if words & _AMOUNTS else "hidden")
    if column.kind in ("text", "boolean") and 0 < column.distinct <= _FEW_VALUES:
        return _Guess("dimension")
    return _Guess("hidden", "too many different values to show groups by" if column.kind == "text" else "")


def _is_small(column: _Column) -> bool:
    if column.low is None or column.high is None:
        return False
    return column.high - column.low <= _SMALL_RANGE and 1 < column.distinct <= _SMALL_RANGE + 1


def _names_rows(con: duckdb.DuckDBPyConnection, table: _Table, column: _Column) -> bool:
    assert table.unit is not None
    pair = f"{identifier(table.unit.name)}, {identifier(column.name)}"
    query = f"select count(*) = (select count(*) from (select distinct {pair} from t)) from t"
    return bool(con.execute(f"with t as (from {identifier(table.name)}) {query}").fetchall()[0][0])


def _find_pivot(con: duckdb.DuckDBPyConnection, wide: _Table, tables: list[_Table]) -> None:
    """Whether each column of a wide table has the values that a long one has under one key."""
    numbers = [c for c in wide.columns if c.role in ("artifact", "hidden", "measure") and c.kind in _NUMBERS]
    if wide.grain != "unit" or len(numbers) < 2:
        return
    prints: dict[tuple[int, int], _Column] = {}
    for column in numbers:
        found = con.execute(f"select {_print(wide, column)} from {identifier(wide.name)}").fetchall()[0]
        if found[0]:
            prints[found] = column
    for long in tables:
        if long.grain != "rows" or not long.unique:
            continue
        key = next(column for column in long.columns if column.name == long.unique)
        for value in [c for c in long.columns if c.kind in _NUMBERS and c.role in ("artifact", "hidden", "measure")]:
            if value is key:
                continue
            rows = con.execute(
                f"select {identifier(key.name)}, {_print(long, value)} from {identifier(long.name)}"
                f" where {identifier(key.name)} is not null group by 1 order by 1"
            ).fetchall()
            names = {of_key: prints[(n, total)].name for of_key, n, total in rows if (n, total) in prints}
            if len(names) < 2 or len(set(names.values())) < len(names):
                continue
            key.role = value.role = "artifact"
            for column in numbers:
                if column.name in names.values():
                    column.role = "artifact"
            listed = ", ".join(f"{_scalar(of_key)}: {_scalar(name)}" for of_key, name in names.items())
            wide.pivot = (
                f"{{table: {_scalar(long.name)}, key: {_scalar(key.name)}, value: {_scalar(value.name)}, "
                f"names: {{{listed}}}}}"
            )
            rest = [c.name for c in wide.of_role("artifact") if c.name not in names.values()]
            if rest:
                wide.warnings.append(
                    f"{', '.join(rest)}: no key of {long.name} has these values. If they are ratings of it, too, "
                    "bring both tables up to date and add them to names"
                )
            return


def _print(table: _Table, column: _Column) -> str:
    """SQL of a fingerprint of a column's values with their units: how many, and a sum of hashes."""
    assert table.unit is not None
    cell = f"cast({identifier(column.name)} as double)"
    hashed = f"hash(cast({identifier(table.unit.name)} as varchar), {cell})"
    return f"count({cell}), sum(case when {cell} is not null then cast({hashed} as hugeint) end)"


def _find_copies(con: duckdb.DuckDBPyConnection, tables: list[_Table], k: int) -> None:
    """Columns that have the same values under the same units in two tables."""
    for first, second in combinations(tables, 2):
        if first.grain == "rows" and second.grain == "rows":
            continue
        one, other = (first, second) if first.grain == "unit" else (second, first)
        pairs = [
            _Pair(a, b)
            for a in one.columns
            for b in other.columns
            if a.role not in ("unit", "hidden") and b.role not in ("unit", "hidden")
            if (a.kind == b.kind or {a.kind, b.kind} <= set(_NUMBERS)) and min(a.distinct, b.distinct) > 1
        ]
        for start in range(0, len(pairs), _AT_ONCE):
            some = pairs[start : start + _AT_ONCE]
            for (a, b), (common, same) in zip(some, _compared(con, one, other, some), strict=True):
                if common >= k and same == common:
                    _declare(one, a, other, b)
                elif common >= k and same >= _ALMOST * common and fold(a.name) == fold(b.name):
                    other.warnings.append(
                        f"{b.name} is almost, not wholly, {one.name}.{a.name}. If it is a copy that went out of date, "
                        "hide it: two versions of one value tell more than one"
                    )


def _compared(con: duckdb.DuckDBPyConnection, one: _Table, other: _Table, pairs: list[_Pair]) -> list[_Compared]:
    """How many units are in both tables, and of how many of them each pair of columns has the same value."""
    assert one.unit is not None
    assert other.unit is not None
    sums = ", ".join(
        f"count(*) filter (a.{identifier(a.name)} is not distinct from b.{identifier(b.name)})" for a, b in pairs
    )
    both = f"cast(a.{identifier(one.unit.name)} as varchar) = cast(b.{identifier(other.unit.name)} as varchar)"
    common, *same = con.execute(
        f"select count(*), {sums} from {identifier(one.name)} a join {identifier(other.name)} b on {both}"
    ).fetchall()[0]
    return [_Compared(common, number) for number in same]


def _declare(one: _Table, a: _Column, other: _Table, b: _Column) -> None:
    if other.grain == "rows":
        # A value of a person that stands in each of their rows is asked for where it stands once.
        b.role, b.why = "hidden", f"it repeats {one.name}.{a.name}; ask for that by a join"
        return
    # The one that is referred to is no copy itself.
    root = one.same_as.get(a.name, f"{one.name}.{a.name}")
    if b.name in other.same_as or root.partition(".")[0] == other.name:
        return
    if b.name in _pivoted(other) and a.name in _pivoted(one):
        return
    if a.role != b.role:
        b.role = a.role
        other.warnings.append(f"{b.name} has the values of {one.name}.{a.name}, and so its role")
    other.same_as[b.name] = root


def _pivoted(table: _Table) -> set[str]:
    return {column.name for column in table.of_role("artifact")} if table.pivot else set()


def _scalar(value: object) -> str:
    """A value as YAML writes it within a line."""
    if isinstance(value, int):
        return str(value)
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) and yaml.safe_load(text) == text
    if plain:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _list(columns: list[_Column]) -> str:
    return "[" + ", ".join(_scalar(column.name) for column in columns) + "]"


def _lines(path: str, k: int, tables: list[_Table]) -> Iterator[str]:
    protected = [table for table in tables if table.unit]
    yield "# What may be asked of this database. Written from guesses: read every line, and decide what is marked."
    yield "version: 1"
    yield f"database: {_scalar(path)}"
    yield "ledger: ledger.duckdb        # what was told; keep it with the database, and its key secret"
    yield "audit_log: audit.jsonl       # who asked what; no answers"
    yield f"k: {k}                        # people in the smallest group that an answer tells of"
    yield "mode: adaptive"
    yield "tables:"
    for table in protected:
        yield from _table_lines(table)
    for table in tables:
        if not table.unit:
            yield f"  # DECIDE: does {_one_line(table.name)} tell nothing of people? Then take away the # signs below."
            yield f"  # {_scalar(table.name)}:"
            yield "  #   public: true"
    joins = list(_joins(tables))
    if any(not join.startswith("#") for join in joins):
        yield "joins:"
    elif joins:
        yield "# joins:"
    yield from (f"  {join}" for join in joins)
    yield "principals:"
    yield "  analyst: {}"


def _table_lines(table: _Table) -> Iterator[str]:
    assert table.unit is not None
    yield f"  {_scalar(table.name)}:"
    yield f"    privacy_unit: {_scalar(table.unit.name)}        # DECIDE: is this who is to be protected?"
    yield f"    grain: {table.grain}"
    if table.unique and not table.pivot and any(c.name == table.unique for c in table.of_role("artifact")):
        yield f"    unique: {_scalar(table.unique)}"
    for warning in table.warnings:
        yield f"    # DECIDE: {_one_line(warning)}."
    if table.pivot:
        yield f"    pivot_of: {table.pivot}"
    for role, entry, question in (
        ("artifact", "artifacts", "may people be chosen by these?"),
        ("measure", "measures", "may these be summed up?"),
        ("dimension", "dimensions", "may groups be shown by these?"),
    ):
        if table.of_role(role):
            yield f"    {entry}: {_list(table.of_role(role))}        # DECIDE: {question}"
    coarsened = ", ".join(f"{_scalar(column.name)}: month" for column in table.of_role("coarsened"))
    if coarsened:
        yield f"    coarsened: {{{coarsened}}}"
    if table.same_as:
        same = ", ".join(f"{_scalar(name)}: {_scalar(target)}" for name, target in table.same_as.items())
        yield f"    same_as: {{{same}}}"
    if table.of_role("hidden"):
        yield f"    hidden: {_list(table.of_role('hidden'))}"
        for column in table.of_role("hidden"):
            if column.why:
                yield f"      # {_one_line(column.name)}: {_one_line(column.why)}"


def _one_line(text: str) -> str:
    """A text for a comment: no name may end it."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _joins(tables: list[_Table]) -> Iterator[str]:
    protected = [table for table in tables if table.unit]
    for first, second in combinations(protected, 2):
        assert first.unit is not None
        assert second.unit is not None
        if first.unit.kind == second.unit.kind and _joinable(first, first.unit) and _joinable(second, second.unit):
            yield f"- {first.name}.{first.unit.name} = {second.name}.{second.unit.name}"
    for table in protected:
        for column in table.of_role("artifact") + table.of_role("dimension"):
            for public in (other for other in tables if not other.unit):
                for key in public.columns:
                    same = fold(key.name) == fold(column.name) and key.kind == column.kind
                    if same and 0 < key.distinct == public.rows and _joinable(table, column) and _joinable(public, key):
                        yield f"# - {table.name}.{column.name} = {public.name}.{key.name}"


def _joinable(table: _Table, column: _Column) -> bool:
    """Whether a join can be written as text: names of letters, digits and underscores."""
    return bool(re.fullmatch(r"\w+", table.name) and re.fullmatch(r"\w+", column.name))
