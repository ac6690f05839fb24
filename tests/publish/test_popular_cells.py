"""cells: popular N, through dbt and on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from dbt_macros import load_macros

from kgather._errors import InputError
from kgather._publishing.publish import Published
from kgather._republishing.opening import open_evidence
from kgather._settings.publication import PublishSettings
from kgather._verify import verify_release


def _query(published: Published, query: str) -> list[tuple]:
    with duckdb.connect(published.work_database, read_only=True) as con:
        con.execute(f"attach '{published.folder}/release.duckdb' as release (read_only)")
        return con.sql(query).fetchall()


_COUNTED = """
with counts as (
  select group_id, item_id, count(ratings.user_id) as raters
  from (select distinct group_id from int_kgather__groups) cross join int_kgather__items
  left join (
    select group_id, item_id, user_id from stg_kgather__ratings join int_kgather__groups using (user_id)
  ) as ratings using (group_id, item_id)
  group by all
)
select counts.*, shown.item_id is not null
from counts
left join release.kgather__ratings as shown using (group_id, item_id)
"""


@pytest.fixture(scope="module")
def popular(publish_to, sample) -> Published:
    return publish_to(sample, k=5, cells="popular 20")


@pytest.mark.long
@pytest.mark.parametrize("form", ["predicted", "padded"])
def test_without_noise_each_group_shows_what_most_of_it_rated(publish_to, sample, form: str) -> None:
    published = publish_to(sample, k=5, cells="popular 7", popular_noise=0, homogenize=form)
    shown: dict[int, list[int]] = {}
    others: dict[int, list[int]] = {}
    for group, _, raters, is_shown in _query(published, _COUNTED):
        (shown if is_shown else others).setdefault(group, []).append(raters)
    assert len(shown) == published.audit.counts["groups"]
    for group, raters in shown.items():
        assert len(raters) == 7
        assert min(raters) >= max(others[group])
    assert any("without noise" in told for told in _said(published)["not_promised"])


def _said(published: Published) -> dict:
    return json.loads((published.folder / "audit.json").read_text(encoding="utf-8"))


@pytest.mark.long
def test_with_noise_the_choice_is_neither_the_counts_nor_blind(popular: Published) -> None:
    rows = _query(popular, _COUNTED)
    assert sum(shown for *_, shown in rows) == 20 * popular.audit.counts["groups"]
    mean = {shown: [raters for _, _, raters, is_shown in rows if is_shown == shown] for shown in (True, False)}
    assert sum(mean[True]) / len(mean[True]) > 1.2 * sum(mean[False]) / len(mean[False])
    assert min(mean[True]) < max(mean[False])


@pytest.mark.long
def test_the_release_says_what_was_done(popular: Published) -> None:
    said = _said(popular)
    assert said["parameters"]["cells"] == "popular 20"
    assert said["parameters"]["popular_noise"] == 1
    checks = {check["check"]: check for check in said["checks"]}
    check = checks["groups that show other than 20 items, where there are as many"]
    assert (check["promised"], check["measured"], check["passed"]) == (0, 0, True)
    assert any("exp(1 / popular_noise)" in told for told in said["not_promised"])
    assert all(check.passed for check in verify_release(popular.folder, 5))
    # the values are those of every other choice of cells, and what is shown is what was drawn once
    assert _query(popular, """
        select count(*) from release.kgather__ratings anti join int_kgather__cells using (group_id, item_id)
    """) == [(0,)]  # fmt: skip
    assert _query(popular, """
        select max(abs(ratings.rating - least(greatest(
          groups.level + items.level + list_inner_product(groups.factor, items.factor), scale_min), scale_max)))
          < 0.00501
        from release.kgather__ratings as ratings
        join int_kgather__group_vectors as groups using (group_id)
        join int_kgather__item_factors as items using (item_id)
        cross join int_kgather__scale
    """) == [(True,)]  # fmt: skip


@pytest.mark.long
def test_the_seed_gives_the_groups_and_not_the_noise(popular: Published, publish_anew, sample) -> None:
    again = publish_anew(sample, k=5, cells="popular 20")
    groups = "select list(user_id order by user_id) as users from int_kgather__groups group by group_id order by users"
    assert _query(again, groups) == _query(popular, groups)
    shown = """
        select users, item_id
        from release.kgather__ratings
        join (select group_id, min(user_id) as users from int_kgather__groups group by group_id) using (group_id)
    """
    assert set(_query(again, shown)) != set(_query(popular, shown))


@pytest.mark.long
def test_what_is_drawn_with_noise_is_opened_by_the_working_database_alone(popular: Published, sample: Path) -> None:
    with pytest.raises(InputError, match="chosen with noise, which its original alone does not tell"):
        open_evidence(popular.folder, [str(sample)])
    evidence = open_evidence(popular.folder, [str(popular.work_database)])
    assert len(evidence.shown.sizes) == popular.audit.counts["groups"]


@pytest.mark.long
def test_cells_are_added_to_it_for_diversity(publish_to, sample) -> None:
    published = publish_to(sample, k=5, cells="popular 20", diversity_l=6)
    assert published.audit.passed
    counts = _query(published, "select count(*) from release.kgather__ratings group by group_id")
    assert min(count for (count,) in counts) >= 20
    assert "groups that show fewer than 20 items, where there are as many" in {c.check for c in published.audit.checks}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cells": "popular 7", "homogenize": "pure"}, "popular N goes with homogenize predicted or padded"),
        ({"cells": "popular 7", "homogenize": "microaggregated"}, "popular N goes with homogenize"),
        ({"cells": "popular 0"}, "top N, best N or popular N"),
        ({"cells": "popular"}, "top N, best N or popular N"),
        ({"cells": "popular 7", "popular_noise": -1}, "popular_noise"),
        ({"cells": "popular 7", "popular_noise": float("inf")}, "popular_noise"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict, told: str) -> None:
    with pytest.raises(InputError, match=told):
        PublishSettings.from_options({"k": 5, **given}, [])


@pytest.mark.parametrize(
    ("cells", "form", "told"),
    [
        ("popular 7", "predicted", ""),
        ("popular 7", "padded", ""),
        ("popular 7", "pure", "cells popular N goes with homogenize predicted or padded"),
        ("popular 0", "predicted", "cells is all, rated, low_rank, top N, best N or popular N"),
    ],
)
def test_dbt_knows_it_too(cells: str, form: str, told: str) -> None:
    macros = load_macros(cells=cells, homogenize=form, k=5, ratings="my_ratings")
    said = macros.wrong_settings() or macros.contradicting_settings()
    assert "".join(said).startswith(told)
    assert bool(said) == bool(told)


def _kgather(*arguments: str) -> subprocess.CompletedProcess:
    code = "from kgather._cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.long
def test_on_the_command_line(tmp_path: Path, sample: Path) -> None:
    arguments = ["publish", str(sample), "--k", "5", "--out", str(tmp_path / "release"), "--cells", "popular 9"]
    found = _kgather(*arguments, "--set", "popular_noise=2")
    assert found.returncode == 0, found.stderr
    with duckdb.connect(tmp_path / "release" / "release.duckdb", read_only=True) as con:
        counts = con.sql("select distinct count(*) from kgather__ratings group by group_id").fetchall()
    assert counts == [(9,)]
    refused = _kgather(*arguments, "--force", "--set", "popular_noise=-2")
    assert refused.returncode == 2
    assert "popular_noise is " in refused.stderr
