"""The text of `kgather guard audit`."""

from collections.abc import Iterator
from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._guard.audit_log import read_log
from kgather._guard.broken_lines import broken_lines, told
from kgather._guard.catalog import Catalog, catalog_of
from kgather._guard.measured.agreeing import agreeing
from kgather._guard.measured.audit import Cost, Error, cost_of_others, costs, errors, from_data
from kgather._guard.measured.copies import undeclared
from kgather._guard.measured.database import show_once, unreadable
from kgather._guard.measured.ledger import Ledger
from kgather._guard.measured.missing import told_absence, told_absence_of_log
from kgather._guard.measured.replay import Entry, Replay, Unrepeatable, told_others
from kgather._guard.measured.truth import Truth
from kgather._guard.policy import Policy
from kgather._guard.refused import Refused
from kgather._guard.warehouse import Warehouse

FIRST = (
    "TRUE FIGURES of people follow, without protection. They are for the owner of the data: pass nothing of this on."
)
_TEXT = 160  # characters of a statement


def lines(policy: Policy, log: Path | None) -> Iterator[str]:
    """The lines of an audit, the warning first. Raises InputError where database, ledger or log cannot be read."""
    ledger = Ledger(policy.ledger)
    warehouse = Warehouse.of(policy)
    con = warehouse.connected(policy.limits.memory)
    try:
        catalog = catalog_of(con, policy)
        show_once(con, catalog)
        con.execute("use memory")
        yield FIRST
        yield from _copies(con, catalog)
        yield from _agreeing(con, catalog)
        if not ledger.exists():
            yield ""
            yield told_absence(ledger.path, log)
            return
        yield from _from_data(con, catalog, ledger)
        yield from _questions(con, catalog, ledger, log)
    except duckdb.Error:
        raise InputError(unreadable(warehouse)) from None
    finally:
        con.close()


def _copies(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> Iterator[str]:
    found = undeclared(con, catalog)
    yield ""
    yield f"Undeclared copies: {len(found) or 'none'}"
    for copy in found:
        yield f"  {copy.first} and {copy.second} have the same values ({copy.rows:,}): declare {copy.declare}"
    if found:
        yield "  Until then each copy is measured, and paid for, by itself."


def _agreeing(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> Iterator[str]:
    found = agreeing(con, catalog)
    yield ""
    yield f"Entries of the policy that agree with the data: {len(found) or 'none'}"
    for one in found:
        yield f"  {one.entry}: {one.why}. If it was read from the data, write {one.instead}."
    if found:
        yield (
            "  Whether they were read from the data cannot be seen here. What the policy says is public, and the "
            "budget does not cover it. Leave what you would know without the data, such as the ends of a scale."
        )


def _from_data(con: duckdb.DuckDBPyConnection, catalog: Catalog, ledger: Ledger) -> Iterator[str]:
    version = ledger.versions()[-1].number
    found = from_data(con, catalog, [one for one in ledger.measurements() if one.version == version])
    yield ""
    yield f"Keys and bounds that come from data: {len(found) or 'none'}"
    for one in found:
        yield f"  {one.what}: rho {one.rho:.6f}; {one.truth}. {one.todo}"


def _questions(con: duckdb.DuckDBPyConnection, catalog: Catalog, ledger: Ledger, log: Path | None) -> Iterator[str]:
    yield ""
    if log is None:
        yield "The policy names no audit_log: what was asked is not known."
        return
    replay = Replay(ledger, Warehouse.of(catalog.policy), catalog.policy.limits.memory)
    absent = told_absence_of_log(ledger, log)
    if absent is not None:
        yield absent
        return
    entries: list[Entry] = []
    others = 0
    for entry in read_log(log):
        if replay.is_own(entry):
            entries.append(entry)
        others += replay.is_of_another(entry)
    paid = costs(entries)
    yield f"Questions: {len(entries):,}, rho {sum(cost.rho for cost in paid):.6f}"
    for name in sorted({cost.principal for cost in paid}):
        own = [cost for cost in paid if cost.principal == name]
        yield f"  {name}: {len(own):,} questions, rho {sum(cost.rho for cost in own):.6f}"
    if cost_of_others(entries):
        yield f"  for no question of the log (prepared, measured again, or stopped): rho {cost_of_others(entries):.6f}"
    if others:
        yield f"  {told_others(others)}"
    yield from (f"  {sentence}" for sentence in told(broken_lines(log)))
    newest = ledger.versions()[-1]
    changed = Warehouse.of(catalog.policy).stamp() != newest.stamp
    if changed:
        yield "  The database was changed since: answers are not compared with it. Run kgather ledger next first."
    truth = Truth(con, catalog)
    compared: set[str] = set()
    for entry, cost in zip(entries, paid, strict=True):
        yield f"  {_told(cost)}"
        place = repr([entry[part] for part in ("text", "version", "measurements")]) + repr(entry.get("values"))
        if changed or entry["decision"] != "answered" or place in compared:
            continue
        compared.add(place)
        if entry["version"] != newest.number:
            yield "    not compared: it is about an earlier version of the data"
            continue
        yield from (f"    {line}" for line in _compared(entry, replay, truth))


def _told(cost: Cost) -> str:
    text = " ".join(cost.text.split())
    text = text if len(text) <= _TEXT else f"{text[:_TEXT]}..."
    price = f"rho {cost.rho:.6f} for {cost.measured}" if cost.measured else "free"
    return f"{cost.at} {cost.principal} {cost.decision}, {price}: {text}"


def _compared(entry: Entry, replay: Replay, truth: Truth) -> Iterator[str]:
    try:
        found = errors(replay.answer(entry), truth)
    except Unrepeatable as why:
        yield f"not compared: {why}"
        return
    except (Refused, duckdb.Error):
        yield "not compared: the ledger, or the database, does not give it again"
        return
    for error in found:
        yield _told_error(error)


def _told_error(error: Error) -> str:
    groups = f"{error.column}: {error.told} of {error.there} groups told"
    if error.middle is None or error.largest is None or error.within is None:
        return groups
    return (
        f"{groups}, error {error.middle:.1%} (median), {error.largest:.1%} (largest); {error.within:.0%} of them "
        "within two standard errors"
    )
