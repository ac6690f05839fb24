"""Classes of a table in which people have several rows: k, l, t and alpha counted in people, not in rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._release.release import AUDIT, Check
from kgather._sql_text import identifier
from kgather._verify.asked import Asked
from kgather._verify.verdicts import at_least, at_most

IN_CLASS = "people in the smallest class"
IN_SET = "people whose rows are in the same set of classes, the fewest"
IN_GROUP = "people in the smallest group that is shown alike in every table made within it"
TORN = "groups whose people are not all shown alike"
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


def of_release(audit: Mapping[str, Any], parameters: Mapping[str, Any], smallest_class: int | None) -> Iterator[Check]:
    """What a release promises of people who have several rows, or are in other tables, too.

    What is written does not say whose its rows are, so this is what the audit counted: each promise has to be there, be
    kept, and agree with smallest_class, the rows of the smallest class that is written.
    """
    noted = {str(check.get("check")): check for check in audit.get("checks", []) if isinstance(check, dict)}
    most = parameters.get("rows_per_person")
    k = int(parameters["k"])
    expected: list[Check] = []
    if most is not None and int(most) > 1:
        expected += [at_least(IN_CLASS, k, None), at_least(IN_SET, k, None)]
        for name, asked in dict(parameters.get("sensitive", {})).items():
            said = dict(asked or {})
            expected += of_sensitive(str(name), said, {}, str(said.get("diversity", "entropy")))
    if parameters.get("within"):
        expected += [at_least(IN_GROUP, k, None), Check(TORN, 0, 0, passed=True)]
    for check in expected:
        measured = noted.get(check.check, {}).get("measured")
        upwards = check.check in (IN_CLASS, IN_SET, IN_GROUP) or "l-diversity" in check.check
        if not isinstance(measured, int | float) or isinstance(measured, bool):
            yield Check(f"promises about people that {AUDIT} does not measure: {check.check}", 0, 1, passed=False)
            continue
        held = (at_least if upwards else at_most)(check.check, check.promised or 0, measured)
        yield Check(check.check + _WRITTEN, check.promised, measured, held.passed)
        if check.check == IN_CLASS and smallest_class is not None and most is not None:
            # So many people at least have that many rows, and no class has more people than rows.
            possible = -(-smallest_class // int(most)) <= measured <= smallest_class
            yield Check(f"{IN_CLASS}, of which its rows cannot be", 0, int(not possible), possible)
