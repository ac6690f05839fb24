"""What the owner of the data should know of a guard: true figures, which must not leave the owner.

What the policy leaves to the data, what the questions of the audit log cost, and how far off their answers were.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import duckdb

from kgather._guard.catalog import Catalog, Column, TableInfo
from kgather._guard.measured.features import SPAN
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.readable import subject_of
from kgather._guard.measured.replay import Answer, Entry
from kgather._guard.measured.source import Source
from kgather._guard.measured.truth import Truth
from kgather._guard.plan import NUMERIC, Block
from kgather._guard.proposed_values import usual_rows
from kgather._guard.ranked import BINNED, COUNTED
from kgather._guard.render import identifier
from kgather._sql_text import literal

_KEYS, _ENDS = ("keys", "keyed"), ("spread", "magnitudes")
_OF = {"keys": "the values", "keyed": "the values", "spread": "the ends", "magnitudes": "the ends"}
_CUT = "Nothing can be declared for it: values are of columns as they are, not of dates that are cut."
_COMPUTED = "Nothing can be declared for it: values and bounds are of columns as they are."
_SURE = 2.0  # standard errors


@dataclass(frozen=True)
class FromData:
    """What was found out by measuring, as the policy does not say it. rho: what it cost. truth: as it is. todo: the
    entry of the policy that spares it, or that there is none, as a sentence. found: how many values were found; of ends
    none."""

    what: str
    rho: float
    truth: str
    todo: str
    found: int = 0


@dataclass(frozen=True)
class Cost:
    """What a question cost, as rho. measured: how many measurements it was charged for."""

    at: str
    principal: str
    text: str
    decision: str
    measured: int
    rho: float


@dataclass(frozen=True)
class Error:
    """How far off one column of an answer was. told, there: groups. middle, largest: errors as parts of the truth; None
    where nothing can be compared. within: the part of groups whose error is at most two standard errors."""

    column: str
    told: int
    there: int
    middle: float | None
    largest: float | None
    within: float | None


def from_data(con: duckdb.DuckDBPyConnection, catalog: Catalog, measurements: Sequence[Measurement]) -> list[FromData]:
    """What the policy leaves to the data, each thing once, whatever number of measurements it took. con: in which the
    tables are."""
    together: dict[str, FromData] = {}
    for one in measurements:
        if one.kind not in (*_KEYS, *_ENDS, "rows"):
            continue
        for of in _rows(con, catalog, one) if one.kind == "rows" else _values(con, catalog, one):
            known = together.get(of.what, of)
            rho = of.rho if known is of else known.rho + of.rho
            together[of.what] = replace(of if of.found > known.found else known, rho=rho)
    return [*together.values()]


def _rows(con: duckdb.DuckDBPyConnection, catalog: Catalog, one: Measurement) -> Iterator[FromData]:
    info = catalog.table(str(one.about["rows"]))
    if info is None or info.policy.rows_per_person is not None:
        return
    unit = identifier(info.unit)
    most, many = con.execute(
        f"select max(n), quantile_disc(n, 0.95) from (select count(*) as n from {identifier(info.name)}"
        f" where {unit} is not null group by {unit})"
    ).fetchall()[0]
    usual = usual_rows(con, info.name, info.unit, catalog.policy.k)
    number = "N: a number" if usual is None else f"{usual}, as kgather init guard would from these data, or a number"
    yield FromData(
        f"how many rows of {info.name} people have",
        one.rho,
        f"95 of 100 people have {many} at most, one has {most}",
        f"Declare tables.{info.name}.rows_per_person: {number} that you would choose for any data.",
    )


def _values(con: duckdb.DuckDBPyConnection, catalog: Catalog, one: Measurement) -> Iterator[FromData]:
    """What a measurement of values or of their ends found. Of a column it says what spares it; of dates that are cut
    and of what is computed nothing can be declared."""
    subject = subject_of(one.name)
    if subject is None:
        return
    info = None if subject.column is None else catalog.table(subject.column[0])
    column = None if info is None or subject.column is None else info.column(subject.column[1])
    found = len(one.domains[0].values) if one.kind in _KEYS else 0
    if info is None or column is None:
        told = f"{found} were found" if one.kind in _KEYS else "they were found by measuring"
        yield FromData(f"{_OF[one.kind]} of {subject.told}", one.rho, told, _COMPUTED, found)
        return
    if not info.protected or _is_declared(info, column, one.kind):
        return
    cell, table = identifier(column.name), identifier(info.name)
    if one.kind in _KEYS:
        cell = cell if subject.cut is None else f"date_trunc({literal(subject.cut)}, {cell})"
        (values,) = con.execute(f"select count(distinct {cell}) from {table}").fetchall()[0]
        entry = f"tables.{info.name}.values: {{{column.name}: [...]}}: all that there may be, not those that there are"
        yield FromData(
            f"the values of {subject.told}",
            one.rho,
            f"{values} there are, {found} were found",
            _CUT if subject.cut is not None else f"Declare {entry}.",
            found,
        )
        return
    low, high = con.execute(f"select min({cell}), max({cell}) from {table}").fetchall()[0]
    entry = f"tables.{info.name}.bounds: {{{column.name}: [LOW, HIGH]}}: what anybody may have, not what somebody has"
    yield FromData(
        f"between what {info.name}.{column.name} lies", one.rho, f"between {low} and {high}", f"Declare {entry}."
    )


def _is_declared(info: TableInfo, column: Column, kind: str) -> bool:
    """Whether the policy says by now what a measurement of this kind found out."""
    source = Source(info, column.name, column.type)
    if kind in _ENDS:
        return source.bounds is not None or column.kind not in NUMERIC
    low, high = source.bounds or (0.0, math.inf)
    return source.values is not None or (column.kind == "integer" and high - low < SPAN)


def costs(entries: Sequence[Entry]) -> list[Cost]:
    """What was measured for each question, and its cost. Charges that an entry has for others are not of it."""
    return [
        Cost(entry["at"], entry["principal"], entry["text"], entry["decision"], len(own), sum(own))
        for entry in entries
        for own in [[float(charge["rho"]) for charge in entry["measured"] if "for" not in charge]]
    ]


def cost_of_others(entries: Sequence[Entry]) -> float:
    """What was measured for no answer of the log: what the policy prepares, what is measured again as it is asked for
    most, and what was stopped."""
    own = {charge["number"] for entry in entries for charge in entry["measured"] if "for" not in charge}
    others = {charge["number"]: float(charge["rho"]) for entry in entries for charge in entry["measured"]}
    return sum(rho for number, rho in others.items() if number not in own)


def errors(answer: Answer, truth: Truth) -> list[Error]:
    """How far off an answer was, for each aggregate of its GROUP BYs."""
    return [error for block in answer.made.blocks for error in _errors(block, answer, truth)]


def _errors(block: Block, answer: Answer, truth: Truth) -> Iterator[Error]:
    keys = [key.name for key in block.keys]
    of = answer.blocks[block.name]
    told = _by_keys(of.table.to_pylist(), keys)
    sure = _by_keys(of.errors.to_pylist(), keys)
    true = _by_keys(truth.relation(block).to_pylist(), keys)
    for aggregate in block.aggregates:
        if aggregate.function in (*COUNTED, BINNED):
            continue  # values and histograms are not so far from each other
        parts, within = [], []
        for place, row in told.items():
            number, really = row[aggregate.name], true.get(place, {}).get(aggregate.name)
            if number is None or really is None:
                continue
            off = abs(float(number) - float(really))
            parts.append(off / abs(float(really)) if really else math.inf if off else 0.0)
            error = sure[place][f"{aggregate.name}_error"]
            within += [off <= _SURE * float(error)] if error is not None else []
        yield Error(
            f"{block.name}.{aggregate.name} ({aggregate.function})",
            len(parts),
            len(true),
            median(parts) if parts else None,
            max(parts, default=None),
            sum(within) / len(within) if within else None,
        )


def _by_keys(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[tuple[str, ...], Mapping[str, Any]]:
    return {tuple(str(row[key]) for key in keys): row for row in rows}
