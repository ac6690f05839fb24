"""The command line: thin commands over the library, errors as sentences, documented exit codes."""

from kgather._cli.app import main

__all__ = ["main"]
