"""Groups whose members differ enough in what is sensitive: l-diversity and (k, eps, l)-anonymity.

Groups are gathered without regard to sensitive attributes (ratings of some items, columns such as income);
here groups are merged until each attribute is diverse in each group. Four measures of a group's values:

- distinct: how many different values there are;
- entropy: exp(entropy), the number of equally frequent values with the same entropy (so l is met by an
  entropy of log l);
- recursive: the largest l with r1 < c (r_l + ... + r_m), r1 >= r2 >= ... being how often the values occur;
- deviation: the population standard deviation (Sun and Sun, section 4.2, definition 3).

The first three are those of Machanavajjhala et al., l-Diversity (2006). None of the four falls below the
smaller one when two groups are merged, so merging ends, and all users together reach the most any grouping can.

A null tells nothing about a person: it is skipped, and a group where nobody has a value passes. (Sun and Sun
let a null stand for the mean times itself when they sum up squares; a standard deviation may then exceed
half the range, which their theorem 1 rules out.)
"""

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.options import real, whole
from kgather.udfs._shared.vectors import checked_vectors

KINDS = ("distinct", "entropy", "recursive", "deviation")

_DISTINCT, _ENTROPY, _RECURSIVE, _DEVIATION = 0, 1, 2, 3
_DIGITS = 10  # measures are compared in so many significant digits: rounding errors decide nothing
_LARGEST = 1e100  # squares of larger values might overflow
_NEAREST = 8  # groups tried as partners
_LOOKED = 2048  # centroids looked at in one search
_LEAF = 16
_PATIENCE = 3  # rounds after which a group that still fails takes 2, then 4, ... more at once
_DOUBLINGS = 12
_STACK = 256


def merge_until_diverse(
    vectors: NDArray[np.floating | np.integer],
    groups: NDArray[np.integer],
    sensitive: NDArray[np.floating | np.integer],
    *,
    kind: str,
    l: float,  # noqa: E741
    c: float | None = None,
    names: Sequence[str] | None = None,
) -> NDArray[np.int32]:
    """The group of every user, int32[n], numbered 0..g-1: those given, merged until every sensitive attribute
    has a diversity of l or more in every group where somebody has a value.

    vectors: numbers[n, d], what users are compared in. groups: int[n], any numbers. sensitive: float64[n, s],
    one column an attribute, NaN = null; for all kinds but "deviation" the numbers may be codes of anything.
    kind, l: see the top of this module; l is a whole number for "distinct" and "recursive". c: the factor of
    "recursive", only. names: what the attributes are called in messages.

    Smallest group first, a group that fails is merged with one of the 8 nearest (by centroid) in which
    somebody has a value of the attribute that it fails (of several, the one that fewest groups have values
    of): the one that makes both diverse in all attributes at the least increase of the sum of squares, half of
    which counts where the partner fails too; if none does, the one that raises the measure most. This goes on
    in rounds, until no group fails. A group may be the partner of several in a round, but asks only if it
    was none's. One that still fails after 3 rounds takes, beside its partner, the 2, 4, 8 ... 4,096 nearest
    ones. Nothing is random.

    Time: O(n (d log n + s log n)) a round; a search looks at some 2,048 centroids at most, a comparison of
    two groups at their different values. Rounds: 1 to 8 in all cases measured.

    Raises InputError if some attribute is not diverse enough even in all users together, the kind, l or c is
    none of those above, or the shapes do not fit or some vectors or values are not finite.
    """
    sensitive = _checked_sensitive(sensitive, kind)
    n, s = sensitive.shape
    least = check_reachable(sensitive, kind=kind, l=l, c=c, names=names)
    rows, _ = checked_vectors(vectors, 1)
    group = _checked_groups(groups, n)
    if len(rows) != n:
        msg = f"there are {len(rows)} preference vectors for {n} users with sensitive values."
        raise InputError(msg)
    if s == 0:
        return group
    measure, factor = KINDS.index(kind), _checked_factor(kind, c)
    values = np.ascontiguousarray(sensitive.T)
    codes = _coded(values) if measure != _DEVIATION else np.empty((s, 0), dtype=np.int32)
    waits = np.zeros(group.max() + 1, dtype=np.int64)
    while True:
        g = len(waits)
        starts, members = _members(group, g)
        firsts, found, counts, moments = _histograms(starts, members, codes, values, measure)
        fails = _failing(firsts, found, counts, moments, measure, least, factor, s, g)
        if not fails.any():
            return group
        size = np.diff(starts)
        centres = _centroids(rows, group, size)
        sorted_groups = np.argsort(centres, axis=0, kind="stable")
        rank = np.argsort(sorted_groups, axis=0)
        valued = (np.diff(firsts) if measure != _DEVIATION else moments[:, 0]).reshape(s, g) > 0
        into = np.arange(g, dtype=np.int64)
        merged_size, sums = size.copy(), centres * size[:, None]
        taken = np.zeros(g, dtype=np.bool_)
        failing = np.asarray(fails.any(axis=0))
        # an attribute that few groups have values of leaves the least choice
        for a in np.argsort(valued.sum(axis=1), kind="stable"):
            asking = np.flatnonzero(fails[a] & ~taken)
            if len(asking) == 0:
                continue
            asking = asking[np.argsort(size[asking], kind="stable")]
            _merge(
                asking,
                a,
                waits,
                centres,
                *_tree(centres, sorted_groups, rank, np.flatnonzero(valued[a])),
                firsts,
                found,
                counts,
                moments,
                measure,
                least,
                factor,
                failing,
                into,
                taken,
                merged_size,
                sums,
            )
        merged, new = np.unique(into, return_inverse=True)
        if len(merged) == g:  # one group holds all values: it is as diverse as was found above, but for rounding
            return group
        grown = np.zeros(len(merged), dtype=np.int64)
        np.maximum.at(grown, new, np.where(failing, waits + 1, 0))
        waits = grown
        group = new.astype(np.int32)[group]


def least_diversity(
    groups: NDArray[np.integer], sensitive: NDArray[np.floating | np.integer], *, kind: str, c: float | None = None
) -> NDArray[np.float64]:
    """The smallest measure of every sensitive attribute over the groups where somebody has a value,
    float64[s].

    Arguments as in `merge_until_diverse`; NaN for an attribute that nobody has a value of. The groups are
    diverse if every number is l or more (or NaN). Measures are rounded to 10 significant digits, and so is l
    where the two are compared here (`check_reachable` returns it).
    O(n s log n). Raises InputError as `merge_until_diverse` does.
    """
    sensitive = _checked_sensitive(sensitive, kind)
    factor = _checked_factor(kind, c)
    group = _checked_groups(groups, len(sensitive))
    least = np.full(sensitive.shape[1], np.nan)
    for a, column in enumerate(sensitive.T):
        has = ~np.isnan(column)
        if has.any():
            least[a] = _measures(group[has], column[has], kind, factor).min()
    return least


def check_reachable(
    sensitive: NDArray[np.float64],
    *,
    kind: str,
    l: float,  # noqa: E741
    c: float | None = None,
    names: Sequence[str] | None = None,
) -> float:
    """Raises InputError if no grouping at all is diverse; returns l as it is compared.

    Arguments as in `merge_until_diverse` (sensitive: real numbers[n, s]). A grouping is at most as diverse as all users
    together, who are one, so this is exact. O(n s log n).
    """
    sensitive = _checked_sensitive(sensitive, kind)
    least = _checked_least(kind, l)
    if names is not None and len(names) != sensitive.shape[1]:
        msg = f"there are {len(names)} names for {sensitive.shape[1]} sensitive attributes."
        raise InputError(msg)
    most = least_diversity(np.zeros(len(sensitive), dtype=np.int32), sensitive, kind=kind, c=c)
    for a, reached in enumerate(most):
        if reached < least:
            called = f"{a + 1}" if names is None else f"{a + 1} ('{names[a]}')"
            largest = _rounded_down(float(reached))
            told = (
                f"l = {least:g} is too much for sensitive attribute {called}: the {_NOUNS[kind]} of all users "
                f"together allows l = {largest:g} at most"
            )
            if kind == "recursive":
                told += f" with c = {c:g}; choose a smaller l or a larger c"
            elif largest <= 1 and kind != "deviation":
                told += "; leave the attribute out"
            msg = f"{told}."
            raise InputError(msg)
    return least


_NOUNS = {
    "distinct": "number of different values",
    "entropy": "entropy",
    "recursive": "frequency of the values",
    "deviation": "standard deviation",
}


def _checked_kind(kind: str) -> None:
    if kind not in KINDS:
        msg = f"there is no diversity '{kind}'; there are: {', '.join(KINDS)}."
        raise InputError(msg)


def _checked_least(kind: str, value: float) -> float:
    if kind in ("distinct", "recursive"):
        return float(whole("l", int(value) if isinstance(value, float) and value.is_integer() else value, 1))
    return float(_rounded(np.array([real("l", value, 1 if kind == "entropy" else 0)]))[0])


def _checked_factor(kind: str, c: float | None) -> float:
    """c as float, 0 where the kind has none."""
    _checked_kind(kind)
    if kind == "recursive":
        if c is None:
            msg = "recursive diversity needs c: the most frequent value occurs less than c times as often as the rest."
            raise InputError(msg)
        return real("c", c, 0, above=True)
    if c is not None:
        msg = f"c belongs to recursive diversity, {kind} diversity has none."
        raise InputError(msg)
    return 0.0


def _checked_sensitive(sensitive: NDArray[np.floating | np.integer], kind: str) -> NDArray[np.float64]:
    _checked_kind(kind)
    sensitive = np.asarray(sensitive)
    if sensitive.ndim != 2 or sensitive.dtype.kind not in "fiu" or len(sensitive) == 0:
        shape = "x".join(str(side) for side in sensitive.shape)
        msg = f"the sensitive attributes must be numbers, one row a user, not {sensitive.dtype} {shape}."
        raise InputError(msg)
    values = sensitive.astype(np.float64)
    if np.isinf(values).any():
        msg = "some sensitive values are infinite: they must be numbers or null."
        raise InputError(msg)
    if kind == "deviation" and (np.abs(values) > _LARGEST).any():
        msg = f"some sensitive values are larger than {_LARGEST:g}: their standard deviation cannot be told."
        raise InputError(msg)
    return values


def _checked_groups(groups: NDArray[np.integer], n: int) -> NDArray[np.int32]:
    """The groups as int32, numbered 0..g-1 in the order of their numbers."""
    groups = np.asarray(groups)
    if groups.shape != (n,) or not np.issubdtype(groups.dtype, np.integer):
        msg = f"groups must be one whole number for each of {n} users."
        raise InputError(msg)
    return np.unique(groups, return_inverse=True)[1].astype(np.int32)


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounded to 10 significant digits, as the kernels do."""
    out = np.empty_like(values)
    for j in range(len(values)):
        out[j] = _significant(float(values[j]))
    return out


def _rounded_down(value: float) -> float:
    """To 4 significant digits, for messages: never more than the value."""
    if value < 1e-300:
        return 0.0
    scale = 10.0 ** (3 - np.floor(np.log10(value)))
    return float(np.floor(value * scale * (1 + 1e-12)) / scale)


def _coded(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """int32[s, n]: equal numbers for equal values[s, n], from 0; -1 for null."""
    codes = np.full(values.shape, -1, dtype=np.int32)
    for a, column in enumerate(values):
        has = ~np.isnan(column)
        codes[a, has] = np.unique(column[has], return_inverse=True)[1]
    return codes


def _centroids(rows: NDArray[np.float32], group: NDArray[np.int32], size: NDArray[np.int64]) -> NDArray[np.float64]:
    centres = np.empty((len(size), rows.shape[1]))
    for a in range(rows.shape[1]):
        centres[:, a] = np.bincount(group, weights=rows[:, a], minlength=len(size)) / size
    return centres


def _measures(group: NDArray[np.integer], value: NDArray[np.float64], kind: str, c: float) -> NDArray[np.float64]:
    """The measure of every group that occurs; written down apart from the kernels, which it checks."""
    _, group = np.unique(group, return_inverse=True)
    size = np.bincount(group)
    if kind == "deviation":
        start = np.zeros(len(size))
        start[group] = value  # any value of the group: equal ones shall differ by nothing
        value = value - start[group]
        mean = np.bincount(group, weights=value) / size
        return _rounded(np.sqrt(np.bincount(group, weights=(value - mean[group]) ** 2) / size))
    _, code = np.unique(value, return_inverse=True)
    cell, count = np.unique(group.astype(np.int64) * (int(code.max()) + 1) + code, return_counts=True)
    owner = cell // (int(code.max()) + 1)
    if kind == "distinct":
        return np.bincount(owner).astype(np.float64)
    share = count / size[owner]
    if kind == "entropy":
        return _rounded(np.exp(-np.bincount(owner, weights=share * np.log(share))))
    order = np.lexsort((-count, owner))
    owner, count = owner[order], count[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    rank = np.arange(len(owner)) - first[owner]
    upto = np.cumsum(count)
    rest = upto[np.append(first[1:], len(owner))[owner] - 1] - upto + count  # r_l + ... + r_m
    holds = count[first][owner] < _rounded(c * rest)
    most = np.zeros(len(size))
    np.maximum.at(most, owner, np.where(holds, rank + 1, 0))
    return most


@njit(nogil=True, cache=True)
def _significant(value: float) -> float:
    """Rounded to 10 significant digits."""
    if not 1e-290 < value < 1e290:
        return value
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(value)))
    return float(np.round(value * scale) / scale)


@njit(nogil=True, cache=True)
def _members(group: NDArray[np.int32], g: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The users of group r are members[starts[r]:starts[r + 1]], ascending."""
    starts = np.zeros(g + 1, dtype=np.int64)
    for r in group:
        starts[r + 1] += 1
    for r in range(g):
        starts[r + 1] += starts[r]
    place = starts[:-1].copy()
    members = np.empty(len(group), dtype=np.int32)
    for u in range(len(group)):
        members[place[group[u]]] = u
        place[group[u]] += 1
    return starts, members


@njit(nogil=True, cache=True)
def _histograms(
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
    codes: NDArray[np.int32],
    values: NDArray[np.float64],
    measure: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """How often the values of attribute a occur in group r: entries firsts[a g + r]..firsts[a g + r + 1] of
    found (codes, ascending) and counts.

    For the deviation these are empty, and moments float64[s g, 3] holds the number of values, their mean and
    the sum of the squared distances to it.
    """
    s, g = codes.shape[0], len(starts) - 1
    firsts = np.zeros(s * g + 1, dtype=np.int64)
    if measure == _DEVIATION:
        moments = np.zeros((s * g, 3))
        for a in range(s):
            for r in range(g):
                _moments(members[starts[r] : starts[r + 1]], values[a], moments[a * g + r])
        nothing = np.empty(0, dtype=np.int32)
        return firsts, nothing, nothing, moments
    total = 0
    for a in range(s):
        for u in range(codes.shape[1]):
            if codes[a, u] >= 0:
                total += 1
    found, counts = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
    held = np.empty(codes.shape[1], dtype=np.int64)
    at = 0
    for a in range(s):
        for r in range(g):
            some = 0
            for u in members[starts[r] : starts[r + 1]]:
                if codes[a, u] >= 0:
                    held[some] = codes[a, u]
                    some += 1
            held[:some].sort()
            for j in range(some):
                if j > 0 and held[j] == held[j - 1]:
                    counts[at - 1] += 1
                else:
                    found[at], counts[at] = held[j], 1
                    at += 1
            firsts[a * g + r + 1] = at
    return firsts, found[:at].copy(), counts[:at].copy(), np.empty((0, 3))


@njit(nogil=True, cache=True)
def _moments(members: NDArray[np.int32], values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    start = np.nan  # equal values shall have no squared distance at all
    total, some = 0.0, 0
    for u in members:
        if not np.isnan(values[u]):
            if some == 0:
                start = values[u]
            total += values[u] - start
            some += 1
    out[0] = some
    if some == 0:
        return
    mean = total / some
    out[1] = start + mean
    for u in members:
        if not np.isnan(values[u]):
            gap = values[u] - start - mean
            out[2] += gap * gap


@njit(nogil=True, cache=True)
def _measured(count: NDArray[np.int64], m: int, measure: int, c: float) -> float:
    """The measure of values that occur count[:m] times (which is reordered)."""
    if measure == _DISTINCT:
        return float(m)
    total = 0
    for j in range(m):
        total += count[j]
    if measure == _ENTROPY:
        entropy = 0.0
        for j in range(m):
            share = count[j] / total
            entropy -= share * np.log(share)
        return _significant(np.exp(entropy))
    count[:m].sort()
    rest = total
    for j in range(m - 1, -1, -1):
        if not count[m - 1] < _significant(c * rest):
            return float(m - 1 - j)
        rest -= count[j]
    return float(m)


@njit(nogil=True, cache=True)
def _of_both(
    x: int,
    y: int,
    firsts: NDArray[np.int64],
    found: NDArray[np.int32],
    counts: NDArray[np.int32],
    moments: NDArray[np.float64],
    measure: int,
    c: float,
    scratch: NDArray[np.int64],
) -> float:
    """The measure of an attribute in the groups of the histograms x and y together (y = -1: of x alone).

    -1 if nobody has a value. scratch int64[most values of both]. O(different values of both).
    """
    if measure == _DEVIATION:
        some, squares = moments[x, 0], moments[x, 2]
        if y >= 0 and moments[y, 0] > 0:
            gap = moments[y, 1] - moments[x, 1] if some > 0 else 0.0
            squares += moments[y, 2]
            some += moments[y, 0]
            squares += gap * gap * moments[x, 0] * moments[y, 0] / some
        return _significant(np.sqrt(squares / some)) if some > 0 else -1.0
    i, i_end = firsts[x], firsts[x + 1]
    j, j_end = (firsts[y], firsts[y + 1]) if y >= 0 else (0, 0)
    m = 0
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and found[i] < found[j]):
            scratch[m] = counts[i]
            i += 1
        elif i == i_end or found[j] < found[i]:
            scratch[m] = counts[j]
            j += 1
        else:
            scratch[m] = counts[i] + counts[j]
            i += 1
            j += 1
        m += 1
    return _measured(scratch, m, measure, c) if m > 0 else -1.0


@njit(nogil=True, cache=True)
def _longest(firsts: NDArray[np.int64]) -> int:
    longest = 0
    for x in range(len(firsts) - 1):
        longest = max(longest, firsts[x + 1] - firsts[x])
    return longest


@njit(nogil=True, cache=True)
def _failing(
    firsts: NDArray[np.int64],
    found: NDArray[np.int32],
    counts: NDArray[np.int32],
    moments: NDArray[np.float64],
    measure: int,
    least: float,
    c: float,
    s: int,
    g: int,
) -> NDArray[np.bool_]:
    """bool[s, g]: somebody has a value, and the values are not diverse enough."""
    scratch = np.empty(2 * _longest(firsts) + 1, dtype=np.int64)
    fails = np.empty((s, g), dtype=np.bool_)
    for a in range(s):
        for r in range(g):
            reached = _of_both(a * g + r, -1, firsts, found, counts, moments, measure, c, scratch)
            fails[a, r] = 0 <= reached < least
    return fails


@njit(nogil=True, cache=True)
def _tree(
    centres: NDArray[np.float64], sorted_groups: NDArray[np.int64], rank: NDArray[np.int64], partners: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """A k-d tree of the centroids of `partners`: each node is halved along its widest side.

    scipy's cKDTree is up to 1.5 times as fast on usual data, but quadratic on equal centroids, which it puts in one
    leaf (benchmarks/trees.py), and all of them would be given the same neighbours.

    sorted_groups int64[g, d]: all groups in the order of each coordinate; rank int64[g, d]: their places there.
    Returns the partners in the order of the leaves; the place of each group in it; nodes int64[., 3]: first, end,
    left child (the right one follows it; 0 = leaf); boxes float64[., 2, d].
    """
    order = partners.copy()
    d = centres.shape[1]
    most = 4 * (len(order) // _LEAF + 1)
    nodes = np.zeros((most, 3), dtype=np.int64)
    boxes = np.empty((most, 2, d))
    nodes[0, 1] = len(order)
    made, node = 1, 0
    while node < made:
        lo, hi = nodes[node, 0], nodes[node, 1]
        boxes[node, 0], boxes[node, 1] = np.inf, -np.inf
        for j in range(lo, hi):
            for a in range(d):
                boxes[node, 0, a] = min(boxes[node, 0, a], centres[order[j], a])
                boxes[node, 1, a] = max(boxes[node, 1, a], centres[order[j], a])
        if hi - lo > _LEAF:
            widest = 0
            for a in range(1, d):
                if boxes[node, 1, a] - boxes[node, 0, a] > boxes[node, 1, widest] - boxes[node, 0, widest]:
                    widest = a
            for j in range(lo, hi):
                order[j] = rank[order[j], widest]
            order[lo:hi].sort()
            for j in range(lo, hi):
                order[j] = sorted_groups[order[j], widest]
            nodes[node, 2] = made
            middle = (lo + hi) // 2
            nodes[made, 0], nodes[made, 1] = lo, middle
            nodes[made + 1, 0], nodes[made + 1, 1] = middle, hi
            made += 2
        node += 1
    place = np.zeros(len(centres), dtype=np.int64)
    for j in range(len(order)):
        place[order[j]] = j
    return order, place, nodes[:made].copy(), boxes[:made].copy()


@njit(nogil=True, cache=True)
def _box_distance(point: NDArray[np.float64], box: NDArray[np.float64]) -> float:
    total = 0.0
    for a in range(len(point)):
        gap = max(box[0, a] - point[a], point[a] - box[1, a], 0.0)
        total += gap * gap
    return total


@njit(nogil=True, cache=True)
def _nearest(
    group: int,
    centres: NDArray[np.float64],
    order: NDArray[np.int64],
    place: NDArray[np.int64],
    nodes: NDArray[np.int64],
    boxes: NDArray[np.float64],
    near: NDArray[np.int64],
    far: NDArray[np.float64],
) -> int:
    """The other groups nearest to the group, near first, in near[:n]; n is at most len(near).

    far float64[len(near)]: their squared distances. After 2,048 centroids the search ends with what it has.
    """
    most = len(near)
    point = centres[group]
    stack, gaps = np.empty(_STACK, dtype=np.int64), np.empty(_STACK)
    stack[0], gaps[0] = 0, 0.0
    depth, n, looked = 1, 0, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if n == most and (gaps[depth] >= far[n - 1] or looked >= _LOOKED):
            continue
        child = nodes[node, 2]
        if child > 0:
            left, right = _box_distance(point, boxes[child]), _box_distance(point, boxes[child + 1])
            if left == right:  # among equal centroids everybody has other neighbours
                first = child if place[group] < nodes[child, 1] else child + 1
            else:
                first = child if left < right else child + 1
            stack[depth], gaps[depth] = 2 * child + 1 - first, max(left, right)
            stack[depth + 1], gaps[depth + 1] = first, min(left, right)
            depth += 2
            continue
        for j in range(nodes[node, 0], nodes[node, 1]):
            other = order[j]
            if other == group:
                continue
            looked += 1
            total = 0.0
            for a in range(len(point)):
                gap = centres[other, a] - point[a]
                total += gap * gap
            if n == most and total >= far[n - 1]:
                continue
            at = min(n, most - 1)
            while at > 0 and far[at - 1] > total:
                near[at], far[at] = near[at - 1], far[at - 1]
                at -= 1
            near[at], far[at] = other, total
            n = min(n + 1, most)
    return n


@njit(nogil=True, cache=True)
def _join(group: int, other: int, into: NDArray[np.int64], size: NDArray[np.int64], sums: NDArray[np.float64]) -> None:
    """The group goes where the other one is."""
    target = into[other]
    into[group] = target
    size[target] += size[group]
    for a in range(sums.shape[1]):
        sums[target, a] += sums[group, a]


@njit(nogil=True, cache=True)
def _cost(group: int, target: int, size: NDArray[np.int64], sums: NDArray[np.float64]) -> float:
    """By how much the sum of squares grows if the two become one."""
    total = 0.0
    for a in range(sums.shape[1]):
        gap = sums[group, a] / size[group] - sums[target, a] / size[target]
        total += gap * gap
    return total * size[group] * size[target] / (size[group] + size[target])


@njit(nogil=True, cache=True)
def _merge(
    asking: NDArray[np.int64],
    attribute: int,
    waits: NDArray[np.int64],
    centres: NDArray[np.float64],
    order: NDArray[np.int64],
    place: NDArray[np.int64],
    nodes: NDArray[np.int64],
    boxes: NDArray[np.float64],
    firsts: NDArray[np.int64],
    found: NDArray[np.int32],
    counts: NDArray[np.int32],
    moments: NDArray[np.float64],
    measure: int,
    least: float,
    c: float,
    fails: NDArray[np.bool_],
    into: NDArray[np.int64],
    taken: NDArray[np.bool_],
    size: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """One round for the groups that fail the attribute: into[x] = y says that group x becomes part of y.

    size and sums are kept for the groups as merged so far.
    """
    g = len(into)
    s = (len(firsts) - 1) // g
    scratch = np.empty(2 * _longest(firsts) + 1, dtype=np.int64)
    for group in asking:
        if taken[group]:
            continue
        spare = 0 if waits[group] < _PATIENCE else 1 << min(waits[group] - _PATIENCE + 1, _DOUBLINGS)
        near = np.empty(max(_NEAREST, spare), dtype=np.int64)
        far = np.empty(len(near))
        n = _nearest(group, centres, order, place, nodes, boxes, near, far)
        if n == 0:
            continue
        own = attribute * g + group
        top = _of_both(own, -1, firsts, found, counts, moments, measure, c, scratch)
        best, best_cost, raising = -1, 0.0, -1
        for j in range(min(n, _NEAREST)):
            other = near[j]
            diverse = True
            if raising < 0 and not taken[other]:
                raising = j
            for a in range(s):
                reached = _of_both(a * g + group, a * g + other, firsts, found, counts, moments, measure, c, scratch)
                diverse &= not 0 <= reached < least
                if a == attribute and reached > top and not taken[other]:
                    raising, top = j, reached
            if diverse:
                cost = _cost(group, into[other], size, sums)
                if fails[other] and not taken[other]:
                    cost /= 2  # serves two groups that fail
                if best < 0 or cost < best_cost or (cost == best_cost and size[into[other]] < size[into[near[best]]]):
                    best, best_cost = j, cost
        if best < 0:
            best = max(raising, 0)
        else:
            spare = 0
        _join(group, near[best], into, size, sums)
        taken[group] = True
        taken[near[best]] = True
        for j in range(min(n, spare)):
            if not taken[near[j]]:
                _join(near[j], group, into, size, sums)
                taken[near[j]] = True
