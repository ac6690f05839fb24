"""What is built of this checkout, and a copy of its files without symbolic links."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(*command: str, cwd: Path | None = None) -> None:
    # Git says which repository it works for in the environment, as in a hook; none of that is for these commands.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def _build(source: Path, folder: Path, *options: str) -> None:
    # Without isolation, so that nothing is fetched: the backend is among what the tests need.
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), *options, str(source))


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", *arguments)


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel made from the unpacked sdist: what `python -m build` does."""
    folder = tmp_path_factory.mktemp("dist")
    _build(ROOT, folder)
    return folder


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (file,) = distributions.glob("*.tar.gz")
    return file


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (file,) = distributions.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which that wheel is installed."""
    folder = tmp_path_factory.mktemp("site")
    _pip("install", "--no-deps", "--no-index", "--target", str(folder), str(wheel))
    return folder


@pytest.fixture(scope="session")
def tracked() -> Sequence[str]:
    """The files that git tracks. A sdist has no git: there the tests that ask for them are skipped."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name]


@pytest.fixture(scope="session")
def without_links(tracked: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository of the tracked files as they are now, made where there are no symbolic links.

    There git writes a link as a small file that holds the link's target.
    """
    folder = tmp_path_factory.mktemp("without_links") / "kgather"
    for name in tracked:
        source, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(os.fsencode(source.readlink()) if source.is_symlink() else source.read_bytes())
    git = ["git", "-C", str(folder), "-c", "user.name=kgather", "-c", "user.email=kgather@example.org"]
    _run(*git, "init", "--quiet", "--initial-branch", "main")
    _run(*git, "add", "--all", "--force")
    _run(*git, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", "The tracked files")
    return folder


@pytest.fixture(scope="session")
def wheel_without_links(without_links: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist_without_links")
    _build(without_links, folder, "--wheel")
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def editable_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty environment in which this checkout is installed to be edited."""
    folder = tmp_path_factory.mktemp("editable")
    hatchling = [sys.executable, "-m", "hatchling", "build", "--target", "wheel:editable", "--directory"]
    _run(*hatchling, str(folder / "dist"), cwd=ROOT)
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
    python = folder / "venv" / "bin" / "python"
    _pip("--python", str(python), "install", "--no-deps", "--no-index", *map(str, (folder / "dist").glob("*.whl")))
    return python
