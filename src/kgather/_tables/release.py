"""From a file or table to a release folder: read, anonymize, write, check what was written."""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from kgather import _stopping as stopping
from kgather._errors import DISK_FULL, InputError, KgatherError, PromiseError, StoppedError, quoted
from kgather._loaders import LoadOptions, as_written
from kgather._publishing import disk, pipeline, runs
from kgather._publishing.publish import check_target
from kgather._recoding.hierarchies import lines
from kgather._release.release import AUDIT, DATABASE, REPORT, put_in_place
from kgather._release.rounded import rows as rounded_rows
from kgather._report import render_table
from kgather._settings.table import TableSettings, without_places
from kgather._sql_text import literal
from kgather._tables.audit import TableAudit
from kgather._tables.groups import check_place, read_groups, write_groups
from kgather._tables.run import Report, Warn, anonymize, warnings
from kgather._verify import verify_release
from kgather._verify.noted import not_promised
from kgather._verify.table import DISTRIBUTION, FILE, TABLE, distribution
from kgather._version import __version__

_READ, _GROUPS, _GROUPS_FILE = "kgather_people", "loaded.groups", "groups.parquet"
_POPULATION = "loaded.population"
PEOPLE = "loaded.people"


@dataclass(frozen=True)
class PublishedTable:
    """A finished release of a table: where it is and what its audit found."""

    folder: Path
    audit: TableAudit


def publish_table(
    given: str,
    target: Path,
    settings: TableSettings,
    load_options: LoadOptions,
    *,
    keep_groups: Path | None = None,
    force: bool = False,
    report: Report = lambda *_: None,
    warn: Warn = lambda _: None,
) -> PublishedTable:
    """Anonymize a file, or FILE.duckdb:TABLE, as a release at `target`, or leave nothing there.

    Every column has a role: one that the settings do not name is refused, as nobody said whether it may be shown.
    keep_groups: a file for who looks the same, which is the publisher's alone.
    Raises InputError where table or settings cannot be published, PromiseError where something is not kept.
    """
    target = target.resolve()
    check_target(target, [given], force=force)
    if keep_groups is not None:
        check_place(keep_groups, target, [given], force=force)
    umask = os.umask(0o077)
    try:
        asked = {"table": given, "settings": settings.model_dump(mode="json")}
        with runs.folder_of(target, runs.fingerprint(target, [], asked)) as folder:
            workspace = pipeline.Workspace(folder)
            workspace.clear()
            with workspace.connected() as con:
                read = read_people(con, given, settings, load_options, report)
                held = read_groups(con, settings).model_copy(update={"population": settings.population and _POPULATION})
                audit = anonymize(con, PEOPLE, held, TABLE, groups_into=_GROUPS if keep_groups else None, report=report)
                for warning in warnings(settings, audit):
                    warn(warning)
                finished = _write(con, folder / "release", settings, audit, read)
                if keep_groups is not None:
                    write_groups(con, _GROUPS, folder / _GROUPS_FILE)
            checks = verify_release(finished, settings.k)
            failed = [check for check in checks if not check.passed]
            if failed:
                msg = f"a promise is not kept, no release was written: {failed[0].check}."
                raise PromiseError(msg)
            for file in finished.iterdir():
                file.chmod(0o666 & ~umask)
            finished.chmod(0o777 & ~umask)
            put_in_place(finished, target, replace=force)
            if keep_groups is not None:
                shutil.move(folder / _GROUPS_FILE, keep_groups)
    except KeyboardInterrupt:
        raise StoppedError from None
    except (OSError, duckdb.Error) as error:
        if not disk.is_full(str(error)):
            raise
        msg = f"the disk of {target.parent} is full ({DISK_FULL}), nothing was written. Give another --out."
        raise KgatherError(msg) from None
    finally:
        os.umask(umask)
    return PublishedTable(target, audit)


def read_people(
    con: duckdb.DuckDBPyConnection,
    given: str,
    settings: TableSettings,
    options: LoadOptions,
    report: Report,
    *,
    all_named: bool = True,
) -> dict[str, Any]:
    """Read a file, or FILE.duckdb:TABLE, into the table `loaded.people`; how it was read, for the audit.

    Raises InputError where it cannot be read, or has a column of which the settings do not say what it tells, unless
    all_named is off and nothing is handed out.
    """
    report("load", 0, 1)
    with ExitStack() as stack:
        try:
            table = stack.enter_context(as_written.opened(con, given, options, settings.shown))
            if all_named:
                _refuse_without_role(table.read.names, settings)
            if table.read.set_aside:
                msg = f"{given}: {table.read.set_aside:,} rows cannot be read (first: {table.read.first}). Mend them."
                raise InputError(msg)
            con.execute("create schema if not exists loaded")
            con.execute(f"create or replace table {PEOPLE} as from {table.view(con, _READ, table.read.names)}")
        except duckdb.Error as error:
            msg = f"{given} cannot be read ({type(error).__name__})."
            raise InputError(msg) from None
    if settings.population is not None:
        _read_population(con, settings.population, list(settings.quasi_identifiers), options)
    report("load", 1, 1)
    return {"format": table.read.format, "rows": rounded_rows(table.read.rows)}


def _read_population(con: duckdb.DuckDBPyConnection, given: str, named: Sequence[str], options: LoadOptions) -> None:
    with ExitStack() as stack:
        try:
            table = stack.enter_context(as_written.opened(con, given, options, named))
            if table.read.set_aside:
                msg = f"{given}: {table.read.set_aside:,} rows cannot be read (first: {table.read.first}). Mend them."
                raise InputError(msg)
            con.execute(f"create or replace table {_POPULATION} as from {table.view(con, _READ, table.read.names)}")
        except duckdb.Error as error:
            msg = f"{given} cannot be read ({type(error).__name__})."
            raise InputError(msg) from None


def _refuse_without_role(names: tuple[str, ...], settings: TableSettings) -> None:
    known = {name.lower() for name in [*settings.shown, *settings.identifiers]}
    if settings.unit is not None:
        known.add(settings.unit.lower())
    without = [name for name in names if name.lower() not in known]
    if without:
        msg = (
            f"nobody said what {quoted(without)} tells of people. Name each column with --quasi-identifiers, "
            "--sensitive, --others (shown as it is) or --identifiers (not shown)."
        )
        raise InputError(msg)


def _write(
    con: duckdb.DuckDBPyConnection, folder: Path, settings: TableSettings, audit: TableAudit, read: dict[str, Any]
) -> Path:
    """Write the table anew into fresh files: no dropped row and no statistics come along."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    stopping.note(folder)
    con.execute(f"copy {TABLE} to {literal(folder / FILE)} (format parquet, compression zstd)")
    con.execute(f"attach {literal(folder / DATABASE)} as release")
    con.execute(f"create table release.{TABLE} as from {TABLE}")
    if (shares := distribution(TABLE, settings.model_dump(mode="json"))) is not None:
        con.execute(f'create table release.{DISTRIBUTION} as from ({shares}) order by "column", "rows" desc, "value"')
    con.execute(
        'create table release.kgather__audit ("check" varchar, promised double, measured double, passed boolean)'
    )
    for check in audit.checks:
        con.execute("insert into release.kgather__audit values (?, ?, ?, ?)", list(asdict(check).values()))
    con.execute("checkpoint release")
    con.execute("detach release")
    said: dict[str, Any] = {
        "kgather_version": __version__,
        "kind": "table",
        "passed": audit.passed,
        "read": read,
        "parameters": _parameters(settings),
        "checks": [asdict(check) for check in audit.checks],
        "not_promised": list(not_promised(settings)),
        "report": {**audit.report, "rows": rounded_rows(audit.report.get("rows", 0))},
        "risks": audit.risks,
        "class_sizes": audit.class_sizes,
        "files": {name: _sha256(folder / name) for name in (FILE, DATABASE)},
    }
    (folder / REPORT).write_text(render_table(said), encoding="utf-8")
    said["files"][REPORT] = _sha256(folder / REPORT)  # which the page itself cannot name
    (folder / AUDIT).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    return folder


def _parameters(settings: TableSettings) -> dict[str, Any]:
    """What was asked for. The seed is left out, as is the place of files."""
    said = settings.model_dump(mode="json", exclude={"seed", "threads", "population"}, exclude_defaults=True)
    said["quasi_identifiers"] = without_places(said["quasi_identifiers"])
    for name, column in said.get("sensitive", {}).items():
        if column.get("hierarchy") is not None:  # what is measured in it can be measured again
            column["hierarchy"] = lines(name, column["hierarchy"])
    if settings.within is not None:
        said["within"] = True
    if settings.beside:
        said["beside"] = len(settings.beside)
    return said


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
