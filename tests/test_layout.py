"""The layout shows itself: no import goes round in a circle, and what is private has an underscore."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "kgather"
DATA = {"dbt"}  # the dbt package: its models are files for dbt, no modules

PUBLIC = {
    "kgather",
    "kgather.guard",
    "kgather.guard.dbapi",
    "kgather.methods",
    "kgather.plugin",
    "kgather.spark",
    "kgather.udfs",
}
KERNELS = "kgather.udfs"


@cache
def modules() -> Mapping[str, Path]:
    """Every module by its name."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[1] not in DATA:
            found[".".join(parts).removesuffix(".__init__")] = file
    return found


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """The modules that each module names in an import: at its top, within a function, or for type checkers only."""
    return {name: frozenset(_imported(name, file)) - {name} for name, file in modules().items()}


def _imported(name: str, file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by dots, which this test does not follow"
            for alias in node.names:
                # `from package import module` names the module; all else names what the module holds.
                within = f"{node.module}.{alias.name}"
                yield from (each for each in ([within] if within in modules() else [node.module]) if each in modules())


def packages(depth: int, below: str = "kgather") -> Mapping[str, set[str]]:
    """The imports between packages, cut to so many parts of their names."""

    def cut(name: str) -> str:
        return ".".join(name.split(".")[:depth])

    found: dict[str, set[str]] = {}
    for name, imported in imports().items():
        if name.startswith(below):
            found.setdefault(cut(name), set()).update(cut(other) for other in imported if other.startswith(below))
    return {name: others - {name} for name, others in found.items()}


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Ways that lead from a node back to it, one from each of the nodes that first close one."""
    done: set[str] = set()
    way: list[str] = []
    found: list[list[str]] = []

    def follow(node: str) -> None:
        if node in way:
            found.append([*way[way.index(node) :], node])
            return
        if node in done:
            return
        way.append(node)
        for other in sorted(edges.get(node, ())):
            follow(other)
        way.pop()
        done.add(node)

    for node in sorted(edges):
        follow(node)
    return found


def test_circles_are_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": []}) == []
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"]}) == [["b", "c", "b"]]
    assert circles({"a": ["a"]}) == [["a", "a"]]


def test_imports_are_found() -> None:
    # One within a function, one for type checkers, one of a module from its package.
    assert "kgather._attacks.runner" in imports()["kgather._republishing.opened"]
    assert "kgather._steps.compiling" in imports()["kgather._publishing.publish"]
    assert "kgather._sql_functions" in imports()["kgather"]
    assert len(imports()) > 200


def test_no_module_imports_itself_in_the_end() -> None:
    assert circles(imports()) == []


def test_no_package_imports_itself_in_the_end() -> None:
    assert circles(packages(2)) == []


def test_no_package_of_kernels_imports_itself_in_the_end() -> None:
    assert circles(packages(3, KERNELS)) == []


@pytest.mark.parametrize("name", sorted(name for name in modules() if name.startswith(KERNELS)))
def test_kernels_know_nothing_of_the_rest(name: str) -> None:
    assert {other for other in imports()[name] if not other.startswith(KERNELS)} <= {"kgather._errors"}


def test_nothing_within_needs_the_public_names() -> None:
    # They are for others: what is within imports from where a thing is.
    public = {"kgather", "kgather._api"}
    faces = public | {"kgather.spark"}  # one more public name, with the same manners
    users = {name: public & others for name, others in imports().items() if name not in faces}
    assert {name: others for name, others in users.items() if others} == {}


def test_only_the_command_line_needs_the_command_line() -> None:
    assert [name for name, others in packages(2).items() if "kgather._cli" in others] == []


def test_what_is_not_public_has_an_underscore() -> None:
    named = [
        name
        for name in modules()
        if not name.startswith(f"{KERNELS}.") and not any(part.startswith("_") for part in name.split("."))
    ]
    assert set(named) | {KERNELS} == PUBLIC


def test_every_folder_is_a_package() -> None:
    folders = {file.parent for file in modules().values()}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def public_kernels() -> dict[str, Path]:
    return {
        name: file
        for name, file in modules().items()
        if name.startswith(f"{KERNELS}.")
        and file.name != "__init__.py"
        and not any(part.startswith("_") for part in name.split("."))
    }


def documented_kernels() -> dict[str, list[str]]:
    """The functions that docs/kernels.md lists, by module."""
    page = (Path(__file__).parent.parent / "docs" / "kernels.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(kgather\.udfs\.[\w.]+)` \| (.*) \|$", page, re.MULTILINE)
    return {module: re.findall(r"`(\w+)`", listed) for module, listed in rows}


def test_every_public_kernel_is_documented() -> None:
    assert sorted(documented_kernels()) == sorted(public_kernels())


@pytest.mark.parametrize("name", sorted(documented_kernels()))
def test_what_is_documented_of_a_kernel_is_there(name: str) -> None:
    tree = ast.parse(public_kernels()[name].read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    listed = set(documented_kernels()[name])
    assert listed
    assert listed <= defined


@pytest.mark.parametrize("file", sorted((PACKAGE / "dbt").rglob("*.sql")), ids=lambda file: str(file.stem))
def test_every_order_says_its_direction(file: Path) -> None:
    """A database may have another one by default: `set default_order = 'desc'`."""
    text = re.sub(r"--[^\n]*|/\*.*?\*/|\{#.*?#\}", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    for order in re.finditer(r"\border by\s+", text):
        # The clause ends where a bracket closes that was open before it.
        depth, end = 0, order.end()
        while end < len(text) and depth >= 0 and text[end] not in ";":
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        assert re.search(r"\b(asc|desc)\b", text[order.end() : end]), text[order.start() : end]
