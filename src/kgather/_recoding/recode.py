"""Combinations of values in, classes out: what the pipeline's SQL calls once for a table."""

import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError, PromiseError
from kgather._recoding import hierarchies
from kgather._recoding.cells import cells
from kgather._recoding.columns import coded
from kgather._recoding.costs import costs
from kgather._recoding.lines import Coded
from kgather._recoding.reach import reach
from kgather._settings.table import TableSettings
from kgather.udfs._shared.hashing import mix, seed64
from kgather.udfs.recoding import cluster, holders, lattice, mdav, mondrian, persons
from kgather.udfs.recoding.loss import FORBIDDEN, Losses, losses
from kgather.udfs.recoding.minimality import SURE, Believed, believed
from kgather.udfs.recoding.models import DIVERSITIES, Model, failing, measures_of_people, merge_until_kept
from kgather.udfs.recoding.population import Population, merge_until_matched

EVERYTHING = "*"
_MANY = 1_000_000  # rows that take part, from which clusters are improved once only


@dataclass(frozen=True)
class Evidence:
    """A table beside its classes, as whoever publishes it has them; none of it leaves.

    columns: the d quasi-identifiers. codes int32[m, d], sensitive int64[m, s]: the different combinations, and counts
    int64[m], the rows of each. combination, group, rows int64[p]: how many rows of a combination are in a class. low,
    high int32[g, d]: the least and the greatest codes of each class. suppressed: bool[g]. alike: int64[g], the number
    of what each class shows: those that show the same are one to a reader.
    """

    columns: list[Coded]
    codes: NDArray[np.int32]
    sensitive: NDArray[np.int64]
    counts: NDArray[np.int64]
    combination: NDArray[np.int64]
    group: NDArray[np.int64]
    rows: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    suppressed: NDArray[np.bool_]
    alike: NDArray[np.int64]

    @property
    def size(self) -> NDArray[np.int64]:
        """The rows of each class, int64[g]."""
        return np.bincount(self.group, weights=self.rows, minlength=len(self.suppressed)).astype(np.int64)


@dataclass(frozen=True)
class Recoded:
    """Classes of a table.

    combination, group, first, last int64[p]: the rows of a combination, numbered from 1, that are in a class. shown:
    for each quasi-identifier the text of each class. suppressed bool[g]. report: what was done, what it cost and what
    whoever knows the algorithm reads from it. of_people int64[p]: the group of people that the rows are of, where
    people were put into groups; else the class.
    """

    combination: NDArray[np.int64]
    group: NDArray[np.int64]
    of_people: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    shown: list[list[str | None]]
    suppressed: NDArray[np.bool_]
    report: dict[str, Any]
    evidence: Evidence


def recode(
    settings: TableSettings,
    types: Sequence[str],
    dictionaries: Sequence[Sequence[str | None]],
    ids: Sequence[NDArray[np.integer]],
    counts: NDArray[np.integer],
    *,
    people: NDArray[np.integer] | None = None,
    person: NDArray[np.integer] | None = None,
    within: NDArray[np.integer] | None = None,
) -> Recoded:
    """Put the rows of a table into classes that keep all that is promised.

    types, dictionaries and ids: one for each quasi-identifier and then each sensitive column: the type, the different
    values in the order of the database, and int[m], the value of each combination. counts: int[m], its rows.
    people: int[m], how many people of the population have it; those of no row are of the population alone. person:
    int[m], whose combination it is, numbered from 0, where people have several rows. within: int[m], the group that is
    to look the same, where groups are given.
    The same for any order of the combinations. Raises InputError where settings and columns do not go together, or
    something cannot be reached; PromiseError where more rows would have to be suppressed than may be.
    """
    counted = np.asarray(counts, dtype=np.int64)
    n = int(counted.sum()) if person is None else len(np.unique(person))
    if n < settings.k:
        what = "rows" if person is None else "people"
        msg = f"the table has {n} {what}, fewer than k = {settings.k}: no class can be large enough."
        raise InputError(msg)
    names = list(settings.quasi_identifiers)
    given = [np.asarray(each, dtype=np.int64) for each in (person, within) if each is not None]
    numbers = [*(np.asarray(each, dtype=np.int64) for each in ids), *given]
    # So that nothing hangs on how the database numbered the combinations.
    order = np.lexsort(numbers[::-1])
    numbers, counted = [each[order] for each in numbers], counted[order]
    everybody = np.zeros(len(counted), dtype=np.int64) if people is None else np.asarray(people, dtype=np.int64)[order]
    outside = counted == 0
    of_population, everybody = [each[outside] for each in numbers[: len(names)]], everybody[outside]
    numbers, counted, order = [each[~outside] for each in numbers], counted[~outside], order[~outside]
    numbers, given = numbers[: len(ids)], numbers[len(ids) :]
    who = given[0] if person is not None else None
    given_values, dictionaries = dictionaries, list(dictionaries)
    for j in range(len(names), len(numbers)) if outside.any() else ():
        # The population has no sensitive values: those that stand for them are in no row.
        used, numbers[j] = np.unique(numbers[j], return_inverse=True)
        dictionaries[j] = [dictionaries[j][value] for value in used]
    columns = []
    for name, kind, values, each in zip(names, types, dictionaries, numbers, strict=False):
        rows = np.bincount(each, weights=counted, minlength=len(values)).astype(np.int64)
        columns.append(coded(name, settings.quasi_identifiers[name], kind, values, rows, settings.k))
    priced = losses([column.loss for column in columns])
    codes = np.stack([column.codes[each] for column, each in zip(columns, numbers, strict=False)], axis=1)
    sensitive = (
        np.stack(numbers[len(names) :], axis=1) if len(numbers) > len(names) else np.zeros((len(counted), 0), np.int64)
    )
    tuples, of = _distinct(codes, [column.loss.codes for column in columns])
    weight = np.bincount(of, weights=counted, minlength=len(tuples)).astype(np.int64)
    of_people = None
    if given:
        of_people = given[-1] if within is not None else _people(settings, codes, given[0], columns)
        group = of_people if who is None else persons.part_rows(codes, counted, who, of_people, priced)
        combination, rows = np.arange(len(codes)), counted
        low = high = codes
        out = np.zeros(len(codes), dtype=np.bool_)
    else:
        if settings.method == "lattice":
            tuples_low, tuples_high, group, left_out = _levelled(settings, tuples, weight, columns)
            owner, rows = np.arange(len(tuples)), weight
        else:
            owner, group, rows = _gathered(settings, tuples, weight, priced, columns)
            tuples_low = tuples_high = tuples
            left_out = np.zeros(len(tuples), dtype=np.bool_)
        combination, group, rows = _dealt(of, counted, owner, group, rows, settings.seed)
        low, high = tuples_low[of[combination]], tuples_high[of[combination]]
        out = left_out[of[combination]]
    as_given = sensitive
    sensitive, trees = _along_trees(settings, sensitive, dictionaries[len(names) :])
    models = _models(settings, types[len(names) :], trees)
    kept = group[~out]
    while True:
        try:
            kept = merge_until_kept(
                low[~out], high[~out], kept, sensitive[combination][~out], rows[~out], priced, models,
                list(settings.sensitive), whole=(sensitive, counted), person=who,
            )  # fmt: skip
        except InputError:
            if not out.any():
                raise
            # Those who are left over cannot keep it without those who are suppressed: nobody is.
            everybody_shown = settings.model_copy(update={"suppress": 0.0})
            return recode(
                everybody_shown, types, given_values, ids, counts, people=people, person=person, within=within
            )
        if who is None or not models:
            break
        # People may be in several classes that show the same, and a reader takes these for one.
        alike = _alike(columns, low, high, kept)
        if alike.max() == kept.max():
            break
        kept = alike
    told = {}
    if who is None:  # who knows how classes were made deals rows to people, a row a person
        told = _minimality(
            settings, group[~out], kept, sensitive[combination][~out], rows[~out], models, (sensitive, counted)
        )
    if settings.population is not None and len(kept):
        codes_of_all = np.stack([c.codes[each] for c, each in zip(columns, of_population, strict=True)], axis=1)
        least, most = settings.presence or (0.0, 1.0)
        asked = Population(codes_of_all, everybody, settings.k_map or 1, least, most)
        kept = merge_until_matched(
            low[~out], high[~out], kept, rows[~out], priced, asked, lambda a, b: reach(columns, a, b)
        )
    group = np.full(len(out), int(kept.max(initial=-1)) + 1, dtype=np.int64)
    group[~out] = kept
    group, suppressed = _suppressed(
        settings, low, high, group, out, sensitive[combination], rows, columns, models, who
    )  # fmt: skip
    class_low, class_high = _boxes(low, high, group, len(suppressed))
    shown, lost = [], []
    for j, column in enumerate(columns):
        of_pieces = numbers[j][combination]
        texts, loss = cells(column, class_low[:, j], class_high[:, j], of_pieces, group, rows, settings.k)
        shown.append([EVERYTHING if gone else text for text, gone in zip(texts, suppressed, strict=True)])
        lost.append(np.where(suppressed, 1.0, loss))
    first, last = _ranks(combination, rows)
    evidence = Evidence(
        columns, codes, as_given, counted, combination, group, rows, class_low, class_high, suppressed,
        _numbered(shown, np.arange(len(suppressed))),
    )  # fmt: skip
    report = _report(settings, evidence, tuples, weight, lost) | told
    if who is not None:
        report |= _of_people(settings, _numbered(shown, group), sensitive, counted, who, models)
    of_people = group if of_people is None else of_people
    return Recoded(order[combination], group, of_people, first, last, shown, suppressed, report, evidence)


def _people(
    settings: TableSettings, codes: NDArray[np.int32], person: NDArray[np.int64], columns: Sequence[Coded]
) -> NDArray[np.int64]:
    """For each combination the group of its person; int64[m]. People are near whose least and greatest codes are."""
    low, high = persons.boxes(codes, person, int(person.max()) + 1)
    ends = np.concatenate([low, high], axis=1)
    tuples, of = _distinct(ends, [column.loss.codes for column in columns] * 2)
    weight = np.bincount(of, minlength=len(tuples)).astype(np.int64)
    priced = losses([column.loss for column in columns] * 2)
    owner, group, rows = _gathered(settings, tuples, weight, priced, [*columns, *columns])
    each, group, _ = _dealt(of, np.ones(len(of), dtype=np.int64), owner, group, rows, settings.seed)
    found = np.empty(len(of), dtype=np.int64)
    found[each] = group
    return found[person]


def _distinct(codes: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The different rows, in their order, and which one each row is."""
    key = np.zeros(len(codes), dtype=np.int64)
    room = 1
    for j, size in enumerate(sizes):
        if room > (1 << 62) // max(size, 1):  # packed before it overflows
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            room = int(key.max()) + 1
            if room > (1 << 62) // max(size, 1):
                found, of = np.unique(codes, axis=0, return_inverse=True)
                return found.astype(np.int32), of.ravel().astype(np.int64)
        key = key * size + codes[:, j]
        room *= size
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    return np.ascontiguousarray(codes[first]), of.astype(np.int64)


def _gathered(
    settings: TableSettings,
    tuples: NDArray[np.int32],
    weight: NDArray[np.int64],
    priced: Losses,
    columns: Sequence[Coded],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The classes of the method, as pieces (combination, class, rows)."""
    if settings.method == "mdav":
        return mdav.gather(tuples, weight, _positions(settings, tuples, columns), priced, settings.k)
    if settings.method == "mondrian" and settings.relaxed:
        return mondrian.gather_relaxed(tuples, weight, priced, settings.k)
    if settings.method == "mondrian":
        return np.arange(len(tuples)), mondrian.gather(tuples, weight, priced, settings.k).astype(np.int64), weight
    taking_part = int(np.minimum(weight, cluster.PART * settings.k).sum())
    rounds = settings.rounds if settings.rounds is not None else 3 if taking_part < _MANY else 1
    return cluster.gather(
        tuples, weight, priced, settings.k, seed=settings.seed, rounds=rounds,
        threads=settings.threads or os.cpu_count() or 1,
    )  # fmt: skip


def _positions(settings: TableSettings, tuples: NDArray[np.int32], columns: Sequence[Coded]) -> NDArray[np.float64]:
    """Where combinations lie, float64[m, d]: the middles of their bins, weighted; null is as far as can be."""
    found = np.empty(tuples.shape)
    names = itertools.cycle(settings.quasi_identifiers)  # least and greatest values of people have the same
    for j, (name, column) in enumerate(zip(names, columns, strict=False)):
        low, high = column.loss.low, column.loss.high
        if low is None or high is None:
            msg = f"method mdav takes numbers, dates, times and ordered categories; column '{name}' is none of these."
            raise InputError(msg)
        middle = (low + high) / 2
        if column.loss.nullable:
            middle[0] = -1.0
        found[:, j] = column.loss.weight * middle[tuples[:, j]]
    return found


def _levelled(
    settings: TableSettings, tuples: NDArray[np.int32], weight: NDArray[np.int64], columns: Sequence[Coded]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
    """The intervals of the best levels, the classes, and which combinations are left out."""
    priced = [column.loss for column in columns]
    most = int(settings.suppress * int(weight.sum()))
    chosen, group, left_out = lattice.search(tuples, weight, priced, settings.k, suppressed=most)
    low, high = np.empty_like(tuples), np.empty_like(tuples)
    for j, (loss, level) in enumerate(zip(priced, chosen, strict=True)):
        first, last = loss.levels()[level]
        low[:, j], high[:, j] = first[tuples[:, j]], last[tuples[:, j]]
    return low, high, group, left_out


def _dealt(
    of: NDArray[np.int64],
    counts: NDArray[np.int64],
    owner: NDArray[np.int64],
    group: NDArray[np.int64],
    rows: NDArray[np.int64],
    seed: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pieces of codes become pieces of combinations; those of the same codes are dealt as the seed draws them."""
    order = np.lexsort((_keys(len(of), seed64(seed)), of))
    pieces = np.lexsort((group, owner))
    return _deal(of[order], order, counts[order], owner[pieces], group[pieces], rows[pieces])


@njit(nogil=True, cache=True)
def _keys(n, seed):  # type: ignore[no-untyped-def]
    keys = np.empty(n, np.int64)
    for i in range(n):
        keys[i] = np.int64(mix(mix(np.uint64(i)) ^ seed) >> np.uint64(1))
    return keys


@njit(nogil=True, cache=True)
def _deal(of, ids, counts, owner, group, rows):  # type: ignore[no-untyped-def]
    """Both sides ordered by their codes: a walk along the two. O(combinations + pieces)."""
    most = len(of) + len(owner)
    out_of, out_group, out_rows = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    p, made = 0, 0
    left = rows[0]
    for i in range(len(of)):
        wanted = counts[i]
        while wanted > 0:
            while left == 0 or owner[p] != of[i]:
                p += 1
                left = rows[p]
            taken = min(wanted, left)
            out_of[made], out_group[made], out_rows[made] = ids[i], group[p], taken
            made += 1
            wanted -= taken
            left -= taken
    return out_of[:made], out_group[:made], out_rows[:made]


def _along_trees(
    settings: TableSettings, sensitive: NDArray[np.int64], dictionaries: Sequence[Sequence[str | None]]
) -> tuple[NDArray[np.int64], list[NDArray[np.int32] | None]]:
    """The values of sensitive columns with a hierarchy numbered in the order of a walk through it, and its nodes; of
    others in their order, null last, as `kg_t_closeness` has it."""
    found = sensitive.copy()
    trees: list[NDArray[np.int32] | None] = []
    for place, ((name, asked), values) in enumerate(zip(settings.sensitive.items(), dictionaries, strict=True)):
        if asked.hierarchy is None:
            trees.append(None)
            if None in values:
                found[:, place] = (sensitive[:, place] - 1) % len(values)
            continue
        tree = hierarchies.read(name, asked.hierarchy)
        walked, nodes = hierarchies.walked(name, tree, values)
        found[:, place] = walked[sensitive[:, place]]
        trees.append(nodes)
    return found, trees


def _models(settings: TableSettings, types: Sequence[str], trees: Sequence[NDArray[np.int32] | None]) -> list[Model]:
    found = []
    for place, (asked, kind) in enumerate(zip(settings.sensitive.values(), types, strict=True)):
        if asked.l is not None:
            found.append(Model(place, asked.diversity, asked.l, asked.c or 0.0))
        if asked.alpha is not None:
            found.append(Model(place, "alpha", asked.alpha))
        if asked.t is not None and trees[place] is not None:
            found.append(Model(place, "t_hierarchical", asked.t, nodes=trees[place]))
        elif asked.t is not None:
            on_line = asked.ordered if asked.ordered is not None else is_ordered(kind)
            found.append(Model(place, "t_ordered" if on_line else "t_equal", asked.t))
    return found


def is_ordered(kind: str) -> bool:
    """Whether values of a type of DuckDB lie on a line, as kg_t_closeness takes types."""
    return kind.lstrip("U").startswith(("TINYINT", "SMALLINT", "INT", "BIGINT", "HUGEINT", "DECIMAL", "FLOAT", "DOUBLE",
                                        "DATE", "TIME"))  # fmt: skip


def _boxes(
    low: NDArray[np.int32], high: NDArray[np.int32], group: NDArray[np.int64], g: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The least and the greatest codes of g classes."""
    class_low = np.full((g, low.shape[1]), np.iinfo(np.int32).max, dtype=np.int32)
    class_high = np.full((g, low.shape[1]), -1, dtype=np.int32)
    np.minimum.at(class_low, group, low)
    np.maximum.at(class_high, group, high)
    return class_low, class_high


def _suppressed(
    settings: TableSettings,
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    group: NDArray[np.int64],
    left_out: NDArray[np.bool_],
    sensitive: NDArray[np.int64],
    rows: NDArray[np.int64],
    columns: Sequence[Coded],
    models: Sequence[Model],
    person: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The classes once those that may not be shown, or were left out, are one that shows nothing of quasi-identifiers.

    That class has k rows or more and keeps all models: where it does not, the classes of the greatest loss join it.
    """
    g = int(group.max()) + 1
    class_low, class_high = _boxes(low, high, group, g)
    forbidden = np.bincount(group, weights=left_out, minlength=g) > 0
    loss = np.zeros(g)
    for j, column in enumerate(columns):
        each = column.loss.of(class_low[:, j], class_high[:, j])
        forbidden |= each >= FORBIDDEN
        loss += column.loss.weight * np.minimum(each, 1.0)
    if not forbidden.any():
        return group, np.zeros(g, dtype=bool)
    size = np.bincount(group, weights=rows, minlength=g).astype(np.int64)
    order = np.lexsort((np.arange(g), -loss, ~forbidden))
    total = int(size.sum())
    for taken in range(int(forbidden.sum()), g + 1):
        chosen = np.zeros(g, dtype=bool)
        chosen[order[:taken]] = True
        inside = chosen[group]
        gone = int(size[chosen].sum())
        if gone > settings.suppress * total:
            break
        if gone >= settings.k and not (models and _fails_with_whole(sensitive, rows, inside, models, person)):
            names, group = np.unique(np.where(inside, g, group), return_inverse=True)
            return group.astype(np.int64), names == g
    least = min(_in_steps(int(size[forbidden].sum()), settings.k), total)
    msg = (
        f"about {least:,} rows or more would have to be suppressed, and at most {settings.suppress:g} of {total:,} may "
        "be. Allow wider ranges or a larger share of suppressed rows."
    )
    raise PromiseError(msg)


def _fails_with_whole(
    sensitive: NDArray[np.int64],
    rows: NDArray[np.int64],
    inside: NDArray[np.bool_],
    models: Sequence[Model],
    person: NDArray[np.int64] | None,
) -> bool:
    """Whether the rows inside do not keep the models, t against all rows."""
    group = np.where(inside, 0, 1)
    return bool(failing(group, sensitive, rows, models, person=person)[0])


def _in_steps(number: int, k: int) -> int:
    """A number of rows in steps of k, so that it does not hang on one of them alone."""
    return -(-number // k) * k


def _ranks(combination: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last row of each piece among those of its combination, counted from 1."""
    order = np.argsort(combination, kind="stable")
    upto = np.cumsum(rows[order])
    starts = np.flatnonzero(np.diff(combination[order], prepend=-1))
    before = np.append(0, upto)[starts]
    lengths = np.diff(np.append(starts, len(order)))
    last = np.empty(len(order), dtype=np.int64)
    last[order] = upto - np.repeat(before, lengths)
    return last - rows + 1, last


def _alike(
    columns: Sequence[Coded], low: NDArray[np.int32], high: NDArray[np.int32], group: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The classes once those are one that show the same."""
    least, greatest = _boxes(low, high, group, int(group.max()) + 1)
    return _numbered([column.show(least[:, j], greatest[:, j]) for j, column in enumerate(columns)], group)


def _numbered(shown: Sequence[Sequence[str | None]], group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each piece the number of what its class shows. shown: for each column the text of each class."""
    known: dict[tuple[str | None, ...], int] = {}
    return np.array([known.setdefault(each, len(known)) for each in zip(*shown, strict=True)], dtype=np.int64)[group]


def _of_people(
    settings: TableSettings,
    group: NDArray[np.int64],
    sensitive: NDArray[np.int64],
    rows: NDArray[np.int64],
    person: NDArray[np.int64],
    models: Sequence[Model],
) -> dict[str, Any]:
    """What is kept and what is left, counted in people who have several rows. group: by what is shown."""
    if models and failing(group, sensitive, rows, models, person=person).any():
        msg = (
            "a class of suppressed rows and one that shows nothing do not keep what is promised of sensitive columns "
            "together. Suppress fewer rows, or ask for less."
        )
        raise PromiseError(msg)
    names = list(settings.sensitive)
    measured = measures_of_people(group, sensitive, rows, person, models)
    single, marketer, columns = holders.told(group, list(sensitive.T), person)
    kept: dict[str, dict[str, float]] = {}
    for model, found in zip(models, measured, strict=True):
        name = model.kind.partition("_")[0] if model.kind.startswith("t_") else model.kind
        kept.setdefault(names[model.column], {})["l" if model.kind in DIVERSITIES else name] = round(found, 8)
    return {
        "people": {"sensitive": kept},
        "risks": {
            "prosecutor": round(single, 4),
            "marketer": round(marketer, 4),
            "homogeneity": {name: round(alone, 3) for name, (alone, _) in zip(names, columns, strict=True)},
            "confident": {name: round(likely, 3) for name, (_, likely) in zip(names, columns, strict=True)},
        },
    }


def _minimality(
    settings: TableSettings,
    part: NDArray[np.int64],
    group: NDArray[np.int64],
    sensitive: NDArray[np.int64],
    rows: NDArray[np.int64],
    models: Sequence[Model],
    whole: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> dict[str, Any]:
    """What merged classes tell whoever knows how they were made; nothing where no model is asked for."""
    if not models or len(part) == 0:
        return {}
    names = list(settings.sensitive)
    found = believed(part, group, sensitive, rows, models, whole, seed=settings.seed)
    return {"minimality": {names[column]: _told(each, settings.k) for column, each in found.items()}}


def _told(found: Believed, k: int) -> dict[str, float]:
    """Numbers of people in steps of k, shares in three digits."""
    looked = max(found.rows - found.undecided, 1)
    return {
        "rows": _in_steps(found.rows, k),
        "undecided": round(found.undecided / max(found.rows, 1), 3),
        "most": round(found.most, 3),
        "most_by_reading": round(found.by_reading, 3),
        f"surer_than_{SURE:g}": _in_steps(found.sure, k),
        f"surer_than_{SURE:g}_by_reading": _in_steps(found.sure_by_reading, k),
        "right": round(found.right / looked, 3),
        "right_by_reading": round(found.right_by_reading / looked, 3),
    }


def _report(
    settings: TableSettings,
    found: Evidence,
    tuples: NDArray[np.int32],
    weight: NDArray[np.int64],
    lost: Sequence[NDArray[np.float64]],
) -> dict[str, Any]:
    """What was done and what it cost; of suppressed rows in steps of k. tuples, weight: the different codes and their
    rows. lost: for each column the loss of each class, float64[g]."""
    size = found.size
    total = size.sum()
    names = list(settings.quasi_identifiers)
    measured = costs(
        names, found.columns, tuples, weight, found.low, found.high, size, found.suppressed, settings.k,
        seed=settings.seed, threads=settings.threads or os.cpu_count() or 1, alike=found.alike,
    )  # fmt: skip
    of_columns = {}
    for j, (name, column) in enumerate(zip(names, found.columns, strict=True)):
        loss = float((lost[j] * size).sum() / total)
        of_columns[name] = {"read": column.said, "loss": round(loss, 4), **measured["columns"][name]}
    return {
        "rows": int(total),
        "classes": len(np.unique(found.alike[size > 0])),
        "suppressed": _in_steps(int(size[found.suppressed].sum()), settings.k),
        "loss": round(float(np.mean([each["loss"] for each in of_columns.values()])), 4),
        "columns": of_columns,
        "costs": measured["all"],
    }


def as_json(report: dict[str, Any]) -> str:
    """The report as SQL hands it over."""
    return json.dumps(report)
