"""`kgather paper`."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kgather._cli.console import print_json, print_line, say
from kgather._errors import InputError
from kgather._paper.findings import Finding


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Experiments to run; all if none is given.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="u.data", help="ML-100k; otherwise ml-100k/u.data under $KGATHER_DATA."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where NAME.csv and NAME.svg go.")] = Path(
        "paper"
    ),
    listed: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Run the papers' experiments again on ML-100k: what was printed, what is found, and what chance gives.

    What does not reproduce is shown as such, and what groups at random give as well is no merit of the paper. All
    experiments write verdicts.md, facts.md and parts.md, too.
    """
    # Imported here: it takes seconds, and most commands do not need it.
    from kgather._paper.experiments import EXPERIMENTS, chosen, write, write_tables
    from kgather._paper.movielens import read_movielens

    if listed:
        for experiment in EXPERIMENTS:
            print_line(f"{experiment.name}: {experiment.about}")
        return
    experiments = chosen(names or [])
    ratings = read_movielens(data or _usual_place())
    found, tabled = {}, {}
    for experiment in experiments:
        say(experiment.about)
        findings = list(experiment.run(ratings))
        written = write(out, experiment, findings)
        tabled[experiment.name] = experiment.source, findings
        found[experiment.name] = [asdict(finding) | {"deviation": finding.deviation} for finding in findings]
        if not json_output:
            _print(experiment.name, findings)
            print_line(f"Written: {', '.join(map(str, written))}\n")
    if experiments == EXPERIMENTS:
        files = write_tables(out, tabled)
        if not json_output:
            print_line(f"Written: {', '.join(map(str, files))}")
    if json_output:
        print_json(found)


def _usual_place() -> Path:
    folder = os.environ.get("KGATHER_DATA")
    if folder is None:
        msg = "say where ML-100k is: --data u.data. It can be had from https://grouplens.org/datasets/movielens/100k/."
        raise InputError(msg)
    return Path(folder) / "ml-100k" / "u.data"


def _print(name: str, findings: list[Finding]) -> None:
    # Imported here, as above.
    from kgather._paper.parts import text

    table = Table(title=name, title_justify="left", box=None, pad_edge=False)
    for column, justify in (
        ("", "left"),
        ("at", "left"),
        ("paper", "right"),
        ("found", "right"),
        ("off by", "right"),
        ("by chance", "right"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("")
    for finding in findings:
        table.add_row(
            finding.measure,
            "" if finding.x is None else f"{finding.of} = {finding.x:g}",
            text(finding.paper),
            text(finding.measured),
            "" if finding.deviation is None else f"{finding.deviation:+.1%}",
            text(finding.chance),
            "" if finding.verdict == "not printed" else finding.verdict,
        )
    readings = dict.fromkeys(finding.reading for finding in findings if finding.reading)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for reading in readings:
        console.print(f"  Read as: {reading}.", markup=False)
