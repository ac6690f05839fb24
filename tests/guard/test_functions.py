"""The functions over answers and public tables: DuckDB has them, each depends on its arguments alone, and what the
guard writes of a call means what the call means."""

import re
from collections.abc import Iterator

import duckdb
import pytest
from guard_data import Ask, Unguarded, rows_of

from kgather._guard import planner
from kgather._guard.catalog import Catalog
from kgather._guard.functions import AGGREGATES, FUNCTIONS, SCALARS, WINDOWS, witness_functions
from kgather._guard.plan import Local, Plan
from kgather._guard.refused import Refused, Rule

WORDS = {"coalesce", "date", "extract", "grouping", "grouping_id", "ifnull", "percentile_cont", "percentile_disc"}
"""What DuckDB's parser makes into something else: they are no functions of its catalog."""
ANSWER = """(SELECT city AS t, COUNT(*) AS n, COUNT(*) / 200.0 AS x, DATE '2024-02-29' AS d, DATE '2021-07-31' AS e,
  TIMESTAMP '2024-02-29 13:14:15' AS at FROM ratings_wide GROUP BY city) AS a"""
SHAPES = (
    *("()", "(x)", "(n)", "(t)", "(d)", "(at)", "(x, x)", "(n, n)", "(t, t)", "(t, n)", "(d, e)", "(t, 'a')"),
    *("(t, 1, 2)", "(t, 'a', 'b')", "(t, '-', 2)", "(t, 12, '-')", "(n, 0.5)", "('day', d, e)", "('month', d)"),
    *("('-', t, t)", "(x, t)", "(2024, 2, 3)", "(1, 2, 3.5)", "(2024, 2, 3, 4, 5, 6.5)", "(d, '%d.%m.%Y')"),
    *("('03.02.2024', '%d.%m.%Y')", "(n > 3, t, 'x')", "(INTERVAL 1 DAY, d)", "(d, INTERVAL 1 DAY)", "(n > 3)"),
    *("('{}', n)", "('%d', n)", "('aGk=')", "('6869')", "(n, 2)"),
)
OWN = {
    "age": "(d, e)",
    "count": "(n)",
    "date_add": "(d, INTERVAL 1 MONTH)",
    "extract": "(year FROM d)",
    "position": "('a' IN t)",
    "chr": "(65)",
    "format": "('{} {:>5}', t, n)",
    "printf": "('%s %05d', t, n)",
    "repeat": "(t, 3)",
    "factorial": "(5)",
    "gamma": "(x + 1)",
    "acosh": "(x + 1)",
    "strptime": "('03.02.2024', '%d.%m.%Y')",
    "try_strptime": "('03.02.2024', '%d.%m.%Y')",
    "regexp_extract": "(t, '[a-z]+')",
    "regexp_matches": "(t, '^G')",
    "regexp_full_match": "(t, 'G.*')",
    "regexp_replace": "(t, '[aeiou]', '-', 'g')",
    "like_escape": "(t, 'G$%', '$')",
    "not_like_escape": "(t, 'G$%', '$')",
    "ilike_escape": "(t, 'g$%', '$')",
    "not_ilike_escape": "(t, 'g$%', '$')",
    "hamming": "(t, t)",
    "mismatches": "(t, t)",
    "mode": "(n // 1000)",
    "first": "(t ORDER BY t)",
    "last": "(t ORDER BY t)",
    "any_value": "(t ORDER BY t)",
    "arbitrary": "(t ORDER BY t)",
    "string_agg": "(t, ',' ORDER BY t)",
    "listagg": "(t, ',' ORDER BY t)",
    "group_concat": "(t, ',' ORDER BY t)",
    "mad": "(n)",
    "percentile_cont": "(0.5) WITHIN GROUP (ORDER BY n)",
    "percentile_disc": "(0.5) WITHIN GROUP (ORDER BY n)",
    "nth_value": "(t, 2)",
    "ntile": "(2)",
    "array_agg": "(t ORDER BY t)",
    "list": "(t ORDER BY t)",
    "histogram": "(n // 1000)",
    "array_has_all": "([1, 2], [1])",
    "array_has_any": "([1, 2], [1])",
    "list_has_all": "([1, 2], [1])",
    "list_has_any": "([1, 2], [1])",
    "array_to_string": "([t, 'b'], '-')",
    "cardinality": "(MAP(['a'], [n]))",
    "element_at": "(MAP(['a'], [n]), 'a')",
    "list_aggregate": "([n, 2], 'sum')",
    "array_concat": "([n], [2])",
    "list_cat": "([n], [2])",
    "list_concat": "([n], [2])",
    "list_value": "(n, 2)",
    "map": "(['a'], [n])",
    "map_contains": "(MAP(['a'], [n]), 'a')",
    "map_entries": "(MAP(['a'], [n]))",
    "map_extract": "(MAP(['a'], [n]), 'a')",
    "map_from_entries": "(map_entries(MAP(['a'], [n])))",
    "map_keys": "(MAP(['a'], [n]))",
    "map_values": "(MAP(['a'], [n]))",
    "struct_extract": "({'a': n}, 'a')",
    "struct_pack": "(a := n)",
    "json_extract_string": "('{\"a\": 1}', '$.a')",
    "unnest": "([n, 2])",
    **dict.fromkeys(
        (
            *(
                "array_length",
                "array_reverse_sort",
                "array_sort",
                "array_unique",
                "list_avg",
                "list_count",
                "list_distinct",
                "list_first",
            ),
            *("list_last", "list_max", "list_median", "list_min", "list_product", "list_reverse", "list_reverse_sort"),
            *("list_sort", "list_sum", "list_unique", "len", "array_distinct", "array_reverse", "list_any_value"),
            *("list_approx_count_distinct", "list_entropy", "list_grade_up", "list_histogram", "list_kurtosis"),
            *("list_mad", "list_mode", "list_skewness", "list_stddev_pop", "list_stddev_samp", "list_var_pop"),
            *("list_var_samp",),
        ),
        "([n, 2, 2])",
    ),
    **dict.fromkeys(
        (
            *("array_cat", "array_intersect", "list_intersect", "array_zip", "list_zip", "array_select"),
            *("list_select", "list_distance", "list_dot_product"),
        ),
        "([1, 2], [2, 1])",
    ),
    "list_cosine_similarity": "([1.0, 2.0], [2.0, 1.0])",
    "array_where": "([1, 2], [true, false])",
    "list_where": "([1, 2], [true, false])",
    **dict.fromkeys(
        (
            *("array_contains", "array_extract", "array_has", "array_position", "list_contains", "list_element"),
            *("list_extract", "list_has", "list_indexof", "list_position"),
        ),
        "([n, 2, 2], 2)",
    ),
    "array_slice": "([n, 2, 2], 1, 2)",
    "list_slice": "([n, 2, 2], 1, 2)",
    "array_append": "([n, 2], 3)",
    "array_prepend": "(3, [n, 2])",
    "list_append": "([n, 2], 3)",
    "list_prepend": "(3, [n, 2])",
    "approx_top_k": "(n > 0, 2)",  # of ties it takes whichever comes first
    "flatten": "([[n], [2]])",
    "generate_series": "(1, 3)",
    "range": "(DATE '2024-01-01', DATE '2024-04-01', INTERVAL 1 MONTH)",
    "list_string_agg": "(['a', t])",
    "map_contains_entry": "(MAP(['a'], [n]), 'a', 2)",
    "map_contains_value": "(MAP(['a'], [n]), 2)",
    "map_extract_value": "(MAP(['a'], [n]), 'a')",
    "overlay": "(t PLACING 'x' FROM 1 FOR 2)",
    "struct_concat": "({'a': n}, {'b': 2})",
    "struct_insert": "({'a': n}, b := 2)",
    "struct_keys": "({'a': n})",
    "struct_values": "({'a': n})",
    "unbin": "('1010')",
    "weighted_avg": "(n, x)",
}
"""How those are called that take no list of plain arguments, or of which a plain one tells little."""


def overloads() -> Iterator[tuple[str, str, str | None, bool | None, list[str]]]:
    sql = "select function_name, function_type, stability, has_side_effects, parameter_types from duckdb_functions()"
    yield from duckdb.connect().execute(sql).fetchall()


def test_duckdb_has_them() -> None:
    known = {name for name, *_ in overloads()}
    assert {name for name in FUNCTIONS if name not in known} == WORDS


def test_they_depend_on_their_arguments_alone() -> None:
    """What hangs on the statement's time does so for arguments with a time zone only, which no cast leads to; and for
    the age of one date, for which the day is written."""
    for name, kind, stability, effects, types in overloads():
        if name not in FUNCTIONS or kind in ("macro", "table"):
            continue
        assert not effects, name
        if stability != "CONSISTENT" and kind == "scalar":
            assert stability == "CONSISTENT_WITHIN_QUERY"
            zoned = any(of == "TIMESTAMP WITH TIME ZONE" or of.startswith("TIMESTAMPTZ") for of in types)
            assert zoned or (name == "age" and len(types) == 1), (name, types)


def test_macros_are_made_of_them() -> None:
    sql = "select function_name, macro_definition from duckdb_functions() where function_type = 'macro'"
    for name, definition in duckdb.connect().execute(sql).fetchall():
        if name in FUNCTIONS:
            called = {word.lower() for word in re.findall(r'([\w]+)"?\(', definition)}
            assert called <= FUNCTIONS | {"case", "when", "cast", "string_split", "list_aggr"}, name


def calls(name: str) -> Iterator[str]:
    """Calls of a function that DuckDB might understand."""
    for shape in (OWN[name],) if name in OWN else SHAPES:
        if name in WINDOWS - AGGREGATES:
            yield f"SELECT t, {name}{shape} OVER (ORDER BY n, t) AS value FROM {ANSWER}"
        else:
            yield f"SELECT {name}{shape} AS value FROM {ANSWER}"


@pytest.mark.parametrize("name", sorted(FUNCTIONS - {"grouping", "grouping_id"}))
def test_a_call_means_what_duckdb_means(
    ask: Ask, database: duckdb.DuckDBPyConnection, unguarded: Unguarded, name: str
) -> None:
    told = []
    for sql in calls(name):
        try:
            wanted = database.cursor().execute(sql).fetchall()
        except duckdb.Error:
            continue
        made = ask(sql)
        assert isinstance(made, Plan)
        told.append(rows_of(unguarded.answer(made)) == rows_of(wanted))
        if len(told) == 2:
            break
    assert told, "none of the calls is one of DuckDB"
    assert all(told)


@pytest.mark.parametrize(
    "call",
    [
        *("random()", "setseed(0.5)", "uuid()", "gen_random_uuid()", "uuidv7()", "nextval('s')", "currval('s')"),
        *("getenv('HOME')", "current_setting('threads')", "getvariable('v')", "current_user", "version()"),
        *("current_database()", "current_schema()", "current_query()", "txid_current()", "pg_typeof(1)"),
        *("read_text('/etc/passwd')", "read_blob('/etc/passwd')", "query('SELECT 1')", "sleep_ms(1)"),
        *("write_log('x')", "error('x')", "now()", "current_timestamp", "localtimestamp"),
        *("get_current_timestamp()", "transaction_timestamp()", "current_localtimestamp()"),
        *(
            "range(n)",
            "generate_series(1, 99999)",
            "range(1, 9, n)",
            "list_resize([1], 9)",
            "json_serialize_sql('SELECT 1')",
        ),
        *("stats(t)", "hash(t)", "in_search_path('a', 'b')", "to_timestamp(n)", "make_timestamptz(n)", "timezone(at)"),
    ],
)
def test_what_has_effects_or_reads_more_is_refused(ask: Ask, call: str) -> None:
    for sql in (f"SELECT {call} FROM {ANSWER}", f"SELECT title FROM items WHERE {call} IS NULL"):
        with pytest.raises(Refused) as caught:
            ask(sql)
        assert caught.value.static


@pytest.mark.parametrize("call", ["read_csv('x.csv')", "read_text('/etc/passwd')", "query('SELECT 1')", "range(99999)"])
def test_no_function_is_a_table(ask: Ask, call: str) -> None:
    with pytest.raises(Refused):
        ask(f"SELECT COUNT(*) FROM {call}")


@pytest.mark.parametrize("name", sorted(SCALARS & {"md5", "regexp_matches", "left_grapheme", "cbrt", "sin", "chr"}))
def test_over_rows_of_people_they_are_refused(ask: Ask, name: str) -> None:
    for sql in (
        f"SELECT COUNT(*) FROM ratings_wide WHERE {name}(warcross) IS NULL",
        f"SELECT {name}(city), COUNT(*) FROM ratings_wide GROUP BY 1",
        f"SELECT SUM({name}(salary)) FROM ratings_wide",
    ):
        with pytest.raises(Refused) as caught:
            ask(sql)
        assert caught.value.static


def test_grouping_means_over_answers_what_duckdb_means(
    ask: Ask, database: duckdb.DuckDBPyConnection, unguarded: Unguarded
) -> None:
    for call in ("GROUPING(t)", "GROUPING_ID(t)"):
        sql = f"SELECT t, {call} AS value FROM {ANSWER} GROUP BY ROLLUP (t)"
        made = ask(sql, margins=True)
        assert isinstance(made, Plan)
        assert rows_of(unguarded.answer(made)) == rows_of(database.cursor().execute(sql).fetchall())


MEASURED = {"approx_count_distinct", "histogram"}
"""Aggregates over rows of people that are made of counts."""


@pytest.mark.parametrize("name", sorted(AGGREGATES - {"avg", "count", "count_if", "countif", "sum", "corr"}))
def test_aggregates_over_rows_of_people_are_those_that_are_measured(ask: Ask, name: str) -> None:
    shape = OWN.get(name, "(salary)").replace("t ", "city ").replace("n)", "salary)").replace("n //", "salary //")
    if name.startswith(("var", "stddev", "covar", "median", "quantile", "percentile")) or name in MEASURED:
        return
    with pytest.raises(Refused) as caught:
        ask(f"SELECT {name}{shape} FROM ratings_wide")
    assert caught.value.static


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT getenv('HOME')",
        "SELECT abs(random())",
        "SELECT title FROM items WHERE length(current_setting('threads')) > 1",
        "SELECT (SELECT max(nextval('s')) FROM items)",
        "SELECT title FROM items ORDER BY uuid()",
        "SELECT row_number() OVER (PARTITION BY now()) FROM items",
        "WITH a AS (SELECT sleep_ms(1) AS b) SELECT b FROM a",
        "SELECT title FROM items UNION ALL SELECT write_log('x')",
        "SELECT count(*) FILTER (WHERE today() IS NULL) FROM items",
    ],
)
def test_what_duckdb_reads_is_looked_at_once_more(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        witness_functions(sql)
    assert caught.value.rule == Rule.NODES
    assert caught.value.static


def test_it_is_looked_at_though_the_tree_was(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT abs(getvariable('x'))"
    monkeypatch.setattr(planner, "SYNTAX", ())
    with pytest.raises(Refused, match="The function GETVARIABLE"):
        planner.plan(sql, catalog)
    monkeypatch.setattr(planner, "witness_functions", lambda _: None)
    assert isinstance(planner.plan(sql, catalog), Local)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "^", "**", "<<", ">>", "&", "|", "||"])
def test_operators(ask: Ask, database: duckdb.DuckDBPyConnection, unguarded: Unguarded, operator: str) -> None:
    operands = ("t", "t") if operator == "||" else ("n", "2")
    sql = f"SELECT {operands[0]} {operator} {operands[1]} AS value FROM {ANSWER}"
    made = ask(sql)
    assert isinstance(made, Plan)
    assert rows_of(unguarded.answer(made)) == rows_of(database.cursor().execute(sql).fetchall())
