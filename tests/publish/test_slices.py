"""Large releases are made a slice of the groups at a time; small ones in one. Both are the same."""

import shutil
from pathlib import Path

import duckdb
import pytest

from kgather._dbt_package import dbt_path
from kgather._publishing import pipeline

pytestmark = pytest.mark.long


def groups_of(file: Path) -> list[list[tuple]]:
    """What each group shows, without the groups' ids, which are drawn anew."""
    shown = duckdb.sql(f"select list((item_id, round(rating, 6)) order by item_id) from '{file}' group by group_id")
    return sorted(cells for (cells,) in shown.fetchall())


@pytest.fixture
def slices_of_300(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The dbt project with a slice for every 300 ratings."""
    project = tmp_path / "project"
    shutil.copytree(dbt_path(), project)
    macro = project / "sql" / "homogenize" / "group_slices.sql"
    text = macro.read_text(encoding="utf-8")
    assert "6000000" in text
    macro.write_text(text.replace("6000000", "300"), encoding="utf-8")
    monkeypatch.setattr(pipeline, "dbt_path", lambda: project)
    return project


@pytest.mark.parametrize(
    "form",
    [
        {"homogenize": "pure"},
        {"homogenize": "pure", "single_rater": "drop", "cells": "top 20"},
        {"homogenize": "padded", "cells": "rated"},
        {"homogenize": "padded", "cells": "best 5"},
        {"homogenize": "predicted"},
    ],
    ids=lambda form: " ".join(form.values()),
)
def test_slices_are_the_whole(
    form: dict[str, str], publish_to, publish_anew, sample: Path, request: pytest.FixtureRequest
) -> None:
    whole = publish_to(sample, k=5, **form)
    request.getfixturevalue("slices_of_300")
    sliced = publish_anew(sample, k=5, **form)
    assert groups_of(sliced.folder / "ratings.parquet") == groups_of(whole.folder / "ratings.parquet")
    with duckdb.connect(sliced.work_database, read_only=True) as con:
        [(ratings,)] = con.sql("select count(*) from stg_kgather__ratings").fetchall()
    assert ratings > 900, "there would be few slices"
    [(rows, ascending)] = duckdb.sql(
        f"""
        select count(*), count(*) filter (where before is null or before < (group_id, item_id))
        from (
          select group_id, item_id, lag((group_id, item_id)) over () as before
          from '{sliced.folder / "ratings.parquet"}'
        )
        """
    ).fetchall()
    assert rows == ascending
