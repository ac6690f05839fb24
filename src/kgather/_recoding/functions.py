"""The functions that the pipeline's SQL calls: one writes a query, one puts combinations into classes."""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from kgather._recoding import sql
from kgather._settings.table import TableSettings, from_json
from kgather._sql_text import literal

_PIECES = pa.struct(
    {name: pa.int64() for name in ("kg_combination", "kg_class", "kg_of_people", "kg_first", "kg_last")}
)
_CLASSES = pa.struct({"kg_class": pa.int64(), "kg_suppressed": pa.bool_(), "kg_shown": pa.list_(pa.string())})
_ANSWER = pa.struct({"pieces": pa.list_(_PIECES), "classes": pa.list_(_CLASSES), "report": pa.string()})
_ANSWER_TYPE = (
    "STRUCT(pieces STRUCT(kg_combination BIGINT, kg_class BIGINT, kg_of_people BIGINT, kg_first BIGINT, "
    "kg_last BIGINT)[], "
    "classes STRUCT(kg_class BIGINT, kg_suppressed BOOLEAN, kg_shown VARCHAR[])[], report VARCHAR)"
)


def _written(relations: Any, settings: Any, what: Any) -> pa.Array:
    writers = {"rows": sql.anonymized, "report": sql.reported, "groups": sql.grouped}
    return pa.array(
        [
            writers[asked](_relation(relation), from_json(text), text)
            for relation, text, asked in zip(relations.to_pylist(), settings.to_pylist(), what.to_pylist(), strict=True)
        ],
        pa.string(),
    )


def _relation(name: str) -> str:
    return f"query_table({literal(name)})"


def _recoded(
    types: Any, texts: Any, ids: Any, combinations: Any, rows: Any, people: Any, settings: Any, checked: Any
) -> pa.Array:
    del checked  # it is there to be computed
    answers = []
    for place in range(len(settings)):
        asked = from_json(settings[place].as_py())
        if combinations[place].values is None:  # no rows
            answers.append(pa.array([{"pieces": [], "classes": [], "report": "{}"}], _ANSWER))
            continue
        answers.append(
            _answer(
                asked,
                types[place],
                texts[place].values,
                ids[place].values,
                combinations[place],
                rows[place],
                people[place],
            )
        )
    return pa.concat_arrays(answers)


def _answer(
    asked: TableSettings, types: Any, texts: Any, ids: Any, combinations: Any, rows: Any, people: Any
) -> pa.Array:
    from kgather._recoding.recode import as_json, recode  # the kernels take seconds to load

    numbers_of = [each.values.to_numpy(zero_copy_only=False) for each in ids]
    columns = len(asked.quasi_identifiers) + len(asked.sensitive)
    given = iter(numbers_of[columns:])  # in the order of kgather._recoding.sql
    found = recode(
        asked,
        types.as_py(),
        [each.as_py() for each in texts],
        numbers_of[:columns],
        rows.values.to_numpy(zero_copy_only=False),
        people=people.values.to_numpy(zero_copy_only=False),
        person=next(given) if asked.has_several_rows else None,
        within=next(given) if asked.within is not None else None,
    )
    numbers = combinations.values.to_numpy(zero_copy_only=False)
    pieces = pa.StructArray.from_arrays(
        [
            pa.array(each)
            for each in (numbers[found.combination], found.group, found.of_people, found.first, found.last)
        ],
        fields=list(_PIECES),
    )
    g, q = len(found.suppressed), len(found.shown)
    shown = np.array(found.shown, dtype=object).T.reshape(-1) if q else np.empty(0, dtype=object)
    cells = pa.ListArray.from_arrays(pa.array(np.arange(g + 1) * q, pa.int32()), pa.array(shown, pa.string()))
    classes = pa.StructArray.from_arrays(
        [pa.array(np.arange(g)), pa.array(found.suppressed), cells], fields=list(_CLASSES)
    )
    return pa.StructArray.from_arrays(
        [_one_list(pieces), _one_list(classes), pa.array([as_json(found.report)])], fields=list(_ANSWER)
    )


def _one_list(rows: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Make the functions known to the connection's database; those that it knows already stay."""
    known = {name for (name,) in con.sql("select distinct function_name from duckdb_functions()").fetchall()}
    if "kg_anonymization_text" not in known:
        # Without side effects, so that it is called while a query is bound.
        con.create_function(
            "kg_anonymization_text",
            _written,
            ["VARCHAR", "VARCHAR", "VARCHAR"],
            "VARCHAR",
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )
    if "kg_recode" not in known:
        con.create_function(
            "kg_recode",
            _recoded,
            ["VARCHAR[]", "VARCHAR[][]", "INTEGER[][]", "BIGINT[]", "BIGINT[]", "BIGINT[]", "VARCHAR", "INTEGER"],
            _ANSWER_TYPE,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,
        )
