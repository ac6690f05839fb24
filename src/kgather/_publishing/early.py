"""What can be refused as soon as the input is read, before dbt starts: what the pipeline would refuse anyway.

The pipeline says the last word (`base_kgather__read_ratings`, `int_kgather__checked_input`), as it sees what only it
knows: repeated pairs, users' attributes, the models of a project. Here is only what is certain to be refused there.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from kgather._dbt_package import macro_sql
from kgather._errors import InputError
from kgather._loaders import seen
from kgather._settings.publication import PublishSettings

_USERS, _ITEMS, _RATINGS = "kgather_early_users", "kgather_early_items", "kgather_early_ratings"
_REASON = "reason is not null and reason <> 'not rated'"


LOADED_ITEMS = "kgather_loaded_items"
"""The setting `items` where the command line has read the catalogue."""


def reason_not_to_use(settings: PublishSettings) -> str:
    """An expression of SQL on `loaded.ratings`: why the pipeline sets a row aside by itself, null where it does not."""
    return "case " + " ".join(_cases(settings)) + " end"


def _cases(settings: PublishSettings) -> Iterator[str]:
    yield "when problem is not null then problem"
    if settings.items == LOADED_ITEMS:
        yield "when item_id not in (from loaded.items) then 'item is not in the catalogue'"
    yield "when rating is null or not isfinite(rating) then 'rating is not a finite number'"
    if settings.not_rated is not None:
        yield f"when rating = {settings.not_rated!r} then 'not rated'"
    if settings.rating_log:
        yield "when rating < 0 then 'rating is negative, and has no logarithm'"
    if settings.scale is not None:
        low, high, *step = settings.scale
        yield f"when rating not between {low!r} and {high!r} then 'rating is off the scale'"
        if step:
            steps = f"(rating - {low!r}) / {step[0]!r}"
            yield f"when abs({steps} - round({steps})) > 1e-6 then 'rating is between two steps of the scale'"


def refuse_early(con: duckdb.DuckDBPyConnection, settings: PublishSettings, *, follows: bool = False) -> None:
    """Raise InputError where `loaded.ratings` cannot be published.

    It has too many rows that cannot be used, fewer users than k, items that look like people, or ratings that look like
    something else. O(n log n) for n rows; only temporary tables are written. follows: only the rows are counted, O(n),
    as the last release was of the same kind of data; the pipeline refuses the rest.
    """
    judged = f"(select *, {reason_not_to_use(settings)} as reason from loaded.ratings)"
    [(rows, bad, good)] = con.sql(
        f"select count(*), count(*) filter ({_REASON}), count(*) filter (reason is null) from {judged}"
    ).fetchall()
    if rows == 0:
        msg = "the input has no ratings."
        raise InputError(msg)
    if bad > settings.max_rejected_share * rows or good == 0:
        reasons, first = con.sql(
            f"""
            select
              (
                select string_agg(reason || ' (' || times || ')', '; ' order by times desc, reason)
                from (select reason, count(*) as times from {judged} where reason is not null group by reason limit 5)
              ),
              (
                select arg_min(source || ' line ' || line || ': ' || reason, (source, line))
                from {judged}
                where {_REASON}
              )
            """
        ).fetchall()[0]
        if good == 0:
            msg = f"every row is set aside. By reason: {reasons}."
        else:
            msg = (
                f"{bad} of {rows} rows are rejected, more than the share of {settings.max_rejected_share:g} that "
                f"--max-rejected-share allows. First: {first}. By reason: {reasons}."
            )
        raise InputError(msg + _hint(reasons))
    if follows:
        return
    con.execute(
        f"""
        create or replace temp table {_USERS} as
        select user_id, count(distinct item_id) as rated
        from {judged}
        where reason is null
        group by user_id
        having rated >= {settings.min_ratings}
        """
    )
    [(users,)] = con.sql(f"select count(*) from {_USERS}").fetchall()
    if users < settings.k:
        msg = f"k = {settings.k} is larger than the number of users, {users}. Lower k or add users."
        raise InputError(msg)
    con.execute(
        f"""
        create or replace temp table {_ITEMS} as
        select item_id, count(distinct user_id) as raters
        from {judged}
        where reason is null
        group by item_id
        """
    )
    if settings.scale is None and not settings.changes_ratings:
        _refuse_what_is_no_scale(con, judged)
    if not settings.items_confirmed:
        _refuse_people_as_items(con)


def _hint(reasons: str) -> str:
    """What may be done about the reasons."""
    hints = (
        ("rating is not a number", " What words stand for is said with --map, and no ratings at all with --no-rating."),
        ("time is not readable", " Times are ignored with --time-column none."),
    )
    return "".join(hint for reason, hint in hints if reason in reasons)


def seen_early(con: duckdb.DuckDBPyConnection, settings: PublishSettings) -> dict[str, Any]:
    """What is seen of `loaded.ratings` before the pipeline runs: users, items, scale, repeats, what is set aside."""
    judged = f"(select *, {reason_not_to_use(settings)} as reason from loaded.ratings)"
    good = f"(select * from {judged} where reason is null)"
    reasons = con.sql(
        f"select reason, count(*) from {judged} where reason is not null group by reason order by reason"
    ).fetchall()
    [(repeats,)] = con.sql(f"select count(*) - count(distinct (user_id, item_id)) from {good}").fetchall()
    low, high = (
        settings.scale[:2] if settings.scale else con.sql(f"select min(rating), max(rating) from {good}").fetchall()[0]
    )
    return {
        "users": seen.ids(con, f"(select distinct user_id from {good})", "user_id", settings.k),
        "items": seen.ids(con, f"(select distinct item_id from {good})", "item_id", settings.k),
        "scale": {"min": low, "max": high, "declared": settings.scale is not None},
        "repeats": repeats,
        "set_aside": dict(reasons),
    }


def _refuse_what_is_no_scale(con: duckdb.DuckDBPyConnection, judged: str) -> None:
    con.execute(f"create or replace temp view {_RATINGS} as select rating from {judged} where reason is null")
    con.execute(macro_sql("kg_signs_of_no_scale"))
    signs = [sign for (sign,) in con.sql(f"select sign from kg_signs_of_no_scale('{_RATINGS}')").fetchall()]
    if signs:
        msg = (
            f"the ratings do not look like ratings: {'; '.join(signs)}. Name the column that holds them with "
            "--rating-column, say the scale if it is meant (--scale MIN,MAX), a value that means 'not rated' "
            "(--not-rated), or of counts a logarithm or an end (--rating-log, --rating-cap)."
        )
        raise InputError(msg)


def _refuse_people_as_items(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(macro_sql("kg_signs_of_people"))
    refuse_signs_of_people(con.sql(f"select measured, sign from kg_signs_of_people('{_USERS}', '{_ITEMS}')").fetchall())


def refuse_signs_of_people(signs: Sequence[tuple[int, str]]) -> None:
    """Raise InputError where there are signs, as (measured, sign), that the items are people."""
    if signs:
        listed = "; ".join(f"{measured:,} {sign}" for measured, sign in signs)
        msg = (
            f"the items look like people, and items are published: {listed}. Look which column holds the people, and "
            "say so with --user-column and --item-column (or --fields). If the items are none, add --items-confirmed."
        )
        raise InputError(msg)
