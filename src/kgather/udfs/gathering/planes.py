"""A tree of planes: users who lie together are sent to the same leaf, though no machine has all of them.

The tree is learnt on a sample. It is cut in halves at the median of its principal axis, as `blocks.cut` does, and the
planes are kept, so that everybody can be sent down by them. Any method of gathering then works in each leaf.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.options import whole
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs.gathering.blocks import principal_axis


@dataclass(frozen=True)
class Planes:
    """A tree, node 0 its root; children come after their parents.

    direction float64[nodes, d], threshold float64[nodes]: what lies below the threshold along the direction goes to the
    child below int32[nodes], the rest to above int32[nodes]; both are -1 where a node is a leaf.
    """

    direction: NDArray[np.float64]
    threshold: NDArray[np.float64]
    below: NDArray[np.int32]
    above: NDArray[np.int32]

    @property
    def nodes(self) -> int:
        """How many nodes, leaves included."""
        return len(self.below)

    def leaves(self, vectors: NDArray[np.float32]) -> NDArray[np.int32]:
        """The leaf, by its node, that each of the vectors float32[n, d] is sent to: int32[n]. O(n d log nodes)."""
        rows, _ = checked_vectors(vectors, 1)
        out = np.empty(len(rows), dtype=np.int32)
        _send(rows, self.direction, self.threshold, self.below, self.above, out)
        return out

    def merged(self, counts: NDArray[np.int64], least: int) -> NDArray[np.int32]:
        """The node that stands for each node, int32[nodes], where no leaf is to have fewer than `least` users.

        counts int64[nodes]: how many users were sent to each leaf. A part of the tree becomes one leaf where one of its
        halves has too few.
        """
        total = counts.astype(np.int64).copy()
        stands = np.arange(self.nodes, dtype=np.int32)
        one = np.zeros(self.nodes, dtype=bool)
        for node in range(self.nodes - 1, -1, -1):
            if self.below[node] >= 0:
                halves = total[self.below[node]], total[self.above[node]]
                total[node] = sum(halves)
                one[node] = min(halves) < least
        for node in range(self.nodes):
            for child in (self.below[node], self.above[node]):
                if child >= 0 and (one[node] or stands[node] != node):
                    stands[child] = stands[node]
        return stands


def learn_planes(sample: NDArray[np.float32], most: int) -> Planes:
    """A tree whose leaves have at most `most` of the sample float32[n, d], where that can be cut.

    Equal vectors cannot be told apart and stay in one leaf. Expected O(n d log(n / most)). Raises InputError if most is
    no whole number >= 1, or the sample is no table of finite numbers.
    """
    most = whole("most", most, 1)
    rows, _ = checked_vectors(sample, 1)
    d = rows.shape[1]
    direction: list[NDArray[np.float64]] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    waiting: list[tuple[NDArray[np.int64], int, int]] = [(np.arange(len(rows)), -1, 0)]
    while waiting:
        members, parent, side = waiting.pop()
        node = len(children)
        if parent >= 0:
            children[parent][side] = node
        children.append([-1, -1])
        direction.append(np.zeros(d))
        threshold.append(0.0)
        if len(members) <= most:
            continue
        axis, at = _plane(np.ascontiguousarray(rows[members]))
        key = rows[members].astype(np.float64) @ axis
        low = key < at
        if not low.any() or low.all():
            continue
        direction[node], threshold[node] = axis, at
        waiting += [(members[~low], node, 1), (members[low], node, 0)]
    below, above = np.array(children, dtype=np.int32).T
    return Planes(np.array(direction), np.array(threshold), below.copy(), above.copy())


@njit(nogil=True, cache=True)
def _plane(rows: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
    """The direction of the plane that halves the rows, float64[d], and where it stands."""
    n, d = rows.shape
    axis = np.zeros(d)
    principal_axis(rows, 0, n, axis)
    key = np.zeros(n)
    for i in range(n):
        for a in range(d):
            key[i] += rows[i, a] * axis[a]
    key.sort()
    return axis, (key[n // 2 - 1] + key[n // 2]) / 2.0


@njit(nogil=True, cache=True)
def _send(
    rows: NDArray[np.float32],
    direction: NDArray[np.float64],
    threshold: NDArray[np.float64],
    below: NDArray[np.int32],
    above: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    d = rows.shape[1]
    for i in range(len(rows)):
        node = 0
        while below[node] >= 0:
            side = 0.0
            for a in range(d):
                side += rows[i, a] * direction[node, a]
            node = below[node] if side < threshold[node] else above[node]
        out[i] = node
