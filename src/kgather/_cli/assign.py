"""`kgather assign`."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow.csv
import typer

from kgather import _stopping as stopping
from kgather._cli.console import print_line, say
from kgather._cli.reading import load_options, with_reading
from kgather._errors import InputError


@with_reading()
def command(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Ratings of users who are not in the release, as publish takes them."),
    ],
    release: Annotated[Path, typer.Option("--release", metavar="RELEASE", help="The folder of the release.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="A new CSV file instead of standard output."),
    ] = None,
    reading: dict[str, Any],
) -> None:
    """Say which group of a release fits users best who are not in it.

    Only what is published is looked at. The result has users' ids: it is as private as their ratings.
    """
    # Imported here: it takes seconds, and most commands do not need it.
    from kgather._republishing.assigning import assign

    if out is not None and out.exists():
        msg = f"{out} exists. Give another --out."
        raise InputError(msg)
    found = assign(inputs, release, load_options(reading))
    text = pa_csv(found)
    if out is None:
        print_line(text.rstrip("\n"))
        return
    with stopping.whole:
        out.touch(mode=0o600, exist_ok=False)
        out.write_text(text, encoding="utf-8")
        stopping.written(out)
    lonely = found["group_id"].null_count
    say(f"{len(found) - lonely:,} users have a group, {lonely:,} rated nothing that the release shows.")


def pa_csv(table: Any) -> str:
    """A table of Arrow as CSV with a header."""
    sink = pyarrow.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(quoting_style="needed"))
    return sink.getvalue().to_pybytes().decode("utf-8")
