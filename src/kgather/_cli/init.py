"""`kgather init`."""

from pathlib import Path
from typing import Annotated

import typer

from kgather._cli.console import print_line
from kgather._errors import InputError
from kgather._scaffold import write_project


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|guard|anonymize",
            help="A new or empty folder; or the word guard, with a database, or anonymize, with a table.",
        ),
    ],
    database: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATABASE|TABLE]",
            help="After guard: the database to guard, or a folder of Parquet. After anonymize: a text or Parquet file, "
            "or FILE.duckdb:TABLE.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, metavar="K", help="Users in the smallest group.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to write: by default guard.yml, or anonymize.yml after anonymize.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", metavar="COLUMN", help="The column that names people; of guard also TABLE.COLUMN."),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Of anonymize: whether the first line of a text file names columns."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Of guard: let nobody but its owner read database and policy.")
    ] = False,
) -> None:
    """Write a dbt project to start from; as `init guard DATABASE` a policy for the guard, and as `init anonymize TABLE`
    settings to anonymize a table of people."""
    if database is not None and str(folder) == "anonymize":
        if private:
            msg = "--private goes with kgather init guard DATABASE. Leave it out."
            raise InputError(msg)
        _anonymize(str(database), out or Path("anonymize.yml"), k, unit, header)
        return
    if header is not None:
        msg = "--header goes with kgather init anonymize TABLE. Leave it out, or name the table."
        raise InputError(msg)
    if database is not None:
        if str(folder) != "guard":
            msg = (
                f"kgather init takes one folder. To write a policy of the guard, run kgather init guard {database}; "
                f"for settings to anonymize a table, kgather init anonymize {database}."
            )
            raise InputError(msg)
        _guard(database, out or Path("guard.yml"), k, unit)
        if private:
            _close(database, out or Path("guard.yml"))
        return
    if out is not None or unit is not None or private:
        msg = (
            "--out, --unit and --private go with kgather init guard DATABASE, the first two also with kgather init "
            "anonymize TABLE. Leave them out, or name the database or table."
        )
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

    written = write_policy(database, out, k=k, unit=unit)
    print_line(
        "\n".join(written.buys)
        + f"\n{out} is a policy made of guesses. Decide the {written.left} places marked DECIDE. "
        "At its end there are questions to begin with:\n"
        f'  kgather query --policy {out} "SELECT COUNT(*) FROM ..."'
    )


def _anonymize(table: str, out: Path, k: int, unit: str | None, header: bool | None) -> None:
    from kgather._tables.proposal import write_settings  # takes seconds to load

    made = write_settings(table, out, k=k, unit=unit, header=header)
    for name, found in made.roles.items():
        print_line(f"{name}: {found.role} ({found.why})")
    print_line(f"\nOf {made.people:,} people, as the table is, the columns tell apart:")
    for each in made.singled_out:
        print_line(
            f"  {', '.join(each.columns)}: {each.alone:,} stand alone, {each.few:,} are among fewer than {k} who look "
            "the same"
        )
    said = "" if header is None else " --header" if header else " --no-header"
    print_line(
        f"\n{out} holds settings made of guesses. Decide what each column is, then run\n"
        f"  kgather anonymize {table}{said} --settings {out} --out release"
    )
