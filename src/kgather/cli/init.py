"""`kgather init`."""

from pathlib import Path
from typing import Annotated

import typer

from kgather.cli.console import print_line
from kgather.scaffold import write_project


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, metavar="K", help="Users in the smallest group.")] = 10,
) -> None:
    """Write a dbt project to start from: your ratings model, kgather as a package, one block of vars."""
    write_project(folder, k)
    print_line(
        f"{folder} is a dbt project. Put your ratings into models/my_ratings.sql, then:\n"
        f"  cd {folder}\n"
        "  export KGATHER_DBT=$(kgather dbt-path)\n"
        "  dbt deps && dbt build"
    )
