"""The same release for somebody who should see larger groups: each one is made of groups of the finer release.

What it shows are means of what the finer release shows, so whoever has both knows no more than from the finer one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._publishing.derived import Source, derive
from kgather._publishing.history import Following, groups_of_last
from kgather._publishing.publish import check_target
from kgather._release.release import Audit
from kgather._settings.publication import PublishSettings
from kgather.udfs.gathering._group_ids import random_group_ids
from kgather.udfs.gathering.bkg import gather

COARSER = "kgather_coarser"
"""The table of a working database that says which groups were put together for a coarser release: (k, lineage, parent);
parent null: the group is withdrawn from all later releases of this k.
"""


def publish_coarser(
    release: Path, target: Path, said: Mapping[str, Any], *, following: Following | None = None, force: bool = False
) -> Audit:
    """Write the release of a larger k whose groups are made of those of `release`, at `target`.

    said: the settings that were given, k among them: they may be no others than those of the finer release. following:
    where the finer release is of a chain, the working database that was kept of it. It keeps which groups are together,
    so that they are in later releases, too: groups that stay stay together, new ones are put together among themselves,
    and what fewer than k people are left of is withdrawn for good.

    Raises InputError where the release is of another form, has no smaller k, or its map is another.
    """
    source = Source.of(release)
    k = _checked(source, said)
    if following is None and (source.audit.parameters.get("history") or source.audit.parameters.get("reserve")):
        msg = f"{release} is of a chain: give --history with what was kept of it, so that groups stay together."
        raise InputError(msg)
    if following is None:
        together = _together(source, np.arange(len(source.groups)), k)
        return derive(source, target, _named(source, together), _parameters(source, k), force=force)
    lineage = _lineages(source, following)
    with duckdb.connect(following.database) as con:
        con.execute(f"create table if not exists {COARSER} (k bigint, lineage bigint, parent bigint)")
        known = dict(con.execute(f"select lineage, parent from {COARSER} where k = ?", [k]).fetchall())
    parents = _parents(source, lineage, known, k)
    together = np.unique(parents, return_inverse=True)[1]
    together = np.where(parents < 0, -1, together)

    def keep() -> None:
        with duckdb.connect(following.database) as con:
            con.execute("begin")
            con.execute(f"delete from {COARSER} where k = ?", [k])
            gone = {one: None for one, parent in known.items() if one not in set(lineage.tolist())}
            now = {int(one): int(parent) for one, parent in zip(lineage, parents, strict=True) if parent >= 0}
            withdrawn = {one: None for one in lineage.tolist() if one in known and one not in now}
            rows = [[k, one, parent] for one, parent in {**gone, **now, **withdrawn}.items()]
            con.executemany(f"insert into {COARSER} values (?, ?, ?)", rows)
            con.execute("commit")

    return derive(source, target, _named(source, together), _parameters(source, k), force=force, before=keep)


def publish_within(
    release: Path, target: Path, asked: PublishSettings, *, history: Path | None = None, force: bool = False
) -> Audit:
    """`publish_coarser` of settings as they are given by name, once the target may be written.

    history: what was kept of the finer release, where that is of a chain. Raises InputError as `publish_coarser` does,
    and where the target is in the way.
    """
    check_target(target.resolve(), [str(release), *([] if history is None else [str(history)])], force=force)
    said = {name: getattr(asked, name) for name in asked.model_fields_set}
    following = None if history is None else Following(history)
    return publish_coarser(release, target, said, following=following, force=force)


def _checked(source: Source, said: Mapping[str, Any]) -> int:
    """The k that is asked for."""
    have = source.audit.parameters
    others = [
        name
        for name, value in said.items()
        if name not in ("k", "metrics", "seed", "threads") and value not in (have.get(name), "auto")
    ]
    if others:
        told = "; ".join(f"{name} was {have.get(name)!r} and is {said[name]!r}" for name in others)
        msg = (
            f"a release within {source.folder} is of the same form: {told}. Whoever has two forms of the same groups "
            "learns from both. Leave these out."
        )
        raise InputError(msg)
    if not source.of_predictions:
        msg = (
            f"{source.folder} shows {have.get('homogenize')}, cells {have.get('cells')}. Coarser groups are made of "
            "predictions of all or the top items only: others would have to be computed from the ratings again."
        )
        raise InputError(msg)
    k, finer = int(said["k"]), int(have["k"])
    if k <= finer:
        msg = f"--k {k} is not coarser than {source.folder}, whose k is {finer}. Give a larger --k."
        raise InputError(msg)
    if int(source.sizes.sum()) < k:
        msg = f"{source.folder} has fewer than {k} people. Give a smaller --k."
        raise InputError(msg)
    return k


def _parameters(source: Source, k: int) -> dict[str, Any]:
    return {"k": k, "within": int(source.audit.parameters["k"])}


def _lineages(source: Source, following: Following) -> NDArray[np.int64]:
    """The lineage of each group of the release, int64[g]."""
    last = groups_of_last(following)
    if set(source.groups.tolist()) - set(last):
        msg = f"{following.database} is not the map of {source.folder}. Give --history what was kept of this release."
        raise InputError(msg)
    return np.array([last[group] for group in source.groups.tolist()], dtype=np.int64)


def _parents(source: Source, lineage: NDArray[np.int64], known: Mapping[int, int | None], k: int) -> NDArray[np.int64]:
    """The coarser group of each group, by the lineage that it is called after, int64[g]; -1: in none."""
    parents = np.array([known.get(one, -2) if known.get(one, -2) is not None else -1 for one in lineage.tolist()])
    new = np.flatnonzero(parents == -2)
    parents[new] = -1
    if len(new) and int(source.sizes[new].sum()) >= k:
        for group in np.split(new[np.argsort(places := _together(source, new, k), kind="stable")],
                              np.cumsum(np.bincount(places))[:-1]):  # fmt: skip
            parents[group] = lineage[group[0]]
    for parent in np.unique(parents[parents >= 0]):
        if int(source.sizes[parents == parent].sum()) < k:
            parents[parents == parent] = -1
    return parents.astype(np.int64)


def _together(source: Source, some: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Groups, int64[n] places, that are put together, int64[n] from 0: near ones, of at least k people each."""
    each = -(-k // int(source.sizes[some].min()))
    if len(some) < 2 * each:
        return np.zeros(len(some), dtype=np.int64)
    return gather(source.vectors()[some], each).astype(np.int64)


def _named(source: Source, together: NDArray[np.int64]) -> dict[int, int]:
    """The new id of each group that is shown."""
    ids = random_group_ids(int(together.max()) + 1, taken=source.groups)
    kept = together >= 0
    return dict(zip(source.groups[kept].tolist(), ids[together[kept]].tolist(), strict=True))
