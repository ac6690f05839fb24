"""Reading the catalogue: the list of all items, whether somebody rated them or not."""

import duckdb
import pyarrow as pa

from kgather._errors import InputError
from kgather._loaders import columns, sources, tables, user_rows, values
from kgather._loaders.expressions import first_row
from kgather._loaders.lines import LineReader
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import CatalogueReport, IdType
from kgather._loaders.store import put_in_place
from kgather._sql_text import identifier

_LOADING = "__kgather_loading_items"
_NAMES = columns.SYNONYMS["item"]


def load_catalogue(
    con: duckdb.DuckDBPyConnection, source: str, item_id_type: IdType, options: LoadOptions, schema: str = "loaded"
) -> CatalogueReport:
    """Read a list of items into the table `<schema>.items`, with the column `item_id`.

    A text file has one id a line, with a line that names the column or without; or several columns, of which one is
    named as items are. Ids are written as those of the ratings are folded: trimmed, 7.0 is 7.

    Args:
        con: Where `<schema>.ratings` is. No result of it may be open.
        source: A text file, plain or compressed, a Parquet file, or `file.duckdb:table`.
        item_id_type: The type of the ids of the ratings' items. Where they are integers and one of the list is not, the
            ratings' ids become texts.
        options: Where the column of items is (`item_column`), how the file is encoded and separated.
        schema: The schema of both tables.

    Raises:
        InputError: It cannot be read, has no column of items, or holds no id.
    """
    found = sources.find(source, "items")
    bare = _options(options)
    if found.kind in sources.TEXTS and _is_list(found, bare):
        ids = _listed(found, bare)
        con.register("__kgather_items", pa.table({"id": pa.array(ids, pa.string())}))
        try:
            return _made(con, source, "select id from __kgather_items", item_id_type, schema)
        finally:
            con.unregister("__kgather_items")
    with user_rows.opened(con, found, user_rows.Options(bare, user_flag="--item-column")) as rows:
        at = _position(rows, options)
        field = rows.fields[at]
        sql = field.sql
        if field.type is not None:
            if not tables.can_be_id(field.type):
                msg = f"{source}: column '{field.name}' has the type {field.type[:60]}, which is no item id."
                raise InputError(msg)
            sql, _ = tables.id_sql(con, rows.relation, field.sql, field.type)
        return _made(con, source, f"select cast({sql} as varchar) as id from {rows.relation}", item_id_type, schema)


def _options(options: LoadOptions) -> LoadOptions:
    """What was said of the ratings' files and holds of the list, too."""
    return LoadOptions(encoding=options.encoding)


def _is_list(source: sources.Source, options: LoadOptions) -> bool:
    """Whether no line has a separator that a table has."""
    for batch in LineReader(source, options).batches():
        texts = batch.column("text").to_pylist()
        if texts:
            return not any(mark in text for text in texts[:500] for mark in (",", "\t", ";", "|"))
    return True


def _listed(source: sources.Source, options: LoadOptions) -> list[str]:
    ids = [
        text.strip()
        for batch in LineReader(source, options).batches()
        for text in batch.column("text").to_pylist()
        if text.strip()
    ]
    if ids and any(columns.plain(ids[0]) in names for names in _NAMES):
        ids = ids[1:]
    return ids


def _position(rows: user_rows.UserRows, options: LoadOptions) -> int:
    said = (options.item_column or "").strip()
    if said:
        found = columns.position_of(rows.where, rows.names, said)
        if found is not None:
            return found
    plain = [columns.plain(name) for name in rows.names]
    for names in (*_NAMES, frozenset({"id"})):
        fits = [at for at, name in enumerate(plain) if name in names]
        if len(fits) == 1:
            return fits[0]
    if len(rows.fields) == 1:
        return 0
    msg = (
        f"{rows.where}: no column of items found. {user_rows.known_columns(rows)} Give a list of one id a line, or say "
        "which column with --item-column."
    )
    raise InputError(msg)


def _made(con: duckdb.DuckDBPyConnection, where: str, ids: str, item_id_type: IdType, schema: str) -> CatalogueReport:
    made = f"{identifier(schema)}.items"
    con.execute(
        f"create or replace table {made} as select distinct nullif({values.folded('id')}, '') as item_id "
        f"from ({ids}) where id is not null"
    )
    con.execute(f"delete from {made} where item_id is null")
    row = first_row(con, f"select count(*), bool_and({values.is_integer_sql('item_id')}) from {made}")
    count, integers = (int(row[0]), bool(row[1])) if row else (0, False)
    if not count:
        msg = f"{where}: there are no items in it."
        raise InputError(msg)
    kind = item_id_type
    if kind == "BIGINT" and integers:
        con.execute(f"alter table {made} alter item_id type bigint")
    elif kind == "BIGINT":
        kind = "VARCHAR"
        con.execute(
            f"create or replace table {identifier(schema)}.{_LOADING} as "
            f"select * replace (cast(item_id as varchar) as item_id) from {identifier(schema)}.ratings"
        )
        put_in_place(con, schema, _LOADING, "ratings")
    unknown = first_row(
        con,
        f"select count(distinct item_id) from {identifier(schema)}.ratings anti join {made} using (item_id) "
        "where problem is null",
    )
    return CatalogueReport(path=where, items=count, item_id_type=kind, unlisted=int(unknown[0]) if unknown else 0)
