"""The text of a proposed policy: what was guessed and read as YAML, with what has to be decided."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import yaml

from kgather._guard.guessed import Column, Table
from kgather._guard.policy import ANSWERED, Budget, Truncation
from kgather._guard.proposed_costs import Costs
from kgather._guard.proposed_people import ROW
from kgather._guard.proposed_schema import Database
from kgather._guard.proposed_values import USUAL

_QUESTIONS = (
    (
        "artifact",
        "artifacts",
        (
            "DECIDE: may people be chosen by these? They stand in conditions (WHERE, FILTER, CASE) and make groups",
            "(GROUP BY); numbers are summed up, too (SUM, AVG). List under dimensions what may only make groups, under",
            "measures what may only be summed up, under hidden what nobody may ask.",
        ),
    ),
    (
        "measure",
        "measures",
        (
            "DECIDE: may these be summed up (SUM, AVG, STDDEV)? They stand in no condition, and groups are not made",
            "by them. List one under artifacts to have people chosen by it.",
        ),
    ),
)
"""Of each role: its entry, and the comment that says what it allows."""
_GRAINS: tuple[Truncation, ...] = ("day", "month", "year")


def scalar(value: object) -> str:
    """A value as YAML writes it within a line."""
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?", text) and yaml.safe_load(text) == text
    if plain:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _list(columns: list[Column]) -> str:
    return "[" + ", ".join(scalar(column.name) for column in columns) + "]"


def policy_lines(
    path: str, k: int, database: Database, protected: Sequence[Table], costs: Costs | None
) -> Iterator[str]:
    """The lines of a policy. path: of the database, as seen from the policy; k: people in the smallest group;
    protected: the tables that are proposed; costs: None before they are known.
    """
    budget = Budget()
    yield "# What may be asked of this database. Written from guesses: read every line, and decide what is marked."
    yield "version: 1"
    yield f"database: {scalar(path)}"
    yield "ledger: ledger.sqlite        # what was measured, and what it cost; keep it as long as the database"
    yield "audit_log: audit.jsonl       # who asked what; no answers"
    yield f"k: {k}                        # people in the smallest group that an answer tells of"
    yield "mode: measured"
    yield "# What all answers together may tell of one person, whoever asks, as long as there is the ledger: of any"
    yield "# outcome the odds with and without all records of a person differ by a factor of e^epsilon at most, except"
    yield "# with probability delta. Less is safer, and errors are wider. It may be lowered later, never raised."
    yield f"budget: {{epsilon: {budget.epsilon:g}, delta: {budget.delta:.1e}}}".replace("e-0", "e-")
    yield "margins: true                # ROLLUP, CUBE and GROUPING SETS: each set is a measurement"
    yield "# MIN and MAX tell the least and the greatest value that k people reach: never the true ends."
    yield f"aggregates: [{', '.join(ANSWERED['measured'])}]"
    yield "tables:"
    for table in protected:
        yield from _table_lines(table, k, database, costs)
    for table in database.tables:
        if table.of_people:
            yield f"  # {one_line(table.name)} is left out: it seems to tell of people {one_line(table.of_people)}."
            yield from _what_to_do(table)
        elif table not in protected:
            yield f"  # DECIDE: does {one_line(table.name)} tell nothing of people? Then take away the # signs below."
            yield f"  # {scalar(table.name)}:"
            yield "  #   public: true"
    for name in database.unreadable:
        yield f"  # {one_line(name)} is left out: it cannot be read. It may be a view of tables or files that are gone."
    joins = list(_joins(database, protected))
    if any(not join.startswith("#") for join in joins):
        yield "joins:"
    elif joins:
        yield "# joins:"
    yield from (f"  {join}" for join in joins)
    yield "principals:"
    yield "  analyst: {}"


def _what_to_do(table: Table) -> Iterator[str]:
    if table.of_people.startswith("by how"):
        yield "  # If these are no people, and all may be known, list it as public: true. Or make a view without that."
    elif table.of_people.startswith("of another kind"):
        yield "  # If all of it may be known, list it as public: true. To protect these people, too, list it with"
        yield "  # privacy_unit and, as they are other people, unit: they have a budget of their own."


def _table_lines(table: Table, k: int, database: Database, costs: Costs | None) -> Iterator[str]:
    yield f"  {scalar(table.name)}:"
    if table.unit is not None:
        yield f"    privacy_unit: {scalar(table.unit.name)}        # DECIDE: is this who is to be protected?"
        if table.unit.name == ROW:
            yield "    # No column names people: each row is taken for one of them, and nobody for several."
    if table.parent is not None:
        to = ", ".join(
            f"{scalar(own)}: {scalar(f'{table.parent.to}.{name}')}" for own, name in table.parent.columns.items()
        )
        why = "a constraint says so" if table.parent.declared else "guessed from names and values"
        yield f"    # DECIDE: is each row about the person of that row of {one_line(table.parent.to)}? ({why})"
        if table.unit is not None:
            yield "    # Rows that belong to no such row, or to one of another person, are not counted."
        yield f"    belongs_to: {{{to}}}"
    keys = _keys(table, database)
    if keys:
        key = scalar(keys[0]) if len(keys) == 1 else "[" + ", ".join(scalar(name) for name in keys) + "]"
        yield f"    key: {key}        # names a row: joined and counted, never shown"
    if table.parent is None:
        yield f"    grain: {table.grain}"
    if table.unique and not table.pivot and any(c.name == table.unique for c in table.of_role("artifact")):
        yield f"    unique: {scalar(table.unique)}"
    if table.rows_per_person is not None:
        yield f"    # DECIDE: read from the data: {USUAL:.0%} of people or more have no more rows. Rows of others count"
        yield "    # in part, and numbers are corrected for it. A smaller number makes less noise, and more to correct."
        yield f"    rows_per_person: {table.rows_per_person}"
    for warning in table.warnings:
        yield f"    # DECIDE: {one_line(warning)}."
    for note in table.notes:
        yield f"    # {one_line(note)}."
    if table.pivot:
        yield f"    pivot_of: {table.pivot}"
    if any(table.of_role(role) for role in ("artifact", "coarsened")):
        yield from (f"    # {line}" for line in (costs.of_columns(table) if costs is not None else ()))
    for role, entry, question in _QUESTIONS:
        if table.of_role(role):
            yield from (f"    # {line}" for line in question)
            yield f"    {entry}: {_list(table.of_role(role))}"
    yield from _value_lines(table, k, costs)
    yield from _date_lines(table, costs)
    if table.same_as:
        same = ", ".join(f"{scalar(name)}: {scalar(target)}" for name, target in table.same_as.items())
        yield f"    same_as: {{{same}}}"
    hidden = [column for column in table.columns if column.role in ("hidden", "key") and column.name not in keys]
    if hidden:
        yield f"    hidden: {_list(hidden)}"
        for column in hidden:
            if column.why:
                yield f"      # {one_line(column.name)}: {one_line(column.why)}"


def _keys(table: Table, database: Database) -> tuple[str, ...]:
    """The columns that name a row, as far as they are not the privacy unit; several only if other tables hang on it."""
    hang = any(other.parent is not None and other.parent.to == table.name for other in database.tables)
    if table.unit is not None and table.key == (table.unit.name,):
        return ()
    return table.key if hang or (len(table.key) == 1 and table.column(table.key[0]).role == "key") else ()


def _date_lines(table: Table, costs: Costs | None) -> Iterator[str]:
    dates = table.of_role("coarsened")
    if not dates:
        return
    cuts = [grain for grain in _GRAINS if any(column.grain == grain for column in dates)]
    by = " or ".join(cuts)
    yield f"    # DECIDE: read from the data: by the {by} there are people enough. May these dates be known so?"
    yield f"    # They are chosen by, and grouped by, what that tells: DATE_TRUNC('{cuts[0]}', ...), year(...), >=."
    found = costs.of_found(table) if costs is not None else ""
    if found:
        yield f"    # A part of the calendar is {found}. Each that is asked for takes a share of the budget."
    yield f"    coarsened: {{{', '.join(f'{scalar(column.name)}: {column.grain}' for column in dates)}}}"


def _value_lines(table: Table, k: int, costs: Costs | None) -> Iterator[str]:
    """What was read from the data, so that it has to be confirmed."""
    if table.bounds:
        yield f"    # DECIDE: read from the data: {k} people or more reach each bound, which is rounded outwards. A"
        yield "    # bound tells of those who have the most: may it be known? Numbers beyond it are cut off."
        yield "    bounds:"
        for name, (low, high) in table.bounds.items():
            told = costs.of_mean(table, table.column(name)) if costs is not None else ""
            yield f"      {scalar(name)}: [{low:f}, {high:f}]{f'        # {told}' if told else ''}"
    if table.values:
        yield f"    # DECIDE: read from the data: {k} people or more have each of these values. May it be known that"
        yield "    # there are such people? Listed values cost nothing to find."
        yield "    values:"
        for name, values in table.values.items():
            yield f"      {scalar(name)}: [{', '.join(scalar(value) for value in values)}]"
    for name in table.left_out:
        yield f"      # {one_line(name)}: values that fewer than {k} people have are left out"


def one_line(text: str) -> str:
    """A text for a comment: no name may end it."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _joins(database: Database, protected: Sequence[Table]) -> Iterator[str]:
    """Tables of the same people are joined by who they are; what looks something up, by its key. What leads to tables
    that are not public yet is a comment."""
    direct = [(table, table.unit) for table in protected if table.unit is not None and _joinable(table, table.unit)]
    direct.sort(key=lambda one: (one[0].grain != "unit", -one[0].people))
    for (first, unit), (second, other) in ((direct[0], one) for one in direct[1:]):
        if unit.kind == other.kind:
            yield f"- {_join(f'{first.name}.{unit.name} = {second.name}.{other.name}')}"
    public = {table.name: table for table in database.tables if table not in protected and not table.of_people}
    reached: list[str] = []
    for table in protected:
        for column in table.of_role("artifact"):
            yield from _lookup(table, column, database, public, reached)
        yield from _lookups_by_several(table, database, public, reached)
    for name in reached:  # it grows: what is looked up looks up more
        table = public[name]
        for column in table.columns:
            yield from _lookup(table, column, database, public, reached)
            if table.key == (column.name,):
                yield from _to_others(table, column, table, column, database, public, reached)


def _lookups_by_several(
    table: Table, database: Database, public: Mapping[str, Table], reached: list[str]
) -> Iterator[str]:
    """What looks something up by a key of several columns."""
    shown = {column.name for column in table.of_role("artifact")}
    for one in database.of(table):
        to = public.get(one.to)
        if to is None or len(one.columns) < 2 or {*one.columns.values()} != {*to.key} or not {*one.columns} <= shown:
            continue
        sides = [(table.column(own), to.column(name)) for own, name in one.columns.items()]
        if all(_joinable(table, own) and _joinable(to, key) for own, key in sides):
            if to.name not in reached:
                reached.append(to.name)
            pairs = (f"{table.name}.{own.name} = {to.name}.{key.name}" for own, key in sides)
            yield f"# - {_join(' and '.join(pairs))}"


def _lookup(
    table: Table, column: Column, database: Database, public: Mapping[str, Table], reached: list[str]
) -> Iterator[str]:
    one = column.looks_up
    to = public.get(one.to) if one is not None else None
    if one is None or to is None or to is table:
        return
    key = to.column(one.columns[column.name])
    if to.key == (key.name,) and _joinable(table, column) and _joinable(to, key):
        if to.name not in reached:
            reached.append(to.name)
        yield f"# - {_join(f'{table.name}.{column.name} = {to.name}.{key.name}')}"
        if column.distinct < table.rows:
            yield from _to_others(table, column, to, key, database, public, reached)


def _to_others(
    table: Table,
    column: Column,
    to: Table,
    key: Column,
    database: Database,
    public: Mapping[str, Table],
    reached: list[str],
) -> Iterator[str]:
    """What a column looks up in tables with one row for each of those that it names: films, and their categories."""
    for other in public.values():
        for one in database.of(other):
            own = other.column(one.own[0])
            of_it = one.to == to.name and len(one.columns) == 1 and one.columns[own.name] == key.name
            if other is table or other is to or not of_it or own.distinct < other.rows or not _joinable(other, own):
                continue
            if other.name not in reached:
                reached.append(other.name)
            yield f"# - {_join(f'{table.name}.{column.name} = {other.name}.{own.name}')}"


def _joinable(table: Table, column: Column) -> bool:
    """Whether a side of a join can be written as text, and is read as it was meant."""
    name = f"{table.name}.{column.name}"
    plain = name.isprintable() and not re.search(r"=|(?i:\sand\s)", name) and name == name.strip()
    return plain and "." not in column.name and "" not in (table.name.strip(), column.name.strip())


def _join(text: str) -> str:
    """A join as YAML writes it within a list."""
    plain = re.fullmatch(r"[\w.]+ = [\w.]+( and [\w.]+ = [\w.]+)*", text)
    return text if plain else json.dumps(text, ensure_ascii=False)
