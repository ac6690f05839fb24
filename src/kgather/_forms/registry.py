"""Finds the forms of a release by name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType

from kgather._errors import InputError
from kgather._forms.record import Form

_FIRST = "predicted"  # the default comes first wherever forms are listed


@cache
def forms() -> Mapping[str, Form]:
    """All forms by name: the default first, those of methods of their own and `none` last."""
    package = __name__.rpartition(".")[0]
    modules = (import_module(f"{package}.{module.name}") for module in iter_modules([str(Path(__file__).parent)]))
    found = [module.FORM for module in modules if hasattr(module, "FORM")]
    found.sort(key=lambda form: (form.rows != "groups", form.name == "none", form.name != _FIRST, form.name))
    return MappingProxyType({form.name: form for form in found})


def form_named(name: object) -> Form:
    """The form of that name.

    Raises InputError where there is none, naming those that there are.
    """
    found = forms().get(name) if isinstance(name, str) else None
    if found is None:
        msg = f"there is no form of release {name!r}. There are: {', '.join(forms())}."
        raise InputError(msg)
    return found
