"""Arrays beside their annotations: watches a run and tells where a dtype is not what the signature says."""

import dataclasses
import importlib
import inspect
import pkgutil
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.np.numpy_support import as_dtype

from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix

# Names that the records of methods import for type checkers only.
FOR_CHECKERS = {"Preferences": Preferences, "RatingMatrix": RatingMatrix}
_LOOKED = 50  # calls of a function that are looked at


def modules_of(package: ModuleType) -> list[ModuleType]:
    """The package and all modules in it."""
    found = [package]
    for info in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
        found.append(importlib.import_module(info.name))
    return found


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods written in a module, kernels left out."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, FunctionType):
            yield value
        elif inspect.isclass(value):
            for part in vars(value).values():
                function = getattr(part, "__func__", None) or getattr(part, "fget", None)
                if isinstance(part, cached_property):
                    function = part.func
                function = part if isinstance(part, FunctionType) else function
                if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                    yield function


def kernels_of(module: ModuleType) -> dict[str, Any]:
    """What numba compiles of a module, by name."""
    return {
        f"{module.__name__}.{name}": value
        for name, value in vars(module).items()
        if hasattr(value, "nopython_signatures") and value.__module__ == module.__name__
    }


def disagreement(value: object, hint: object, place: str) -> Iterator[str]:
    """Where arrays in the value, however deep, are of other types than the hint says."""
    if isinstance(value, np.ndarray):
        if not any(_fits(value, some) for some in _alternatives(hint)):
            yield f"{place} is {value.dtype}, but annotated {_told(hint)}"
    elif dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        for name, kind in typing.get_type_hints(type(value), localns=FOR_CHECKERS).items():
            if hasattr(value, name) and typing.get_origin(kind) is not typing.ClassVar:
                yield from disagreement(getattr(value, name), kind, f"{place}.{name}")
    elif isinstance(value, (tuple, list)):
        for some in _alternatives(hint):
            yield from _in_sequence(value, some, place)
    elif isinstance(value, dict):
        for some in _alternatives(hint):
            parts = typing.get_args(some)
            if len(parts) == 2 and issubclass(typing.get_origin(some), typing.Mapping):
                for key, part in value.items():
                    yield from disagreement(part, parts[1], f"{place}[{key!r}]")


def _in_sequence(value: tuple[Any, ...] | list[Any], hint: object, place: str) -> Iterator[str]:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and Ellipsis not in parts:
        if len(parts) == len(value) and isinstance(value, tuple):
            for at, (part, kind) in enumerate(zip(value, parts, strict=True)):
                yield from disagreement(part, kind, f"{place}[{at}]")
    elif inspect.isclass(origin) and issubclass(origin, Iterable) and parts:
        for at, part in enumerate(value):
            yield from disagreement(part, parts[0], f"{place}[{at}]")


def _alternatives(hint: object) -> tuple[object, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(some for part in typing.get_args(hint) for some in _alternatives(part))
    return (hint,)


def _fits(array: np.ndarray, hint: object) -> bool:
    if hint in (Any, object) or isinstance(hint, typing.TypeVar):
        return True
    if typing.get_origin(hint) is not np.ndarray:
        return False
    [scalar] = typing.get_args(typing.get_args(hint)[1])
    if isinstance(scalar, typing.TypeVar):
        scalar = scalar.__bound__
    return any(some is Any or issubclass(array.dtype.type, some) for some in _alternatives(scalar))


def _told(hint: object) -> str:
    return str(hint).replace("numpy.ndarray[tuple[typing.Any, ...], numpy.dtype[", "NDArray[[").replace("]]", "]")


def _example(kind: Any) -> object:
    """A value of a type of numba's, as far as it holds arrays."""
    if isinstance(kind, numba.types.Array):
        return np.empty((0,) * kind.ndim, dtype=as_dtype(kind.dtype))
    if isinstance(kind, numba.types.BaseNamedTuple):
        return kind.instance_class(*map(_example, kind.types))
    if isinstance(kind, numba.types.BaseTuple):
        return tuple(map(_example, kind.types))
    return None


class Watch:
    """What was found wrong, and which functions were seen at all."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self.wrong: set[str] = set()
        self.seen: dict[CodeType, int] = {}
        self._functions: dict[CodeType, FunctionType] = {}
        self._hints: dict[CodeType, dict[str, Any]] = {}
        self._kernels: dict[str, Any] = {}
        for module in modules:
            self._functions |= {function.__code__: function for function in functions_of(module)}
            self._kernels |= kernels_of(module)
        self._before = {name: set(kernel.signatures) for name, kernel in self._kernels.items()}

    def over(self, run: Callable[[], object]) -> set[str]:
        """What is wrong in a run. It is run twice: watching a compiler would take minutes."""
        run()
        before = sys.getprofile()
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        try:
            run()
        finally:
            sys.setprofile(before)
            threading.setprofile(before)
        self._look_at_kernels()
        return self.wrong

    def _look(self, frame: FrameType, event: str, value: object) -> None:
        code = frame.f_code
        if code not in self._functions or event not in ("call", "return"):
            return
        if event == "call":
            self.seen[code] = self.seen.get(code, 0) + 1
        if self.seen.get(code, 0) > _LOOKED:
            return
        if code not in self._hints:
            self._hints[code] = typing.get_type_hints(self._functions[code], localns=FOR_CHECKERS)
        hints, name = self._hints[code], f"{frame.f_globals['__name__']}.{code.co_qualname}"
        if event == "return":
            kind = hints.get("return", Any)
            if code.co_flags & inspect.CO_GENERATOR:
                kind = typing.get_args(kind)[0]
            self.wrong.update(disagreement(value, kind, f"{name}(...)"))
        elif not code.co_flags & inspect.CO_GENERATOR:  # whose names may have changed since it was called
            for argument, given in frame.f_locals.items():
                if argument in hints:
                    self.wrong.update(disagreement(given, hints[argument], f"{name}({argument})"))

    def _look_at_kernels(self) -> None:
        for name, kernel in self._kernels.items():
            hints = typing.get_type_hints(kernel.py_func, localns=FOR_CHECKERS)
            names = list(inspect.signature(kernel.py_func).parameters)
            new = set(kernel.signatures) - self._before[name]
            for signature in kernel.nopython_signatures:
                if signature.args in new:
                    for argument, kind in zip(names, signature.args, strict=True):
                        self.wrong.update(disagreement(_example(kind), hints[argument], f"{name}({argument})"))
                    self.wrong.update(disagreement(_example(signature.return_type), hints["return"], f"{name}(...)"))
