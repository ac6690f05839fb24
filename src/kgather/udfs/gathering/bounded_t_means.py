"""Bounded t-means over bins: users into groups of k to 2k - 1 (Thompson and Yao's clustering, as Predictive
Anonymization uses it, section 4.2, steps 2.1 to 2.3, and section 5.1).

A sample of the users is clustered around t1 centres, every user then goes to the nearest of these centres, and
each of the bins that this makes is clustered into groups of at least k. Bounded t-means is k-means in which a
cluster takes no more users than its bound: a user whose nearest centre is full goes to the next nearest one.

The text leaves open what is decided here:

- users choose their centres in one random order, the same in all rounds; its first t users are the start centres;
- the bound: in the sample ceil(s / t1); in a bin of b users there are t = floor(b / k) clusters of k places each,
  and the b - t k users beyond take further places wherever they first want one, so that every cluster is full and
  none has more than 2k - 1;
- a bin of fewer than k users joins the bin of the nearest centre;
- a bin of more than 8 times the mean (many equal users, far outliers) is cut at medians, as its clustering would
  take quadratic time.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from math import sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs._shared.options import flag, seed_number, whole
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs._shared.workers import row_ranges, run

_SAMPLED = 20  # users sampled for each bin
_OVERSIZED = 8  # times the mean size: no bin of ordinary data comes near
_OF_SAMPLE, _OF_CLUSTERING, _OF_BINS = 1, 2, 3  # what a random number is for


def gather(
    vectors: NDArray[np.floating | np.integer],
    k: int,
    *,
    sample: int | None = None,
    bins: int | None = None,
    rounds: int = 10,
    virtual_centres: bool = True,
    seed: int = 0,
    threads: int = 1,
) -> NDArray[np.int32]:
    """The group of every user, int32[n], numbered 0..g-1; every group has k to 2k - 1 members.

    vectors: float32[n, d] (other real types are converted), one row a user, any unit (the distance is Euclidean).
    bins: how many bins; round(sqrt(n)) if not given, or less, so that a bin has 2k users on average. sample: how
    many users are clustered to find the centres of the bins, at least one a bin; 20 a bin if not given, at most all.
    rounds: of bounded t-means; 1 leaves every cluster around a random user. virtual_centres: a centre is the mean of
    its cluster; if false it is the member nearest to the mean. The seed alone decides, the number of threads does
    not.

    O(d (n bins + rounds sample bins + rounds n^2 / (k bins))) time, which is O(n^1.5 d) for the default; memory: one
    copy of the vectors and about 40 bytes a user.

    Raises InputError if k, sample, bins, rounds or threads is no whole number in its range, virtual_centres is no
    truth value, seed is none of 64 bits, there are fewer than k users, the vectors are no two-dimensional table with
    at least one column, or some are not finite.
    """
    return gather_with_bins(
        vectors,
        k,
        sample=sample,
        bins=bins,
        rounds=rounds,
        virtual_centres=virtual_centres,
        seed=seed,
        threads=threads,
    )[0]


def gather_with_bins(
    vectors: NDArray[np.floating | np.integer],
    k: int,
    *,
    sample: int | None = None,
    bins: int | None = None,
    rounds: int = 10,
    virtual_centres: bool = True,
    seed: int = 0,
    threads: int = 1,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The groups of `gather`, with its arguments, cost and errors, and the bin of every user: int32[n], 0..bins-1.

    The bins are as the nearest centres make them, before small ones join others and large ones are cut; there may be
    centres without users.
    """
    rows, k = checked_vectors(vectors, k)
    n = len(rows)
    rounds = whole("rounds", rounds, 1)
    virtual = flag("virtual_centres", virtual_centres)
    random = seed64(seed_number(seed))
    threads = whole("threads", threads, 1)
    centres = _bin_centres(rows, k, sample, bins, rounds, virtual, random)
    bin_of = np.empty(n, dtype=np.int32)
    groups = np.empty(n, dtype=np.int32)
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        ranges = row_ranges(np.zeros(n + 1, dtype=np.int64), threads)
        run(lambda lo, hi: _nearest_centres(rows, centres, lo, hi, bin_of), ranges, pool)
        part_of = bin_of.copy()
        _join_small(part_of, centres, k)
        _cut_large(rows, part_of, max(4 * k, _OVERSIZED * -(-n // centres.shape[1])))
        sizes = np.bincount(part_of)
        sizes = sizes[sizes > 0]
        members = np.argsort(part_of, kind="stable")
        starts, first_group = _running_sums(sizes), _running_sums(sizes // k)

        def cluster(lo: int, hi: int) -> None:
            _cluster_bins(rows, members, starts, first_group, lo, hi, k, rounds, virtual, random, groups)

        run(cluster, row_ranges(starts, threads), pool)
    return groups, bin_of


def _running_sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _bin_centres(
    rows: NDArray[np.float32],
    k: int,
    sample: int | None,
    bins: int | None,
    rounds: int,
    virtual: bool,
    random: np.uint64,
) -> NDArray[np.float64]:
    """The centres of the bins, one a column: float64[d, bins]."""
    n = len(rows)
    n_bins = max(1, min(round(sqrt(n)), n // (2 * k))) if bins is None else whole("bins", bins, 1, n)
    size = min(n, _SAMPLED * n_bins) if sample is None else whole("sample", sample, n_bins, n)
    drawn = rows[np.sort(_shuffled(n, np.uint64(keyed(random, _OF_SAMPLE, 0)))[:size])]
    label = np.empty(size, dtype=np.int64)
    centres = np.empty((rows.shape[1], n_bins))
    least, most = size // n_bins, -(-size // n_bins)
    _t_means(drawn, least, most, rounds, virtual, np.uint64(keyed(random, _OF_CLUSTERING, 0)), centres, label)
    _move_centres(drawn, label, virtual, centres)
    return centres


def _join_small(bin_of: NDArray[np.int32], centres: NDArray[np.float64], k: int) -> None:
    """Moves the users of every bin that has fewer than k, in place, to the bin of the nearest centre that has any.

    In the order of the bins; what a bin takes up counts. O(bins^2 d + n).
    """
    sizes = np.bincount(bin_of, minlength=centres.shape[1])
    goes_to = np.arange(len(sizes))
    for small in range(len(sizes)):
        if 0 < sizes[small] < k:
            distance = ((centres - centres[:, small : small + 1]) ** 2).sum(axis=0)
            distance[small] = np.inf
            distance[sizes == 0] = np.inf
            other = int(distance.argmin())
            sizes[other] += sizes[small]
            sizes[small] = 0
            goes_to[goes_to == small] = other
    bin_of[:] = goes_to[bin_of]


def _cut_large(rows: NDArray[np.float32], bin_of: NDArray[np.int32], largest: int) -> None:
    """Halves bins of more than `largest` users at the median of their widest column, in place, until none is left.

    O(n (d + log n) log n) at most.
    """
    sizes = np.bincount(bin_of)
    unused = len(sizes)
    parts = [np.flatnonzero(bin_of == large) for large in np.flatnonzero(sizes > largest)]
    while parts:
        part = parts.pop()
        of_part = rows[part].astype(np.float64)
        order = np.argsort(of_part[:, of_part.var(axis=0).argmax()], kind="stable")
        middle = len(part) // 2
        bin_of[part[order[middle:]]] = unused
        unused += 1
        parts += [half for half in (part[order[:middle]], part[order[middle:]]) if len(half) > largest]


@njit(nogil=True, cache=True)
def _shuffled(n: int, random: np.uint64) -> NDArray[np.int64]:
    """0..n-1 in random order, int64[n]."""
    draws = np.empty(n, dtype=np.uint64)
    for i in range(n):
        draws[i] = keyed(random, i, 0)
    return np.argsort(draws)


@njit(nogil=True, cache=True)
def _squared_distances(
    rows: NDArray[np.float32], i: int, centres: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Adds to out float64[t] the squared distances of row i to the centres float64[d, t]."""
    for a in range(centres.shape[0]):
        value = np.float64(rows[i, a])
        for c in range(centres.shape[1]):
            gap = value - centres[a, c]
            out[c] += gap * gap


@njit(nogil=True, cache=True)
def _nearest_centres(
    rows: NDArray[np.float32], centres: NDArray[np.float64], lo: int, hi: int, out: NDArray[np.int32]
) -> None:
    """out[lo:hi] = the nearest centre of each row, the first of equally near ones. O((hi - lo) d t)."""
    distance = np.empty(centres.shape[1])
    for i in range(lo, hi):
        distance[:] = 0.0
        _squared_distances(rows, i, centres, distance)
        out[i] = np.argmin(distance)


@njit(nogil=True, cache=True)
def _choose_bounded(
    rows: NDArray[np.float32],
    order: NDArray[np.int64],
    centres: NDArray[np.float64],
    least: int,
    most: int,
    label: NDArray[np.int64],
) -> bool:
    """Users, in the given order, take the nearest centre that has a place; whether any label changed.

    Every one of the t centres has `least` places, and n - t least users find a further one, up to `most` at a
    centre: so each ends with at least `least` users. t least <= n <= t most. O(n d t).
    """
    n, t = len(rows), centres.shape[1]
    further = n - t * least
    taken = np.zeros(t, dtype=np.int64)
    full = np.zeros(t)  # 0 or infinity, what a place costs beside the distance
    distance = np.empty(t)
    changed = False
    for i in order:
        distance[:] = full
        _squared_distances(rows, i, centres, distance)
        chosen = np.argmin(distance)
        changed |= label[i] != chosen
        label[i] = chosen
        taken[chosen] += 1
        if taken[chosen] > least:
            further -= 1
            if further == 0:
                for c in range(t):
                    if taken[c] >= least:
                        full[c] = np.inf
        if taken[chosen] == most or (further == 0 and taken[chosen] >= least):
            full[chosen] = np.inf
    return changed


@njit(nogil=True, cache=True)
def _move_centres(
    rows: NDArray[np.float32], label: NDArray[np.int64], virtual: bool, centres: NDArray[np.float64]
) -> None:
    """Sets each centre to the mean of its users, or to the one of them nearest to it; none is without. O(n d)."""
    n, (d, t) = len(rows), centres.shape
    count = np.zeros(t)
    centres[:] = 0.0
    for i in range(n):
        count[label[i]] += 1
        for a in range(d):
            centres[a, label[i]] += rows[i, a]
    for a in range(d):
        for c in range(t):
            centres[a, c] /= count[c]
    if virtual:
        return
    nearest = np.full(t, np.int64(-1))
    smallest = np.empty(t)
    for i in range(n):
        c = label[i]
        distance = 0.0
        for a in range(d):
            gap = rows[i, a] - centres[a, c]
            distance += gap * gap
        if nearest[c] < 0 or distance < smallest[c]:
            nearest[c], smallest[c] = i, distance
    for c in range(t):
        for a in range(d):
            centres[a, c] = rows[nearest[c], a]


@njit(nogil=True, cache=True)
def _t_means(
    rows: NDArray[np.float32],
    least: int,
    most: int,
    rounds: int,
    virtual: bool,
    random: np.uint64,
    centres: NDArray[np.float64],
    label: NDArray[np.int64],
) -> None:
    """Bounded t-means: fills label int64[n] with 0..t-1 and centres float64[d, t]. O(rounds n d t)."""
    order = _shuffled(len(rows), random)
    for c in range(centres.shape[1]):
        for a in range(centres.shape[0]):
            centres[a, c] = rows[order[c], a]
    label[:] = -1
    for turn in range(rounds):
        if turn > 0:
            _move_centres(rows, label, virtual, centres)
        if not _choose_bounded(rows, order, centres, least, most, label):
            return  # and so it would stay


@njit(nogil=True, cache=True)
def _cluster_bins(
    rows: NDArray[np.float32],
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    first_group: NDArray[np.int64],
    lo: int,
    hi: int,
    k: int,
    rounds: int,
    virtual: bool,
    random: np.uint64,
    groups: NDArray[np.int32],
) -> None:
    """Gathers the users of the bins lo..hi-1, members[starts[b]:starts[b + 1]], into groups from first_group[b] on."""
    for b in range(lo, hi):
        users = members[starts[b] : starts[b + 1]]
        label = np.empty(len(users), dtype=np.int64)
        centres = np.empty((rows.shape[1], len(users) // k))
        _t_means(rows[users], k, 2 * k - 1, rounds, virtual, keyed(random, _OF_BINS, b), centres, label)
        for i in range(len(users)):
            groups[users[i]] = first_group[b] + label[i]
