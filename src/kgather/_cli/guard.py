"""`kgather guard`: for those who own the data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kgather._cli.console import print_line
from kgather._cli.query import PolicyOption
from kgather._errors import InputError

app = typer.Typer(
    help="Look at what a guard does, as the owner of the data.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _guard() -> None:
    """Look at what a guard does, as the owner of the data."""


@app.command("audit")
def audit(
    policy: PolicyOption,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="The audit log, if not the one that the policy names.")
    ] = None,
) -> None:
    """Look for undeclared copies and for what comes from data, and say what each question of the audit log cost and how
    far off its answer was. Prints true figures of people."""
    from kgather._guard.policy import load_policy

    read = load_policy(policy)
    if read.mode != "measured":
        msg = f"the policy has mode {read.mode}, which charges nothing; kgather guard audit is for mode measured."
        raise InputError(msg)
    if log is not None and not log.is_file():
        msg = f"{log} cannot be read: there is no such file. Name an audit log with --log."
        raise InputError(msg)
    from kgather._guard.measured.audits import lines

    for line in _printable(lines(read, log or read.audit_log)):
        print_line(line)


@app.command("plan")
def plan(
    queries: Annotated[Path, typer.Argument(metavar="QUERIES", help="A file of statements with ; between them.")],
    policy: PolicyOption,
) -> None:
    """Say what a list of questions would measure, what that costs, and how exact the answers would be. Reads no rows of
    people, and charges nothing."""
    from kgather._cli.query import say_begun
    from kgather.guard import Guard

    try:
        text = queries.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        msg = f"{queries} cannot be read as a text in UTF-8. Name a file of SELECT statements with ; between them."
        raise InputError(msg) from None
    guard = Guard.from_policy(policy, prepare=False)
    say_begun(guard)
    for line in _printable(iter(guard.workload(text))):
        print_line(line)


def _printable(lines: Iterator[str]) -> Iterator[str]:
    """Lines that tell a terminal nothing but letters: statements are their analysts' own."""
    for line in lines:
        yield "".join(c if c.isprintable() else " " for c in line)
