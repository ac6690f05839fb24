"""A run that is killed, in each stage: the next one goes on where it stood, and its release is that of a quiet run."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from kgather._errors import KgatherError
from kgather._publishing import disk, runs

# Publishes, prints what was finished as it goes, and kills its own process where it is told to: STAGE[:NAME].
DRIVER = """
import os, signal, sys
from pathlib import Path
from kgather._publishing import pipeline, publish as publishing
from kgather._loaders import LoadOptions
from kgather._progress import listening
from kgather._settings.publication import PublishSettings

source, target, k, kill = sys.argv[1:]

def hear(place):
    print(place, file=sys.stderr, flush=True)
    if place == kill:
        os.kill(os.getpid(), signal.SIGKILL)

build = pipeline.build
def heard(workspace, variables, *, verbose, on_node):
    build(workspace, variables, verbose=verbose, on_node=lambda name, *_: hear(f"node {name}"))
pipeline.build = heard
load = publishing.load
def loading(*given):
    hear("loading")
    found = load(*given)
    hear("loaded")
    return found
publishing.load = loading
with listening(lambda step, done, total: hear(f"{step} {done}")):
    publishing.publish(
        [source], Path(target), PublishSettings(k=int(k), cells="top 50"), LoadOptions(),
        report=lambda step, done, total: hear(f"{step} {done}"),
    )
"""


def run(source: Path, target: Path, kill: str = "never", k: int = 5) -> list[str]:
    """Publish in a process of its own; the places it came by."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(source), str(target), str(k), kill],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if kill == "never" else -9), done.stderr[-2000:]
    return done.stderr.splitlines()


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def shown(release: Path) -> list[tuple]:
    """What a release shows, whatever the random names of its groups."""
    with duckdb.connect(release / "release.duckdb", read_only=True) as con:
        return con.sql(
            """
            select group_size, list((item_id, round(rating, 6)) order by item_id) as cells
            from kgather__ratings join kgather__groups using (group_id)
            group by group_id, group_size
            order by all
            """
        ).fetchall()


def audit(release: Path) -> dict:
    said = json.loads((release / "audit.json").read_text(encoding="utf-8"))
    return {name: said[name] for name in ("checks", "counts", "parameters", "group_sizes", "metrics", "attacks")}


def nodes(places: list[str]) -> list[str]:
    """The models and tests among the places that a run came by."""
    return sorted(place for place in places if place.startswith("node "))


@pytest.fixture(scope="module")
def quiet(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The release of a run that nobody killed, and the places it came by."""
    folder = tmp_path_factory.mktemp("quiet") / "release"
    return folder, run(sample, folder)


STAGES = [
    "loaded",  # read, but not yet noted as read
    "node base_kgather__sorted_ratings",
    "preferences 1",
    "node kgather__members",  # before the tests of it are run
    "attack 1",
    "write 0",
]


@pytest.mark.long
def test_killed_in_each_stage(sample: Path, tmp_path: Path, quiet: tuple[Path, list[str]]) -> None:
    release, attacked = tmp_path / "release", []
    places: list[list[str]] = []
    for kill in STAGES:
        places.append(run(sample, release, kill))
        assert not release.exists()
        [work] = tmp_path.iterdir()
        assert work.stat().st_mode & 0o077 == 0
        attacked += [file.stat().st_mtime_ns for file in work.glob("attacked.json")]
    places.append(run(sample, release))
    assert left_behind(tmp_path) == ["release"]

    # Every model and every test once, and none left out because it, or its model, was finished before.
    assert sorted(node for each in places for node in nodes(each)) == nodes(quiet[1])
    assert [each.count("loading") for each in places] == [1, 1, 0, 0, 0, 0, 0]
    assert len(attacked) == 2
    assert attacked[0] == attacked[1]
    assert shown(release) == shown(quiet[0])
    assert audit(release) == audit(quiet[0])


@pytest.mark.long
@pytest.mark.parametrize("change", ["input", "settings"])
def test_another_run_begins_anew(sample: Path, tmp_path: Path, change: str) -> None:
    source = tmp_path / "ratings.csv"
    source.write_bytes(sample.read_bytes())
    run(source, tmp_path / "release", "loaded")
    [before] = tmp_path.glob(".kgather-*")
    if change == "input":
        text = source.read_text()
        source.write_text(text.rstrip("\n").rsplit("\n", 1)[0] + "\n")
    places = run(source, tmp_path / "release", "node base_kgather__read_ratings", k=6 if change == "settings" else 5)
    assert "loading" in places
    [after] = tmp_path.glob(".kgather-*")
    assert before.name != after.name


def test_what_others_put_there_is_left_alone(tmp_path: Path) -> None:
    planted = tmp_path / ".kgather-mark"
    planted.mkdir(mode=0o755)
    planted.chmod(0o755)
    (planted / "lock").touch()
    with runs.folder_of(tmp_path / "release", "mark") as folder:
        assert folder != planted
    assert planted.exists()


def test_the_same_run_at_once_has_its_own_folder(tmp_path: Path) -> None:
    with runs.folder_of(tmp_path / "release", "mark") as first:
        (first / "loaded.json").touch()
        with runs.folder_of(tmp_path / "release", "mark") as second:
            assert first != second
        assert (first / "loaded.json").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_was_cut_off_is_no_finished_step(tmp_path: Path) -> None:
    journal = runs.Journal(tmp_path / "journal")
    assert journal.finished() == frozenset()
    journal.add("one")
    with (tmp_path / "journal").open("a") as stream:
        stream.write("tw")
    assert journal.finished() == {"one"}


def test_a_disk_that_cannot_hold_the_work_is_refused_before_it(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = tmp_path / "many.parquet"
    duckdb.sql(f"copy (select range as user_id, 1 as item_id, 3 as rating from range(1000000)) to '{parquet}'")
    from kgather._loaders import sources

    usage = disk.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: usage._replace(free=20 << 20))
    with pytest.raises(KgatherError, match=r"20 MB left.*1,000,000 ratings needs at least"):
        disk.check(tmp_path, [sources.find(parquet)])
    disk.check(tmp_path, [sources.find(sample)])
