"""`kgather ledger`: what the guard's ledger holds."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kgather._cli.console import print_json
from kgather._cli.query import PolicyOption

app = typer.Typer(help="Look at the guard's ledger.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _ledger() -> None:
    """Look at the guard's ledger."""


@app.command("show")
def show(policy: PolicyOption, json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Say how many atoms there are, how small the smallest is, by classes, and how many splits each day had."""
    from kgather._guard.policy import load_policy
    from kgather._guard.summary import summarize

    read = load_policy(policy)
    found = summarize(read.ledger, read.k)
    if json:
        print_json(asdict(found))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"k = {found.k}, {found.decisions:,} decisions", markup=False)
    universes = _table("universe", "of", "atoms", "smallest atom")
    for universe in found.universes:
        smallest = universe.smallest or "none"
        universes.add_row(Text(universe.name), universe.of, f"{universe.atoms:,}", smallest)
    console.print(universes)
    days = _table("day (UTC)", "universe", "splits", "atoms then")
    for day in found.days:
        days.add_row(day.day, Text(day.universe), f"{day.splits:,}", f"{day.atoms:,}")
    console.print(days)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name.startswith(("atoms", "splits")) else "left")
    return table
