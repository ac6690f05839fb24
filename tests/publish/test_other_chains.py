"""Chains that go otherwise than planned, looked at by a program of its own that intersects what all releases have."""

import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import duckdb
import pytest

from kgather._loaders import LoadOptions
from kgather._publishing.history import Following, with_last
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings

pytestmark = [pytest.mark.slow, pytest.mark.long]
K = 4
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def rows(sample: Path) -> Rows:
    with sample.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _of(rows: Rows, people: slice | Iterable[str]) -> Rows:
    if isinstance(people, slice):
        people = sorted({row["user_id"] for row in rows})[people]
    wanted = set(people)
    return [row for row in rows if row["user_id"] in wanted]


def _write(path: Path, rows: Rows) -> str:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def _publish(folder: Path, name: str, rows: Rows, *, seed: int = 0) -> dict[str, int]:
    """Publish, after what the folder has, and return everybody's group as the release was made of."""
    work = folder / "work"
    following = Following(work) if work.exists() else None
    asked = PublishSettings(k=K, metrics="none", seed=seed, **({} if following else {"reserve": 2}))
    publish(
        [_write(folder / f"{name}.csv", rows)],
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


def test_many_leave_at_once(rows: Rows, tmp_path: Path) -> None:
    first = _publish(tmp_path, "first", _of(rows, slice(200)))
    stay = sorted(first)[::3]
    second = _publish(tmp_path, "second", _of(rows, stay))
    third = _publish(tmp_path, "third", _of(rows, slice(200)))
    assert set(third) <= set(second) < set(stay)
    assert _smallest([first, second, third]) >= K


def test_who_changes_everything_stays_in_the_group(rows: Rows, tmp_path: Path) -> None:
    mine = _of(rows, slice(100))
    target = mine[0]["user_id"]
    other = [{**row, "rating": "0.5" if row["user_id"] == target else row["rating"]} for row in mine]
    maps = [_publish(tmp_path, name, some) for name, some in (("first", mine), ("second", other), ("third", mine))]
    assert len({frozenset(user for user, group in one.items() if group == one[target]) for one in maps}) == 1
    assert _smallest(maps) == min(Counter(maps[0].values()).values()) >= K


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


@pytest.mark.parametrize("killed", ["before the map is kept", "before the release is in its place"])
def test_a_killed_run_leaves_a_chain_that_goes_on(rows: Rows, tmp_path: Path, killed: str) -> None:
    first = _publish(tmp_path, "first", _of(rows, slice(100)))
    before = (tmp_path / "work" / "work.duckdb").read_bytes()
    both = _write(tmp_path / "both.csv", _of(rows, slice(1, 120)))
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
