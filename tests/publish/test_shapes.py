"""Ratings of unusual shapes, as the generator of the benchmarks makes them, through the whole pipeline."""

import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from kgather._loaders import LoadOptions, load
from kgather._publishing.publish import Published

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from make_ratings import Shape, write_netflix, write_parquet

SMALL = Shape(ratings=20_000, users=500, items=400, seed=3)


def rows(file: Path) -> list[tuple]:
    return duckdb.sql(f"from '{file}' order by all").fetchall()


def test_the_same_ratings_for_any_number_of_threads(tmp_path: Path) -> None:
    for threads in (1, 2):
        assert write_parquet(tmp_path / f"{threads}.parquet", SMALL, threads) == 20_000
    assert rows(tmp_path / "1.parquet") == rows(tmp_path / "2.parquet")
    write_parquet(tmp_path / "other.parquet", replace(SMALL, seed=4))
    assert rows(tmp_path / "1.parquet") != rows(tmp_path / "other.parquet")


def test_the_shape_is_that_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "made.parquet"
    write_parquet(file, replace(SMALL, everything=True, identical=0.9, dates=True))
    [(users, pairs, count, low, high, most, days)] = duckdb.sql(
        f"""
        select
          count(distinct user_id), count(distinct (user_id, item_id)), count(*), min(rating), max(rating),
          (select max(n) from (select count(*) as n from '{file}' group by user_id)), count(distinct date)
        from '{file}'
        """
    ).fetchall()
    assert (users, low, high, most) == (500, 1, 5, 400)
    assert pairs == count
    assert days > 50
    [(alike,)] = duckdb.sql(
        f"""
        select max(n)
        from (
          select count(*) as n
          from (select list((item_id, rating) order by item_id) as row from '{file}' group by user_id)
          group by row
        )
        """
    ).fetchall()
    assert alike == 450


def test_pairs_can_be_repeated_and_rows_be_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "made.parquet"
    count = write_parquet(file, replace(SMALL, repeated=0.1, order="random"))
    [(pairs, falls)] = duckdb.sql(
        f"""
        select count(distinct (user_id, item_id)), count(*) filter (user_id < before)
        from (select *, lag(user_id) over () as before from '{file}')
        """
    ).fetchall()
    assert pairs == 20_000
    assert 21_500 < count < 22_500
    assert falls > 5_000


def test_raw_netflix_text_holds_the_same_ratings(tmp_path: Path) -> None:
    shape = replace(SMALL, dates=True)
    write_parquet(tmp_path / "made.parquet", shape)
    write_netflix(tmp_path / "made.txt", shape)
    with duckdb.connect() as con:
        report = load(con, [tmp_path / "made.txt"], LoadOptions())
        assert report.inputs[0].format == "netflix"
        assert report.problem_rows == 0
        read = con.sql("select user_id, item_id, rating, rated_at::date from loaded.ratings order by all").fetchall()
    assert read == rows(tmp_path / "made.parquet")


def groups(published: Published) -> list[tuple]:
    """Who is with whom, whatever the names of the groups."""
    with duckdb.connect(published.work_database, read_only=True) as con:
        return con.sql(
            "select list(user_id order by user_id) as members from int_kgather__groups group by group_id order by all"
        ).fetchall()


@pytest.mark.long
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(Shape(ratings=40_000, users=6_000, items=15, identical=0.9), id="few items, users alike"),
        pytest.param(
            Shape(ratings=90_000, users=90, items=70_000, everything=True, popularity=0.5), id="many items, one has all"
        ),
    ],
)
def test_unusual_shapes_are_published_the_same_by_one_and_two_threads(publish_to, tmp_path: Path, shape: Shape) -> None:
    file = tmp_path / "made.parquet"
    count = write_parquet(file, replace(shape, order="random"))
    # One user who has everything makes items look like people.
    settings = {"k": 5, "cells": "top 20", "items_confirmed": shape.everything}
    one, two = (publish_to(file, threads=threads, **settings) for threads in (1, 2))
    assert one.audit.passed
    assert one.audit.counts["staged_rows"] == count
    assert groups(one) == groups(two)
