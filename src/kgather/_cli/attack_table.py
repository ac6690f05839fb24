"""What `kgather attack` says of the release of a table of people."""

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from kgather._cli.console import print_line

if TYPE_CHECKING:
    from kgather._attacks.results import AttackReport, Rate


def print_table(report: "AttackReport") -> None:
    """Print what attackers of a table get: rates of people as a table, all else in sentences."""
    table = Table(box=None, pad_edge=False)
    for title in ("attack", "knows"):
        table.add_column(title, no_wrap=True)
    for title in ("person (95%)", "class", "matched", "wrong", "by chance: person", "original: person", "alone"):
        table.add_column(title, justify="right")
    for result in report.results:
        if result.attack != "linkage":
            continue
        plain = report.same_on_original(result)
        rate = result.user
        table.add_row(
            result.attack,
            result.knowledge,
            "-" if rate is None else f"{rate.value:.2%} ({rate.low:.1%}-{rate.high:.1%})",
            _share(result.group),
            _share(result.matched),
            _share(result.wrong_among_matched),
            f"{result.chance_user:.2%}",
            _share(plain.user if plain else None),
            _share(plain.matched if plain else None),
        )
    if table.row_count:
        Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)
        print_line("")
    for line in _lines(report):
        print_line(line)


def _lines(report: "AttackReport") -> list[str]:
    lines = []
    for result in report.results:
        told = result.details
        if result.attack == "journalist" and result.user is not None:
            among = (
                f"at least {told['least']:,.0f} of {told['population']:,.0f} people look like each row"
                if "population" in told
                else f"estimated, {told['sampling_fraction']:.2%} of the population being in the table"
            )
            beyond = (
                f" In {told['classes_beyond']:.1%} of the classes the table has more people than the population."
                if told.get("classes_beyond")
                else ""
            )
            lines.append(
                f"journalist: a row is picked rightly with a chance of {told['most']:.2%} at most, "
                f"{result.user.value:.2%} on average ({among}).{beyond}"
            )
        elif result.attack == "homogeneity":
            lines.append(
                f"homogeneity, {result.knowledge}: {told['learnt']:.1%} of the rows are in classes of one value, "
                f"{told['confident']:.1%} in classes where one has more than half. The most frequent value of the own "
                f"class is right for {told['read']:.1%}, that of all rows for {told['guessed']:.1%}."
            )
        elif result.attack == "background":
            lines.append(
                f"background, {result.knowledge}: who can rule out one wrong value is more sure than not of "
                f"{told['one_known']:.1%} of the people and certain of {told['one_known_certain']:.1%}; with two, of "
                f"{told['two_known']:.1%} and {told['two_known_certain']:.1%}."
            )
        elif result.attack == "minimality":
            lines.append(
                f"minimality, {result.knowledge}: of about {told['rows']:,.0f} people in merged classes, who knows the "
                f"algorithm names {told['right']:.1%} rightly, who does not {told['right_by_reading']:.1%}; sure of "
                f"more than .95 for at most {told['surer_than_0.95']:,.0f} people, without it for "
                f"{told['surer_than_0.95_by_reading']:,.0f}."
            )
    return lines


def _share(rate: "Rate | None") -> str:
    return "-" if rate is None else f"{rate.value:.1%}"
