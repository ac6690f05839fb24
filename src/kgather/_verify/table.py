"""A release of a table: all that it promises, files that agree, and nothing beside what belongs there."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._recoding.hierarchies import lines
from kgather._release.release import AUDIT, DATABASE, REPORT, Check
from kgather._sql_text import identifier, literal
from kgather._verify import connection, contents, people
from kgather._verify.asked import Asked
from kgather._verify.models import verify_models

FILE = "table.parquet"
TABLE = "kgather__table"
DISTRIBUTION = "kgather__distribution"
_AUDIT = "kgather__audit"
_CHECK = ("check", "promised", "measured", "passed")


def is_table(audit: Mapping[str, Any]) -> bool:
    """Whether an audit is that of a table."""
    return audit.get("kind") == "table"


def promises(parameters: Mapping[str, Any]) -> Iterator[Asked]:
    """What the parameters of a release promise, each as what is to be checked.

    Raises InputError where they do not say.
    """
    try:
        quasi = tuple(map(str, parameters["quasi_identifiers"]))
        k = int(parameters["k"])
        sensitive = dict(parameters.get("sensitive", {}))
        said = [(str(name), dict(asked)) for name, asked in sensitive.items()]
    except (KeyError, TypeError, ValueError):
        msg = f"{AUDIT} does not say what was promised."
        raise InputError(msg) from None
    yield Asked(k=k, columns=quasi)
    for name, asked in said:
        if asked.get("l") is not None:
            kind = asked.get("diversity", "entropy")
            yield Asked(columns=quasi, sensitive=(name,), l=asked["l"], diversity=kind, c=asked.get("c"))
        if asked.get("t") is not None:
            tree = tuple(map(tuple, lines(name, asked["hierarchy"]))) if asked.get("hierarchy") is not None else ()
            yield Asked(columns=quasi, sensitive=(name,), t=asked["t"], ordered=asked.get("ordered"), hierarchy=tree)
        if asked.get("alpha") is not None:
            yield Asked(columns=quasi, sensitive=(name,), alpha=asked["alpha"])


def distribution(relation: str, parameters: Mapping[str, Any]) -> str | None:
    """The query for what t is measured against: how often each value of a sensitive column occurs in the whole table.
    None where no t is promised."""
    asked = dict(parameters.get("sensitive", {}))
    names = [str(name) for name, said in asked.items() if dict(said or {}).get("t") is not None]
    if not names:
        return None
    return " union all ".join(
        f'select {literal(name)} as "column", cast({identifier(name)} as varchar) as "value", count(*) as "rows" '
        f"from {relation} group by {identifier(name)}"
        for name in names
    )


def checks(con: duckdb.DuckDBPyConnection, relation: str, parameters: Mapping[str, Any]) -> tuple[Check, ...]:
    """Check a relation for what parameters promise. relation: what may stand after FROM."""
    return tuple(check for asked in promises(parameters) for check in verify_models(con, relation, asked))


def verify_table(folder: Path, k: int, audit: Mapping[str, Any], changed: list[str]) -> tuple[Check, ...]:
    """Check the release of a table. changed: the files whose checksums are not those of the audit."""
    parameters = dict(audit.get("parameters") or {}) | {"k": k}
    with connection.bounded() as con:
        try:
            con.execute(f"create view written as from read_parquet({literal(folder / FILE)})")
            con.execute(f"attach {literal(folder / DATABASE)} as release (read_only)")
            named = con.sql("from written").columns
            differ = con.execute(
                f"select count(*) from ((from written except all from release.{TABLE}) union all "
                f"(from release.{TABLE} except all from written))"
            ).fetchall()[0][0]
            ordered = con.execute(
                "select count(*) from (from written) as a positional join (from written order by all) as b "
                f"where not ({' and '.join(_same(name) for name in named)})"
            ).fetchall()[0][0]
            known_tables = [TABLE, _AUDIT]
            otherwise = 0
            if (shares := distribution("written", parameters)) is not None:
                known_tables.append(DISTRIBUTION)
                otherwise = con.execute(
                    f"select count(*) from ((({shares}) except all from release.{DISTRIBUTION}) union all "
                    f"(from release.{DISTRIBUTION} except all ({shares})))"
                ).fetchall()[0][0]
            tables = contents.foreign(con, known_tables)
            columns = [name for name in con.sql(f"from release.{TABLE}").columns if name not in named]
            noted = con.sql(f"from release.{_AUDIT}")
            checked = noted.columns, noted.fetchall()
            sizes = class_sizes(con, "written", [str(name) for name in parameters.get("quasi_identifiers", [])])
        except duckdb.Error as error:
            msg = f"{folder} is no release: a file of it cannot be read ({type(error).__name__})."
            raise InputError(msg) from None
        known = [*map(str, parameters.get("quasi_identifiers", [])), *map(str, parameters.get("sensitive", []))]
        known += [str(name) for name in parameters.get("others", [])]
        pseudonym = parameters.get("pseudonym")
        foreign = [name for name in named if name not in (*known, pseudonym)]
        files = sorted(path.name for path in folder.iterdir() if path.name not in (FILE, DATABASE, AUDIT, REPORT))
        kept = checks(con, "written", parameters)
        return (
            *kept,
            *people.of_release(audit, parameters, None if kept[0].measured is None else int(kept[0].measured)),
            *_of_pseudonyms(con, pseudonym),
            Check(f"rows in which {FILE} and {DATABASE} differ", 0, differ, differ == 0),
            Check("rows that are not in the order of what they show", 0, ordered, ordered == 0),
            Check("frequencies of all rows, for t, that are not those of the table", 0, otherwise, otherwise == 0),
            _none(f"classes of other sizes than {AUDIT} says", _otherwise(sizes, audit.get("class_sizes"))),
            _none(f"checks that {DATABASE} and {AUDIT} say otherwise", _said_otherwise(*checked, audit.get("checks"))),
            _named(f"columns of {TABLE} that are not those of {FILE}", columns),
            _named("columns that the audit does not name", foreign),
            _named(f"tables of {DATABASE} that a release does not have", tables),
            _named("files that a release does not have", files),
            _named(f"files that are not those of the checksums in {AUDIT}", changed),
        )


def class_sizes(con: duckdb.DuckDBPyConnection, relation: str, quasi: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """How many classes there are of each size: (rows, classes), the smallest first. quasi: columns by their names."""
    listed = ", ".join(seen(quasi))
    counted = f"select count(*) as n from {relation} group by {listed}"
    return tuple(con.execute(f"select n, count(*) from ({counted}) group by n order by n").fetchall())


def seen(quasi: Sequence[str]) -> list[str]:
    """Columns as a reader tells their values apart, whatever the collation."""
    return [f"encode(cast({identifier(name)} as varchar))" for name in quasi]


def _otherwise(sizes: Sequence[tuple[int, int]], said: Any) -> int:
    """The number of classes that are of another size than the audit says."""
    written = Counter(dict(sizes))
    try:
        noted = Counter({int(rows): int(classes) for rows, classes in said})
    except (TypeError, ValueError):
        noted = Counter()
    return max((written - noted).total(), (noted - written).total())


def _said_otherwise(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], said: Any) -> int:
    """The number of checks that are in one of both places alone. rows: those of the table, with these columns."""
    noted = said if isinstance(said, list) else []
    if tuple(columns) != _CHECK:
        return max(len(rows), len(noted), 1)
    listed = Counter(map(repr, ([name, *map(_number, more)] for name, *more in rows)))
    told = [each if isinstance(each, dict) else {} for each in noted]
    named = Counter(repr([each.get("check"), *(_number(each.get(key)) for key in _CHECK[1:])]) for each in told)
    return max((listed - named).total(), (named - listed).total())


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _of_pseudonyms(con: duckdb.DuckDBPyConnection, pseudonym: Any) -> Iterator[Check]:
    """A pseudonym names one row: it links none."""
    if pseudonym is not None:
        column = identifier(str(pseudonym))
        [(linked,)] = con.execute(f"select count(*) - count(distinct {column}) from written").fetchall()
        yield Check("rows whose pseudonym another row has, or which have none", 0, linked, linked == 0)


def _same(name: str) -> str:
    return f"a.{identifier(name)} is not distinct from b.{identifier(name)}"


def _none(check: str, found: int) -> Check:
    return Check(check, 0, found, found == 0)


def _named(check: str, found: list[str]) -> Check:
    return Check(f"{check}{': ' if found else ''}{', '.join(found)}", 0, len(found), not found)
