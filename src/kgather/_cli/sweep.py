"""`kgather sweep`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kgather._cli.console import StageProgress, print_json, print_line
from kgather._cli.reading import load_options, with_reading
from kgather._errors import InputError
from kgather._republishing.sweep import RULE, Sweep, SweepRow, check_folder, sweep, write

_TABLE = "Tables of people"


@with_reading()
def command(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Files of ratings, or FILE.duckdb:TABLE. Their formats are detected."),
    ],
    k: Annotated[str, typer.Option("--k", "-k", metavar="K,...", help="Sizes of group to try.")] = "2,5,10,20",
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="A,B,...",
            help="Methods to try (default bkg and mdav; of tables mondrian and cluster).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where sweep.csv, sweep.json and sweep.html go."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the split, the groups and the attacks.")] = 0,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="VAR=VALUE", help="Set any var of the dbt project, for all releases."),
    ] = None,
    membership: Annotated[
        bool,
        typer.Option(
            "--membership/--no-membership",
            help="Publish half of the people once more, and try to tell them from the other half.",
        ),
    ] = True,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="VAR=V,V,...", help="Try these values, too, as outliers=0.98,0.95,0.9."),
    ] = None,
    shadows: Annotated[
        int,
        typer.Option(
            "--shadows", metavar="N", min=0, help="Publish N halves of the people, and learn who is in from these."
        ),
    ] = 0,
    quasi_identifiers: Annotated[
        str | None,
        typer.Option(
            "--quasi-identifiers",
            metavar="A,B,...",
            help="INPUT is a table of people, and these columns are generalized.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    sensitive: Annotated[
        str | None,
        typer.Option("--sensitive", metavar="A,B,...", help="Its sensitive columns.", rich_help_panel=_TABLE),
    ] = None,
    suppress: Annotated[
        str | None,
        typer.Option(
            "--suppress",
            metavar="SHARE,...",
            help="Shares of rows that may show nothing, to try (default 0).",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            metavar="FILE",
            help="A YAML file with all settings of a table, as anonymize takes it.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier results at DIR.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    reading: dict[str, Any],
) -> None:
    """Compare methods and sizes of group: what a release costs, and what attackers get from it.

    For each method and K four fifths of the ratings are published into a private folder that is removed afterwards.
    The loss is measured on the other fifth, the risk by attacks on people drawn at random. Nothing of it is a release.

    With --quasi-identifiers or --settings INPUT is a table of people: it is made anonymous with each method, K and
    share of suppressed rows, and the loss and what attackers get are measured on all of it.
    """
    if out is not None:
        check_folder(out, force=force)
    options = load_options(reading)
    if quasi_identifiers or settings:
        if assignments or vary or shadows or len(inputs) != 1:
            msg = "a sweep over a table takes one INPUT, and no --set, --vary and --shadows."
            raise InputError(msg)
        from kgather._cli.sweep_table import sweep_table

        sweep_table(
            inputs[0], settings, quasi_identifiers, sensitive, _sizes(k), methods, suppress, options, seed=seed,
            out=out, json_output=json_output,
        )  # fmt: skip
        return
    if sensitive or suppress:
        msg = "--sensitive and --suppress go with --quasi-identifiers or --settings: they are of a table of people."
        raise InputError(msg)
    names = [name.strip() for name in (methods or "bkg,mdav").split(",") if name.strip()]
    with StageProgress() as progress:
        found = sweep(
            inputs,
            names,
            _sizes(k),
            options,
            assignments=assignments or [],
            seed=seed,
            membership=membership,
            vary=vary or [],
            shadows=shadows,
            report=progress.report,
        )
    files = write(found, out) if out is not None else ()
    if json_output:
        print_json(found.as_dict())
    else:
        _print(found)
        for file in files:
            print_line(f"Written: {file}")


def _sizes(k: str) -> list[int]:
    try:
        return [int(part) for part in k.split(",") if part.strip()]
    except ValueError:
        msg = f"--k takes sizes of group, whole numbers from 1, as 2,5,10, not {k!r}."
        raise InputError(msg) from None


def _print(found: Sweep) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    table.add_column("varied")
    for name in (
        "k",
        "MAE",
        "covered",
        "person found",
        "right group: 4 known",
        "8 known",
        "farthest 3%",
        "exact",
        "membership",
        "shadows",
        "groups",
        "seconds",
    ):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in found.rows:
        if row.refused is None:
            table.add_row(*_cells(row))
    Console(highlight=False, width=None if sys.stdout.isatty() else 150).print(table)
    print_line("* not beaten: none with as little loss and risk, and as many ratings covered.")
    best = found.recommended
    if best is not None:
        with_what = f", {best.varied}" if best.varied else ""
        print_line(f"Recommended: {best.method}, k = {best.k:,}{with_what}. {best.why}")
        print_line(f"The rule: {RULE}")
    for row in found.rows:
        if row.refused is not None:
            with_what = f", {row.varied}," if row.varied else ","
            print_line(f"{row.method}, k = {row.k}{with_what} was refused: {row.refused}")


def _cells(row: SweepRow) -> list[str]:
    return [
        row.method,
        row.varied or "",
        f"{row.k:,}",
        "-" if row.mae is None else f"{row.mae:.4f}",
        _share(row.covered),
        _share(row.user_reidentification),
        _share(row.right_group_4),
        _share(row.right_group_8),
        _share(row.farthest),
        _share(row.exact_disclosure),
        "-" if row.membership_advantage is None else f"{row.membership_advantage:.3f}",
        "-" if row.shadow_advantage is None else f"{row.shadow_advantage:.3f}",
        "-" if row.groups is None else f"{row.groups:,}",
        "-" if row.seconds is None else f"{row.seconds:.1f}",
        "*" if row.front else "",
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"
