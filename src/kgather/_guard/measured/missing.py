"""What to say where there is no ledger, or no audit log: whether there was one, as far as the other one tells."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgather._errors import InputError
from kgather._guard.audit_log import files_of
from kgather._guard.measured.ledger import INSTEAD, Ledger


def older(path: Path, measurements: int, last: Mapping[str, Any]) -> None:
    """Raise InputError where a ledger has fewer measurements than its audit log knows of. last: the log's last
    entry."""
    logged = last.get("measurements")
    if isinstance(logged, int) and logged > measurements:
        msg = (
            f"{path} has {measurements:,} measurements, and its audit log knows of {logged:,}: it is an older copy, "
            "and what was spent since is not in it. Put the copy back with kgather ledger restore, which charges that "
            "again."
        )
        raise InputError(msg)


def gone(ledger: Path, audit_log: Path | None, instead: str = INSTEAD) -> str | None:
    """What to say of a ledger that is missing although its audit log is there; None where there is a ledger, or no
    log. instead: what to do about it."""
    if ledger.exists() or audit_log is None or not files_of(audit_log):
        return None
    return f"{ledger} is missing, and {audit_log} says that questions were answered. {instead}"


def told_absence(ledger: Path, audit_log: Path | None, instead: str = INSTEAD) -> str:
    """The same where it is known that there is no ledger: that it is missing, or that there never was one."""
    never = f"{ledger}, the ledger that the policy names, does not exist yet: nothing was told."
    return gone(ledger, audit_log, instead) or never


def told_absence_of_log(ledger: Ledger, audit_log: Path) -> str | None:
    """What to say of an audit log that is not there; None where it is. ledger: is there."""
    if files_of(audit_log):
        return None
    logged, measured = ledger.logged(), len(ledger.measurements())
    if logged:
        return (
            f"{audit_log} is missing, and {ledger.path} says that the charges of {logged:,} measurements were written "
            "to it. What was answered is not known: bring back its files."
        )
    told = "no answer was written to it" if measured else "nothing was answered"
    return f"{audit_log}, the audit log that the policy names, does not exist yet: {told}."
