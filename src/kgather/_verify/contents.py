"""What a database of a release holds beside the tables that a release has: text may be hidden in any of it."""

from collections.abc import Collection

import duckdb

from kgather._sql_text import literal

# Each as (name, what it is); those of the engine itself are left out.
_HELD = """
select schema_name || '.' || {name}, {what} from {function}() where database_name = 'release' and not internal
"""
_FOREIGN = f"""
select distinct case when what in ('table', 'view') then name else what || ' ' || name end as told
from (
  {" union all ".join((
    _HELD.format(function="duckdb_tables", name="table_name", what="'table'"),
    _HELD.format(function="duckdb_views", name="view_name", what="'view'"),
    _HELD.format(function="duckdb_functions", name="function_name", what="'macro'"),
    _HELD.format(function="duckdb_types", name="type_name", what="'type'"),
    "select schema_name || '.' || sequence_name, 'sequence' from duckdb_sequences() where database_name = 'release'",
    "select schema_name || '.' || index_name, 'index' from duckdb_indexes() where database_name = 'release'",
    "select schema_name, 'schema' from duckdb_schemas() where database_name = 'release' and not internal",
    _HELD.format(function="duckdb_tables", name="table_name", what="'comment on'") + "and comment is not null",
    _HELD.format(function="duckdb_views", name="view_name", what="'comment on'") + "and comment is not null",
    _HELD.format(function="duckdb_columns", name="table_name", what="'comment on a column of'")
    + "and comment is not null",
    _HELD.format(function="duckdb_columns", name="table_name", what="'default of a column of'")
    + "and column_default is not null",
    "select schema_name || '.' || table_name, 'constraint of' from duckdb_constraints() "
    "where database_name = 'release'",
  ))}
) as held (name, what)
where not (what in ('table', 'view') and name in (select 'main.' || unnest({{tables}})))
  and not (what = 'macro' and name in (select 'main.' || unnest({{macros}})))
order by all
"""  # fmt: skip


def foreign(con: duckdb.DuckDBPyConnection, tables: Collection[str], macros: Collection[str] = ()) -> list[str]:
    """What the attached database `release` holds and a release does not, each named by what it is: tables and views but
    for `tables`, macros but for `macros`, types, sequences, indexes, schemas, comments, defaults and constraints."""
    listed = {
        name: f"cast([{', '.join(map(literal, known))}] as varchar[])"
        for name, known in (("tables", tables), ("macros", macros))
    }
    return [name for (name,) in con.sql(_FOREIGN.format(**listed)).fetchall()]
