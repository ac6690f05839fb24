"""Runs the pipeline of a table on a connection: steps, table, audit."""

import json
import re
from collections.abc import Callable, Iterator, Sequence

import duckdb

from kgather._errors import InputError, PromiseError, quoted
from kgather._recoding import people, sql
from kgather._recoding.told import told
from kgather._settings.table import TableSettings
from kgather._sql_functions import load
from kgather._sql_text import identifier
from kgather._tables import population
from kgather._tables.audit import TableAudit, checks, of_people
from kgather._verify.classes import class_sizes
from kgather._verify.dominated import dominated, greatest_share
from kgather._verify.people import IN_INTERSECTION
from kgather._verify.risks import risks

_STEP = re.compile(r"create or replace temp (table|view) (\w+)")

Report = Callable[[str, int, int], None]
Warn = Callable[[str], None]


def anonymize(
    con: duckdb.DuckDBPyConnection,
    relation: str,
    settings: TableSettings,
    into: str,
    *,
    groups_into: str | None = None,
    report: Report = lambda *_: None,
) -> TableAudit:
    """Create the table `into`, the anonymized `relation`, and say what it promises, keeps and costs.

    relation: what may stand after FROM; each column that the settings name is in it. con: a connection whose current
    database is open for writing; macros and temporary relations are made there. groups_into: a table (unit, group_id)
    to create beside it, of who looks the same; it is as secret as the relation itself.
    Raises InputError where table and settings do not go together, PromiseError where something is not kept.
    """
    load(con)
    refuse_missing(con, "the table", relation, named(settings))
    if settings.population is not None:
        refuse_missing(con, "the population", settings.population, list(settings.quasi_identifiers))
    for option, groups in (("within", [settings.within]), ("beside", settings.beside)):
        for each in filter(None, groups):
            refuse_missing(con, f"the groups of {option}", each, [str(settings.unit), "group_id"])
    _refuse_aggregates(con, relation, settings)
    text = settings.model_dump_json(exclude_defaults=True)
    if groups_into is not None and settings.unit is None:
        msg = "groups are of people: give unit, the column that names them."
        raise InputError(msg)
    statements = [
        *sql.script(relation, settings, text, units=groups_into is not None),
        f"create table {into} as {sql.rows(settings)}",
    ]
    if groups_into is not None:
        statements.append(f"create table {groups_into} as {people.grouped(settings)}")
    try:
        for number, statement in enumerate(statements):
            report("anonymize", number, len(statements))
            with told():
                con.execute(statement)
        report("anonymize", len(statements), len(statements))
        [(said,)] = con.execute(sql.report(settings)).fetchall()
    finally:
        _drop(con, statements)
    reported = json.loads(said)
    of_population = population.matched(con, into, settings) if settings.population is not None else None
    found = (
        *checks(con, into, settings),
        *of_people(settings, reported.get("people", {})),
        *(population.checks(of_population, settings) if of_population is not None else ()),
    )
    failed = [check for check in found if not check.passed]
    if failed:
        for made in filter(None, (into, groups_into)):
            con.execute(f"drop table {made}")
        lines = [f"  {check.check}: promised {check.promised}, measured {check.measured}" for check in failed]
        raise PromiseError("\n".join(["a promise is not kept, nothing was written:", *lines]))
    # Where people have several rows, what is written does not say whose they are.
    left = reported.pop("risks", {}) if settings.has_several_rows else risks(con, into, settings)
    if left and not settings.has_several_rows and (shares := dominated(con, into, settings)):
        left["dominated"] = shares
    if of_population is not None:
        left |= population.risks(of_population)
    left |= {name: reported.pop(name) for name in ("minimality",) if name in reported}
    return TableAudit(found, reported, left, class_sizes(con, into, list(settings.quasi_identifiers)))


def warnings(settings: TableSettings, audit: TableAudit) -> Iterator[str]:
    """What whoever publishes this table should know."""
    if settings.k == 1:
        yield "k = 1 gives no anonymity: every row may stand alone."
    beside = next((check.measured for check in audit.checks if check.check == IN_INTERSECTION), None)
    if beside is not None and beside < settings.k:
        yield (
            f"the smallest intersection with the classes of the other tables has {beside:,.0f} people, fewer than k = "
            f"{settings.k}: k is promised for each table only. Make the tables within common groups: --within."
        )
    for name, asked in settings.sensitive.items():
        alone = audit.risks.get("homogeneity", {}).get(name, 0)
        likely = audit.risks.get("dominated", {}).get(name, 0)
        if (asked.l, asked.t, asked.alpha) == (None, None, None) and alone:
            of = (
                f"people are in a class all of whose people have one value of '{name}'"
                if settings.has_several_rows
                else f"rows are in classes with one single value of '{name}'"
            )
            yield (
                f"{alone:.0%} of the {of}: whoever finds the class knows it. k alone says nothing of it: ask for --l, "
                "--t or --alpha."
            )
        elif asked.l is not None and asked.diversity == "distinct" and likely:
            yield (
                f"{likely:.0%} of the rows are in classes where one value of '{name}' has more than "
                f"{greatest_share(asked.l):.0%}, which is half again 1 / l or half of the class: distinct "
                "diversity counts values and not how often they occur. Entropy diversity does."
            )


def named(settings: TableSettings) -> list[str]:
    """The columns of a table that its settings name."""
    return [*settings.shown, *settings.identifiers, *([settings.unit] if settings.unit else [])]


def refuse_missing(con: duckdb.DuckDBPyConnection, what: str, relation: str, columns: Sequence[str]) -> None:
    """Raise InputError where a relation lacks a column. what: the relation, for the message."""
    existing = {str(name).lower() for name, *_ in con.execute(f"describe select * from {relation}").fetchall()}
    missing = [name for name in columns if name.lower() not in existing]
    if missing:
        msg = f"{what} has no column {quoted(missing)}."
        raise InputError(msg)


def _refuse_aggregates(con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings) -> None:
    for name, how in (settings.aggregate or {}).items():
        if how == "same":
            continue
        try:
            con.execute(f"describe select {people.function(how)}({identifier(name)}) from {relation}")
        except duckdb.BinderException:
            [(kind,)] = con.execute(
                f"select column_type from (describe select {identifier(name)} from {relation})"
            ).fetchall()
            msg = f"column '{name}' is {kind}, of which there is no {how}. Cast it, or aggregate it in another way."
            raise InputError(msg) from None


def _drop(con: duckdb.DuckDBPyConnection, statements: list[str]) -> None:
    for statement in reversed(statements):
        found = _STEP.match(statement)
        if found:
            con.execute(f"drop {found[1]} if exists temp.{found[2]}")
