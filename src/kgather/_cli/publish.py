"""`kgather publish`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kgather._cli.console import StageProgress, print_checks, print_json, print_line, warn
from kgather._cli.reading import PANEL, load_options, with_reading
from kgather._cli.setting_options import names, with_settings
from kgather._errors import InputError
from kgather._loaders import seen
from kgather._publishing.asked import asked_settings
from kgather._publishing.publish import AttributesSource, Published, look, publish
from kgather._settings.fields import RELEASE, USERS

_INPUT = PANEL
_USERS = USERS
_RELEASE = RELEASE


@with_reading()
@with_settings
def command(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Files of ratings, or FILE.duckdb:TABLE. Their formats are detected."),
    ],
    k: Annotated[int, typer.Option("--k", "-k", metavar="K", help="Users in the smallest group.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the release goes: a new or empty folder.")
    ] = Path("release"),
    reading: dict[str, Any],
    settings: dict[str, Any],
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
    noise_key: Annotated[
        Path | None,
        typer.Option(
            "--noise-key",
            metavar="FILE",
            help="The SECRET key of the noise in items, made if missing (default: in your state folder).",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only read the input, say what was read, and write nothing.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the audit as JSON.")] = False,
) -> None:
    """Publish ratings as a release that anyone may have.

    Reads files of ratings, gathers users into groups of at least K who look the same, and writes a folder with
    groups.parquet, members.parquet, what each group is shown to think (ratings.parquet, or what goes with the method),
    release.duckdb and audit.json. Nothing is written unless every check of the audit passes.
    """
    options = load_options(reading, artifact_columns=names(artifact_columns))
    attributes = (
        None
        if user_attributes is None
        else AttributesSource(user_attributes, attributes_user_column, attributes_delimiter, attributes_header)
    )
    asked = asked_settings({"k": k, **settings}, options, attributes, assignments or [])
    if dry_run:
        read = look(inputs, asked, options, user_attributes=attributes, warn=warn)
        _print_read(read, json_output=json_output)
        return
    from kgather._republishing.sweep import other_sizes  # the kernels take seconds to load

    with StageProgress() as progress:
        published = publish(
            inputs,
            out,
            asked,
            options,
            user_attributes=attributes,
            other_sizes=other_sizes(_sizes(sweep)),
            force=force,
            keep_work=keep_work,
            noise_key=noise_key,
            report=progress.report,
            warn=warn,
        )
    if json_output:
        print_json({"release": str(published.folder), **published.audit.as_dict()})
    else:
        _print(published)


def _print_read(read: Mapping[str, Any], *, json_output: bool) -> None:
    if json_output:
        print_json({"read": read})
        return
    for line in seen.sentences(read):
        print_line(line)
    print_line("Nothing was published.")


def _sizes(listed: str | None) -> list[int]:
    sizes = names(listed) or []
    if not all(size.isdigit() and int(size) > 0 for size in sizes):
        msg = f"--sweep takes sizes of group, as 2,5,10,20, not {listed!r}."
        raise InputError(msg)
    return [int(size) for size in sizes]


def _print(published: Published) -> None:
    counts: dict[str, Any] = dict(published.audit.counts)
    print_checks(published.audit.checks)
    print_line(
        f"\n{counts['members']:,} users in {counts['groups']:,} groups, {counts['items']:,} items, "
        f"{counts['staged_rows']:,} ratings ({counts['rejected_rows']:,} rows rejected)."
    )
    for line in seen.sentences(published.audit.read or {}):
        print_line(f"  {line}")
    print_line(f"Release: {published.folder}")
    if published.work_database:
        print_line(f"Working database, SECRET: {published.work_database}")
