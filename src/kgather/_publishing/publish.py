"""From files of ratings to a release: load, run the dbt project, write what it built."""

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from kgather import _stopping as stopping
from kgather._errors import InputError, KgatherError, PromiseError, StoppedError, quoted
from kgather._evaluation.named import described
from kgather._loaders import LoadOptions, LoadReport, UserAttributesReport, load, load_user_attributes, seen, sources
from kgather._loaders.fetched import fetched
from kgather._methods import built_in
from kgather._publishing import disk, history, pipeline, runs
from kgather._publishing.early import LOADED_ITEMS, reason_not_to_use, refuse_early, seen_early
from kgather._publishing.history import Following
from kgather._publishing.kept_key import kept_key, put_key
from kgather._release.release import Audit, Check, put_in_place, write_release
from kgather._settings.personal import recoding
from kgather._settings.project import TAKES_OVER
from kgather._settings.publication import PublishSettings
from kgather._settings.table import without_places
from kgather._sql_text import identifier
from kgather._verify import promised_size, verify_release
from kgather._verify.models import K_ANONYMITY

LOADED = "kgather_loaded"
LOADED_ATTRIBUTES = "kgather_loaded_attributes"
ABSENCES = ("user waits for more newcomers", "user is of a group that was withdrawn", "user had left and stays away")
"""Why ratings of people are set aside who are in no release: the macro `reasons_of_absence`."""
_FITTED = ("artifacts", "cells", "items_confirmed", "items")  # settings that the input may change

Report = Callable[[str, int, int], None]
Warn = Callable[[str], None]


@dataclass(frozen=True)
class AttributesSource:
    """Where users' attributes are read from; None where it is seen from the content."""

    source: str
    user_column: str | None = None
    delimiter: str | None = None
    header: bool | None = None


@dataclass(frozen=True)
class OtherSizes:
    """Other sizes of group to try for the report, and what tries them: it publishes, so it is handed in."""

    ks: tuple[int, ...]
    measure: Callable[[Sequence[str], PublishSettings, LoadOptions, Report], list[dict[str, Any]]]


@dataclass(frozen=True)
class Published:
    """A finished release: where it is and what its audit found."""

    folder: Path
    audit: Audit
    work_database: Path | None


def publish(
    inputs: Sequence[str],
    target: Path,
    settings: PublishSettings,
    load_options: LoadOptions,
    *,
    user_attributes: AttributesSource | None = None,
    other_sizes: OtherSizes | None = None,
    force: bool = False,
    keep_work: Path | None = None,
    noise_key: Path | None = None,
    following: Following | None = None,
    verbose: bool = False,
    report: Report = lambda *_: None,
    warn: Warn = lambda _: None,
) -> Published:
    """Publish ratings as a release at `target`, or leave nothing there.

    With `user_attributes`, as with a wide table, the setting of that name is `LOADED_ATTRIBUTES`.
    With `other_sizes` the report also says what these sizes of group would cost and give away.
    `report` hears (step, done, total), `warn` what the user should know. With `keep_work` the working database,
    which holds the secret map, stays in that folder, readable by its owner only. `noise_key`: the file with the key of
    the noise, made if there is none; None: in the user's folder for state. `following`: the last release of the same
    people, which this one follows; its settings are `history.with_last`, and its working database goes beside the last
    one if `keep_work` says nothing else.

    A run that was killed is taken up by the next one of the same input, settings and version: what it had finished is
    not done again.

    Raises InputError where input or settings cannot be published, PromiseError where a check of the audit failed.
    """
    target = target.resolve()
    check_target(target, inputs, force=force)
    if user_attributes is not None and load_options.artifact_columns:
        msg = "a wide table brings its users' attributes with it. Leave --user-attributes out."
        raise InputError(msg)
    if keep_work is not None:
        keep_work = keep_work.resolve()
        _check_keep_work(keep_work, target, force=force)
    if noise_key is not None and target in noise_key.resolve().parents:
        msg = f"{noise_key} lies in the release: the key of the noise would go out with it. Give another --noise-key."
        raise InputError(msg)
    key = history.key_of(following) if following is not None and noise_key is None else kept_key(noise_key, warn)
    for warning in warnings_of(settings):
        warn(warning)
    with (
        in_private(target) as umask,
        fetched(inputs) as inputs,
        runs.folder_of(
            target, _fingerprint(target, inputs, user_attributes, settings, load_options, other_sizes, following)
        ) as folder,
    ):
        workspace = pipeline.Workspace(folder)
        settings, loaded = _load(workspace, inputs, user_attributes, settings, load_options, following, report, warn)
        # Imported here: it brings the kernels, which take seconds to load, and what cannot be published is refused.
        from kgather._steps import compiling

        with compiling.ahead(wanted=settings.refines):
            _build(workspace, settings, loaded, key, following, verbose=verbose, report=report)
            audit = audit_of(workspace, settings, seen.inputs(loaded, sources.find_all(inputs)))
            if audit.passed:
                report("attack", 0, 1)
                attacks = runs.once(folder / "attacked.json", lambda: _attacked(workspace, audit))
                report("attack", 1, 1)
                sweep = _swept(folder, inputs, settings, load_options, other_sizes, report)
                audit = replace(audit, attacks=attacks, sweep=sweep)
        report("write", 0, 1)
        finished = write(workspace, settings, audit, key, umask)

        def put() -> None:
            put_in_place(finished, target, replace=force)

        kept = None
        if following is not None:
            kept = history.hand_on(workspace.work_database, keep_work or following.folder, put)
        else:
            kept = _keep(workspace, keep_work) if keep_work is not None else None
            put()
        report("write", 1, 1)
    return Published(target, audit, kept)


@contextmanager
def in_private(target: Path) -> Iterator[int]:
    """Work whose files nobody else may read. Gives the umask that finished files go out with.

    Raises StoppedError where it is interrupted, and KgatherError where the disk is full.
    """
    umask = os.umask(0o077)
    try:
        yield umask
    except KeyboardInterrupt:
        raise StoppedError from None
    except (OSError, duckdb.Error) as error:
        if not disk.is_full(str(error)):
            raise
        msg = f"the disk of {target.parent} is full, nothing was written. Free some space or give another --out."
        raise KgatherError(msg) from None
    finally:
        os.umask(umask)


def look(
    inputs: Sequence[str],
    settings: PublishSettings,
    load_options: LoadOptions,
    *,
    user_attributes: AttributesSource | None = None,
    warn: Warn = lambda _: None,
) -> dict[str, Any]:
    """Read the input as `publish` would, refuse what it would refuse as soon as it is read, and say what was read.

    Nothing is published, and nothing is left behind. Raises InputError as `publish` does.
    """
    umask = os.umask(0o077)
    try:
        with fetched(inputs) as files, tempfile.TemporaryDirectory(prefix="kgather-look-") as folder:
            workspace = pipeline.Workspace(Path(folder))
            found = sources.find_all(files)
            disk.check(workspace.folder, found)
            fitted, loaded, warnings = _read(workspace, files, user_attributes, settings, load_options)
            for warning in warnings:
                warn(warning)
            with workspace.connected() as con:
                return seen.inputs(loaded, found) | seen_early(con, fitted)
    except KeyboardInterrupt:
        raise StoppedError from None
    finally:
        os.umask(umask)


def warnings_of(settings: PublishSettings) -> Iterator[str]:
    """What the user should know before any work."""
    if settings.k == 1:
        yield "k = 1 gives no anonymity: every user may stand alone in this release."
    if settings.of_form.predicts and (settings.solver != "als" or settings.solver_options):
        yield (
            "what items tell of their raters was measured with the default options of als. Attack this release before "
            "it is handed out, by the attacks existence and shadows."
        )
    if settings.noise_of_items == 0 and settings.item_epsilon is None and settings.of_form.needs_solver:
        yield "items have no noise (item_noise 0): who knows all other ratings of an item reads the last one off it."
    if settings.of_form.warning:
        yield settings.of_form.warning.format(epsilon=f"{settings.epsilon:g}")
    if settings.personal_columns and settings.personal == "as_is":
        yield (
            f"personal attributes are shown as they are ({', '.join(settings.personal_columns)}): k-anonymity is that "
            "of the artifacts. The audit says how many users look alike in all that is shown, and verify rejects the "
            "release where they are fewer than k."
        )
    if settings.personal_columns and settings.personal == "separate":
        yield (
            "personal attributes are in a table of their own: k holds for it and for the groups, each by itself. The "
            "audit says how many users the smallest intersection has."
        )


def check_target(target: Path, inputs: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work, a target that could not be written in the end, or whose replacement would hurt."""
    if target.exists() and not target.is_dir():
        msg = f"{target} is a file. A release is a folder: give another --out."
        raise InputError(msg)
    if target.is_dir() and any(target.iterdir()) and not force:
        msg = f"{target} exists and is not empty. Give another --out, or --force to replace it."
        raise InputError(msg)
    if target in (*Path.cwd().parents, Path.cwd()):
        msg = f"{target} is the current folder, and a release needs a folder of its own. Give another --out."
        raise InputError(msg)
    for given in inputs:
        if target in Path(given).resolve().parents:
            msg = f"{given} lies in {target}, which would be replaced. Give another --out."
            raise InputError(msg)
    _check_folder(target.parent, "--out")


def _check_keep_work(folder: Path, target: Path, *, force: bool) -> None:
    if target == folder or target in folder.parents:
        msg = f"{folder} lies in the release: the secret map would go out with it. Give another --keep-work."
        raise InputError(msg)
    if (folder / "work.duckdb").exists() and not force:
        msg = f"{folder / 'work.duckdb'} exists. Give another --keep-work, or --force to replace it."
        raise InputError(msg)
    _check_folder(folder, "--keep-work")


def _check_folder(folder: Path, option: str) -> None:
    """Make a folder that does not exist, and try whether it can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"{folder} cannot be written to ({error.strerror}). Give another {option}."
        raise InputError(msg) from None


def _fingerprint(
    target: Path,
    inputs: Sequence[str],
    user_attributes: AttributesSource | None,
    settings: PublishSettings,
    options: LoadOptions,
    other_sizes: OtherSizes | None,
    following: Following | None,
) -> str:
    files = [source.path for source in sources.find_all(inputs)]
    if following is not None:
        files.append(following.database)
    if user_attributes is not None:
        files.append(sources.find(user_attributes.source, "users").path)
    if options.items is not None:
        files.append(sources.find(options.items, "items").path)
    asked = {
        "inputs": list(inputs),
        "user_attributes": None if user_attributes is None else asdict(user_attributes),
        "settings": settings.model_dump(mode="json"),
        "given": sorted(settings.model_fields_set),
        "options": options.model_dump(mode="json"),
        "sweep": [] if other_sizes is None else list(other_sizes.ks),
        "following": None if following is None else [following.additions, *sorted(following.removed)],
    }
    return runs.fingerprint(target, files, asked)


def _load(
    workspace: pipeline.Workspace,
    inputs: Sequence[str],
    user_attributes: AttributesSource | None,
    settings: PublishSettings,
    options: LoadOptions,
    following: Following | None,
    report: Report,
    warn: Warn,
) -> tuple[PublishSettings, LoadReport]:
    """Read the input, or take what a killed run has read."""

    def read() -> dict[str, Any]:
        workspace.clear()
        disk.check(workspace.folder, sources.find_all(inputs))
        if following is not None and following.additions:
            history.take_over(workspace.work_database, following)
        fitted, loaded, warnings = _read(workspace, inputs, user_attributes, settings, options, following)
        return {
            "fitted": {name: getattr(fitted, name) for name in _FITTED},
            "loaded": loaded.model_dump(mode="json"),
            "warnings": warnings,
        }

    report("load", 0, 1)
    found = runs.once(workspace.folder / "loaded.json", read)
    for warning in found["warnings"]:
        warn(warning)
    report("load", 1, 1)
    return settings.model_copy(update=found["fitted"]), LoadReport(**found["loaded"])


def _read(
    workspace: pipeline.Workspace,
    inputs: Sequence[str],
    user_attributes: AttributesSource | None,
    settings: PublishSettings,
    options: LoadOptions,
    following: Following | None = None,
) -> tuple[PublishSettings, LoadReport, list[str]]:
    with workspace.connected() as con:
        additions = following is not None and following.additions
        loaded = history.load_nothing(con) if additions and not inputs else load(con, inputs, options)
        warnings = list(loaded.warnings)
        if following is not None:
            loaded = history.add_last(con, following, loaded)
        known = loaded.user_attributes
        if user_attributes is not None:
            known = load_user_attributes(
                con, **asdict(user_attributes), ratings_loaded=loaded, encoding=options.encoding
            )
            warnings += known.warnings
            loaded = loaded.model_copy(update={"user_attributes": known})
            if known.raters_without_attributes:
                warnings.append(f"{known.raters_without_attributes:,} users with ratings have no row in {known.path}.")
        _check_attributes(settings, known)
        if loaded.artifact_columns and "artifacts" not in settings.model_fields_set:
            settings = _with_artifacts(settings, con, loaded, warnings)
        if loaded.catalogue is not None:
            settings = settings.model_copy(update={"items": LOADED_ITEMS})
        if loaded.artifact_columns:  # the items are the names of columns
            settings = settings.model_copy(update={"items_confirmed": True})
        if inputs:
            refuse_early(con, settings, follows=following is not None)
        if settings.of_method.levels and settings.k > 1 and _nobody_asks(con, settings):
            warnings.append(nobody_asks(settings))
        if not additions:
            settings = _fitted(settings, con, warnings)
    return settings, loaded, warnings


def nobody_asks(settings: PublishSettings) -> str:
    """What the user should know where all who rated have level 1."""
    return (
        f"nobody asks for a group of 2 or more in the column {settings.level_column}, which is no anonymity: "
        "every user may stand alone in this release."
    )


def _nobody_asks(con: duckdb.DuckDBPyConnection, settings: PublishSettings) -> bool:
    """Whether all who rated have level 1; who has no level asks for k."""
    level = f"attributes.{identifier(str(settings.level_column))}"
    others = f"""
        select count(*)
        from (select distinct user_id from loaded.ratings where {reason_not_to_use(settings)} is null) as users
        left join loaded.user_attributes as attributes using (user_id)
        where try_cast({level} as double) is distinct from 1
    """
    [(found,)] = con.sql(others).fetchall()
    return not found


def _with_artifacts(
    settings: PublishSettings, con: duckdb.DuckDBPyConnection, loaded: LoadReport, warnings: list[str]
) -> PublishSettings:
    """Take the artifact columns of a wide table that hold a rating as the artifacts."""
    rated = {item for (item,) in con.sql(
        "select distinct cast(item_id as varchar) from loaded.ratings where problem is null"
    ).fetchall()}  # fmt: skip
    blank = [name for name in loaded.artifact_columns if name not in rated]
    if blank:
        warnings.append(f"nobody rated {quoted(blank)}: left out of the artifacts.")
    artifacts = [name for name in loaded.artifact_columns if name in rated]
    return settings.model_copy(update={"artifacts": artifacts or settings.artifacts})


def _check_attributes(settings: PublishSettings, known: UserAttributesReport | None) -> None:
    """Refuse columns that the users' attributes do not have."""
    asked = [*settings.personal_columns, *settings.sensitive_columns, *filter(None, [settings.level_column])]
    if settings.personal_columns and settings.personal != "as_is":
        recoding(settings, settings.k, within=None)
    existing = [] if known is None else list(known.columns)
    lower = {name.lower() for name in existing}
    unknown = [name for name in asked if name.lower() not in lower]
    if unknown:
        msg = f"the users' attributes have no column {quoted(unknown)}. There are: {', '.join(existing) or 'none'}."
        raise InputError(msg)


def _build(
    workspace: pipeline.Workspace,
    settings: PublishSettings,
    loaded: LoadReport,
    key: bytes,
    following: Following | None,
    *,
    verbose: bool,
    report: Report,
) -> None:
    workspace.write_profile()
    finished = workspace.journal.finished()
    with workspace.connected() as con:
        if not finished:
            put_key(con, key)
            history.put_settings(con, settings)
        if settings.history:
            history.put_last(con, following, finished)
    variables = settings.model_dump(mode="json") | {"ratings": LOADED, "item_id_type": loaded.item_id_type.lower()}
    if following is not None and following.additions:
        variables[TAKES_OVER] = True
    if settings.method not in built_in():
        variables["method_facts"] = settings.of_method.facts
    pipeline.build(workspace, variables, verbose=verbose, on_node=lambda _, done, total: report("dbt", done, total))


def write(workspace: pipeline.Workspace, settings: PublishSettings, audit: Audit, key: bytes, umask: int) -> Path:
    """Write the release where nobody sees it, and check once more what was really written."""
    if not audit.passed:
        raise PromiseError(_failed(audit.checks))
    folder = workspace.folder / "release"
    shutil.rmtree(folder, ignore_errors=True)  # what a killed run had written of it
    with workspace.opened() as con:
        write_release(con, folder, audit, key)
    # Users who stand alone under noise were asked for.
    k = promised_size(folder) if settings.of_method.anonymous else 1
    checks = verify_release(folder, k)
    if settings.personal_columns and settings.personal == "as_is":
        # That attributes as they are single people out was said and asked for. Verify says it to everybody.
        checks = tuple(check for check in checks if check.check != K_ANONYMITY)
    if not all(check.passed for check in checks):
        raise PromiseError(_failed(checks))
    # All else in the workspace is its owner's alone; a release has the permissions of ordinary files.
    for file in folder.iterdir():
        file.chmod(0o666 & ~umask)
    folder.chmod(0o777 & ~umask)
    return folder


def _fitted(settings: PublishSettings, con: duckdb.DuckDBPyConnection, warnings: list[str]) -> PublishSettings:
    """Choose the low-rank form where all cells would be too many to write."""
    if not _may_be_low_rank(settings):
        return settings
    users, items = con.sql(
        "select count(distinct user_id), count(distinct item_id) from loaded.ratings where problem is null"
    ).fetchall()[0]
    return fitted_to(settings, users, items, warnings)


def _may_be_low_rank(settings: PublishSettings) -> bool:
    return "low_rank" in settings.of_form.cells and not settings.of_form.bounded and settings.cells == "all"


def fitted_to(settings: PublishSettings, users: int, items: int, warnings: list[str]) -> PublishSettings:
    """Choose the low-rank form, and add why to the warnings, where all cells of so many would be too many to write."""
    if not _may_be_low_rank(settings):
        return settings
    cells = items * max(users // settings.k, 1)
    if cells <= settings.max_cells:
        return settings
    warnings.append(
        f"{cells:,} cells are more than max_cells = {settings.max_cells:,}: the release holds group and item vectors "
        "instead, and a view that computes any cell from them."
    )
    return settings.model_copy(update={"cells": "low_rank"})


def audit_of(workspace: pipeline.Workspace, settings: PublishSettings, read: dict[str, Any]) -> Audit:
    """What the marts and the working relations of a workspace say. read: of the files, as `seen.inputs` has it."""
    with workspace.opened() as con:
        checks = con.sql('select "check", promised, measured, passed from marts.kgather__audit').fetchall()
        counts = _row(
            con, "select read_rows, staged_rows, rejected_rows, users, items from work.int_kgather__checked_input"
        )
        counts |= _row(
            con,
            "select count(*) as groups, max(group_size) as largest_group, sum(group_size)::bigint as members "
            "from marts.kgather__groups",
        )
        reasons = con.sql(
            "select reason, count(*) from work.int_kgather__rejected_ratings group by reason order by reason"
        ).fetchall()
        scale = _row(
            con, "select scale_min as min, scale_max as max, scale_step as step, declared from work.int_kgather__scale"
        )
        metrics = described(con.sql("select metric, value from marts.kgather__metrics").fetchall())
        charges = (
            con.sql(
                "select charge.what, charge.sensitivity, charge.deviation, charge.numbers, charge.rho "
                "from work.int_kgather__factors where side = 'charge' order by code"
            )
            .to_arrow_table()
            .to_pylist()
        )
        chain = con.sql("select rho from work.kgather_chain").fetchall() if settings.history else []
        read |= {
            "users": seen.ids(con, "work.int_kgather__users", "user_id", settings.k),
            "items": seen.ids(con, "work.int_kgather__items", "item_id", settings.k),
            "scale": scale,
            "repeats": sum(rows for reason, rows in reasons if reason.startswith("repeated pair")),
            "set_aside": {reason: rows for reason, rows in reasons if reason not in ABSENCES},
        }
        sizes = con.sql(
            "select group_size, count(*) from marts.kgather__groups group by group_size order by group_size"
        ).fetchall()
    if settings.history:
        read = history.without_counts(read)
        counts, reasons = _of_those_who_are_in(counts, reasons)
    return Audit(
        parameters=settings.model_dump(
            include={
                "k", "method", "method_options", "solver", "solver_options", "rank", "metric", "fill",
                "bisection_tries", "refine",
                "block_size", "artifacts", "epsilon", "level_column", "personal_columns", "personal",
                "personal_shared", "categorical_artifacts",
                "sensitive_items", "sensitive_columns", "sensitive_diversity", "sensitive_l", "sensitive_c",
                "cells", "popular_noise", "single_rater", "diversity_b", "diversity_l", "hierarchy",
                "noise_sigma", "noise_clip", "min_ratings", "rare_items", "item_noise",
                "item_epsilon", "item_delta", "outliers", "items", "scale",
                "items_confirmed", "repeats", "rating_cap", "rating_log", "history", "keep_group_ids",
            },
            mode="json",
        ) | {
            "homogenize": settings.form,
            "generalize": settings.generalization,
            "min_raters": settings.least_raters,
            "item_noise": settings.noise_of_items,
            "reserve": settings.gathered - settings.k,
            "personal_recoding": without_places(settings.personal_recoding),
        },
        counts=counts | {"rejected_by_reason": dict(reasons)},
        scale=scale,
        checks=tuple(Check(*check) for check in checks),
        metrics=tuple(asdict(metric) for metric in metrics),
        group_sizes=tuple({"size": size, "groups": groups} for size, groups in sizes),
        read=read,
        item_privacy=_item_privacy(settings, charges, [rho for (rho,) in chain]),
    )  # fmt: skip


def _of_those_who_are_in(
    counts: Mapping[str, Any], reasons: Sequence[tuple[str, int]]
) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """Counts of rows without those of people who are in no release: they would count the ratings of single ones."""
    absent = sum(rows for reason, rows in reasons if reason in ABSENCES)
    said = {**counts, "read_rows": counts["read_rows"] - absent, "rejected_rows": counts["rejected_rows"] - absent}
    return said, [(reason, rows) for reason, rows in reasons if reason not in ABSENCES]


def _item_privacy(
    settings: PublishSettings, charges: Sequence[Mapping[str, Any]], chain: Sequence[float]
) -> dict[str, Any] | None:
    """The accounting of a private item side, as audit.json holds it. chain: the rho of each release of the chain."""
    if settings.item_epsilon is None:
        return None
    # Imported here: it belongs to the kernels, which take seconds to load.
    from kgather.udfs.preferences._accounting import epsilon_of

    rho = math.fsum(charge["rho"] for charge in charges)
    return {
        "of": "levels and factors of all items together",
        "neighbours": "one user with all ratings, added or removed",
        "epsilon": settings.item_epsilon,
        "delta": settings.item_delta,
        "rho": rho,
        "epsilon_of_charges": epsilon_of(rho, settings.item_delta),
        "charges": list(charges),
        **(
            {
                "all_releases": {
                    "releases": len(chain),
                    "rho": math.fsum(chain),
                    "epsilon_of_charges": epsilon_of(math.fsum(chain), settings.item_delta),
                }
            }
            if chain
            else {}
        ),
        "not_covered": "what is shown of groups, counts, metrics and attacks",
    }


def _attacked(workspace: pipeline.Workspace, audit: Audit) -> dict[str, Any]:
    """What quick attackers get, measured with the secret map while it is there."""
    # Imported here: it brings the kernels, which take seconds to load.
    from kgather import _attacks as attacks
    from kgather._evaluation.evidence import read_evidence
    from kgather._steps import compiling

    with workspace.opened() as con:
        evidence = read_evidence(con, "work", "marts", audit.parameters)
    compiling.wait()
    return dict(attacks.quick(evidence).as_dict())


def _swept(
    folder: Path,
    inputs: Sequence[str],
    settings: PublishSettings,
    options: LoadOptions,
    other_sizes: OtherSizes | None,
    report: Report,
) -> tuple[dict[str, Any], ...]:
    """The release's method with other sizes of group, where that was asked for."""
    if other_sizes is None:
        return ()
    measure = other_sizes.measure
    return tuple(runs.once(folder / "swept.json", lambda: measure(inputs, settings, options, report)))


def _row(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    relation = con.sql(query)
    return dict(zip(relation.columns, relation.fetchall()[0], strict=True))


def _failed(checks: Sequence[Check]) -> str:
    lines = [
        f"  {check.check}: promised {check.promised}, measured {check.measured}" for check in checks if not check.passed
    ]
    return "a promise is not kept, no release was written:\n" + "\n".join(lines)


def _keep(workspace: pipeline.Workspace, folder: Path) -> Path:
    kept = folder / "work.duckdb"
    part = kept.with_suffix(".part")
    stopping.note(part)
    shutil.copyfile(workspace.work_database, part)
    part.chmod(0o600)
    # The secret map stays only beside a release: a stop before that is in its place takes it away.
    with stopping.whole:
        part.replace(kept)
        stopping.note(kept)
    return kept
