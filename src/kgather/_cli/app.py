"""The `kgather` command and what all its commands share."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from kgather._cli import (
    anonymize,
    assign,
    attack,
    erase,
    explain,
    guard,
    init,
    inspect,
    ledger,
    metrics,
    paper,
    publish,
    query,
    serve,
    stopping,
    sweep,
    user,
    verify,
)
from kgather._cli.console import say
from kgather._cli.own_options import with_own_options
from kgather._dbt_package import dbt_path
from kgather._dbt_release import FOLDER, write_package
from kgather._errors import KgatherError
from kgather._verbosity import is_verbose, set_verbose
from kgather._version import __version__

EXIT_CODES = """
Exit codes: 0 done; 1 internal error; 2 wrong usage or bad input (nothing written); 3 a promise is not kept
(publish, anonymize: no release written; verify: not anonymous; attack: a gate is exceeded); 4 refused by the guard;
130, 143, 129 interrupted by Ctrl-C, SIGTERM or SIGHUP (nothing written).
"""


class _Group(TyperGroup):
    """The group of all commands. Each takes `-v` too, as people write it before and after a command's name."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        [verbose] = [option for option in self.params if option.name == "verbose"]
        below: list[Any] = list(self.commands.values())
        while below:
            command = below.pop()
            command.params.append(verbose)
            below += command.commands.values() if isinstance(command, TyperGroup) else ()

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what it raises for people names the options that it has."""
        try:
            return super().invoke(ctx)
        except KgatherError as error:
            command = self.commands.get(ctx.invoked_subcommand)
            if command is not None and not isinstance(command, TyperGroup):
                error.args = (with_own_options(str(error), command),)
            raise


app = typer.Typer(
    name="kgather",
    cls=_Group,
    help="Publish people's ratings without giving the people away.",
    epilog=EXIT_CODES.replace("\n", " ").strip(),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kgather {__version__}")
        raise typer.Exit


def _heed_verbose(context: typer.Context, wanted: bool) -> None:
    # `kgather` itself is read first, then its commands: one of them asking is enough.
    if wanted or context.parent is None:
        set_verbose(wanted)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            callback=_heed_verbose,
            expose_value=False,  # commands are not bothered with it
            help="Show what dbt says, and where an internal error was. It may quote data.",
        ),
    ] = False,
) -> None:
    del version, verbose


app.command("publish", epilog=app.info.epilog)(publish.command)
app.command("assign", epilog=app.info.epilog)(assign.command)
app.command("erase", epilog=app.info.epilog)(erase.command)
app.command("anonymize", epilog=app.info.epilog)(anonymize.command)
app.command("inspect", epilog=app.info.epilog)(inspect.command)
app.command("verify", epilog=app.info.epilog)(verify.command)
app.command("attack", epilog=app.info.epilog)(attack.command)
app.command("metrics", epilog=app.info.epilog)(metrics.command)
app.command("sweep", epilog=app.info.epilog)(sweep.command)
app.command("paper", epilog=app.info.epilog)(paper.command)
app.command("query", epilog=app.info.epilog)(query.command)
app.command("explain", epilog=app.info.epilog)(explain.command)
app.command("serve", epilog=app.info.epilog)(serve.command)
app.add_typer(user.app, name="user")
app.add_typer(ledger.app, name="ledger")
app.add_typer(guard.app, name="guard")
app.command("init")(init.command)


@app.command("dbt-path")
def _dbt_path() -> None:
    """Print the folder of the dbt package, for `local:` in a packages.yml."""
    typer.echo(dbt_path())


@app.command("dbt-release")
def _dbt_release(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="The releases, as `vars: kgather: releases:` names them.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write; each package has a folder there.")
    ] = FOLDER,
) -> None:
    """Write a dbt package for each of several releases of a project, to be named in its packages.yml."""
    for name in names:
        folder = write_package(name, out)
        typer.echo(f"  - local: {folder.as_posix()}")


@app.command("sql")
def _sql() -> None:
    """Print the SQL macros that need nothing but DuckDB, for its command line and other tools."""
    from kgather._sql_functions import bundle  # takes a second, which the other commands need not wait for

    typer.echo(bundle(), nl=False)


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    stopping.begin()
    try:
        app(standalone_mode=True)
        code = 0
    except KgatherError as error:
        say(f"kgather: {error}")
        code = error.exit_code
    except BrokenPipeError:
        # Whoever read the output has gone; nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if is_verbose():
            raise
        # The text of an unforeseen error may quote data, so only its kind is told.
        say(f"kgather: internal error ({type(error).__name__}). Run again with -v to see where.")
        code = 1
    finally:
        stopping.end()
    sys.exit(code)
