"""Erasures and coarser releases that are killed: the same release or none, and a chain that goes on."""

import csv
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from chain_data import Rows, written

from kgather._loaders import LoadOptions
from kgather._publishing.early import LOADED_ITEMS
from kgather._publishing.history import Following, with_last
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings

pytestmark = [pytest.mark.slow, pytest.mark.long]
K, COARSE = 4, 13

_CODE = """
import os, signal
from types import SimpleNamespace
from kgather._publishing import coarser, derived, erasure
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
def after(call):
    def both(*given, **named):
        call(*given, **named)
        die()
    return both
class Dying:
    '''A connection that kills its process before or after it says that all is to be kept.'''
    def __init__(self, con, before): self.con, self.before = con, before
    def __enter__(self): return Dying(self.con.__enter__(), self.before)
    def __exit__(self, *error): return self.con.__exit__(*error)
    def __getattr__(self, name): return getattr(self.con, name)
    def execute(self, query, *given):
        if query == "commit" and self.before: die()
        done = self.con.execute(query, *given)
        if query == "commit": die()
        return done
real = coarser.duckdb.connect
def dying(before): return SimpleNamespace(connect=lambda *given, **named: Dying(real(*given, **named), before))
{stage}
from kgather._cli import main
main()
"""


def _killed(stage: str, asked: list[object]) -> None:
    """Run the command, which kills itself where `stage` says."""
    code = [sys.executable, "-c", _CODE.replace("{stage}", stage), *map(str, asked)]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == (-9 if stage else 0), (stage, done.stderr)


def _publish(folder: Path, name: str, rows: Rows, *, additions: bool = False) -> dict[str, int]:
    """Publish with a proven item side, after what the folder has, and return everybody's group."""
    work, items = folder / "work", folder / "items.csv"
    if not items.exists():
        items.write_text("item_id\n" + "\n".join(sorted({row["item_id"] for row in rows})), encoding="utf-8")
    following = Following(work, additions=additions) if work.exists() else None
    asked = PublishSettings(k=K, reserve=2, metrics="none", item_epsilon=8.0, scale=(0.5, 5), items=LOADED_ITEMS)
    publish(
        [written(folder / f"{name}.csv", rows)],
        folder / name,
        asked if following is None else with_last(following, asked),
        LoadOptions(items=str(items)),
        keep_work=None if following else work,
        following=following,
    )
    return _map(work)


def _map(work: Path) -> dict[str, int]:
    with duckdb.connect(work / "work.duckdb", read_only=True) as con:
        return dict(con.sql("select user_id, group_id from int_kgather__groups").fetchall())


def _cells(release: Path) -> list[tuple[object, ...]]:
    """What is shown, without the random names of groups."""
    with duckdb.connect(release / "release.duckdb", read_only=True) as con:
        return con.sql(
            "select group_size, list((item_id, rating) order by item_id) from kgather__ratings "
            "join kgather__groups using (group_id) group by group_id, group_size order by all"
        ).fetchall()


@pytest.fixture(scope="module")
def rows(sample: Path) -> Rows:
    with sample.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def chain(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two releases that follow each other, and what was kept of them."""
    folder = tmp_path_factory.mktemp("chain")
    _publish(folder, "first", _people(rows, slice(100)))
    _publish(folder, "second", _people(rows, slice(1, 140)))
    return folder


def _people(rows: Rows, some: slice) -> Rows:
    wanted = set(sorted({row["user_id"] for row in rows})[some])
    return [row for row in rows if row["user_id"] in wanted]


ERASING = (
    "erasure.put_last = die",
    "erasure.put_last = after(erasure.put_last)",
    "erasure.settle = die",
    "erasure.Path.replace = die",
    "erasure.Path.replace = after(erasure.Path.replace)",
    "erasure.Path.unlink = after(erasure.Path.unlink)",
    "erasure.derive = die",
    "derived.write_release = die",
    "derived.verify_release = die",
    "derived.put_in_place = die",
)


def test_an_erasure_that_is_killed_anywhere_is_made_again(chain: Path, rows: Rows, tmp_path: Path) -> None:
    second = _map(chain / "work")
    user = sorted(second)[0]
    (tmp_path / "users.txt").write_text(f"{user}\n", encoding="utf-8")

    def asked(folder: Path) -> list[object]:
        return ["erase", tmp_path / "users.txt", "--history", folder / "work", "--release", chain / "second",
                "--out", folder / "left"]  # fmt: skip

    shutil.copytree(chain / "work", tmp_path / "plain" / "work")
    _killed("", asked(tmp_path / "plain"))
    shutil.copytree(chain / "work", tmp_path / "work")
    for stage in ERASING:
        _killed(stage, asked(tmp_path))
        assert not (tmp_path / "left").exists(), stage
        # Whoever else is in the chain stays in the same group, and the person is in the map or erased: nothing between.
        now = _map(tmp_path / "work")
        assert now in (second, {other: group for other, group in second.items() if other != user}), stage
    _killed("", asked(tmp_path))
    assert _cells(tmp_path / "left") == _cells(tmp_path / "plain" / "left")
    assert [file.name for file in (tmp_path / "work").iterdir()] == ["work.duckdb"]
    shutil.copy(chain / "items.csv", tmp_path / "items.csv")
    third = _publish(tmp_path, "third", _people(rows, slice(140, 160)), additions=True)
    assert user not in third
    with duckdb.connect(tmp_path / "work" / "work.duckdb", read_only=True) as con:
        wrong = con.sql(
            "select user_id from int_kgather__users full join (select user_id, count(*) as ratings "
            "from stg_kgather__ratings group by user_id) using (user_id) where rated is distinct from ratings"
        ).fetchall()
    assert wrong == []
    assert len(third) > len(second)
    both = Counter((second[other], third[other]) for other in second.keys() & third.keys())
    assert min(both.values()) >= K


COARSENING = (
    "coarser.derive = die",
    "derived.write_release = die",
    "derived.verify_release = die",
    "coarser.duckdb = dying(before=True)",
    "coarser.duckdb = dying(before=False)",
    "derived.put_in_place = die",
)


@pytest.mark.parametrize("first", COARSENING)
def test_a_coarser_release_that_is_killed_is_made_again(chain: Path, rows: Rows, tmp_path: Path, first: str) -> None:
    def asked(folder: Path, name: str, release: Path) -> list[object]:
        return ["publish", "--within", release, "--history", folder / "work", "--k", COARSE, "--out", folder / name]

    shutil.copytree(chain / "work", tmp_path / "plain" / "work")
    _killed("", asked(tmp_path / "plain", "coarse", chain / "second"))
    shutil.copytree(chain / "work", tmp_path / "work")
    _killed(first, asked(tmp_path, "coarse", chain / "second"))
    assert not (tmp_path / "coarse").exists()
    _killed("", asked(tmp_path, "coarse", chain / "second"))
    assert _cells(tmp_path / "coarse") == _cells(tmp_path / "plain" / "coarse")
    assert _parents(tmp_path) == _parents(tmp_path / "plain")
    # A second one that is killed, and a release that follows what it has left.
    shutil.copy(chain / "items.csv", tmp_path / "items.csv")
    before = _parents(tmp_path)
    _killed(first, asked(tmp_path, "again", chain / "second"))
    second, third = _map(tmp_path / "work"), _publish(tmp_path, "third", _people(rows, slice(1, 160)))
    assert len(third) > len(second)
    assert before.items() <= _parents(tmp_path).items()
    _killed("", asked(tmp_path, "later", tmp_path / "third"))
    assert before.items() <= _parents(tmp_path).items()


def _parents(folder: Path) -> dict[int, int]:
    with duckdb.connect(folder / "work" / "work.duckdb", read_only=True) as con:
        return dict(con.execute("select lineage, parent from kgather_coarser where k = ?", [COARSE]).fetchall())
