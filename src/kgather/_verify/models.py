"""Privacy models of any relation, measured by the macros under sql/privacy/."""

from collections.abc import Iterator, Sequence

import duckdb

from kgather._errors import InputError, quoted
from kgather._release.release import Check
from kgather._sql_text import identifier, literal
from kgather._verify import connection, people, ratings
from kgather._verify.asked import Asked
from kgather._verify.verdicts import at_least, at_most

K_ANONYMITY = "k-anonymity: rows in the smallest equivalence class"

_GIVEN = "kgather_verified"


def verify_models(
    con: duckdb.DuckDBPyConnection,
    relation: str,
    asked: Asked,
    pairs: str | None = None,
    members: str | None = None,
    users_ratings: ratings.UsersRatings | None = None,
) -> tuple[Check, ...]:
    """Check a relation for all that is asked, one check for each model and sensitive column.

    `relation` is what may stand after FROM; `pairs` is the same with ids and ratings read as such, where they are not
    in `relation`, which has them as they stand. `members` is the same with only the ids of users read as such.
    Where `asked` names a unit, people are counted and not rows.
    `users_ratings` are those of which (b, l)-diversity takes the sets of items. Null is
    a value like any other; an empty relation passes. Macros and a temporary view are created on the connection, whose
    current database must be open for writing.
    Raises InputError where a column does not exist or cannot be what it is asked to be.
    """
    con.execute(f"create or replace temp view {_GIVEN} as from {relation}")
    connection.create_macros(con)
    existing = _Columns(con.sql(f"from {_GIVEN}").columns)
    sensitive = existing.chosen(asked.sensitive)
    unit = existing.chosen([asked.unit])[0] if asked.unit is not None else None
    quasi = existing.chosen(asked.columns) or [name for name in existing.names if name not in (*sensitive, unit)]
    if not quasi:
        msg = "all columns are sensitive: no quasi-identifier is left. Name some with --columns."
        raise InputError(msg)
    if unit is not None:
        return tuple(people.checks(con, _GIVEN, quasi, sensitive, unit, asked))
    checks = [
        *_classes(con, quasi, asked),
        *_groups(con, members or _GIVEN, existing, asked),
        *_sensitive(con, quasi, sensitive, asked),
    ]
    if asked.long:
        checks += ratings.checks(con, pairs or _GIVEN, existing.found, asked, users_ratings)
    return tuple(checks)


def verify_relation(con: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str], k: int) -> Check:
    """Check that every combination of values of the columns belongs to at least k rows; null is a value.

    As `verify_models` for k alone. Without columns all are quasi-identifiers.
    """
    return verify_models(con, relation, Asked(k=k, columns=tuple(columns)))[0]


class _Columns:
    """The columns of a relation, whatever their case."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._by_lower = {name.lower(): name for name in names}

    def chosen(self, asked: Sequence[str]) -> list[str]:
        unknown = [name for name in asked if name.lower() not in self._by_lower]
        if unknown:
            msg = f"there is no column {quoted(unknown)}. There are: {', '.join(self.names)}."
            raise InputError(msg)
        return [self._by_lower[name.lower()] for name in asked]

    def found(self, asked: str | None, usual: str) -> str | None:
        """The column asked for, or the one with the usual name where there is one."""
        return self.chosen([asked])[0] if asked else self._by_lower.get(usual)


def _classes(con: duckdb.DuckDBPyConnection, quasi: Sequence[str], asked: Asked) -> Iterator[Check]:
    if asked.classes:
        measured = _one(con, f"min(class_size) from kg_class_sizes('{_GIVEN}', {_list(quasi)})")
        yield at_least(K_ANONYMITY, asked.k, measured)
    if asked.risk_conditions is not None:
        measured = _one(
            con,
            f"coalesce(sum(conditions)::bigint, 0) "
            f"from kg_risk_conditions('{_GIVEN}', {_list(quasi)}, {asked.k}, {asked.risk_conditions})",
        )
        # Where conditions on fewer columns match few rows, so do some on this many: none is none at all.
        name = f"conditions on up to {asked.risk_conditions} columns that match fewer than {asked.k} rows"
        yield at_most(name, 0, measured)


def _groups(con: duckdb.DuckDBPyConnection, relation: str, existing: _Columns, asked: Asked) -> Iterator[Check]:
    if not asked.group_column or asked.k is None:
        return
    [group] = existing.chosen([asked.group_column])
    if asked.user_column:
        [user] = existing.chosen([asked.user_column])
        counted, name = f"distinct {identifier(user)}", "users in the smallest group"
    else:
        counted, name = "*", "rows in the smallest group"
    seen = f"encode(cast({identifier(group)} as varchar))"
    measured = _one(con, f"min(members) from (select count({counted}) as members from {relation} group by {seen})")
    yield at_least(name, asked.k, measured)


def _sensitive(
    con: duckdb.DuckDBPyConnection, quasi: Sequence[str], sensitive: Sequence[str], asked: Asked
) -> Iterator[Check]:
    given = f"'{_GIVEN}', {_list(quasi)}"
    for column in sensitive:
        of_column = f"{given}, {_list([column])}"
        if asked.l is not None:
            kind = f"'{asked.kind}', {'null' if asked.c is None else repr(float(asked.c))}"
            measured = _one(con, f"min(l) from kg_l_diversity({of_column}, {kind})")
            name = f"{asked.kind} l-diversity of {column}: l of the least diverse class"
            if asked.kind == "recursive":
                name = f"recursive (c, l)-diversity of {column}, c = {asked.c:g}: l of the least diverse class"
            least = asked.l
            if asked.kind != "entropy":
                least, measured = int(least), None if measured is None else int(measured)
            yield at_least(name, least, measured)
        if asked.t is not None and asked.hierarchy:
            hierarchy = "[" + ", ".join(map(_list, asked.hierarchy)) + "]"
            arguments = f"'{_GIVEN}', {_list(quasi)}, {literal(column)}, {hierarchy}"
            measured = _one(con, f"max(t) from kg_hierarchical_t_closeness({arguments})")
            yield at_most(f"hierarchical t-closeness of {column}: t of the class farthest from all", asked.t, measured)
        elif asked.t is not None:
            ordered = "null" if asked.ordered is None else str(asked.ordered).lower()
            measured = _one(con, f"max(t) from kg_t_closeness({of_column}, {ordered})")
            yield at_most(f"t-closeness of {column}: t of the class farthest from all rows", asked.t, measured)
        if asked.alpha is not None:
            measured = _one(con, f"max(alpha) from kg_alpha({of_column})")
            yield at_most(f"alpha of {column}: share of one value in a class", asked.alpha, measured)


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(map(literal, names)) + "]"


def _one(con: duckdb.DuckDBPyConnection, query: str) -> float | None:
    try:
        [(measured,)] = con.sql(f"select {query}").fetchall()
    except duckdb.InvalidInputException as error:
        # The macros' own sentences hold no data; they stand before DuckDB's copy of the query.
        told = str(error).removeprefix("Invalid Input Error: ").partition("\n")[0]
        raise InputError(told) from None
    return measured
