"""Chains that go otherwise than planned, looked at by a program of its own that intersects what all releases have."""

import csv
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from chain_data import Rows, written
from outsider import look, telling

from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing.history import Following, with_last
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings

pytestmark = [pytest.mark.slow, pytest.mark.long]
K = 4
_OF_VALUES = ("files.", "attacks.")
"""What an audit tells of values that are shown, which are learnt anew each time."""


@pytest.fixture(scope="module")
def rows(sample: Path) -> Rows:
    with sample.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _of(rows: Rows, people: slice | Iterable[str]) -> Rows:
    if isinstance(people, slice):
        people = sorted({row["user_id"] for row in rows})[people]
    wanted = set(people)
    return [row for row in rows if row["user_id"] in wanted]


def _publish(
    folder: Path, name: str, rows: Rows, *, seed: int = 0, additions: bool = False, removed: Iterable[str] = ()
) -> dict[str, int]:
    """Publish, after what the folder has, and return everybody's group as the release was made of."""
    work = folder / "work"
    following = Following(work, additions, tuple(removed)) if work.exists() else None
    asked = PublishSettings(k=K, metrics="none", seed=seed, **({} if following else {"reserve": 2}))
    publish(
        [written(folder / f"{name}.csv", rows)] if rows else [],
        folder / name,
        asked if following is None else with_last(following, asked),
        LoadOptions(),
        keep_work=None if following else work,
        following=following,
    )
    return _map(work / "work.duckdb")


def _map(database: Path) -> dict[str, int]:
    with duckdb.connect(database, read_only=True) as con:
        return dict(con.sql("select user_id, group_id from int_kgather__groups").fetchall())


def _smallest(maps: Sequence[dict[str, int]]) -> int:
    """Over all sets of releases: people in the smallest set that is in all of them and shares a group of each."""
    least = len(maps[0])
    for n in range(1, len(maps) + 1):
        for some in combinations(maps, n):
            everywhere = set.intersection(*map(set, some))
            shared = Counter(tuple(one[user] for one in some) for user in everywhere)
            least = min([least, *shared.values()])
    return least


def test_one_person_a_month_comes_with_others_only(rows: Rows, tmp_path: Path) -> None:
    maps = [_publish(tmp_path, str(month), _of(rows, slice(100 + month))) for month in range(10)]
    assert [len(one) for one in maps] == [100] * 8 + [108] * 2
    assert _smallest(maps) >= K
    seen = look([tmp_path / str(month) for month in range(10)], K)
    assert [pair.more for pair in seen] == [0] * 7 + [2 * K, 0]
    assert all(len(pair.stayed) == len(set(maps[0].values())) and not pair.leavers() for pair in seen[:7])
    # Of those who wait an audit tells nothing but how many they are, in steps of k. That files differ is told.
    for pair in seen[1:7]:
        assert {name for name in telling(pair.first.audit, pair.second.audit) if not name.startswith(_OF_VALUES)} <= {
            "checks.measured",
            "read.files.file",
            "read.files.keyed_sha256",
        }


def test_many_leave_at_once(rows: Rows, tmp_path: Path) -> None:
    first = _publish(tmp_path, "first", _of(rows, slice(200)))
    stay = sorted(first)[::3]
    second = _publish(tmp_path, "second", _of(rows, stay))
    third = _publish(tmp_path, "third", _of(rows, slice(200)))
    assert set(third) <= set(second) < set(stay)
    assert _smallest([first, second, third]) >= K
    one, two = look([tmp_path / name for name in ("first", "second", "third")], K)
    assert (one.more, two.more) == (len(second) - len(first), len(third) - len(second))
    assert Counter(two.first.sizes.tolist()) == Counter(two.second.sizes.tolist())


def test_sums_that_are_subtracted_tell_less_of_who_left_than_the_group_did(rows: Rows, tmp_path: Path) -> None:
    mine = _of(rows, slice(100))
    first = _publish(tmp_path, "first", mine)
    sizes = Counter(first.values())
    of_group = {group: user for user, group in sorted(first.items(), reverse=True) if sizes[group] > K + 1}
    gone = sorted(of_group.values())[:3]
    second = _publish(tmp_path, "second", _of(rows, set(first) - set(gone)))
    assert _smallest([first, second]) >= K
    [pair] = look([tmp_path / "first", tmp_path / "second"], K)
    assert pair.more == -3
    worked_out = [[_gap(told, pair.shared, mine, user) for user in gone] for told, _ in pair.leavers()]
    shown = [[_gap(before, pair.shared, mine, user) for user in gone] for _, before in pair.leavers()]
    # Each is compared with who fits best.
    assert len(worked_out) >= 2
    assert np.min(worked_out, axis=1).mean() > np.min(shown, axis=1).mean()


def _gap(told: np.ndarray, items: Sequence[str], rows: Rows, user: str) -> float:
    """The mean distance of what is told of items, float64[i], to somebody's ratings."""
    own = {row["item_id"]: float(row["rating"]) for row in rows if row["user_id"] == user}
    return float(np.mean([abs(number - own[item]) for number, item in zip(told, items, strict=True) if item in own]))


def test_who_changes_everything_stays_in_the_group(rows: Rows, tmp_path: Path) -> None:
    mine = _of(rows, slice(100))
    target = mine[0]["user_id"]
    other = [{**row, "rating": "0.5" if row["user_id"] == target else row["rating"]} for row in mine]
    maps = [_publish(tmp_path, name, some) for name, some in (("first", mine), ("second", other), ("third", mine))]
    assert len({frozenset(user for user, group in one.items() if group == one[target]) for one in maps}) == 1
    assert _smallest(maps) == min(Counter(maps[0].values()).values()) >= K
    seen = look([tmp_path / name for name in ("first", "second", "third")], K)
    assert all(Counter(pair.first.sizes.tolist()) == Counter(pair.second.sizes.tolist()) for pair in seen)


def test_the_same_input_with_other_seeds_tells_nothing_more(rows: Rows, tmp_path: Path) -> None:
    mine = _of(rows, slice(100))
    maps = [_publish(tmp_path, str(seed), mine, seed=seed) for seed in range(4)]
    assert len({frozenset(_partition(one)) for one in maps}) == 1
    seen = look([tmp_path / str(seed) for seed in range(4)], K)
    assert all(pair.more == 0 and not pair.leavers() for pair in seen)
    # The noise is the same, so that it does not average out: items move by less than what is hidden of them.
    with duckdb.connect(tmp_path / "work" / "work.duckdb", read_only=True) as con:
        [(noise,)] = con.sql("select stddev(level) from int_kgather__factors where side = 'noise'").fetchall()
    assert all(np.std(pair.moved) < noise / 2 for pair in seen[1:])


def test_accounts_of_an_attacker_count_as_people(rows: Rows, tmp_path: Path) -> None:
    """With 2k - 1 accounts that copy somebody the two are alone among the newcomers: k counts them, as it must."""
    old = _of(rows, slice(100))
    target = _of(rows, slice(150, 151))
    accounts = [{**row, "user_id": f"zz-{number}"} for number in range(2 * K - 1) for row in target]
    first = _publish(tmp_path, "first", old)
    second = _publish(tmp_path, "second", old + accounts)
    third = _publish(tmp_path, "third", old + accounts + target)
    assert len(second) == len(first)
    assert len(third) == len(first) + 2 * K
    assert _smallest([first, second, third]) >= K
    one, two = look([tmp_path / name for name in ("first", "second", "third")], K)
    assert (one.more, two.more) == (0, 2 * K)


def test_changes_alone_tell_the_same_as_all_data(rows: Rows, tmp_path: Path) -> None:
    """Newcomers who wait, people of withdrawn groups, who rates again and who leaves: month by month by both ways."""
    random = np.random.default_rng(5)
    (tmp_path / "all").mkdir()
    (tmp_path / "changes").mkdir()
    there = {(row["user_id"], row["item_id"]): row for row in _of(rows, slice(100))}
    maps = [_publish(tmp_path / way, "first", list(there.values())) for way in ("all", "changes")]
    assert _partition(maps[0]) == _partition(maps[1])
    chain = [maps[1]]
    every = sorted({row["user_id"] for row in rows})
    for month in range(1, 5):
        newcomers = _of(rows, every[100 + 5 * (month - 1) : 100 + 5 * month])
        again = [
            {**row, "rating": "3.0", "rated_at": "1999999999"}
            for row in random.choice(np.array(list(there.values())), 20, replace=False)
        ]
        group = next(iter(_partition(chain[-1])))
        removed = sorted(group)[: month * 2]
        for row in [*newcomers, *again]:
            there[row["user_id"], row["item_id"]] = row
        added = [row for row in [*newcomers, *again] if row["user_id"] not in removed]
        there = {key: row for key, row in there.items() if key[0] not in removed}
        by_all = _publish(tmp_path / "all", str(month), list(there.values()), seed=month)
        by_changes = _publish(tmp_path / "changes", str(month), added, seed=month, additions=True, removed=removed)
        assert _partition(by_all) == _partition(by_changes)
        chain.append(by_changes)
        assert _staged(tmp_path / "all") == _staged(tmp_path / "changes")
        assert _users(tmp_path / "all") == _users(tmp_path / "changes")
        assert _shown(tmp_path / "all" / str(month)) == _shown(tmp_path / "changes" / str(month))
    # Without any addition, too.
    chain.append(_publish(tmp_path / "changes", "last", [], additions=True, removed=sorted(chain[-1])[:1]))
    assert len(chain[-1]) < len(chain[-2])
    assert _smallest(chain) >= K


def test_who_has_few_ratings_waits_with_them_for_more(rows: Rows, tmp_path: Path) -> None:
    """Of changes alone, too, where ratings are changed after they are read: what was staged is not changed again."""
    asked = PublishSettings(
        k=K, reserve=2, metrics="none", min_ratings=2, repeats="sum", rating_log=True, items_confirmed=True
    )
    first, both = _of(rows, slice(60)), _of(rows, slice(60, 60 + 2 * K))
    few = list({row["user_id"]: row for row in both}.values())
    rest = [row for row in both if row not in few]
    for number, some in enumerate((first, few, rest)):
        following = Following(tmp_path / "work", additions=True) if number else None
        said = PublishSettings(k=K, metrics="none", items_confirmed=True)
        publish(
            [written(tmp_path / f"{number}.csv", some)],
            tmp_path / str(number),
            asked if following is None else with_last(following, said),
            LoadOptions(),
            keep_work=None if following else tmp_path / "work",
            following=following,
        )
        assert len(_map(tmp_path / "work" / "work.duckdb")) == (60 + 2 * K if number == 2 else 60)
    publish([written(tmp_path / "all.csv", first + both)], tmp_path / "anew", asked, LoadOptions(),
            keep_work=tmp_path / "plain" / "work")  # fmt: skip
    chained, anew = _staged(tmp_path), _staged(tmp_path / "plain")
    assert [row[:2] for row in chained] == [row[:2] for row in anew]
    # The most that anybody may reach is that of the first release.
    assert max(row[2] for row in chained) == max(row[2] for row in _staged_of(tmp_path / "work" / "release-1.duckdb"))
    with pytest.raises(InputError, match="min_ratings was 2 and is 3"):
        with_last(Following(tmp_path / "work", additions=True), PublishSettings(k=K, min_ratings=3))


def _partition(groups: dict[str, int]) -> set[frozenset[str]]:
    return {frozenset(user for user, own in groups.items() if own == group) for group in set(groups.values())}


def _users(folder: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(folder / "work" / "work.duckdb", read_only=True) as con:
        return con.sql("select user_code, user_id, rated, rated_so from int_kgather__users order by all").fetchall()


def _staged(folder: Path) -> list[tuple[object, ...]]:
    return _staged_of(folder / "work" / "work.duckdb")


def _staged_of(database: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(database, read_only=True) as con:
        return con.sql(
            "select cast(user_id as varchar) as user_id, cast(item_id as varchar) as item_id, rating "
            "from stg_kgather__ratings order by all"
        ).fetchall()


def _shown(release: Path) -> list[tuple[object, ...]]:
    """What is shown, without the random names of groups."""
    with duckdb.connect(release / "release.duckdb", read_only=True) as con:
        return con.sql(
            "select list((item_id, rating) order by item_id) from kgather__ratings group by group_id order by 1"
        ).fetchall()


_STAGES = (
    "publish.load",
    "publish.refuse_early",
    "functions.create_macros",
    "stg_kgather__ratings",
    "base_kgather__waiting_ratings",
    "int_kgather__factors",
    "kgather_history",
    "kgather__audit",
    "publish.audit_of",
    "publish._attacked",
    "publish.write_release",
    "publish.verify_release",
    "history._copy",
    "history.os.link",
    "history.Path.replace",
    "publish.put_in_place",
)
"""Where a run is killed: a function that it would call, or a model that is finished and not noted yet."""


@pytest.mark.parametrize("additions", [False, True])
def test_a_run_that_is_killed_at_every_stage_makes_the_release_of_one_that_is_not(
    rows: Rows, tmp_path: Path, additions: bool
) -> None:
    first = _publish(tmp_path, "first", _of(rows, slice(100)))
    shutil.copytree(tmp_path / "work", tmp_path / "plain" / "work")
    gone = sorted({row["user_id"] for row in rows})[:1]
    (tmp_path / "gone.txt").write_text("\n".join(gone), encoding="utf-8")
    given = _of(rows, slice(100, 120) if additions else slice(1, 120))
    file = written(tmp_path / "given.csv", given)
    what = ["--additions", file, "--remove", str(tmp_path / "gone.txt")] if additions else [file]
    asked = ["publish", *what, "--history", str(tmp_path / "work"), "--out", str(tmp_path / "second")]
    kept = tmp_path / "work" / "work.duckdb"
    before = kept.read_bytes()
    for stage in (*(["history.take_over"] if additions else []), *_STAGES):
        assert _killed_at(stage, asked) == -9, stage
        assert not (tmp_path / "second").exists()
        assert (kept.read_bytes() == before) == (stage != "publish.put_in_place"), stage
    assert _killed_at(None, asked) == 0
    plain = _publish(tmp_path / "plain", "second", given, additions=additions, removed=gone if additions else ())
    second = _map(kept)
    assert _partition(second) == _partition(plain)
    assert _staged(tmp_path) == _staged(tmp_path / "plain")
    assert _smallest([first, second]) >= K
    # The release that was lost is one of the chain, and no database is kept twice.
    assert [file.name for file in sorted((tmp_path / "work").iterdir())] == [
        "release-1.duckdb",
        "release-2.duckdb",
        "work.duckdb",
    ]
    assert len({(tmp_path / "work" / name).stat().st_ino for name in ("release-1.duckdb", "release-2.duckdb")}) == 2
    with duckdb.connect(kept, read_only=True) as con:
        assert con.sql("select max(release_number) from kgather_history").fetchall() == [(3,)]


def _killed_at(stage: str | None, asked: list[str]) -> int:
    """Run the command, let it kill itself at a stage, and give its exit code."""
    if stage is None or "." in stage:
        die = f"{stage} = die" if stage else ""
    else:
        add = f"die() if step == {stage!r} else add(self, step)"
        die = f"add = runs.Journal.add\nruns.Journal.add = lambda self, step: {add}"
    code = (
        "import os, signal, sys\n"
        "from kgather._publishing import history, publish, runs\n"
        "from kgather import _sql_functions as functions\n"
        f"def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n{die}\n"
        "from kgather._cli import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False)
    return done.returncode


@pytest.mark.parametrize("killed", ["before the map is kept", "before the release is in its place"])
def test_a_killed_run_leaves_a_chain_that_goes_on(rows: Rows, tmp_path: Path, killed: str) -> None:
    first = _publish(tmp_path, "first", _of(rows, slice(100)))
    before = (tmp_path / "work" / "work.duckdb").read_bytes()
    both = written(tmp_path / "both.csv", _of(rows, slice(1, 120)))
    at = "history.os.link" if killed == "before the map is kept" else "publish.put_in_place"
    module = "history" if at.startswith("history") else "publish"
    code = (
        f"import os, signal\nimport kgather._publishing.{module} as {module}\n"
        f"def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n{at} = die\n"
        "from kgather._cli import main\nmain()\n"
    )
    asked = ["publish", both, "--history", str(tmp_path / "work"), "--out", str(tmp_path / "second")]
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    assert not (tmp_path / "second").exists()
    same = (tmp_path / "work" / "work.duckdb").read_bytes() == before
    assert same == (killed == "before the map is kept")
    lost = _map(tmp_path / "work" / "work.duckdb")
    second = _publish(tmp_path, "second", _of(rows, slice(1, 120)))
    third = _publish(tmp_path, "third", _of(rows, slice(2, 121)))
    assert len(second) == 99 + 20
    assert _smallest([first, lost, second, third]) >= K
