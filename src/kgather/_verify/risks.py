"""What somebody gets who knows the quasi-identifiers of people, read from what is shown alone."""

from typing import Any

import duckdb
import numpy as np

from kgather._settings.table import TableSettings
from kgather._sql_text import identifier
from kgather._verify.classes import class_sizes, seen
from kgather.udfs.measuring.population import chance_of_one


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
