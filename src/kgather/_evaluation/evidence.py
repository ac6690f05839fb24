"""A release beside what it was made of, and the secret map between the two: what metrics and attacks start from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.candidates import Candidates, ShownCells, ShownVectors
from kgather._methods.users import FILLS
from kgather._sql_text import identifier
from kgather.udfs._shared.arrow_columns import vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix

_BATCH_ROWS = 1 << 20


class OtherReleaseError(InputError):
    """The working database is that of another release."""

    def __init__(self) -> None:
        super().__init__("the working database belongs to another release: it has other groups, members or items.")


@dataclass(frozen=True)
class Scale:
    """The scale of the ratings; step is None where they are not spaced evenly."""

    low: float
    high: float
    step: float | None

    @property
    def width(self) -> float:
        """How far apart two ratings can be."""
        return self.high - self.low


@dataclass(frozen=True)
class Evidence:
    """A release with the truth beside it: as secret as the original.

    original: the staged ratings, all users by code. shown: what the release shows. truth int32[n_users]: the candidate
    that is the user's, -1 for users who were set aside. groups int32[n_users]: the user's group, numbered from 0, -1
    likewise; it is `truth` unless users have rows of their own. shown_items bool[n_items]: the items of the release.
    items: their ids by code. scale: that of the original. parameters: what the release was made with.
    group_ids int64[g] by group code, as the release names them. user_ids: original ids by user code, never to be shown.
    days float32[nnz]: when the ratings of the original were given, in days, NaN where that is not known; None where it
    was not read. vectors float[n_users, d]: what users were compared in, NaN for those who were set aside because they
    rated no artifact; space: what that is, in words. None and empty where there is nothing, or where it was not read.
    preferences: what was learnt; None likewise.

    Where `original` has only some people of the release, all members of some groups: raters int64[n_items], how many of
    all people rated each item, and people, how many there are; None where everybody is there.
    """

    original: RatingMatrix
    shown: Candidates
    truth: NDArray[np.int32]
    groups: NDArray[np.int32]
    shown_items: NDArray[np.bool_]
    items: pa.Array
    scale: Scale
    parameters: Mapping[str, Any]
    group_ids: NDArray[np.int64]
    user_ids: pa.Array | None = field(default=None, repr=False)
    days: NDArray[np.float32] | None = field(default=None, repr=False)
    vectors: NDArray[np.float32] | NDArray[np.float64] | None = field(default=None, repr=False)
    space: str = ""
    preferences: Preferences | None = field(default=None, repr=False)
    raters: NDArray[np.int64] | None = None
    people: int | None = None

    @property
    def fill(self) -> float:
        """The number that stands for a rating that is not there; NaN where it is each user's own prediction."""
        asked = self.parameters.get("fill", "median")
        if asked == "prediction":
            return float("nan")
        if asked == "mean":
            return float(self.original.values.mean(dtype=np.float64))
        return (self.scale.low + self.scale.high) / 2

    @property
    def filled_with(self) -> str:
        """What that is, in words."""
        return FILLS[str(self.parameters.get("fill", "median"))]

    @property
    def gathered(self) -> NDArray[np.int64]:
        """The codes of the users who are in the release, int64, ascending."""
        return np.flatnonzero(self.truth >= 0)

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Members of each group, int64[g]."""
        return np.bincount(self.groups[self.groups >= 0], minlength=len(self.group_ids))


def read_evidence(
    con: duckdb.DuckDBPyConnection,
    work: str,
    release: str,
    parameters: Mapping[str, Any],
    *,
    days: bool = False,
    vectors: bool = False,
) -> Evidence:
    """Read a release and the working database it was made in, attached to `con` under the two names.

    days: read when the ratings were given, too. vectors: read what was learnt and what users were compared in, too.
    Raises InputError where the working database is of another release.
    """
    items = con.sql(f"select item_id from {work}.int_kgather__items order by item_code").to_arrow_table()
    users = con.sql(f"select user_id, rated from {work}.int_kgather__users order by user_code").to_arrow_table()
    original = RatingMatrix.from_batches(
        con.sql(f"from {work}.int_kgather__coded_ratings").to_arrow_reader(_BATCH_ROWS),
        len(users),
        len(items),
        users["rated"].to_numpy(),
    )
    [scale] = con.sql(f"select scale_min, scale_max, scale_step from {work}.int_kgather__scale").fetchall()
    codes, group_of_user, pseudonyms = _columns(
        con, f"select user_code, group_id, pseudonym from {work}.int_kgather__gathered order by user_code"
    )
    released = read_released(con, work, release)
    groups = np.full(len(users), -1, dtype=np.int32)
    groups[codes] = _places(released.group_ids, group_of_user)
    truth = groups
    if released.members is not None:
        truth = np.full(len(users), -1, dtype=np.int32)
        truth[codes] = _places(released.members, pseudonyms.astype(str))
    evidence = Evidence(
        original=original,
        shown=released.shown,
        truth=truth,
        groups=groups,
        shown_items=shown_items_of(released.shown),
        items=items["item_id"].combine_chunks(),
        scale=Scale(*scale),
        parameters=parameters,
        group_ids=released.group_ids,
        user_ids=users["user_id"].combine_chunks(),
        days=_days(con, work) if days else None,
    )
    return _with_vectors(con, work, evidence) if vectors else evidence


def _with_vectors(con: duckdb.DuckDBPyConnection, work: str, evidence: Evidence) -> Evidence:
    """The evidence with what was learnt and what users were compared in, as the pipeline compared them."""
    # Imported here: they load the kernels of gathering, which attacks do not need.
    from kgather._methods import Users, registered
    from kgather._settings.publication import PublishSettings
    from kgather._steps.groups import artifact_table
    from kgather.udfs.preferences import model

    said = {name: value for name, value in evidence.parameters.items() if name in PublishSettings.model_fields}
    method = registered().get(str(said.get("method")))
    if method is None or not method.anonymous:
        return evidence
    [(learnt,)] = con.sql(f"select count(*) from {work}.int_kgather__factors").fetchall()
    factors = con.sql(f"from {work}.int_kgather__factors")
    preferences = model.from_table(factors.to_arrow_reader(_BATCH_ROWS)) if learnt else None
    on_artifacts = method.gathers_on == "artifacts"
    asked = PublishSettings.from_options(said | {"i_know_this_is_not_anonymous": True}, [])
    codes, artifacts, categorical = np.arange(evidence.original.n_users), np.empty((0, 0)), np.empty(0, dtype=bool)
    if on_artifacts:
        rated, others = (con.sql(f"from {work}.int_kgather__artifact_{name}") for name in ("ratings", "categories"))
        codes, artifacts, categorical = artifact_table(rated, others, len(asked.categorical_artifacts))
    n_users, n_items = evidence.original.n_users, evidence.original.n_items
    users = Users(
        n=len(codes),
        read_ratings=lambda: evidence.original,
        preferences=preferences,
        artifacts=artifacts,
        levels=np.empty(0, dtype=np.int32),
        sensitive=np.empty((0, 0)),
        sensitive_names=[],
        identifying=np.ones(n_items, dtype=bool),
        scale=(evidence.scale.low, evidence.scale.high),
        asked=asked,
        threads=1,
        on_artifacts=on_artifacts,
        categorical=categorical,
    )
    if preferences is None and not on_artifacts and users.asked.metric != "filled":
        return evidence  # a method of another package may do without
    vectors = users.vectors
    if on_artifacts:
        vectors = np.full((n_users, users.vectors.shape[1]), np.nan)
        vectors[codes] = users.vectors
    space = users.space
    if method.looks_at != "vectors":
        space += f"; method {method.name} looks at: {method.looks_at}"
    return replace(evidence, vectors=vectors, space=space, preferences=preferences)


def _days(con: duckdb.DuckDBPyConnection, work: str) -> NDArray[np.float32]:
    """The days of the ratings, float32[nnz], in the order of users and items; NaN where a rating has no date."""
    [days] = _columns(
        con,
        f"""
        select cast(coalesce(epoch(ratings.rated_at) / 86400, 'nan') as float) as days
        from {work}.stg_kgather__ratings as ratings
        join {work}.int_kgather__users as users using (user_id)
        join {work}.int_kgather__items as items using (item_id)
        order by users.user_code, items.item_code
        """,
    )
    return days


@dataclass(frozen=True)
class Released:
    """What a release alone says, with the item codes of a working database.

    members: the pseudonyms of the candidates, ascending, where they are users, with their groups in member_groups
    int32[n]; None where the candidates are the groups.
    """

    shown: Candidates
    group_ids: NDArray[np.int64]
    members: NDArray[np.str_] | None
    member_groups: NDArray[np.int32] | None


def read_released(con: duckdb.DuckDBPyConnection, work: str, release: str) -> Released:
    """Read what a release shows; names and errors as in `read_evidence`."""
    try:
        return _read_released(con, work, release)
    except duckdb.ConversionException:
        # Ids of another type; what DuckDB says of them names one.
        raise OtherReleaseError from None


def _read_released(con: duckdb.DuckDBPyConnection, work: str, release: str) -> Released:
    [(n_items, low, high)] = con.sql(
        f"select (select count(*) from {work}.int_kgather__items), scale_min, scale_max from {work}.int_kgather__scale"
    ).fetchall()
    group_ids, sizes = _columns(con, f"select group_id, group_size from {release}.kgather__groups order by group_id")
    tables = {
        name
        for (name,) in con.execute(
            "select table_name from duckdb_tables() where database_name = ?", [release]
        ).fetchall()
    }
    if "kgather__user_ratings" in tables:
        members, member_groups = _columns(
            con, f"select pseudonym, group_id from {release}.kgather__members order by pseudonym"
        )
        rows = _rows_of_users(con, work, release, n_items, len(members))
        return Released(rows, group_ids, members.astype(str), _places(group_ids, member_groups))
    shown: Candidates
    if "kgather__group_vectors" in tables:
        shown = _vectors(con, work, release, n_items, (low, high), sizes)
    elif "kgather__ratings" in tables:
        shown = _cells_of_groups(con, work, release, n_items, sizes)
    else:
        shown = _generalized(con, work, release, n_items, group_ids, sizes)
    return Released(shown, group_ids, None, None)


def _columns(con: duckdb.DuckDBPyConnection, query: str) -> list[NDArray[Any]]:
    table = con.sql(query).to_arrow_table()
    return [column.to_numpy() for column in table.columns]


def _places(names: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int32]:
    """The places of the wanted among the names, which are in ascending order."""
    places = np.minimum(np.searchsorted(names, wanted), max(len(names) - 1, 0))
    if len(names) == 0 or not np.array_equal(names[places], wanted):
        raise OtherReleaseError
    return places.astype(np.int32)


def _coded(work: str, relation: str) -> str:
    return f"{relation} as shown join {work}.int_kgather__items as items using (item_id)"


def _cells_of_groups(
    con: duckdb.DuckDBPyConnection, work: str, release: str, n_items: int, sizes: NDArray[np.int64]
) -> ShownCells:
    return _listed(con, work, f"{release}.kgather__ratings", f"{release}.kgather__groups", "group_id", n_items, sizes)


def _rows_of_users(con: duckdb.DuckDBPyConnection, work: str, release: str, n_items: int, members: int) -> ShownCells:
    names, sizes = f"{release}.kgather__members", np.ones(members, dtype=np.int64)
    return _listed(con, work, f"{release}.kgather__user_ratings", names, "pseudonym", n_items, sizes)


def _listed(
    con: duckdb.DuckDBPyConnection, work: str, cells: str, names: str, key: str, n_items: int, sizes: NDArray[np.int64]
) -> ShownCells:
    """The cells of a relation; `names` has the candidates, of which `key` is the name, in ascending order."""
    [(listed,)] = con.sql(f"select count(*) from {cells}").fetchall()
    if not listed:
        nothing = np.empty(0, dtype=np.int64)
        return ShownCells.from_cells(sizes, n_items, nothing, nothing, nothing, nothing)
    # A candidate stands in the place of a user.
    shown = RatingMatrix.from_batches(
        con.sql(
            f"""
            select place as user_code, item_code, rating
            from {_coded(work, cells)}
            join (
              select {key}, cast(row_number() over (order by {key}) - 1 as integer) as place
              from {names}
            ) using ({key})
            """
        ).to_arrow_reader(_BATCH_ROWS),
        len(sizes),
        n_items,
    )
    if shown.nnz != listed:
        raise OtherReleaseError
    return ShownCells.from_matrix(sizes, shown)


def _vectors(
    con: duckdb.DuckDBPyConnection,
    work: str,
    release: str,
    n_items: int,
    scale: tuple[float, float],
    sizes: NDArray[np.int64],
) -> ShownVectors:
    groups = con.sql(f"select level, factor from {release}.kgather__group_vectors order by group_id").to_arrow_table()
    items = con.sql(
        f"select item_code, level, factor from {_coded(work, f'{release}.kgather__item_vectors')}"
    ).to_arrow_table()
    table = vectors(groups["factor"].combine_chunks(), "factor")
    codes = items["item_code"].to_numpy()
    level = np.full(n_items, np.nan, dtype=np.float32)
    factor = np.zeros((n_items, table.shape[1]), dtype=np.float32)
    level[codes], factor[codes] = items["level"].to_numpy(), vectors(items["factor"].combine_chunks(), "factor")
    return ShownVectors(sizes, groups["level"].to_numpy().astype(np.float32), table, level, factor, scale)


def _generalized(
    con: duckdb.DuckDBPyConnection,
    work: str,
    release: str,
    n_items: int,
    group_ids: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> ShownCells:
    """Cells from the generalized table: a set of values, or a range, where 0 stands for not rated."""
    relation = f"{release}.kgather__generalized"
    ids = dict(con.sql(f"select cast(item_id as varchar), item_code from {work}.int_kgather__items").fetchall())
    rows, codes, lows, highs = [], [], [], []
    described = con.sql(f"from {relation}")
    for name, kind in zip(described.columns, described.types, strict=True):
        if name == "group_id" or name not in ids or kind.id not in ("list", "struct"):
            continue
        cell = identifier(name)
        # Who rated the item gave one of the values that are not 0; what a range leaves open stays open.
        rated = f"list_filter({cell}, lambda kg_v: kg_v <> 0)"
        bounds = (f"list_min({rated})", f"list_max({rated})") if kind.id == "list" else (f"{cell}.low", f"{cell}.high")
        groups, low, high = _columns(
            con,
            f"select group_id, any_value({bounds[0]}) as low, any_value({bounds[1]}) as high from {relation} "
            f"where {bounds[0]} is not null group by group_id",
        )
        rows.append(_places(group_ids, groups))
        codes.append(np.full(len(groups), ids[name]))
        lows.append(low)
        highs.append(high)
    if not rows:
        msg = "the release shows no artifacts that the original has."
        raise InputError(msg)
    return ShownCells.from_cells(sizes, n_items, *(np.concatenate(arrays) for arrays in (rows, codes, lows, highs)))


def shown_items_of(shown: Candidates) -> NDArray[np.bool_]:
    """The items that somebody is shown something of, bool[m]."""
    if isinstance(shown, ShownVectors):
        return ~np.isnan(shown.item_levels)
    assert isinstance(shown, ShownCells)
    return np.diff(shown.indptr) > 0
