"""Every method of gathering and of anonymizing through the whole pipeline, on small data."""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import duckdb
import pytest

from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing.publish import LOADED_ATTRIBUTES, AttributesSource, Published, look
from kgather._settings.publication import PublishSettings
from kgather._settings.validation import validated
from kgather._verify import promised_size, verify_release
from kgather._verify.models import K_ANONYMITY

Publish = Callable[..., Published]
Rows = list[tuple[Any, ...]]


def released_rows(published: Published, query: str) -> Rows:
    with duckdb.connect(str(published.folder / "release.duckdb"), read_only=True) as con:
        return con.sql(query).fetchall()


def secret_rows(published: Published, query: str) -> Rows:
    assert published.work_database
    with duckdb.connect(str(published.work_database), read_only=True) as con:
        return con.sql(query).fetchall()


def secret_map(published: Published) -> dict[Any, int]:
    return dict(secret_rows(published, "select user_id, group_id from int_kgather__groups"))


def checks(published: Published) -> dict[str, int]:
    return {check.check: check.measured for check in published.audit.checks}


def partition(published: Published) -> set[frozenset]:
    members = defaultdict(set)
    for user, group in secret_map(published).items():
        members[group].add(user)
    return {frozenset(group) for group in members.values()}


@pytest.fixture(scope="module")
def bare(sample: Path, publish_to: Publish) -> Published:
    """The default method, on one thread."""
    return publish_to(sample, k=5, threads=1)


def test_groups_depend_on_the_seed_alone(bare: Published, sample: Path, publish_to: Publish) -> None:
    again = publish_to(sample, k=5, threads=2)
    assert partition(again) == partition(bare)
    names = "select min(pseudonym) from kgather__members"
    assert released_rows(again, names) != released_rows(bare, names)


def test_blocks_hold_groups_of_k(sample: Path, publish_to: Publish) -> None:
    published = publish_to(sample, k=5, method="mdav", block_size=60)
    groups = partition(published)
    assert min(map(len, groups)) >= 5
    assert sum(map(len, groups)) == 240
    assert released_rows(published, "select count(*) from kgather__ratings") == [(80 * len(groups),)]
    assert all(check.passed for check in verify_release(published.folder, 5))


def test_bins_are_reported(sample: Path, publish_to: Publish) -> None:
    published = publish_to(sample, k=5, method="bounded_t_means", method_options={"rounds": 3})
    assert min(map(len, partition(published))) >= 5
    sizes = [n for (n,) in secret_rows(published, "select count(*) from int_kgather__gathered group by bin")]
    assert len(sizes) > 1
    told = checks(published)
    assert told["users in the smallest bin"] == min(sizes)
    assert told["users in the largest bin"] == max(sizes)


@pytest.mark.parametrize("fill", ["median", "mean"])
def test_microaggregation_is_the_centroid_of_filled_ratings(fill: str, sample: Path, publish_to: Publish) -> None:
    """The system of Casino et al.: fill, z-score, MDAV, centroid, de-standardize; nothing is learnt for it."""
    published = publish_to(
        sample,
        k=5,
        method="mdav",
        metric="filled",
        homogenize="microaggregated",
        solver="none",
        refine=False,
        fill=fill,
    )
    groups = secret_map(published)
    ratings = {
        (user, item): rating
        for user, item, rating in secret_rows(published, "select user_id, item_id, rating from stg_kgather__ratings")
    }
    [(low, high)] = secret_rows(published, "select scale_min, scale_max from int_kgather__scale")
    filling = (low + high) / 2 if fill == "median" else mean(ratings.values())
    members = defaultdict(list)
    for user, group in groups.items():
        members[group].append(user)
    cells = released_rows(published, "select group_id, item_id, rating from kgather__ratings")
    assert len(cells) == 80 * len(members)
    for group, item, rating in cells:
        filled = [ratings.get((user, item), filling) for user in members[group]]
        assert rating == pytest.approx(mean(filled))
    # All groups have k members but the last of MDAV, or those that took its members.
    assert Counter(map(len, members.values()))[5] >= len(members) - 5


def wide(folder: Path) -> Path:
    """Ten users who rated five books, with what is known of them."""
    file = folder / "books.csv"
    file.write_text((Path(__file__).parents[2] / "fixtures" / "recommendation_table.csv").read_text())
    return file


BOOKS = ["warcross", "joy_ride", "egomaniac", "pachinko", "geekerella"]


def publish_books(publish_to: Publish, folder: Path, **settings: Any) -> Published:
    return publish_to(
        wide(folder),
        load={"artifact_columns": tuple(BOOKS)},
        user_attributes=LOADED_ATTRIBUTES,
        scale=(0, 5, 1),
        **settings,
    )


@pytest.mark.parametrize("method", ["k_member", "mondrian"])
def test_a_wide_table_is_generalized(method: str, tmp_path: Path, publish_to: Publish) -> None:
    settings = {"k": 3, "method": method, "personal_columns": ["age", "city"]}
    # The rarest age and city are those of one person, which is not published unasked.
    with pytest.raises(InputError, match="rare ones single people out"):
        publish_books(publish_to, tmp_path, **settings, personal="as_is")
    published = publish_books(publish_to, tmp_path, **settings, personal="as_is", i_know_this_is_not_anonymous=True)
    assert not (published.folder / "ratings.parquet").exists()
    with duckdb.connect(str(published.folder / "release.duckdb"), read_only=True) as con:
        assert con.sql("from kgather__generalized").columns == ["group_id", *BOOKS, "age", "city"]
    rows = released_rows(published, "from kgather__generalized")
    assert min((age, city) for *_, age, city in rows) == (23, "Los Angeles")
    # Every member's value is in the set that stands for it; 0 is not rated.
    true_values = defaultdict(dict)
    for user, item, rating in secret_rows(published, "select user_id, item_id, rating from stg_kgather__ratings"):
        true_values[user][item] = rating
    shown = {row[0]: row[1:6] for row in rows}
    for user, group in secret_map(published).items():
        for book, values in zip(BOOKS, shown[group], strict=True):
            assert (true_values[user].get(book, 0.0) in values) if values else book not in true_values[user]
    # The release keeps what it promised, and verify says what it is.
    failed = [check.check for check in verify_release(published.folder, 3) if not check.passed]
    assert failed == [K_ANONYMITY]


@pytest.mark.parametrize("method", ["k_member", "mondrian", "k_likeness"])
def test_personal_attributes_are_generalized_with_their_group(method: str, tmp_path: Path, publish_to: Publish) -> None:
    published = publish_books(
        publish_to, tmp_path, k=3, method=method, personal_columns=["age", "city"],
        personal_recoding={"age": {"step": 5}, "city": {"hierarchy": CITIES}},
    )  # fmt: skip
    rows = released_rows(published, "from kgather__generalized")
    # Nobody stands alone in anything that is shown, whichever columns somebody knows.
    by_all = Counter((str(row[1:6]), *row[6:]) for row in rows)
    assert min(by_all.values()) >= 3
    assert min(Counter(row[6:] for row in rows).values()) >= 3
    assert len(by_all) > 1
    known = dict(secret_rows(published, "select user_id, (age, city) from stg_kgather__user_attributes"))
    shown = {row[0]: row[6:] for row in rows}
    labels = {line[0]: set(line) for line in CITIES}
    for user, group in secret_map(published).items():
        age, city = known[user]
        low, high = map(int, shown[group][0].strip("[)").split(", "))
        assert low <= age < high
        assert shown[group][1] in labels[city]
    told = checks(published)
    assert told["users in the smallest class of all that is shown of somebody, personal attributes included"] >= 3
    assert all(check.passed for check in verify_release(published.folder, 3))


def test_personal_attributes_may_have_a_table_of_their_own(tmp_path: Path, publish_to: Publish) -> None:
    published = publish_books(
        publish_to, tmp_path, k=3, method="k_member", personal="separate", personal_columns=["age", "city"],
        personal_recoding={"age": {"step": 5}, "city": {"hierarchy": CITIES}},
    )  # fmt: skip
    with duckdb.connect(str(published.folder / "release.duckdb"), read_only=True) as con:
        assert con.sql("from kgather__generalized").columns == ["group_id", *BOOKS]
        assert con.sql("from kgather__personal").columns == ["age", "city"]
        rows = con.sql("from kgather__personal").fetchall()
        assert rows == con.sql("from kgather__personal order by all").fetchall()
    assert len(rows) == 10
    assert min(Counter(rows).values()) >= 3
    told = checks(published)
    assert told["users in the smallest class of the personal attributes"] == min(Counter(rows).values())
    personal = dict(secret_rows(published, "select user_id, (age, city) from int_kgather__personal"))
    both = Counter((group, personal[user]) for user, group in secret_map(published).items())
    smallest = "users in the smallest intersection of a group and a class of the personal attributes"
    assert told[smallest] == min(both.values())
    assert all(check.passed for check in verify_release(published.folder, 3))


def test_declared_columns_are_in_both_tables(tmp_path: Path, publish_to: Publish) -> None:
    published = publish_books(
        publish_to, tmp_path, k=3, method="k_member", personal="separate", personal_columns=["age", "city"],
        personal_shared=["city"], personal_recoding={"age": {"step": 5}, "city": {"hierarchy": CITIES}},
    )  # fmt: skip
    with duckdb.connect(str(published.folder / "release.duckdb"), read_only=True) as con:
        assert con.sql("from kgather__generalized").columns == ["group_id", *BOOKS, "city"]
        assert con.sql("from kgather__personal").columns == ["age", "city"]
        groups = con.sql("from kgather__generalized").fetchall()
        rows = con.sql("from kgather__personal").fetchall()
    assert min(Counter(rows).values()) >= 3
    by_all = Counter(str(row[1:]) for row in groups)
    assert min(by_all.values()) >= 3
    known = dict(secret_rows(published, "select user_id, city from stg_kgather__user_attributes"))
    shown = {row[0]: row[-1] for row in groups}
    labels = {line[0]: set(line) for line in CITIES}
    assert all(shown[group] in labels[known[user]] for user, group in secret_map(published).items())
    told = checks(published)
    assert told["users in the smallest class of all that is shown of somebody, personal attributes included"] == min(
        by_all.values()
    )
    assert all(check.passed for check in verify_release(published.folder, 3))
    # Undeclared, the same files are refused.
    undeclared = tmp_path / "undeclared"
    shutil.copytree(published.folder, undeclared)
    audit = json.loads((undeclared / "audit.json").read_text())
    audit["parameters"]["personal_shared"] = []
    (undeclared / "audit.json").write_text(json.dumps(audit))
    failed = [check.check for check in verify_release(undeclared, 3) if not check.passed]
    assert failed == [
        "columns of personal.parquet and generalized.parquet that are not declared as shared: city",
        "pages that are not that of audit.json",
    ]


@pytest.mark.parametrize("method", ["k_member", "mondrian", "k_likeness"])
@pytest.mark.parametrize("personal", ["generalize", "separate"])
def test_categories_are_artifacts_too(method: str, personal: str, tmp_path: Path, publish_to: Publish) -> None:
    """Everybody rated alike, so that categories alone tell users apart: groups are of one category each."""
    name = 'home "region"'
    people = [(user, "north" if user % 3 == 0 else "south" if user % 3 == 1 else None) for user in range(1, 19)]
    file = tmp_path / f"{method}.csv"
    rows = "".join(f"{user},4,2,{region or ''}\n" for user, region in people)
    file.write_text(f'user_id,a,b,"home ""region"""\n{rows}')
    published = publish_to(
        file, load={"artifact_columns": ("a", "b")}, user_attributes=LOADED_ATTRIBUTES, scale=(0, 5, 1), k=3,
        method=method, personal_columns=[name], categorical_artifacts=[name], personal=personal,
        personal_shared=[name] if personal == "separate" else [],
    )  # fmt: skip
    region = dict(people)
    of_group = defaultdict(set)
    for user, group in secret_map(published).items():
        of_group[group].add(region[user])
    assert len(of_group) >= 3
    assert all(len(regions) == 1 for regions in of_group.values())
    shown = {row[0]: row[-1] for row in released_rows(published, "from kgather__generalized")}
    assert {group: {value} for group, value in shown.items()} == dict(of_group)
    assert all(check.passed for check in verify_release(published.folder, 3))


CITIES = [
    ["Los Angeles", "West", "*"], ["San Antonio", "West", "*"], ["New York", "East", "*"], ["Columbus", "East", "*"],
]  # fmt: skip


def test_the_papers_table_of_ranges(tmp_path: Path, publish_to: Publish) -> None:
    """Table 2 of Riyana and Natwichai from its Table 1, by k-Likeness and the halves of the scale."""
    published = publish_books(publish_to, tmp_path, k=3, method="k_likeness", generalize="dgh")
    assert partition(published) == {frozenset({1, 2, 3}), frozenset({4, 5, 6, 7}), frozenset({8, 9, 10})}
    low, high = {"low": 0.0, "high": 2.0}, {"low": 3.0, "high": 5.0}
    two, three, four, five = ({"low": value, "high": value} for value in (2.0, 3.0, 4.0, 5.0))
    assert Counter(str(row[1:]) for row in released_rows(published, "from kgather__generalized")) == Counter(
        {
            str((high, None, high, low, high)): 3,
            str((low, five, high, low, low)): 4,
            str((two, four, three, None, None)): 3,
        }
    )


def test_users_without_artifacts_are_set_aside_and_counted(sample: Path, publish_to: Publish) -> None:
    published = publish_to(sample, k=5, method="k_likeness", artifacts=1)
    raters = secret_rows(published, "select max(raters) from int_kgather__items")[0][0]
    assert raters < 240
    assert checks(published)["users set aside: they rated none of the artifacts"] == 240 - raters
    assert released_rows(published, "select count(*) from kgather__generalized") == [(raters,)]


def test_other_methods_generalize_everybody(sample: Path, publish_to: Publish) -> None:
    published = publish_to(sample, k=5, method="bkg", generalize="ndgh", artifacts=3)
    assert released_rows(published, "select count(*) from kgather__generalized") == [(240,)]
    assert (published.folder / "ratings.parquet").exists()


def levels_of(folder: Path, sample: Path, levels: list[int | None]) -> Path:
    with duckdb.connect() as con:
        users = [u for (u,) in con.sql(f"select distinct user_id from '{sample}' order by 1").fetchall()]
    file = folder / "users.csv"
    lines = [f"{user},{'' if level is None else level}" for user, level in zip(users, levels * 240, strict=False)]
    file.write_text("user_id,level\n" + "\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize(("method", "levels"), [("bokg", [1, 5]), ("customized", [1, 2, None, 9])])
def test_users_choose_their_level(
    method: str, levels: list[int | None], sample: Path, tmp_path: Path, publish_to: Publish
) -> None:
    published = publish_to(
        sample,
        attributes=levels_of(tmp_path, sample, levels),
        k=5,
        method=method,
        user_attributes=LOADED_ATTRIBUTES,
        level_column="level",
    )
    wanted = dict(secret_rows(published, "select user_id, level from int_kgather__user_levels"))
    assert Counter(wanted.values()) == Counter(5 if level is None else level for level in (levels * 240)[:240])
    sizes = Counter(secret_map(published).values())
    assert all(sizes[group] >= wanted[user] for user, group in secret_map(published).items())
    assert min(sizes.values()) == 1
    told = checks(published)
    assert told["users in a group smaller than they ask for"] == 0
    assert told["users who stand alone"] == sum(size == 1 for size in sizes.values())
    # What is promised to everybody is what those get who asked for least.
    assert promised_size(published.folder) == 1


@pytest.mark.parametrize("method", ["bokg", "customized"])
@pytest.mark.parametrize(("levels", "warned"), [([1], True), ([1, None], False), ([1, 5], False)])
def test_who_lets_everybody_stand_alone_is_told(
    method: str, levels: list[int | None], warned: bool, sample: Path, tmp_path: Path
) -> None:
    asked = {"k": 5, "method": method, "user_attributes": LOADED_ATTRIBUTES, "level_column": "level"}
    told: list[str] = []
    look(
        [str(sample)],
        validated(PublishSettings, asked),
        LoadOptions(),
        user_attributes=AttributesSource(str(levels_of(tmp_path, sample, levels))),
        warn=told.append,
    )
    assert any("every user may stand alone" in warning for warning in told) == warned


def test_levels_that_are_none(sample: Path, tmp_path: Path, publish_to: Publish) -> None:
    with pytest.raises(InputError, match="120 users have a level in the column level that is no whole number"):
        publish_to(
            sample,
            attributes=levels_of(tmp_path, sample, [5, 0]),
            k=5,
            method="customized",
            user_attributes=LOADED_ATTRIBUTES,
            level_column="level",
        )


def test_epsilon_moves_ratings_into_windows(sample: Path, publish_to: Publish) -> None:
    published = publish_to(sample, k=5, method="epsilon", epsilon=2)
    spans = released_rows(
        published,
        """
        select max(rating) - min(rating), count(*), any_value(group_size)
        from kgather__user_ratings join kgather__members using (pseudonym) join kgather__groups using (group_id)
        group by group_id, item_id
        """,
    )
    assert spans
    assert all(span <= 2 and rated == members for span, rated, members in spans)
    windows = released_rows(published, "select high - low, count(*) from kgather__intervals group by 1")
    assert [span for span, _ in windows] == [2.0]
    assert all(check.passed for check in verify_release(published.folder, 5))
    said = json.loads((published.folder / "audit.json").read_text())["not_promised"]
    assert any("(k, epsilon)" in sentence for sentence in said)


def test_who_has_too_few_near_ones_is_left_out(tmp_path: Path, publish_to: Publish) -> None:
    # Two sets of near users, and three who are near nobody: another film, a gap of 3, one rating more.
    ratings = [(user, item, 3 + user % 2) for user in range(6) for item in ("a", "b")]
    ratings += [(user, "c", 1 + user % 2) for user in range(10, 15)]
    ratings += [(20, "d", 3), (21, "a", 1), (21, "b", 1), (22, "a", 3), (22, "b", 3), (22, "c", 3)]
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n" + "\n".join(f"u{user},{item},{rating}" for user, item, rating in ratings))
    published = publish_to(
        file, k=3, method="epsilon", epsilon=1, method_options={"by": "deletion"}, scale=[1, 5, 1], solver="als"
    )
    kept = {f"u{user}" for user in (*range(6), *range(10, 15))}
    assert set(secret_map(published)) == kept
    told = checks(published)
    assert told["users not left out in exactly one group"] == 11
    assert told["users left out: they are in no clique of users within epsilon of each other"] == 3
    shown = secret_rows(published, "select user_id, group_id from int_kgather__groups")
    assert min(Counter(group for _, group in shown).values()) >= 3
    # What is kept is shown as it is: the multiset of rows is that of the input.
    before, after = defaultdict(list), defaultdict(list)
    for user, item, rating in ratings:
        before[f"u{user}"].append((item, float(rating)))
    for pseudonym, item, rating in released_rows(published, "from kgather__user_ratings order by all"):
        after[pseudonym].append((item, rating))
    assert sorted(after.values()) == sorted(sorted(before[user]) for user in kept)
    assert all(check.passed for check in verify_release(published.folder, 3))


def test_deletion_that_leaves_nobody_is_refused(sample: Path, publish_to: Publish) -> None:
    with pytest.raises(InputError, match=r"nobody has 4 others within 0\.5 of all"):
        publish_to(sample, k=5, method="epsilon", epsilon=0.5, method_options={"by": "deletion"})


def test_noise_is_no_anonymity_and_says_so(sample: Path, publish_to: Publish) -> None:
    with pytest.raises(InputError, match="--i-know-this-is-not-anonymous"):
        validated(PublishSettings, {"k": 5, "method": "gaussian_noise"})
    published = publish_to(
        sample, k=5, method="gaussian_noise", i_know_this_is_not_anonymous=True, cells="rated", noise_sigma=0.5,
        noise_clip=False,
    )  # fmt: skip
    pairs = secret_rows(published, "select count(*) from stg_kgather__ratings")
    assert released_rows(published, "select count(*) from kgather__user_ratings") == pairs
    noise = secret_rows(
        published,
        """
        with spread as (select item_id, stddev_pop(rating) as sd from stg_kgather__ratings group by item_id)
        select (noisy.rating - ratings.rating) / sd
        from int_kgather__noisy_ratings as noisy
        join stg_kgather__ratings as ratings using (user_id, item_id)
        join spread using (item_id)
        """,
    )
    assert pstdev(z for (z,) in noise) == pytest.approx(0.5, abs=0.03)
    told = {check.check: check for check in published.audit.checks}
    assert told["k-anonymity: users in the smallest group"].promised is None
    assert told["users who stand alone"].measured == 240
    assert not all(check.passed for check in verify_release(published.folder, promised_size(published.folder)))


@pytest.mark.parametrize(
    ("b", "form"),
    [(1, {"homogenize": "pure", "single_rater": "drop"}), (2, {"homogenize": "padded", "cells": "rated"})],
    ids=["1", "2"],
)
def test_cells_are_added_until_enough_groups_show_an_item(
    b: int, form: dict, sample: Path, publish_to: Publish
) -> None:
    published = publish_to(sample, k=10, diversity_b=b, diversity_l=12, **form)
    shown = released_rows(published, "select count(*) from kgather__ratings group by item_id")
    assert len(shown) == 80
    assert min(shown)[0] >= 12
    added = secret_rows(published, "select count(*) from int_kgather__added_cells")[0][0]
    assert added > 0
    told = checks(published)
    assert told["cells added for (b, l)-diversity"] == added
    assert told[f"(b, l)-diversity: groups that show the set of {b} items which the fewest show"] >= 12


def test_what_is_sensitive_stays_diverse(bare: Published, sample: Path, publish_to: Publish) -> None:
    published = publish_to(sample, k=5, sensitive_items=[2, 43], sensitive_l=3)
    assert checks(published)["distinct 3.0-diversity: groups and sensitive attributes without it"] == 0
    assert len(partition(published)) < len(partition(bare))
    groups = secret_map(published)
    values = defaultdict(set)
    for user, rating in secret_rows(published, "select user_id, rating from stg_kgather__ratings where item_id = 2"):
        values[groups[user]].add(rating)
    assert min(map(len, values.values())) >= 3


def test_diversity_that_cannot_be(sample: Path, publish_to: Publish) -> None:
    with pytest.raises(InputError, match="item 2"):
        publish_to(sample, k=5, sensitive_items=[2], sensitive_l=50)
