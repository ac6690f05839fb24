"""Copies of the ledger: taken while guards run, and put back without forgetting what was charged since.

A ledger that forgets a charge spends its budget twice. So a copy is put back only with the charges that came after it,
from the audit log or from the ledger that it takes the place of: without their numbers, which are lost, they count
against the budget. Where one of them is not known, nothing is put back.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgather._errors import InputError
from kgather._guard.audit_log import read_log
from kgather._guard.broken_lines import broken_lines
from kgather._guard.measured.ledger import Ledger, Measurement

Charges = dict[int, Mapping[str, Any]]
"""Charges by the number of the measurement."""


@dataclass(frozen=True)
class Restored:
    """What a copy was put back with. measurements: of the copy. lost: charges since. rho: what these cost. aside: where
    the ledger is now that was there before; None where there was none."""

    measurements: int
    lost: int
    rho: float
    aside: Path | None


def restore(ledger: Path, audit_log: Path | None, copy: Path, *, sure: bool = False) -> Restored:
    """Put a copy of the ledger back. No guard may run meanwhile; one that does says that its ledger was replaced.

    sure: whoever calls knows that nothing was measured since the copy was made that is not known here; it is asked for
    only where neither an audit log nor a ledger tells, or a line of the log is broken. Raises InputError where a charge
    since the copy is not known, or the file is no copy of this ledger.
    """
    if not copy.is_file():
        msg = f"{copy} cannot be read: there is no such file. Name what kgather ledger backup wrote."
        raise InputError(msg)
    kept = Ledger(copy)
    state, before = kept.state(), kept.measurements()
    with ExitStack() as stack:
        present = _present(Ledger(ledger), state["id"], stack)
        entries = []
        if audit_log is not None:
            entries = _entries(audit_log, state["id"], copy, sure=sure)
        if not entries:
            _check_without_log(ledger, present, len(before), sure=sure)
        logged = {int(charge["number"]): charge for entry in entries for charge in entry.get("measured", ())}
        known: Charges = logged | {one.number: one.as_charge() for one in present or ()}
        last = max([len(before), *known, *(int(entry.get("measurements") or 0) for entry in entries)])
        missing = [number for number in range(len(before) + 1, last + 1) if number not in known]
        if missing:
            msg = (
                f"{copy} cannot be put back: it ends with measurement {len(before)}, and what measurement {missing[0]} "
                "cost is not in the audit log. Put a newer copy back, or bring back the files of the audit log that "
                "were set aside."
            )
            raise InputError(msg)
        lost = [known[number] for number in range(len(before) + 1, last + 1)]
        ledger.parent.mkdir(parents=True, exist_ok=True)
        draft = Ledger(ledger.with_name(f"{ledger.name}.{os.getpid()}.new"))
        draft.path.unlink(missing_ok=True)
        try:
            kept.copy_to(draft.path)
            draft.add_lost(lost)
            draft.set_logged(_logged_up_to(int(state.get("logged", "0")), logged))
            aside = Ledger(ledger).take(draft.path)
        finally:
            draft.path.unlink(missing_ok=True)
    return Restored(len(before), len(lost), sum(float(charge["rho"]) for charge in lost), aside)


def _entries(audit_log: Path, name: str, copy: Path, *, sure: bool) -> list[Mapping[str, Any]]:
    """The entries of a ledger. Raises InputError where a line is broken that may have been one of them.

    A line that ends too early was being written when its process was killed: nothing was answered then. What was
    measured for it is charged again by the entries behind it, where there are any: they say how many measurements there
    were, so that none is left out.
    """
    own: list[Mapping[str, Any]] = []
    number = behind = 0
    for number, entry in enumerate(read_log(audit_log), 1):
        if entry.get("ledger") == name:
            own.append(entry)
            behind = number
    for line in broken_lines(audit_log):
        is_harmless = line.cut_off and (line.before < behind or line.before == number)
        if not is_harmless and not sure:
            msg = (
                f"{copy} cannot be put back: {line.place} of the audit log is broken, so that what was charged there "
                "is not known. Bring the line back from another copy of the log. If you know that it is older than "
                f"{copy}, or of another ledger, say --yes. Otherwise begin a new ledger with kgather ledger new, which "
                "does not know what was told before, and says so."
            )
            raise InputError(msg)
    return own


def _present(ledger: Ledger, name: str, stack: ExitStack) -> Sequence[Measurement] | None:
    """What the ledger has that is there now, in which nobody measures until the stack ends; None where there is none,
    or none that can be read. Raises InputError where it is another one."""
    if not ledger.exists():
        return None
    try:
        state = ledger.state()
        measurements = stack.enter_context(ledger.measuring()).known
    except InputError:
        return None
    if state["id"] != name:
        msg = (
            f"{ledger.path} is another ledger than the one that the copy is of, begun {state['made_at']}. What was "
            "measured in it would be forgotten: give it another name yourself, if nothing was told from it."
        )
        raise InputError(msg)
    return measurements


def _check_without_log(ledger: Path, present: Sequence[Measurement] | None, before: int, *, sure: bool) -> None:
    if present is not None and len(present) > before:
        msg = (
            f"{ledger} has {len(present)} measurements, the copy {before}, and there is no audit log to tell what the "
            "rest cost. The ledger that is there is newer, and it can be read: go on with it."
        )
        raise InputError(msg)
    if present is None and not sure:
        msg = (
            "Whether anything was measured since the copy was made is not known: there is neither an audit log of it "
            f"nor {ledger}. Say --yes if nothing was asked since. Otherwise begin a new ledger with kgather ledger "
            "new, which does not know what was told before, and says so."
        )
        raise InputError(msg)


def _logged_up_to(before: int, logged: Charges) -> int:
    number = before
    while number + 1 in logged:
        number += 1
    return number
