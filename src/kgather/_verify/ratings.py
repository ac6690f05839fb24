"""Privacy models of ratings, one row for each pair of user and item, measured by the kernels."""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import duckdb

from kgather._errors import InputError, quoted
from kgather._loaders import LoadOptions
from kgather._release.release import Check
from kgather._sql_text import identifier, literal
from kgather._verify.asked import Asked
from kgather._verify.users_ratings import of_cells
from kgather._verify.verdicts import at_least

if TYPE_CHECKING:
    from kgather.udfs.ratings.matrix import RatingMatrix

Found = Callable[[str | None, str], str | None]
UsersRatings = tuple[str, LoadOptions, float]  # where they are, how they are read, how many may be unreadable

# Ids as numbers from 0, in a table, so that the file is read once.
_CODED = "kgather_verified_pairs"


def checks(
    con: duckdb.DuckDBPyConnection, relation: str, found: Found, asked: Asked, users_ratings: UsersRatings | None = None
) -> Iterator[Check]:
    """Check km-anonymity, (k, epsilon)- and (k, epsilon, l)-anonymity and (b, l)-diversity, as asked.

    users_ratings: those of which (b, l)-diversity takes the sets of items; the relation's own where not given.

    `found` gives the column of an option, or the one with the usual name. Rows whose rating is null are no ratings;
    without a rating column every row is one. Raises InputError for missing columns, null ids, and ratings that are no
    numbers or that occur twice.
    """
    named = {
        "user": found(asked.user_column, "user_id"),
        "item": found(asked.item_column, "item_id"),
        "rating": found(asked.rating_column, "rating"),
        "group": found(asked.group_column, "group_id"),
    }
    if asked.b is not None and asked.m is None and asked.epsilon is None:
        # Where there are no users, every group stands for one.
        named["user"] = named["user"] or named["group"]
    for role in ("user", "item", *(["rating"] if asked.epsilon is not None else [])):
        if named[role] is None:
            msg = f"there is no column {role}{'' if role == 'rating' else '_id'}. Name it with --{role}-column."
            raise InputError(msg)
    # Where there are no groups, every user is one.
    named["group"] = named["group"] or named["user"]
    _code(con, relation, named)
    if asked.k is not None and asked.m is not None:
        yield _of_item_sets(con, asked.k, asked.m)
    if asked.k is not None and asked.epsilon is not None:
        yield from _of_distances(con, asked.k, asked.epsilon, asked)
    if asked.b is not None and asked.l is not None:
        if users_ratings is None:
            yield _of_groups(con, asked.b, int(asked.l))
        else:
            cells = con.sql(f"select distinct group_code, item from {_CODED}").to_arrow_table()
            source, options, share = users_ratings
            yield from of_cells(cells, source, options, asked.b, int(asked.l), max_rejected_share=share)


def _code(con: duckdb.DuckDBPyConnection, relation: str, named: dict[str, str | None]) -> None:
    ids = {role: identifier(name) for role in ("user", "item", "group") if (name := named[role]) is not None}
    rating = identifier(named["rating"]) if named["rating"] else "1"
    rated = f"(select * from {relation} where {rating} is not null)"
    if _one(con, f"select count(*) from {rated} where {' or '.join(f'{column} is null' for column in ids.values())}"):
        msg = "there are ratings whose user, item or group is null: nobody can tell whose they are. Leave them out."
        raise InputError(msg)
    codes = ", ".join(f"of_{role}.code as {role}_code" for role in ids)
    joins = " ".join(
        f"join (select id, row_number() over (order by id) - 1 as code "
        f"from (select distinct {_seen(role, column)} as id from {rated})) as of_{role} "
        f"on of_{role}.id = {_seen(role, f'rated.{column}')}"
        for role, column in ids.items()
    )
    con.execute(
        f"create or replace temp table {_CODED} as "
        f"select {codes}, {f'rated.{rating}' if named['rating'] else '1'} as rating, "
        f"cast(rated.{ids['item']} as varchar) as item from {rated} as rated {joins}"
    )


def _seen(role: str, column: str) -> str:
    """An id of an item is what a reader sees of it; those of people are in one form already."""
    return f"encode(cast({column} as varchar))" if role == "item" else column


def _of_item_sets(con: duckdb.DuckDBPyConnection, k: int, m: int) -> Check:
    from kgather.udfs.checking.item_sets import least_support

    matrix = _matrix(con, f"select distinct user_code, item_code, 1 as rating from {_CODED}")
    measured = None if matrix is None else least_support(matrix, m)
    return at_least(f"k^m-anonymity: users with the set of up to {m} items that the fewest have", k, measured)


def _of_distances(con: duckdb.DuckDBPyConnection, k: int, epsilon: float, asked: Asked) -> Iterator[Check]:
    from kgather.udfs.checking.satisfaction import fewest_neighbours, least_deviation

    [(high, kind)] = con.sql(f"select max(rating), any_value(typeof(rating)) from {_CODED}").fetchall()
    if high is not None and kind in ("VARCHAR", "BOOLEAN"):
        msg = f"the ratings are {kind}, not numbers. Name their column with --rating-column."
        raise InputError(msg)
    sensitive = _sensitive_items(con, asked)
    matrix = _matrix(con, f"select user_code, item_code, rating from {_CODED}")
    near = deviation = None
    if matrix is not None:
        r = asked.width or float(high)
        if r <= 0:
            msg = "no rating is above 0, so how far rated is from not rated must be said with --width."
            raise InputError(msg)
        threads = len(os.sched_getaffinity(0))
        others = matrix.with_items(_without(matrix, sensitive))
        near = fewest_neighbours(others, epsilon, r=r, at_most=k, threads=threads)
        if sensitive:
            deviation = least_deviation(others, _columns(matrix, sensitive), epsilon, r=r, threads=threads)
    yield at_least(f"(k, epsilon)-anonymity: users within {epsilon:g} of each user, counted up to {k}", k, near)
    if asked.sensitive_items:
        yield at_least("(k, epsilon, l)-anonymity: least standard deviation among them", asked.l, deviation)


def _sensitive_items(con: duckdb.DuckDBPyConnection, asked: Asked) -> list[int]:
    """The codes of the sensitive items."""
    if not asked.sensitive_items:
        return []
    wanted = ", ".join(map(literal, asked.sensitive_items))
    found = dict(con.sql(f"select distinct item, item_code from {_CODED} where item in ({wanted})").fetchall())
    unknown = [name for name in asked.sensitive_items if name not in found]
    if unknown and _one(con, f"select count(*) from {_CODED}"):
        msg = f"nobody rated {quoted(unknown)}, which --sensitive-items names. Name items as the ratings do."
        raise InputError(msg)
    return list(found.values())


def _of_groups(con: duckdb.DuckDBPyConnection, b: int, least: int) -> Check:
    from kgather.udfs.diversity.item_diversity import least_coverage

    matrix = _matrix(con, f"select distinct user_code, item_code, 1 as rating from {_CODED}")
    measured = None
    if matrix is not None:
        cells = con.sql(f"select distinct group_code, item_code from {_CODED}").fetchnumpy()
        groups = int(cells["group_code"].max()) + 1
        measured = least_coverage((cells["group_code"], cells["item_code"]), groups, matrix, b=b)
    return at_least(
        f"(b, l)-diversity: groups that show the set of up to {b} items which the fewest show", least, measured
    )


def _matrix(con: duckdb.DuckDBPyConnection, query: str) -> "RatingMatrix | None":
    """The pairs as a matrix; None where there are none."""
    from kgather.udfs.ratings.matrix import RatingMatrix

    users, items = con.sql(f"select max(user_code) + 1, max(item_code) + 1 from {_CODED}").fetchall()[0]
    if users is None:
        return None
    ordered = f"""
        select user_code::integer as user_code, item_code::integer as item_code, rating::double as rating
        from ({query}) order by user_code, item_code
    """
    return RatingMatrix.from_batches(con.sql(ordered).to_arrow_reader(1 << 20), users, items)


def _without(matrix: "RatingMatrix", items: list[int]) -> Any:
    """Which items are not among these, bool[n_items]."""
    import numpy as np

    kept = np.ones(matrix.n_items, dtype=np.bool_)
    kept[items] = False
    return kept


def _columns(matrix: "RatingMatrix", items: list[int]) -> Any:
    """The ratings of these items by every user, float64[n_users, items], NaN where there is none."""
    import numpy as np

    indptr, users, values = matrix.transpose()
    columns = np.full((matrix.n_users, len(items)), np.nan)
    for place, item in enumerate(items):
        rated = slice(indptr[item], indptr[item + 1])
        columns[users[rated], place] = values[rated]
    return columns


def _one(con: duckdb.DuckDBPyConnection, query: str) -> Any:
    [(value,)] = con.sql(query).fetchall()
    return value
