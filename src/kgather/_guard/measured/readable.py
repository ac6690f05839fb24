"""Names of measurements for people: what is counted, of which table, by which columns, under which condition.

The ledger knows a measurement by its canonical name, and nothing is looked up by those made here. They are read from
the canonical name alone, since that is what is kept of every measurement, of those that are lost, too. A name that
cannot be read stays as it is.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from kgather._guard.plan import OPERATIONS

_HEAD = re.compile(r"(\w+) of (?:(people)|rows of (.*?)): ", re.DOTALL)
_GRAIN = re.compile(r"people with several rows of (.*)", re.DOTALL)
_COLUMN = re.compile(r'"((?:[^"]|"")*)"\."((?:[^"]|"")*)"')
_NAME = re.compile(r'"((?:[^"]|"")*)"')
_TEXT = re.compile(r"'(?:[^']|'')*'")
_WORD = re.compile(r"(?:date )?[^\s()\[\],=|]+")
_OVER_ROWS = re.compile(r"(COUNT|SUM|MIN|MAX|VALUE|exists)\(")
_OPERATION = re.compile("|".join(re.escape(f"({name} ") for name in sorted(OPERATIONS, key=len, reverse=True)))
_OF_TABLE = re.compile(
    r' of (?!["(]|(?:COUNT|SUM|MIN|MAX|VALUE|exists)\()(.+?)(?= \| | \[| where | of |, at most | between |$)'
)
_NEEDS = re.compile(r" \[[^\]]*\]")
_LEFT = re.compile(
    r"(?: between (?P<low>\S+) and (?P<high>\S+?))?(?:, at most \S+ a person)?(?P<people>, people)?"
    r"(?:, up to (?P<edges>[0-9 ]+))?"
)
_MATCHES = ("like", "ilike")
_CONDITIONS = (
    *("and", "or", "not", "=", "<>", "<", "<=", "is null", "is true", "is false", "is not distinct"),
    *(*_MATCHES, "starts_with", "ends_with", "contains", "regexp_matches", "regexp_full_match"),
)
_TURNED = {"<": ">", "<=": ">=", "=": "=", "<>": "<>"}
_BETWEEN = {name: name for name in ("and", "or", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "//")} | {
    "concat": "||",
    **{name: name for name in _MATCHES},
}
"""The operations that stand between what they are about, and how they are written."""


def readable(name: str) -> str:
    """A measurement's name for people, from the name that the ledger knows it by."""
    grain = _GRAIN.fullmatch(name)
    if name.startswith("constant "):
        return "an answer, as a constant of other questions"
    if grain is not None:
        return f"whether people have several rows of {grain[1]}"
    try:
        return _told_measurement(_read(name))
    except (_Unreadable, RecursionError):
        return name


class Subject(NamedTuple):
    """What a measurement finds values or ends of. column: table and name, where it is a column, or its value in a row
    that a key names. cut: what a date is cut to, where it is a date that is cut. told: it for people."""

    column: tuple[str, str] | None
    cut: str | None
    told: str


def subject_of(name: str) -> Subject | None:
    """What a measurement finds values or ends of, from the name that the ledger knows it by. None where it cannot be
    read, or finds none."""
    try:
        expr = _subject(_read(name))
    except (_Unreadable, RecursionError):
        return None
    if expr is None:
        return None
    told, cut = _told(expr, ""), None
    if isinstance(expr, _OverRows) and expr.function == "VALUE" and expr.argument is not None:
        expr = expr.argument
    if isinstance(expr, _Operation) and expr.name == "date_trunc":
        cut, expr = _told(expr.args[0], "").strip("'"), expr.args[-1]
    return Subject((expr.table, expr.column) if isinstance(expr, _Column) else None, cut, told)


class _Unreadable(Exception):  # noqa: N818 - it is handled: the name stays as it is
    """A name is written in another way than is known here."""


class _Column(NamedTuple):
    table: str
    column: str


class _Constant(NamedTuple):
    text: str


class _Operation(NamedTuple):
    name: str
    args: "tuple[_Expr, ...]"


class _OverRows(NamedTuple):
    """Something of a person's rows of a table. argument: None of rows themselves."""

    function: str
    table: str
    argument: "_Expr | None"
    condition: "_Expr"


_Expr = _Column | _Constant | _Operation | _OverRows


class _Feature(NamedTuple):
    """What people, or rows, are told apart by. table: where it is read from, if that is not what it says itself."""

    expr: _Expr
    table: str

    def told(self, rows: str) -> str:
        """It as text. rows: the table whose columns are named without it."""
        if self.expr == _Constant("true") and self.table:
            return f"whether there is a row of {self.table}"
        condition = isinstance(self.expr, _Operation) and self.expr.name in _CONDITIONS
        if condition or (isinstance(self.expr, _OverRows) and self.expr.function == "exists"):
            return f"whether ({_told(self.expr, rows)})"
        return _told(self.expr, rows)


class _Measured(NamedTuple):
    """What a measurement's name says. rows: the table whose rows are counted, "" of people. between: the bounds of the
    argument, as text. people: whether people are counted who have such rows."""

    kind: str
    rows: str
    features: tuple[_Feature, ...]
    argument: "_Expr | None"
    between: str
    people: bool
    edges: tuple[str, ...]
    only: "_Feature | None" = None
    """The condition of the rows that are read."""


def _read(name: str) -> _Measured:
    head = _HEAD.match(name)
    if head is None:
        raise _Unreadable
    return _Parser(name, head.end()).measurement(head[1], head[3] or "")


def _told_measurement(one: _Measured) -> str:
    rows, found = one.rows, _subject(one)
    of_rows = f"rows of {rows}" + (f" where {_told(one.only.expr, rows)}" if one.only is not None else "")
    who = f"people with {of_rows}" if one.people else of_rows if rows else "people"
    by = f" by {' and '.join(feature.told(rows) for feature in one.features)}" if one.features else ""
    among = f" in rows of {rows}" if rows else ""
    value = "" if one.argument is None else _told(one.argument, rows) + one.between
    if one.kind == "people":
        return "how many people there are"
    if one.kind == "rows" and one.edges:
        steps = f"up to {one.edges[0]}, or more" if len(one.edges) == 1 else f"{', '.join(one.edges[:3])} and so on"
        return f"how many {of_rows} people have ({steps})"
    if one.kind == "counts":
        return f"{who}{by}"
    if one.kind == "sums":
        return f"sum of {value} over {who}{by}"
    if one.kind == "bins":
        return f"{who}{by}, in bins of {value}"
    if found is None:
        raise _Unreadable
    told = _told(found, rows)
    if one.kind == "keyed":
        return f"the values of {told}{among}, with the sum of {value} by each"
    return f"{_FINDS[one.kind]} of {told}{among}"


_FINDS = {"keys": "the values", "magnitudes": "the size", "spread": "the ends"}


def _subject(one: _Measured) -> "_Expr | None":
    """What values or ends are found of."""
    if one.kind == "magnitudes":
        return one.argument
    if one.kind in ("keys", "keyed") and one.features:
        return one.features[0].expr
    return _unbinned(one.features[0].expr) if one.kind == "spread" and one.features else None


@dataclass
class _Parser:
    """Reads a canonical name from a place on."""

    text: str
    at: int

    def measurement(self, kind: str, rows: str) -> "_Measured":
        """The rest of a measurement's name."""
        features: list[_Feature] = []
        while not features or self._takes(" | "):
            if not features and self._is_rest():
                break
            features.append(self.feature())
        only = self.feature() if self._takes(" where ") else None
        argument = self.feature().expr if self._takes(" of ") else None
        rest = _LEFT.fullmatch(self.text, self.at)
        if rest is None:
            raise _Unreadable
        between = "" if rest["low"] is None else f" between {_number(rest['low'])} and {_number(rest['high'])}"
        edges = tuple((rest["edges"] or "").split())
        return _Measured(kind, rows, tuple(features), argument, between, rest["people"] is not None, edges, only)

    def feature(self) -> _Feature:
        """A feature with what it is read by."""
        expr = self.expression()
        self._lookups()
        table = _OF_TABLE.match(self.text, self.at)
        self.at = table.end() if table is not None else self.at
        needs = _NEEDS.match(self.text, self.at)
        self.at = needs.end() if needs is not None else self.at
        return _Feature(expr, table[1] if table is not None else "")

    def expression(self) -> _Expr:
        """An expression in its normal form."""
        column = _COLUMN.match(self.text, self.at)
        if column is not None:
            self.at = column.end()
            return _Column(_unquoted(column[1]), _unquoted(column[2]))
        over = _OVER_ROWS.match(self.text, self.at)
        if over is not None:
            self.at = over.end()
            return self._over_rows(over[1])
        operation = _OPERATION.match(self.text, self.at)
        if operation is not None:
            self.at = operation.end()
            args = [self.expression()]
            while self._takes(" "):
                args.append(self.expression())
            self._expect(")")
            return _Operation(operation[0][1:-1], tuple(args))
        constant = _TEXT.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if constant is None:
            raise _Unreadable
        self.at = constant.end()
        return _Constant(constant[0].removeprefix("date "))

    def _over_rows(self, function: str) -> _OverRows:
        argument: _Expr | None = None
        if function != "exists":
            if not self._takes("*"):
                argument = self.expression()
            self._expect(", ")
        table = _NAME.match(self.text, self.at)
        if table is None:
            raise _Unreadable
        self.at = table.end()
        self._expect(", ")
        condition = self.expression()
        while self._takes(", "):
            self._equalities()
            if not (self._takes(" True") or self._takes(" False")):
                raise _Unreadable
        self._expect(")")
        return _OverRows(function, _unquoted(table[1]), argument, condition)

    def _lookups(self) -> None:
        """Public tables that are read on the way: their columns' names say so."""
        while self.text.startswith(', "', self.at):
            self.at += 2
            self._equalities()

    def _equalities(self) -> None:
        self._equality()
        while self._takes(" & "):
            self._equality()

    def _equality(self) -> None:
        self.expression()
        self._expect("=")
        self.expression()

    def _is_rest(self) -> bool:
        """Whether no feature comes: what does begins as what stands behind features."""
        rest = self.text[self.at :]
        return not rest or rest.startswith((" where ", " of ", " between ", ", "))

    def _takes(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise _Unreadable


_OF_ROWS = {"COUNT": "number", "COUNT_DISTINCT": "number of different values", "MIN": "least", "MAX": "greatest"}


def _told(expr: _Expr, rows: str) -> str:
    """An expression as text. rows: the table whose columns are named without it."""
    if isinstance(expr, _Column):
        return expr.column if expr.table == rows else f"{expr.table}.{expr.column}"
    if isinstance(expr, _Constant):
        return expr.text
    if isinstance(expr, _OverRows):
        where = "" if expr.condition == _Constant("true") else f" where {_told(expr.condition, expr.table)}"
        if expr.function == "exists":
            return f"there is a row of {expr.table}{where}"
        if expr.function == "VALUE" and expr.argument is not None:
            return f"{_told(expr.argument, rows)}{where}"
        if expr.argument is None:
            return f"number of rows of {expr.table}{where}"
        of = _OF_ROWS.get(expr.function, "sum")
        return f"{of} of {_told(expr.argument, rows)}{where}"
    return _told_operation(expr, rows)


def _told_operation(expr: _Operation, rows: str) -> str:
    clipped = _clipped(expr)
    if clipped is not None:
        return _told(clipped, rows)
    if expr.name in _TURNED and isinstance(expr.args[0], _Constant):
        expr = _Operation(_TURNED[expr.name], expr.args[::-1])
    args = [_told(arg, rows) for arg in expr.args]
    nested = [f"({told})" if _is_wide(arg) else told for arg, told in zip(expr.args, args, strict=True)]
    if expr.name in _BETWEEN:
        return f" {_BETWEEN[expr.name]} ".join(nested)
    if expr.name == "measure":
        return args[0]
    if expr.name == "is not distinct":
        return " is not distinct from ".join(nested)
    if expr.name == "is true":
        return args[0]
    if expr.name in ("is null", "is false"):
        return f"{nested[0]} {expr.name}"
    if expr.name == "not":
        (arg,) = expr.args
        if isinstance(arg, _Operation) and arg.name == "is null":
            return f"{_told(arg.args[0], rows)} is not null"
        return f"not {nested[0]}"
    if expr.name == "neg":
        return f"-{nested[0]}"
    if expr.name in ("date_trunc", "date_part") and len(args) == 2:
        return f"{args[0].strip(chr(39))} of {_told(_whole_date(expr.args[1]), rows)}"
    if expr.name == "strftime" and len(args) == 2:
        return f"strftime({_told(_whole_date(expr.args[0]), rows)}, {args[1]})"
    if expr.name == "case":
        whens = "".join(f" when {args[at]} then {args[at + 1]}" for at in range(0, len(args) - 1, 2))
        return f"case{whens} else {args[-1]} end"
    return f"{expr.name}({', '.join(args)})"


def _whole_date(expr: _Expr) -> _Expr:
    """A date, of one that is cut to a grain of which more is told."""
    if isinstance(expr, _Operation) and expr.name == "date_trunc" and len(expr.args) == 2:
        return expr.args[1]
    return expr


def _clipped(expr: _Operation) -> _Expr | None:
    """What is cut off at bounds, of an expression that does it, and leaves NULL as it is."""
    if expr.name != "case" or len(expr.args) != 3 or expr.args[1] != _Constant("null"):
        return None
    when, _, number = expr.args
    if not (isinstance(when, _Operation) and when.name == "is null"):
        return None
    for name in ("least", "greatest"):
        if not (isinstance(number, _Operation) and number.name == name and len(number.args) == 2):
            return None
        number = next((arg for arg in number.args if not isinstance(arg, _Constant)), number)
    return number if (number,) == when.args else None


def _is_wide(expr: _Expr) -> bool:
    if isinstance(expr, _Operation) and _clipped(expr) is not None:
        return False
    if isinstance(expr, _OverRows):
        return True
    if isinstance(expr, _Operation) and expr.name == "measure":
        return _is_wide(expr.args[0])
    return isinstance(expr, _Operation) and expr.name in (*_BETWEEN, "is not distinct", "is true", "not")


def _unbinned(expr: _Expr) -> _Expr:
    """What is put into bins, of an expression that says into which."""
    for name in ("floor", "/", "-"):
        if not (isinstance(expr, _Operation) and expr.name == name):
            raise _Unreadable
        expr = expr.args[0]
    return expr


def _number(text: str) -> str:
    try:
        return f"{float(text):.10g}"
    except ValueError:
        raise _Unreadable from None


def _unquoted(text: str) -> str:
    return text.replace('""', '"')
