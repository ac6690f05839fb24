"""A command that is stopped by a signal, at many moments: its exit code, what it says, and what is left behind."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from signals import beginning
from waiting import until

from kgather._cli import stopping

KGATHER = [sys.executable, "-c", "from kgather._cli import main; main()"]
NOTHING = "kgather: interrupted, nothing was written.\n"

MOMENTS = 14
_START = 1.0  # seconds in which Python itself may still be starting, on a busy machine
_HANGS = 20  # seconds: no bound of what is tested, but machines are not that busy


@dataclass
class Run:
    """A command in a session of its own, with folders of its own for what it writes and for what is temporary."""

    folder: Path
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    code: str | None = None
    ignored: Sequence[int] = ()
    stderr: int = subprocess.PIPE

    def __post_init__(self) -> None:
        self.out, self.temporary = self.folder / "out", self.folder / "temporary"
        self.out.mkdir(parents=True)
        self.temporary.mkdir()
        self.release = self.out / "release"
        command = [*KGATHER[:2], beginning(self.ignored) + (self.code or KGATHER[2]), *self.arguments]
        self.process = subprocess.Popen(
            [part.replace("RELEASE", str(self.release)) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
            env=os.environ | {"TMPDIR": str(self.temporary)} | self.environment,
            start_new_session=True,
        )

    def stop(self, *numbers: signal.Signals, group: bool = False) -> float:
        """Send signals, one right after the other, and wait for the end; the seconds until then."""
        self.semaphores = self._semaphores()
        start = time.monotonic()
        for number in numbers:
            os.killpg(self.process.pid, number) if group else self.process.send_signal(number)
        self.process.wait(_HANGS)
        return time.monotonic() - start

    def under_way(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        return bool(list(self.out.glob(".kgather-*/work.duckdb")))

    def left_behind(self) -> list[str]:
        """Files, processes and names of locks, but for a release that is whole."""
        files = [file.name for folder in (self.out, self.temporary) for file in folder.iterdir()]
        if (self.release / "audit.json").exists():
            files.remove("release")
        listed = subprocess.run(["ps", "-e", "-o", "sess=,stat=,args="], capture_output=True, text=True, check=True)
        lines = [line.split(None, 2) for line in listed.stdout.splitlines()]
        # Those that have ended (Z) wait for whoever started them all.
        processes = [line[2] for line in lines if line[0] == str(self.process.pid) and line[1][0] != "Z"]
        return [*files, *processes, *(name for name in self.semaphores if Path("/dev/shm", name).exists())]

    def _semaphores(self) -> set[str]:
        try:
            return set(re.findall(r"sem\.mp-\w+", Path(f"/proc/{self.process.pid}/maps").read_text(encoding="utf-8")))
        except OSError:
            return set()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    started: list[Run] = []

    def start(*arguments: object, **more: object) -> Run:
        started.append(Run(tmp_path / str(len(started)), [str(argument) for argument in arguments], **more))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
        each.process.communicate()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up ratings, so many that each stage lasts a while."""
    draws = np.random.default_rng(0)
    users, items = 3000, 2000
    pairs = np.unique(draws.integers(0, users, 600_000) * items + (items * draws.random(600_000) ** 2).astype(int))
    pairs = draws.permutation(pairs)[:300_000]
    ratings = np.clip(np.rint(3.5 + draws.normal(0, 1, (users, 3)) @ draws.normal(0, 1, (3, items))), 1, 5)
    file = tmp_path_factory.mktemp("many") / "ratings.csv"
    rows = np.column_stack([pairs // items, pairs % items, ratings.ravel()[pairs]]).astype(int)
    np.savetxt(file, rows, fmt="%d", delimiter=",", header="user_id,item_id,rating", comments="")
    return file


def seconds_of(run: Run) -> float:
    start = time.monotonic()
    _, said = run.process.communicate()
    assert run.process.returncode == 0, said
    assert run.release.exists()
    return time.monotonic() - start


def stopped_at_all_moments(
    start: Callable[[], Run], last: float, *, moments: int = MOMENTS, releases: bool = True
) -> None:
    took = []
    for place in range(moments):
        moment = 0.05 + (last - 0.05) * place / (moments - 1)
        number = stopping.SIGNALS[place % 3]
        each = start()
        time.sleep(moment)
        seconds = each.stop(number)
        code, (_, said) = each.process.returncode, each.process.communicate()
        told = f"{number.name} after {moment:.2f} s: ended with {code} in {seconds:.2f} s"
        print(told)
        took.append(seconds)
        if code != 0:
            assert each.left_behind() == [], told
        if code == 0:  # it was done, or was about to be
            until(lambda each=each: each.left_behind() == [])
            assert (each.release / "audit.json").exists() == releases, told
        elif code < 0:  # Python had not started yet
            assert code == -number, told
            assert moment < _START, told
        else:
            assert code == 128 + number, f"{told}\n{said}"
            assert said == NOTHING, told
            assert not each.release.exists(), told
    print(f"seconds: min {min(took):.2f}, median {sorted(took)[len(took) // 2]:.2f}, max {max(took):.2f}")


@pytest.mark.slow
def test_stopped_at_work(run: Callable[..., Run], sample: Path) -> None:
    each = run("publish", sample, "--k", 5, "--out", "RELEASE")
    until(each.under_way)
    each.stop(signal.SIGTERM, signal.SIGINT, signal.SIGTERM)  # those that come later change nothing
    assert each.process.communicate()[1] == NOTHING
    # Of signals that wait at the same time the system may deliver any first.
    assert each.process.returncode - 128 in (signal.SIGTERM, signal.SIGINT)
    assert each.left_behind() == []


@pytest.mark.long
def test_a_publication_at_all_moments(run: Callable[..., Run], many: Path) -> None:
    def start() -> Run:
        return run("publish", many, "--k", 5, "--out", "RELEASE")

    stopped_at_all_moments(start, seconds_of(start()))


@pytest.mark.long
def test_a_publication_that_compiles_at_all_moments(run: Callable[..., Run], many: Path, tmp_path: Path) -> None:
    numbers = iter(range(100))

    def start() -> Run:
        fresh = tmp_path / "fresh" / str(next(numbers))
        environment = {"NUMBA_CACHE_DIR": str(fresh / "numba"), "XDG_CACHE_HOME": str(fresh / "cache")}
        return run("publish", many, "--k", 5, "--refine", "--out", "RELEASE", environment=environment)

    stopped_at_all_moments(start, seconds_of(start()), moments=3)


@pytest.mark.long
def test_a_sweep_at_all_moments(run: Callable[..., Run], sample: Path) -> None:
    def start() -> Run:
        return run("sweep", sample, "--methods", "bkg", "--k", 5)

    quiet = start()
    begun = time.monotonic()
    _, said = quiet.process.communicate()
    assert quiet.process.returncode == 0, said
    assert list(quiet.temporary.iterdir()) == []
    # It publishes into private folders, which are no results.
    stopped_at_all_moments(start, (time.monotonic() - begun) * 0.7, releases=False, moments=5)


@pytest.mark.long
def test_the_terminal_is_left_tidy(run: Callable[..., Run], sample: Path) -> None:
    ours, theirs = pty.openpty()
    each = run("publish", sample, "--k", 5, "--out", "RELEASE", stderr=theirs)
    os.close(theirs)
    until(each.under_way)
    each.stop(signal.SIGINT, group=True)  # as a terminal does: the processes that compile hear of it, too
    said = b""
    try:
        while some := os.read(ours, 1 << 16):
            said += some
    except OSError:  # how Linux says that nobody writes there any more
        pass
    os.close(ours)
    assert each.process.returncode == 128 + signal.SIGINT
    assert said.endswith(NOTHING.encode().replace(b"\n", b"\r\n"))
    assert said.rindex(b"\x1b[?25h") > said.rindex(b"\x1b[?25l")  # the cursor is shown again
    assert each.left_behind() == []


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_was_ignored_stays_ignored(run: Callable[..., Run], sample: Path, number: signal.Signals) -> None:
    each = run("publish", sample, "--k", 5, "--out", "RELEASE", ignored=[number])
    until(each.under_way)
    each.process.send_signal(number)
    seconds_of(each)


# Stops in the middle of replacing an older release, when that has been moved aside.
REPLACING = """
import os, signal, time
from pathlib import Path
from kgather._cli import main

rename = Path.rename
def renamed(path, target):
    found = rename(path, target)
    if path.name == "release" and Path(target).name == "replaced":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)
    return found
Path.rename = renamed
main()
"""


@pytest.mark.long
def test_a_release_is_replaced_whole(run: Callable[..., Run], sample: Path) -> None:
    first = run("publish", sample, "--k", 5, "--out", "RELEASE")
    seconds_of(first)
    before = (first.release / "members.parquet").read_bytes()
    again = run("publish", sample, "--k", 5, "--out", first.release, "--force", code=REPLACING)
    said = again.process.communicate()
    assert again.process.returncode == 0, said
    assert (first.release / "members.parquet").read_bytes() != before
    assert [file.name for file in first.out.iterdir()] == ["release"]


# Says much to somebody who does not read it, when the release is in its place.
UNHEARD = """
import sys
from kgather._cli import publish
from kgather._cli import main

publish._print = lambda published: sys.stdout.write("x" * (1 << 24))
main()
"""


@pytest.mark.long
def test_stopped_when_all_is_written(run: Callable[..., Run], sample: Path) -> None:
    each = run("publish", sample, "--k", 5, "--out", "RELEASE", code=UNHEARD)
    until(lambda: [file.name for file in each.out.iterdir()] == ["release"])
    each.stop(signal.SIGINT)
    assert each.process.returncode == 0
    assert each.process.communicate()[1] == "kgather: interrupted after all was written.\n"
    assert each.left_behind() == []


@pytest.mark.long
def test_the_next_run_begins_anew(run: Callable[..., Run], sample: Path) -> None:
    """Also where it had taken up one that was killed."""
    killed = run("publish", sample, "--k", 5, "--out", "RELEASE")
    until(killed.under_way)
    killed.process.kill()
    killed.process.communicate()
    [left] = killed.out.iterdir()
    again = run("publish", sample, "--k", 5, "--out", killed.release)
    begun = left.stat().st_mtime_ns
    until(lambda: again.process.poll() is not None or left.stat().st_mtime_ns != begun)
    again.stop(signal.SIGINT)
    assert again.process.communicate()[1] == NOTHING
    assert list(killed.out.iterdir()) == []
