"""Lines of an audit log that cannot be read: how many there are, and where, so that nobody takes what is left for
everything."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgather._errors import InputError
from kgather._guard.audit_log import files_of

_MOST = 20  # places that are told
_ESCAPE = 6  # characters of the longest escape of JSON
_UNFINISHED = re.compile(r"[,{.eE+-]{0,2}")  # where a number, or what comes before a name, ends


@dataclass(frozen=True)
class BrokenLine:
    """A line that is no entry. line: its number in the file, from 1. cut_off: whether it only ends too early, as after
    a kill: nothing was answered then. before: how many whole entries are before it, in all files, the oldest one
    first."""

    file: Path
    line: int
    cut_off: bool
    before: int

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.file}:{self.line}"


def broken_lines(path: Path) -> list[BrokenLine]:
    """The broken lines of a log and of the files that were set aside, the oldest one first. Raises InputError where
    they cannot be read."""
    found: list[BrokenLine] = []
    entries = 0
    try:
        for file in files_of(path):
            with file.open(encoding="utf-8", errors="replace") as stream:
                for number, line in enumerate(stream, 1):
                    if not line.strip():
                        continue
                    try:
                        whole, cut_off = isinstance(json.loads(line), dict), False
                    except json.JSONDecodeError as error:
                        whole, cut_off = False, _ends_early(line.rstrip(), error)
                    except (ValueError, RecursionError):
                        whole, cut_off = False, False
                    entries += whole
                    if not whole:
                        found.append(BrokenLine(file, number, cut_off, entries))
    except OSError as error:
        msg = f"The audit log {path} cannot be read: {error.strerror}."
        raise InputError(msg) from None
    return found


def _ends_early(line: str, error: json.JSONDecodeError) -> bool:
    """Whether a line is the beginning of an entry: what is wrong with it is its end."""
    if not line.startswith("{"):
        return False
    rest = line[error.pos :]
    if _UNFINISHED.fullmatch(rest) or any(word.startswith(rest) for word in ("true", "false", "null")):
        return True
    return error.msg.startswith("Unterminated string") or (error.msg.startswith("Invalid") and len(rest) <= _ESCAPE)


def told(found: Sequence[BrokenLine]) -> list[str]:
    """Sentences that say what was left out, and where; none where there is nothing."""
    cut_off = [one for one in found if one.cut_off]
    others = [one for one in found if not one.cut_off]
    sentences = []
    if others:
        sentences.append(
            f"{_lines(others)} of the audit log cannot be read and {_were(others)} left out: {_places(others)}. What "
            "was answered there is not known."
        )
    if cut_off:
        sentences.append(
            f"{_lines(cut_off)} of the audit log {'ends' if len(cut_off) == 1 else 'end'} too early, as after a kill, "
            f"and {_were(cut_off)} left out: {_places(cut_off)}. Nothing was answered then."
        )
    return sentences


def _lines(found: Sequence[BrokenLine]) -> str:
    return f"{len(found):,} line{'' if len(found) == 1 else 's'}"


def _were(found: Sequence[BrokenLine]) -> str:
    return "was" if len(found) == 1 else "were"


def _places(found: Sequence[BrokenLine]) -> str:
    more = f" and {len(found) - _MOST:,} more" if len(found) > _MOST else ""
    return ", ".join(one.place for one in found[:_MOST]) + more
