"""Whether the person at the keyboard wants to see what the engines say, with all the data that it may quote.

It belongs to the process, as a level of logging does: what breaks may be far below the command that was given.
"""

_asked = False


def set_verbose(asked: bool) -> None:
    """Note whether `-v` was given."""
    global _asked
    _asked = asked


def is_verbose() -> bool:
    """Return whether `-v` was given."""
    return _asked
