"""kgather: k-anonymous releases of ratings, made inside the warehouse."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgather._sql_functions import load as load

try:
    __version__ = version("kgather")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    # Not imported before it is asked for: the kernels behind it take a second to import.
    if name == "load":
        from kgather._sql_functions import load

        return load
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
