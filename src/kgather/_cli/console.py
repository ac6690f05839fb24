"""What people see: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from kgather import _progress as progress
from kgather._cli import stopping
from kgather._release.release import Check


def say(message: str) -> None:
    """Print a line to standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False)


def warn(message: str) -> None:
    """Print a warning to standard error, so that it is seen."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"WARNING: {message}", markup=False, style="bold yellow"
    )


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_line(line: str) -> None:
    """Print a line of a result to standard output."""
    Console(highlight=False, soft_wrap=True).print(line, markup=False)


def print_checks(checks: Sequence[Check]) -> None:
    """Print checks as a table to standard output."""
    table = Table(box=None, pad_edge=False)
    table.add_column("check")
    table.add_column("promised", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("", justify="left")
    for check in checks:
        promised = "-" if check.promised is None else _number(check.promised)
        verdict = "" if check.promised is None else "ok" if check.passed else "NOT KEPT"
        table.add_row(check.check, promised, _number(check.measured), verdict)
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)


def _number(value: float) -> str:
    """A count in full, a measure in six significant digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


class StageProgress(AbstractContextManager["StageProgress"]):
    """A progress bar on standard error while a publication runs; silent where that is no terminal."""

    _TITLES = {  # noqa: RUF012
        "load": "reading the input",
        "dbt": "building models, running tests",
        "compile": "compiling kernels, once",
        "preferences": "learning preferences",
        "attack": "attacking the release",
        "write": "writing the release",
    }

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<32}"),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._listening = progress.listening(self.report)

    def __enter__(self) -> Self:
        self._listening.__enter__()
        stopping.drawing(self._console.is_terminal)
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)
        stopping.drawing(False)
        self._listening.__exit__(kind, error, trace)

    def report(self, step: str, done: int, total: int) -> None:
        """Show that `done` of `total` of a step is done."""
        if step not in self._tasks:
            self._tasks[step] = self._progress.add_task(self._TITLES.get(step, step), total=total)
        self._progress.update(self._tasks[step], completed=done, total=total)
