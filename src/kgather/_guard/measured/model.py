"""What the measurements say together: margins fitted to each other, and tables of several features made of them.

A one-way margin is the mean of all that tell of it, weighted by their noise. A two-way margin is fitted to its one-way
margins by least squares. Tables of three features and more are those of greatest entropy with the two-way margins, by
iterative proportional fitting (Deming and Stephan 1940). Everything here is a function of stored numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._guard.measured.domain import Domain
from kgather._guard.measured.ledger import LOST, Measurement

_PASSES = 60
_CLOSE = 1e-7  # of the total; closer than this, fitting ends
_LEAST = 0.05  # people in a cell, for fitting: noise makes small cells negative
_OF_SPREAD = 0.2  # of how much the pairs matter, the standard error of what three features have together
_MISFIT = 0.02  # standard error of a table of three features, relative, beside the noise

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Counts in cells, with the variance of the noise of each."""

    values: Floats
    variance: Floats


@dataclass(frozen=True)
class Key:
    """What a count is of: the population (the long table whose rows are counted, or "" of people) and features."""

    rows: str
    names: tuple[str, ...]


def name_of(kind: str, rows: str, names: Sequence[str], more: str = "") -> str:
    """What a measurement is known by."""
    of = f"rows of {rows}" if rows else "people"
    return f"{kind} of {of}: {' | '.join(names)}{more}"


class Model:
    """What measurements of one version of the data say. They are indexed once; tables are made when asked for."""

    def __init__(self, measurements: Sequence[Measurement], position: tuple[int, int] = (1, 0)) -> None:
        """position: the version of the data, and how many measurements the ledger has."""
        self.measurements = measurements = [one for one in measurements if one.kind != LOST]
        self.position = position
        self._by_name: dict[str, list[Measurement]] = {}
        self._of_people: dict[str, list[Measurement]] = {}
        for one in measurements:
            self._by_name.setdefault(one.name, []).append(one)
            if one.kind in ("counts", "keys") and not one.about["rows"]:
                for name in one.about["features"]:
                    self._of_people.setdefault(name, []).append(one)
        self._ones: dict[tuple[str, str, Domain], Table | None] = {}
        self._pairs: dict[tuple[str, tuple[str, str], tuple[Domain, Domain]], Table | None] = {}

    def found(self, name: str, domains: Sequence[Domain] | None = None) -> list[Measurement]:
        """All measurements of a name, over these classes."""
        known = self._by_name.get(name, [])
        return [one for one in known if domains is None or one.domains == tuple(domains)]

    def mean(self, name: str, domains: Sequence[Domain] | None = None, unit: float = 1.0) -> Table | None:
        """The mean of what was measured, weighted by the noise. unit: of the numbers, of one person."""
        return averaged([_table(one, unit) for one in self.found(name, domains)])

    @cached_property
    def people(self) -> Table:
        """How many people there are; of shape ()."""
        parts = [_table(one, 1.0) for one in self._by_name.get(name_of("people", "", ()), [])]
        for one in self.measurements:
            if one.kind == "counts" and not one.about.get("rows"):
                parts.append(Table(np.asarray(float(one.numbers.sum())), np.asarray(one.numbers.size * one.sd**2)))
        return averaged(parts) or Table(np.asarray(0.0), np.asarray(np.inf))

    def one(self, rows: str, name: str, domain: Domain, unit: float = 1.0) -> Table | None:
        """A one-way margin: of people from everything that tells of it, of rows as it was measured."""
        place = (rows, name, domain)
        if place not in self._ones:
            self._ones[place] = self._one(rows, name, domain, unit)
        return self._ones[place]

    def _one(self, rows: str, name: str, domain: Domain, unit: float) -> Table | None:
        parts = []
        own = self.mean(name_of("counts", rows, (name,)), (domain,), unit)
        if rows or (own is None and not self._has_pair(name, domain)):
            return own
        if own is not None:
            parts.append(own)
        for one in self._of_people.get(name, ()):
            if one.kind == "keys":
                parts.append(_onto(one, domain))
                continue
            names = one.about["features"]
            at = names.index(name)
            if len(names) < 2 or one.domains[at] != domain:
                continue
            others = tuple(axis for axis in range(len(names)) if axis != at)
            cells = one.numbers.size // domain.size
            parts.append(Table(one.numbers.sum(axis=others).astype(float), np.full(domain.size, cells * one.sd**2)))
        found = averaged(parts)
        if found is None:
            return None
        # All margins are of the same people.
        total, spread = self.people
        noise = float(found.variance.sum())
        share = noise / (noise + float(spread)) if noise + float(spread) > 0 else 0.0
        off = (float(total) - float(found.values.sum())) * share / domain.size
        return Table(found.values + off, found.variance)

    def _has_pair(self, name: str, domain: Domain) -> bool:
        """Whether a feature is in some margin of several."""
        return any(
            one.kind == "counts" and (name, domain) in zip(one.about["features"], one.domains, strict=True)
            for one in self._of_people.get(name, ())
        )

    def pair(
        self, rows: str, names: tuple[str, str], domains: tuple[Domain, Domain], unit: float = 1.0
    ) -> Table | None:
        """A two-way margin, of people fitted to its one-way margins. names: in their order."""
        place = (rows, names, domains)
        if place not in self._pairs:
            self._pairs[place] = self._pair(rows, names, domains, unit)
        return self._pairs[place]

    def _pair(self, rows: str, names: tuple[str, str], domains: tuple[Domain, Domain], unit: float) -> Table | None:
        measured = self.mean(name_of("counts", rows, names), domains, unit)
        if measured is None or rows:
            return measured
        first, second = (self.one(rows, name, domain) for name, domain in zip(names, domains, strict=True))
        assert first is not None
        assert second is not None
        values = measured.values
        n, m = values.shape
        down, across = first.values - values.sum(1), second.values - values.sum(0)
        both = (down.sum() / (n * m) + across.sum() / (n * m)) / 2
        return Table(values + down[:, None] / m + across[None, :] / n - both, measured.variance)


def averaged(parts: Sequence[Table]) -> Table | None:
    """The mean of tables of the same thing, weighted by their noise."""
    if not parts:
        return None
    weights = [1 / np.maximum(part.variance, 1e-12) for part in parts]
    whole = np.sum(weights, axis=0)
    values = np.sum([weight * part.values for weight, part in zip(weights, parts, strict=True)], axis=0) / whole
    return Table(values, 1 / whole)


def _onto(one: Measurement, domain: Domain) -> Table:
    """Counts of values that were found, on the classes of a domain; of other classes they tell nothing."""
    places = {value: at for at, value in enumerate(one.domains[0].values)}
    values, variance = np.zeros(domain.size), np.full(domain.size, np.inf)
    for at, value in enumerate(domain.values):
        if value in places:
            values[at], variance[at] = one.numbers[places[value]], one.sd**2
    return Table(values, variance)


def _table(one: Measurement, unit: float) -> Table:
    values = one.numbers.astype(float) / unit
    return Table(values, np.full(values.shape, (one.sd / unit) ** 2))


@dataclass(frozen=True)
class Axis:
    """A feature with its classes put together to those that a question tells apart.

    classes int64[domain.size]: of each class of the domain, its place here. sizes float64[n]: how many there are in
    each.
    """

    name: str
    domain: Domain
    classes: NDArray[np.int64]

    @cached_property
    def sizes(self) -> Floats:
        return np.bincount(self.classes).astype(float)

    @property
    def n(self) -> int:
        return len(self.sizes)

    def together(self, values: Floats, axis: int) -> Floats:
        """Sums over classes that are together, along an axis."""
        moved = np.moveaxis(values, axis, 0)
        summed = np.zeros((self.n, *moved.shape[1:]))
        np.add.at(summed, self.classes, moved)
        return np.moveaxis(summed, 0, axis)


def one_of(table: Table, axis: Axis) -> Table:
    """A one-way margin of the classes that a question tells apart. What all classes together are is known better, so
    that noise is less than that of each class by itself."""
    values = axis.together(table.values, 0)
    noise = float(table.variance.mean())
    share = axis.sizes / axis.domain.size
    return Table(values, noise * axis.sizes * np.maximum(1 - share, 1 / axis.domain.size))


def pair_of(table: Table, ones: tuple[Table, Table], axes: tuple[Axis, Axis]) -> Table:
    """The same for a two-way margin that is fitted to its one-way margins."""
    first, second = axes
    values = second.together(first.together(table.values, 0), 1)
    noise = float(table.variance.mean())
    shares = first.sizes / first.domain.size, second.sizes / second.domain.size
    own = [axis.sizes * np.maximum(1 - share, 1 / axis.domain.size) for axis, share in zip(axes, shares, strict=True)]
    variance = noise * np.outer(own[0], own[1])
    variance += np.outer(ones[0].variance, shares[1] ** 2) + np.outer(shares[0] ** 2, ones[1].variance)
    return Table(values, variance)


def joint(pairs: Mapping[tuple[int, int], Table], shape: tuple[int, ...]) -> Table:
    """The table of greatest entropy with these two-way margins, by places of axes. O(passes x pairs x cells)."""
    total = float(np.mean([table.values.sum() for table in pairs.values()]))
    total = max(total, _LEAST * float(np.prod(shape)))
    wanted = {}
    for place, table in pairs.items():
        values = np.maximum(_without_negative(table.values, total), _LEAST)
        wanted[place] = values * (total / values.sum())
    if len(shape) == 3:
        cells = fit_three(wanted[0, 1], wanted[0, 2], wanted[1, 2], _PASSES, _CLOSE * total)
    else:
        cells = _fit(wanted, shape, total)
    relative = np.zeros(shape)
    for place, table in pairs.items():
        of = table.variance / np.maximum(wanted[place], 1.0) ** 2
        relative = relative + of.reshape(_spread_out(place, shape))
    misfit = _MISFIT * cells + _OF_SPREAD * _spread(wanted, cells) if len(shape) == 3 else _MISFIT * cells
    return Table(cells, cells**2 * relative + misfit**2 + _LEAST**2)


def _spread(wanted: Mapping[tuple[int, int], Floats], cells: Floats) -> Floats:
    """How far the cells of three features would be apart if one of the three pairs had nothing to tell beside the other
    two: by so much, at least, it matters what the three have together that no pair has."""
    ab, ac, bc = wanted[0, 1], wanted[0, 2], wanted[1, 2]
    by = [
        ab[:, :, None] * ac[:, None, :] / np.maximum(ab.sum(1), _LEAST)[:, None, None],
        ab[:, :, None] * bc[None, :, :] / np.maximum(ab.sum(0), _LEAST)[None, :, None],
        ac[:, None, :] * bc[None, :, :] / np.maximum(ac.sum(0), _LEAST)[None, None, :],
    ]
    every = np.stack([cells, *by])
    return every.max(0) - every.min(0)


def _without_negative(values: Floats, total: float) -> Floats:
    """The nearest table without negative cells and with this sum: all cells less by the same, and those below 0 cut
    off. Cutting off alone would leave noise in many nearly empty cells that adds up. O(c log c) in the cells."""
    falling = np.sort(values, axis=None)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    above = np.flatnonzero(falling > over)
    return np.maximum(values - over[above[-1]], 0.0) if len(above) else np.maximum(values, 0.0)


def _fit(wanted: Mapping[tuple[int, int], Floats], shape: tuple[int, ...], total: float) -> Floats:
    cells = np.full(shape, total / float(np.prod(shape)))
    for _ in range(_PASSES):
        worst = 0.0
        for (a, b), of in wanted.items():
            others = tuple(axis for axis in range(len(shape)) if axis not in (a, b))
            now = cells.sum(axis=others)
            worst = max(worst, float(np.abs(now - of).max()))
            cells = cells * (of / np.maximum(now, 1e-300)).reshape(_spread_out((a, b), shape))
        if worst < _CLOSE * total:
            break
    return cells


def _spread_out(place: tuple[int, int], shape: tuple[int, ...]) -> list[int]:
    """The shape by which a table of two axes stands in one of all."""
    return [size if axis in place else 1 for axis, size in enumerate(shape)]


@njit(nogil=True, cache=True)
def fit_three(ab: Floats, ac: Floats, bc: Floats, passes: int, close: float) -> Floats:
    """The table float64[a, b, c] of greatest entropy with three two-way margins above 0 and of equal sums, by iterative
    proportional fitting. passes: at most; close: ends when no margin is further off. O(passes x cells)."""
    na, nb, nc = ab.shape[0], ab.shape[1], ac.shape[1]
    cells = np.full((na, nb, nc), ab.sum() / (na * nb * nc))
    for _ in range(passes):
        worst = 0.0
        for i in range(na):
            for j in range(nb):
                now = 0.0
                for h in range(nc):
                    now += cells[i, j, h]
                worst = max(worst, abs(now - ab[i, j]))
                factor = ab[i, j] / now if now > 0.0 else 0.0
                for h in range(nc):
                    cells[i, j, h] *= factor
        for i in range(na):
            for h in range(nc):
                now = 0.0
                for j in range(nb):
                    now += cells[i, j, h]
                worst = max(worst, abs(now - ac[i, h]))
                factor = ac[i, h] / now if now > 0.0 else 0.0
                for j in range(nb):
                    cells[i, j, h] *= factor
        for j in range(nb):
            for h in range(nc):
                now = 0.0
                for i in range(na):
                    now += cells[i, j, h]
                worst = max(worst, abs(now - bc[j, h]))
                factor = bc[j, h] / now if now > 0.0 else 0.0
                for i in range(na):
                    cells[i, j, h] *= factor
        if worst < close:
            break
    return cells


class Effects(NamedTuple):
    """How much a mean differs by the classes of each axis, from the mean of all. values float64[c]: of all classes, one
    axis after the other. covariance float64[c, c]: of their noise."""

    values: Floats
    covariance: Floats


def effects(
    sums: Sequence[Table], ones: Sequence[Table], pairs: Mapping[tuple[int, int], Table], mean: float, prior: float
) -> Effects:
    """Additive effects of classes on a value, by least squares from sums by one axis each: the normal equations are
    the counts of pairs. Effects are held to nothing by their noise, as if `prior` were their standard deviation.

    O(c^2 d + d^3) in all classes c, and in those d of all axes but the one that has most of them.
    """
    sizes = [len(one.values) for one in ones]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    whole = int(starts[-1])
    normal = np.zeros((whole, whole))
    right, noise = np.zeros(whole), np.zeros(whole)
    for at, (of, one) in enumerate(zip(sums, ones, strict=True)):
        own = slice(starts[at], starts[at + 1])
        counts = np.maximum(one.values, 1.0)
        normal[own, own] = np.diag(counts)
        right[own] = of.values - mean * one.values
        noise[own] = of.variance
    for a, b in combinations(range(len(ones)), 2):
        if (a, b) in pairs:
            both = np.maximum(pairs[a, b].values, 0.0)
            normal[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = both
            normal[starts[b] : starts[b + 1], starts[a] : starts[a + 1]] = both.T
    held = noise / (prior**2 * np.maximum(np.diag(normal), 1.0)) + 1.0
    at = int(np.argmax(sizes))
    first = np.arange(starts[at], starts[at + 1])
    others = np.concatenate([np.arange(starts[at]), np.arange(starts[at + 1], whole)]).astype(int)
    # Classes of one axis have nobody in common: of the largest axis, the normal equations are a diagonal. The inverse
    # is that of the diagonal, and what the other axes add to it (Schur complement).
    diagonal = np.zeros(whole)
    diagonal[first] = 1 / (np.diag(normal)[first] + held[first])
    both = normal[np.ix_(first, others)]
    left = np.zeros((whole, len(others)))
    left[first] = diagonal[first, None] * both
    left[others] = -np.eye(len(others))
    rest = np.linalg.inv(normal[np.ix_(others, others)] + np.diag(held[others]) - both.T @ left[first])
    found = diagonal * right + left @ (rest @ (left.T @ right))
    # What is drawn to nothing is off by as much as it would be without: by `prior`, as far as it is drawn.
    weights = noise + (held * prior) ** 2
    added = (diagonal * weights)[:, None] * left @ (rest.T @ left.T)
    middle = rest @ (left.T @ (weights[:, None] * left)) @ rest.T
    return Effects(found, np.diag(diagonal**2 * weights) + added + added.T + left @ middle @ left.T)
