"""`kgather metrics`."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kgather._cli.console import StageProgress, print_json
from kgather._cli.reading import load_options, with_reading
from kgather._evaluation.named import Metric


@with_reading()
def command(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    original: Annotated[
        list[str],
        typer.Option(
            "--original",
            metavar="FILE",
            help="What was published, or the work.duckdb that publish --keep-work kept. May be given several times.",
        ),
    ],
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed it was published with.")] = 0,
    recommender: Annotated[
        bool,
        typer.Option(
            "--recommender/--no-recommender",
            help="Also publish four fifths of the original and test recommenders on the rest.",
        ),
    ] = False,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="VAR=VALUE", help="A var it was published with that its audit does not name."),
    ] = None,
    reading: dict[str, Any],
    json_output: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Measure what utility was lost in a release.

    Runs on the publisher's side, where the original is. All values are about all users at once.
    """
    # Imported here: it takes seconds, and most commands do not need it.
    from kgather._republishing.of_release import measure_release

    with StageProgress() as progress:
        metrics = measure_release(
            release,
            original,
            seed=seed,
            recommender=recommender,
            load_options=load_options(reading),
            assignments=assignments or [],
            report=progress.report,
        )
    if json_output:
        print_json({"release": str(release), "metrics": [asdict(metric) for metric in metrics]})
    else:
        print_metrics(metrics)


def print_metrics(metrics: tuple[Metric, ...]) -> None:
    """Print metrics as a table to standard output."""
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("what it means")
    for metric in metrics:
        table.add_row(metric.metric, _shown(metric.value), metric.about)
    Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
