"""Where the guard refuses: the places in its source, which of them were reached, and the guard without one of them.

A place is a call that makes a `Refused`: of the class, or of a function that says it returns one. Nothing is listed by
hand, so that a refusal that is added is a place at once.
"""

import ast
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FrameType, FunctionType
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
    """Every place where the guard refuses, but for mode measured: what that refuses hangs on a budget, and is tested
    with it."""
    files = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    files = [file for file in files if not file.startswith("measured/")]
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


@contextmanager
def without(site: Site) -> Iterator[None]:
    """The guard with a place taken out: the condition under which it refuses there never holds; where there is none,
    the statement does nothing. Only in memory: the code of one function is exchanged for as long as this lasts."""
    function = _function(site)
    plain = function.__code__
    function.__code__ = _mutated(site, plain)
    try:
        yield
    finally:
        function.__code__ = plain


def _function(site: Site) -> FunctionType:
    """The function that a place stands in, below what decorates it."""
    found: Any = importlib.import_module(site.module)
    for name in site.function.split("."):
        found = vars(found)[name]
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, classmethod | staticmethod | cached_property):
        found = found.__func__ if not isinstance(found, cached_property) else found.func
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    assert isinstance(found, FunctionType), f"{site} is in no function"
    return found


def _mutated(site: Site, plain: CodeType) -> CodeType:
    """The code of a place's function without the place, compiled as the only one of its module."""
    function = deepcopy(next(node for name, node in _tops(tree_of(site.file)) if name == site.function))
    function.decorator_list = []
    _take_out(function, site)
    around = site.function.rpartition(".")[0]
    body: ast.stmt = function
    if around:
        body = ast.ClassDef(around, bases=[], keywords=[], body=[function], decorator_list=[], type_params=[])
    module = ast.fix_missing_locations(ast.Module([body], []))
    stack = [compile(module, plain.co_filename, "exec")]
    while stack:
        code = stack.pop()
        if code.co_qualname == plain.co_qualname:
            return code
        stack += [const for const in code.co_consts if isinstance(const, CodeType)]
    msg = f"{site} is not in what was compiled"
    raise AssertionError(msg)


def _take_out(function: _Function, site: Site) -> None:
    """Change the tree of a function: the innermost condition of a place, or else the statement itself."""
    path = _path(function, site)
    for above, below in zip(path[-2::-1], path[:0:-1], strict=True):
        if isinstance(above, ast.If) and below in above.body:
            above.test = ast.Constant(False)
            return
        if isinstance(above, ast.IfExp) and below is not above.test:
            above.test = ast.Constant(below is above.orelse)
            return
    for above, below in zip(path[-2::-1], path[:0:-1], strict=True):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(above, name, None)
            if isinstance(body, list) and below in body:
                body[body.index(below)] = ast.Pass()
                return
    msg = f"{site} is in no statement"
    raise AssertionError(msg)


def _path(root: ast.AST, site: Site) -> list[ast.AST]:
    """The nodes from one down to the call of a place."""
    span = (site.line, site.column, site.end_line, site.end_column)
    if isinstance(root, ast.Call) and span == (root.lineno, root.col_offset, root.end_lineno, root.end_col_offset):
        return [root]
    for child in ast.iter_child_nodes(root):
        if below := _path(child, site):
            return [root, *below]
    return []
