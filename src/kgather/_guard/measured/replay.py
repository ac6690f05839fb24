"""Gives answers again from the ledger alone, and compares them with the checksums of the audit log.

It is the strongest test of the guarantee: whatever was told follows from stored measurements, as they were when it was
told. The database is opened for public tables only, and only where they are still those that were read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._guard.apart import Apart
from kgather._guard.audit_log import digest, valued
from kgather._guard.catalog import Catalog
from kgather._guard.constants import all_inner
from kgather._guard.deadline import Deadline
from kgather._guard.measured.answering import Answered, Answering
from kgather._guard.measured.grid import Scratch
from kgather._guard.measured.kinds import kinds_of
from kgather._guard.measured.ledger import LOST, Ledger
from kgather._guard.measured.measuring import Session
from kgather._guard.measured.public import PublicTables
from kgather._guard.measured.terms import read
from kgather._guard.plan import Local, Plan
from kgather._guard.planner import plan
from kgather._guard.refused import Refused, Rule
from kgather._guard.warehouse import Warehouse

Entry = Mapping[str, Any]
_MINUTES = 10 * 60_000  # an answer that took long is given again, on a slower machine, too


class Unrepeatable(Exception):  # noqa: N818 - it is told as a result
    """Why an entry cannot be given again, as a clause."""


@dataclass(frozen=True)
class Repeated:
    """An entry of the audit log, given again. result: whether it is the same; why: what differs, or is missing, as a
    clause."""

    entry: Entry
    result: Literal["agrees", "disagrees", "cannot be replayed"]
    why: str = ""


@dataclass(frozen=True)
class Answer:
    """An answer, given again. blocks: of each GROUP BY over protected rows, by its name."""

    made: Plan
    blocks: Mapping[str, Answered]
    table: pa.Table


@dataclass
class Replay:
    """Gives answers again. ledger: is read once. warehouse: where public tables are; it need not be there."""

    ledger: Ledger
    warehouse: Warehouse
    memory: str = "1GB"
    _apart: Apart = field(default_factory=Apart)
    _scratch: Scratch = field(default_factory=Scratch)
    _catalogs: dict[str, Catalog] = field(default_factory=dict)
    _tables: dict[str, PublicTables] = field(default_factory=dict)
    _known: dict[str, Repeated] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._id = self.ledger.state()["id"]
        self._terms = self.ledger.terms()
        self._measurements = self.ledger.measurements()

    def entries(self, log: Iterator[Entry]) -> Iterator[Entry]:
        """The entries that were answered, or refused, from this ledger."""
        return (entry for entry in log if self.is_own(entry))

    def is_own(self, entry: Entry) -> bool:
        """Whether an entry was answered, or refused, from this ledger."""
        return _is_measured(entry) and entry.get("ledger") == self._id

    def is_of_another(self, entry: Entry) -> bool:
        """Whether an entry was answered, or refused, from another ledger, such as one before this one."""
        return _is_measured(entry) and entry.get("ledger") != self._id

    def repeated(self, entry: Entry) -> Repeated:
        """An entry of this ledger, given again."""
        parts = ("text", "values", "principal", "terms", "version", "measurements", "public", "answer", "code")
        place = repr([entry.get(part) for part in parts]) + str(self._is_lost(entry)) + str(entry.get("at"))[:10]
        if place not in self._known:
            self._known[place] = self._repeated(entry)
        return Repeated(entry, self._known[place].result, self._known[place].why)

    def _repeated(self, entry: Entry) -> Repeated:
        try:
            answer = self.answer(entry)
        except Unrepeatable as why:
            return Repeated(entry, "cannot be replayed", str(why))
        except Refused as refusal:
            told = (entry.get("code"), entry.get("rule"))
            if entry["decision"] == "refused" and told == (refusal.code, str(refusal.rule)):
                return Repeated(entry, "agrees")
            return Repeated(entry, "disagrees", f"the ledger gives a refusal ({refusal.rule})")
        if entry["decision"] == "refused":
            return Repeated(entry, "disagrees", f"it was refused ({entry.get('rule')}), and the ledger gives an answer")
        if digest(answer.table) != entry.get("answer"):
            return Repeated(entry, "disagrees", "the ledger gives another answer")
        return Repeated(entry, "agrees")

    def answer(self, entry: Entry) -> Answer:
        """The answer to an entry. Raises Unrepeatable, and Refused where that is the answer."""
        catalog = self._catalog(entry)
        position = int(entry["measurements"])
        if position > len(self._measurements):
            told = f"the ledger has {len(self._measurements)} measurements, and it was made of {position}"
            raise Unrepeatable(told)
        if self._is_lost(entry):
            told = "measurements it was made of are lost: the ledger was restored from an older copy"
            raise Unrepeatable(told)
        if entry.get("rule") == str(Rule.LIMITS) and "reason" not in entry:
            told = "it was ended as it took too long, or too much memory"
            raise Unrepeatable(told)
        public = self._checked_public(entry)
        made = plan(
            entry["text"],
            catalog,
            valued(entry.get("values", [])),
            catalog.policy.limits_of(entry["principal"]),
            today=date.fromisoformat(str(entry["at"])[:10]),
        )
        if isinstance(made, Local):
            told = "it asks nothing of the ledger"
            raise Unrepeatable(told)
        kinds = kinds_of(catalog, self.warehouse)
        session = Session(
            kinds,
            next(iter(kinds)),
            self.ledger,
            _no_noise,
            int(entry["version"]),
            "",
            self._measurements[:position],
            fixed=True,
        )
        session.of_public = public if entry.get("public") else None
        answering = Answering(session, self._scratch)
        self._check_constants(made, session)
        made = answering.resolved(made)
        blocks = answering.blocks(made)
        relations = {name: of.table for name, of in blocks.items()}
        with Deadline(_MINUTES) as deadline:
            if made.public:
                relations |= public.read(made.public, deadline)
            return Answer(made, blocks, self._apart.run(made.sql, relations, self.memory, deadline))

    def _check_constants(self, made: Plan, session: Session) -> None:
        """See to it that answers which are constants of others follow from what was measured before them."""
        for inner in all_inner(made):
            kept = session.constant(inner.name)
            if kept is None:
                continue  # the answer, or refusal, shows what is missing
            at = next(at for at, one in enumerate(session.known) if one.name == inner.name)
            before = session.alone(known=session.known[:at])
            if Answering(before, self._scratch).rows(inner, before) != kept:
                told = f"{inner.name} does not follow from what was measured before it"
                raise Unrepeatable(told)

    def _catalog(self, entry: Entry) -> Catalog:
        named = str(entry.get("terms"))
        if named not in self._catalogs:
            if named not in self._terms:
                told = "the ledger does not have the policy that it was given under"
                raise Unrepeatable(told)
            self._catalogs[named] = read(self._terms[named])
        return self._catalogs[named]

    def _is_lost(self, entry: Entry) -> bool:
        """Whether a measurement that there was then is lost now."""
        before = self._measurements[: int(entry["measurements"])]
        return any(one.kind == LOST and one.made_at > entry["at"] for one in before)

    def _checked_public(self, entry: Entry) -> PublicTables:
        public = self._public(str(entry.get("terms")))
        for name, checksum in entry.get("public", {}).items():
            try:
                same = public.checksum(name) == checksum
            except InputError:
                told = f"the public table {name} cannot be read now"
                raise Unrepeatable(told) from None
            if not same:
                told = f"the public table {name} is another one now"
                raise Unrepeatable(told)
        return public

    def _public(self, terms: str) -> PublicTables:
        if terms not in self._tables:
            self._tables[terms] = PublicTables(self.warehouse, self._catalogs[terms], self.memory)
        return self._tables[terms]


def _is_measured(entry: Entry) -> bool:
    """Whether an entry was answered, or refused, from a ledger of mode measured; others were refused by their text."""
    return entry.get("version") is not None and entry.get("ledger") is not None


def told_others(number: int) -> str:
    """What to say of entries that are of another ledger."""
    one = number == 1
    return (
        f"{number:,} {'entry' if one else 'entries'} of the audit log {'is' if one else 'are'} of another ledger, and "
        f"{'is' if one else 'are'} not repeated: what was told from that one adds to what is told from this one."
    )


def _no_noise(count: int, sd: float) -> NDArray[np.int64]:
    msg = f"a replay draws no noise ({count} numbers, {sd:g})"
    raise AssertionError(msg)
