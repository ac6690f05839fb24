"""kgather on any DuckDB connection: `kgather.load`, `kg_preferences` and `kg_gather`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kgather
from kgather._errors import InputError
from kgather._sql_functions import bundle

GATHER = "select unnest(kg_gather(list(p), {k}), recursive := true) from ({source}) as p"
LEARN = "select unnest(kg_preferences(list(r){options}), recursive := true) from ({source}) as r"
GROUPS = GATHER.format(k=5, source="from preferences")

Refused = Callable[[str], str]


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    kgather.load(con)
    con.execute("""
        create table ratings as
        select user_id, item_id, cast(1 + (user_id * item_id + user_id // 7) % 5 as double) as rating
        from range(60) as users (user_id), range(12) as items (item_id)
        where (user_id + item_id) % 3 > 0
    """)
    con.execute(
        "create table preferences as select i as user_id, [i % 7, i // 7] as preference from range(100) as t (i)"
    )
    return con


@pytest.fixture
def refused(con: duckdb.DuckDBPyConnection) -> Refused:
    """What DuckDB says when a query fails."""

    def run(query: str) -> str:
        with pytest.raises(duckdb.Error) as caught:
            con.execute(query).fetchall()
        return str(caught.value)

    return run


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


def learn(source: str = "from ratings", **options: object) -> str:
    return LEARN.format(source=source, options="".join(f", p_{name} := {value!r}" for name, value in options.items()))


# load ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_importing_kgather_imports_no_kernel() -> None:
    code = "import sys, kgather; assert not {'numba', 'duckdb', 'numpy'} & sys.modules.keys(); kgather.load"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kgather_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'unload'"):
        kgather.unload  # noqa: B018


def test_load_is_idempotent_and_reaches_cursors(con: duckdb.DuckDBPyConnection) -> None:
    before = con.cursor()
    kgather.load(con)
    kgather.load(before)
    for each in (con, before, con.cursor()):
        assert len(rows(each, GROUPS)) == 100


def test_macros_stay_in_a_file_and_functions_come_with_load(tmp_path: Path) -> None:
    file = tmp_path / "ratings.duckdb"
    with duckdb.connect(file) as con:
        kgather.load(con)
        con.execute("create table preferences as select i as user_id, [i] as preference from range(10) as t (i)")
    with duckdb.connect(file) as con:
        assert rows(con, "select kg_cell(1.0, [1.0], 1.0, [1.0], 1, 5)") == [(3.0,)]
        with pytest.raises(duckdb.CatalogException, match="kg_gather_vectors does not exist"):
            con.execute(GROUPS)
        kgather.load(con)
        assert len(rows(con, GROUPS)) == 10


def test_load_says_what_to_do_with_a_file_opened_for_reading(tmp_path: Path) -> None:
    file = tmp_path / "ratings.duckdb"
    with duckdb.connect(file) as con:
        con.execute("create table preferences as select i as user_id, [i] as preference from range(10) as t (i)")
    with duckdb.connect(file, read_only=True) as con, pytest.raises(InputError, match="'ratings' is open for reading"):
        kgather.load(con)
    with duckdb.connect() as con:
        kgather.load(con)
        con.execute(f"attach '{file}' as given (read_only)")
        assert len(rows(con, GATHER.format(k=5, source="from given.preferences"))) == 10


# kg_gather -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id_type", ["bigint", "varchar", "uuid", "date"])
def test_gather_gives_every_user_back_in_its_type(con: duckdb.DuckDBPyConnection, id_type: str) -> None:
    make = {"uuid": "md5(i::varchar)::uuid", "date": "date '2024-01-01' + i::integer"}.get(id_type, f"i::{id_type}")
    con.execute(f"create table users as select {make} as user_id, [i % 5, i % 3] as preference from range(80) as t (i)")
    con.execute("create table groups as " + GATHER.format(k=7, source="from users"))
    assert [row[:2] for row in rows(con, "describe groups")] == [
        ("user_id", id_type.upper()),
        ("group_id", "INTEGER"),
    ]
    assert rows(con, "select user_id from groups order by all") == rows(con, "select user_id from users order by all")
    sizes = [size for (size,) in rows(con, "select count(*) from groups group by group_id")]
    assert min(sizes) >= 7
    assert max(sizes) < 14


@pytest.mark.parametrize("kind", ["double[]", "float[2]", "integer[]", "decimal(9, 2)[]"])
def test_gather_takes_vectors_of_any_numbers(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    source = f"select user_id, preference::{kind} as preference from preferences"
    assert len(rows(con, GATHER.format(k=5, source=source))) == 100


@pytest.mark.parametrize("alias", ["u", "r", "pair", "p_users", "kg_gather", "users"])
def test_the_tables_alias_is_free(con: duckdb.DuckDBPyConnection, alias: str) -> None:
    con.execute(f"select unnest(kg_gather(list({alias}), 5), recursive := true) from preferences as {alias}")
    con.execute(f"select unnest(kg_preferences(list({alias})), recursive := true) from ratings as {alias}")


def test_gather_puts_like_users_together(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create table users as select i as user_id, [100 * (i % 4), i % 4] as preference from range(40) as t (i)"
    )
    con.execute("create table groups as " + GATHER.format(k=10, source="from users"))
    assert rows(con, "select count(distinct user_id % 4), count(*) from groups group by group_id") == [(1, 10)] * 4


def test_gather_gives_the_same_groups_under_other_numbers(con: duckdb.DuckDBPyConnection) -> None:
    first, second = dict(rows(con, GROUPS)), dict(rows(con, GROUPS))
    assert len(set(zip(first.values(), second.values(), strict=True))) == len(set(first.values()))
    assert first != second
    assert set(first.values()) == set(range(1, len(set(first.values())) + 1))


def test_gather_works_within_parts(con: duckdb.DuckDBPyConnection) -> None:
    sizes = rows(
        con,
        """
        with groups as (
          select user_id % 2 as part, unnest(kg_gather(list(p), 6), recursive := true)
          from preferences as p
          group by part
        )
        select count(*), count(distinct user_id % 2) from groups group by part, group_id
        """,
    )
    assert sum(size for size, _ in sizes) == 100
    assert min(sizes) >= (6, 1)
    assert {parts for _, parts in sizes} == {1}


def test_gather_refuses_more_than_there_are(refused: Refused) -> None:
    message = refused(GATHER.format(k=101, source="from preferences"))
    assert "100" in message
    assert "101" in message
    assert "got no users; it needs at least p_k = 5" in refused(
        GATHER.format(k=5, source="from preferences where false")
    )


@pytest.mark.parametrize(
    ("k", "source", "message"),
    [
        ("null", "from preferences", "p_k is null"),
        ("0", "from preferences", "k must be at least 1, not 0"),
        (
            "5",
            "select * replace (nullif(user_id, 3) as user_id) from preferences",
            "1 of 100 users with a null user_id",
        ),
        (
            "5",
            "select user_id, case when user_id > 3 then preference end as preference from preferences",
            "4 of 100 users with a null preference",
        ),
        ("5", "select user_id, [1.0, null] as preference from preferences", "100 nulls in them"),
        ("5", "select user_id, [1.0, 'nan'::float] as preference from preferences", "not a finite number"),
        ("5", "select user_id, range(1 + user_id % 3) as preference from preferences", "not of 1, 2, 3 numbers"),
        ("5", "select user_id // 2 as user_id, preference from preferences", "100 rows of 50 users"),
    ],
)
def test_gather_says_what_is_wrong(refused: Refused, k: str, source: str, message: str) -> None:
    assert message in refused(GATHER.format(k=k, source=source))


def test_gather_takes_many_users_in_one_call(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        create table users as
        select user_id, list(hash(user_id, axis)::double / 1e19) as preference
        from range(100_000) as users (user_id), range(10) as axes (axis)
        group by user_id
    """)
    con.execute("create table groups as " + GATHER.format(k=10, source="from users"))
    assert rows(con, "select count(*), count(distinct user_id) from groups") == [(100_000, 100_000)]
    assert rows(con, "select min(size) >= 10 from (select count(*) as size from groups group by group_id)") == [(True,)]


# kg_preferences ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id_type", ["bigint", "varchar", "uuid"])
def test_preferences_are_one_vector_a_user_in_its_type(con: duckdb.DuckDBPyConnection, id_type: str) -> None:
    make = "md5(user_id::varchar)::uuid" if id_type == "uuid" else f"user_id::{id_type}"
    source = f"select {make} as user_id, 'item ' || item_id as item_id, rating::integer as rating from ratings"
    con.execute("create table learnt as " + learn(source, rank=3))
    assert [row[:2] for row in rows(con, "describe learnt")] == [
        ("user_id", id_type.upper()),
        ("preference", "FLOAT[]"),
    ]
    assert rows(con, "select user_id from learnt order by all") == rows(
        con, f"select distinct user_id from ({source}) order by all"
    )
    assert rows(con, "select distinct len(preference) from learnt") == [(4,)]


def test_preferences_belong_to_their_users(con: duckdb.DuckDBPyConnection) -> None:
    # Two tastes, in an order of rows that mixes users: the nearest of a user's neighbours share its taste. Of half as
    # many users and items the default regularization leaves no factors: what they like is too little to tell.
    con.execute("""
        create table tastes as
        select user_id, item_id, case when (user_id + item_id) % 2 = 0 then 5 else 1 end as rating
        from range(60) as users (user_id), range(20) as items (item_id)
        where (user_id * 7 + item_id * 3) % 5 > 0
        order by hash(user_id, item_id)
    """)
    con.execute("create table learnt as " + learn("from tastes", rank=2))
    far, near = rows(
        con,
        """
        select
          min(list_distance(a.preference, b.preference)) filter (where (a.user_id - b.user_id) % 2 <> 0),
          max(list_distance(a.preference, b.preference)) filter (where (a.user_id - b.user_id) % 2 = 0)
        from learnt as a, learnt as b
        """,
    )[0]
    assert near < far


def test_preferences_are_repeatable_and_options_reach_the_kernel(con: duckdb.DuckDBPyConnection) -> None:
    plain = dict(rows(con, learn(rank=3)))
    assert dict(rows(con, learn(rank=3))) == plain
    assert dict(rows(con, learn(rank=3, solver="funk"))) != plain
    assert {len(preference) for _, preference in rows(con, learn(rank=3, metric="preference"))} == {3}


def test_from_ratings_to_groups_in_one_statement(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table groups as " + GATHER.format(k=5, source=learn(rank=3)))
    sizes = rows(con, "select count(*) from groups group by group_id")
    assert sum(size for (size,) in sizes) == 60
    assert min(sizes) >= (5,)
    assert rows(con, "from kg_homogenize('ratings', 'groups') order by all") == rows(
        con,
        "select group_id, item_id, avg(rating) from ratings join groups using (user_id) group by all order by all",
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (learn("from ratings union all from ratings where user_id = 3"), "8 of 488 ratings for a user and an item"),
        (learn("from ratings where false"), "got no ratings"),
        (
            learn("select * replace (nullif(user_id, 3) as user_id) from ratings"),
            "8 of 480 ratings with a null user",
        ),
        (
            learn("select * replace (nullif(item_id, 3) as item_id) from ratings"),
            "40 of 480 ratings with a null item",
        ),
        (learn("select * replace (nullif(rating, 3) as rating) from ratings"), "ratings with a null rating"),
        (learn("select * replace ('nan'::double as rating) from ratings"), "the rating nan is out of range"),
        (learn("select * exclude (rating) from ratings"), 'Could not find key "rating"'),
        (learn(rank=0), "rank must be at least 1, not 0"),
        (learn(solver="svd"), "there is no solver 'svd'; the solvers are: als, funk"),
        (learn(metric="cosine"), "there is no metric 'cosine'; the metrics are: prediction, preference"),
    ],
)
def test_preferences_say_what_is_wrong(refused: Refused, query: str, message: str) -> None:
    assert message in refused(query)


def test_the_bundle_needs_nothing_but_the_engine() -> None:
    """As whoever reads it by `.read` has it: no Jinja, no function of Python's, and the same answers."""
    text = bundle()
    assert "{%" not in text
    assert "{{" not in text
    with duckdb.connect() as bare, duckdb.connect() as loaded:
        bare.execute(text)
        kgather.load(loaded)
        answers = []
        for con in (bare, loaded):
            con.execute("create table people as select i % 3 as age, i % 4 as zip, i % 5 as ill from range(100) t (i)")
            answers.append(
                [
                    con.execute(f"from {asked}").fetchall()
                    for asked in (
                        "kg_class_sizes('people', ['age', 'zip'])",
                        "kg_l_diversity('people', ['age'], ['ill'], 'recursive', 2)",
                        "kg_t_closeness('people', ['age'], ['ill'])",
                        "kg_risk_conditions('people', ['age', 'zip', 'ill'], 9, 2)",
                    )
                ]
            )
        assert answers[0] == answers[1]
        assert [len(rows) > 0 for rows in answers[0]] == [True] * 4
        [(version,)] = bare.execute("select kg_macros()").fetchall()
        assert version == f"kgather {kgather.__version__}"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("kg_gather([{'user_id': 1, 'preference': [1.0]}], 5)", "kg_gather: 1 users are too few"),
        ("kg_item_set_support([{'user_id': 1, 'item_id': 1, 'rating': 3}], 7)", "kg_item_set_support: m must be"),
    ],
)
def test_refusals_name_the_macro_that_was_called(call: str, told: str) -> None:
    with duckdb.connect() as con:
        kgather.load(con)
        with pytest.raises(duckdb.InvalidInputException, match=told):
            con.execute(f"select {call}").fetchall()
