"""`kgather user`: who may log in to the server."""

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from kgather._cli.console import print_json, print_line
from kgather._errors import InputError

app = typer.Typer(help="Say who may log in to the server.", no_args_is_help=True, rich_markup_mode=None)

_LONG = 4096

PolicyOption = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="The policy; users are in users.scram beside it.")
]
UsersOption = Annotated[Path | None, typer.Option("--users", metavar="FILE", help="The file of password hashes.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The user: a principal of the policy.")]


@app.command("add")
def add(
    name: NameArgument,
    policy: PolicyOption = None,
    users: UsersOption = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password, one line, from standard input.")
    ] = False,
    iterations: Annotated[
        int | None, typer.Option("--iterations", metavar="N", help="Of the hash (default 4096, as PostgreSQL).")
    ] = None,
) -> None:
    """Add a user, or give one another password. It is asked for, and never an argument."""
    from kgather._server import users as file

    path = _file(policy, users)
    if policy is not None:
        from kgather._guard.policy import load_policy

        load_policy(policy).principal(name)
    password = _password(name, password_stdin)
    new = file.add(path, name, password, iterations=iterations or file.ITERATIONS)
    print_line(
        f"{name} {'can log in' if new else 'has another password'} ({path}). A running server rereads it on SIGHUP."
    )


@app.command("list")
def list_(
    policy: PolicyOption = None,
    users: UsersOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the names as JSON.")] = False,
) -> None:
    """List who may log in."""
    from kgather._server import users as file

    names = sorted(file.load(_file(policy, users)).names)
    if json:
        print_json({"users": names})
    else:
        for name in names:
            print_line(name)


@app.command("remove")
def remove(name: NameArgument, policy: PolicyOption = None, users: UsersOption = None) -> None:
    """Take a user out."""
    from kgather._server import users as file

    path = _file(policy, users)
    file.remove(path, name)
    print_line(f"{name} can log in no more ({path}), once a running server has reread it on SIGHUP.")


def _file(policy: Path | None, users: Path | None) -> Path:
    if users is not None:
        return users
    return (policy.parent if policy is not None else Path()) / "users.scram"


def _password(name: str, from_stdin: bool) -> str:
    if not from_stdin and sys.stdin.isatty():
        password = getpass.getpass(f"Password of {name}: ")
        if getpass.getpass("Again: ") != password:
            msg = "the two passwords differ. Try again."
            raise InputError(msg)
        return password
    if not from_stdin:
        msg = "there is no terminal to ask for the password. Give it on standard input, with --password-stdin."
        raise InputError(msg)
    try:
        return sys.stdin.readline(_LONG).removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        msg = "the password on standard input is not UTF-8 text."
        raise InputError(msg) from None
