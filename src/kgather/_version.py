"""The version of what is installed, apart from the package's public names so that any module may import it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("kgather")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"
