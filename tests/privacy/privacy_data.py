"""Tables of a few rows, the macros that measure, generic tests as dbt renders them, and a plain reference of both."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2
from dbt_macros import SQL, CompilerError
from duck import insert

MACROS = ("kg_quoted", "kg_as_seen", "kg_class_sizes", "kg_classed", "kg_class_frequencies", "kg_class_l",
          "kg_class_alpha", "kg_class_t", "kg_frequencies", "kg_l_diversity", "kg_alpha", "kg_t_closeness",
          "kg_column_sets", "kg_risk", "kg_risk_conditions")  # fmt: skip

Row = tuple[Any, ...]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(
    con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str], types: Sequence[str], rows: Sequence[Row]
) -> None:
    """A table of these rows."""
    named = ", ".join(f"{quoted(column)} {kind}" for column, kind in zip(columns, types, strict=True))
    con.execute(f"create or replace table {quoted(table)} ({named})")
    insert(con, quoted(table), rows)


# Generic tests ---------------------------------------------------------------------------------------------------


@cache
def _templates() -> dict[str, str]:
    """Every generic test and macro they use as plain Jinja."""
    files = [*(SQL / "tests").glob("*.sql"), SQL / "privacy" / "names_as_literals.sql",
             SQL / "privacy" / "count_failures.sql", SQL / "privacy" / "find_sql_macros.sql",
             SQL / "generalize" / "generalized_columns.sql"]  # fmt: skip
    return {
        file.stem: re.sub(r"{%(-?) (end)?test\b", r"{%\1 \2macro", file.read_text(encoding="utf-8")) for file in files
    }


def rendered(test: str, model: str, *, execute: bool = True, **arguments: object) -> str:
    """The SQL of a generic test. Raises CompilerError where it refuses its arguments."""
    return _rendered(test, model, execute, arguments)[0]


def _rendered(test: str, model: str, execute: bool, arguments: dict[str, object]) -> tuple[str, dict[str, str]]:
    """The SQL of a generic test, and the configuration that it gives itself."""

    def refuse(message: str) -> None:
        raise CompilerError(message)

    def config(**told: str) -> str:
        configured.update(told)
        return ""

    configured: dict[str, str] = {}
    given: dict[str, Any] = {"exceptions": type("", (), {"raise_compiler_error": staticmethod(refuse)}),
                             "execute": execute, "kgather": {}, "tojson": str, "var": {}.get,
                             "config": config, "run_query": lambda _: SimpleNamespace(rows=[])}  # fmt: skip
    environment = jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)
    for file in ("names_as_literals", "count_failures", "find_sql_macros", "generalized_columns", test):
        given["kgather"].update(vars(environment.from_string(_templates()[file]).make_module(given)))
    return str(given["kgather"][test](model, **arguments)), configured


# What is the same in every row of failures: the numbers that dbt compares with warn_if and error_if.
_COUNTED = "columns(lambda kg_name: not kg_name like '%_at_risk')"


def failures(con: duckdb.DuckDBPyConnection, test: str, model: str, **arguments: object) -> list[Row]:
    """What a generic test returns, wrapped as dbt does, but for the counts of people that every row repeats."""
    return con.execute(
        f"select {_COUNTED} from ({rendered(test, model, **arguments)}) as dbt_internal_test order by all"
    ).fetchall()


def counted(
    con: duckdb.DuckDBPyConnection, test: str, model: str, limit: int | None = None, **arguments: object
) -> object:
    """What dbt compares with warn_if and error_if, as it asks for it."""
    sql, configured = _rendered(test, model, True, arguments)
    bounded = f"select * from ({sql})" + (f" limit {limit}" if limit else "")
    calculated = configured.get("fail_calc", "count(*)")
    [(found,)] = con.execute(f"select {calculated} as failures from ({bounded}) as dbt_internal_test").fetchall()
    return found


# The models by their definitions ---------------------------------------------------------------------------------


def classes(rows: Sequence[Row], quasi: Sequence[int]) -> dict[Row, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[place] for place in quasi)].append(row)
    return found


def frequencies(rows: Sequence[Row], place: int) -> list[int]:
    return sorted(Counter(row[place] for row in rows).values(), reverse=True)


def diversity(rows: Sequence[Row], place: int, kind: str, c: float = 1) -> float:
    r = frequencies(rows, place)
    if kind == "distinct":
        return len(r)
    if kind == "entropy":
        return math.exp(-sum(n / len(rows) * math.log(n / len(rows)) for n in r))
    return sum(r[0] < round(c * sum(r[rank:]), 9) for rank in range(len(r)))


def distance(rows: Sequence[Row], everybody: Sequence[Row], place: int, *, ordered: bool) -> float:
    values = sorted({row[place] for row in everybody}, key=lambda value: (value is None, value))
    inside, outside = Counter(row[place] for row in rows), Counter(row[place] for row in everybody)
    differences = [inside[value] / len(rows) - outside[value] / len(everybody) for value in values]
    if not ordered:
        return sum(map(abs, differences)) / 2
    return sum(abs(sum(differences[: i + 1])) for i in range(len(values))) / max(len(values) - 1, 1)


def risky(rows: Sequence[Row], n_columns: int, k: int, m: int, *, nulls: bool) -> set[tuple[tuple[int, ...], Row]]:
    """All conditions on up to m columns that match 1 to k - 1 rows."""
    found = set()
    for size in range(1, min(m, n_columns) + 1):
        for places in combinations(range(n_columns), size):
            counts = Counter(tuple(row[place] for place in places) for row in rows)
            found |= {
                (places, values)
                for values, count in counts.items()
                if count < k and (nulls or not any(value is None for value in values))
            }
    return found
