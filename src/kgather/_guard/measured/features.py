"""What a question asks of one person's record, or of one row, as conditions and keys over a few features.

A feature is a function of the record (a column of a table with one row a person, whether a row exists, a count of
rows, the value of the one row that a key names) or, where rows are counted, of a row and its person's record. Questions
about the rows of a long table that name one value of its unique key are questions about people: each has one such row
at most.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kgather._guard.canonical import canonical, lookup_text, normal
from kgather._guard.catalog import Catalog
from kgather._guard.measured.coarser import coarser
from kgather._guard.measured.source import source_of
from kgather._guard.plan import (
    MEASURE,
    NUMERIC,
    TRUE,
    Bound,
    Exists,
    Expr,
    Kind,
    Literal,
    Lookup,
    Op,
    PerUnit,
    Question,
    bounds,
    conjunction,
    conjuncts,
)
from kgather._guard.policy import fold

SYMBOLS = "kg_feature"
"""The table of the columns that stand for features in an `Asked`."""
_PARTS_OF_TEXTS = ("substring", "left", "right", "length", "split_part", "regexp_extract", "strpos")
SPAN = 256
"""How many whole numbers between two bounds are told apart one by one."""
PRESENT = "present"
"""The operation that tells whether a feature has a row to be read from."""


@dataclass(frozen=True)
class Feature:
    """A function of a record or of a row.

    expr: in normal form. lookups: public tables read on the way. table: where it is read from, a table with one row a
    person or a public one; a record without such a row is in a class of its own. None: it is read from what always is
    there. An expr of TRUE tells whether there is a row in `table`. needs: tables that the record must have rows in, or
    else a condition is false, whatever it says; of conditions that are features themselves.
    """

    expr: Expr
    lookups: tuple[Lookup, ...] = ()
    table: str | None = None
    needs: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.expr.kind

    @cached_property
    def name(self) -> str:
        """What it is known by in the ledger: equal names mean the same on any data."""
        read = "".join(f", {lookup_text(entry)}" for entry in self.lookups)
        of = "" if self.table is None or isinstance(self.expr, Bound) else f" of {self.table}"
        needed = f" [{' '.join(self.needs)}]" if self.needs else ""
        return f"{canonical(self.expr)}{read}{of}{needed}"

    @property
    def row(self) -> PerUnit | None:
        """The row that a key names, where it is read from one."""
        found = [base for base in bases(self.expr) if isinstance(base, PerUnit) and base.function == "VALUE"]
        return found[0] if len(found) == 1 and self.table is None and not self.needs else None

    @property
    def may_be_absent(self) -> bool:
        """Whether some records may have no row to read it from."""
        return not self.needs and (self.table is not None or self.row is not None)


@dataclass(frozen=True)
class Asked:
    """A question over features. rows: the long table whose rows are counted; None: people are. condition and keys:
    over columns of SYMBOLS, named by their places in `features`. present: places of features that must have a row."""

    rows: str | None
    features: tuple[Feature, ...]
    condition: Expr
    keys: tuple[Expr, ...]
    present: tuple[int, ...] = ()

    def whole(self, condition: Expr, present: tuple[int, ...] = ()) -> Feature:
        """A condition as one feature, which is true or false. present: as of the question."""
        return as_feature(condition, self.features, present)


def asked(question: Question, catalog: Catalog) -> Asked:
    """What a question asks, over features. Pure: nothing is read."""
    question = _of_people(question, catalog)
    universe = question.universe
    rows = universe.table if universe.kind == "rows" else None
    there = _all_have(rows, catalog)
    condition = normal(_rewritten(_without(question.condition, there), catalog))
    keys = tuple(normal(_rewritten(key, catalog)) for key in question.keys)
    condition, keys = coarser(condition, keys)
    required = {entry.table for entry in universe.references if entry.required}
    required |= {entry.right.table for entry in universe.lookups if entry.required}
    builder = _Builder(catalog, rows, universe.lookups)
    whole = {key for key in keys if _is_one_feature(key, catalog)}
    parts = {one for expr in (condition, *(key for key in keys if key not in whole)) for one in bases(expr)}
    for base in sorted(whole | parts, key=canonical):
        builder.add(base)
    always = _always_there(catalog)
    present = []
    for table in sorted(required):
        if table == always:
            continue
        at = builder.place_of(table)
        if at is None:
            at = builder.add_presence(table)
        present.append(at)
    places = builder.places

    def symbol(expr: Expr) -> Expr:
        if isinstance(expr, Exists):  # whether there is the row that another feature is read from
            at = builder.row_of(expr)
            if at is not None:
                return Op(PRESENT, (_symbol(at, builder.features[at].kind),))
        at = places.get(expr)
        return _over(expr, symbol) if at is None else _symbol(at, expr.kind)

    return Asked(rows, tuple(builder.features), symbol(condition), tuple(symbol(key) for key in keys), tuple(present))


def _all_have(rows: str | None, catalog: Catalog) -> Exists | None:
    """The existence of a row that everybody who is asked about has."""
    protected = [info.name for info in catalog.tables.values() if info.protected]
    table = rows or (protected[0] if len(protected) == 1 else None)
    return Exists(table, TRUE) if table is not None else None


def _without(expr: Expr, there: Exists | None) -> Expr:
    return TRUE if expr == there else _over(expr, lambda arg: _without(arg, there))


def _is_one_feature(key: Expr, catalog: Catalog) -> bool:
    """Whether a key is a feature as it is written: the values that it is computed from may be too many to tell apart,
    such as how many rows somebody has, or an income that is cut into steps, or it may be of many columns."""
    if not isinstance(key, Op) or key.name == "date_trunc":
        return False
    if key.name == MEASURE:
        return True
    found = set(bases(key))
    if key.name in ("date_part", "strftime") and any(is_fine_date(base) for base in found):
        return True  # there are few years, and many days
    if key.name in _PARTS_OF_TEXTS and not all(_is_listed(base, catalog) for base in found):
        return True  # there are few beginnings, and may be many texts
    made = {base.args[-1] if isinstance(base, Op) and base.name == "date_trunc" else base for base in found}
    counted = any(isinstance(base, PerUnit) and base.function != "VALUE" for base in made)
    if counted or len(found) > 2 or (bool(found) and all(_is_fine(base, catalog) for base in found)):
        return True
    if keeps_apart(key) or (key.name in ("date_part", "strftime") and all(isinstance(base, Op) for base in found)):
        return False
    # Values that are not told apart would be in none of its groups.
    return not all(_is_closed(base, catalog) for base in found)


def keeps_apart(expr: Expr) -> bool:
    """Whether different values of what an expression is made of make different ones of it, so that its groups are
    theirs: as of a column with a constant added."""
    if isinstance(expr, Bound):
        return True
    if not isinstance(expr, Op):
        return False
    parts = [arg for arg in expr.args if not isinstance(arg, Literal)]
    if expr.name == "date_trunc":
        return isinstance(parts[0], Bound)
    if expr.name not in ("coalesce", "concat", "text", "+", "-", "neg", "moved") or len(parts) != 1:
        return False
    by_months = expr.name == "moved" and expr.args[2] == Literal("month", "text")
    return keeps_apart(parts[0]) and not (by_months and is_fine_date(parts[0]))  # months end on different days


def _is_closed(base: Expr, catalog: Catalog) -> bool:
    """Whether everybody is in a class of a value, by type, policy or public tables, and nobody among others."""
    if base.kind == "boolean" or _is_listed(base, catalog):
        return True
    source = source_of(base, catalog)
    ends = source.bounds if source is not None else None
    return base.kind == "integer" and ends is not None and ends[1] - ends[0] < SPAN


def _is_fine(base: Expr, catalog: Catalog) -> bool:
    """Whether values are numbers of which the policy neither lists any, nor says that they are a few whole ones."""
    if not isinstance(base, Bound) or base.kind not in NUMERIC:
        return False
    source = source_of(base, catalog)
    if source is None or not source.table.protected or source.values is not None:
        return False
    ends = source.bounds
    return base.kind == "number" or (ends is not None and ends[1] - ends[0] >= SPAN)


def _is_listed(base: Expr, catalog: Catalog) -> bool:
    """Whether the policy lists the values of a column, or public tables have them."""
    source = source_of(base, catalog) if isinstance(base, Bound) else None
    return source is not None and (not source.table.protected or source.values is not None)


def is_fine_date(expr: Expr) -> bool:
    """Whether an expression is a date by days or weeks, of which there are many."""
    if not isinstance(expr, Op) or expr.name != "date_trunc":
        return False
    return expr.args[0] in (Literal("day", "text"), Literal("week", "text"))


def _symbol(at: int, kind: Kind) -> Bound:
    return Bound(SYMBOLS, str(at), kind)


def as_feature(condition: Expr, features: tuple[Feature, ...], present: tuple[int, ...] = ()) -> Feature:
    """A condition over features as a feature of its own, true or false. present: features that must have a row."""
    read = {*present, *symbols(condition)}
    lookups = {entry.right.table: entry for at in sorted(read) for entry in features[at].lookups}
    needs = [features[at].table for at in present]
    rows = [features[at].row for at in present]
    exists = [Exists(row.table, row.condition) for row in rows if row is not None]
    whole = conjunction([*conjuncts(_with_expressions(condition, features)), *exists])
    tables = tuple(sorted({table for table in needs if table is not None}))
    return Feature(normal(Op("is true", (whole,))), tuple(lookups.values()), None, tables or ("",))


def _with_expressions(expr: Expr, features: tuple[Feature, ...]) -> Expr:
    """An expression with the features' own expressions in their places."""
    if isinstance(expr, Bound) and expr.table == SYMBOLS:
        return features[int(expr.column)].expr
    if isinstance(expr, Op) and expr.name == PRESENT:
        (at,) = symbols(expr)
        row = features[at].row
        assert row is not None, "other features are present by their tables"
        return Exists(row.table, row.condition)
    return _over(expr, lambda arg: _with_expressions(arg, features))


def symbols(expr: Expr) -> set[int]:
    """The places of the features that an expression of an `Asked` reads."""
    if isinstance(expr, Bound):
        return {int(expr.column)}
    return set().union(*(symbols(arg) for arg in expr.args)) if isinstance(expr, Op) else set()


def bases(expr: Expr) -> Iterator[Expr]:
    """What an expression is made of that is no operation and no constant; a date is what it is cut to."""
    if isinstance(expr, Op) and expr.name not in ("date_trunc", MEASURE):
        for arg in expr.args:
            yield from bases(arg)
    elif not isinstance(expr, Literal):
        yield expr


class _Builder:
    """Gathers the features of one question."""

    def __init__(self, catalog: Catalog, rows: str | None, lookups: tuple[Lookup, ...]) -> None:
        self.catalog = catalog
        self.rows = rows
        self.lookups = {entry.right.table: entry for entry in lookups}
        self.features: list[Feature] = []
        self.places: dict[Expr, int] = {}

    def add(self, base: Expr) -> None:
        if isinstance(base, Exists) and self.row_of(base) is not None:
            return
        self.places[base] = len(self.features)
        self.features.append(self._feature(base))

    def row_of(self, exists: Exists) -> int | None:
        """The feature that is read from the row whose existence is asked for."""
        for at, feature in enumerate(self.features):
            row = feature.row
            if row is not None and (row.table, row.condition) == (exists.table, exists.condition):
                return at
        return None

    def place_of(self, table: str) -> int | None:
        """The place of a feature that is read from a table."""
        return next((at for at, feature in enumerate(self.features) if feature.table == table), None)

    def add_presence(self, table: str) -> int:
        self.features.append(Feature(TRUE, self._path(table), table))
        return len(self.features) - 1

    def _feature(self, base: Expr) -> Feature:
        if isinstance(base, Op) and base.name != "date_trunc":
            inner = base.args[0] if base.name == MEASURE else base
            tables = {bound.table for bound in bases(inner) if isinstance(bound, Bound)}
            lookups = {entry.right.table: entry for table in sorted(tables) for entry in self._path(table)}
            return Feature(base, tuple(lookups.values()))
        column = base.args[-1] if isinstance(base, Op) else base
        if isinstance(column, Bound) and column.table != self.rows:
            always = column.table == _always_there(self.catalog)
            return Feature(base, self._path(column.table), None if always else column.table)
        return Feature(base)

    def _path(self, table: str) -> tuple[Lookup, ...]:
        """The lookups that lead to a public table, the first one first."""
        path: list[Lookup] = []
        while table in self.lookups:
            entry = self.lookups[table]
            path.insert(0, replace(entry, required=False))
            table = entry.left.table
        return tuple(path)


def _always_there(catalog: Catalog) -> str | None:
    """The table that has a row of every person because there is no other."""
    protected = [info for info in catalog.tables.values() if info.protected]
    return protected[0].name if len(protected) == 1 and protected[0].grain == "unit" else None


def _over(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    if isinstance(expr, Op):
        return Op(expr.name, tuple(change(arg) for arg in expr.args), expr.kind)
    return expr


# Rows that a key names


def _of_people(question: Question, catalog: Catalog) -> Question:
    """A question about rows of which a person has one at most, as one about people."""
    universe = question.universe
    if universe.kind != "rows" or universe.table is None:
        return question
    pin = _pin(question.condition, universe.table, catalog)
    if pin is None:
        return question
    table = universe.table
    inner = tuple(entry for entry in universe.lookups if _leads_to(entry, table, universe.lookups))
    value = _values_of(table, pin, inner)
    rest = [part for part in conjuncts(question.condition) if part != pin]
    condition = conjunction([Exists(table, pin), *(_over_values(part, value) for part in rest)])
    for entry in inner:
        if entry.required:  # there has to be a row in the public table, too
            there = Op("not", (Op("is null", (_over_values(entry.right, value),)),))
            condition = conjunction([*conjuncts(condition), there])
    outer = tuple(entry for entry in universe.lookups if entry not in inner)
    keys = tuple(_over_values(key, value) for key in question.keys)
    people = type(universe)("unit", None, universe.references, outer)
    return Question(people, condition, keys)


def _leads_to(entry: Lookup, table: str, lookups: tuple[Lookup, ...]) -> bool:
    """Whether a lookup begins at a table."""
    start = entry.left.table
    while start != table:
        before = next((other for other in lookups if other.right.table == start), None)
        if before is None:
            return False
        start = before.left.table
    return True


def _pin(condition: Expr, table: str, catalog: Catalog) -> Expr | None:
    """The equality by which a condition names one row of each person."""
    info = catalog.table(table)
    unique = catalog.unique(info) if info is not None else None
    if info is None or unique is None:
        return None
    for part in conjuncts(condition):
        if isinstance(part, Op) and part.name == "=":
            for one, other in (part.args, part.args[::-1]):
                if (
                    isinstance(one, Bound)
                    and one.table == info.name
                    and fold(one.column) == fold(unique)
                    and isinstance(other, Literal)
                    and other.value is not None
                ):
                    return part
    return None


def _values_of(table: str, pin: Expr, lookups: tuple[Lookup, ...]) -> Callable[[Bound | Exists], Expr]:
    beside = {table, *(entry.right.table for entry in lookups)}

    def value(bound: Bound | Exists) -> Expr:
        if isinstance(bound, Exists):  # of the row that the key names
            return Exists(table, conjunction([normal(pin), bound])) if bound.by[0][0].table == table else bound
        if bound.table not in beside:
            return bound
        used = lookups if bound.table != table else ()
        return PerUnit("VALUE", table, bound, normal(pin), bound.kind, used)

    return value


def _over_values(expr: Expr, value: Callable[[Bound | Exists], Expr]) -> Expr:
    if isinstance(expr, Bound) or (isinstance(expr, Exists) and expr.by):
        return value(expr)
    return _over(expr, lambda arg: _over_values(arg, value))


def _rewritten(expr: Expr, catalog: Catalog) -> Expr:
    """Facts of one row of a person in the form in which other questions name them, too: the column of a declared pivot,
    or the row's value."""
    if isinstance(expr, Exists):
        return expr if expr.by else _existence(expr, catalog)
    if isinstance(expr, PerUnit) and expr.function == "VALUE":
        return _pivoted(expr, catalog) or expr
    return _over(expr, lambda arg: _rewritten(arg, catalog))


def _existence(expr: Exists, catalog: Catalog) -> Expr:
    pin = _pin(expr.condition, expr.table, catalog)
    if pin is None or expr.lookups or any(isinstance(base, Exists | PerUnit) for base in bases(expr.condition)):
        return expr
    value = _values_of(expr.table, pin, ())
    rest = conjunction([part for part in conjuncts(expr.condition) if part != pin])
    shown = next((column for column in _shown(expr.table, pin, catalog)), None)
    there: Expr = Exists(expr.table, normal(pin)) if shown is None else Op("not", (Op("is null", (shown,)),))
    if rest == TRUE:
        return there
    return Op("and", (there, Op("is true", (_rewritten(_over_values(rest, value), catalog),))))


def _pivoted(expr: PerUnit, catalog: Catalog) -> Expr | None:
    """The column of a wide table that shows a value of a long one."""
    argument = expr.argument
    if not isinstance(argument, Bound):
        return None
    pin = _pin(expr.condition, expr.table, catalog)
    if pin is None or normal(expr.condition) != normal(pin):
        return None
    for column in _shown(expr.table, pin, catalog, argument.column):
        return column
    return None


def _shown(table: str, pin: Expr, catalog: Catalog, value: str | None = None) -> Iterator[Bound]:
    """The columns of pivots that show the row which a condition names. value: of this column of the long table."""
    assert isinstance(pin, Op)
    constant = next(arg.value for arg in pin.args if isinstance(arg, Literal))
    for info in catalog.tables.values():
        pivot = info.policy.pivot_of
        if pivot is None or fold(pivot.table) != fold(table):
            continue
        if value is not None and fold(pivot.value) != fold(value):
            continue
        name = _name_of(pivot.names, constant)
        column = info.column(name) if name is not None else None
        if column is not None:
            yield Bound(info.name, column.name, column.kind)


def _name_of(names: Mapping[int | str, str], constant: object) -> str | None:
    return next((name for key, name in names.items() if type(key) is type(constant) and key == constant), None)


def with_one_condition(asked: Asked, kept: Sequence[int]) -> Asked:
    """The question with its condition as one feature, beside those that are kept for its keys, in their order."""
    whole = as_feature(asked.condition, asked.features, asked.present)
    places = {str(place): str(at) for at, place in enumerate(kept)}
    return Asked(
        asked.rows,
        (*(asked.features[place] for place in kept), whole),
        _symbol(len(kept), "boolean"),
        tuple(renamed(key, places) for key in asked.keys),
    )


def is_of_rows(feature: Feature, rows: str) -> bool:
    """Whether a feature is a row's own, in which the rows of one person may differ, and not the person's."""
    read = {rows}
    for entry in feature.lookups:
        if entry.left.table in read:
            read.add(entry.right.table)
    return any(bound.table in read for bound in bounds(feature.expr))


def of_people_once(asked: Asked) -> Asked:
    """The question about rows as one about people, of whom some are in several groups: each key and the whole
    condition are one feature each, so that nobody is twice in a group."""
    features = []
    for key in asked.keys:
        if isinstance(key, Bound):
            features.append(asked.features[int(key.column)])
            continue
        lookups = {entry.right.table: entry for at in sorted(symbols(key)) for entry in asked.features[at].lookups}
        features.append(Feature(normal(_with_expressions(key, asked.features)), tuple(lookups.values())))
    keys = tuple(_symbol(at, feature.kind) for at, feature in enumerate(features))
    if asked.condition == TRUE and not asked.present:
        return Asked(asked.rows, tuple(features), TRUE, keys)
    features.append(as_feature(asked.condition, asked.features, asked.present))
    return Asked(asked.rows, tuple(features), _symbol(len(keys), "boolean"), keys)


def only_used(asked: Asked, arguments: Sequence[Expr] = ()) -> Asked:
    """The question without features that nothing reads. Arguments keep their features and places."""
    used = sorted(
        {place for expr in (asked.condition, *asked.keys, *arguments) for place in symbols(expr)} | {*asked.present}
    )
    places = {str(place): str(at) for at, place in enumerate(used)}
    if arguments and any(places[str(place)] != str(place) for expr in arguments for place in symbols(expr)):
        return asked
    return Asked(
        asked.rows,
        tuple(asked.features[place] for place in used),
        renamed(asked.condition, places),
        tuple(renamed(key, places) for key in asked.keys),
        tuple(int(places[str(place)]) for place in asked.present),
    )


def renamed(expr: Expr, places: Mapping[str, str]) -> Expr:
    """An expression with the features at other places."""
    if isinstance(expr, Bound):
        return Bound(SYMBOLS, places[expr.column], expr.kind)
    if isinstance(expr, Op):
        return Op(expr.name, tuple(renamed(arg, places) for arg in expr.args), expr.kind)
    return expr
