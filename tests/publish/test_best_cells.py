"""cells: best N, and the macro kg_rating of a release."""

import duckdb
import pytest

from kgather._errors import InputError
from kgather._publishing.publish import Published
from kgather._settings.publication import PublishSettings


def _all(published: Published, query: str) -> list[tuple]:
    with duckdb.connect(published.folder / "release.duckdb", read_only=True) as con:
        return con.sql(query).fetchall()


@pytest.mark.long
@pytest.mark.parametrize("form", ["predicted", "padded"])
def test_each_group_shows_what_is_predicted_best(publish_to, sample, form: str) -> None:
    published = publish_to(sample, k=5, cells="best 7", homogenize=form)
    with duckdb.connect(published.work_database, read_only=True) as con:
        con.execute(f"attach '{published.folder}/release.duckdb' as release (read_only)")
        shown = con.sql("select group_id, item_id from release.kgather__ratings order by all").fetchall()
        predicted = con.sql("""
            select group_id, item_id, groups.level + items.level + list_inner_product(groups.factor, items.factor)
            from int_kgather__group_vectors as groups cross join int_kgather__item_factors as items
        """).fetchall()
    cells = set(shown)
    assert len(cells) == len(shown) == 7 * published.audit.counts["groups"]
    worst = {}
    for group, item, rating in predicted:
        if (group, item) in cells:
            worst[group] = min(worst.get(group, 99.0), rating)
    assert all(rating <= worst[group] + 1e-6 for group, item, rating in predicted if (group, item) not in cells)


@pytest.mark.long
def test_more_than_all_items_are_all(publish_to, sample) -> None:
    published = publish_to(sample, k=5, cells="best 5000")
    assert _all(published, "select count(*) from kgather__ratings") == [(80 * published.audit.counts["groups"],)]


def test_best_goes_with_predictions_only() -> None:
    with pytest.raises(InputError, match="best N goes with homogenize predicted or padded"):
        PublishSettings.from_options({"k": 5, "cells": "best 7", "homogenize": "pure"}, [])
    with pytest.raises(InputError, match="best N or popular N"):
        PublishSettings.from_options({"k": 5, "cells": "best 0"}, [])


@pytest.mark.long
@pytest.mark.parametrize("cells", ["low_rank", "all", "best 9"])
def test_kg_rating_gives_any_cell(publish_to, sample, cells: str) -> None:
    published = publish_to(sample, k=5, cells=cells)
    found = _all(published, "select count(*), max(abs(kg_rating(group_id, item_id) - rating)) from kgather__ratings")
    assert found[0][0] == published.audit.counts["groups"] * (9 if cells == "best 9" else 80)
    assert found[0][1] < 1e-9
    assert _all(published, "select kg_rating(-1, 1)") == [(None,)]
