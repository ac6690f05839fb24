"""What an anonymized table promises, measured on what was written, with the measures that check any table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from kgather._errors import InputError
from kgather._release.release import Check
from kgather._settings.table import TableSettings
from kgather._sql_text import identifier, literal
from kgather._verify import people
from kgather._verify.connection import bounded
from kgather._verify.table import FILE, class_sizes, seen
from kgather._verify.table import checks as verify_promises
from kgather.udfs.measuring.population import chance_of_one

SMALLEST_INTERSECTION = "people in the smallest intersection with the classes of the other tables"


@dataclass(frozen=True)
class TableAudit:
    """The checks of an anonymized table; `report` says how it was made and what it cost, `risks` what is left, and
    `class_sizes` how many classes there are of each size, as (rows, classes)."""

    checks: tuple[Check, ...]
    report: dict[str, Any]
    risks: dict[str, Any]
    class_sizes: tuple[tuple[int, int], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check is passed."""
        return all(check.passed for check in self.checks)


def checks(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings) -> tuple[Check, ...]:
    """Check a relation for all that the settings promise. relation: what may stand after FROM."""
    found = verify_promises(con, relation, settings.model_dump(mode="json"))
    con.execute("drop view if exists temp.kgather_verified")
    return found


def of_people(settings: TableSettings, measured: Mapping[str, Any]) -> tuple[Check, ...]:
    """What is promised of people where they have several rows or are in other tables, too. It was counted before it was
    left out whose each row is. measured: `kg_people` of `kgather._recoding.people`."""

    def line(check: str, key: str, promised: int | None) -> Check:
        number = measured.get(key) or 0
        return Check(check, promised, number, promised is None or number >= promised)

    found = []
    if settings.has_several_rows:
        found += [
            line(people.IN_CLASS, "in_class", settings.k),
            line(people.IN_SET, "in_set", settings.k),
        ]
        found += _of_sensitive(settings, measured.get("sensitive", {}))
    if settings.within is not None:
        torn = measured.get("torn") or 0
        found += [
            line(people.IN_GROUP, "in_group", settings.k),
            Check(people.TORN, 0, torn, torn == 0),
        ]
    if settings.beside:
        found.append(line(SMALLEST_INTERSECTION, "beside", None))
    return tuple(found)


def _of_sensitive(settings: TableSettings, measured: Mapping[str, Mapping[str, float]]) -> Iterator[Check]:
    """What is promised of sensitive columns, of people: see `kgather.udfs.recoding.holders`."""
    for name, asked in settings.sensitive.items():
        yield from people.of_sensitive(name, asked.model_dump(), measured.get(name, {}), asked.diversity)


def risks(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings) -> dict[str, Any]:
    """What somebody gets who knows the quasi-identifiers of people, read from what is shown alone.

    prosecutor: the largest chance to pick one person's row, who is known to be in the table. marketer: the share of
    rows that are picked rightly at random, one in each class. journalist, journalist_mean: with a `sampling_fraction`,
    the chance, at most and on average, that a row is that of somebody of the population who looks like it.

    Of each sensitive column: homogeneity, the share of rows whose class has one value, which tells it of everybody in
    the class. confident: the share of rows whose class has one value more than half the time. background: the share of
    rows whose own value has more than half of what is left of the class for somebody who knows that the person does not
    have the one value, or the two, that are most frequent beside it; certain: for whom nothing else is left.
    """
    quasi = list(settings.quasi_identifiers)
    columns = seen(quasi)
    classes = ", ".join(f"c{place}" for place in range(1, len(columns) + 1))
    named = ", ".join(f"{each} as c{place}" for place, each in enumerate(columns, 1))
    listed = ", ".join(columns)
    size, times = np.array(class_sizes(con, relation, quasi), dtype=np.int64).reshape(-1, 2).T
    if len(size) == 0:
        return {}
    rows = int((size * times).sum())
    found: dict[str, Any] = {
        "prosecutor": round(1 / int(size[0]), 4),
        "marketer": round(int(times.sum()) / rows, 4),
    }
    if settings.sampling_fraction is not None:
        chance = chance_of_one(size, settings.sampling_fraction)
        found["journalist"] = round(float(chance.max()), 4)
        found["journalist_mean"] = round(float((chance * size * times).sum() / rows), 4)
    found |= {"homogeneity": {}, "confident": {}, "background": {}}
    for name in settings.sensitive:
        held = f"select {named}, count(*) as times from {relation} group by {listed}, {identifier(name)}"
        [(alone, likely, *background)] = con.execute(
            _OF_VALUES.format(held=held, classes=classes, shares=_SHARES)
        ).fetchall()
        found["homogeneity"][name] = round(float(alone), 3)
        found["confident"][name] = round(float(likely), 3)
        found["background"][name] = {
            told: round(float(share), 3) for told, share in zip(_BACKGROUND, background, strict=True)
        }
    return found


def risks_of_release(release: Path, settings: TableSettings) -> dict[str, Any]:
    """The same of a release folder. Raises InputError where its table cannot be read."""
    with bounded() as con:
        try:
            return risks(con, f"read_parquet({literal(release / FILE)})", settings)
        except duckdb.Error as error:
            msg = f"{release} is no release: {FILE} cannot be read ({type(error).__name__})."
            raise InputError(msg) from None


_BACKGROUND = ("one_known", "two_known", "one_known_certain", "two_known_certain")
# Of each class the numbers of its values, the most frequent first; the values that are ruled out are the most frequent
# ones but the own.
_OF_VALUES = """
with held as ({held}),
of_classes as (select list(times order by times desc) as all_times, sum(times) as n from held group by {classes}),
own as (
  select n, all_times[1] as most, unnest(all_times) as own, generate_subscripts(all_times, 1) as place,
    list_sum(all_times[1:1]) as one, list_sum(all_times[1:2]) as two, list_sum(all_times[1:3]) as three from of_classes
),
left_over as (
  select *, n - case when place <= 1 then two - own else one end as after_one,
    n - case when place <= 2 then three - own else two end as after_two from own
)
select {shares} from left_over
"""
_SHARES = ", ".join(
    f"coalesce(sum(own) filter ({wanted}), 0) / sum(own)"
    for wanted in (
        "most = n", "2 * most > n", "2 * own > after_one", "2 * own > after_two", "own = after_one", "own = after_two",
    )
)  # fmt: skip
