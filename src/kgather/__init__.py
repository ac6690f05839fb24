"""kgather: k-anonymous releases of ratings, made inside the warehouse."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("kgather")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
