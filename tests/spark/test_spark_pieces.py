"""What of the engine spark needs no Spark: refusals, the project's SQL cut in parts and put in Spark's dialect."""

from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest
import sqlglot

from kgather._errors import InputError
from kgather._loaders.options import LoadOptions
from kgather._settings.publication import PublishSettings
from kgather._spark import audit, needs
from kgather._spark.audit import Parts
from kgather._spark.gathering import parts_of

UNION = """
with sizes as (select count(*) as n from work.main.int_kgather__users),
shown as (select 3 as n),
checks as (
  select 1 as position, 'groups' as "check", (select n from shown) as measured
  union all
  select 2, 'users', (select n from sizes)
  union all
  select 3, 'ids', (select count(*) from some_macro('"work"."main"."int_kgather__groups"'))
)
select "check", measured, measured > 0 as passed from checks order by position
"""


def settings(**given: Any) -> PublishSettings:
    return PublishSettings.from_options({"k": 5, **given}, [])


def test_what_spark_has_is_not_refused() -> None:
    asked = settings(cells="low_rank", method="mdav", rank=4, scale=[1.0, 5.0], repeats="mean", min_ratings=2)
    needs.refuse(asked, LoadOptions(user_column="who"))
    for form in ({"homogenize": "pure", "single_rater": "keep"}, {"homogenize": "padded", "cells": "rated"}):
        needs.refuse(settings(method="bounded_t_means", **form), LoadOptions())
    private = settings(item_epsilon=8.0, items="items", scale=[1.0, 5.0])
    needs.refuse(private, LoadOptions(items="items"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"method": "k_member"}, "method bkg, mdav, bounded_t_means, customized or bokg, not k_member"),
        ({"homogenize": "microaggregated"}, "homogenize predicted, padded or pure, not microaggregated"),
        ({"cells": "popular 10"}, "cells all, low_rank or rated of homogenize predicted, not popular 10"),
        ({"homogenize": "padded"}, "cells rated of homogenize padded, not all"),
        ({"homogenize": "pure", "cells": "top 5"}, "cells all or rated of homogenize pure, not top 5"),
        (
            {"personal_columns": ["age"], "user_attributes": "people", "personal": "separate"},
            "does not have personal_columns",
        ),
        ({"solver": "funk"}, "solver als, not funk"),
        ({"metric": "filled"}, "not filled"),
        ({"repeats": "sum"}, "repeats sum needs rating_cap"),
        ({"history": True}, "does not have history"),
        ({"diversity_l": 2}, "does not have diversity_l"),
    ],
)
def test_what_spark_does_not_have_is_refused_by_name(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        needs.refuse(settings(**given), LoadOptions())


def test_what_is_given_beside_the_ratings_is_a_data_frame() -> None:
    frame = SimpleNamespace(sparkSession=None)
    needs.refuse_frames(settings(), frame, None, None)
    needs.refuse_frames(settings(items="items", scale=[1.0, 5.0]), frame, None, frame)
    for given in ("items.csv", None):
        with pytest.raises(InputError, match="takes items as a DataFrame"):
            needs.refuse_frames(settings(items="items", scale=[1.0, 5.0]), frame, None, given)
    levels = settings(method="customized", user_attributes="people", level_column="size")
    needs.refuse_frames(levels, frame, frame, None)
    with pytest.raises(InputError, match="takes user_attributes as a DataFrame"):
        needs.refuse_frames(levels, frame, "people.csv", None)


def test_ways_to_read_that_spark_does_not_have_are_refused() -> None:
    with pytest.raises(InputError, match="does not have delimiter"):
        needs.refuse(settings(), LoadOptions(delimiter=";"))


def test_parts_are_run_without_the_others() -> None:
    parts = Parts.of(UNION, "checks")
    assert [parts.looks_at_people(part) for part in parts.parts] == [False, True, True]
    with duckdb.connect() as con:
        # The relations of people are not there, and nothing asks for them.
        assert audit.in_duckdb(con, parts.only(parts.parts[:1])) == [("groups", 3, True)]


def test_what_looks_at_people_alone_is_told_apart() -> None:
    both = UNION.replace(
        "(select n from shown)", "(select n from shown) + (select n from sizes) * (select max(n) from (from sizes))"
    )
    parts = Parts.of(both, "checks")
    alone = parts.of_people_alone(parts.parts[0])
    assert [each.sql("duckdb") for each in alone] == [
        "(SELECT n FROM sizes)", "(SELECT MAX(n) FROM (SELECT * FROM sizes))",
    ]  # fmt: skip
    with duckdb.connect() as con:
        con.execute("attach ':memory:' as work; create table work.main.int_kgather__users as from range(4)")
        assert con.sql(parts.values(alone).sql("duckdb")).fetchall() == [(4, 4)]


class _AtHand:
    """Stands for Spark: relations of people are in the database, too."""

    def rows(self, con: duckdb.DuckDBPyConnection, tree: Any) -> list[tuple[Any, ...]]:
        return con.sql(tree.sql("duckdb")).fetchall()


def test_what_was_told_of_people_is_put_in_its_place() -> None:
    both = UNION.replace("(select n from shown)", "(select n from shown) + (select n from sizes)")
    with duckdb.connect() as con:
        con.execute("attach ':memory:' as work; create table work.main.int_kgather__users as from range(4)")
        told = audit.People.told(_AtHand(), con, Parts.of(both, "checks"))  # type: ignore[arg-type]
        assert [told.looks_at_people(part) for part in told.parts] == [False, False, True]
        assert audit.in_duckdb(con, told.only(told.parts[:2])) == [("groups", 7, True), ("users", 4, True)]


def test_columns_that_nothing_names_are_not_handed_over() -> None:
    with duckdb.connect() as con:
        con.execute("create table things as select 1 as id, 'long' as text, 2 as number")
        for sql, columns in (
            ("select count(*) from things where number > 1", '"number"'),
            ("select t.id from things as t join others using (number)", '"id", "number"'),
            ("select count(*) from things", '"id"'),
            ("select count(*) from (select * from things)", '"id", "text", "number"'),
        ):
            tree = sqlglot.parse_one(sql, read="duckdb")
            table = next(each for each in tree.find_all(sqlglot.exp.Table) if each.name == "things")
            assert audit._columns(con, table, tree) == columns  # type: ignore[arg-type]


def test_a_statement_is_put_in_the_dialect_of_spark() -> None:
    tree = sqlglot.parse_one(
        "select people.id, quantile_cont(people.n, 0.99) from people join things using (id) "
        "where regexp_full_match(people.id, '[0-9]{1,9}') group by people.id",
        read="duckdb",
    )
    written = audit.for_spark(tree)
    assert "PERCENTILE(people.n, 0.99)" in written
    assert "id RLIKE '^(?:[0-9]{1,9})$'" in written
    # Spark does not find the column that two relations are joined by, where one of them names it.
    assert "people.id" not in written


def test_the_macro_for_signs_of_people_stands_for_itself() -> None:
    tree = audit.macro_select("kg_signs_of_people", {"p_users": "users_here", "p_items": "items_here"})
    assert {"users_here", "items_here"} <= audit.relations(tree)
    assert "query_table" not in tree.sql("duckdb").lower()


def test_a_part_of_a_leaf_has_as_many_users_as_the_largest_group_needs() -> None:
    sizes = np.array([0, 100, 120, 130, 1_000, 300])
    assert parts_of(sizes, 100, 15).tolist() == [1, 1, 1, 2, 10, 3]
    # Groups of 300 in leaves of 150: one leaf has them all.
    assert parts_of(np.array([300.0]), 150, 300).tolist() == [1]
    assert parts_of(np.array([4_000.0]), 150, 900).tolist() == [2]
