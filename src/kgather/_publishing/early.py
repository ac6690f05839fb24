"""What can be refused as soon as the input is read, before dbt starts: what the pipeline would refuse anyway.

The pipeline says the last word (`base_kgather__read_ratings`, `int_kgather__checked_input`), as it sees what only it
knows: repeated pairs, users' attributes, the models of a project. Here is only what is certain to be refused there.
"""

from collections.abc import Iterator

import duckdb

from kgather._errors import InputError
from kgather._settings.publication import PublishSettings

_REASON = "reason is not null and reason <> 'not rated'"


def reason_not_to_use(settings: PublishSettings) -> str:
    """An expression of SQL on `loaded.ratings`: why the pipeline sets a row aside by itself, null where it does not."""
    return "case " + " ".join(_cases(settings)) + " end"


def _cases(settings: PublishSettings) -> Iterator[str]:
    yield "when problem is not null then problem"
    yield "when rating is null or not isfinite(rating) then 'rating is not a finite number'"
    if settings.not_rated is not None:
        yield f"when rating = {settings.not_rated!r} then 'not rated'"
    if settings.scale is not None:
        low, high, *step = settings.scale
        yield f"when rating not between {low!r} and {high!r} then 'rating is off the scale'"
        if step:
            steps = f"(rating - {low!r}) / {step[0]!r}"
            yield f"when abs({steps} - round({steps})) > 1e-6 then 'rating is between two steps of the scale'"


def refuse_early(con: duckdb.DuckDBPyConnection, settings: PublishSettings) -> None:
    """Raise InputError where `loaded.ratings` has too many rows that cannot be used, or fewer users than k.

    O(n) for n rows; nothing is written.
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
                f"max_rejected_share allows. First: {first}. By reason: {reasons}."
            )
        raise InputError(msg)
    [(users,)] = con.sql(
        f"""
        select count(*)
        from (
          select user_id
          from {judged}
          where reason is null
          group by user_id
          having count(distinct item_id) >= {settings.min_ratings}
        )
        """
    ).fetchall()
    if users < settings.k:
        msg = f"k = {settings.k} is larger than the number of users, {users}. Lower k or add users."
        raise InputError(msg)
