"""(b, l)-diversity of a release: every set of b items that some user rated is shown by at least l groups
(Predictive Anonymization, section 6, definition 6).

Who knows b items that a person rated then finds at least l groups the person may be in. Where too few groups
show a set, fake cells are added to groups drawn at random. The paper spells out b = 1 only; for b = 2 and 3
what follows is ours: once b - 1 holds, a set that fails is completed in groups that miss one of its items.

Which groups show an item is a row of bits. A user's items are visited in the order of how many groups miss
them: as long as the groups that miss one of the items are too few for the set to fail, it is not looked at.
"""

from math import comb

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.hashing import keyed, mix
from kgather.udfs._shared.options import whole
from kgather.udfs.ratings.matrix import RatingMatrix

Cells = tuple[np.ndarray, np.ndarray]  # group codes and item codes

_MAX_B = 3
_STRETCH = 31  # words of 8 groups, whose sum fits into a byte
_ONE = np.uint64(1)
_LOW6, _LOW32 = np.int64(63), np.int64(0xFFFFFFFF)
_P1, _P2, _P4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_S1, _S2, _S4, _S56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


def added_cells(
    cells: Cells,
    n_groups: int,
    matrix: RatingMatrix,
    items: np.ndarray | None = None,
    *,
    b: int,
    l: int,  # noqa: E741
    random: np.random.Generator,
    max_sets: int = 2_000_000_000,
) -> Cells:
    """The fake cells that make the release (b, l)-diverse: group codes int32[a] and item codes int32[a].

    cells: the (group, item) cells that the release shows, two int[c] of codes in 0..n_groups-1 and
    0..n_items-1. items bool[n_items]: the items of the release (default: all); sets with other items do not
    count. Each of these items is shown by l groups afterwards, even if nobody rated it (no more cells are
    added for it than needed if b = 1), and so is every set of 2 to b of them that some user rated. The
    added cells are in ascending order and none is among `cells`.

    `random` should be seeded by the operating system: who knows its seed can tell which cells are fake.

    Time: b = 1 O(c + n_items + a log a), and O(n_groups) for each item that lacks groups if l is above half of
    n_groups; 12 bytes a cell. b = 2 and 3: the number of sets, the sum over users of C(items rated, b), times
    n_groups / 64 at most; the bits take n_items * n_groups / 4 bytes.

    Raises InputError if b is not 1, 2 or 3, l is no whole number in 1..n_groups, there are more sets than
    `max_sets`, or the codes, the items or `random` are not what is said above.
    """
    b = whole("b", b, 1, _MAX_B)
    n_groups = whole("the number of groups", n_groups, 1)
    least = whole("l", l, 1)
    max_sets = whole("max_sets", max_sets, 1)
    if least > n_groups:
        msg = f"l = {least} groups shall show every item, but there are only {n_groups}: choose a smaller l or k."
        raise InputError(msg)
    if not isinstance(random, np.random.Generator):
        msg = f"random must be a generator of numpy, not {type(random).__name__}."
        raise InputError(msg)
    wanted = _wanted(items, matrix)
    groups, codes = _checked(cells, n_groups, matrix)
    if b > 1:
        _refuse_too_many(matrix, wanted, b, max_sets)
    seeds = random.integers(0, 1 << 64, size=_MAX_B, dtype=np.uint64)
    starts, shown_by = _by_item(groups, codes, n_groups, matrix.n_items)
    new_groups, new_items = _singles(starts, shown_by, wanted, n_groups, least, seeds[0])
    if b > 1:
        before = _bits(starts, shown_by, n_groups)
        cover = before.copy()
        _set_bits(cover, new_groups, new_items)
        missing = _missing(cover, n_groups)
        _pairs(matrix.indptr, matrix.items, wanted, cover, missing, n_groups, least, seeds[1])
        if b > 2:
            _triples(matrix.indptr, matrix.items, wanted, cover, missing, least, seeds[2])
        new_groups, new_items = _differences(before, cover)
    order = np.lexsort((new_items, new_groups))
    return new_groups[order], new_items[order]


def least_coverage(
    cells: Cells, n_groups: int, matrix: RatingMatrix, items: np.ndarray | None = None, *, b: int
) -> int:
    """The smallest number of groups that show a set: of one item of `items`, or of 2 to b that some user
    rated.

    Arguments as in `added_cells`. A release is (b, l)-diverse if the result is l or more; where there are no
    items at all, it is n_groups. Nothing is shared with `added_cells` but how cells are read: sets are
    visited by item, and groups counted in bytes, with no bounds. Time: a step for each of the sets, and
    n_groups / 8 for each that differs; memory n_groups * n_items bytes if b > 1, beside 12 bytes a cell and 8 a rating.

    Raises InputError as `added_cells` does.
    """
    b = whole("b", b, 1, _MAX_B)
    n_groups = whole("the number of groups", n_groups, 1)
    wanted = _wanted(items, matrix)
    groups, codes = _checked(cells, n_groups, matrix)
    starts, shown_by = _by_item(groups, codes, n_groups, matrix.n_items)
    least = _least_single(starts, wanted, n_groups)
    if b > 1:
        shows = _shows(starts, shown_by, n_groups)
        by_item, raters, _ = matrix.transpose()
        least = _least_of_sets(matrix.indptr, matrix.items, by_item, raters, wanted, shows, b, least)
    return int(least)


def _wanted(items: np.ndarray | None, matrix: RatingMatrix) -> np.ndarray:
    if items is None:
        return np.ones(matrix.n_items, dtype=np.bool_)
    wanted = np.asarray(items)
    if wanted.dtype != np.bool_ or wanted.shape != (matrix.n_items,):
        shape = "x".join(str(side) for side in wanted.shape)
        msg = f"items must say true or false for each of {matrix.n_items} items, not {wanted.dtype} {shape}."
        raise InputError(msg)
    return np.array(wanted)


def _checked(cells: Cells, n_groups: int, matrix: RatingMatrix) -> Cells:
    """The codes as int32, all in range."""
    checked = []
    for name, given, limit in zip(("group", "item"), cells, (n_groups, matrix.n_items), strict=True):
        codes = np.asarray(given)
        if codes.ndim != 1 or (codes.dtype.kind not in "iu" and len(codes)):
            msg = f"the {name} codes of the cells must be a list of whole numbers."
            raise InputError(msg)
        if len(codes) and (codes.min() < 0 or codes.max() >= limit):
            msg = f"the {name} codes of the cells must be within 0..{limit - 1}; they are {codes.min()}..{codes.max()}."
            raise InputError(msg)
        checked.append(np.array(codes, dtype=np.int32))
    if len(checked[0]) != len(checked[1]):
        msg = f"the cells need one item for each group: there are {len(checked[0])} and {len(checked[1])}."
        raise InputError(msg)
    return checked[0], checked[1]


def number_of_sets(matrix: RatingMatrix, wanted: np.ndarray, b: int) -> int:
    """How many sets of b of the wanted items, bool[n_items], the users rated, summed over users. O(nnz)."""
    before = np.concatenate([[0], np.cumsum(wanted[matrix.items])])
    rated, users = np.unique(np.diff(before[matrix.indptr]), return_counts=True)
    return sum(comb(int(n), b) * int(count) for n, count in zip(rated, users, strict=True))


def _refuse_too_many(matrix: RatingMatrix, wanted: np.ndarray, b: int, max_sets: int) -> None:
    """Raises InputError if the users rated more than `max_sets` sets of b of the items."""
    sets = number_of_sets(matrix, wanted, b)
    if sets > max_sets:
        msg = (
            f"(b, l)-diversity with b = {b} would have to look at {sets} sets of items, more than {max_sets}: "
            f"choose a smaller b, fewer items (the top N), or a higher limit."
        )
        raise InputError(msg)


@njit(nogil=True, cache=True, inline="always")
def ones(word: np.uint64) -> int:
    """How many bits are set (becomes one instruction)."""
    word = word - ((word >> _S1) & _P1)
    word = (word & _P2) + ((word >> _S2) & _P2)
    word = (word + (word >> _S4)) & _P4
    return int(np.int64((word * _BYTES) >> _S56))


@njit(nogil=True, cache=True)
def _by_item(groups: np.ndarray, items: np.ndarray, n_groups: int, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The groups of item i are out[starts[i]:starts[i + 1]]; a cell given twice is there once."""
    starts = np.zeros(n_items + 1, dtype=np.int64)
    for item in items:
        starts[item + 1] += 1
    for i in range(n_items):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    sorted_groups = np.empty(len(items), dtype=np.int32)
    for j in range(len(items)):
        sorted_groups[place[items[j]]] = groups[j]
        place[items[j]] += 1
    seen = np.full(n_groups, -1, dtype=np.int64)
    kept, lo = 0, 0
    for i in range(n_items):
        hi = starts[i + 1]
        for j in range(lo, hi):
            group = sorted_groups[j]
            if seen[group] != i:
                seen[group] = i
                sorted_groups[kept] = group
                kept += 1
        lo = hi
        starts[i + 1] = kept
    return starts, sorted_groups[:kept].copy()


@njit(nogil=True, cache=True)
def _singles(
    starts: np.ndarray, shown_by: np.ndarray, wanted: np.ndarray, n_groups: int, least: int, seed: np.uint64
) -> tuple[np.ndarray, np.ndarray]:
    """The cells to add so that every wanted item is shown by `least` groups."""
    n_items = len(wanted)
    total = 0
    for i in range(n_items):
        if wanted[i]:
            total += max(0, least - (starts[i + 1] - starts[i]))
    out_groups = np.empty(total, dtype=np.int32)
    out_items = np.empty(total, dtype=np.int32)
    shows = np.full(n_groups, -1, dtype=np.int64)  # the last item that the group was seen to show
    free = np.empty(n_groups, dtype=np.int32)
    at = 0
    for i in range(n_items):
        need = least - (starts[i + 1] - starts[i])
        if not wanted[i] or need <= 0:
            continue
        for j in range(starts[i], starts[i + 1]):
            shows[shown_by[j]] = i
        state = keyed(seed, i, 0)
        if 2 * least <= n_groups:  # at least every second draw is a group that does not show it
            while need > 0:
                state = mix(state)
                drawn = np.int64(state % np.uint64(n_groups))
                if shows[drawn] != i:
                    shows[drawn] = i
                    out_groups[at], out_items[at] = drawn, i
                    at += 1
                    need -= 1
            continue
        left = 0
        for group in range(n_groups):
            if shows[group] != i:
                free[left] = group
                left += 1
        while need > 0:
            state = mix(state)
            drawn = np.int64(state % np.uint64(left))
            out_groups[at], out_items[at] = free[drawn], i
            left -= 1
            free[drawn] = free[left]
            at += 1
            need -= 1
    return out_groups, out_items


@njit(nogil=True, cache=True)
def _bits(starts: np.ndarray, shown_by: np.ndarray, n_groups: int) -> np.ndarray:
    """uint64[n_items, words]: bit g of an item's row tells whether group g shows it."""
    cover = np.zeros((len(starts) - 1, (n_groups + 63) // 64), dtype=np.uint64)
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            cover[i, shown_by[j] >> 6] |= _ONE << np.uint64(shown_by[j] & _LOW6)
    return cover


@njit(nogil=True, cache=True)
def _set_bits(cover: np.ndarray, groups: np.ndarray, items: np.ndarray) -> None:
    for j in range(len(groups)):
        cover[items[j], groups[j] >> 6] |= _ONE << np.uint64(groups[j] & _LOW6)


@njit(nogil=True, cache=True)
def _missing(cover: np.ndarray, n_groups: int) -> np.ndarray:
    """int64[n_items]: how many groups do not show the item."""
    missing = np.empty(len(cover), dtype=np.int64)
    for i in range(len(cover)):
        missing[i] = n_groups
        for w in range(cover.shape[1]):
            missing[i] -= ones(cover[i, w])
    return missing


@njit(nogil=True, cache=True)
def _differences(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cells that are in `after` only."""
    total = 0
    for i in range(len(after)):
        for w in range(after.shape[1]):
            total += ones(after[i, w] & ~before[i, w])
    groups, items = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
    at = 0
    for i in range(len(after)):
        for w in range(after.shape[1]):
            new = after[i, w] & ~before[i, w]
            while new:
                lowest = new & (~new + _ONE)
                groups[at], items[at] = 64 * w + ones(lowest - _ONE), i
                at += 1
                new ^= lowest
    return groups, items


@njit(nogil=True, cache=True)
def _missing_one(cover: np.ndarray, i: int, j: int, k: int, w: int) -> np.uint64:
    """The groups in word w that show all but one of the items i, j and k (k = -1: i and j)."""
    x, y = cover[i, w], cover[j, w]
    if k < 0:
        return np.uint64(x ^ y)
    z = cover[k, w]
    return np.uint64(((x & y) | (x & z) | (y & z)) & ~(x & y & z))


@njit(nogil=True, cache=True)
def _complete(cover: np.ndarray, missing: np.ndarray, i: int, j: int, k: int, need: int, state: np.uint64) -> np.uint64:
    """Lets `need` more groups show the items i, j and k (k = -1: i and j); returns the new state.

    They are drawn among the groups that miss one of the items. There are enough: `least` groups show item i
    already (of three: i and j), and those that do not show the whole set miss one. O(need n_groups / 64).
    """
    words = cover.shape[1]
    total = 0
    for w in range(words):
        total += ones(_missing_one(cover, i, j, k, w))
    while need > 0:
        state = mix(state)
        before = np.int64(state % np.uint64(total))  # so many of them come before the one drawn
        for w in range(words):
            found = _missing_one(cover, i, j, k, w)
            here = ones(found)
            if before >= here:
                before -= here
                continue
            for _ in range(before):
                found &= found - _ONE
            bit = found & (~found + _ONE)
            for item in (i, j, k):
                if item >= 0 and not cover[item, w] & bit:
                    cover[item, w] |= bit
                    missing[item] -= 1
            break
        total -= 1
        need -= 1
    return state


@njit(nogil=True, cache=True)
def _copy(source: np.ndarray, row: int, target: np.ndarray, to: int) -> None:
    for w in range(source.shape[1]):
        target[to, w] = source[row, w]


@njit(nogil=True, cache=True)
def _rarest_last(
    indptr: np.ndarray,
    items: np.ndarray,
    wanted: np.ndarray,
    cover: np.ndarray,
    missing: np.ndarray,
    u: int,
    own: np.ndarray,
    own_missing: np.ndarray,
    own_cover: np.ndarray,
) -> int:
    """The wanted items of user u, those that most groups miss last, how many miss them, and their bits."""
    n = 0
    for e in range(indptr[u], indptr[u + 1]):
        if wanted[items[e]]:
            own[n] = missing[items[e]] << 32 | np.int64(items[e])
            n += 1
    own[:n].sort()
    for p in range(n):
        own_missing[p] = own[p] >> 32
        own[p] &= _LOW32
        _copy(cover, own[p], own_cover, p)
    return n


@njit(nogil=True, cache=True)
def _longest(indptr: np.ndarray) -> int:
    longest = 0
    for u in range(len(indptr) - 1):
        longest = max(longest, indptr[u + 1] - indptr[u])
    return longest


@njit(nogil=True, cache=True)
def _first_above(values: np.ndarray, n: int, limit: int) -> int:
    """The first of values[:n], which ascend, that is above the limit (n if none is)."""
    lo, hi = 0, n
    while lo < hi:
        middle = (lo + hi) // 2
        if values[middle] > limit:
            hi = middle
        else:
            lo = middle + 1
    return lo


@njit(nogil=True, cache=True)
def _pairs(
    indptr: np.ndarray,
    items: np.ndarray,
    wanted: np.ndarray,
    cover: np.ndarray,
    missing: np.ndarray,
    n_groups: int,
    least: int,
    state: np.uint64,
) -> None:
    """Completes every pair of wanted items that some user rated (cover and missing are changed)."""
    words, longest = cover.shape[1], _longest(indptr)
    own, own_missing = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    own_cover = np.empty((longest, words), dtype=np.uint64)
    for u in range(len(indptr) - 1):
        n = _rarest_last(indptr, items, wanted, cover, missing, u, own, own_missing, own_cover)
        for p in range(n):
            # own_missing may be too large by now, then a pair is looked at in vain
            first = _first_above(own_missing, n, n_groups - least - own_missing[p])
            for q in range(max(p + 1, first), n):
                count = 0
                for w in range(words):
                    count += ones(own_cover[p, w] & own_cover[q, w])
                    if count >= least:
                        break
                if count < least:
                    state = _complete(cover, missing, own[p], own[q], -1, least - count, state)
                    _copy(cover, own[p], own_cover, p)
                    _copy(cover, own[q], own_cover, q)


@njit(nogil=True, cache=True)
def _triples(
    indptr: np.ndarray,
    items: np.ndarray,
    wanted: np.ndarray,
    cover: np.ndarray,
    missing: np.ndarray,
    least: int,
    state: np.uint64,
) -> None:
    """Completes every three wanted items that some user rated (cover and missing are changed)."""
    words, longest = cover.shape[1], _longest(indptr)
    own, own_missing = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    own_cover = np.empty((longest, words), dtype=np.uint64)
    both = np.empty(words, dtype=np.uint64)
    for u in range(len(indptr) - 1):
        n = _rarest_last(indptr, items, wanted, cover, missing, u, own, own_missing, own_cover)
        for p in range(n):
            for q in range(p + 1, n - 1):
                shared = 0
                for w in range(words):
                    both[w] = own_cover[p, w] & own_cover[q, w]
                    shared += ones(both[w])
                # an item that fewer groups miss than the pair can spare completes no failing set
                first = _first_above(own_missing, n, shared - least)
                for r in range(max(q + 1, first), n):
                    count = 0
                    for w in range(words):
                        count += ones(both[w] & own_cover[r, w])
                        if count >= least:
                            break
                    if count < least:
                        state = _complete(cover, missing, own[p], own[q], own[r], least - count, state)
                        for s in (p, q, r):
                            _copy(cover, own[s], own_cover, s)
                        for w in range(words):
                            both[w] = own_cover[p, w] & own_cover[q, w]


@njit(nogil=True, cache=True)
def _least_single(starts: np.ndarray, wanted: np.ndarray, n_groups: int) -> int:
    """The smallest number of groups that show a wanted item."""
    least = n_groups
    for i in range(len(wanted)):
        if wanted[i]:
            least = min(least, starts[i + 1] - starts[i])
    return least


@njit(nogil=True, cache=True)
def _shows(starts: np.ndarray, shown_by: np.ndarray, n_groups: int) -> np.ndarray:
    """uint64[n_items, words]: byte g of an item's row is 1 if group g shows it, else 0."""
    shows = np.zeros((len(starts) - 1, (n_groups + 7) // 8), dtype=np.uint64)
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            shows[i, shown_by[j] >> 3] |= _ONE << np.uint64(8 * (shown_by[j] & 7))
    return shows


@njit(nogil=True, cache=True)
def _later_items(
    indptr: np.ndarray,
    items: np.ndarray,
    users: np.ndarray,
    item: int,
    seen: np.ndarray,
    mark: int,
    out: np.ndarray,
) -> int:
    """The items after `item` that any of the users rated, each once, in out[:n]; returns n.

    seen int64[n_items]: no entry equals `mark` yet. out int64[n_items + 1].
    """
    n = 0
    for u in users:
        for e in range(indptr[u + 1] - 1, indptr[u] - 1, -1):
            other = items[e]
            if other <= item:
                break
            out[n] = other  # counts only if it is new: no branch that nobody can foretell
            n += seen[other] != mark
            seen[other] = mark
    return n


@njit(nogil=True, cache=True)
def _least_with(shows: np.ndarray, groups: np.ndarray, others: np.ndarray, wanted: np.ndarray, least: int) -> int:
    """The smallest number of the groups that show one of the other items, if it is less than `least`.

    groups: the groups in bytes, as a row of `shows`.
    """
    words = len(groups)
    for item in others:
        if not wanted[item]:
            continue
        count, lo = 0, 0
        while lo < words and count < least:
            hi = min(lo + _STRETCH, words)
            sums = np.uint64(0)
            for w in range(lo, hi):
                sums += groups[w] & shows[item, w]
            count += int(np.int64((sums * _BYTES) >> _S56))
            lo = hi
        least = min(least, count)
    return least


@njit(nogil=True, cache=True)
def _least_of_sets(
    indptr: np.ndarray,
    items: np.ndarray,
    by_item: np.ndarray,
    raters: np.ndarray,
    wanted: np.ndarray,
    shows: np.ndarray,
    b: int,
    least: int,
) -> int:
    """The smallest number of groups that show 2 to b wanted items that some user rated; `least` if it is
    less.

    The users who rated item i are raters[by_item[i]:by_item[i + 1]].
    """
    n_items = len(wanted)
    seen, seen_third = np.full(n_items, -1, dtype=np.int64), np.full(n_items, -1, dtype=np.int64)
    second, third = np.empty(n_items + 1, dtype=np.int64), np.empty(n_items + 1, dtype=np.int64)
    rated = np.full(len(indptr) - 1, -1, dtype=np.int64)  # the last item that the user was seen to have rated
    for i in range(n_items):
        if not wanted[i]:
            continue
        users = raters[by_item[i] : by_item[i + 1]]
        n_second = _later_items(indptr, items, users, i, seen, i, second)
        least = _least_with(shows, shows[i], second[:n_second], wanted, least)
        if b == 2:
            continue
        for u in users:
            rated[u] = i
        for j in second[:n_second]:
            if wanted[j]:
                others = raters[by_item[j] : by_item[j + 1]]
                common = others[rated[others] == i]
                n_third = _later_items(indptr, items, common, j, seen_third, i * n_items + j, third)
                least = _least_with(shows, shows[i] & shows[j], third[:n_third], wanted, least)
    return least
