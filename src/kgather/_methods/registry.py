"""Finds the methods of gathering by name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType

from kgather._errors import InputError
from kgather._methods.record import Method

_GROUP = "kgather.methods"
_FIRST = "bkg"  # the default comes first wherever methods are listed


@cache
def built_in() -> Mapping[str, Method]:
    """The methods that kgather has, the default first, then by name."""
    package = __name__.rpartition(".")[0]
    modules = (import_module(f"{package}.{module.name}") for module in iter_modules([str(Path(__file__).parent)]))
    found = [module.METHOD for module in modules if hasattr(module, "METHOD")]
    found.sort(key=lambda method: (method.anonymous is False, method.name != _FIRST, method.name))
    return MappingProxyType({method.name: method for method in found})


@cache
def registered() -> Mapping[str, Method]:
    """All methods by name: those that kgather has, then those of other packages.

    Raises InputError where another package registers what is no method, takes a name that is taken, or registers a
    method under which users may stand alone: kgather's own are the only ones that may.
    """
    found = dict(built_in())
    for entry in sorted(entry_points(group=_GROUP), key=lambda entry: entry.name):
        method = entry.load()
        if not isinstance(method, Method) or method.name != entry.name:
            msg = f"the entry point {entry.name} of {_GROUP} is no kgather.methods.Method of that name."
            raise InputError(msg)
        if method.name in found:
            msg = f"the method {method.name} is registered twice. Uninstall one of the packages that have it."
            raise InputError(msg)
        if method.levels or not method.anonymous:
            msg = f"the method {method.name} lets users stand alone. Methods of other packages may not."
            raise InputError(msg)
        found[method.name] = method
    return MappingProxyType(found)


def method_named(name: object) -> Method:
    """The method of that name.

    Raises InputError where there is none, naming those that there are.
    """
    found = registered().get(name) if isinstance(name, str) else None
    if found is None:
        msg = f"there is no method {name!r}. There are: {', '.join(registered())}."
        raise InputError(msg)
    return found
