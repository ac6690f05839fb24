"""Releases that are made of another release and tell nothing that it does not: without some groups, or coarser."""

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._errors import InputError, PromiseError
from kgather._release.digits import shown_digits
from kgather._release.reading import read_audit
from kgather._release.release import AUDIT, DATABASE, Audit, Check, put_in_place, write_release
from kgather._sql_text import literal
from kgather._verify import verify_release
from kgather.udfs.gathering._group_ids import random_pseudonyms


@dataclass(frozen=True)
class Source:
    """A release that others are made of. groups int64[g]: its group ids, ascending; sizes int64[g]."""

    folder: Path
    audit: Audit
    item_privacy: Mapping[str, Any] | None
    groups: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, folder: Path) -> "Source":
        """Raises InputError where the folder holds no release of groups."""
        audit = read_audit(folder)
        try:
            with duckdb.connect() as con:
                con.execute(f"attach {literal(folder / DATABASE)} as release (read_only)")
                table = con.sql("from release.kgather__groups order by group_id").fetchnumpy()
        except duckdb.Error:
            msg = f"{folder} is no release of groups: {DATABASE} lacks them or cannot be read."
            raise InputError(msg) from None
        proven = json.loads((folder / AUDIT).read_text(encoding="utf-8")).get("item_privacy")
        return cls(folder, audit, proven, np.asarray(table["group_id"]), np.asarray(table["group_size"]))

    @property
    def of_predictions(self) -> bool:
        """Whether it shows nothing but predictions of groups, of which others may be made."""
        said = self.audit.parameters
        return said.get("homogenize") == "predicted" and str(said.get("cells")).split()[0] in ("all", "low_rank", "top")

    def vectors(self) -> NDArray[np.float32]:
        """What each group shows, float32[g, d], whose Euclidean distance says how unlike two groups are."""
        with duckdb.connect() as con:
            con.execute(f"attach {literal(self.folder / DATABASE)} as release (read_only)")
            tables = {name for (name,) in con.sql("select table_name from duckdb_tables()").fetchall()}
            if "kgather__group_vectors" in tables:
                shown = con.sql(
                    "select level, factor from release.kgather__group_vectors order by group_id"
                ).fetchnumpy()
                items = con.sql("select factor from release.kgather__item_vectors").fetchnumpy()["factor"]
                sides = np.column_stack([np.ones(len(items)), np.stack(list(items))])
                spread, turned = np.linalg.eigh(sides.T @ sides / len(sides))
                places = np.column_stack([shown["level"], np.stack(list(shown["factor"]))])
                return np.asarray(places @ (turned * np.sqrt(np.maximum(spread, 0))), dtype=np.float32)
            rows = con.sql(
                "select group_id, list(rating order by item_id) as ratings from release.kgather__ratings "
                "group by group_id order by group_id"
            ).fetchnumpy()["ratings"]
        return np.stack([np.asarray(row, dtype=np.float32) for row in rows])


def derive(
    source: Source,
    target: Path,
    groups: Mapping[int, int],
    parameters: Mapping[str, Any],
    *,
    force: bool,
    before: Callable[[], None] = lambda: None,
) -> Audit:
    """Write a release of some groups of another at `target`.

    groups: the id that each group of the source goes into; groups that are not named are left out. What a group of
    several shows is the mean of what they show, by their members. Pseudonyms are new. before: called before the release
    is put in its place. Raises InputError where nothing is left, PromiseError where the release is not k-anonymous.
    """
    if not groups:
        msg = f"no group of {source.folder} is left: there is no release to write."
        raise InputError(msg)
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    said = {**source.audit.parameters, **parameters}
    k = int(said["k"])
    with tempfile.TemporaryDirectory(prefix=".kgather-", dir=target.parent) as temporary:
        folder = Path(temporary) / "release"
        with duckdb.connect() as con:
            con.execute("attach ':memory:' as marts")
            _fill(con, source, groups)
            audit = _audit(con, source, said)
            if not audit.passed:
                msg = "a promise is not kept, no release was written: a group is smaller than k."
                raise PromiseError(msg)
            _stamp(con)
            write_release(con, folder, audit)
        failed = [check.check for check in verify_release(folder, k) if not check.passed]
        if failed:
            msg = f"a promise is not kept, no release was written: {'; '.join(failed)}."
            raise PromiseError(msg)
        before()
        put_in_place(folder, target, replace=force)
    return audit


def _fill(con: duckdb.DuckDBPyConnection, source: Source, groups: Mapping[int, int]) -> None:
    con.execute(f"attach {literal(source.folder / DATABASE)} as source (read_only)")
    merged = pa.table(
        {"group_id": pa.array(list(groups), pa.int64()), "into_id": pa.array(groups.values(), pa.int64())}
    )
    con.register("merged", merged)
    con.execute(
        "create temp table part as select merged.*, group_size from merged join source.kgather__groups using (group_id)"
    )
    con.execute("use marts")
    con.execute(
        "create table kgather__groups as select into_id as group_id, sum(group_size)::bigint as group_size "
        "from temp.part group by into_id order by into_id"
    )
    people = con.sql("from source.kgather__members semi join temp.part using (group_id)").shape[0]
    con.register("fresh", pa.table({"place": pa.array(range(1, people + 1)), "pseudonym": random_pseudonyms(people)}))
    con.execute(
        "create table kgather__members as select fresh.pseudonym, into_id as group_id from (select into_id, "
        "row_number() over () as place from source.kgather__members join temp.part using (group_id)) "
        "join fresh using (place) order by fresh.pseudonym"
    )
    low, high = source.audit.scale["min"], source.audit.scale["max"]
    digits = shown_digits(high - low)
    listed = con.sql("select table_name from duckdb_tables() where database_name = 'source'").fetchall()
    tables = {name for (name,) in listed}
    if "kgather__group_vectors" in tables:
        con.execute(_VECTORS.format(digits=digits + 1))
        con.execute("create table kgather__item_vectors as from source.kgather__item_vectors")
    if "kgather__ratings" in tables:
        con.execute(_CELLS.format(digits=digits))
    con.execute("create table kgather__metrics as from source.kgather__metrics limit 0")
    views = con.sql(
        "select view_name, sql from duckdb_views() where database_name = 'source' and not internal"
    ).fetchall()
    for name, text in views:
        if name == "kgather__ratings":
            made, body = re.split(r"\s+as\s+", text.strip().rstrip(";"), maxsplit=1, flags=re.IGNORECASE)
            con.execute(f"{made.split('(')[0]} as {_STAMPED} ({body})")
    con.execute("use memory")


def _stamp(con: duckdb.DuckDBPyConnection) -> None:
    """Put behind each table the columns that marts have, which say of which release it is; no release has them."""
    listed = con.sql("select table_name from duckdb_tables() where database_name = 'marts'").fetchall()
    for (name,) in listed:
        con.execute(f"create or replace table marts.{name} as {_STAMPED} marts.{name}")


_STAMPED = "select *, null::varchar as release_id, null::date as released_on from"


_CELLS = """
create table kgather__ratings as
select into_id as group_id, item_id, round(sum(rating * group_size) / sum(group_size), {digits}) as rating
from source.kgather__ratings
join temp.part using (group_id)
group by into_id, item_id
order by into_id, item_id
"""
_VECTORS = """
create table kgather__group_vectors as
with numbers as (
  select
    into_id,
    place,
    round(sum(level * group_size) / sum(group_size), {digits})::float as level,
    round(sum(factor[place] * group_size) / sum(group_size), {digits})::float as number
  from source.kgather__group_vectors
  join temp.part using (group_id)
  cross join range(1, (select max(len(factor)) + 1 from source.kgather__group_vectors)) as places(place)
  group by into_id, place
)

select into_id as group_id, any_value(level) as level, list(number order by place) as factor
from numbers
group by into_id
order by into_id
"""


def _audit(con: duckdb.DuckDBPyConnection, source: Source, parameters: Mapping[str, Any]) -> Audit:
    k = int(parameters["k"])
    sizes = con.sql("select group_size, count(*) from marts.kgather__groups group by all order by all").fetchall()
    [(wrong,)] = con.sql(
        "select count(*) from marts.kgather__groups left join (select group_id, count(*) as members from "
        "marts.kgather__members group by group_id) using (group_id) where group_size is distinct from members"
    ).fetchall()
    checks = (
        Check("k-anonymity: users in the smallest group", k, sizes[0][0], sizes[0][0] >= k),
        Check("groups whose size is not the number of their members", 0, wrong, wrong == 0),
    )
    con.execute('create table marts.kgather__audit ("check" varchar, promised bigint, measured bigint, passed boolean)')
    con.executemany(
        "insert into marts.kgather__audit values (?, ?, ?, ?)",
        [[each.check, each.promised, each.measured, each.passed] for each in checks],
    )
    people = sum(size * groups for size, groups in sizes)
    counts = {name: value for name, value in source.audit.counts.items() if name == "items"}
    return Audit(
        parameters=parameters,
        counts={
            **dict.fromkeys(("users", "members"), people),
            **counts,
            "groups": sum(groups for _, groups in sizes),
            "largest_group": sizes[-1][0],
        },
        scale=source.audit.scale,
        checks=checks,
        group_sizes=tuple({"size": size, "groups": groups} for size, groups in sizes),
        item_privacy=source.item_privacy,
    )
