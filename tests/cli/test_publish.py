"""`kgather publish` from the shell: exit codes, what is said where, and what is left behind.

What ends before anything is published is called in this process: importing takes longer than all that it does.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from signals import beginning
from waiting import until

from kgather._cli import main

Called = Callable[..., subprocess.CompletedProcess]

KGATHER = [sys.executable, "-c", "from kgather._cli import main; main()"]


def kgather(
    *arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*KGATHER, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | (env or {}),
        check=False,
    )


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Called]:
    """The same in this process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
        capfd.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["kgather", *map(str, arguments)])
            if cwd is not None:
                patched.chdir(cwd)
            with pytest.raises(SystemExit) as ended:
                main()
        said = capfd.readouterr()
        return subprocess.CompletedProcess(sys.argv, int(ended.value.code or 0), said.out, said.err)

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def left_behind(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.slow
def test_publishes_and_prints_the_audit(sample: Path, tmp_path: Path) -> None:
    run = kgather("publish", sample, "--k", 5, "--out", tmp_path / "release", "--json")
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["release"] == str(tmp_path / "release")
    assert said["passed"] is True
    # Nothing of the work is left, and no progress bar where nobody looks.
    assert left_behind(tmp_path) == ["release"]
    assert run.stderr == ""

    again = kgather("publish", sample, "--k", 5, "--out", tmp_path / "release")
    assert again.returncode == 2
    assert "is not empty" in again.stderr
    assert "--force" in again.stderr

    before = (tmp_path / "release" / "members.parquet").read_bytes()
    forced = kgather("publish", sample, "--k", 6, "--out", tmp_path / "release", "--force")
    assert forced.returncode == 0, forced.stderr
    assert str(tmp_path / "release") in forced.stdout
    assert (tmp_path / "release" / "members.parquet").read_bytes() != before
    assert left_behind(tmp_path) == ["release"]


@pytest.mark.slow
def test_k_of_one_is_warned_of(sample: Path, tmp_path: Path) -> None:
    # What is set for dbt projects of the user's own does not matter here.
    for_other_projects = {"DBT_TARGET": "prod", "DBT_EMPTY": "1", "DBT_WARN_ERROR": "1", "DBT_PROFILES_DIR": "/none"}
    run = kgather("publish", sample, "--k", 1, "--out", tmp_path / "release", env=for_other_projects)
    assert run.returncode == 0, run.stderr
    assert "240 users in 240 groups" in run.stdout
    assert "WARNING: k = 1 gives no anonymity" in run.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--k", "0"], "k is "),
        (["--k", "-1"], "k is "),
        (["--k", "1.5"], "--k"),
        ([], "--k"),
        (["--k", "5", "--scale", "5,1"], "min less than max"),
        (["--k", "5", "--scale", "low,high"], "--scale takes MIN,MAX"),
        (["--k", "5", "--scale", "1,5,9"], "step that is more than 0"),
        (["--k", "5", "--cells", "top"], "top N"),
        (["--k", "5", "--method", "magic"], "method is "),
        (["--k", "5", "--metric", "magic"], "metric is "),
        (["--k", "5", "--rank", "0"], "rank is "),
        (["--k", "5", "--homogenize", "pure", "--cells", "low_rank"], "low_rank goes with"),
        (["--k", "5", "--max-rejected-share", "2"], "max_rejected_share is "),
        (["--k", "5", "--set", "nonsense=1"], "The vars are: scale"),
        (["--k", "5", "--set", "seed"], "VAR=VALUE"),
        (["--k", "5", "--set", "rank=2", "--set", "rank=3"], "rank is given twice by --set"),
        (["--k", "5", "--set", "k=2"], "k is given by an option and by --set"),
        (["--k", "5", "--format", "excel"], "format: "),
        (["--k", "5", "--encoding", "klingon"], "encoding: "),
        (["--k", "5", "--user-column", "nobody"], "nobody"),
        (["--k", "5", "--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage(called: Called, sample: Path, tmp_path: Path, options: list[str], told: str) -> None:
    run = called("publish", sample, *options, "--out", tmp_path / "release")
    assert run.returncode == 2, run.stderr
    assert told in run.stderr
    assert "Traceback" not in run.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_more_users_asked_for_than_there_are(sample: Path, tmp_path: Path) -> None:
    run = kgather("publish", sample, "--k", 241, "--out", tmp_path / "release")
    assert run.returncode == 2
    assert "241" in run.stderr
    assert "240" in run.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("target", ["file", "file/below"])
def test_target_that_cannot_be(called: Called, sample: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("here first")
    run = called("publish", sample, "--k", 5, "--out", tmp_path / target)
    assert run.returncode == 2
    assert "--out" in run.stderr
    assert (tmp_path / "file").read_text() == "here first"


def started(sample: Path, folder: Path, finished: int = 0) -> subprocess.Popen:
    """A publication that is well under way: its working database exists, and so many models and tests are finished."""
    process = subprocess.Popen(
        [*KGATHER[:2], beginning() + KGATHER[2], "publish", str(sample), "--k", "5", "--out", str(folder / "release")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def under_way() -> bool:
        assert process.poll() is None, process.communicate()
        if not list(folder.glob(".kgather-*/work.duckdb")):
            return False
        journals = [file.read_text() for file in folder.glob(".kgather-*/journal")]
        return sum(journal.count("\n") for journal in journals) >= finished

    until(under_way)
    return process


@pytest.mark.long
@pytest.mark.parametrize(("number", "finished"), [(signal.SIGINT, 0), (signal.SIGINT, 9), (signal.SIGTERM, 9)])
def test_stopped_by_a_signal(sample: Path, tmp_path: Path, number: signal.Signals, finished: int) -> None:
    process = started(sample, tmp_path, finished)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 128 + number, said
    assert "nothing was written" in said
    assert "Traceback" not in said
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_killed_in_the_middle(sample: Path, tmp_path: Path) -> None:
    process = started(sample, tmp_path)
    [work] = tmp_path.glob(".kgather-*")
    assert work.stat().st_mode & 0o077 == 0
    process.kill()
    process.communicate()
    assert not (tmp_path / "release").exists()
    # The next publication cleans up after it.
    assert kgather("publish", sample, "--k", 5, "--out", tmp_path / "release").returncode == 0
    assert left_behind(tmp_path) == ["release"]


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/shm").is_dir() or os.geteuid() != 0, reason="needs a small file system to fill")
def test_full_disk(sample: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        run = kgather("publish", sample, "--k", 5, "--out", disk / "release")
        assert run.returncode == 1
        assert "is full, nothing was written" in run.stderr
        assert left_behind(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_help_reads_well(called: Called) -> None:
    run = called("--help")
    assert run.returncode == 0
    assert "Exit codes: 0 done" in run.stdout
    for command in ("publish", "verify", "init", "dbt-path"):
        assert command in run.stdout
        assert called(command, "--help").returncode == 0


def test_dbt_path_is_a_dbt_package(called: Called) -> None:
    folder = Path(called("dbt-path").stdout.strip())
    assert (folder / "dbt_project.yml").is_file()
    assert (folder / "models").is_dir()
    assert (folder / "sql").is_dir()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--out", "."], "is the current folder"),
        (["--out", "given", "--force"], "lies in"),
        (["--out", "release", "--keep-work", "release"], "secret map"),
        (["--out", "release", "--keep-work", "release/work"], "secret map"),
    ],
)
def test_places_that_would_do_harm(called: Called, sample: Path, tmp_path: Path, options: list[str], told: str) -> None:
    given = tmp_path / "given" / "ratings.csv"
    given.parent.mkdir()
    given.write_bytes(sample.read_bytes())
    run = called("publish", given, "--k", 5, "--force", *options, cwd=tmp_path)
    assert run.returncode == 2
    assert told in run.stderr
    assert left_behind(tmp_path) == ["given"]
    assert left_behind(tmp_path / "given") == ["ratings.csv"]


@pytest.mark.long
def test_an_empty_folder_and_a_link_may_be_the_target(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert kgather("publish", sample, "--k", 5, "--out", tmp_path / "link").returncode == 0
    assert (tmp_path / "folder" / "audit.json").exists()
    assert left_behind(tmp_path) == ["folder", "link"]
