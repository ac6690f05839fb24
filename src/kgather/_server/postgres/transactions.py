"""Transactions as clients see them: there is nothing to roll back but settings and cursors.

A message of several statements, or a pipeline up to Sync, is one implicit transaction: an error undoes what it set.
BEGIN inside makes it a transaction that goes on behind the message.
"""

from dataclasses import dataclass, field
from typing import Literal

from kgather._server.postgres.errors import NO_SUCH_SAVEPOINT, NO_TRANSACTION, TOO_MUCH_KEPT, PgError
from kgather._server.postgres.session_settings import Kept, Settings

Status = Literal["I", "T", "E"]

_MOST_SAVEPOINTS = 1_000


@dataclass(frozen=True)
class _Mark:
    name: str
    kept: Kept
    born: int


@dataclass
class Transaction:
    """The transaction of a connection. status: as clients are told; several: whether one message holds several
    statements; born: counts what could have made a cursor, so that one knows which are younger than a savepoint."""

    settings: Settings
    status: Status = "I"
    several: bool = False
    born: int = 0
    _begun: Kept | None = None
    _marks: list[_Mark] = field(default_factory=list)

    @property
    def is_block(self) -> bool:
        """Whether there is more than this statement in it."""
        return self.status != "I" or self.several

    def start(self, *, several: bool = False) -> None:
        """Begin a message, or go on with a pipeline."""
        self.several = several
        if self._begun is None:
            self._begun = self.settings.kept()

    def begin(self) -> None:
        """BEGIN."""
        self.start(several=self.several)
        self.status = "T"

    def end(self, *, commit: bool) -> list[str]:
        """COMMIT or ROLLBACK, of a block or of what is implicit. Returns the settings that clients are to be told."""
        begun = self._begun
        changed = self.settings.back_to(begun) if not commit and begun is not None else self.settings.end_local()
        self.status, self._begun = "I", None
        self._marks.clear()
        return changed

    def fail(self) -> None:
        """An error: nothing is answered until the end of a block."""
        if self.status == "T":
            self.status = "E"

    def finish(self, *, failed: bool) -> list[str]:
        """The message or the pipeline ends: so does what is implicit. Returns as `end`."""
        self.several = False
        return self.end(commit=not failed) if self.status == "I" and self._begun is not None else []

    def savepoint(self, name: str) -> None:
        """SAVEPOINT. Raises PgError."""
        self._check()
        if len(self._marks) >= _MOST_SAVEPOINTS:
            raise PgError(TOO_MUCH_KEPT, f"A transaction has {_MOST_SAVEPOINTS:,} savepoints at most.")
        self.born += 1
        self._marks.append(_Mark(name, self.settings.kept(), self.born))

    def release(self, name: str) -> None:
        """RELEASE. Raises PgError."""
        self._check()
        del self._marks[self._at(name) :]

    def back_to(self, name: str) -> tuple[int, list[str]]:
        """ROLLBACK TO. Returns what is younger than the savepoint (`born`), and the settings that clients are to be
        told. Raises PgError."""
        self._check()
        at = self._at(name)
        del self._marks[at + 1 :]
        self.status = "T"
        return self._marks[at].born, self.settings.back_to(self._marks[at].kept)

    def _check(self) -> None:
        if self.status == "I":
            raise PgError(NO_TRANSACTION, "Savepoints are for transactions.", hint="BEGIN first.")

    def _at(self, name: str) -> int:
        found = [at for at, mark in enumerate(self._marks) if mark.name == name]
        if not found:
            raise PgError(NO_SUCH_SAVEPOINT, "There is no savepoint of this name.")
        return found[-1]
