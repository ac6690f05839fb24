"""`kgather init`."""

from pathlib import Path
from typing import Annotated

import typer

from kgather._cli.console import print_line
from kgather._errors import InputError
from kgather._scaffold import write_project


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR|guard", help="A new or empty folder; or the word guard, with a database.")
    ],
    database: Annotated[
        Path | None, typer.Argument(metavar="[DATABASE]", help="After guard: the DuckDB database to guard.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, metavar="K", help="Users in the smallest group.")] = 10,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Of guard: the policy (default guard.yml).")
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="COLUMN", help="Of guard: the column that names people.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Of guard: let nobody but its owner read database and policy.")
    ] = False,
) -> None:
    """Write a dbt project to start from, or, as `init guard DATABASE`, a policy for the guard."""
    if database is not None:
        if str(folder) != "guard":
            msg = f"kgather init takes one folder. To write a policy of the guard, run kgather init guard {database}."
            raise InputError(msg)
        _guard(database, out or Path("guard.yml"), k, unit)
        if private:
            _close(database, out or Path("guard.yml"))
        return
    if out is not None or unit is not None or private:
        msg = "--out, --unit and --private go with kgather init guard DATABASE. Leave them out, or name the database."
        raise InputError(msg)
    write_project(folder, k)
    print_line(
        f"{folder} is a dbt project. Put your ratings into models/my_ratings.sql, then:\n"
        f"  cd {folder}\n"
        "  export KGATHER_DBT=$(kgather dbt-path)\n"
        "  dbt deps && dbt build"
    )


def _close(*files: Path) -> None:
    for file in files:
        try:
            file.chmod(file.stat().st_mode & 0o700)
        except OSError as error:
            msg = f"{file} cannot be closed to others: {error.strerror}. Its owner has to run chmod 600 on it."
            raise InputError(msg) from None


def _guard(database: Path, out: Path, k: int, unit: str | None) -> None:
    if k < 2:
        msg = "a guard with k = 1 protects nobody. Choose --k 2 or more."
        raise InputError(msg)
    from kgather._guard.proposal import write_policy  # takes seconds to load

    left = write_policy(database, out, k=k, unit=unit)
    print_line(
        f"{out} is a policy made of guesses. Decide the {left} places marked DECIDE, then:\n"
        f'  kgather query --policy {out} "SELECT COUNT(*) FROM ..."'
    )
