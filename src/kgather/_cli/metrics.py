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
from kgather._cli.setting_options import pairs
from kgather._errors import InputError
from kgather._evaluation.named import Metric
from kgather._release.reading import holds_table

_TABLE = "Releases of tables of people"


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
    naive_bayes: Annotated[
        bool,
        typer.Option(
            "--naive-bayes/--no-naive-bayes",
            help="Also teach a classifier what users like, on the release and on the original (needs scikit-learn).",
        ),
    ] = False,
    average: Annotated[
        str | None,
        typer.Option(
            "--average",
            metavar="A,B,...",
            help="Also ask for the mean of these columns of the users' attributes, by users' ratings.",
        ),
    ] = None,
    user_attributes: Annotated[
        str | None,
        typer.Option(
            "--user-attributes",
            metavar="FILE",
            help="Where the columns of --average are, if not in the work.duckdb of --original.",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="VAR=VALUE", help="A var it was published with that its audit does not name."),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            "--hierarchy",
            metavar="COLUMN=FILE",
            help="A hierarchy that a table was anonymized with.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="COLUMN",
            help="Also train models of this column on four fifths of the people, made "
            "anonymous and as they are, and test them on the others. Needs kgather[models].",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    reading: dict[str, Any],
    json_output: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Measure what utility was lost in a release of ratings or of a table of people.

    Runs on the publisher's side, where the original is. All values are about all users at once.
    """
    if user_attributes is not None and average is None:
        msg = "--user-attributes goes with --average, which says what is asked of them."
        raise InputError(msg)
    # Imported where they are needed: it takes seconds, and most commands do not need them.
    if holds_table(release):
        if recommender or naive_bayes or average or assignments:
            msg = (
                "--recommender, --naive-bayes, --average and --set are for releases of ratings. This is the release of "
                "a table."
            )
            raise InputError(msg)
        from kgather._tables.attacking import one_original
        from kgather._tables.metrics import measure_table

        with StageProgress() as progress:
            metrics = measure_table(
                release,
                one_original(original),
                seed=seed,
                hierarchies=pairs("--hierarchy", hierarchy),
                model=model,
                load_options=load_options(reading),
                report=progress.report,
            )
    else:
        if hierarchy or model:
            msg = "--hierarchy and --model go with the release of a table, not of ratings."
            raise InputError(msg)
        from kgather._republishing.of_release import measure_release

        with StageProgress() as progress:
            metrics = measure_release(
                release,
                original,
                seed=seed,
                recommender=recommender,
                classifier=naive_bayes,
                averages=[name.strip() for name in average.split(",")] if average else [],
                user_attributes=user_attributes,
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
