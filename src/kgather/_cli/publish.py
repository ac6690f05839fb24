"""`kgather publish`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kgather._cli.console import StageProgress, print_checks, print_json, print_line, warn
from kgather._cli.reading import PANEL, load_options, with_reading
from kgather._cli.setting_options import names, with_settings
from kgather._errors import InputError
from kgather._loaders import LoadOptions, seen
from kgather._publishing.asked import NO_COARSER_K, asked_settings
from kgather._publishing.history import Following, k_of, read_removed, with_last
from kgather._publishing.publish import AttributesSource, Published, check_target, look, publish
from kgather._settings.fields import OVER_TIME, RELEASE, USERS
from kgather._settings.publication import PublishSettings

_INPUT = PANEL
_USERS = USERS
_RELEASE = RELEASE
_SPARK = "Spark"
_ENGINES = ("duckdb", "spark")
_NO_K = "--k is missing: users in the smallest group, as --k 10."


@with_reading()
@with_settings
def command(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT...", help="Files of ratings, or FILE.duckdb:TABLE. Their formats are detected."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", "-k", metavar="K", help="Users in the smallest group.", show_default=False)
    ] = None,
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
    history: Annotated[
        Path | None,
        typer.Option(
            "--history",
            metavar="WORK",
            help="What --keep-work kept of the last release of the same people, which this one follows.",
            rich_help_panel=OVER_TIME,
        ),
    ] = None,
    additions: Annotated[
        list[str] | None,
        typer.Option(
            "--additions",
            metavar="FILE",
            help="With --history, instead of INPUT: only the ratings that came since.",
            rich_help_panel=OVER_TIME,
        ),
    ] = None,
    remove: Annotated[
        Path | None,
        typer.Option(
            "--remove",
            metavar="FILE",
            help="With --history, instead of INPUT: users who have left, one id a line.",
            rich_help_panel=OVER_TIME,
        ),
    ] = None,
    within: Annotated[
        Path | None,
        typer.Option(
            "--within",
            metavar="RELEASE",
            help="Instead of INPUT: a finer release, of whose groups those of this K are made; in a chain with "
            "--history, what was kept of it.",
            rich_help_panel=OVER_TIME,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="ENGINE",
            help="duckdb: on this machine. spark: on a cluster; inputs are Parquet or tables that Spark knows.",
            rich_help_panel=_SPARK,
        ),
    ] = "duckdb",
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="With --engine spark: where Spark runs, as 'local[4]' (default: as Spark is configured).",
            rich_help_panel=_SPARK,
        ),
    ] = None,
    secret_map: Annotated[
        str | None,
        typer.Option(
            "--secret-map",
            metavar="PATH",
            help="With --engine spark: where Spark writes the SECRET map from user to group, as Parquet.",
            rich_help_panel=_SPARK,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="PATH",
            help="With --engine spark: where Spark keeps finished stages, all SECRET, until the release is there.",
            rich_help_panel=_SPARK,
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
    if engine == "spark":
        _refuse_on_spark(
            {
                "--attributes-user-column": attributes_user_column,
                "--attributes-delimiter": attributes_delimiter,
                "--attributes-header": attributes_header,
                "--sweep": sweep,
                "--keep-work": keep_work,
                "--history": history,
                "--additions": additions,
                "--remove": remove,
                "--within": within,
                "--dry-run": dry_run or None,
            }
        )
        if k is None:
            raise InputError(_NO_K)
        known = None if user_attributes is None else AttributesSource(user_attributes)
        asked = asked_settings({"k": k, **settings}, options, known, assignments or [])
        published = _on_spark(
            inputs or [], user_attributes, out, asked, options, force, noise_key, master, secret_map, checkpoint
        )
        _show(published, json_output=json_output)
        return
    if engine not in _ENGINES or any(each is not None for each in (master, secret_map, checkpoint)):
        msg = f"--engine is {' or '.join(_ENGINES)}; --master, --secret-map and --checkpoint go with --engine spark."
        raise InputError(msg)
    attributes = (
        None
        if user_attributes is None
        else AttributesSource(user_attributes, attributes_user_column, attributes_delimiter, attributes_header)
    )
    if within is not None:
        _refuse_with_within(
            inputs, additions, remove, keep_work, noise_key, user_attributes, artifact_columns, sweep, dry_run or None
        )
        if k is None:
            raise InputError(NO_COARSER_K)
        given = asked_settings({"k": k, **settings}, options, attributes, assignments or [])
        _publish_within(within, out, given, history, force=force, json_output=json_output)
        return
    inputs, following = _following(inputs or [], history, additions or [], remove)
    if k is None and following is None:
        raise InputError(_NO_K)
    asked = asked_settings(
        {"k": k if k is not None or following is None else k_of(following), **settings},
        options, attributes, assignments or [],
    )  # fmt: skip
    if following is not None:
        asked = with_last(following, asked)
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
            following=following,
            report=progress.report,
            warn=warn,
        )
    _show(published, json_output=json_output)


def _show(published: Published, *, json_output: bool) -> None:
    if json_output:
        print_json({"release": str(published.folder), **published.audit.as_dict()})
    else:
        _print(published)


def _refuse_with_within(*given: object) -> None:
    if any(given):
        msg = "--within makes a release of a finer one alone: give --k, --history and --out, and no input."
        raise InputError(msg)


def _publish_within(
    within: Path, out: Path, asked: PublishSettings, history: Path | None, *, force: bool, json_output: bool
) -> None:
    from kgather._publishing.coarser import publish_within  # the kernels take seconds to load

    audit = publish_within(within, out, asked, history=history, force=force)
    if json_output:
        print_json({"release": str(out), **audit.as_dict()})
        return
    print_checks(audit.checks)
    print_line(f"\n{audit.counts['members']:,} users in {audit.counts['groups']:,} groups.")
    print_line(f"Release: {out}")


def _refuse_on_spark(given: Mapping[str, Any]) -> None:
    named = [option for option, value in given.items() if value is not None]
    if named:
        msg = f"the engine spark does not have {', '.join(named)}. Leave it out, or publish with the engine duckdb."
        raise InputError(msg)


def _on_spark(
    inputs: list[str],
    user_attributes: str | None,
    out: Path,
    asked: PublishSettings,
    options: LoadOptions,
    force: bool,
    noise_key: Path | None,
    master: str | None,
    secret_map: str | None,
    checkpoint: str | None,
) -> Published:
    from kgather._spark import needs, session

    # Before Spark starts, which takes seconds.
    needs.refuse(asked, options)
    check_target(out.resolve(), [], force=force)
    with session.started(master) as spark, StageProgress() as progress:
        from kgather._spark.publish import publish as run  # the kernels take seconds to load

        ratings = session.read(spark, inputs)
        return run(
            ratings,
            out,
            asked,
            options,
            user_attributes=None if user_attributes is None else session.read(spark, [user_attributes]),
            items=None if options.items is None else session.read(spark, [options.items]),
            force=force,
            noise_key=noise_key,
            secret_map=secret_map,
            checkpoint=checkpoint,
            report=progress.report,
            warn=warn,
        )


def _following(
    inputs: list[str], history: Path | None, additions: list[str], remove: Path | None
) -> tuple[list[str], Following | None]:
    """The files to read, and what the release follows. Raises InputError where the options do not go together."""
    if history is None:
        if additions or remove is not None:
            msg = "--additions and --remove go with --history, which says what they change."
            raise InputError(msg)
        if not inputs:
            msg = "no input was named. Give at least one file."
            raise InputError(msg)
        return inputs, None
    if bool(inputs) == bool(additions or remove is not None):
        msg = "--history goes with INPUT, everybody's ratings of today, or with --additions and --remove: give one."
        raise InputError(msg)
    if inputs:
        return inputs, Following(history)
    removed = () if remove is None else read_removed(remove)
    return additions, Following(history, additions=True, removed=removed)


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
