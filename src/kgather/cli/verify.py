"""`kgather verify`."""

from pathlib import Path
from typing import Annotated

import duckdb
import typer

from kgather.cli.console import print_checks, print_json
from kgather.errors import InputError
from kgather.relations import relation_in
from kgather.release import Check
from kgather.verify import is_release, promised_size, verify_relation, verify_release

NOT_ANONYMOUS = 3


def command(
    target: Annotated[
        str,
        typer.Argument(metavar="RELEASE|FILE|TABLE", help="A release, a Parquet or CSV file, or FILE.duckdb:TABLE."),
    ],
    k: Annotated[
        int | None,
        typer.Option(
            "--k", "-k", min=1, metavar="K", help="Rows in the smallest class; of a release: what it promised."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B,...", help="The quasi-identifiers; all columns where not given."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check k-anonymity, from nothing but what is given.

    Every combination of values of the columns must belong to at least K rows. Null is a value like any other. Of a
    release, all files are checked against each other. Exits with 3 where a promise is not kept.
    """
    checks = _checks(target, k, [name.strip() for name in columns.split(",")] if columns else [])
    passed = all(check.passed for check in checks)
    if json_output:
        print_json({"target": target, "passed": passed, "checks": [vars(check) for check in checks]})
    else:
        print_checks(checks)
    if not passed:
        raise typer.Exit(NOT_ANONYMOUS)


def _checks(target: str, k: int | None, columns: list[str]) -> tuple[Check, ...]:
    if is_release(Path(target)):
        if columns:
            msg = "--columns goes with a file or a table. A release is checked as a whole."
            raise InputError(msg)
        return verify_release(Path(target), k if k is not None else promised_size(Path(target)))
    if k is None:
        msg = "say what to check for with --k."
        raise InputError(msg)
    with duckdb.connect() as con:
        return (verify_relation(con, relation_in(con, target), columns, k),)
