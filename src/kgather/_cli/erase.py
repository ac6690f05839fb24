"""`kgather erase`."""

from pathlib import Path
from typing import Annotated

import typer

from kgather._cli.console import print_line
from kgather._errors import InputError
from kgather._publishing.history import Following, read_removed


def command(
    *,
    users: Annotated[Path, typer.Argument(metavar="USERS", help="Who wants to be out, one user id a line.")],
    history: Annotated[
        Path, typer.Option("--history", metavar="WORK", help="What --keep-work kept of the last release.")
    ],
    release: Annotated[Path, typer.Option("--release", metavar="RELEASE", help="The folder of the last release.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where what is left of the release goes: a new folder.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace what is at DIR, as the release itself.")] = False,
) -> None:
    """Take people out of a release at once, by their whole groups.

    Their data are taken out of the working database, and older ones beside it are deleted. Without a proven item side
    nothing of the release can stay. The groups come back with the next release, once k people have come or gone.
    """
    # Imported here: it takes seconds, and most commands do not need it.
    from kgather._publishing.erasure import erase
    from kgather._publishing.publish import check_target

    wanted = read_removed(users)
    if not wanted:
        msg = f"{users} names nobody. Give one user id a line."
        raise InputError(msg)
    check_target(out.resolve(), [str(users)], force=force)
    found = erase(wanted, Following(history), release, out, force=force)
    print_line(f"{found.people:,} people were erased from {Following(history).database}.")
    if found.release is None:
        print_line(
            f"WITHDRAW {release} whole: all that it shows is computed from items' vectors without a proven bound "
            "(item_epsilon). It comes back with the next release."
        )
    else:
        print_line(f"{found.groups:,} groups were taken out. Release: {found.release}. Withdraw {release}.")
