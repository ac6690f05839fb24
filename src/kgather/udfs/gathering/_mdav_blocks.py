"""Records in blocks: the farthest and the nearest records of a point without looking at every record.

Serves MDAV (`gathering.mdav`), which asks for the farthest record once and for the nearest ones once for every
group it forms, and takes the records of the group out. Both answers are exact, ties fall to the lowest record.

- A block holds up to 64 records, column by column, so that one instruction works on several of them.
- Farthest: blocks are filled in the order of the distance from a fixed centre, the outermost first. By the
  triangle inequality no record lies farther from a point than its distance from the centre plus the point's, so
  the search ends at the first block for which that sum is too small.
- Nearest: blocks are the leaves of a kd-tree, each with the box around what is left in it. Leaves are looked at
  from the nearest box on, until a box is farther than the nearest records found.

scipy's cKDTree cannot lose points: built anew whenever half of them are gone, it takes 2.5 to 4.5 times as long for
the nearest records alone (benchmarks/trees.py).

Every distance is the sum over the columns in their order, without reordering, so it is the same to the last bit
wherever it is computed.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.selection import kth_smallest

WIDTH = 64
_SAMPLE = 256  # records whose spread decides along which axis a node of the kd-tree is cut
_DEPTH = 128  # the stack of the tree's builder: twice the depth of a balanced tree of 2^63 records


class Blocks(NamedTuple):
    """Records in blocks; what has been taken out leaves no hole.

    values float64[blocks, d, WIDTH] and ids int64[blocks, WIDTH]: the records of every block. left int64[blocks]:
    how many of them are left; they come first. place int64[n]: block * WIDTH + slot of every record. first
    int64[blocks]: the lowest record left. uniform bool[blocks]: all records of the block are equal. low, high
    float64[d, blocks]: the box around the records left (infinite for an empty block); without rows if no boxes
    are kept.
    """

    values: NDArray[np.float64]
    ids: NDArray[np.int64]
    left: NDArray[np.int64]
    place: NDArray[np.int64]
    first: NDArray[np.int64]
    uniform: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def in_blocks(rows: NDArray[np.float64], order: NDArray[np.int64], *, boxes: bool) -> Blocks:
    """The records order int64[m] of rows float64[n, d], block by block. O(m d) time, about 8 m d bytes."""
    n, d = rows.shape
    count = -(-len(order) // WIDTH)
    sides = d if boxes else 0
    blocks = Blocks(
        values=np.empty((count, d, WIDTH)),
        ids=np.empty((count, WIDTH), dtype=np.int64),
        left=np.empty(count, dtype=np.int64),
        place=np.empty(n, dtype=np.int64),
        first=np.empty(count, dtype=np.int64),
        uniform=np.empty(count, dtype=np.bool_),
        low=np.empty((sides, count)),
        high=np.empty((sides, count)),
    )
    _fill(rows, order, blocks)
    return blocks


@njit(nogil=True, cache=True)
def _fill(rows: NDArray[np.float64], order: NDArray[np.int64], blocks: Blocks) -> None:
    d = rows.shape[1]
    for b in range(len(blocks.left)):
        lo = b * WIDTH
        count = min(len(order) - lo, WIDTH)
        first = order[lo]
        uniform = True
        for t in range(count):
            i = order[lo + t]
            first = min(first, i)
            blocks.ids[b, t] = i
            blocks.place[i] = lo + t
            for a in range(d):
                blocks.values[b, a, t] = rows[i, a]
                uniform &= rows[i, a] == rows[order[lo], a]
        blocks.left[b] = count
        blocks.first[b] = first
        blocks.uniform[b] = uniform
        for a in range(len(blocks.low)):
            _set_side(blocks, b, a)


@njit(nogil=True, cache=True)
def _set_side(blocks: Blocks, b: int, a: int) -> None:
    """The extent of the box of block b along axis a, from its records; the block is not empty."""
    low = blocks.values[b, a, 0]
    high = low
    for t in range(1, blocks.left[b]):
        low = min(low, blocks.values[b, a, t])
        high = max(high, blocks.values[b, a, t])
    blocks.low[a, b] = low
    blocks.high[a, b] = high


@njit(nogil=True, cache=True)
def take_out(blocks: Blocks, i: int) -> None:
    """Takes record i out of its block; the last one of the block fills its slot, the box shrinks. O(WIDTH d)."""
    b, t = divmod(blocks.place[i], WIDTH)
    last = blocks.left[b] - 1
    blocks.left[b] = last
    if last == 0:
        for a in range(len(blocks.low)):
            blocks.low[a, b] = np.inf
            blocks.high[a, b] = np.inf
        return
    moved = blocks.ids[b, last]
    blocks.ids[b, t] = moved
    blocks.place[moved] = blocks.place[i]
    for a in range(blocks.values.shape[1]):
        gone = blocks.values[b, a, t]
        blocks.values[b, a, t] = blocks.values[b, a, last]
        if a < len(blocks.low) and (gone == blocks.low[a, b] or gone == blocks.high[a, b]):
            _set_side(blocks, b, a)
    if i == blocks.first[b]:
        first = blocks.ids[b, 0]
        for u in range(1, last):
            first = min(first, blocks.ids[b, u])
        blocks.first[b] = first


@njit(nogil=True, cache=True)
def centre_distances(
    rows: NDArray[np.float64], order: NDArray[np.int64], centre: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The distances of the records order int64[m] from the centre, float64[m]."""
    out = np.empty(len(order))
    for j in range(len(order)):
        total = 0.0
        for a in range(rows.shape[1]):
            gap = rows[order[j], a] - centre[a]
            total += gap * gap
        out[j] = np.sqrt(total)
    return out


@njit(nogil=True, cache=True)
def kd_order(rows: NDArray[np.float64], records: NDArray[np.int64]) -> NDArray[np.int64]:
    """The records int64[m] so that each WIDTH of them are a leaf of a kd-tree: cut at the median of the axis of
    the largest variance (estimated from 256 of them).

    Records that are equal stay in the order given. Expected O(m (log m + d)).
    """
    d = rows.shape[1]
    order = records.copy()
    spare = np.empty_like(order)
    key, scratch = np.empty(len(order)), np.empty(len(order))
    stack = np.empty((_DEPTH, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, len(order)
    depth = 1
    while depth > 0:
        depth -= 1
        lo, hi = stack[depth, 0], stack[depth, 1]
        if hi - lo <= WIDTH:
            continue
        step = max((hi - lo) // _SAMPLE, 1)
        axis, widest = 0, -1.0
        for a in range(d):
            shift, total, squares, looked = rows[order[lo], a], 0.0, 0.0, 0
            for j in range(lo, hi, step):
                gap = rows[order[j], a] - shift
                total += gap
                squares += gap * gap
                looked += 1
            spread = squares - total * total / looked
            if spread > widest:
                axis, widest = a, spread
        leaves = (hi - lo + WIDTH - 1) // WIDTH
        left = leaves // 2 * WIDTH
        for j in range(lo, hi):
            key[j] = rows[order[j], axis]
            scratch[j] = key[j]
            spare[j] = order[j]
        limit = kth_smallest(scratch, lo, hi, left - 1)
        equal_left = left
        for j in range(lo, hi):
            if key[j] < limit:
                equal_left -= 1
        p, q = lo, lo + left
        for j in range(lo, hi):
            goes_left = key[j] < limit
            if key[j] == limit and equal_left > 0:
                equal_left -= 1
                goes_left = True
            if goes_left:
                order[p] = spare[j]
                p += 1
            else:
                order[q] = spare[j]
                q += 1
        stack[depth, 0], stack[depth, 1] = lo, lo + left
        stack[depth + 1, 0], stack[depth + 1, 1] = lo + left, hi
        depth += 2
    return order


@njit(nogil=True, cache=True)
def worse(distance: float, i: int, than: float, j: int) -> bool:
    """Whether record i at a distance comes after record j at another one in the order of the nearest."""
    return bool(distance > than or (distance == than and i > j))


@njit(nogil=True, cache=True)
def sift_down(keys: NDArray[np.float64], ids: NDArray[np.int64], root: int, size: int, key: float, i: int) -> None:
    """Puts (key, i) at the root of the heap below it, whose other entries are in order; the worst is on top."""
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and worse(keys[child + 1], ids[child + 1], keys[child], ids[child]):
            child += 1
        if not worse(keys[child], ids[child], key, i):
            break
        keys[root], ids[root] = keys[child], ids[child]
        root = child
    keys[root], ids[root] = key, i


@njit(nogil=True, cache=True)
def offer(keys: NDArray[np.float64], ids: NDArray[np.int64], size: int, wanted: int, key: float, i: int) -> int:
    """Adds (key, i) to the heap of the `wanted` nearest, size of them found so far; returns their number."""
    if size == wanted:
        if worse(keys[0], ids[0], key, i):
            sift_down(keys, ids, 0, size, key, i)
        return size
    at = size
    while at > 0:
        above = (at - 1) // 2
        if not worse(key, i, keys[above], ids[above]):
            break
        keys[at], ids[at] = keys[above], ids[above]
        at = above
    keys[at], ids[at] = key, i
    return size + 1


@njit(nogil=True, cache=True)
def sort_heap(keys: NDArray[np.float64], ids: NDArray[np.int64], size: int) -> None:
    """The nearest in the heap from the nearest to the farthest."""
    for stop in range(size - 1, 0, -1):
        key, i = keys[stop], ids[stop]
        keys[stop], ids[stop] = keys[0], ids[0]
        sift_down(keys, ids, 0, stop, key, i)


@njit(nogil=True, cache=True)
def _distances(
    values: NDArray[np.float64], b: int, count: int, scale: float, point: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """out[:count] = squared length of scale * record - point, for the first records of block b."""
    d = values.shape[1]
    for t in range(count):
        out[t] = 0.0
    a = 0
    while a + 4 <= d:
        p0, p1, p2, p3 = point[a], point[a + 1], point[a + 2], point[a + 3]
        for t in range(count):
            g0 = scale * values[b, a, t] - p0
            g1 = scale * values[b, a + 1, t] - p1
            g2 = scale * values[b, a + 2, t] - p2
            g3 = scale * values[b, a + 3, t] - p3
            out[t] = (((out[t] + g0 * g0) + g1 * g1) + g2 * g2) + g3 * g3
        a += 4
    while a < d:
        p0 = point[a]
        for t in range(count):
            g0 = scale * values[b, a, t] - p0
            out[t] += g0 * g0
        a += 1


@njit(nogil=True, cache=True)
def farthest(
    blocks: Blocks,
    radius: NDArray[np.float64],
    centre: NDArray[np.float64],
    start: int,
    scale: float,
    point: NDArray[np.float64],
    slack: float,
    out: NDArray[np.float64],
) -> tuple[int, float]:
    """The record left that is farthest from point / scale, and the squared length of scale * record - point.

    blocks in the order of falling distance from the centre float64[d], radius float64[blocks]: the largest
    distance in each; those before `start` are empty. slack: what distances may be wrong by, in the unit of the
    records. out float64[WIDTH] is scratch. O(n d) at worst.
    """
    offset = 0.0
    for a in range(len(point)):
        gap = point[a] / scale - centre[a]
        offset += gap * gap
    offset = np.sqrt(offset)
    best, record = -1.0, -1
    for b in range(start, len(blocks.left)):
        count = blocks.left[b]
        if count == 0:
            continue
        bound = scale * ((radius[b] + offset) * (1.0 + 1e-9) + slack)
        if bound * bound < best:
            break
        if blocks.uniform[b]:
            _distances(blocks.values, b, 1, scale, point, out)
            if worse(out[0], -blocks.first[b], best, -record):
                best, record = out[0], blocks.first[b]
            continue
        _distances(blocks.values, b, count, scale, point, out)
        hits = 0  # most blocks have none, and counting them takes several records at a time
        for t in range(count):
            hits += out[t] >= best
        if hits == 0:
            continue
        for t in range(count):
            if worse(out[t], -blocks.ids[b, t], best, -record):
                best, record = out[t], blocks.ids[b, t]
    return record, best


@njit(nogil=True, cache=True)
def _look_at(
    blocks: Blocks,
    b: int,
    point: NDArray[np.float64],
    wanted: int,
    size: int,
    keys: NDArray[np.float64],
    ids: NDArray[np.int64],
    out: NDArray[np.float64],
) -> int:
    """Offers the records of block b to the heap of the nearest; returns how many it holds."""
    count = blocks.left[b]
    _distances(blocks.values, b, count, 1.0, point, out)
    if size == wanted:
        limit = keys[0]
        hits = 0
        for t in range(count):
            hits += out[t] <= limit
        if hits == 0:
            return size
    for t in range(count):
        if size < wanted or out[t] <= keys[0]:
            size = offer(keys, ids, size, wanted, out[t], blocks.ids[b, t])
    return size


@njit(nogil=True, cache=True)
def nearest(
    blocks: Blocks,
    point: NDArray[np.float64],
    own: int,
    wanted: int,
    keys: NDArray[np.float64],
    ids: NDArray[np.int64],
    lower: NDArray[np.float64],
    queue: NDArray[np.float64],
    queued: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """keys[:wanted], ids[:wanted] = squared distance and number of the nearest records left, in order.

    own: the block to look at first. With boxes, blocks are looked at from the nearest box on; without, all are.
    keys float64[>= wanted], ids int64[>= wanted], lower and queue float64[blocks], queued int64[blocks], out
    float64[WIDTH] are scratch. At least `wanted` records are left. O(n d + n log wanted) at worst.
    """
    if wanted == 0:
        return
    size = _look_at(blocks, own, point, wanted, 0, keys, ids, out)
    n_blocks = len(blocks.left)
    if len(blocks.low) == 0:
        for b in range(n_blocks):
            if b != own:
                size = _look_at(blocks, b, point, wanted, size, keys, ids, out)
        sort_heap(keys, ids, size)
        return
    # summed like the distances themselves, so that rounding puts no bound above a distance
    lower[:] = 0.0
    for a in range(len(point)):
        p = point[a]
        for b in range(n_blocks):
            gap = max(max(blocks.low[a, b] - p, p - blocks.high[a, b]), 0.0)
            lower[b] += gap * gap
    limit = keys[0] if size == wanted else np.inf
    waiting = 0
    for b in range(n_blocks):
        if lower[b] <= limit and b != own and blocks.left[b] > 0:
            # negative, because the worst comes first and the nearest box is wanted first
            queue[waiting], queued[waiting] = -lower[b], -b
            waiting += 1
    for root in range(waiting // 2 - 1, -1, -1):
        sift_down(queue, queued, root, waiting, queue[root], queued[root])
    while waiting > 0:
        b = -queued[0]
        bound = -queue[0]
        if size == wanted and bound > keys[0]:
            break
        if size < wanted or not worse(bound, blocks.first[b], keys[0], ids[0]):
            size = _look_at(blocks, b, point, wanted, size, keys, ids, out)
        waiting -= 1
        sift_down(queue, queued, 0, waiting, queue[waiting], queued[waiting])
    sort_heap(keys, ids, size)
