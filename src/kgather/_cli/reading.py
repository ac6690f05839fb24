"""The options that say how files of ratings are read, the same for every command that reads some."""

from typing import Annotated

import typer

PANEL = "Reading the input"

Format = Annotated[
    str | None,
    typer.Option(
        "--format", help="auto, csv, tsv, u.data, movielens-dat, netflix, parquet or duckdb.", rich_help_panel=PANEL
    ),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What separates fields, as ';' or '\\t'.", rich_help_panel=PANEL)
]
Encoding = Annotated[str | None, typer.Option("--encoding", help="utf-8 (default) or latin-1.", rich_help_panel=PANEL)]
UserColumn = Annotated[
    str | None, typer.Option("--user-column", metavar="NAME", help="Or its place, from 1.", rich_help_panel=PANEL)
]
ItemColumn = Annotated[str | None, typer.Option("--item-column", metavar="NAME", rich_help_panel=PANEL)]
RatingColumn = Annotated[str | None, typer.Option("--rating-column", metavar="NAME", rich_help_panel=PANEL)]
TimeColumn = Annotated[
    str | None, typer.Option("--time-column", metavar="NAME", help="'none' ignores times.", rich_help_panel=PANEL)
]
