"""Releases that follow each other: what is promised of whoever is in all, counted from the maps that are kept."""

import csv
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from chain_data import Rows, written
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing import publish as publishing
from kgather._publishing.early import LOADED_ITEMS
from kgather._publishing.history import Following, with_last
from kgather._publishing.publish import Published, publish
from kgather._settings.publication import PublishSettings

pytestmark = pytest.mark.slow
K, RESERVE = 4, 2


@dataclass(frozen=True)
class Chain:
    """Releases and the maps that were kept of them, the first one first, and who was in the input of each."""

    folder: Path
    published: list[Published]
    maps: list[dict[str, int]]
    there: list[set[str]]

    @property
    def work(self) -> Path:
        return self.folder / "work"


def _rows(sample: Path) -> Rows:
    with sample.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _of(rows: Rows, users: Iterable[str]) -> Rows:
    wanted = set(users)
    return [row for row in rows if row["user_id"] in wanted]


def _map(database: Path) -> dict[str, int]:
    """Everybody's group, as the release shows it: from the groups that it was made of, not from the history."""
    with duckdb.connect(database, read_only=True) as con:
        return dict(con.sql("select user_id, group_id from int_kgather__groups").fetchall())


def _history(work: Path) -> dict[str, str]:
    with duckdb.connect(work / "work.duckdb", read_only=True) as con:
        return dict(
            con.sql(
                "select user_id, state from kgather_history "
                "where release_number = (select max(release_number) from kgather_history)"
            ).fetchall()
        )


def _first(folder: Path, rows: Rows, **settings: object) -> Published:
    return publish(
        [written(folder / "first.csv", rows)],
        folder / "first",
        PublishSettings(**{"k": K, "reserve": RESERVE, "metrics": "none", **settings}),
        LoadOptions(),
        keep_work=folder / "work",
    )


def _next(folder: Path, name: str, rows: Rows, following: Following, **settings: object) -> Published:
    asked = with_last(following, PublishSettings(**{"k": K, "metrics": "none", **settings}))
    inputs = [written(folder / f"{name}.csv", rows)] if rows else []
    return publish(inputs, folder / name, asked, LoadOptions(), following=following)


@pytest.fixture(scope="module")
def people(sample: Path) -> list[str]:
    return sorted({row["user_id"] for row in _rows(sample)})


@pytest.fixture(scope="module")
def chain(sample: Path, people: list[str], tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Four releases: one group loses too many, some leave and one of them comes back, newcomers wait and come."""
    folder = tmp_path_factory.mktemp("chain")
    rows = _rows(sample)
    random = np.random.default_rng(3)
    there = [set(people[:160])]
    published = [_first(folder, _of(rows, there[0]))]
    maps = [_map(folder / "work" / "work.duckdb")]
    # All but K - 1 members of the smallest group leave, and two others.
    size = Counter(maps[0].values())
    least = min(size, key=lambda group: (size[group], group))
    members = sorted(user for user, group in maps[0].items() if group == least)
    gone = {*members[K - 1 :], *random.choice(sorted(there[0] - set(members)), 2, replace=False).tolist()}
    waiting = set(people[160 : 160 + 2 * K - 1])
    there.append((there[0] - gone) | waiting)
    back = sorted(gone)[0]
    there.append(there[1] | set(people[160 : 160 + 2 * K]) | {back})
    there.append(there[2] | set(people[175:240]))
    for number, users in enumerate(there[1:], start=2):
        published.append(_next(folder, f"release{number}", _of(rows, users), Following(folder / "work"), seed=number))
        maps.append(_map(folder / "work" / "work.duckdb"))
    return Chain(folder, published, maps, there)


def _intersections(maps: list[dict[str, int]]) -> list[int]:
    """Sizes of the sets of people who are in all these releases and share the group of each."""
    everywhere = set.intersection(*(set(each) for each in maps))
    return list(Counter(tuple(each[user] for each in maps) for user in everywhere).values())


def test_whoever_is_in_several_releases_shares_all_groups_with_k(chain: Chain) -> None:
    for n in range(1, len(chain.maps) + 1):
        for some in combinations(chain.maps, n):
            assert min(_intersections(list(some))) >= K


def test_a_group_that_lost_too_many_is_withdrawn_for_good(chain: Chain) -> None:
    size = Counter(chain.maps[0].values())
    remaining = Counter(group for user, group in chain.maps[0].items() if user in chain.there[1])
    too_small = {group for group in size if remaining[group] < K}
    assert too_small
    withdrawn = {user for user, group in chain.maps[0].items() if group in too_small and user in chain.there[1]}
    assert len(withdrawn) == K - 1
    for later in chain.maps[1:]:
        assert not withdrawn & set(later)


def test_newcomers_wait_for_each_other_and_join_no_group(chain: Chain, people: list[str]) -> None:
    waiting = set(people[160 : 160 + 2 * K - 1])
    assert not waiting & set(chain.maps[1])
    third = chain.maps[2]
    assert waiting <= set(third)
    of_newcomers = {third[user] for user in waiting}
    assert not of_newcomers & {group for user, group in third.items() if user in chain.maps[1]}


def test_nothing_is_learnt_from_those_who_wait(chain: Chain, sample: Path) -> None:
    with duckdb.connect(chain.work / "release-2.duckdb", read_only=True) as con:
        learnt = {user for (user,) in con.sql("select user_id from int_kgather__users").fetchall()}
        reasons = dict(con.sql("select reason, count(*) from int_kgather__rejected_ratings group by 1").fetchall())
    assert learnt == set(chain.maps[1])
    assert set(reasons) == {"user waits for more newcomers", "user is of a group that was withdrawn"}
    absent = chain.there[1] - learnt
    assert sum(reasons.values()) == sum(row["user_id"] in absent for row in _rows(sample))


def test_who_left_and_comes_back_stays_away(chain: Chain) -> None:
    back = (chain.there[0] - chain.there[1]) & chain.there[2]
    assert len(back) == 1
    assert not back & set(chain.maps[2])
    assert not back & set(chain.maps[3])
    assert {_history(chain.work)[user] for user in back} == {"left"}


def test_names_are_new_in_each_release(chain: Chain) -> None:
    groups = [set(each.values()) for each in chain.maps]
    assert all(not one & other for one, other in combinations(groups, 2))
    pseudonyms = []
    for each in chain.published:
        with duckdb.connect(each.folder / "release.duckdb", read_only=True) as con:
            pseudonyms.append({name for (name,) in con.sql("select pseudonym from kgather__members").fetchall()})
    assert all(not one & other for one, other in combinations(pseudonyms, 2))


def test_the_audit_counts_absent_people_in_steps_of_k_and_not_their_ratings(chain: Chain) -> None:
    said = json.loads((chain.published[1].folder / "audit.json").read_text(encoding="utf-8"))
    checks: Mapping[str, Mapping[str, int]] = {check["check"]: check for check in said["checks"]}
    waiting = checks["newcomers who wait for the next release, in steps of k"]["measured"]
    assert waiting == (2 * K - 1) // K * K
    kept = next(check for name, check in checks.items() if name.startswith("k-anonymity over releases"))
    assert (kept["promised"], kept["measured"]) == (K, min(_intersections(chain.maps[:2])))
    assert said["counts"]["read_rows"] == said["counts"]["staged_rows"]
    text = json.dumps(said)
    assert "user waits" not in text
    assert "withdrawn" not in json.dumps(said["counts"])
    assert all("rows" not in file for file in said["read"]["files"])


def test_only_changes_give_the_same_people_as_all_data(
    chain: Chain, sample: Path, people: list[str], tmp_path: Path
) -> None:
    """From the third release: with the fourth one's newcomers as additions and three who leave."""
    rows = _rows(sample)
    shutil.copytree(chain.work, tmp_path / "work")
    shutil.copy(chain.work / "release-3.duckdb", tmp_path / "work" / "work.duckdb")
    leaving = sorted(chain.maps[2])[:3]
    removed = tuple(leaving)
    following = Following(tmp_path / "work", additions=True, removed=removed)
    changed = _next(tmp_path, "changed", _of(rows, people[175:240]), following)
    by_changes = _map(tmp_path / "work" / "work.duckdb")
    shutil.copy(chain.work / "release-3.duckdb", tmp_path / "work" / "work.duckdb")
    everybody = chain.there[3] - set(leaving)
    _next(tmp_path, "everybody", _of(rows, everybody), Following(tmp_path / "work"))
    by_all = _map(tmp_path / "work" / "work.duckdb")
    assert _partition(by_changes) == _partition(by_all)
    assert changed.audit.passed
    assert not set(leaving) & set(by_changes)


def _partition(groups: Mapping[str, int]) -> set[frozenset[str]]:
    members: dict[int, set[str]] = {}
    for user, group in groups.items():
        members.setdefault(group, set()).add(user)
    return {frozenset(each) for each in members.values()}


def test_the_same_input_with_another_seed_has_the_same_groups_and_ids_where_asked(
    chain: Chain, sample: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(chain.work / "work.duckdb", work / "work.duckdb")
    rows = _of(_rows(sample), chain.there[3])
    _next(tmp_path, "again", rows, Following(work), seed=99, keep_group_ids=True)
    again = _map(work / "work.duckdb")
    assert _partition(again) == _partition(chain.maps[3])
    _next(tmp_path, "more", rows, Following(work), seed=100, keep_group_ids=True)
    assert _map(work / "work.duckdb") == again


def _attack(chain: Chain, first: int, second: Path, second_map: Path, *more: str) -> tuple[int, str, str]:
    """`kgather attack` of two releases, the first one of the chain: exit code, what is printed, what is said."""
    done = CliRunner().invoke(
        app,
        ["attack", str(chain.published[first].folder), "--original", str(_kept(chain, first)), "--second", str(second),
         "--second-original", str(second_map), "--known", "4", "--targets", "50", "--no-on-original", "--attacks",
         "intersection,changes", *more],
    )  # fmt: skip
    return done.exit_code, done.stdout, done.stderr


def _kept(chain: Chain, number: int) -> Path:
    """The working database that was kept of a release of the chain."""
    last = len(chain.published) - 1
    return chain.work / ("work.duckdb" if number == last else f"release-{number + 1}.duckdb")


@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 3), (2, 3)])
def test_two_releases_of_a_chain_pass_the_attack(chain: Chain, first: int, second: int) -> None:
    code, said, errors = _attack(chain, first, chain.published[second].folder, _kept(chain, second), "--json")
    found = json.loads(said)
    assert (code, errors, found["chain"]["promised"]) == (0, "", K)
    assert found["chain"]["measured"] == min(_intersections([chain.maps[first], chain.maps[second]]))
    assert found["chain"]["measured"] == found["results"][0]["details"]["least_in_common"]


def test_a_release_beside_the_chain_fails_the_attack(chain: Chain, sample: Path, tmp_path: Path) -> None:
    """One that is made anew of the same people has other groups."""
    other = _first(tmp_path, _of(_rows(sample), chain.there[3]), seed=77)
    assert other.work_database is not None
    joint = min(_intersections([chain.maps[3], _map(other.work_database)]))
    assert joint < K
    code, said, errors = _attack(chain, 3, other.folder, other.work_database)
    assert (code, f"{joint} at least" in said) == (3, True)
    assert f"the promise over both releases is not kept: {K} people" in errors


@pytest.mark.parametrize(
    "other", [{"k": K + 1}, {"cells": "top 5"}, {"homogenize": "padded"}, {"item_noise": 0.0}, {"scale": [0, 6]}]
)
def test_another_kind_of_release_is_refused_before_any_work(chain: Chain, other: Mapping[str, object]) -> None:
    [name] = other
    with pytest.raises(InputError, match=f"{name} was .* and is "):
        with_last(Following(chain.work), PublishSettings(**{"k": K, **other}))


def test_what_all_releases_have_in_common_need_not_be_said_again(chain: Chain) -> None:
    asked = with_last(Following(chain.work), PublishSettings(k=K))
    assert (asked.history, asked.gathered, asked.form) == (True, K + 3, "predicted")


@pytest.mark.parametrize("what", ["nothing", "text", "other"])
def test_what_is_no_kept_work_is_refused(what: str, tmp_path: Path) -> None:
    if what == "text":
        (tmp_path / "work.duckdb").write_text("no database")
    if what == "other":
        with duckdb.connect(tmp_path / "work.duckdb") as con:
            con.execute("create table ratings (user_id bigint)")
    with pytest.raises(InputError, match="--keep-work"):
        with_last(Following(tmp_path), PublishSettings(k=K))


def test_a_release_without_a_reserve_can_be_followed(sample: Path, people: list[str], tmp_path: Path) -> None:
    """Of a release that was not made to be followed the map is taken as it is."""
    rows = _rows(sample)
    first = publish(
        [written(tmp_path / "first.csv", _of(rows, people[:60]))],
        tmp_path / "first",
        PublishSettings(k=K, metrics="none"),
        LoadOptions(),
        keep_work=tmp_path / "work",
    )
    assert first.work_database is not None
    before = _map(first.work_database)
    _next(tmp_path, "second", _of(rows, people[1:60]), Following(tmp_path / "work"))
    after = _map(tmp_path / "work" / "work.duckdb")
    assert min(_intersections([before, after])) >= K


def test_the_map_is_kept_before_the_release_is_in_its_place(
    chain: Chain, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that breaks between the two has kept a map of a release that nobody has, and the chain goes on from it."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(chain.work / "work.duckdb", work / "work.duckdb")
    rows = _of(_rows(sample), chain.there[3])

    def break_off(*_: object, **__: object) -> None:
        raise OSError(5, "the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "put_in_place", break_off)
        with pytest.raises(OSError, match="the disk is gone"):
            _next(tmp_path, "lost", rows, Following(work))
    assert not (tmp_path / "lost").exists()
    assert _partition(_map(work / "work.duckdb")) == _partition(chain.maps[3])
    assert (work / "release-1.duckdb").exists()
    _next(tmp_path, "next", rows, Following(work))
    assert _partition(_map(work / "work.duckdb")) == _partition(chain.maps[3])


def test_what_waits_and_goes_is_forgotten(chain: Chain, sample: Path, people: list[str], tmp_path: Path) -> None:
    """Of a newcomer who never was in a release nothing is kept, and coming later is coming for the first time."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(chain.work / "release-2.duckdb", work / "work.duckdb")
    _next(tmp_path, "without", _of(_rows(sample), chain.maps[1]), Following(work))
    assert not set(people[160 : 160 + 2 * K - 1]) & set(_history(work))


def test_bounds_of_items_add_up(sample: Path, people: list[str], tmp_path: Path) -> None:
    """Two releases of one bound cost what the sum of their charges does: more than one, less than twice its epsilon."""
    rows = _rows(sample)
    items = tmp_path / "items.csv"
    items.write_text("item_id\n" + "\n".join(sorted({row["item_id"] for row in rows})), encoding="utf-8")
    options = LoadOptions(items=str(items))
    asked = PublishSettings(k=K, reserve=RESERVE, metrics="none", item_epsilon=8.0, scale=[0.5, 5], items=LOADED_ITEMS)
    for name, some in (("first", people[:60]), ("second", people[:60])):
        following = None if name == "first" else Following(tmp_path / "work")
        publish(
            [written(tmp_path / f"{name}.csv", _of(rows, some))],
            tmp_path / name,
            asked if following is None else with_last(following, asked),
            options,
            keep_work=tmp_path / "work" if following is None else None,
            following=following,
        )
    first, second = (
        json.loads((tmp_path / name / "audit.json").read_text(encoding="utf-8"))["item_privacy"]
        for name in ("first", "second")
    )
    together = second["all_releases"]
    assert together["releases"] == 2
    assert together["rho"] == pytest.approx(first["rho"] + second["rho"])
    assert second["epsilon_of_charges"] < together["epsilon_of_charges"] < 2 * second["epsilon_of_charges"]
