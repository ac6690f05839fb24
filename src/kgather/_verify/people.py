"""Classes of a table in which people have several rows: k, l, t and alpha counted in people, not in rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._release.release import AUDIT, Check
from kgather._settings.table import TableSettings
from kgather._sql_text import identifier
from kgather._verify.asked import Asked
from kgather._verify.verdicts import at_least, at_most

IN_CLASS = "people in the smallest class"
IN_SET = "people whose rows are in the same set of classes, the fewest"
IN_GROUP = "people in the smallest group that is shown alike in every table made within it"
IN_INTERSECTION = "people in the smallest intersection with the classes of the other tables"
TORN = "groups whose people are not all shown alike"
K_MAP = "k-map: people of the population that match a class"
_PRESENCE = "delta-presence"
PRESENCE = _PRESENCE + ": {word} share of the people who match a class that are in the table"
_DOWNWARDS = ("t-closeness", "largest share", PRESENCE.format(word="largest"))
_SLACK = 1e-6  # of shares that were rounded
_WRITTEN = ", as the audit counted them when the table was written"
_ROWS = "kgather_verified_people"


def of_sensitive(
    name: str, asked: Mapping[str, Any], measured: Mapping[str, float | None], diversity: str
) -> Iterator[Check]:
    """What is promised of a sensitive column, of people. asked, measured: by l, t, alpha; None: not promised."""
    if asked.get("l") is not None:
        yield at_least(f"{diversity} l-diversity of {name}, counted in people", asked["l"], measured.get("l"))
    if asked.get("t") is not None:
        yield at_most(f"t-closeness of {name}, counted in people", asked["t"], measured.get("t"))
    if asked.get("alpha") is not None:
        told = f"largest share of the people of a class who have one value of {name}"
        yield at_most(told, asked["alpha"], measured.get("alpha"))


def checks(
    con: duckdb.DuckDBPyConnection,
    relation: str,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    unit: str,
    asked: Asked,
) -> Iterator[Check]:
    """Check a relation that says whose its rows are.

    quasi, sensitive, unit: columns by their names; unit names people. Raises InputError where it is null in some row.
    """
    person = identifier(unit)
    [(nobody,)] = con.sql(f"select count(*) - count({person}) from {relation}").fetchall()
    if nobody:
        msg = f"column '{unit}' is null in some rows, so nobody knows whose they are. Leave them out, or name them."
        raise InputError(msg)
    # As a reader tells classes apart, whatever the collation of a column.
    seen = ", ".join(f"encode(cast({identifier(name)} as varchar))" for name in quasi)
    values = "".join(
        f", dense_rank() over (order by {identifier(name)} nulls last) - 1 as v{at}"
        for at, name in enumerate(sensitive)
    )
    con.execute(
        f"create or replace temp table {_ROWS} as select class, person, count(*) as n{_listed(sensitive)} from ("
        f"select dense_rank() over (order by {seen}) - 1 as class, dense_rank() over (order by {person}) - 1 as person"
        f"{values} from {relation}) group by all"
    )
    smallest = "select min(n) from (select count(*) as n from {of} group by {by})"
    if asked.k is not None:
        told = f"(select distinct class, person from {_ROWS})"
        sets = f"(select list_sort(list(class)) as classes from {told} group by person)"
        for name, of, by in ((IN_CLASS, told, "class"), (IN_SET, sets, "classes")):
            [(measured,)] = con.sql(smallest.format(of=of, by=by)).fetchall()
            yield at_least(name, asked.k, measured)
    for at, name in enumerate(sensitive):
        kind = con.sql(f"select typeof({identifier(name)}) from {relation} limit 1").fetchall()
        found = _measured(con, at, kind[0][0], asked) if kind else {}
        promised = {"l": asked.l, "t": asked.t, "alpha": asked.alpha}
        yield from of_sensitive(name, promised, found, asked.kind)
    con.execute(f"drop table {_ROWS}")


def _listed(sensitive: Sequence[str]) -> str:
    return "".join(f", v{at}" for at in range(len(sensitive)))


def _measured(con: duckdb.DuckDBPyConnection, at: int, kind: str, asked: Asked) -> dict[str, float | None]:
    """The l, t and alpha of a sensitive column in the class that keeps them worst."""
    # Imported here: kernels take seconds to load.
    import numpy as np

    from kgather._recoding.recode import is_ordered
    from kgather.udfs.recoding.models import Model, measures_of_people

    models: dict[str, Model] = {}
    if asked.l is not None:
        models["l"] = Model(0, asked.kind, asked.l, asked.c or 0.0)
    if asked.t is not None:
        on_line = asked.ordered if asked.ordered is not None else is_ordered(kind)
        models["t"] = Model(0, "t_ordered" if on_line else "t_equal", asked.t)
    if asked.alpha is not None:
        models["alpha"] = Model(0, "alpha", asked.alpha)
    held = con.sql(f"select class, person, v{at} as own, sum(n) as n from {_ROWS} group by all order by all")
    found = held.fetchnumpy()
    group, person, own, rows = (np.asarray(found[name]).astype(np.int64) for name in ("class", "person", "own", "n"))
    measured = measures_of_people(group, own[:, None], rows, person, list(models.values()))
    return {name: round(value, 8) for name, value in zip(models, measured, strict=True)}


@dataclass(frozen=True)
class Written:
    """What the rows of a table allow that says no more whose they are. smallest_class: its rows, 0 without any. Of each
    sensitive column values, the fewest different ones of a class; share, the least that the largest share of the people
    of a class can be who have one value."""

    smallest_class: int
    values: Mapping[str, int]
    shares: Mapping[str, float]


def written(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings, smallest_class: int) -> Written:
    """Count what rows allow. relation: what may stand after FROM."""
    seen = ", ".join(f"encode(cast({identifier(name)} as varchar))" for name in settings.quasi_identifiers)
    most = settings.rows_per_person or 1
    values, shares = {}, {}
    for name in settings.sensitive:
        held = f"select hash({seen}) as c, count(*) as n from {relation} group by {seen}, {identifier(name)}"
        # Whoever has a value has it in so many rows at most, and everybody has some value.
        [(fewest, share)] = con.sql(
            f"select min(held), max(greatest(ceil(most / {most}) / rows, 1 / held)) from (select count(*) as held, "
            f"max(n) as most, sum(n) as rows from ({held}) group by c)"
        ).fetchall()
        values[name], shares[name] = int(fewest or 0), float(share or 0.0)
    return Written(smallest_class, values, shares)


def expected(settings: TableSettings) -> Iterator[Check]:
    """The checks about people that the audit of a release has, with nothing measured."""
    if settings.has_several_rows:
        yield from (at_least(IN_CLASS, settings.k, None), at_least(IN_SET, settings.k, None))
        for name, asked in settings.sensitive.items():
            yield from of_sensitive(name, asked.model_dump(), {}, asked.diversity)
    if settings.within is not None:
        yield from (at_least(IN_GROUP, settings.k, None), Check(TORN, 0, 0, passed=True))
    if settings.beside:
        yield at_least(IN_INTERSECTION, None, None)
    if settings.k_map is not None:
        yield at_least(K_MAP, settings.k_map, None)
    if settings.presence is not None:
        yield at_least(PRESENCE.format(word="smallest"), settings.presence[0], None)
        yield at_most(PRESENCE.format(word="largest"), settings.presence[1], None)


def of_release(audit: Mapping[str, Any], settings: TableSettings, rows: Written) -> Iterator[Check]:
    """What a release promises of people who have several rows, or are in other tables, too.

    What is written does not say whose its rows are, so this is what the audit counted: each promise has to be there, be
    kept, and agree with the rows that are written.
    """
    listed = audit.get("checks")
    noted = {
        str(check.get("check")): check.get("measured")
        for check in (listed if isinstance(listed, list) else [])
        if isinstance(check, dict)
    }
    for check in expected(settings):
        measured = noted.get(check.check)
        if not isinstance(measured, int | float) or isinstance(measured, bool):
            yield Check(f"promises about people that {AUDIT} does not measure: {check.check}", 0, 1, passed=False)
            continue
        upwards = check.check != TORN and not check.check.startswith(_DOWNWARDS)
        slack = _SLACK if check.check.startswith(_PRESENCE) else 0.0
        promised = (check.promised or 0) + (-slack if upwards else slack)
        held = (at_least if upwards else at_most)(check.check, promised, measured)
        yield Check(check.check + _WRITTEN, check.promised, measured, held.passed)
        low, high = _possible(check.check, settings, rows, noted)
        possible = low - _SLACK <= measured <= high + _SLACK
        yield Check(f"{check.check}, of which its rows cannot be", 0, int(not possible), possible)


def _possible(check: str, settings: TableSettings, rows: Written, noted: Mapping[str, Any]) -> tuple[float, float]:
    """The least and the greatest number that rows allow for a check about people."""
    smallest = rows.smallest_class or math.inf
    if check == IN_CLASS:  # so many people at least have that many rows, and no class has more people than rows
        return (0 if math.isinf(smallest) else -(-smallest // (settings.rows_per_person or 1))), smallest
    if check in (IN_SET, IN_GROUP, IN_INTERSECTION):  # each of them has a row in every class of the set
        in_class = noted.get(IN_CLASS)
        return 1, min(smallest, in_class if isinstance(in_class, int | float) else smallest)
    for name, asked in settings.sensitive.items():
        for other in of_sensitive(name, asked.model_dump(), {}, asked.diversity):
            if other.check != check:
                continue
            if "l-diversity" in check:
                return 0, rows.values[name]
            return (0 if check.startswith("t-") else rows.shares[name]), 1
    return 0, 1 if check.startswith(_PRESENCE) else math.inf
