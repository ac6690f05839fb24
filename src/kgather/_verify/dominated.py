"""What distinct l-diversity does not see: classes in which one value is far more frequent than the others."""

import duckdb

from kgather._settings.table import TableSettings
from kgather._sql_text import identifier

_HALF_AGAIN = 1.5  # times 1 / l, the share that each of l equally frequent values has


def greatest_share(l: float) -> float:  # noqa: E741
    """The share of a class from which on one value is too frequent: half again 1 / l, and half of the class at most."""
    return min(0.5, _HALF_AGAIN / l)


def dominated(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings) -> dict[str, float]:
    """For each sensitive column of distinct l-diversity the share of rows whose class has a value that is too frequent.

    relation: what may stand after FROM.
    """
    seen = ", ".join(f"encode(cast({identifier(name)} as varchar))" for name in settings.quasi_identifiers)
    found = {}
    for name, asked in settings.sensitive.items():
        if asked.l is None or asked.diversity != "distinct":
            continue
        times = f"select hash({seen}) as c, count(*) as n from {relation} group by {seen}, {identifier(name)}"
        [(share,)] = con.execute(
            f"select coalesce(sum(n) filter (most > {greatest_share(asked.l)!r} * n) / sum(n), 0) "
            f"from (select max(n) as most, sum(n) as n from ({times}) group by c)"
        ).fetchall()
        found[name] = round(float(share), 3)
    return found
