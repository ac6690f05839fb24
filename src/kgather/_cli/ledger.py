"""`kgather ledger`."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kgather._cli.console import print_json, print_line
from kgather._cli.query import PolicyOption
from kgather._errors import InputError, PromiseError

if TYPE_CHECKING:
    from kgather._guard.measured.review import Account
    from kgather._guard.policy import Policy

app = typer.Typer(
    help="Look at the guard's ledger, check it, and keep it.", no_args_is_help=True, rich_markup_mode=None
)
_PUT_BACK = (
    "Put it back from a copy that was made after the last answer. A guard that begins a new one does not know what was "
    "told of the same people."
)
_NOBODY = "(the policy)"
"""Who is told to have spent what a ledger began with."""
_WIDE = 1_000  # columns where no terminal says
JsonOption = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do it, knowing what it means.")]


@app.callback()
def _ledger() -> None:
    """Look at the guard's ledger, check it, and keep it."""


@app.command("show")
def show(policy: PolicyOption, json: JsonOption = False) -> None:
    """Say what was measured, what it cost and what is left; of other modes, how many atoms there are."""
    read = _read(policy)
    if read.mode == "measured":
        _show_measured(read, json=json)
    else:
        _show_atoms(read, json=json)


@app.command("replay")
def replay(policy: PolicyOption, json: JsonOption = False) -> None:
    """Give every answer of the audit log again from the ledger, without the database, and compare. Exit code 3 where
    one is not the same."""
    from kgather._guard.audit_log import read_log
    from kgather._guard.broken_lines import broken_lines, told
    from kgather._guard.measured.ledger import Ledger
    from kgather._guard.measured.missing import told_absence, told_absence_of_log
    from kgather._guard.measured.replay import Replay, told_others
    from kgather._guard.warehouse import Warehouse

    read = _measured(policy)
    if read.audit_log is None:
        msg = f"{policy} names no audit_log, so that what was answered is not known. Name a file under audit_log."
        raise InputError(msg)
    ledger = Ledger(read.ledger)
    if not ledger.exists():
        raise InputError(told_absence(read.ledger, read.audit_log))
    absent = told_absence_of_log(ledger, read.audit_log)
    if absent is not None:
        raise InputError(absent)
    again = Replay(ledger, Warehouse.of(read), read.limits.memory)
    counts = {"agrees": 0, "disagrees": 0, "cannot be replayed": 0}
    others: list[dict[str, str]] = []
    of_another = 0
    for entry in read_log(read.audit_log):
        of_another += again.is_of_another(entry)
        if not again.is_own(entry):
            continue
        found = again.repeated(entry)
        counts[found.result] += 1
        if found.result != "agrees":
            others.append({"at": entry["at"], "result": found.result, "why": found.why, "text": entry["text"]})
    broken = broken_lines(read.audit_log)
    if json:
        places = [one.place for one in broken]
        print_json({**counts, "of another ledger": of_another, "broken lines": places, "others": others})
    else:
        print_line(f"{counts['agrees']:,} agree, {counts['disagrees']:,} disagree")
        if counts["cannot be replayed"]:
            print_line(f"{counts['cannot be replayed']:,} cannot be replayed")
        if of_another:
            print_line(told_others(of_another))
        for sentence in told(broken):
            print_line(sentence)
        for one in others:
            print_line(_printable(f"{one['at']} {one['result']}: {one['why']}: {' '.join(one['text'].split())}"))
    if counts["disagrees"]:
        msg = (
            f"{counts['disagrees']} answers do not follow from the ledger. Either ledger or audit log was changed, or "
            "another version of kgather gave them."
        )
        raise PromiseError(msg)


@app.command("next")
def next_(
    policy: PolicyOption,
    force: Annotated[bool, typer.Option("--force", help="Even where the database was not changed.")] = False,
) -> None:
    """Begin a new version of the data: what is asked from now on is measured anew. Charges go on."""
    read = _measured(policy)
    from kgather._guard.guard import Guard  # the kernels take seconds to load
    from kgather._guard.measured.engine import MeasuredEngine
    from kgather._guard.measured.kinds import named

    engine = Guard.from_policy(policy, prepare=False).engine
    assert isinstance(engine, MeasuredEngine)
    version = engine.next_version(force=force)
    known = engine.ledger.measurements()
    left = []
    for kind, people in engine.kinds.items():
        rho = max(people.prices.total - sum(one.rho for one in people.charged(known)), 0.0)
        left.append(f"rho {rho:.6f} is left of the budget{'' if people.alone else f' for {named(kind)}'}")
    print_line(f"{read.ledger}: version {version.number} of the data; {', '.join(left)}.")


@app.command("backup")
def backup(
    policy: PolicyOption,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the copy goes: a new file.")],
) -> None:
    """Write a consistent copy of the ledger while guards run."""
    from kgather._guard.measured.ledger import Ledger
    from kgather._guard.measured.missing import told_absence

    read = _measured(policy)
    ledger = Ledger(read.ledger)
    if not ledger.exists():
        raise InputError(told_absence(read.ledger, read.audit_log))
    ledger.copy_to(out)
    copied = len(Ledger(out).measurements())
    print_line(f"{out}: {copied:,} measurements. Keep it with the audit log: what comes after is charged from there.")


@app.command("restore")
def restore(
    copy: Annotated[Path, typer.Argument(metavar="FILE", help="What kgather ledger backup wrote.")],
    policy: PolicyOption,
    yes: YesOption = False,
) -> None:
    """Put a copy of the ledger back, and charge what the audit log says was measured since. End all guards first."""
    from kgather._guard.measured.backup import restore as put_back

    read = _measured(policy)
    done = put_back(read.ledger, read.audit_log, copy, sure=yes)
    print_line(f"{read.ledger}: {done.measurements:,} measurements, put back from {copy}.")
    if done.lost:
        print_line(
            f"{done.lost:,} measurements since are lost; their charges, rho {done.rho:.6f}, are not. What they told is "
            "measured anew when it is asked for."
        )
    if done.aside is not None:
        print_line(f"The ledger that was there is {done.aside} now.")


@app.command("new")
def new(policy: PolicyOption, yes: YesOption = False) -> None:
    """Begin a new ledger after the old one was lost, or is to be left. What was told before adds to what will be."""
    read = _measured(policy)
    if not yes:
        msg = (
            "a new ledger does not know what was told of the same people before: that, and what it tells from now on, "
            f"together tell more than its budget of epsilon {read.budget.epsilon:g} says. If a copy can be put back, "
            "run kgather ledger restore instead. Say --yes to begin a new one."
        )
        raise InputError(msg)
    from kgather._guard.measured.engine import MeasuredEngine

    engine = MeasuredEngine(read, policy.resolve().parent, anew=True)
    print_line(f"{read.ledger}: begun. What was told before of the same people adds to what will be told from it.")
    if engine.aside is not None:
        print_line(f"The ledger that was there is {engine.aside} now.")


def _read(policy: Path) -> "Policy":
    from kgather._guard.policy import load_policy

    return load_policy(policy)


def _measured(policy: Path) -> "Policy":
    read = _read(policy)
    if read.mode != "measured":
        msg = f"the policy has mode {read.mode}. This is for ledgers of mode measured; kgather ledger show is for all."
        raise InputError(msg)
    return read


def _show_measured(read: "Policy", *, json: bool) -> None:
    from kgather._guard.measured.review import review

    found = review(read.ledger, read.audit_log)
    if json:
        accounts = [{**asdict(one), "left": one.left} for one in found.accounts]
        print_json({**(accounts[0] if len(accounts) == 1 else {}), **asdict(found), "accounts": accounts})
        return
    print_line(f"ledger {found.id}, begun {found.made_at}, {len(found.charges):,} measurements")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    versions = _table("version of the data", "since")
    for version in found.versions:
        versions.add_row(f"{version.number}", version.opened_at)
    if len(found.accounts) > 1:
        print_line(
            "People of each kind have a budget of their own: somebody who is of several kinds has the sum of theirs."
        )
    for account in found.accounts:
        _show_account(account, console)
    several = len(found.accounts) > 1
    charges = _table("number", "version", "at", "rho", "delta", *(["of"] if several else []), "from", "for", "measured")
    for one in found.charges:
        name = f"{one.told}{' (lost)' if one.lost else ''}"
        cells = [f"{one.number}", f"{one.version}", one.made_at, f"{one.rho:.6f}", f"{one.delta:.2g}"]
        cells += ["everybody" if one.people is None else one.people] if several else []
        charges.add_row(*cells, Text(one.pool), Text(_printable(one.principal or _NOBODY)), Text(_printable(name)))
    for table in (versions, charges):
        console.print()
        console.print(table)


def _show_account(account: "Account", console: Console) -> None:
    """The budget of people of one kind."""
    from kgather._guard.measured.kinds import named

    if not account.alone:
        console.print()
    print_line(
        f"budget{'' if account.alone else f' of {named(account.kind)}'}: epsilon {account.epsilon:g}, "
        f"delta {account.delta:g}; as rho {account.rho:.6f}"
    )
    share = account.spent / account.rho if account.rho else 0.0
    print_line(f"charged: rho {account.spent:.6f} ({share:.1%}); left: rho {account.left:.6f}")
    print_line(
        f"what is charged so far tells of nobody more than epsilon {account.told_epsilon:.3g}, "
        f"delta {account.told_delta:.2g}"
    )
    for sentence in account.buys:
        print_line(sentence)
    pools = _table("for", "rho", "rho charged", "rho left")
    for pool in account.pools:
        pools.add_row(Text(pool.name), f"{pool.rho:.6f}", f"{pool.spent:.6f}", f"{pool.left:.6f}")
    people = _table("principal", "share", "rho charged", "rho left")
    for who in account.spenders:
        part = "" if who.share is None else f"{who.share:g}"
        left = "" if who.left is None else f"{who.left:.6f}"
        people.add_row(Text(_printable(who.principal or _NOBODY)), part, f"{who.spent:.6f}", left)
    for table in (pools, people):
        console.print()
        console.print(table)


def _show_atoms(read: "Policy", *, json: bool) -> None:
    from kgather._guard.measured.missing import gone
    from kgather._guard.summary import summarize

    missing = gone(read.ledger, read.audit_log, _PUT_BACK)
    if missing is not None:
        raise InputError(missing)
    found = summarize(read.ledger, read.k)
    if json:
        print_json(asdict(found))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"k = {found.k}, {found.decisions:,} decisions", markup=False)
    universes = _table("universe", "of", "atoms", "smallest atom")
    for universe in found.universes:
        smallest = universe.smallest or "none"
        universes.add_row(Text(universe.name), universe.of, f"{universe.atoms:,}", smallest)
    console.print(universes)
    days = _table("day (UTC)", "universe", "splits", "atoms then")
    for day in found.days:
        days.add_row(day.day, Text(day.universe), f"{day.splits:,}", f"{day.atoms:,}")
    console.print(days)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    numbers = ("atoms", "splits", "rho", "delta", "number", "version")
    for name in columns:
        table.add_column(name, justify="right" if name.startswith(numbers) else "left")
    return table


def _printable(text: str) -> str:
    """A text that tells a terminal nothing but letters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
