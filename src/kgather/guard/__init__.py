"""The query guard: analysts ask in SQL, answers cover at least k users or are not given.

What is named here is public, and so is `kgather.guard.dbapi`; see docs/python.md for what may change between versions.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgather._guard.guard import Answer, Guard
    from kgather._guard.policy import Policy, load_policy
    from kgather._guard.refused import Refused

__all__ = ["Answer", "Guard", "Policy", "Refused", "load_policy"]

_WHERE = {
    "Answer": "guard",
    "Guard": "guard",
    "Policy": "policy",
    "Refused": "refused",
    "load_policy": "policy",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: the kernels take seconds to load."""
    if name not in _WHERE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module(f"kgather._guard.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
