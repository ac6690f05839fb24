"""What the wheel, the sdist and an editable install hold: the same files, whichever way they were made."""

import os
import subprocess
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PACKAGE = "src/kgather/"

# All that the sdist has at its top: what is needed to build, to test and to read.
AT_THE_TOP = {
    "src", "tests", "docs", "fixtures", "examples", "benchmarks", "packaging", "tools",
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
    "pyproject.toml", "Makefile", "mkdocs.yml", "dbt_project.yml", "profiles.yml", ".gitignore", "PKG-INFO",
}  # fmt: skip


@pytest.fixture(scope="module")
def package_files(tracked: Sequence[str]) -> list[str]:
    """The tracked files of the package, by their names in a wheel."""
    return sorted(name.removeprefix("src/") for name in tracked if name.startswith(PACKAGE))


def in_wheel(wheel: Path) -> list[str]:
    """The files of a wheel but for its metadata. A name that is twice in the archive is twice in the list."""
    with ZipFile(wheel) as archive:
        return sorted(name for name in archive.namelist() if ".dist-info/" not in name)


def in_sdist(sdist: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(sdist) as archive:
        members = {member.name.split("/", 1)[1]: member for member in archive.getmembers() if not member.isdir()}
        assert len(members) == sum(not member.isdir() for member in archive.getmembers())
    return members


@pytest.mark.slow
def test_the_wheel_from_the_sdist_holds_the_tracked_files(wheel: Path, package_files: list[str]) -> None:
    assert in_wheel(wheel) == package_files


@pytest.mark.slow
def test_a_checkout_without_links_makes_the_same_wheel(
    wheel: Path, wheel_without_links: Path, without_links: Path
) -> None:
    assert (without_links / "models").read_text() == "src/kgather/dbt/models"
    with ZipFile(wheel) as one, ZipFile(wheel_without_links) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
        assert [name for name in one.namelist() if one.read(name) != other.read(name)] == []


@pytest.mark.slow
def test_the_sdist_holds_the_tracked_files_of_the_package(sdist: Path, package_files: list[str]) -> None:
    inside = in_sdist(sdist)
    assert sorted(name.removeprefix("src/") for name in inside if name.startswith("src/")) == package_files


@pytest.mark.slow
def test_the_sdist_holds_what_tests_need_and_no_strays(sdist: Path, tracked: Sequence[str]) -> None:
    inside = in_sdist(sdist)
    assert {PurePosixPath(name).parts[0] for name in inside} == AT_THE_TOP
    wanted = {name for name in tracked if PurePosixPath(name).parts[0] in AT_THE_TOP}
    assert set(inside) == wanted | {"PKG-INFO"}
    assert [name for name, member in inside.items() if not member.isfile()] == []  # a link is no file


@pytest.mark.slow
def test_the_wheel_holds_neither_tests_nor_data(wheel: Path) -> None:
    names = in_wheel(wheel)
    endings = {PurePosixPath(name).suffix for name in names}
    assert endings <= {".py", ".sql", ".yml", ".toml", ".md", ".j2", ".css", ".typed"}
    # Generic tests are part of the dbt package.
    inside = [name for name in names if not name.startswith("kgather/dbt/sql/tests/")]
    unwanted = {"tests", "test", "examples", "data", "docs", "benchmarks", "fixtures", "target", "logs", "__pycache__"}
    assert [name for name in inside if unwanted.intersection(PurePosixPath(name).parts)] == []


@pytest.mark.slow
def test_an_editable_install_finds_all_in_the_checkout(editable_python: Path) -> None:
    code = "import kgather; from kgather._dbt_package import dbt_path; print(kgather.__file__, dbt_path())"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run([editable_python, "-c", code], env=env, check=True, capture_output=True, text=True).stdout
    package = ROOT / "src" / "kgather"
    assert told.split() == [str(package / "__init__.py"), str(package / "dbt")]


def test_the_folders_at_the_top_are_those_of_the_package() -> None:
    if not (ROOT / "models").is_symlink():
        pytest.skip("this checkout has no symbolic links")
    assert {name: (ROOT / name).resolve() for name in ("models", "sql", "udfs")} == {
        "models": ROOT / "src" / "kgather" / "dbt" / "models",
        "sql": ROOT / "src" / "kgather" / "dbt" / "sql",
        "udfs": ROOT / "src" / "kgather" / "udfs",
    }


def test_both_dbt_projects_agree_but_for_their_paths() -> None:
    """The one at the root is for those whose packages.yml names the git repository."""
    at_root = yaml.safe_load((ROOT / "dbt_project.yml").read_text(encoding="utf-8"))
    shipped = yaml.safe_load((ROOT / "src/kgather/dbt/dbt_project.yml").read_text(encoding="utf-8"))
    # A checkout is a project of its own, too, with a sample that it publishes.
    assert at_root.pop("vars") == {"checkout_settings": {"ratings": "sample_ratings", "k": 5}}
    assert at_root["model-paths"].pop() == "examples/checkout"
    assert set(at_root) == set(shipped)
    for name, value in shipped.items():
        # Neither has tests in SQL: that path only keeps dbt from a folder `tests` that holds something else.
        moved = name.endswith("-paths") and name != "test-paths"
        expected = [f"src/kgather/dbt/{path}" for path in value] if moved else value
        assert at_root[name] == expected, name


def test_the_lock_file_is_of_these_dependencies() -> None:
    """`make lock` renews it: a floor that moved is not in it by itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    [own] = [package for package in locked if package["name"] == project["name"]]
    found = {each["name"]: each["specifier"] for each in own["metadata"]["requires-dist"] if "marker" not in each}
    wanted = {each.name: each.specifier for each in map(Requirement, project["dependencies"])}
    assert {name: SpecifierSet(said) for name, said in found.items()} == wanted


def test_the_dbt_package_agrees_with_pyproject() -> None:
    """On its own version and on the versions of dbt: a consumer's dbt need not have been installed with kgather."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = (Requirement(each) for each in project["dependencies"] if each.startswith("dbt-core"))
    shipped = yaml.safe_load((ROOT / "src/kgather/dbt/dbt_project.yml").read_text(encoding="utf-8"))
    asked = SpecifierSet(",".join(shipped["require-dbt-version"]))
    assert {(each.operator, Version(each.version)) for each in asked} == {
        (each.operator, Version(each.version)) for each in wanted.specifier
    }
    assert Version(shipped["version"]) == Version(project["version"])
