"""The policy of the guard: a YAML file that says what each table holds and what may be asked of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kgather._errors import InputError

Mode = Literal["adaptive", "exact", "generalized"]
Grain = Literal["unit", "rows"]
Truncation = Literal["day", "week", "month", "quarter", "year", "decade", "century"]

TRUNCATIONS: tuple[str, ...] = ("day", "week", "month", "quarter", "year", "decade", "century")
"""What dates are coarsened to, the finest first. Weeks fit into none of the coarser ones."""

AGGREGATES = ("COUNT", "COUNT_DISTINCT", "SUM", "AVG", "STDDEV", "VAR", "COVAR", "CORR")
"""The aggregates of a policy that lists none; MIN and MAX have to be listed."""


def fold(name: str) -> str:
    """Fold a name as DuckDB compares names: the letters A to Z, quoted or not, are a to z."""
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in name)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Pivot(_Part):
    """A wide table shows the values of a long one: one column a key, a row for every unit of the long table.

    table: the long table. key: its column whose values the wide columns are named for. value: the column shown.
    names: the key's value -> the wide column.
    """

    table: str
    key: str
    value: str
    names: dict[int | str, str] = Field(min_length=1)


class Table(_Part):
    """What a table holds. A column that stands in no role is hidden."""

    public: bool = False
    privacy_unit: str | None = None
    grain: Grain | None = None
    """unit: one row a unit; rows: many. None: found out when the guard opens."""
    unique: str | None = None
    """Of a table of grain rows: the column that names one row together with the unit."""
    artifacts: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    coarsened: dict[str, Truncation] = {}
    pivot_of: Pivot | None = None
    same_as: dict[str, str] = {}

    def roles(self) -> Iterator[tuple[str, str]]:
        """Every column that is named, with its role."""
        if self.privacy_unit is not None:
            yield self.privacy_unit, "unit"
        for role, names in (
            ("artifact", self.artifacts),
            ("measure", self.measures),
            ("dimension", self.dimensions),
            ("hidden", self.hidden),
            ("coarsened", tuple(self.coarsened)),
        ):
            for name in names:
                yield name, role

    @model_validator(mode="after")
    def _fits_together(self) -> "Table":
        roles = list(self.roles())
        if self.public and (roles or self.pivot_of or self.same_as or self.grain or self.unique):
            msg = "a public table has no privacy unit and no roles: leave out public, or the rest"
            raise ValueError(msg)
        if not self.public and self.privacy_unit is None:
            msg = "says neither privacy_unit (the column that names the person) nor public: true"
            raise ValueError(msg)
        seen: dict[str, str] = {}
        for name, role in roles:
            if fold(name) in seen:
                msg = f"column {name!r} is both {seen[fold(name)]} and {role}: a column has one role"
                raise ValueError(msg)
            seen[fold(name)] = role
        if self.unique is not None and self.grain == "unit":
            msg = "unique goes with grain rows: of grain unit the privacy unit alone names the row"
            raise ValueError(msg)
        return self


class Diversity(_Part):
    """A set of users is only split where every part keeps l distinct values of each column."""

    l: int = Field(ge=2, strict=True)  # noqa: E741 - as the papers call it
    columns: tuple[str, ...] = Field(min_length=1)
    """Measures or dimensions, as table.column."""


class Limits(_Part):
    """What one statement may cost."""

    time_ms: int = Field(default=10_000, ge=1, strict=True)
    memory: str = Field(default="1GB", pattern=r"^[1-9][0-9]*(\.[0-9]+)?\s*([KMGT]i?B)$")
    statement_bytes: int = Field(default=65_536, ge=1, le=1_000_000, strict=True)
    depth: int = Field(default=24, ge=4, le=30, strict=True)
    """How deep brackets and nested expressions go."""


class Principal(_Part):
    """Who asks. What is not set is as in the policy."""

    mode: Mode | None = None
    time_ms: int | None = Field(None, ge=1, strict=True)
    memory: str | None = Field(None, pattern=r"^[1-9][0-9]*(\.[0-9]+)?\s*([KMGT]i?B)$")
    statement_bytes: int | None = Field(None, ge=1, le=1_000_000, strict=True)
    depth: int | None = Field(None, ge=4, le=30, strict=True)


class JoinSide(NamedTuple):
    """A column on one side of a join."""

    table: str
    column: str


class Join(_Part):
    """A declared equality of two columns: N:1 from left to right, or unit = unit."""

    left: JoinSide
    right: JoinSide

    @model_validator(mode="before")
    @classmethod
    def _parsed(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        sides = [side.strip().split(".") for side in value.split("=")]
        if len(sides) != 2 or any(len(side) != 2 or not all(side) for side in sides):
            msg = "is an equality of two columns, as ratings.item_id = items.item_id"
            raise ValueError(msg)
        return {"left": tuple(part.strip() for part in sides[0]), "right": tuple(part.strip() for part in sides[1])}


class _Problem(NamedTuple):
    """What two entries say against each other: where, and what to do."""

    where: tuple[str | int, ...]
    what: str


class Policy(_Part):
    """What may be asked, of what, by whom."""

    version: Literal[1]
    database: Path
    ledger: Path = Path("ledger.duckdb")
    audit_log: Path | None = None
    k: int = Field(ge=2, strict=True)
    mode: Mode = "adaptive"
    match: Literal["any", "all", "expected"] | None = None
    tables: dict[str, Table] = Field(min_length=1)
    joins: tuple[Join, ...] = ()
    aggregates: tuple[
        Literal["COUNT", "COUNT_DISTINCT", "SUM", "AVG", "STDDEV", "VAR", "COVAR", "CORR", "MIN", "MAX"], ...
    ] = AGGREGATES  # type: ignore[assignment]
    margins: bool = False
    """Whether ROLLUP, CUBE and GROUPING SETS are answered."""
    diversity: Diversity | None = None
    round: int | None = Field(None, ge=-6, le=12, strict=True)
    limits: Limits = Limits()
    principals: dict[str, Principal] = {}

    @field_validator("aggregates", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return [str(name).upper() for name in value] if isinstance(value, list | tuple) else value

    @field_validator("principals", mode="before")
    @classmethod
    def _empty_is_default(cls, value: object) -> object:
        return {name: {} if p is None else p for name, p in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _fits_together(self) -> "Policy":
        problem = next(self._problems(), None)
        if problem:
            raise _AtError(*problem)
        return self

    def table(self, name: str) -> Table | None:
        """The table of that name, in whatever case."""
        return next((table for known, table in self.tables.items() if fold(known) == fold(name)), None)

    def limits_of(self, principal: str) -> Limits:
        """The limits of who asks. Raises InputError for a principal that the policy does not name."""
        own = self.principal(principal).model_dump(exclude_none=True, exclude={"mode"})
        return Limits.model_validate(self.limits.model_dump() | own)

    def mode_of(self, principal: str) -> Mode:
        """The mode of who asks. Raises InputError for a principal that the policy does not name."""
        return self.principal(principal).mode or self.mode

    def principal(self, name: str) -> Principal:
        """Who asks, by name. Raises InputError for one that the policy does not name."""
        if name not in self.principals:
            known = ", ".join(self.principals) or "none"
            msg = f"The policy names no principal {name!r}; it names: {known}. Add it under principals."
            raise InputError(msg)
        return self.principals[name]

    def _problems(self) -> Iterator[_Problem]:
        """What entries say against each other."""
        folded = [fold(name) for name in self.tables]
        for at, name in enumerate(self.tables):
            if fold(name) in folded[:at]:
                yield _Problem(
                    ("tables", name), f"table {name!r} stands here twice: names are compared without regard to case"
                )
            if name.startswith("kg_"):
                yield _Problem(("tables", name), "names that begin with kg_ are the guard's own")
        modes = {self.mode, *(p.mode for p in self.principals.values())}
        if self.match is not None and "generalized" not in modes:
            yield _Problem(("match",), "match goes with mode generalized")
        if all(table.public for table in self.tables.values()):
            yield _Problem(("tables",), "every table is public: there is nothing to guard")
        for name, table in self.tables.items():
            yield from self._problems_of_table(name, table)
        for at, join in enumerate(self.joins):
            yield from self._problems_of_join(at, join)
        if self.diversity:
            for column in self.diversity.columns:
                if self._role(column) not in ("measure", "dimension"):
                    yield _Problem(
                        ("diversity", "columns"),
                        f"{column!r} is no measure or dimension of a table, as ratings_wide.salary",
                    )

    def _problems_of_table(self, name: str, table: Table) -> Iterator[_Problem]:
        at: tuple[str | int, ...] = ("tables", name)
        pivot = table.pivot_of
        if pivot:
            source = self.table(pivot.table)
            if source is None or source.public or source is table:
                yield _Problem((*at, "pivot_of"), f"table {pivot.table!r} is no other protected table of this policy")
            else:
                for column in (pivot.key, pivot.value):
                    if self._role(f"{pivot.table}.{column}") != "artifact":
                        yield _Problem((*at, "pivot_of"), f"{column!r} is no artifact of {pivot.table}: list it there")
                if fold(pivot.key) == fold(pivot.value):
                    yield _Problem((*at, "pivot_of"), "key and value are two columns")
                if source.grain == "unit":
                    yield _Problem((*at, "pivot_of"), f"{pivot.table} has grain unit; a long table has grain rows")
            if table.grain == "rows":
                yield _Problem((*at, "pivot_of"), "a wide table has one row a unit: its grain is unit")
            own = {fold(column) for column in table.artifacts}
            shown = [fold(column) for column in pivot.names.values()]
            for column in pivot.names.values():
                if fold(column) not in own:
                    yield _Problem((*at, "pivot_of", "names"), f"{column!r} is no artifact of this table: list it")
            if len(set(shown)) < len(shown):
                yield _Problem((*at, "pivot_of", "names"), "two keys name one column")
        for column, target in table.same_as.items():
            role, other = self._role(f"{name}.{column}"), self._role(target)
            if role is None:
                yield _Problem((*at, "same_as"), f"{column!r} is no column of this table")
            elif other is None or fold(target.split(".")[0]) == fold(name):
                yield _Problem((*at, "same_as"), f"{target!r} is no column of another table, as ratings_wide.age")
            elif role != other:
                yield _Problem((*at, "same_as"), f"{column!r} is a {role} and {target!r} a {other}: both have one role")
        if table.unique is not None and self._role(f"{name}.{table.unique}") != "artifact":
            yield _Problem((*at, "unique"), f"{table.unique!r} is no artifact of this table: list it there")

    def _problems_of_join(self, at: int, join: Join) -> Iterator[_Problem]:
        where = ("joins", at)
        roles = []
        for table, column in (join.left, join.right):
            known = self.table(table)
            if known is None:
                yield _Problem(where, f"table {table!r} is not in this policy")
                return
            roles.append("public" if known.public else self._role(f"{table}.{column}"))
            if roles[-1] is None:
                yield _Problem(where, f"{column!r} is no column that the policy names in {table}")
                return
        left, right = roles
        if (left == "unit") != (right == "unit"):
            yield _Problem(where, "a privacy unit is only joined to a privacy unit: another join would tell who is who")
        elif left != "unit" and right != "public":
            yield _Problem(where, "the right side is the key of a public table, or both sides are privacy units")
        elif left not in ("unit", "artifact", "dimension", "public"):
            yield _Problem(
                where,
                f"the left side is a {left} column: only artifacts, dimensions and public columns look things up",
            )

    def _role(self, name: str) -> str | None:
        table, _, column = name.partition(".")
        known = self.table(table)
        if known is None or not column:
            return None
        return next((role for other, role in known.roles() if fold(other) == fold(column)), None)


class _AtError(ValueError):
    """What is wrong, and at which entry."""

    def __init__(self, where: tuple[str | int, ...], what: str) -> None:
        super().__init__(what)
        self.where = where


def load_policy(path: Path | str) -> Policy:
    """Read a policy; database, ledger and audit log, where relative, are beside the file.

    Raises InputError naming file, line and entry, and what it may be.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        msg = f"{path}: the policy cannot be read: {reason}."
        raise InputError(msg) from None
    policy = parse_policy(text, str(path))
    folder = path.resolve().parent
    found = {"database": folder / policy.database, "ledger": folder / policy.ledger}
    if policy.audit_log is not None:
        found["audit_log"] = folder / policy.audit_log
    return policy.model_copy(update=found)


def parse_policy(text: str, name: str = "policy") -> Policy:
    """Read a policy from text. Raises InputError naming file, line and entry, and what it may be."""
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = _values(node, (), lines, name) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{name}:{mark.line + 1}" if mark else name
        msg = f"{at}: this is no YAML: {getattr(error, 'problem', None) or 'the text cannot be read'}."
        raise InputError(msg) from None
    if not isinstance(values, dict):
        msg = f"{name}:1: a policy is a list of entries, as version: 1, database: ..., k: 5, tables: ..."
        raise InputError(msg)
    try:
        return Policy(**{str(key): value for key, value in values.items()})
    except ValidationError as error:
        raise InputError("\n".join(_sentence(problem, lines, name) for problem in error.errors())) from None


def _values(node: yaml.Node, path: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int], name: str) -> Any:
    """Turn composed YAML into values; remember the line of every entry; refuse keys that stand twice."""
    lines.setdefault(path, node.start_mark.line + 1)
    if len(path) > 8:
        msg = f"{name}:{node.start_mark.line + 1}: nested too deeply."
        raise InputError(msg)
    if isinstance(node, yaml.MappingNode):
        values: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node, name)
            if key in values:
                msg = f"{name}:{key_node.start_mark.line + 1}: {key!r} stands here twice; remove one."
                raise InputError(msg)
            lines[(*path, key)] = key_node.start_mark.line + 1
            values[key] = _values(value_node, (*path, key), lines, name)
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_values(item, (*path, at), lines, name) for at, item in enumerate(node.value)]
    return _scalar(node, name)


def _scalar(node: yaml.Node, name: str) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        msg = f"{name}:{node.start_mark.line + 1}: a name is a word, not a list or a mapping."
        raise InputError(msg)
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node)
    except (yaml.YAMLError, ValueError):
        msg = f"{name}:{node.start_mark.line + 1}: {node.value!r} cannot be read."
        raise InputError(msg) from None
    finally:
        loader.dispose()


def _sentence(problem: Mapping[str, Any], lines: Mapping[tuple[str | int, ...], int], name: str) -> str:
    inner = problem.get("ctx", {}).get("error")
    where = inner.where if isinstance(inner, _AtError) else tuple(problem["loc"])
    at = where
    while at and at not in lines:
        at = at[:-1]
    if problem["type"] == "extra_forbidden":
        what = "is no entry of a policy here; remove it or correct its name"
    elif problem["type"] == "missing":
        what = "is missing: add it"
    else:
        what = problem["msg"].removeprefix("Value error, ")
        what = what[0].lower() + what[1:]
    entry = ".".join(str(part) for part in where)
    return f"{name}:{lines.get(at, 1)}: {entry}: {what}." if entry else f"{name}:{lines.get(at, 1)}: {what}."
