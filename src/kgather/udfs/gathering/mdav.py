"""MDAV microaggregation: users into groups of k near ones, from the outside in.

Sources: J. Domingo-Ferrer and V. Torra, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation" (2005), algorithm MDAV-generic; F. Casino et al., on privacy-preserving collaborative filtering
by microaggregation, section III, for what becomes of the users left over.

While 3k or more records are left, the one farthest from their centroid forms a group with the k - 1 nearest to
it, and so does the one farthest from that record. Of 2k to 3k - 1 the record farthest from the centroid forms one
more. The k to 2k - 1 that remain are the leftovers.

Nothing is random. Ties fall to the lowest record, and on whole numbers (whose squares, times c^2, are below 2^53)
none is missed: distances from a centroid are compared as |c x - sum of the c records|, which does not divide.

Every group takes two searches of the records left, so the time is quadratic in their number. For up to 32 columns
searches leave out most records (`_mdav_blocks`) and the groups are the same as those of the plain loop,
`gather_brute_force`.
"""

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.options import whole
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs.gathering._mdav_blocks import (
    WIDTH,
    Blocks,
    centre_distances,
    farthest,
    in_blocks,
    kd_order,
    nearest,
    offer,
    sort_heap,
    take_out,
)

LEFTOVERS = ("nearest", "own")
_TREE_COLUMNS = 32  # with more columns the boxes of a kd-tree leave out too little
_TREE_RECORDS = 4096  # fewer are looked at as fast as a tree is built
_REBUILT = 512  # fewer are not put in new blocks
_FAR_FROM_ONE = 200  # binary exponent from which on squares may leave the range of a double


def gather(vectors: np.ndarray, k: int, *, leftovers: str = "nearest", threads: int = 1) -> np.ndarray:
    """The group of every user, int32[n], numbered 0..g-1 in the order in which they are formed.

    vectors: real numbers[n, d], one row a user, any unit (the distance is Euclidean, computed in float64).
    leftovers: "nearest" (Casino et al.): the last k to 2k - 1 users are a group if more than half of them are
    nearer to their own mean than to the mean of every group, otherwise each joins the group of the nearest mean,
    so groups have k to 3k - 1 members; "own": they are a group, so all groups but that one have k members.
    threads: accepted as by other methods, changes nothing: each step needs the one before.

    O(n^2 d / k) time at worst, usually far less for up to 32 columns. Memory: 16 n d bytes, 24 n d with up to 32
    columns.

    Raises InputError if k or threads is no whole number >= 1, `leftovers` is none of the two, there are fewer
    than k users, the vectors are no two-dimensional table with at least one column, or some are not finite.
    """
    whole("threads", threads, 1)
    rows, k = _checked(vectors, k, leftovers)
    n = len(rows)
    groups = np.full(n, -1, dtype=np.int32)
    slack = 4e-15 * np.sqrt(rows.shape[1]) * _largest(rows)
    left, group = n, 0
    while left >= 2 * k:
        # once half of the records are gone, searches would look at too many empty places
        records = np.flatnonzero(groups < 0)
        sums = np.empty(rows.shape[1])
        _add_up(rows, records, sums)
        centre = sums / left
        tree = rows.shape[1] <= _TREE_COLUMNS and left >= _TREE_RECORDS
        if tree:
            records = kd_order(rows, records)
        radius = centre_distances(rows, records, centre)
        outside_in = np.argsort(-radius, kind="stable")
        shells = in_blocks(rows, records[outside_in], boxes=False)
        leaves = in_blocks(rows, records, boxes=True) if tree else shells
        outer = radius[outside_in[::WIDTH]]
        left, group = _form(rows, k, left, group, sums, shells, outer, centre, leaves, tree, slack, groups)
    _settle(rows, k, group, leftovers == "nearest", groups)
    return groups


def gather_brute_force(vectors: np.ndarray, k: int, *, leftovers: str = "nearest") -> np.ndarray:
    """The groups of `gather` by looking at every record left in every search: what tests and benchmarks compare
    with.

    Arguments, result and errors as in `gather`. O(n^2 d / k) time; memory: 8 n d bytes.
    """
    rows, k = _checked(vectors, k, leftovers)
    groups = np.full(len(rows), -1, dtype=np.int32)
    group = _form_plainly(rows, k, groups)
    _settle(rows, k, group, leftovers == "nearest", groups)
    return groups


def _checked(vectors: np.ndarray, k: object, leftovers: object) -> tuple[np.ndarray, int]:
    """A copy of the vectors as float64[n, d], of a size whose squares can be compared, and k."""
    if leftovers not in LEFTOVERS:
        msg = f"leftovers must be one of {', '.join(LEFTOVERS)}; it is {leftovers!r}."
        raise InputError(msg)
    rows, least = checked_vectors(vectors, k, np.float64)
    exponent = int(np.frexp(_largest(rows))[1])
    if abs(exponent) > _FAR_FROM_ONE:
        rows = np.ldexp(rows, -exponent)  # a power of two changes no digit
    return rows, least


def _largest(rows: np.ndarray) -> float:
    return float(max(rows.max(), -rows.min()))


@njit(nogil=True, cache=True)
def _add_up(rows: np.ndarray, records: np.ndarray, sums: np.ndarray) -> None:
    """sums float64[d] = the sum of the records, added in ascending order."""
    sums[:] = 0.0
    gone = np.ones(len(rows), dtype=np.bool_)
    for i in records:
        gone[i] = False
    for i in range(len(rows)):
        if not gone[i]:
            for a in range(rows.shape[1]):
                sums[a] += rows[i, a]


@njit(nogil=True, cache=True)
def _assign(
    rows: np.ndarray, r: int, ids: np.ndarray, others: int, group: int, sums: np.ndarray, groups: np.ndarray
) -> None:
    """Makes record r and the records ids[:others] a group and takes them from the sums."""
    groups[r] = group
    for a in range(rows.shape[1]):
        sums[a] -= rows[r, a]
    for j in range(others):
        groups[ids[j]] = group
        for a in range(rows.shape[1]):
            sums[a] -= rows[ids[j], a]


@njit(nogil=True, cache=True)
def _deal(k: int, left: int, group: int, groups: np.ndarray) -> tuple[int, int]:
    """Groups of k in the order of the records, for records left that are all equal; how many are left over."""
    members = 0
    for i in range(len(groups)):
        if groups[i] < 0:
            groups[i] = group
            members += 1
            if members == k:
                group += 1
                left -= k
                members = 0
                if left < 2 * k:
                    break
    return left, group


@njit(nogil=True, cache=True)
def _form(
    rows: np.ndarray,
    k: int,
    left: int,
    group: int,
    sums: np.ndarray,
    shells: Blocks,
    radius: np.ndarray,
    centre: np.ndarray,
    leaves: Blocks,
    tree: bool,
    slack: float,
    groups: np.ndarray,
) -> tuple[int, int]:
    """Forms groups until half of the `left` records are gone or fewer than 2k are left; how many are left then,
    and how many groups there are.

    sums float64[d]: the sum of the records left. shells: in the order of the distance from the centre, radius
    float64[shells] the largest in each. leaves: of a kd-tree, or the shells again if there is no tree.
    """
    stop = left // 2 if left // 2 >= _REBUILT else 0
    out = np.empty(WIDTH)
    keys, ids = np.empty(k), np.empty(k, dtype=np.int64)
    n_leaves = len(leaves.left)
    lower, queue, queued = np.empty(n_leaves), np.empty(n_leaves), np.empty(n_leaves, dtype=np.int64)
    start = 0
    while left >= 2 * k and left > stop:
        while shells.left[start] == 0:
            start += 1
        r, _ = farthest(shells, radius, centre, start, float(left), sums, slack, out)
        for turn in range(2):
            own = leaves.place[r] // WIDTH
            take_out(shells, r)
            if tree:
                take_out(leaves, r)
            nearest(leaves, rows[r], own, k - 1, keys, ids, lower, queue, queued, out)
            for j in range(k - 1):
                take_out(shells, ids[j])
                if tree:
                    take_out(leaves, ids[j])
            _assign(rows, r, ids, k - 1, group, sums, groups)
            group += 1
            left -= k
            if turn == 1 or left < 2 * k:
                break
            r, distance = farthest(shells, radius, centre, start, 1.0, rows[r], slack, out)
            if distance == 0.0:
                return _deal(k, left, group, groups)
    return left, group


@njit(nogil=True, cache=True)
def _farthest_plainly(
    rows: np.ndarray, records: np.ndarray, left: int, scale: float, point: np.ndarray
) -> tuple[int, float]:
    best, record = -1.0, -1
    for j in range(left):
        total = 0.0
        for a in range(rows.shape[1]):
            gap = scale * rows[records[j], a] - point[a]
            total += gap * gap
        if total > best:  # the records ascend, so the first one of a tie stays
            best, record = total, records[j]
    return record, best


@njit(nogil=True, cache=True)
def _form_plainly(rows: np.ndarray, k: int, groups: np.ndarray) -> int:
    """Forms groups until fewer than 2k records are left; how many groups there are."""
    left, summed, group = len(rows), len(rows), 0
    records = np.arange(left)
    sums = np.empty(rows.shape[1])
    _add_up(rows, records, sums)
    keys, ids = np.empty(k), np.empty(k, dtype=np.int64)
    while left >= 2 * k:
        if (
            left <= summed // 2 and summed // 2 >= _REBUILT
        ):  # afresh, so that what subtracting gets wrong does not add up
            _add_up(rows, records[:left], sums)
            summed = left
        r, _ = _farthest_plainly(rows, records, left, float(left), sums)
        for turn in range(2):
            size = 0
            for j in range(left):
                if records[j] == r or k == 1:
                    continue
                total = 0.0
                for a in range(rows.shape[1]):
                    gap = rows[records[j], a] - rows[r, a]
                    total += gap * gap
                if size < k - 1 or total <= keys[0]:
                    size = offer(keys, ids, size, k - 1, total, records[j])
            sort_heap(keys, ids, size)
            _assign(rows, r, ids, size, group, sums, groups)
            group += 1
            kept = 0
            for j in range(left):
                if groups[records[j]] < 0:
                    records[kept] = records[j]
                    kept += 1
            left = kept
            if turn == 1 or left < 2 * k:
                break
            r, distance = _farthest_plainly(rows, records, left, 1.0, rows[r])
            if distance == 0.0:
                return _deal(k, left, group, groups)[1]
    return group


@njit(nogil=True, cache=True)
def _settle(rows: np.ndarray, k: int, formed: int, join: bool, groups: np.ndarray) -> None:
    """What becomes of the records without a group: one of their own, or (`join`) perhaps the nearest for each.

    formed: the number of groups there are, all of k members. Lengths are compared as p^2 |k x - sum of the group|^2
    with k^2 |p x - sum of the p left over|^2, which is exact on whole numbers.
    """
    n, d = rows.shape
    over = 0
    for i in range(n):
        over += groups[i] < 0
    if not join or formed == 0:
        for i in range(n):
            if groups[i] < 0:
                groups[i] = formed
        return
    sums = np.zeros((formed + 1, d))
    for i in range(n):
        group = groups[i] if groups[i] >= 0 else formed
        for a in range(d):
            sums[group, a] += rows[i, a]
    records, nearest_group = np.empty(over, dtype=np.int64), np.empty(over, dtype=np.int64)
    at, own = 0, 0
    for i in range(n):
        if groups[i] >= 0:
            continue
        best, group = np.inf, -1
        for g in range(formed):
            total = 0.0
            for a in range(d):
                gap = k * rows[i, a] - sums[g, a]
                total += gap * gap
            if total < best:
                best, group = total, g
        total = 0.0
        for a in range(d):
            gap = over * rows[i, a] - sums[formed, a]
            total += gap * gap
        own += total * k * k < best * over * over
        records[at], nearest_group[at] = i, group
        at += 1
    for j in range(over):
        groups[records[j]] = formed if 2 * own > over else nearest_group[j]
