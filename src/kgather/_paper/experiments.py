"""All experiments by name, and what is written of them: findings as CSV, curves as SVG."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgather import _stopping as stopping
from kgather._errors import InputError, quoted
from kgather._paper import casino, chang, chen, riyana, sun
from kgather._paper.findings import Finding, judged_together
from kgather._paper.movielens import MovieLens
from kgather._paper.parts import fact_table, parts_table, verdict_table

_COLUMNS = (
    "experiment", "measure", "of", "x", "paper", "measured", "deviation", "chance", "verdict", "shows", "reading",
)  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper that ML-100k can answer."""

    name: str
    source: str
    measured: Callable[[MovieLens], Iterator[Finding]]

    def run(self, data: MovieLens) -> list[Finding]:
        """All lines, those of a curve judged together."""
        return judged_together(self.measured(data))

    @property
    def about(self) -> str:
        """Which part of the paper, and what it is about."""
        return f"{self.source.removesuffix('.')}. {(self.measured.__doc__ or '').strip()}"


EXPERIMENTS = tuple(
    Experiment(run.__name__.replace("_", "-"), source, run)
    for source, runs in (
        ("Chang et al.", (chang.bins, chang.links)),
        ("X. Chen's thesis", (chen.baselines, chen.error_by_k, chen.gathering, chen.levels)),
        ("Riyana and Natwichai", (riyana.example, riyana.generalization, riyana.queries, riyana.speed)),
        ("Casino et al.", (casino.microaggregation, casino.noise, casino.neighbours)),
        ("Sun and Sun", (sun.satisfaction, sun.windows, sun.accuracy)),
    )
    for run in runs
)


def chosen(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of these names, all where there are none. Raises InputError where one does not exist."""
    by_name = {experiment.name: experiment for experiment in EXPERIMENTS}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        msg = f"there is no experiment {quoted(unknown)}. There are: {', '.join(by_name)}."
        raise InputError(msg)
    return tuple(by_name[name] for name in names) if names else EXPERIMENTS


def write(folder: Path, experiment: Experiment, findings: Sequence[Finding]) -> list[Path]:
    """Write findings as NAME.csv and, where they have curves, NAME.svg; return the files."""
    with stopping.whole:
        files = _write(folder, experiment, findings)
        stopping.written(folder, last=False)
    return files


def _write(folder: Path, experiment: Experiment, findings: Sequence[Finding]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"{experiment.name}.csv"
    with table.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(_COLUMNS)
        for found in findings:
            rows.writerow(
                (
                    experiment.name, found.measure, found.of, found.x, found.paper, found.measured, found.deviation,
                    found.chance, found.verdict, found.shows, found.reading,
                )
            )  # fmt: skip
    curves = _curves(findings)
    return [table, _plot(folder / f"{experiment.name}.svg", experiment, curves)] if curves else [table]


def write_tables(folder: Path, found: Mapping[str, tuple[str, Sequence[Finding]]]) -> list[Path]:
    """Write verdicts.md, facts.md and parts.md, the tables of docs/paper.md; found: the paper and the findings, by
    experiment.
    """
    tables = {"verdicts": verdict_table, "facts": fact_table, "parts": parts_table}
    files = [folder / f"{name}.md" for name in tables]
    with stopping.whole:
        folder.mkdir(parents=True, exist_ok=True)
        for file, table in zip(files, tables.values(), strict=True):
            file.write_text(table(found), encoding="utf-8")
    return files


def _curves(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """The findings of each measure that has more than one number over x."""
    curves: dict[str, list[Finding]] = {}
    for found in findings:
        if found.x is not None and not isinstance(found.measured, str):
            curves.setdefault(found.measure, []).append(found)
    return {measure: points for measure, points in curves.items() if len(points) > 1}


def _plot(file: Path, experiment: Experiment, curves: dict[str, list[Finding]]) -> Path:
    """One panel a measure; measures that differ by method only ('DM, k-Member') share one."""
    # Imported here: it takes a while, and most commands do not need it.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels: dict[str, dict[str, list[Finding]]] = {}
    for measure, points in curves.items():
        panel, _, series = measure.partition(", ")
        panels.setdefault(panel if series not in ("%", "thousands") else measure, {})[series or measure] = points
    # The same findings give the same file.
    with rc_context({"svg.hashsalt": experiment.name, "svg.fonttype": "none"}):
        figure = Figure(figsize=(5.2 * min(len(panels), 2), 3.6 * ((len(panels) + 1) // 2)), layout="constrained")
        for place, (panel, lines) in enumerate(panels.items(), start=1):
            axes = figure.add_subplot((len(panels) + 1) // 2, min(len(panels), 2), place)
            for series, points in lines.items():
                x = [point.x or 0.0 for point in points]
                axes.plot(x, [point.measured for point in points], marker="o", markersize=3, label=series)
                printed = [(point.x, point.paper) for point in points if not isinstance(point.paper, str | None)]
                if printed:
                    axes.plot(*zip(*printed, strict=True), "x", color="black", label="paper")
            axes.set(title=panel, xlabel=points[0].of)
            if len(axes.lines) > 1:
                axes.legend(fontsize="small")
        figure.savefig(file, metadata={"Date": None})
    return file
