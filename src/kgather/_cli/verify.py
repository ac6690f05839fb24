"""`kgather verify`."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from kgather._cli.console import print_checks, print_json
from kgather._cli.reading import load_options, with_reading
from kgather._loaders.as_written import Read
from kgather._verify import verify_named

NOT_ANONYMOUS = 3

_CLASSES = "Classes of rows"
_RATINGS = "Ratings, one row for each pair of user and item"


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def sentence(read: Read) -> str:
    """What was read, for people."""
    aside = f"{read.set_aside:,} set aside (first: {read.first})" if read.set_aside else "none set aside"
    said = [f"read as {read.format}", f"{read.rows:,} rows, {aside}"]
    if read.header is not None:
        said += [f"separator {read.delimiter!r}", f"encoding {read.encoding}", read.header]
    return "; ".join(said) + f". Columns: {', '.join(read.names)}."


@with_reading("user_column", "item_column", "rating_column")
def command(
    *,
    target: Annotated[
        str,
        typer.Argument(metavar="RELEASE|FILE|TABLE", help="A release, a text or Parquet file, or FILE.duckdb:TABLE."),
    ],
    k: Annotated[
        int | None,
        typer.Option(
            "--k", "-k", min=1, metavar="K", help="Rows in the smallest class; of a release: what it promised."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="A,B,...",
            help="The quasi-identifiers; by default all columns but the sensitive ones.",
            rich_help_panel=_CLASSES,
        ),
    ] = None,
    sensitive: Annotated[
        str | None,
        typer.Option("--sensitive", metavar="A,B,...", help="Columns that nobody may infer.", rich_help_panel=_CLASSES),
    ] = None,
    l: Annotated[  # noqa: E741
        float | None,
        typer.Option(
            "--l",
            metavar="L",
            help="Diversity: of sensitive columns; with --sensitive-items the standard deviation; with --b groups.",
            rich_help_panel=_CLASSES,
        ),
    ] = None,
    diversity: Annotated[
        str | None,
        typer.Option(
            "--diversity",
            metavar="KIND",
            help="distinct (default), entropy or recursive.",
            rich_help_panel=_CLASSES,
        ),
    ] = None,
    c: Annotated[
        float | None,
        typer.Option("--c", metavar="C", help="The c of recursive (c, l)-diversity.", rich_help_panel=_CLASSES),
    ] = None,
    t: Annotated[
        float | None,
        typer.Option("--t", metavar="T", help="t-closeness of sensitive columns.", rich_help_panel=_CLASSES),
    ] = None,
    ordered: Annotated[
        bool | None,
        typer.Option(
            "--ordered/--unordered",
            help="Whether sensitive values have an order; by default their type decides.",
            rich_help_panel=_CLASSES,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha", metavar="A", help="The largest share of one sensitive value.", rich_help_panel=_CLASSES
        ),
    ] = None,
    risk_conditions: Annotated[
        int | None,
        typer.Option(
            "--risk-conditions",
            metavar="M",
            help="No condition on up to M columns matches fewer than K rows.",
            rich_help_panel=_CLASSES,
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="NAME",
            help="Names people, who may have several rows: people are counted, not rows.",
            rich_help_panel=_CLASSES,
        ),
    ] = None,
    group_column: Annotated[
        str | None,
        typer.Option("--group-column", metavar="NAME", help="K is that of its groups.", rich_help_panel=_CLASSES),
    ] = None,
    user_column: Annotated[
        str | None, typer.Option("--user-column", metavar="NAME", help="user_id.", rich_help_panel=_RATINGS)
    ] = None,
    item_column: Annotated[
        str | None, typer.Option("--item-column", metavar="NAME", help="item_id.", rich_help_panel=_RATINGS)
    ] = None,
    rating_column: Annotated[
        str | None, typer.Option("--rating-column", metavar="NAME", help="rating.", rich_help_panel=_RATINGS)
    ] = None,
    m: Annotated[
        int | None,
        typer.Option(
            "--m", metavar="M", help="k^m-anonymity: K users share every set of M items.", rich_help_panel=_RATINGS
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="(k, epsilon)-anonymity: K users within E of every user.",
            rich_help_panel=_RATINGS,
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            "--width",
            metavar="R",
            help="How far rated is from not rated; the highest rating.",
            rich_help_panel=_RATINGS,
        ),
    ] = None,
    sensitive_items: Annotated[
        str | None,
        typer.Option(
            "--sensitive-items",
            metavar="A,B,...",
            help="Items whose ratings deviate by --l among users within E.",
            rich_help_panel=_RATINGS,
        ),
    ] = None,
    b: Annotated[
        int | None,
        typer.Option(
            "--b", metavar="B", help="(b, l)-diversity: L groups show every set of B items.", rich_help_panel=_RATINGS
        ),
    ] = None,
    ratings: Annotated[
        str | None,
        typer.Option(
            "--ratings",
            metavar="FILE",
            help="The users' ratings, read as publish does: --b asks for the sets of items in them. Of a release: what "
            "it promised.",
            rich_help_panel=_RATINGS,
        ),
    ] = None,
    types: Annotated[
        bool,
        typer.Option("--types", help="Compare numbers, dates and truth values of a text file, not their texts."),
    ] = False,
    max_rejected_share: Annotated[
        float | None,
        typer.Option("--max-rejected-share", metavar="S", help="Share of rows that may be unreadable, 0 by default."),
    ] = None,
    reading: dict[str, Any],
    json_output: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check privacy models, from nothing but what is given.

    With --k every combination of values of the columns must belong to at least K rows. Null is a value like any other.
    Of a release, all files are checked against each other and for what does not belong there. Exits with 3 where a
    promise is not kept.
    """
    given = {
        "columns": _names(columns),
        "sensitive": _names(sensitive),
        "l": l,
        "diversity": diversity,
        "c": c,
        "t": t,
        "ordered": ordered,
        "alpha": alpha,
        "risk_conditions": risk_conditions,
        "unit": unit,
        "group_column": group_column,
        "user_column": user_column,
        "item_column": item_column,
        "rating_column": rating_column,
        "m": m,
        "epsilon": epsilon,
        "width": width,
        "sensitive_items": _names(sensitive_items),
        "b": b,
    }
    verified = verify_named(
        target,
        k,
        given,
        options=load_options(reading),
        types=types,
        max_rejected_share=max_rejected_share,
        users_ratings=ratings,
    )
    checks = verified.checks
    passed = all(check.passed for check in checks)
    if json_output:
        read = {} if verified.read is None else {"read": asdict(verified.read)}
        print_json({"target": target, "passed": passed, **read, "checks": [vars(check) for check in checks]})
    else:
        print_checks(checks)
        if verified.read is not None:
            print(sentence(verified.read))
    if not passed:
        raise typer.Exit(NOT_ANONYMOUS)
