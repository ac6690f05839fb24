"""kgather: k-anonymous releases of ratings, made inside the warehouse.

What is named here is public, and so are `kgather.guard`, `kgather.guard.dbapi`, `kgather.plugin` and `kgather.udfs`;
see docs/python.md for how to use it and docs/stability.md for what may change between versions.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgather import guard as guard
    from kgather._api import AnonymizedTable, Release, Verdict, anonymize, attack, erase, publish, verify
    from kgather._attacks.results import AttackReport, AttackResult, Best, Rate
    from kgather._errors import InputError, KgatherError, PromiseError
    from kgather._publishing.erasure import Erased
    from kgather._release.release import Audit, Check
    from kgather._sql_functions import load
    from kgather._version import __version__

__all__ = [
    "AnonymizedTable",
    "AttackReport",
    "AttackResult",
    "Audit",
    "Best",
    "Check",
    "Erased",
    "InputError",
    "KgatherError",
    "PromiseError",
    "Rate",
    "Release",
    "Verdict",
    "__version__",
    "anonymize",
    "attack",
    "erase",
    "guard",
    "load",
    "publish",
    "verify",
]

_WHERE = {
    "AnonymizedTable": "_api",
    "AttackReport": "_attacks.results",
    "AttackResult": "_attacks.results",
    "Audit": "_release.release",
    "Best": "_attacks.results",
    "Check": "_release.release",
    "Erased": "_publishing.erasure",
    "InputError": "_errors",
    "KgatherError": "_errors",
    "PromiseError": "_errors",
    "Rate": "_attacks.results",
    "Release": "_api",
    "Verdict": "_api",
    "__version__": "_version",
    "anonymize": "_api",
    "attack": "_api",
    "erase": "_api",
    "load": "_sql_functions",
    "publish": "_api",
    "verify": "_api",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: engines and kernels take seconds to load."""
    from importlib import import_module

    if name == "guard":
        return import_module("kgather.guard")
    if name not in _WHERE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"kgather.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
