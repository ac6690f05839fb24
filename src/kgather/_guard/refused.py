"""What the guard says when it does not answer.

A refusal is static (decided by the statement and the policy alone: it says which construct, where, and what would
be allowed) or data-dependent: one message and one code, whatever the data were.
"""

from enum import StrEnum

from sqlglot import exp

from kgather._errors import KgatherError
from kgather._guard.sql_names import said_in_sql

SYNTAX = "42601"
"""The text is no statement of SQL."""
UNKNOWN_TABLE = "42P01"
UNKNOWN_COLUMN = "42703"
AMBIGUOUS = "42702"
NOT_SUPPORTED = "0A000"
"""A construct that is in no allow-list."""
NOT_PERMITTED = "42501"
"""A construct that is understood and that the policy does not permit."""
TOO_COMPLEX = "54001"
PARAMETERS = "07001"
"""The parameters do not fit the statement."""
TOO_FEW = "KG001"
"""Decided by the data: fewer than k users, none among them."""
BUDGET = "KG002"
"""The budget of the ledger does not pay for what would have to be measured."""

TOO_FEW_MESSAGE = (
    "Too few people are asked about, or noise hides how many there are. Ask about more people: with fewer conditions, "
    "or wider ones."
)
"""One text for all causes: it does not tell nobody from few, nor few from noise."""


class Rule(StrEnum):
    """What decides: each has fixtures of its name."""

    STATEMENT = "statement"
    LIMITS = "limits"
    PARAMETERS = "parameters"
    NODES = "nodes"
    TABLES = "tables"
    NAMES = "names"
    HIDDEN = "hidden"
    UNIT = "unit"
    RAW_ROWS = "raw_rows"
    SUBQUERIES = "subqueries"
    SET_OPERATIONS = "set_operations"
    DISTINCT = "distinct"
    LIMIT = "limit"
    WINDOWS = "windows"
    HAVING = "having"
    MARGINS = "margins"
    JOINS = "joins"
    CONDITIONS = "conditions"
    KEYS = "keys"
    AGGREGATES = "aggregates"
    ARGUMENTS = "arguments"
    PER_UNIT = "per_unit"
    RESULTS = "results"
    WITNESS = "witness"
    BUDGET = "budget"
    TOO_FEW = "too_few"


class Refused(KgatherError):  # noqa: N818 - a refusal is an answer, too
    """The guard does not answer this statement.

    static: decided without touching the data. reason: the sentence for the analyst; it quotes nothing but the
    analyst's own text and the policy. code: five characters, as SQLSTATE. rule: the rule that decided. position: the
    character of the text where the construct begins, counted from 1, where that is known.
    """

    exit_code = 4

    position: int | None = None
    hint: str | None = None
    """The part of the reason that says what to do instead."""

    def __init__(self, reason: str, *, code: str = NOT_SUPPORTED, rule: Rule, static: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.rule = rule
        self.static = static

    @property
    def sentence(self) -> str:
        """The reason without the hint."""
        return self.reason if self.hint is None else self.reason.removesuffix(f" {self.hint}")

    @classmethod
    def too_few(cls) -> "Refused":
        """The one refusal that the data decide: the same for no user and for k - 1."""
        return cls(TOO_FEW_MESSAGE, code=TOO_FEW, rule=Rule.TOO_FEW, static=False)


def refused(
    rule: Rule, reason: str, node: exp.Expr | None = None, *, allow: str = "", code: str = NOT_SUPPORTED
) -> Refused:
    """Build a static refusal: the reason, where in the text, and what to do or which policy entry would allow it. A
    reason may begin with the parser's name of the node, or of a part of it: SQL's word is told instead."""
    where = place(node)
    sentence = f"{said_in_sql(reason, node)}{where}."
    made = Refused(f"{sentence} {allow}." if allow else sentence, code=code, rule=rule)
    made.hint = f"{allow}." if allow else None
    first = _first(node)
    made.position = first.meta["start"] + 1 if first is not None else None
    return made


def place(node: exp.Expr | None) -> str:
    """Say where a node stands: ` (line 1, column 8)`, or nothing where the parser kept no position."""
    first = _first(node)
    if first is None:
        return ""
    meta = first.meta
    return f" (line {meta['line']}, column {max(meta['col'] - (meta['end'] - meta['start']), 1)})"


def _first(node: exp.Expr | None) -> exp.Expr | None:
    """The part of a node that stands first in the text, None where the parser kept no position."""
    placed = [part for part in node.walk() if part.meta.get("start") is not None] if node is not None else []
    return min(placed, key=lambda part: part.meta["start"], default=None)
