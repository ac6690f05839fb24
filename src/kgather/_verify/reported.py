"""What the report and the risks of a table say, held against its rows: what rows decide is counted again, and of the
rest the bounds that they set."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from kgather._recoding.hierarchies import EVERYTHING
from kgather._release.rounded import rows as rounded_rows
from kgather._settings.table import TableSettings
from kgather._sql_text import identifier, literal
from kgather._verify import people

_DIGIT = 1.1e-3  # three digits, and what another version rounds otherwise
_FOUR = 1.1e-4
_MOST_LINKED = 0.5


def otherwise(
    con: duckdb.DuckDBPyConnection,
    relation: str,
    settings: TableSettings,
    audit: Mapping[str, Any],
    sizes: Sequence[tuple[int, int]],
) -> list[str]:
    """What of `report` and `risks` the rows of a relation contradict, by its path in the audit.

    audit: one that has all that a release says. sizes: (rows, classes). Losses, distances and query errors are of
    values that are not written, minimality and what a population decides of others, so none of these is counted again.
    """
    report, risks = audit["report"], audit["risks"]
    found = [f"report.{name}" for name in _of_report(con, relation, settings, audit, sizes)]
    if settings.counts_people:
        found += [f"report.people.{name}" for name in _of_people(settings, audit)]
    if settings.has_several_rows:
        return found + [f"risks.{name}" for name in _of_several(risks, report["people"]["in_set"])]
    return found + [f"risks.{name}" for name in _of_risks(con, relation, settings, risks)]


def _of_report(
    con: duckdb.DuckDBPyConnection,
    relation: str,
    settings: TableSettings,
    audit: Mapping[str, Any],
    sizes: Sequence[tuple[int, int]],
) -> Iterator[str]:
    report, k = audit["report"], settings.k
    rows, shown = sum(n * times for n, times in sizes), sum(times for _, times in sizes)
    squares = sum(n * n * times for n, times in sizes)
    hidden = " and ".join(f"{identifier(name)} = {literal(EVERYTHING)}" for name in settings.quasi_identifiers)
    [(stars,)] = con.execute(f"select count(*) from {relation} where {hidden}").fetchall()
    read, classes, suppressed, costs = audit["read"]["rows"], report["classes"], report["suppressed"], report["costs"]
    if report["rows"] != rounded_rows(rows):
        yield "rows"
    drops_rows = settings.aggregate is not None or settings.rows_per_person is not None
    if rounded_rows(read) != read or read < report["rows"] or (read > report["rows"] and not drops_rows):
        yield "rows, of which so many were read"
    # Classes that show the same are one to a reader.
    if not shown <= classes <= max(rows // k, 1):
        yield "classes"
    elif abs(costs["average_class_size"] - rows / max(classes, 1) / k) > 0.006 * rows / max(classes, 1) / k:
        yield "costs.average_class_size"
    elif not rows**2 / max(classes, 1) * (1 - 1e-9) <= costs["discernibility"] <= squares or (
        classes == shown and costs["discernibility"] != squares
    ):
        yield "costs.discernibility"
    if suppressed % k or suppressed > _in_steps(min(stars, int(settings.suppress * rows)), k):
        yield "suppressed"
    losses = [column["loss"] for column in report["columns"].values()]
    if abs(report["loss"] - sum(losses) / len(losses)) > _FOUR:
        yield "loss"


def _in_steps(number: int, k: int) -> int:
    return -(-number // k) * k


def _of_people(settings: TableSettings, audit: Mapping[str, Any]) -> Iterator[str]:
    """The numbers of people that the report says otherwise than the checks."""
    told = audit["report"]["people"]
    noted = {check["check"]: check["measured"] for check in audit["checks"]}
    for name, check in (
        ("in_class", people.IN_CLASS), ("in_set", people.IN_SET), ("in_group", people.IN_GROUP),
        ("torn", people.TORN), ("beside", people.IN_INTERSECTION),
    ):  # fmt: skip
        if check in noted and told.get(name) != noted[check]:
            yield name
    if told.get("linked", 0) > _MOST_LINKED:
        yield "linked"
    for name, asked in settings.sensitive.items() if settings.has_several_rows else ():
        measured = told["sensitive"].get(name, {})
        for said in people.of_sensitive(name, asked.model_dump(), measured, asked.diversity):
            if noted.get(said.check, said.measured) != said.measured:
                yield f"sensitive.{name}"


def _of_several(risks: Mapping[str, Any], in_set: int) -> Iterator[str]:
    """Where people have several rows, risks count people whom rows do not name."""
    if abs(risks["prosecutor"] - 1 / max(in_set, 1)) > _FOUR:
        yield "prosecutor"
    if risks["marketer"] > risks["prosecutor"] + _FOUR:
        yield "marketer"
    for name, alone in risks["homogeneity"].items():
        if alone > risks["confident"][name] + _DIGIT:
            yield f"homogeneity.{name}"


def _of_risks(
    con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings, risks: Mapping[str, Any]
) -> Iterator[str]:
    # Imported here: kernels take seconds to load.
    from kgather._verify.dominated import dominated
    from kgather._verify.risks import risks as counted

    found = counted(con, relation, settings)
    if shares := dominated(con, relation, settings):
        found["dominated"] = shares
    for path, value in _leaves(found):
        said: Any = risks
        for name in path:
            said = said[name]
        if abs(value - said) > _DIGIT:
            yield ".".join(path)
    for name in ("population_journalist", "population_marketer"):
        if name in risks and not 0 < risks[name] <= found["prosecutor"] + _FOUR:
            yield name


def _leaves(found: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from (((name, *rest), each) for rest, each in _leaves(value))
        else:
            yield (name,), value
