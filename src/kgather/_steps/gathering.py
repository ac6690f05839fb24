"""From users to groups: what every method's groups go through."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError, PromiseError
from kgather._methods import Groups, Method, Users
from kgather._methods.users import Asked
from kgather._steps import compiling
from kgather.udfs.diversity.sensitive_diversity import merge_until_diverse
from kgather.udfs.refining.refine import refine

_MANY_PASSES, _MANY_USERS = 20, 20_000


def gather_beside(
    users: Users,
    method: Method,
    options: Any,
    kept: NDArray[np.int64],
    least: int,
    origins: NDArray[np.int64] | None = None,
) -> Groups:
    """Gather those who are in no group yet, in groups of at least `least`, beside the groups that stay as they are.

    kept int64[n]: the group that a user is in, of any number from 0; -1: in none. The groups that stay are numbered
    first, in the order of their numbers. Where none stays and none has a reserve, it is `gather`. origins: as in
    `gather_groups`, which gathers the newcomers where it is given; newcomers of few groups are one where others stay.
    Raises as these do, and PromiseError where a group of origins is in two groups.
    """
    none_stays = bool((kept < 0).all())
    if origins is None and none_stays and least == users.k:
        return gather(users, method, options)
    newcomers = np.flatnonzero(kept < 0)
    stay, groups = np.unique(kept[kept >= 0], return_inverse=True)
    together = np.empty(users.n, dtype=np.int32)
    together[kept >= 0] = groups
    bins = None
    if len(newcomers):
        some = users.some(newcomers, least)
        if origins is None:
            found = gather(some, method, options)
        else:
            found = gather_groups(some, method, options, origins[newcomers], or_one=not none_stays)
        together[newcomers] = found.groups + np.int32(len(stay))
        bins = found.bins if len(newcomers) == users.n else None
    _check_partition(together, np.full(users.n, users.k, dtype=np.int32))
    if origins is not None:
        _check_whole(together, origins)
    return Groups(together, bins)


def gather_groups(
    users: Users, method: Method, options: Any, origins: NDArray[np.int64], *, or_one: bool = False
) -> Groups:
    """Put the groups of another release together, as they are, until each of these has k people.

    origins int64[n]: the group of the other release that a user is in. A method gathers the mean vectors of those, as
    many to a group as the smallest of them needs. or_one: all are one group where they are too few for that. Raises as
    `gather` does, and InputError where all of them together are too few.
    """
    ids, of_user, sizes = np.unique(origins, return_inverse=True, return_counts=True)
    least = -(-users.k // int(sizes.min()))
    if len(ids) < least and or_one and users.n >= users.k:
        return Groups(np.zeros(users.n, dtype=np.int32))
    if len(ids) < least:
        msg = (
            f"the release that this one is within has {len(ids)} groups, and a group of k = {users.k} is made of "
            f"{least} of them. Choose a smaller k."
        )
        raise InputError(msg)
    found = gather(users.means(of_user, sizes, least), method, options)
    together = found.groups[of_user]
    _check_partition(together, np.full(users.n, users.k, dtype=np.int32))
    return Groups(together)


def gather(users: Users, method: Method, options: Any) -> Groups:
    """Gather users by a method with its options, refine the groups, and keep what is sensitive diverse.

    Raises InputError where users or options make no sense to the method, PromiseError where it broke its promise.
    """
    asked = users.asked
    found = method.gather(users, options)
    # Who is left out looks at nobody and is looked at by nobody; where nobody is, nothing is copied.
    left_out = "left_out" in method.tells and bool((found.groups < 0).any())
    kept = np.flatnonzero(found.groups >= 0) if left_out else slice(None)
    mine = groups = found.groups[kept]
    least = _least(users, method)[kept]
    passes = _passes(asked, method, users.n)
    if passes:
        compiling.wait_for_refining()
        groups = refine(users.vectors[kept], groups, least, passes=passes, threads=users.threads)
    if asked.sensitive_l is not None:
        groups = merge_until_diverse(
            users.vectors[kept],
            groups,
            users.sensitive[kept],
            kind=asked.sensitive_diversity,
            l=asked.sensitive_l,
            c=asked.sensitive_c,
            names=users.sensitive_names,
        )
    _check_partition(groups, least)
    unchanged = found.unchanged if groups is mine else None
    if left_out:
        of_all = np.full(users.n, -1, dtype=np.int32)
        of_all[kept] = groups
        groups = of_all
    return Groups(groups, found.bins, unchanged)


def _passes(asked: Asked, method: Method, n: int) -> int:
    """How often groups are refined; the first pass is cheap, and each one after it searches farther."""
    if asked.refine is True:
        return _MANY_PASSES
    if asked.refine == "auto" and method.refines:
        return _MANY_PASSES if n <= _MANY_USERS else 1
    return 0


def _least(users: Users, method: Method) -> NDArray[np.int32]:
    if method.levels:
        return users.levels
    return np.full(users.n, users.k if method.anonymous else 1, dtype=np.int32)


def _check_partition(groups: NDArray[np.int32], least: NDArray[np.int32]) -> None:
    """Whatever the method: each user in exactly one group, each group as large as its members ask for."""
    whole = groups.shape == least.shape and groups.min() >= 0
    too_small = int((np.bincount(groups)[groups] < least).sum()) if whole else len(least)
    if too_small:
        msg = f"{too_small} of {len(least)} users are in no group, or in one that is too small."
        raise PromiseError(msg)


def _check_whole(groups: NDArray[np.int32], origins: NDArray[np.int64]) -> None:
    """Whatever stayed: each group of the other release is in one group."""
    parts = len(np.unique(np.column_stack([origins, groups]), axis=0))
    split = parts - len(np.unique(origins))
    if split:
        msg = f"{split} groups of the release that this one is within are in two groups."
        raise PromiseError(msg)
