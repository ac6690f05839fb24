"""Measures held against what is promised, as checks."""

from kgather._release.release import Check


def at_least(name: str, promised: float | None, measured: float | None) -> Check:
    """A check that is passed from what is promised on. Nothing measured: nobody is there to be told apart."""
    return Check(name, promised, measured or 0, measured is None or promised is None or measured >= promised)


def at_most(name: str, promised: float, measured: float | None) -> Check:
    """A check that is passed up to what is promised."""
    return Check(name, promised, measured or 0, measured is None or measured <= promised)
