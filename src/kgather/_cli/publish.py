"""`kgather publish`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kgather._cli import reading
from kgather._cli.console import StageProgress, print_checks, print_json, print_line, warn
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing.publish import LOADED_ATTRIBUTES, AttributesSource, Published, publish
from kgather._settings.publication import PublishSettings
from kgather._settings.validation import validated

_INPUT = reading.PANEL
_USERS = "What is known of users"
_GROUPS = "Gathering"
_RELEASE = "The release"


def command(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Files of ratings, or FILE.duckdb:TABLE. Their formats are detected."),
    ],
    k: Annotated[int, typer.Option("--k", "-k", metavar="K", help="Users in the smallest group.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the release goes: a new or empty folder.")
    ] = Path("release"),
    format: reading.Format = None,
    delimiter: reading.Delimiter = None,
    encoding: reading.Encoding = None,
    user_column: reading.UserColumn = None,
    item_column: reading.ItemColumn = None,
    rating_column: reading.RatingColumn = None,
    time_column: reading.TimeColumn = None,
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale",
            metavar="MIN,MAX[,STEP]",
            help="The ratings' scale; inferred if not given. Ratings off it are rejected.",
            rich_help_panel=_INPUT,
        ),
    ] = None,
    not_rated: Annotated[
        float | None,
        typer.Option("--not-rated", metavar="VALUE", help="A value that means 'not rated'.", rich_help_panel=_INPUT),
    ] = None,
    min_ratings: Annotated[
        int | None,
        typer.Option("--min-ratings", metavar="N", help="Set users with fewer aside.", rich_help_panel=_INPUT),
    ] = None,
    max_rejected_share: Annotated[
        float | None,
        typer.Option(
            "--max-rejected-share",
            metavar="SHARE",
            help="More rejected rows than this fail the run (default 0.01).",
            rich_help_panel=_INPUT,
        ),
    ] = None,
    artifact_columns: Annotated[
        str | None,
        typer.Option(
            "--artifact-columns",
            metavar="A,B,...",
            help="The input is a wide table: one row a user, these columns hold ratings; '*': all numbers.",
            rich_help_panel=_INPUT,
        ),
    ] = None,
    user_attributes: Annotated[
        str | None,
        typer.Option(
            "--user-attributes",
            metavar="FILE|TABLE",
            help="One row a user: levels, personal and sensitive attributes.",
            rich_help_panel=_USERS,
        ),
    ] = None,
    attributes_user_column: Annotated[
        str | None,
        typer.Option("--attributes-user-column", metavar="NAME", help="Or its place, from 1.", rich_help_panel=_USERS),
    ] = None,
    attributes_delimiter: Annotated[
        str | None, typer.Option("--attributes-delimiter", help="What separates fields.", rich_help_panel=_USERS)
    ] = None,
    attributes_header: Annotated[
        bool | None,
        typer.Option(
            "--attributes-header/--no-attributes-header",
            help="Whether the first line names the columns.",
            rich_help_panel=_USERS,
        ),
    ] = None,
    level_column: Annotated[
        str | None,
        typer.Option(
            "--level-column",
            metavar="NAME",
            help="The size of group each user asks for (bokg, customized).",
            rich_help_panel=_USERS,
        ),
    ] = None,
    personal_columns: Annotated[
        str | None,
        typer.Option(
            "--personal-columns",
            metavar="A,B,...",
            help="Shown as they are beside the generalized artifacts.",
            rich_help_panel=_USERS,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="How users are gathered: bkg (default), bokg, customized, bounded_t_means, mdav, k_likeness, "
            "k_member, mondrian or epsilon; gaussian_noise for comparison.",
            rich_help_panel=_GROUPS,
        ),
    ] = None,
    rank: Annotated[
        int | None, typer.Option("--rank", help="Factors of a preference (default 3).", rich_help_panel=_GROUPS)
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help="What users are compared in: prediction (default), preference or filled.",
            rich_help_panel=_GROUPS,
        ),
    ] = None,
    refine: Annotated[
        bool | None,
        typer.Option(
            "--refine/--no-refine",
            help="Lower the loss of the groups (default: if it pays).",
            rich_help_panel=_GROUPS,
        ),
    ] = None,
    artifacts: Annotated[
        str | None,
        typer.Option(
            "--artifacts",
            metavar="N|A,B,...",
            help="Columns of the artifact table: the N most rated items (default 10), or these.",
            rich_help_panel=_GROUPS,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            help="How far ratings of an item may differ in a group (default 1).",
            rich_help_panel=_GROUPS,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", help="Same input, seed and version: the same groups (default 0).", rich_help_panel=_GROUPS
        ),
    ] = None,
    homogenize: Annotated[
        str | None,
        typer.Option(
            "--homogenize",
            help="auto (default: predicted, or what goes with the method), predicted, padded, pure, microaggregated, "
            "interval, noise or none.",
            rich_help_panel=_RELEASE,
        ),
    ] = None,
    generalize: Annotated[
        str | None,
        typer.Option(
            "--generalize",
            help="The generalized artifact table: auto (default: by the method), ndgh, dgh or none.",
            rich_help_panel=_RELEASE,
        ),
    ] = None,
    not_anonymous: Annotated[
        bool,
        typer.Option(
            "--i-know-this-is-not-anonymous",
            help="Asked for by gaussian_noise, which gives no k-anonymity.",
            rich_help_panel=_RELEASE,
        ),
    ] = False,
    cells: Annotated[
        str | None,
        typer.Option(
            "--cells",
            help="all (default), rated, 'top N', 'best N', 'popular N' or low_rank.",
            rich_help_panel=_RELEASE,
        ),
    ] = None,
    single_rater: Annotated[
        str | None,
        typer.Option(
            "--single-rater",
            help="With pure, a cell with one rater: pad (default), drop or keep.",
            rich_help_panel=_RELEASE,
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            metavar="K,K,...",
            help="Show in the report what these sizes of group would cost and give away.",
            rich_help_panel=_RELEASE,
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="VAR=VALUE", help="Set any var of the dbt project.", rich_help_panel=_RELEASE),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at DIR.")] = False,
    keep_work: Annotated[
        Path | None,
        typer.Option(
            "--keep-work",
            metavar="DIR",
            help="Keep the working database, with the SECRET map from user to group, as DIR/work.duckdb.",
        ),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the audit as JSON.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what dbt says. It may quote data.")] = False,
) -> None:
    """Publish ratings as a release that anyone may have.

    Reads files of ratings, gathers users into groups of at least K who look the same, and writes a folder with
    groups.parquet, members.parquet, what each group is shown to think (ratings.parquet, or what goes with the method),
    release.duckdb and audit.json. Nothing is written unless every check of the audit passes.
    """
    settings = PublishSettings.from_options(
        {
            "k": k,
            # A wide table brings its users' attributes with it.
            "user_attributes": LOADED_ATTRIBUTES if user_attributes or artifact_columns else None,
            "level_column": level_column,
            "personal_columns": _names(personal_columns),
            "method": method,
            "rank": rank,
            "metric": metric,
            "refine": refine,
            "artifacts": _artifacts(artifacts),
            "epsilon": epsilon,
            "seed": seed,
            "homogenize": homogenize,
            "generalize": generalize,
            "i_know_this_is_not_anonymous": not_anonymous,
            "cells": cells,
            "single_rater": single_rater,
            "scale": _numbers(scale),
            "not_rated": not_rated,
            "min_ratings": min_ratings,
            "max_rejected_share": max_rejected_share,
        },
        assignments or [],
    )
    load_options = validated(
        LoadOptions,
        {
            "format": format,
            "delimiter": delimiter,
            "encoding": encoding,
            "user_column": user_column,
            "item_column": item_column,
            "rating_column": rating_column,
            "time_column": time_column,
            "artifact_columns": _names(artifact_columns),
        },
    )
    from kgather._republishing.sweep import other_sizes  # the kernels take seconds to load

    with StageProgress() as progress:
        published = publish(
            inputs,
            out,
            settings,
            load_options,
            user_attributes=None
            if user_attributes is None
            else AttributesSource(user_attributes, attributes_user_column, attributes_delimiter, attributes_header),
            other_sizes=other_sizes(_sizes(sweep)),
            force=force,
            keep_work=keep_work,
            verbose=verbose,
            report=progress.report,
            warn=warn,
        )
    if json_output:
        print_json({"release": str(published.folder), **published.audit.as_dict()})
    else:
        _print(published)


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def _sizes(listed: str | None) -> list[int]:
    names = _names(listed) or []
    if not all(name.isdigit() and int(name) > 0 for name in names):
        msg = f"--sweep takes sizes of group, as 2,5,10,20, not {listed!r}."
        raise InputError(msg)
    return [int(name) for name in names]


def _artifacts(artifacts: str | None) -> int | list[str] | None:
    return int(artifacts) if artifacts is not None and artifacts.strip().isdigit() else _names(artifacts)


def _numbers(scale: str | None) -> tuple[float, ...] | None:
    if scale is None:
        return None
    try:
        numbers = tuple(float(part) for part in scale.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 3):
        msg = f"--scale takes MIN,MAX or MIN,MAX,STEP, not {scale!r}."
        raise InputError(msg)
    return numbers


def _print(published: Published) -> None:
    counts: dict[str, Any] = dict(published.audit.counts)
    print_checks(published.audit.checks)
    print_line(
        f"\n{counts['members']:,} users in {counts['groups']:,} groups, {counts['items']:,} items, "
        f"{counts['staged_rows']:,} ratings ({counts['rejected_rows']:,} rows rejected)."
    )
    for reason, rows in counts["rejected_by_reason"].items():
        print_line(f"  {rows:,} rejected: {reason}")
    print_line(f"Release: {published.folder}")
    if published.work_database:
        print_line(f"Working database, SECRET: {published.work_database}")
