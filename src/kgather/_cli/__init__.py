"""The command line: thin commands over the library, errors as sentences, documented exit codes."""

from typing import NoReturn

from kgather._cli import stopping

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    stopping.begin()
    from kgather._cli import app  # takes a second, in which the command can be stopped already

    app.main()
