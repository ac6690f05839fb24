"""What a budget buys, in sentences: how many margins at what standard error, and from how many people on groups, and
values that the policy does not list, are shown. It follows from the policy and, if it is known, a rough number of
people: nothing is read for it."""

import math
from collections.abc import Iterator, Mapping, Sequence

from kgather._guard.catalog import Catalog, Column, TableInfo
from kgather._guard.measured.accounting import noise_for
from kgather._guard.measured.answering import SURE
from kgather._guard.measured.coding import FINE
from kgather._guard.measured.features import SPAN
from kgather._guard.measured.kinds import People, named
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.measuring import counted_beside, least_shown
from kgather._guard.measured.model import Model
from kgather._guard.measured.reading import GRANULES
from kgather._guard.measured.shares import Prices
from kgather._guard.measured.source import Source

_PART = 0.1
"""The part of all people that a group has, which stands for groups in general. Where so many are too few to be shown,
or hard to tell from noise, the budget buys little."""
_NAMES = 3  # columns that are told by name
_WIDE = 0.15  # of a number: a standard error that makes it a rough one


def purchase(catalog: Catalog, found: Prices, people: float | None = None) -> tuple[str, ...]:
    """Sentences that say what the budget of a policy of mode measured buys, each to be printed as a line.

    catalog, found: of people of one kind, and their prices. people: how many there are, None where that is not known;
    only its first digit is told, to those who may know it: analysts may where it is of `measured_people`.
    """
    return tuple(_sentences(catalog, found, people))


def bought(kinds: Mapping[str, People], measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """The same for people of each kind, for as many as were measured, if they were."""
    return tuple(
        sentence if people.alone else f"{named(kind)[:1].upper()}{named(kind)[1:]}: {sentence}"
        for kind, people in kinds.items()
        for sentence in purchase(people.catalog, people.prices, measured_people(people.told(measurements)))
    )


def least_people(catalog: Catalog, found: Prices) -> float:
    """From about how many people on a group by one or two columns is shown."""
    return catalog.policy.k + SURE * _noise(found)


def least_of_values(catalog: Catalog, found: Prices, info: TableInfo, *, means: bool = False) -> float | None:
    """From about how many people on a value of a table's column is found, and shown, that the policy does not list: so
    many have to have it that noise hides whether one does. Of the first such column; of others it takes a few more.
    means: where means by it are asked for first, which are measured with it. None where that is not known."""
    rows = info.grain == "rows"
    price = found.of.get(f"{info.name} keys" if rows else "keys")
    most = info.policy.rows_per_person if rows else 1
    if price is None or most is None:
        return None
    unit, length = (GRANULES if rows else 1), 1.0
    if means:
        price += found.of.get(f"{info.name} sums", found.fresh)
        unit = counted_beside("keyed")
        length = math.hypot(FINE, unit) / unit
    sd = noise_for(math.sqrt(most) * length * unit, price)
    return least_shown(catalog.policy.k, unit, sd, found.delta_of_next(()), rows=rows) / unit


def measured_people(measurements: Sequence[Measurement]) -> float | None:
    """How many people there are, as far as a ledger's measurements tell; those of its last version that do. None where
    there are none, or noise hides the number."""
    told = [one.version for one in measurements if one.kind == "people" or (one.kind == "counts" and not _rows(one))]
    if not told:
        return None
    last = max(told)
    people = Model([one for one in measurements if one.version == last]).people
    number, noise = float(people.values), math.sqrt(float(people.variance))
    return number if number > SURE * noise else None


def _noise(found: Prices) -> float:
    """The standard error of a number of people in a margin of one or two columns, whichever is wider."""
    return max(noise_for(1.0, found.of[pool]) for pool in ("ones", "pairs") if pool in found.of)


def _rows(measurement: Measurement) -> bool:
    return bool(measurement.about.get("rows"))


def _sentences(catalog: Catalog, found: Prices, people: float | None) -> Iterator[str]:
    budget = catalog.budget
    yield (
        f"The budget is epsilon {budget.epsilon:g} at delta {budget.delta:g} for all answers to everybody, as long as "
        f"there is the ledger. It is spent as rho, {found.total:.3g} in all."
    )
    parts = [
        f"{_margins(found, pool)} of {columns} at a standard error of {_number(noise_for(1.0, found.of[pool]))} people"
        for pool, columns in (("ones", "one column"), ("pairs", "two columns"))
        if pool in found.of
    ]
    other = round(found.reserve / found.fresh)
    yield (
        f"It buys {', '.join(parts)}, and {other} conditions of more columns at "
        f"{_number(noise_for(1.0, found.fresh))}. What is measured once is told for ever at no further cost."
    )
    yield from _of_rows(catalog, found)
    yield from _of_values(catalog, found)
    noise, least = _noise(found), least_people(catalog, found)
    if people is None:
        few = 10 ** math.floor(math.log10(enough := max(least, noise / _WIDE) / _PART))
        yield (
            f"A group of people by one or two columns is shown from about {_number(least)} people on. With fewer than "
            f"about {math.ceil(enough / few) * few:,} people in all, that is little: few groups are shown, and their "
            "numbers are rough."
        )
        return
    rough = _one_digit(people)
    part = _PART * rough
    yield (
        f"With about {rough:,} people, a group of them by one or two columns is shown from about {_number(least)} "
        f"people on, {_percent(least / rough)} of all. One that has a tenth of all is told with a standard error of "
        f"{_percent(noise / part)}."
    )
    if least > part or noise > _WIDE * part:
        yield (
            "That is little. Few groups are shown, and their numbers are rough: ask about large groups, by one column "
            "or two, and let the policy name fewer columns. More people make it better; so does a larger epsilon, "
            "which protects less."
        )


def _of_rows(catalog: Catalog, found: Prices) -> Iterator[str]:
    """What is bought of long tables."""
    for info in catalog.tables.values():
        pool, most = f"{info.name} ones", info.policy.rows_per_person
        if pool in found.of and most is not None:
            noise = noise_for(float(most), found.of[pool])
            least = catalog.policy.k + SURE * noise
            yield (
                f"Rows of {info.name}, {most:,} of a person in full, are counted by one column at a standard error of "
                f"{_number(noise)} rows: a group of rows is shown from about {_number(least)} rows on."
            )


def _of_values(catalog: Catalog, found: Prices) -> Iterator[str]:
    """From how many people on values are shown that are not listed, of each table that has such columns."""
    for info in catalog.tables.values():
        names = [f"{info.name}.{column.name}" for column in _unlisted(catalog, info)]
        if not names:
            continue
        listed = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
        values = f"Values that the policy does not list, of {listed}, are shown"
        least = least_of_values(catalog, found, info)
        if least is None:
            yield f"{values} from so many people on as their rows allow: rows_per_person is not declared."
            continue
        told = f"{values} from about {_number(least)} people on"
        unique = catalog.unique(info)
        if info.grain == "rows" and unique is not None and f"{info.name}.{unique}" in names:
            means = least_of_values(catalog, found, info, means=True)
            assert means is not None
            told += f", or from about {_number(means)} where means by {unique} are asked for first"
        yield f"{told}."


def _unlisted(catalog: Catalog, info: TableInfo) -> Iterator[Column]:
    """The columns of a table that groups may be made by, and whose values have to be found. Between the ends of whole
    numbers there is nothing to be found, but of names."""
    for column in info.columns.values() if info.protected else ():
        source = Source(info, column.name, column.type)
        is_name = column.name == catalog.unique(info)
        if column.role == "coarsened":
            yield column
        elif column.role not in ("artifact", "dimension") or column.kind in ("boolean", "other"):
            continue
        elif source.values is None and (column.kind != "integer" or (is_name and not _is_narrow(source))):
            yield column


def _is_narrow(source: Source) -> bool:
    return source.bounds is not None and source.bounds[1] - source.bounds[0] < SPAN


def _margins(found: Prices, pool: str) -> str:
    number = round(found.pools[pool] / found.of[pool])
    return f"{number:,} {'margin' if number == 1 else 'margins'}"


def _number(number: float) -> str:
    """Two digits, or what is before the point."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _percent(part: float) -> str:
    return f"{100 * part:,.0f}%" if part >= 0.1 else f"{100 * part:.1g}%"


def _one_digit(number: float) -> int:
    digits = int(math.log10(max(number, 1.0)))
    return max(round(number / 10**digits), 1) * 10**digits
