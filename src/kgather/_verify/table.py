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
from kgather._verify import beside, cells, connection, contents, noted, people, reported
from kgather._verify.asked import Asked
from kgather._verify.audited import CHECK, number, other_page, said_otherwise
from kgather._verify.classes import class_sizes
from kgather._verify.models import verify_models

FILE = "table.parquet"
TABLE = "kgather__table"
DISTRIBUTION = "kgather__distribution"
_AUDIT = "kgather__audit"
_FILES = (FILE, DATABASE, REPORT)
_SLACK = 1e-6  # of a measure, which another version of DuckDB may sum up in another order


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
    """Check the release of a table. changed: the files whose checksums are not those of the audit.

    Raises InputError where a file cannot be read, or the audit does not say what was promised.
    """
    settings = noted.settings_of(audit)
    parameters = settings.model_dump(mode="json")
    quasi = list(settings.quasi_identifiers)
    unsaid = noted.foreign(audit, (folder / AUDIT).read_text(encoding="utf-8"), settings, _FILES)
    read = noted.read_as(audit)
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
            listed = con.sql(f"from release.{_AUDIT}")
            checked = listed.columns, listed.fetchall()
            sizes = class_sizes(con, "written", quasi)
            rows = people.written(con, "written", settings, min((size for size, _ in sizes), default=0))
            false, of = cells.false_cells(con, "written", settings, read)
            # What is not of the form of an audit cannot be compared.
            contradicted = [] if unsaid else reported.otherwise(con, "written", settings, audit, sizes)
            held = [f"{FILE}: {each}" for each in beside.of_parquet(con, folder / FILE)]
            held += [f"{DATABASE}: {each}" for each in beside.of_database(con, folder / DATABASE)]
        except duckdb.Error as error:
            msg = f"{folder} is no release: a file of it cannot be read ({type(error).__name__})."
            raise InputError(msg) from None
        foreign = [name for name in named if name not in (*settings.shown, settings.pseudonym)]
        files = sorted(path.name for path in folder.iterdir() if path.name not in (*_FILES, AUDIT))
        kept = checks(con, "written", parameters)
        asked = kept if k == settings.k else checks(con, "written", parameters | {"k": k})
        return (
            *asked,
            *people.of_release(audit, settings, rows),
            *_of_pseudonyms(con, settings.pseudonym),
            Check(f"rows in which {FILE} and {DATABASE} differ", 0, differ, differ == 0),
            Check("rows that are not in the order of what they show", 0, ordered, ordered == 0),
            Check("frequencies of all rows, for t, that are not those of the table", 0, otherwise, otherwise == 0),
            Check(f"rows with a cell that its column cannot show{_told(of)}", 0, false, false == 0),
            _none(f"classes of other sizes than {AUDIT} says", _otherwise(sizes, audit.get("class_sizes"))),
            _none(
                f"checks that {DATABASE} and {AUDIT} say otherwise",
                said_otherwise(*checked, audit.get("checks"), CHECK),
            ),
            _none(
                f"checks of {AUDIT} that are not those of its promises and rows",
                _measured_otherwise([*kept, *people.expected(settings)], len(kept), audit.get("checks")),
            ),
            _named(f"what {AUDIT} says of the table and its rows do not", contradicted),
            _named(f"what {AUDIT} says and a release does not, or lacks", unsaid),
            _named("what files hold beside the table", held),
            _named(f"columns of {TABLE} that are not those of {FILE}", columns),
            _named("columns that the audit does not name", foreign),
            _named(f"tables of {DATABASE} that a release does not have", tables),
            _named("files that a release does not have", files),
            _named(f"files that are not those of the checksums in {AUDIT}", changed),
            _none(f"pages that are not that of {AUDIT}", 0 if unsaid else other_page(folder, audit, _page)),
        )


def _page(audit: Mapping[str, Any]) -> str:
    """The page as it was made, before it had a checksum."""
    from kgather._report import render_table  # takes a while to load

    files = {name: sum_ for name, sum_ in audit["files"].items() if name != REPORT}
    return render_table({**audit, "files": files})


def _otherwise(sizes: Sequence[tuple[int, int]], said: Any) -> int:
    """The number of classes that are of another size than the audit says."""
    written = Counter(dict(sizes))
    try:
        noted = Counter({int(rows): int(classes) for rows, classes in said})
    except (TypeError, ValueError):
        noted = Counter()
    return max((written - noted).total(), (noted - written).total())


def _measured_otherwise(expected: Sequence[Check], counted: int, said: Any) -> int:
    """The number of checks that are missing, promise or measure something else, or are not passed.

    expected: in their order. counted: the first of them are measured anew, the others are of people whom rows do not
    name.
    """
    found = [each if isinstance(each, dict) else {} for each in said] if isinstance(said, list) else []
    wrong = abs(len(found) - len(expected))
    for place, (check, each) in enumerate(zip(expected, found, strict=False)):
        measured = number(each.get("measured"))
        is_same = each.get("check") == check.check and number(each.get("promised")) == number(check.promised)
        is_same = is_same and each.get("passed") is True and measured is not None
        if is_same and measured is not None and place < counted:
            is_same = abs(measured - check.measured) <= _SLACK * max(abs(check.measured), 1.0)
        wrong += not is_same
    return wrong


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


def _named(check: str, found: Sequence[str]) -> Check:
    return Check(check + _told(found), 0, len(found), not found)


def _told(found: Sequence[str]) -> str:
    return f": {', '.join(found)}" if found else ""
