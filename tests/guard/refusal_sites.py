"""Where the guard refuses: the places in its source, which of them were reached, and the source without one of them.

A place is a call that makes a `Refused`: of the class, or of a function that says it returns one. Nothing is listed by
hand, so that a refusal that is added is a place at once.
"""

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import kgather._guard
from kgather._guard.refused import Refused

SOURCE = Path(kgather._guard.__path__[0])
_MAKER = "refused.py"
"""The module that makes refusals for the others: its own calls are no places."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Site:
    """A place: the file within the guard, the span of the call, and the top function or method that it stands in."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def module(self) -> str:
        """The name to import."""
        return ".".join(("kgather._guard", *Path(self.file).with_suffix("").parts)).removesuffix(".__init__")


@dataclass(frozen=True)
class Reached:
    """What was reached: spans of calls, by file."""

    spans: set[tuple[str, int, int, int, int]]

    def __contains__(self, site: Site) -> bool:
        return (site.file, site.line, site.column, site.end_line, site.end_column) in self.spans


@cache
def tree_of(file: str) -> ast.Module:
    """The syntax tree of a module of the guard."""
    return ast.parse((SOURCE / file).read_text(encoding="utf-8"))


@cache
def sites() -> tuple[Site, ...]:
    """Every place where the guard refuses."""
    files = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    makers = {"Refused"}
    for file in files:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, _Function) and node.returns is not None and _says_refused(node.returns):
                makers.add(node.name)
    return tuple(site for file in files if file != _MAKER for site in _of_file(file, makers))


def _says_refused(returns: ast.expr) -> bool:
    return ast.unparse(returns).strip("'\"") == "Refused"


def _of_file(file: str, makers: set[str]) -> Iterator[Site]:
    for name, function in _tops(tree_of(file)):
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in makers:
                yield Site(file, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0, name)


def _tops(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    """The functions of a module and the methods of its classes, with their qualified names."""
    for node in tree.body:
        if isinstance(node, _Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, _Function):
                    yield f"{node.name}.{inner.name}", inner


@contextmanager
def recorded() -> Iterator[Reached]:
    """Record the places that are reached inside: what is on the stack whenever a refusal is made."""
    reached = Reached(set())
    plain = Refused.__init__

    def init(self: Refused, *args: Any, **named: Any) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                line, end_line, column, end_column = _position(frame)
                reached.spans.add((path.relative_to(SOURCE).as_posix(), line, column, end_line, end_column))
            frame = frame.f_back
        plain(self, *args, **named)

    Refused.__init__ = init  # type: ignore[method-assign]
    try:
        yield reached
    finally:
        Refused.__init__ = plain  # type: ignore[method-assign]


def _position(frame: FrameType) -> tuple[int, int, int, int]:
    """The span of what a frame is at: lines and columns."""
    for at, found in enumerate(frame.f_code.co_positions()):
        if 2 * at == frame.f_lasti:
            line, end_line, column, end_column = found
            return line or 0, end_line or 0, column or 0, end_column or 0
    return 0, 0, 0, 0
