"""`kgather anonymize`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kgather._cli.console import StageProgress, print_checks, print_json, print_line, warn
from kgather._cli.reading import load_options, with_reading
from kgather._cli.setting_options import mapping_of_file, names, pairs
from kgather._errors import InputError
from kgather._settings.table import table_settings

_COLUMNS = "What columns tell of people"
_GENERALIZE = "How they are generalized"
_PEOPLE = "People with several rows, or in several tables"
_PROMISE = "What is promised of sensitive columns"


@with_reading(
    "format", "fields", "missing", "words", "no_rating", "items", "user_column", "item_column", "rating_column",
    "time_column",
)  # fmt: skip
def command(
    *,
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A text or Parquet file, or FILE.duckdb:TABLE: one row a person.")
    ],
    k: Annotated[
        int | None, typer.Option("--k", "-k", min=1, metavar="K", help="Rows that look the same, at least.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the release goes: a new or empty folder.")
    ] = Path("release"),
    quasi_identifiers: Annotated[
        str | None,
        typer.Option(
            "--quasi-identifiers",
            metavar="A,B,...",
            help="Columns by which a person may be known; they are generalized.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    sensitive: Annotated[
        str | None,
        typer.Option(
            "--sensitive",
            metavar="A,B,...",
            help="Columns that nobody should learn of a person; shown as they are.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(
            "--others",
            metavar="A,B,...",
            help="Columns that nobody knows of a person and that tell nothing; shown as they are.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    identifiers: Annotated[
        str | None,
        typer.Option("--identifiers", metavar="A,B,...", help="Columns that are left out.", rich_help_panel=_COLUMNS),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="COLUMN",
            help="The column that names people; it is not shown. A person with several rows is refused, unless "
            "--rows-per-person or --aggregate says what becomes of them.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    pseudonym: Annotated[
        str | None,
        typer.Option(
            "--pseudonym",
            metavar="NAME",
            help="Add a column of random pseudonyms by this name.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    rows_per_person: Annotated[
        int | None,
        typer.Option(
            "--rows-per-person",
            min=1,
            metavar="N",
            help="A person has so many rows at most, further ones are left out; K counts people then.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None,
    aggregate: Annotated[
        list[str] | None,
        typer.Option(
            "--aggregate",
            metavar="COLUMN=HOW",
            help="One row is made of all rows of a person: same (the default), min, max, sum, mean, median, mode or "
            "count of a column.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="FILE",
            help="Groups of people (the column of --unit, group_id) who look the same in every table made within them.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--beside",
            metavar="FILE",
            help="Groups of another table of the same people, to measure the smallest intersection.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None,
    keep_groups: Annotated[
        Path | None,
        typer.Option(
            "--keep-groups",
            metavar="FILE",
            help="Write who looks the same to a Parquet file of your own: for --within and --beside, never for others.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            "--hierarchy",
            metavar="COLUMN=FILE",
            help="The hierarchy of a column: a CSV file as ARX writes it, or YAML.",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            metavar="COLUMN=STEP",
            help="The step between the cuts of a number, or day, week, month, quarter, year or decade.",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix", metavar="A,B,...", help="Columns shown by their first characters.", rich_help_panel=_GENERALIZE
        ),
    ] = None,
    mask: Annotated[
        list[str] | None,
        typer.Option(
            "--mask",
            metavar="COLUMN=MASK,MASK,...",
            help="What is shown of a text, from fine to coarse; a star hides a character: plate=###-**,#*****.",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            "--show",
            metavar="COLUMN=WHAT",
            help="What a cell shows: range, tight, label, set, mean or median.",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN=N",
            help="The fewest characters of a prefix that are shown.",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    widest: Annotated[
        list[str] | None,
        typer.Option(
            "--widest",
            metavar="COLUMN=WIDTH",
            help="The widest range (of a date in days, of a time in minutes).",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="COLUMN=WEIGHT",
            help="What a column counts for when classes are made (default 1).",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="mondrian (default, fast), cluster (least loss), mdav (numbers) or lattice (one level a column).",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    relaxed: Annotated[
        bool,
        typer.Option("--relaxed", help="mondrian cuts between equal rows, too.", rich_help_panel=_GENERALIZE),
    ] = False,
    suppress: Annotated[
        float | None,
        typer.Option(
            "--suppress",
            metavar="SHARE",
            help="Share of rows that may show nothing, where ranges may not be wide enough (default 0).",
            rich_help_panel=_GENERALIZE,
        ),
    ] = None,
    l: Annotated[  # noqa: E741
        float | None, typer.Option("--l", metavar="L", help="l-diversity.", rich_help_panel=_PROMISE)
    ] = None,
    diversity: Annotated[
        str | None,
        typer.Option("--diversity", help="entropy (default), distinct or recursive.", rich_help_panel=_PROMISE),
    ] = None,
    c: Annotated[
        float | None,
        typer.Option("--c", metavar="C", help="The c of recursive (c, l)-diversity.", rich_help_panel=_PROMISE),
    ] = None,
    t: Annotated[
        float | None, typer.Option("--t", metavar="T", help="t-closeness, 0 to 1.", rich_help_panel=_PROMISE)
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", metavar="A", help="The largest share of one value.", rich_help_panel=_PROMISE),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(
            "--population",
            metavar="TABLE",
            help="A table of the population that the people are of, with the quasi-identifiers.",
            rich_help_panel=_PROMISE,
        ),
    ] = None,
    k_map: Annotated[
        int | None,
        typer.Option(
            "--k-map", min=1, metavar="K", help="People of the population that match a class.", rich_help_panel=_PROMISE
        ),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option(
            "--sampling-fraction",
            metavar="SHARE",
            help="The share of a population that is in the table: estimates how many of it look like a row.",
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="A YAML file with all settings; options are added to it."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The same seed gives the same classes.")] = None,
    reading: dict[str, Any],
    force: Annotated[bool, typer.Option("--force", help="Replace what is at DIR.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the audit as JSON.")] = False,
) -> None:
    """Anonymize a table of people as a release that anyone may have.

    Every combination of what the release shows of the quasi-identifiers belongs to at least K people. Each column needs
    a role. Writes a folder with table.parquet, release.duckdb and audit.json; nothing is written unless every check of
    the audit passes.
    """
    given = {} if settings is None else mapping_of_file("--settings", settings)
    quasi = {name: {} for name in names(quasi_identifiers) or []} | as_mapping(given.pop("quasi_identifiers", {}))
    of_columns = {
        "hierarchy": hierarchy, "step": step, "mask": mask, "show": show, "keep": keep, "widest": widest,
        "weight": weight,
    }  # fmt: skip
    for key, said_of in of_columns.items():
        for name, value in _pairs(f"--{key}", said_of, quasi).items():
            quasi[name] = {**quasi[name], key: _READ.get(key, str)(value)}
    for name in names(prefix) or []:
        if name not in quasi:
            msg = f"--prefix names {name}, which is no quasi-identifier."
            raise InputError(msg)
        quasi[name] = {**quasi[name], "kind": "prefix"}
    said = {
        "k": k,
        "sensitive": names(sensitive),
        "others": names(others),
        "identifiers": names(identifiers),
        "unit": unit,
        "pseudonym": pseudonym,
        "rows_per_person": rows_per_person,
        "aggregate": _aggregate(aggregate),
        "within": within,
        "beside": beside or None,
        "method": method,
        "relaxed": relaxed or None,
        "suppress": suppress,
        "l": l,
        "diversity": diversity,
        "c": c,
        "t": t,
        "alpha": alpha,
        "population": population,
        "k_map": k_map,
        "sampling_fraction": sampling_fraction,
        "seed": seed,
    }
    asked = table_settings(
        {**given, **{name: value for name, value in said.items() if value is not None}, "quasi_identifiers": quasi}
    )
    from kgather._tables.release import publish_table  # the kernels take seconds to load

    with StageProgress() as progress:
        published = publish_table(
            table,
            out,
            asked,
            load_options(reading),
            keep_groups=keep_groups,
            force=force,
            report=progress.report,
            warn=warn,
        )
    audit = published.audit
    if json_output:
        print_json(
            {
                "release": str(published.folder),
                "passed": audit.passed,
                "checks": [asdict(check) for check in audit.checks],
                "report": audit.report,
                "risks": audit.risks,
            }
        )
        return
    print_checks(audit.checks)
    print_line(
        f"\n{audit.report['rows']:,} rows in {audit.report['classes']:,} classes; loss (NCP) {audit.report['loss']:g}, "
        f"0 for a table as it is, 1 for one that tells nothing; {audit.report['suppressed']:,} rows suppressed."
    )
    for name, told in audit.report["columns"].items():
        print_line(f"  {name}: {told['read']}; loss {told['loss']:g}")
    print_line(f"Release: {published.folder}")


def _aggregate(given: Sequence[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    found = dict(each.partition("=")[::2] for each in given)
    if not all(found.values()):
        msg = "--aggregate takes COLUMN=HOW, as amount=sum."
        raise InputError(msg)
    return found


def as_mapping(given: Any) -> dict[str, Any]:
    """Names of columns, or a mapping of what is said of each, as a mapping."""
    if isinstance(given, list):
        return {str(name): {} for name in given}
    return {str(name): said or {} for name, said in (given or {}).items()} if isinstance(given, dict | None) else {}


def _pairs(option: str, given: Sequence[str] | None, known: dict[str, Any]) -> dict[str, str]:
    found = pairs(option, given)
    for name in found:
        if name not in known:
            msg = f"{option} names {name}, which is no quasi-identifier."
            raise InputError(msg)
    return found


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _whole(value: str) -> int | str:
    return int(value) if value.isdecimal() else value


_READ: Mapping[str, Callable[[str], Any]] = {
    "step": _number, "mask": lambda value: value.split(","), "keep": _whole, "widest": _number, "weight": _number,
}  # fmt: skip
