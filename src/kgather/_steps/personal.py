"""Personal attributes of users as a release shows them: generalized with their group, or in classes of their own."""

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from kgather._recoding.told import told
from kgather._settings.personal import PERSON, USER, recoding
from kgather._settings.project import read
from kgather._sql_functions import load
from kgather._sql_text import identifier, literal
from kgather._steps import compiling
from kgather._verify.connection import bounded

compiling.tell()


def show_personal(
    attributes: duckdb.DuckDBPyRelation,
    groups: duckdb.DuckDBPyRelation,
    *,
    settings: str | Mapping[str, Any],
    shared: bool = False,
) -> pa.Table:
    """What is shown of each user: (user_id, a text for each personal column), a row for each user of `groups`.

    attributes (user_id, columns ...), groups (user_id, group_id), settings the project's vars as dbt hands them over.
    shared: of a release whose personal attributes are in a table of their own, what stands beside the artifacts, too:
    the columns `personal_shared`, generalized with their group. Users without attributes have nulls.
    It is secret: the release shows it without user_id. Raises InputError where a
    column cannot be generalized, PromiseError where a promise is not kept.
    """
    asked = read(settings)
    of_users, of_attributes = groups.to_arrow_table(), attributes.to_arrow_table()
    shown = asked.personal_shared if shared else asked.personal_columns
    columns = "".join(f", a.{identifier(name)}" for name in shown)
    with bounded() as con:
        con.register("of_users", of_users)
        con.register("of_attributes", of_attributes)
        con.execute(
            f"create table people as select g.user_id as {USER}, cast(g.user_id as varchar) as {PERSON}{columns} "
            "from of_users as g left join of_attributes as a on cast(a.user_id as varchar) = cast(g.user_id as varchar)"
        )
        con.execute(f"create table groups as select cast(user_id as varchar) as {PERSON}, group_id from of_users")
        k, within = asked.k, "groups" if shared or asked.personal == "generalize" else None
        if within is not None and asked.of_method.levels:
            # Users chose how many they stand with.
            [(least,)] = con.execute(
                "select min(n) from (select count(*) as n from groups group by group_id)"
            ).fetchall()
            k = min(k, least or k)
        how = recoding(asked, k, within=within, columns=shown).model_dump_json(exclude_defaults=True)
        load(con)
        with told():
            con.execute(f"create table shown as from kg_anonymize('people', {literal(how)}::json)")
        named = ", ".join(map(identifier, shown))
        return con.sql(f"select {USER} as user_id, {named} from shown").to_arrow_table()
