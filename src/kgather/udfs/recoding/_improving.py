"""Lowers the loss of finished classes: rows move, classes are dissolved, near ones are taken apart and grown anew."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from kgather.udfs._shared.hashing import keyed, mix
from kgather.udfs.recoding._index import boxed, cheapest, put_box, widen
from kgather.udfs.recoding._seeding import seeding_order
from kgather.udfs.recoding.loss import box_loss, interval_loss, joined_losses

_LEAST = 1e-7  # sums of losses that fall by less have not fallen
_PASSES = 3  # over the rows of classes that were grown anew
_CROWD = 24  # rows, in k, beyond which neighbours are not taken apart together


@njit(nogil=True, cache=True)
def _without(parts, low, high, of, head, after, c, r, box):  # type: ignore[no-untyped-def]
    """The loss of a row of class c without its row r; box int32[2, d] becomes the box that is left. O(members d)."""
    kind, at, size, flat, cap, bound = parts
    d = low.shape[1]
    begun = False
    q = head[c]
    while q >= 0:
        if q != r:
            t = of[q]
            if not begun:
                for j in range(d):
                    box[0, j], box[1, j] = low[t, j], high[t, j]
                begun = True
            else:
                for j in range(d):
                    box[0, j] = min(box[0, j], low[t, j])
                    box[1, j] = max(box[1, j], high[t, j])
        q = after[q]
    total = 0.0
    for j in range(d):
        total += interval_loss(kind, at, size, flat, cap, bound, j, box[0, j], box[1, j])
    return total


@njit(nogil=True, cache=True)
def _fill(pool, head, after, together):  # type: ignore[no-untyped-def]
    """Puts the rows of some classes into a pool, class by class."""
    filled = 0
    for e in together:
        r = head[e]
        while r >= 0:
            pool[filled] = r
            filled += 1
            r = after[r]


@njit(nogil=True, cache=True)
def _link(head, after, before, c, r):  # type: ignore[no-untyped-def]
    after[r] = head[c]
    before[r] = -1
    if head[c] >= 0:
        before[head[c]] = r
    head[c] = r


@njit(nogil=True, cache=True)
def _unlink(head, after, before, c, r):  # type: ignore[no-untyped-def]
    if before[r] >= 0:
        after[before[r]] = after[r]
    else:
        head[c] = after[r]
    if after[r] >= 0:
        before[after[r]] = before[r]


@njit(nogil=True, cache=True)
def improve(low, high, of, group, n_classes, parts, k, seed, rounds, neighbours, tries):  # type: ignore[no-untyped-def]
    """Lowers the summed loss of classes; group int64[n], the class of each row, is changed. Returns their number.

    low, high int32[m, d]: the boxes of combinations; of int64[n]: the combination of each row. Every class has k rows
    or more before and afterwards; rows without one (-1) join the cheapest first. Each of the rounds moves rows,
    dissolves classes and takes each class apart together with so many neighbours, so many times. tries = 0: rows move
    and classes dissolve, nothing else.
    """
    table = _Table(parts, low, high, of, group)
    classes = _classes_of(table, max(n_classes, len(of) // k) + 1)
    _join_leftovers(
        parts, low, high, of, group, classes.head, classes.after, classes.before, classes.rows, classes.low,
        classes.high, classes.loss,
    )  # fmt: skip
    place_of = np.full(len(classes.head), -1, np.int64)
    for turn in range(rounds):
        index = _indexed(table, classes, place_of, k)
        changed = _move_rows(table, classes, index, k, keyed(seed, turn, 1))
        changed += _dissolve_classes(table, classes, index, k)
        if tries > 0:
            changed += _grow_classes_anew(table, classes, index, k, seed, turn, neighbours, tries)
        if changed == 0:
            break
    return _renumber(group, len(classes.head))


class _Table(NamedTuple):
    """What is put into classes: the losses, the boxes int32[m, d], and of each row its box and its class, int64[n]."""

    parts: Any
    low: Any
    high: Any
    of: Any
    group: Any


class _Classes(NamedTuple):
    """Classes as linked lists: the first row of each, the row after and before each row (-1: none), int64; rows int64,
    boxes int32[c, d] and losses of the classes. One without rows is free."""

    head: Any
    after: Any
    before: Any
    rows: Any
    low: Any
    high: Any
    loss: Any


class _Index(NamedTuple):
    """An index of classes: the class of each place, the place of each class (-1: none), and `Boxes`, which follow the
    classes; what is tried is undone. least: the rows that every class has."""

    ids: Any
    place_of: Any
    boxes: Any
    least: Any


@njit(nogil=True, cache=True)
def _classes_of(table, capacity):  # type: ignore[no-untyped-def]
    """The classes that the rows are in, with room for so many. O(n d)."""
    kind, at, size, flat, cap, bound = table.parts
    n, d = len(table.of), table.low.shape[1]
    classes = _Classes(
        np.full(capacity, -1, np.int64), np.full(n, -1, np.int64), np.full(n, -1, np.int64),
        np.zeros(capacity, np.int64), np.zeros((capacity, d), np.int32), np.zeros((capacity, d), np.int32),
        np.zeros(capacity),
    )  # fmt: skip
    for r in range(n - 1, -1, -1):
        c, t = table.group[r], table.of[r]
        if c < 0:
            continue
        _link(classes.head, classes.after, classes.before, c, r)
        if classes.rows[c] == 0:
            classes.low[c] = table.low[t]
            classes.high[c] = table.high[t]
        else:
            widen(classes.low, classes.high, c, table.low, table.high, t)
        classes.rows[c] += 1
    for c in range(capacity):
        if classes.rows[c] > 0:
            classes.loss[c] = box_loss(kind, at, size, flat, cap, bound, classes.low, classes.high, c)
    return classes


@njit(nogil=True, cache=True)
def _indexed(table, classes, place_of, k):  # type: ignore[no-untyped-def]
    """The index of the classes that have rows; place_of int64[capacity] is written. O(classes log classes)."""
    ids = np.flatnonzero(classes.rows)
    rows = classes.rows[ids]
    order, boxes = boxed(classes.low[ids], classes.high[ids], rows, rows, classes.loss[ids], table.parts)
    ids = ids[order]
    place_of[:] = -1
    for p in range(len(ids)):
        place_of[ids[p]] = p
    return _Index(ids, place_of, boxes, k)


@njit(nogil=True, cache=True)
def _nearest(table, index, low, high, weight, limit, place, spared):  # type: ignore[no-untyped-def]
    """As `cheapest`, in an index of classes, from the bucket of a place on."""
    return cheapest(
        table.parts, low, high, weight, index.least, limit, index.boxes.bucket_of[place], spared, index.boxes
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _move_rows(table, classes, index, k, seed):  # type: ignore[no-untyped-def]
    """Rows that cost less elsewhere move, where their class can spare them. Returns how many did."""
    kind, at, size, flat, cap, bound = table.parts
    low, high, of, group = table.low, table.high, table.of, table.group
    d = low.shape[1]
    box = np.empty((2, d), np.int32)
    moved = 0
    for r in seeding_order(len(of), seed):
        c, t = group[r], of[r]
        p = index.place_of[c]
        if classes.rows[c] <= k or p < 0 or classes.loss[c] == 0.0:
            continue
        rest = classes.loss[c]
        if _at_edge(classes.low[c], classes.high[c], low[t], high[t]):
            rest = _without(table.parts, low, high, of, classes.head, classes.after, c, r, box)
        else:
            for j in range(d):
                box[0, j], box[1, j] = classes.low[c, j], classes.high[c, j]
        gain = classes.rows[c] * classes.loss[c] - (classes.rows[c] - 1) * rest - _LEAST
        _, q = _nearest(table, index, low[t], high[t], 1, gain, p, p)
        if q < 0:
            continue
        other = index.ids[q]
        _unlink(classes.head, classes.after, classes.before, c, r)
        _link(classes.head, classes.after, classes.before, other, r)
        group[r] = other
        classes.rows[c] -= 1
        classes.rows[other] += 1
        classes.low[c] = box[0]
        classes.high[c] = box[1]
        classes.loss[c] = rest
        widen(classes.low, classes.high, other, low, high, t)
        classes.loss[other] = box_loss(kind, at, size, flat, cap, bound, classes.low, classes.high, other)
        _follow(classes, index, c)
        _follow(classes, index, other)
        moved += 1
    return moved


@njit(nogil=True, cache=True)
def _follow(classes, index, c):  # type: ignore[no-untyped-def]
    """The index has what class c is now."""
    p, boxes = index.place_of[c], index.boxes
    boxes.alive[p], boxes.mass[p], boxes.loss[p] = classes.rows[c], classes.rows[c], classes.loss[c]
    if classes.rows[c] > 0:
        put_box(boxes, p, classes.low[c], classes.high[c])


@njit(nogil=True, cache=True)
def _dissolve_classes(table, classes, index, k):  # type: ignore[no-untyped-def]
    """Classes whose rows cost less in others are dissolved. Returns how many are."""
    kind, at, size, flat, cap, bound = table.parts
    low, high, of, group = table.low, table.high, table.of, table.group
    boxes, d = index.boxes, low.shape[1]
    dissolved = 0
    for place in np.argsort(-boxes.loss, kind="mergesort"):
        c = index.ids[place]
        if classes.rows[c] == 0 or classes.rows[c] > 3 * k or classes.loss[c] == 0.0:
            continue
        allowed = classes.rows[c] * classes.loss[c] - _LEAST
        members = np.empty(classes.rows[c], np.int64)
        to, old_loss = np.empty(classes.rows[c], np.int64), np.empty(classes.rows[c])
        old_low, old_high = np.empty((classes.rows[c], d), np.int32), np.empty((classes.rows[c], d), np.int32)
        new_low, new_high = np.empty((1, d), np.int32), np.empty((1, d), np.int32)
        r, moved, fits = classes.head[c], 0, True
        boxes.alive[place] = 0
        while r >= 0:
            t = of[r]
            increase, q = _nearest(table, index, low[t], high[t], 1, allowed, place, -1)
            if q < 0:
                fits = False
                break
            members[moved], to[moved], old_loss[moved] = r, q, boxes.loss[q]
            old_low[moved], old_high[moved] = boxes.first[:, q], boxes.last[:, q]
            new_low[0], new_high[0] = old_low[moved], old_high[moved]
            widen(new_low, new_high, 0, low, high, t)
            put_box(boxes, q, new_low[0], new_high[0])
            boxes.loss[q] = box_loss(kind, at, size, flat, cap, bound, new_low, new_high, 0)
            boxes.mass[q] += 1
            boxes.alive[q] += 1
            allowed -= increase
            moved += 1
            r = classes.after[r]
        if fits:
            for i in range(moved):
                r, other = members[i], index.ids[to[i]]
                _unlink(classes.head, classes.after, classes.before, c, r)
                _link(classes.head, classes.after, classes.before, other, r)
                group[r] = other
                classes.rows[other] += 1
                widen(classes.low, classes.high, other, low, high, of[r])
                classes.loss[other] = boxes.loss[to[i]]
            classes.rows[c] = 0
            boxes.mass[place] = 0
            classes.loss[c] = 0.0
            dissolved += 1
        else:
            for i in range(moved - 1, -1, -1):
                q = to[i]
                boxes.first[:, q], boxes.last[:, q] = old_low[i], old_high[i]
                boxes.mass[q] -= 1
                boxes.alive[q] -= 1
                boxes.loss[q] = old_loss[i]
            boxes.alive[place] = classes.rows[c]
    # The loss of several classes that a row was moved to is that of the last row.
    for p in range(len(index.ids)):
        classes.loss[index.ids[p]] = boxes.loss[p]
    return dissolved


@njit(nogil=True, cache=True)
def _gathered_around(table, classes, index, c, k, neighbours):  # type: ignore[no-untyped-def]
    """A class and so many of its nearest: a list of classes."""
    together = [c]
    pool_rows = classes.rows[c]
    for _ in range(neighbours):
        for e in together:
            index.boxes.alive[index.place_of[e]] = 0
        _, q = _nearest(
            table, index, classes.low[c], classes.high[c], classes.rows[c], 1e300, index.place_of[c], -1
        )  # fmt: skip
        if q < 0 or pool_rows + classes.rows[index.ids[q]] > _CROWD * k:
            break
        together.append(index.ids[q])
        pool_rows += classes.rows[index.ids[q]]
    for e in together:
        index.boxes.alive[index.place_of[e]] = classes.rows[e]
    return together


@njit(nogil=True, cache=True)
def _grow_classes_anew(table, classes, index, k, seed, turn, neighbours, tries):  # type: ignore[no-untyped-def]
    """Each class and its neighbours are taken apart and grown anew, if that loses less. Returns how often it did."""
    changed = 0
    free = np.flatnonzero(classes.rows == 0)
    n_free = len(free)
    for place in seeding_order(len(index.ids), keyed(seed, turn, 2)):
        c = index.ids[place]
        if classes.rows[c] == 0 or classes.loss[c] == 0.0:
            continue
        around = 0 if classes.rows[c] >= 2 * k and turn % 2 == 0 else neighbours
        together = _gathered_around(table, classes, index, c, k, around)
        pool_rows = np.int64(0)
        before_loss = 0.0
        for e in together:
            pool_rows += classes.rows[e]
            before_loss += classes.rows[e] * classes.loss[e]
        if pool_rows < 2 * k or pool_rows > _CROWD * k:
            continue
        pool = np.empty(pool_rows, np.int64)
        _fill(pool, classes.head, classes.after, together)
        for attempt in range(tries):
            made, local, local_low, local_high, local_rows, local_loss, total = _grown_anew(
                table.parts, table.low, table.high, table.of, pool, k, keyed(seed, turn * tries + attempt, c)
            )
            if total >= before_loss - _LEAST or made > len(together) + n_free:
                continue
            slots = np.empty(made, np.int64)
            for i in range(made):
                if i < len(together):
                    slots[i] = together[i]
                else:
                    n_free -= 1
                    slots[i] = free[n_free]
            for e in together:
                classes.head[e] = -1
                classes.rows[e] = 0
                classes.loss[e] = 0.0
            for i in range(pool_rows):
                e = slots[local[i]]
                _link(classes.head, classes.after, classes.before, e, pool[i])
                table.group[pool[i]] = e
            for i in range(made):
                e = slots[i]
                classes.rows[e] = local_rows[i]
                classes.low[e], classes.high[e], classes.loss[e] = local_low[:, i], local_high[:, i], local_loss[i]
            for e in together:
                _follow(classes, index, e)
            before_loss = total
            changed += 1
            # Those that have no place in the index yet stay out of it until the next round.
            if made > len(together):
                break
            together = [slots[0]]
            for i in range(1, made):
                together.append(slots[i])
            _fill(pool, classes.head, classes.after, together)
    return changed


@njit(nogil=True, cache=True)
def _renumber(group, capacity):  # type: ignore[no-untyped-def]
    """Numbers the classes from 0 in the order of their first rows; returns how many there are."""
    names = np.full(capacity, -1, np.int64)
    made = 0
    for r in range(len(group)):
        if names[group[r]] < 0:
            names[group[r]] = made
            made += 1
        group[r] = names[group[r]]
    return made


@njit(nogil=True, cache=True)
def _join_leftovers(  # type: ignore[no-untyped-def]
    parts, low, high, of, group, head, after, before, rows, class_low, class_high, class_loss
):
    """Rows of no class join the one where the loss rises least; there are fewer than k of them."""
    kind, at, size, flat, cap, bound = parts
    d = low.shape[1]
    for r in range(len(of)):
        if group[r] >= 0:
            continue
        t = of[r]
        best, chosen = 1e300, np.int64(-1)
        for c in np.flatnonzero(rows):
            total = 0.0
            for j in range(d):
                a, b = min(class_low[c, j], low[t, j]), max(class_high[c, j], high[t, j])
                total += interval_loss(kind, at, size, flat, cap, bound, j, a, b)
            increase = (rows[c] + 1) * total - rows[c] * class_loss[c]
            if increase < best:
                best, chosen = increase, c
        group[r] = chosen
        _link(head, after, before, chosen, r)
        rows[chosen] += 1
        widen(class_low, class_high, chosen, low, high, t)
        class_loss[chosen] = box_loss(kind, at, size, flat, cap, bound, class_low, class_high, chosen)


@njit(nogil=True, cache=True)
def _at_edge(box_low, box_high, low, high):  # type: ignore[no-untyped-def]
    """Whether the box low..high touches the edge of the box around it, so that this may be smaller without it."""
    touches = False
    for j in range(len(low)):
        touches |= low[j] == box_low[j] or high[j] == box_high[j]
    return touches


@njit(nogil=True, cache=True)
def _grown_anew(parts, low, high, of, pool, k, seed):  # type: ignore[no-untyped-def]
    """Classes of the rows pool int64[p] grown from random seeds: (number, class int64[p], boxes int32[d, p / k], rows,
    loss, sum of all). O(p^2 d)."""
    kind, at, size, flat, cap, bound = parts
    p, d = len(pool), low.shape[1]
    most = p // k
    local = np.full(p, -1, np.int64)
    box_low, box_high = np.zeros((d, most), np.int32), np.zeros((d, most), np.int32)
    rows, loss = np.zeros(most, np.int64), np.zeros(most)
    # The rows that are in no class come first, and their boxes lie column by column.
    waiting = np.arange(p)
    first, last, sums = np.empty((d, p), np.int32), np.empty((d, p), np.int32), np.empty(p)
    for i in range(p):
        for j in range(d):
            first[j, i], last[j, i] = low[of[pool[i]], j], high[of[pool[i]], j]
    box = np.empty((2, 1, d), np.int32)
    left, made = p, 0
    state = mix(seed)
    while left >= k and made < most:
        state = mix(state)
        chosen = np.int64(state % np.uint64(left))
        box[0, 0], box[1, 0] = first[:, chosen], last[:, chosen]
        while True:
            local[waiting[chosen]] = made
            rows[made] += 1
            for j in range(d):
                box[0, 0, j] = min(box[0, 0, j], first[j, chosen])
                box[1, 0, j] = max(box[1, 0, j], last[j, chosen])
                first[j, chosen], last[j, chosen] = first[j, left - 1], last[j, left - 1]
            waiting[chosen] = waiting[left - 1]
            left -= 1
            if rows[made] == k:
                break
            joined_losses(parts, box[0, 0], box[1, 0], first, last, 0, left, 1e300, sums)
            chosen = np.argmin(sums[:left])
        box_low[:, made], box_high[:, made] = box[0, 0], box[1, 0]
        loss[made] = box_loss(kind, at, size, flat, cap, bound, box[0], box[1], 0)
        made += 1
    for turn in range(1 + _PASSES):
        changed = 0
        for i in range(p):
            c, t = local[i], of[pool[i]]
            gain = 1e300
            rest = 0.0
            if c >= 0:
                if turn == 0 or rows[c] <= k:
                    continue
                box[0, 0], box[1, 0] = box_low[:, c], box_high[:, c]
                if _at_edge(box[0, 0], box[1, 0], low[t], high[t]):
                    begun = False
                    for e in range(p):
                        if local[e] == c and e != i:
                            u = of[pool[e]]
                            if begun:
                                widen(box[0], box[1], 0, low, high, u)
                            else:
                                box[0, 0], box[1, 0] = low[u], high[u]
                            begun = True
                rest = box_loss(kind, at, size, flat, cap, bound, box[0], box[1], 0)
                gain = rows[c] * loss[c] - (rows[c] - 1) * rest - _LEAST
                if gain <= 0.0:
                    continue
            best, chosen = gain, np.int64(-1)
            joined_losses(parts, low[t], high[t], box_low, box_high, 0, made, 1e300, sums)
            for e in range(made):
                increase = (rows[e] + 1) * sums[e] - rows[e] * loss[e]
                if e != c and increase < best:
                    best, chosen = increase, np.int64(e)
            if chosen < 0:
                continue
            local[i] = chosen
            rows[chosen] += 1
            loss[chosen] = sums[chosen]
            for j in range(d):
                box_low[j, chosen] = min(box_low[j, chosen], low[t, j])
                box_high[j, chosen] = max(box_high[j, chosen], high[t, j])
            if c >= 0:
                rows[c] -= 1
                box_low[:, c], box_high[:, c], loss[c] = box[0, 0], box[1, 0], rest
            changed += 1
        if changed == 0 and turn > 0:
            break
    total = 0.0
    for c in range(made):
        total += rows[c] * loss[c]
    return made, local, box_low, box_high, rows, loss, total
