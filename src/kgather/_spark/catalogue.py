"""The catalogue: the list of all items, which the driver may know as it knows the items that are rated."""

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from kgather._errors import InputError, quoted
from kgather._loaders import columns, values
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import IdType
from kgather._spark.session import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MODEL = "stg_kgather__items"
_ID_TYPES = ("tinyint", "smallint", "int", "bigint", "string")


def chosen(items: "DataFrame", options: LoadOptions, item_type: IdType) -> "DataFrame":
    """The column of items, as texts (id). Raises InputError where it is not found, or is of another type."""
    name = _column(items, options)
    kind = dict(items.dtypes)[name]
    if kind not in _ID_TYPES or (item_type == "BIGINT" and kind == "string"):
        msg = (
            f"the column '{name}' of the catalogue has the type {kind}, and the items of the ratings are of the type "
            f"{item_type.lower()}. Cast one of them."
        )
        raise InputError(msg)
    return items.selectExpr(f"cast({column(name)} as string) as id")


def read(items: "DataFrame", item_type: IdType) -> pa.Array:
    """The ids of the catalogue, each once, ascending. items: as `chosen` gives them. Raises InputError where there are
    none.
    """
    ids = items.where("id is not null").distinct().toArrow()
    with duckdb.connect() as con:
        con.register("given", ids)
        found = con.sql(
            f"select distinct cast(item_id as {item_type}) as item_id "
            f"from (select nullif({values.folded('id')}, '') as item_id from given) "
            "where item_id is not null order by item_id"
        ).to_arrow_table()
    if not len(found):
        msg = "there are no items in the catalogue."
        raise InputError(msg)
    return found["item_id"].combine_chunks()


def _column(items: "DataFrame", options: LoadOptions) -> str:
    by_name = {name.lower(): name for name in items.columns}
    if (options.item_column or "").lower() in by_name:
        return by_name[str(options.item_column).lower()]
    plain = {columns.plain(name): name for name in items.columns}
    for names in (*columns.SYNONYMS["item"], frozenset({"id"})):
        fits = [name for at, name in plain.items() if at in names]
        if len(fits) == 1:
            return fits[0]
    if len(items.columns) == 1:
        return items.columns[0]
    msg = f"the catalogue has no column of items. There are: {quoted(items.columns)}. Name one item_id."
    raise InputError(msg)
