"""From users to groups: what every method's groups go through."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._errors import PromiseError
from kgather._methods import Groups, Method, Users
from kgather._methods.users import Asked
from kgather._steps import compiling
from kgather.udfs.diversity.sensitive_diversity import merge_until_diverse
from kgather.udfs.refining.refine import refine

_MANY_PASSES, _MANY_USERS = 20, 20_000


def gather(users: Users, method: Method, options: Any) -> Groups:
    """Gather users by a method with its options, refine the groups, and keep what is sensitive diverse.

    Raises InputError where users or options make no sense to the method, PromiseError where it broke its promise.
    """
    asked = users.asked
    found = method.gather(users, options)
    groups = found.groups
    least = _least(users, method)
    passes = _passes(asked, method, users.n)
    if passes:
        compiling.wait()
        groups = refine(users.vectors, groups, least, passes=passes, threads=users.threads)
    if asked.sensitive_l is not None:
        groups = merge_until_diverse(
            users.vectors,
            groups,
            users.sensitive,
            kind=asked.sensitive_diversity,
            l=asked.sensitive_l,
            c=asked.sensitive_c,
            names=users.sensitive_names,
        )
    _check_partition(groups, least)
    unchanged = found.unchanged if groups is found.groups else None
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


def _check_partition(groups: np.ndarray, least: np.ndarray) -> None:
    """Whatever the method: each user in exactly one group, each group as large as its members ask for."""
    whole = groups.shape == least.shape and groups.min() >= 0
    too_small = int((np.bincount(groups)[groups] < least).sum()) if whole else len(least)
    if too_small:
        msg = f"{too_small} of {len(least)} users are in no group, or in one that is too small."
        raise PromiseError(msg)
