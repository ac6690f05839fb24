"""All metrics of a release beside its original: what it brings along, what its classes tell, and what is measured."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from kgather import _sql_functions as sql_functions
from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.metrics import Metric, described, measure, read_metrics
from kgather._evaluation.naive_bayes import naive_bayes
from kgather._evaluation.recommenders import recommender_errors
from kgather._loaders import LoadOptions
from kgather._methods import registered
from kgather._release.reading import refuse_table
from kgather._release.release import AUDIT, DATABASE
from kgather._republishing.attributes import numbers_of_users
from kgather._republishing.held_out import held_out
from kgather._republishing.opening import is_working_database, open_evidence
from kgather._settings.publication import PublishSettings
from kgather._sql_text import identifier, literal

Report = Callable[[str, int, int], None]
_GENERALIZED = "release.kgather__generalized"


def measure_release(
    release: Path,
    originals: Sequence[str],
    *,
    seed: int = 0,
    recommender: bool = False,
    classifier: bool = False,
    averages: Sequence[str] = (),
    user_attributes: str | None = None,
    load_options: LoadOptions | None = None,
    assignments: Sequence[str] = (),
    report: Report = lambda *_: None,
) -> tuple[Metric, ...]:
    """Every metric of a release.

    originals: what was published, or the work.duckdb that `publish --keep-work` kept (see `open_evidence`).
    recommender: also publish four fifths of the original with the same parameters, and test recommenders on the rest.
    classifier: also teach Naive Bayes. averages: columns of numbers of the users' attributes whose mean queries ask
    for; user_attributes: where they are, None: in the working database.
    Raises InputError where the release or the originals are not what they should be.
    """
    evidence = open_evidence(
        release, originals, seed=seed, load_options=load_options, assignments=assignments, vectors=True, report=report
    )
    personal = numbers_of_users(evidence, originals, averages, user_attributes, load_options) if averages else {}
    known = list(read_metrics(release))
    names = {metric.metric for metric in known}
    known += [metric for metric in class_metrics(release) if metric.metric not in names]
    found = measure(evidence, known=known, personal=personal, seed=seed)
    if classifier:
        found += naive_bayes(evidence, seed=seed)
    if not recommender:
        return found
    return found + _recommenders(evidence, originals, seed, load_options, assignments, report)


def class_metrics(release: Path) -> tuple[Metric, ...]:
    """What the classes of a release tell without its original: DM, C_AVG and, of a generalized table, GenILoss.

    Raises InputError where there is no release.
    """
    refuse_table(release)
    try:
        said = json.loads((release / AUDIT).read_text(encoding="utf-8"))
        parameters, scale = dict(said["parameters"]), dict(said["scale"])
    except (OSError, ValueError, KeyError, TypeError):
        msg = f"{release} is no release: {AUDIT} is missing or does not say what it was made with."
        raise InputError(msg) from None
    with duckdb.connect() as con:
        sql_functions.load(con)
        con.execute(f"attach {literal(release / DATABASE)} as release (read_only)")
        described_tables = con.sql("select table_name from duckdb_tables() where database_name = 'release'").fetchall()
        tables = {name for (name,) in described_tables}
        rows: list[tuple[str, float]] = []
        if "kgather__generalized" in tables:
            rows += _of_generalized(con, parameters.get("personal_columns", []), scale)
        elif "kgather__user_ratings" in tables:
            return ()  # every user has a row: there are no classes
        else:
            con.execute("create view classes as select group_id from release.kgather__members")
        for name, call in (
            ("discernibility", "kg_discernibility('classes')"),
            ("average_class_size", f"kg_average_class_size('classes', {int(parameters['k'])})"),
        ):
            rows += [(name, value) for (value,) in con.sql(f"from {call}").fetchall()]
    return described((name, value) for name, value in rows if value is not None)


def _of_generalized(
    con: duckdb.DuckDBPyConnection, personal: Sequence[str], scale: dict[str, Any]
) -> list[tuple[str, float]]:
    """Make the view of classes from what the generalized table shows; its information loss."""
    table = con.sql("from release.kgather__generalized")
    artifacts = [
        (name, kind.id)
        for name, kind in zip(table.columns, table.types, strict=True)
        if name != "group_id" and name not in personal
    ]
    keys = ", ".join(identifier(name) for name, _ in artifacts)
    con.execute(f"create view classes as select dense_rank() over (order by {keys}) as group_id from {_GENERALIZED}")
    bounds = " union all ".join(
        f"select group_id, {literal(name)} as item_id, "
        + (
            f"list_min(any_value({identifier(name)})) as low, list_max(any_value({identifier(name)})) as high"
            if kind == "list"
            else f"any_value({identifier(name)}).low as low, any_value({identifier(name)}).high as high"
        )
        + f" from {_GENERALIZED} where {identifier(name)} is not null group by group_id"
        for name, kind in artifacts
    )
    con.execute(f"create view bounds as {bounds}")
    con.execute(f"create view members as select group_id from {_GENERALIZED}")
    names = ", ".join(f"({literal(name)})" for name, _ in artifacts)
    con.execute(f"create view artifacts as from (values {names}) as named (item_id)")
    width = max(scale["max"], 0) - min(scale["min"], 0)
    loss = con.sql(f"from kg_generalized_information_loss('bounds', 'members', 'artifacts', {width!r})").fetchall()[0][
        0
    ]
    return [("generalized_information_loss", loss)]


def _recommenders(
    evidence: Evidence,
    originals: Sequence[str],
    seed: int,
    load_options: LoadOptions | None,
    assignments: Sequence[str],
    report: Report,
) -> tuple[Metric, ...]:
    parameters = {name: value for name, value in evidence.parameters.items() if name in PublishSettings.model_fields}
    method = registered().get(str(parameters.get("method")))
    if (method is not None and method.levels) or any(
        parameters.get(name) for name in ("sensitive_columns", "categorical_artifacts")
    ):
        msg = (
            "the recommender test publishes a part of the ratings. This release was made with users' attributes, "
            "which the original alone does not have. Give --no-recommender."
        )
        raise InputError(msg)
    settings = PublishSettings.from_options(
        parameters
        | {"personal_columns": [], "personal_shared": [], "seed": seed, "metrics": "none"}
        | {"i_know_this_is_not_anonymous": True},
        list(assignments),
    )
    inputs = [f"{originals[0]}:stg_kgather__ratings"] if is_working_database(originals) else list(originals)
    trained, test = held_out(
        inputs, settings, LoadOptions() if is_working_database(originals) else load_options, seed=seed, report=report
    )
    return recommender_errors(trained, test, seed=seed)
