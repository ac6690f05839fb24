"""What clients may list: the tables and columns that the policy shows, as tables of Flight SQL. Nothing of the data."""

from collections.abc import Iterable

import pyarrow as pa

from kgather._guard.catalog import Catalog, TableInfo
from kgather._guard.plan import Kind
from kgather._server.flight.wire import (
    GetCatalogs,
    GetDbSchemas,
    GetKeys,
    GetSqlInfo,
    GetTables,
    GetTableTypes,
    GetXdbcTypeInfo,
)
from kgather._version import __version__

CATALOG, SCHEMA, TABLE_TYPE = "kgather", "main", "TABLE"

Listing = GetCatalogs | GetDbSchemas | GetTables | GetTableTypes | GetSqlInfo | GetKeys | GetXdbcTypeInfo

TYPES: dict[Kind, pa.DataType] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
"""The types that columns are shown with, and values are taken with."""
_INFO: dict[int, str | bool | int] = {
    0: "kgather",  # FLIGHT_SQL_SERVER_NAME
    1: __version__,  # ..._VERSION
    2: pa.__version__,  # ..._ARROW_VERSION
    3: True,  # ..._READ_ONLY
    4: True,  # ..._SQL
    5: False,  # ..._SUBSTRAIT
    8: 0,  # ..._TRANSACTION: none
    9: False,  # ..._CANCEL
    500: False,  # SQL_DDL_CATALOG
    501: False,  # SQL_DDL_SCHEMA
    502: False,  # SQL_DDL_TABLE
    504: '"',  # SQL_IDENTIFIER_QUOTE_CHAR
}
_INFO_VALUE = pa.dense_union(
    [
        pa.field("string_value", pa.string()),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(pa.string())),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
    ]
)


def listed(asked: Listing, catalog: Catalog) -> pa.Table:
    """The table that a listing asks for."""
    if isinstance(asked, GetSqlInfo):
        return _info(asked.info)
    if isinstance(asked, GetKeys):
        return (_FOREIGN_KEYS if asked.foreign else _PRIMARY_KEYS).empty_table()
    if isinstance(asked, GetXdbcTypeInfo):
        return _types_of_sql(asked.data_type)
    if isinstance(asked, GetCatalogs):
        return pa.table({"catalog_name": [CATALOG]}, pa.schema([pa.field("catalog_name", pa.string(), False)]))
    if isinstance(asked, GetTableTypes):
        return pa.table({"table_type": [TABLE_TYPE]}, pa.schema([pa.field("table_type", pa.string(), False)]))
    here = asked.catalog in (None, CATALOG) and _is_like(SCHEMA, asked.schema_pattern)
    if isinstance(asked, GetDbSchemas):
        fields = [pa.field("catalog_name", pa.string()), pa.field("db_schema_name", pa.string(), False)]
        return pa.table({"catalog_name": [CATALOG] * here, "db_schema_name": [SCHEMA] * here}, pa.schema(fields))
    of_type = not asked.table_types or TABLE_TYPE in asked.table_types
    found = [info for info in catalog.tables.values() if here and of_type and _is_like(info.name, asked.table_pattern)]
    return _tables(found, asked.include_schema)


_PRIMARY_KEYS = pa.schema(
    [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), False),
        pa.field("column_name", pa.string(), False),
        pa.field("key_sequence", pa.int32(), False),
        pa.field("key_name", pa.string()),
    ]
)
_FOREIGN_KEYS = pa.schema(
    [
        *(
            pa.field(f"{side}_{name}", pa.string(), nullable)
            for side in ("pk", "fk")
            for name, nullable in (
                ("catalog_name", True),
                ("db_schema_name", True),
                ("table_name", False),
                ("column_name", False),
            )
        ),
        pa.field("key_sequence", pa.int32(), False),
        pa.field("fk_key_name", pa.string()),
        pa.field("pk_key_name", pa.string()),
        pa.field("update_rule", pa.uint8(), False),
        pa.field("delete_rule", pa.uint8(), False),
    ]
)
_TYPES_OF_SQL = (
    ("BIGINT", -5, 19, None),
    ("DOUBLE", 8, 15, None),
    ("VARCHAR", 12, None, "'"),
    ("BOOLEAN", -7, 1, None),
    ("DATE", 91, 10, "'"),
    ("TIMESTAMP", 93, 26, "'"),
)
"""The types that columns are shown with: name, number of JDBC, size, and what a constant begins and ends with."""


def _types_of_sql(wanted: int | None) -> pa.Table:
    """As Flight SQL lists types: which can be null and searched by, and which are numbers."""
    found = [one for one in _TYPES_OF_SQL if wanted is None or one[1] == wanted]
    schema = pa.schema(
        [
            pa.field("type_name", pa.string(), False),
            pa.field("data_type", pa.int32(), False),
            pa.field("column_size", pa.int32()),
            pa.field("literal_prefix", pa.string()),
            pa.field("literal_suffix", pa.string()),
            pa.field("create_params", pa.list_(pa.field("item", pa.string(), False))),
            pa.field("nullable", pa.int32(), False),
            pa.field("case_sensitive", pa.bool_(), False),
            pa.field("searchable", pa.int32(), False),
            pa.field("unsigned_attribute", pa.bool_()),
            pa.field("fixed_prec_scale", pa.bool_(), False),
            pa.field("auto_increment", pa.bool_()),
            pa.field("local_type_name", pa.string()),
            pa.field("minimum_scale", pa.int32()),
            pa.field("maximum_scale", pa.int32()),
            pa.field("sql_data_type", pa.int32(), False),
            pa.field("datetime_subcode", pa.int32()),
            pa.field("num_prec_radix", pa.int32()),
            pa.field("interval_precision", pa.int32()),
        ]
    )
    rows = [
        {
            "type_name": name,
            "data_type": number,
            "column_size": size,
            "literal_prefix": quote,
            "literal_suffix": quote,
            "nullable": 1,
            "case_sensitive": name == "VARCHAR",
            "searchable": 3,
            "unsigned_attribute": False,
            "fixed_prec_scale": False,
            "auto_increment": False,
            "local_type_name": name,
            "sql_data_type": number,
            "num_prec_radix": 10 if name in ("BIGINT", "DOUBLE") else None,
        }
        for name, number, size, quote in found
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def shown(info: TableInfo) -> pa.Schema:
    """Columns that the policy shows of a table, with the types that the guard knows."""
    columns = [column for column in info.columns.values() if column.role != "hidden"]
    return pa.schema([pa.field(column.name, TYPES.get(column.kind, pa.string())) for column in columns])


def _tables(infos: Iterable[TableInfo], include_schema: bool) -> pa.Table:
    infos = sorted(infos, key=lambda info: info.name)
    columns: dict[str, list[object]] = {
        "catalog_name": [CATALOG] * len(infos),
        "db_schema_name": [SCHEMA] * len(infos),
        "table_name": [info.name for info in infos],
        "table_type": [TABLE_TYPE] * len(infos),
    }
    fields = [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), False),
        pa.field("table_type", pa.string(), False),
    ]
    if include_schema:
        columns["table_schema"] = [shown(info).serialize().to_pybytes() for info in infos]
        fields.append(pa.field("table_schema", pa.binary(), False))
    return pa.table(columns, pa.schema(fields))


def _info(wanted: tuple[int, ...]) -> pa.Table:
    chosen = [(name, value) for name, value in _INFO.items() if not wanted or name in wanted]
    children: list[list[object]] = [[] for _ in range(_INFO_VALUE.num_fields)]
    types, offsets = [], []
    for _, value in chosen:
        place = 1 if isinstance(value, bool) else 0 if isinstance(value, str) else 2
        types.append(place)
        offsets.append(len(children[place]))
        children[place].append(value)
    fields = [_INFO_VALUE.field(at) for at in range(_INFO_VALUE.num_fields)]
    values = pa.UnionArray.from_dense(
        pa.array(types, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(of, field.type) for of, field in zip(children, fields, strict=True)],
        [field.name for field in fields],
    )
    schema = pa.schema([pa.field("info_name", pa.uint32(), False), pa.field("value", _INFO_VALUE, False)])
    return pa.Table.from_arrays([pa.array([name for name, _ in chosen], pa.uint32()), values], schema=schema)


def _is_like(name: str, pattern: str | None) -> bool:
    """Whether a name fits a pattern of LIKE."""
    if pattern is None:
        return True
    places = {0}  # where the rest of the pattern may begin; no backtracking, whatever the pattern
    for c in pattern:
        if c == "%":
            places = set(range(min(places, default=len(name) + 1), len(name) + 1))
        else:
            places = {at + 1 for at in places if at < len(name) and c in ("_", name[at])}
    return len(name) in places
