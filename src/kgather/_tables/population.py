"""How many people of a population match what each class shows, read from the texts that were written."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._recoding.hierarchies import EVERYTHING, as_range, lines, members
from kgather._release.release import Check
from kgather._settings.table import QuasiIdentifier, TableSettings
from kgather._sql_text import identifier
from kgather._verify.people import K_MAP, PRESENCE

_RANGE = re.compile(r"\[(.+), (.+)\)")
_LINES = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL.*|FLOAT|DOUBLE|DATE|TIME.*")
_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL.*|FLOAT|DOUBLE")

Covers = Callable[[str, NDArray[np.int64]], NDArray[np.bool_]]
"""Whether a label is true of values that are none of null, by their places among the different ones."""


@dataclass(frozen=True)
class Matched:
    """Of each class its rows and the people of the population who match it, int64[g] each."""

    rows: NDArray[np.int64]
    people: NDArray[np.int64]


def matched(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings) -> Matched:
    """Who of the population matches the classes of the written table. relation: what may stand after FROM.

    Every class is compared with the population by the words of its cells, column by column; what no label of a column
    covers is not looked at in the next. O(classes population columns) at worst.
    """
    names = list(settings.quasi_identifiers)
    listed = ", ".join(map(identifier, names))
    classes = con.execute(f"select {listed}, count(*) from {relation} group by all order by all").fetchall()
    if not classes:
        return Matched(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    texts = ", ".join(f"cast({identifier(name)} as varchar)" for name in names)
    people = con.execute(f"select {texts}, count(*) from {settings.population} group by all").fetchall()
    described = con.execute(f"describe select {listed} from {settings.population}").fetchall()
    kinds = {name: str(kind) for name, (_, kind, *_) in zip(names, described, strict=True)}
    covered = [
        _column(
            name, settings.quasi_identifiers[name], kinds[name], [row[j] for row in classes], [row[j] for row in people]
        )
        for j, name in enumerate(names)
    ]
    counts = np.array([row[-1] for row in people], dtype=np.int64)
    alike = np.zeros(len(classes), dtype=np.int64)
    _count(covered, 0, np.arange(len(classes)), np.arange(len(people)), counts, alike)
    return Matched(np.array([row[-1] for row in classes], dtype=np.int64), alike)


def risks(found: Matched) -> dict[str, float]:
    """Who has the population: the journalist's chance, at most, that a row is that of a person who looks like it, and
    the marketer's share of all rows that are named rightly, one person drawn for each."""
    if len(found.rows) == 0:
        return {}
    chance = 1 / np.maximum(found.people, found.rows)
    mean = float((chance * found.rows).sum() / found.rows.sum())
    return {"population_journalist": round(float(chance.max()), 4), "population_marketer": round(mean, 4)}


def checks(matched: Matched, settings: TableSettings) -> tuple[Check, ...]:
    """Check for k-map and delta-presence."""
    if settings.population is None or len(matched.rows) == 0:
        return ()
    share = matched.rows / np.maximum(matched.people, 1)
    found = []
    if settings.k_map is not None:
        least = int(matched.people.min())
        found.append(Check(K_MAP, settings.k_map, least, least >= settings.k_map))
    if settings.presence is not None:
        low, high = settings.presence
        for word, bound, measured, kept in (
            ("smallest", low, float(share.min()), share.min() >= low - 1e-9),
            ("largest", high, float(share.max()), share.max() <= high + 1e-9),
        ):
            found.append(Check(PRESENCE.format(word=word), bound, round(measured, 9), bool(kept)))
    return tuple(found)


@dataclass(frozen=True)
class _Column:
    """The different labels, the label of each class and the value of each combination of the population, by place."""

    labels: list[str | None]
    of_label: NDArray[np.int64]
    of_value: NDArray[np.int64]
    null: int
    covers: Covers

    def matching(self, label: int, people: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the population for whom a label is true."""
        text, values = self.labels[label], self.of_value[people]
        if text == EVERYTHING:
            return people
        if text is None:
            return people[values == self.null]
        people, values = people[values != self.null], values[values != self.null]
        return people[self.covers(text, values)]


def _column(
    name: str, asked: QuasiIdentifier, kind: str, labels: Sequence[str | None], values: Sequence[str | None]
) -> _Column:
    if _NUMBERS.fullmatch(kind) and asked.kind in (None, "number"):
        values = [None if value == "nan" else value for value in values]  # shown as null
    named, of_label = _numbered(labels)
    held, of_value = _numbered(values)
    null = held.index(None) if None in held else -1
    return _Column(named, of_label, of_value, null, _covers(name, asked, kind, ["" if v is None else v for v in held]))


def _numbered(texts: Sequence[str | None]) -> tuple[list[str | None], NDArray[np.int64]]:
    known: dict[str | None, int] = {}
    places = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)
    return list(known), places


def _count(
    columns: Sequence[_Column],
    j: int,
    classes: NDArray[np.int64],
    people: NDArray[np.int64],
    counts: NDArray[np.int64],
    matched: NDArray[np.int64],
) -> None:
    """Writes matched[classes]: classes that agree in the columns before j, and who of the population matches these."""
    if j == len(columns):
        matched[classes] = counts[people].sum()
        return
    column = columns[j]
    for label in np.unique(column.of_label[classes]):
        agreeing = classes[column.of_label[classes] == label]
        _count(columns, j + 1, agreeing, column.matching(int(label), people), counts, matched)


def _covers(name: str, asked: QuasiIdentifier, kind: str, values: Sequence[str]) -> Covers:
    """What a label of a column is true of. values: the different ones of the population, "" for null."""
    if asked.hierarchy is not None:
        paths = {line[0]: line for line in lines(name, asked.hierarchy)}
        known = [set(paths.get(value, ())) for value in values]
        return lambda label, places: np.array([label in known[place] for place in places], dtype=np.bool_)
    if asked.order is not None:
        rank = {value: at for at, value in enumerate(asked.order)}
        ranks = np.array([rank.get(value, -1) for value in values])
        ends = {value: (at, at) for value, at in rank.items()} | {
            as_range(low, high): (a, b) for low, a in rank.items() for high, b in rank.items() if a < b
        }

        def between(label: str, places: NDArray[np.int64]) -> NDArray[np.bool_]:
            low, high = ends[label]
            return np.asarray((ranks[places] >= low) & (ranks[places] <= high), dtype=np.bool_)

        return between
    if asked.kind in ("mask", "prefix") or asked.mask is not None or asked.keep:
        return _shown_characters(values)
    if _LINES.fullmatch(kind) and asked.kind in (None, "number", "date", "time"):
        return _in_ranges(values, is_number=bool(_NUMBERS.fullmatch(kind)))
    texts = np.array(values, dtype=object)

    def named(label: str, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        listed = {label} | (members(label) or set())
        return np.array([value in listed for value in texts[places]], dtype=np.bool_)

    return named


def _in_ranges(values: Sequence[str], *, is_number: bool) -> Covers:
    """Ranges of numbers, or of dates and times: their ISO texts are in the order of time."""
    read: Callable[[str], Any] = float if is_number else str
    held = np.array([float(value or "nan") for value in values]) if is_number else np.array(values, dtype=np.str_)

    def inside(label: str, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        own = held[places]
        found = _RANGE.fullmatch(label)
        if found:
            return np.asarray((own >= read(found[1])) & (own < read(found[2])), dtype=np.bool_)
        if label.startswith("< "):
            return np.asarray(own < read(label[2:]), dtype=np.bool_)
        if label.startswith(">= "):
            return np.asarray(own >= read(label[3:]), dtype=np.bool_)
        # A day holds its times.
        return np.asarray(own == float(label) if is_number else np.char.startswith(own, label), dtype=np.bool_)

    return inside


def _shown_characters(values: Sequence[str]) -> Covers:
    """Prefixes and masks: a star is any character, or none at the end."""
    longest = max(1, max(map(len, values)))
    characters = np.zeros((len(values), longest), dtype=np.uint32)
    for at, value in enumerate(values):
        characters[at, : len(value)] = [ord(each) for each in value]

    def shown(label: str, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        own = characters[places]
        found = np.ones(len(places), dtype=np.bool_)
        exact = found.copy()
        for at in range(max(longest, len(label))):
            of_value = own[:, at] if at < longest else np.zeros(len(places), dtype=np.uint32)
            of_label = ord(label[at]) if at < len(label) else 0
            exact &= of_value == of_label
            if of_label != ord(EVERYTHING):
                found &= of_value == of_label
        return found | exact

    return shown
