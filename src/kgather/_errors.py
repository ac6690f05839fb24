"""The errors that people see, each with the exit code of the command line."""

from collections.abc import Iterable


class KgatherError(Exception):
    """An error whose message is meant for the person at the keyboard."""

    exit_code = 1


class InputError(KgatherError):
    """The input or the way of calling is wrong; nothing was written."""

    exit_code = 2


class PromiseError(KgatherError):
    """A promise of the release is not kept; no release was written."""

    exit_code = 3


class StoppedError(KgatherError):
    """The user stopped the work; nothing was written."""

    exit_code = 130
    NOTHING = "interrupted, nothing was written."
    PART = "interrupted. What was written before stays, nothing else was written."
    ALL = "interrupted after all was written."

    def __init__(self) -> None:
        super().__init__(self.NOTHING)


def quoted(names: Iterable[str]) -> str:
    """Names that somebody gave, as messages quote them: each in single quotes."""
    return ", ".join(f"'{name}'" for name in names)


DISK_FULL = "No space left on device"
"""How the system, and engines that quote it, say that a disk is full."""
