"""What a proposal guesses of tables and columns, before it is written as a policy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from kgather._guard.plan import Kind
from kgather._guard.policy import Truncation

NUMBERS: tuple[Kind, ...] = ("integer", "number")
DATES: tuple[Kind, ...] = ("date", "timestamp")


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_THINGS = words(
    "item movie film product article book song track artist album game joke shop store restaurant hotel course page "
    "sku isbn asin"
)
NAMES_ROWS = ("id", "key", "uuid", "guid", "no", "nr", "num", "number", "code", "ref", "pk", "fk", "sk")
"""Words that say of a column that its values are names of something."""
_IDS = words("id key uuid guid")
_AROUND = words("raw stg src dim fct fact facts tbl tab int base mart t v vw tmp data info master list table")
"""Words around the name of a table that do not say what its rows are."""
_PLURALS = {"people": "person", "persons": "person", "children": "child", "men": "man", "women": "woman"}


def parts_of(name: str) -> list[str]:
    """The words of a name, in small letters and in their order: of `CustomerID` customer and id, of `custkey` cust and
    key."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name))
    found = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
    return [part for word in found or [name.lower()] for part in _split(word)]


def _split(word: str) -> tuple[str, ...]:
    for end in ("uuid", "guid", "key", "id"):
        rest = word.removesuffix(end)
        if rest != word and len(rest) > 2 and (rest in _BEFORE_ID or end == "key"):
            return rest, end
    return (word,)


def singular(word: str) -> str:
    """The singular of a word, as far as its ending tells."""
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


PEOPLE = words(
    "user usr customer cust client person people patient member employee respondent student pupil subscriber visitor "
    "citizen participant rater reviewer player passenger guest donor resident voter tenant borrower policyholder "
    "applicant candidate attendee learner buyer shopper contact individual child beneficiary insured"
)
"""Words for people whom databases are about."""
_PERHAPS = words("account household subject device lead profile")
"""Words for people, or for what is nearly one, where no better word is."""
_WORKERS = words(
    "staff worker teacher instructor tutor professor lecturer doctor physician nurse clinician practitioner provider "
    "therapist actor author driver clerk operator agent officer manager salesperson rep representative coach trainer "
    "seller crew employee caregiver carer salesman surgeon dentist pharmacist pilot courier technician cashier"
    " dispatcher prescriber "
    "librarian recruiter adviser advisor consultant supervisor"
)
"""Words for people who are in databases about others: about these only where there are no others."""
_BEFORE_ID = PEOPLE | _PERHAPS | _WORKERS | _THINGS | words("order invoice account store category")


def rank_of_people(word: str) -> int:
    """How well a word stands for the people that a database is about: 3 best, 0 not at all."""
    one = singular(word)
    if one in _WORKERS:
        return 1
    return 3 if one in PEOPLE else 2 if one in _PERHAPS else 0


SAME_PEOPLE = words("user usr customer cust client member person people subscriber buyer shopper account guest")
"""Words of which one may stand for another one: orders of customers often name a user."""


class Limits(NamedTuple):
    """Round numbers between which a column's numbers lie."""

    low: Decimal
    high: Decimal


@dataclass
class Column:
    """A column with its role, and why it is hidden where that can be told.

    type: as DuckDB names it. distinct: of many values a rough number. low, high: of numbers; length: of texts, on
    average.
    """

    name: str
    kind: Kind
    distinct: int
    low: float | None = None
    high: float | None = None
    role: str = "hidden"
    why: str = ""
    type: str = ""
    nulls: bool = True
    length: float = 0.0
    grain: Truncation = "month"
    """Of dates: what they are cut to."""
    shown_by: Truncation | None = None
    """Of dates: the finest part of the calendar that has so many people that it is shown."""
    looks_up: "Reference | None" = None
    """Where its values are keys of another table."""

    @cached_property
    def parts(self) -> list[str]:
        """The words of its name, in their order."""
        return parts_of(self.name)

    @cached_property
    def words(self) -> set[str]:
        """The words of its name."""
        return set(self.parts)

    @property
    def is_name(self) -> bool:
        """Whether its values may name rows: whole numbers, texts, UUIDs."""
        return self.kind in ("integer", "text") or self.type == "UUID"

    @property
    def is_id(self) -> bool:
        """Whether its values are names of something: its own name says id, or is that of a thing, as movie; or they are
        keys of another table."""
        if not self.is_name:
            return False
        return bool(_IDS & self.words) or self.name.lower() in _THINGS or self.looks_up is not None

    @property
    def stem(self) -> tuple[str, ...]:
        """What its values name, as far as its name tells: of customer_id customer."""
        parts = self.parts
        while len(parts) > 1 and parts[-1] in NAMES_ROWS:
            parts = parts[:-1]
        return tuple(singular(part) for part in parts)


@dataclass
class Table:
    """A table with the guesses about it.

    name: as the policy names it. unit: the column that names people, None of a table that seems to be about none.
    parent: of a table that hangs on one with a unit. key: the columns that name a row. bounds, values: by column, as
    read from the data. left_out: columns some values of which too few people have. of_people: how rows of a table
    without a unit seem to be about people all the same.
    """

    name: str
    rows: int
    columns: list[Column]
    unit: Column | None = None
    grain: str = "rows"
    unique: str | None = None
    same_as: dict[str, str] = field(default_factory=dict)
    pivot: str = ""
    shown: dict[str, str] = field(default_factory=dict)
    """Of a wide table: the column -> table.column of the long one whose values it shows."""
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bounds: dict[str, Limits] = field(default_factory=dict)
    values: dict[str, tuple[bool | int | float | str, ...]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    rows_per_person: int | None = None
    of_people: str = ""
    key: tuple[str, ...] = ()
    parent: "Reference | None" = None
    view: str = ""
    """The text of a view."""
    schema: str = ""
    """Where it lies, if not in the first schema: `name` begins with it."""
    people: int = 0
    """How many people its rows are about."""
    source: str = ""
    """The relation that has its rows together with the person of each: itself, or a view of it with its parents."""
    unit_name: str = ""
    """The column of `source` that names the person."""

    def of_role(self, role: str) -> list[Column]:
        """Its columns of a role."""
        return [column for column in self.columns if column.role == role]

    def column(self, name: str) -> Column:
        """A column by name."""
        return next(column for column in self.columns if column.name == name)

    @cached_property
    def stem(self) -> tuple[str, ...]:
        """What a row of it is, as far as its name tells: of raw_customers customer."""
        parts = parts_of(self.name.rpartition(".")[2])
        first, last = 0, len(parts)
        while first < last - 1 and parts[first] in _AROUND:
            first += 1
        while last - 1 > first and parts[last - 1] in _AROUND:
            last -= 1
        return tuple(singular(part) for part in parts[first:last])


@dataclass(frozen=True)
class Reference:
    """That columns of one table hold keys of another one. columns: own column -> the other one's. declared: by a
    constraint."""

    table: str
    columns: Mapping[str, str]
    to: str
    declared: bool

    @property
    def own(self) -> Sequence[str]:
        """The columns that refer."""
        return tuple(self.columns)
