"""`kgather inspect`."""

from typing import Annotated, Any

import typer

from kgather._cli.console import print_json, print_line, warn
from kgather._cli.reading import load_options, with_reading
from kgather._cli.setting_options import with_input_settings
from kgather._loaders import seen
from kgather._publishing.publish import look
from kgather._settings.publication import PublishSettings
from kgather._settings.validation import validated


def _said(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


@with_reading()
@with_input_settings
def command(
    *,
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="Files of ratings, folders, FILE.duckdb:TABLE, or -.")
    ],
    reading: dict[str, Any],
    settings: dict[str, Any],
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, metavar="K", help="Shapes that fewer than K ids have are not shown.")
    ] = 5,
    json_output: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Say what a file of ratings is read as: columns, users, items, scale, repeats, what is set aside.

    It shows shapes of ids, as A######, and never an id. It refuses what `publish` refuses, but for too many bad rows.
    """
    asked = validated(PublishSettings, {"max_rejected_share": 1.0, **_said(settings), "k": k})
    read = look(inputs, asked, load_options(reading), warn=warn)
    if json_output:
        print_json({"read": read})
    else:
        for line in seen.sentences(read):
            print_line(line)
