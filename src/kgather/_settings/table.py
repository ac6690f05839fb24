"""What may be asked of an anonymized table: the one schema of the command, the Python API, SQL and dbt."""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from kgather._errors import InputError
from kgather._settings.validation import validated

_Finite = Annotated[float, Field(allow_inf_nan=False)]
Aggregate = Literal["same", "min", "max", "sum", "mean", "median", "mode", "count"]
STEPS = ("minute", "hour", "day", "week", "month", "quarter", "year", "decade")


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


_Step = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal[STEPS] | None,  # type: ignore[valid-type]
    Field(json_schema_extra={"description_of_values": f"a number above 0 or, of a date or time, {_one_of(STEPS)}"}),
]
_Hierarchy = Annotated[
    str | list[list[str]] | dict[str, Any] | None,
    Field(
        json_schema_extra={
            "description_of_values": "a file, a list of lines of labels, or a nested mapping of labels, as {Europe: "
            "[Greece, Italy]}"
        }
    ),
]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_GOES_WITH: Mapping[str, tuple[str, ...]] = {
    "step": ("number", "date", "time"),
    "cuts": ("number",),
    "widest": ("number", "date", "time"),
    "hierarchy": ("category", "ordered"),
    "grouping": ("category",),
    "order": ("ordered",),
    "keep": ("prefix",),
    "mask": ("mask",),
}
"""The settings that go with some kinds of columns only."""


class QuasiIdentifier(_Strict):
    """How a column is generalized. What is not said follows from its type.

    kind: number, date, time, category, ordered, prefix or mask. step: the width of a number's bins, the minutes of a
    time's, or minute, hour, day, week, month, quarter, year or decade. cuts: the cuts of a number themselves.
    hierarchy: a CSV file as ARX writes it (a line for each value: the value, then its ever wider labels), or such
    lines, or a nested mapping of labels. grouping: how a hierarchy is found in the data. order: the values of an
    ordered category. keep: the fewest characters of a prefix that are shown. mask: what masks show, from fine to
    coarse; a star hides a character. widest: the widest range of a number, in its own unit (days of a date, minutes of
    a time). weight: what the column counts for when classes are made. show: what a cell shows. sensitive: what is shown
    of single values is held by k rows, and not by two.
    """

    kind: Literal["number", "date", "time", "category", "ordered", "prefix", "mask"] | None = None
    step: _Step = None
    cuts: Annotated[list[_Finite], Field(min_length=1)] | None = None
    hierarchy: _Hierarchy = None
    grouping: Literal["frequency"] | None = None
    order: Annotated[list[str], Field(min_length=1)] | None = None
    keep: Annotated[int, Field(ge=0)] = 0
    mask: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)] | None = None
    widest: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 1.0
    show: Literal["range", "tight", "label", "set", "mean", "median"] | None = None
    sensitive: bool = False

    def foreign_to(self, kind: str) -> str | None:
        """What is asked for and does not go with a kind, as a message; None: nothing."""
        for name, kinds in _GOES_WITH.items():
            if getattr(self, name) not in (None, 0) and kind not in kinds:
                return f"{name} goes with kind {' or '.join(kinds)}, not with {kind}"
        return None

    @model_validator(mode="after")
    def _goes_together(self) -> "QuasiIdentifier":
        if self.kind is not None and (msg := self.foreign_to(self.kind)):
            raise ValueError(msg)
        for kind, name, what in (("ordered", "order", "the list of the values"), ("mask", "mask", "a list of masks")):
            if self.kind == kind and getattr(self, name) is None:
                msg = f"kind {kind} needs {name}, {what}"
                raise ValueError(msg)
        ways = [name for name in ("cuts", "hierarchy", "grouping", "order", "mask") if getattr(self, name)]
        if len(ways) > 1 and ways != ["hierarchy", "order"]:
            msg = f"only one of {' and '.join(ways)} can hold"
            raise ValueError(msg)
        if self.cuts is not None and (self.step is not None or sorted(set(self.cuts)) != self.cuts):
            msg = "cuts ascend, and there is no step beside them"
            raise ValueError(msg)
        for finer, coarser in itertools.pairwise(self.mask or []):
            if any(mark == "*" and at < len(coarser) and coarser[at] != "*" for at, mark in enumerate(finer)) or len(
                coarser
            ) > len(finer):
                msg = "masks go from fine to coarse: what one hides, all after it hide"
                raise ValueError(msg)
        return self


class Sensitive(_Strict):
    """What is promised of a sensitive column: l-diversity, t-closeness, alpha; nothing where nothing is said.

    ordered: t is measured with the values on a line. hierarchy: with the values in one, as of quasi-identifiers.
    """

    l: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None  # noqa: E741
    diversity: Literal["entropy", "distinct", "recursive"] = "entropy"
    c: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    t: Annotated[float, Field(ge=0, le=1)] | None = None
    ordered: bool | None = None
    hierarchy: _Hierarchy = None
    alpha: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _goes_together(self) -> "Sensitive":
        if (self.diversity == "recursive") != (self.c is not None):
            msg = "c goes with diversity recursive, which needs it"
            raise ValueError(msg)
        if self.l is not None and self.diversity != "entropy" and self.l != int(self.l):
            msg = f"l is a whole number, not {self.l:g}: only diversity entropy takes any"
            raise ValueError(msg)
        for name in ("ordered", "hierarchy"):
            if getattr(self, name) is not None and self.t is None:
                msg = f"{name} goes with t"
                raise ValueError(msg)
        if self.ordered is not None and self.hierarchy is not None:
            msg = "only one of ordered and hierarchy can hold"
            raise ValueError(msg)
        return self


class TableSettings(_Strict):
    """What may be asked of an anonymized table. Columns that have no role here are not shown.

    unit: the column that names people. rows_per_person: how many rows of a person count, at most; more are left out.
    aggregate: one row is made of all rows of a person, each column as it says; `same` where it says nothing. pseudonym:
    the name of a column of random pseudonyms. within: a relation (unit, group_id) of groups of people who look the same
    in this table and in every other one that is made within them. beside: relations of the same form, the groups of
    other tables of the same people, with which the classes are intersected to be measured. sampling_fraction: the share
    of a population that is in the table, by which the journalist's risk is estimated.
    """

    k: Annotated[int, Field(ge=1)]
    quasi_identifiers: Annotated[dict[str, QuasiIdentifier], Field(min_length=1)]
    sensitive: dict[str, Sensitive] = {}
    others: list[str] = []
    identifiers: list[str] = []
    unit: str | None = None
    rows_per_person: Annotated[int, Field(ge=1)] | None = None
    aggregate: dict[str, Aggregate] | None = None
    pseudonym: Annotated[str, Field(min_length=1)] | None = None
    within: str | None = None
    beside: list[str] = []
    population: str | None = None
    k_map: Annotated[int, Field(ge=1)] | None = None
    presence: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=2, max_length=2)] | None = None
    method: Literal["mondrian", "cluster", "mdav", "lattice"] = "mondrian"
    relaxed: bool = False
    rounds: Annotated[int, Field(ge=0, le=100)] | None = None
    suppress: Annotated[float, Field(ge=0, lt=1)] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    threads: Annotated[int, Field(ge=0)] = 0
    sampling_fraction: Annotated[float, Field(gt=0, le=1)] | None = None

    @field_validator("quasi_identifiers", "sensitive", mode="before")
    @classmethod
    def _from_list(cls, given: Any) -> Any:
        """A list of names is a mapping that says nothing more of them."""
        if isinstance(given, list | tuple):
            return {name: {} for name in given}
        return (
            {name: {} if said is None else said for name, said in given.items()}
            if isinstance(given, Mapping)
            else given
        )

    @model_validator(mode="after")
    def _goes_with_the_population(self) -> "TableSettings":
        if (self.population is None) != (self.k_map is None and self.presence is None):
            msg = "population goes with k_map, presence or both, which need it"
            raise ValueError(msg)
        if self.presence is not None and self.presence[0] > self.presence[1]:
            msg = "presence is the least and the greatest share, as [0, 0.5]"
            raise ValueError(msg)
        if self.population is not None and (self.has_several_rows or self.within is not None):
            other = "within" if self.within is not None else "rows_per_person"
            msg = (
                f"population goes with one row for each person, and classes that are merged until enough people match: "
                f"it cannot be given with {other}. Set aggregate or rows_per_person 1, and no within"
            )
            raise ValueError(msg)
        for name in self.shows_more if self.population is not None else []:
            shown = self.quasi_identifiers[name].show
            msg = f"population goes with ranges and labels; column '{name}' shows {shown}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _goes_with_the_method(self) -> "TableSettings":
        if self.relaxed and self.method != "mondrian":
            msg = f"relaxed goes with method mondrian, not with {self.method}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _each_has_one_role(self) -> "TableSettings":
        seen: dict[str, str] = {}
        for role, names in (
            ("a quasi-identifier", self.quasi_identifiers),
            ("sensitive", self.sensitive),
            ("another column", self.others),
            ("an identifier", self.identifiers),
        ):
            for name in names:
                if name.lower() in seen:
                    msg = f"column '{name}' is named twice, as {seen[name.lower()]} and as {role}"
                    raise ValueError(msg)
                seen[name.lower()] = role
        if self.pseudonym is not None and self.pseudonym.lower() in {name.lower() for name in self.shown}:
            msg = f"the pseudonym needs a name of its own: '{self.pseudonym}' is a column that is shown"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _people_are_named(self) -> "TableSettings":
        for name in ("rows_per_person", "aggregate", "within", "beside"):
            if self.unit is None and getattr(self, name) not in (None, []):
                msg = f"{name} needs unit, the column that names people"
                raise ValueError(msg)
        if self.unit is not None and self.unit.lower() in {name.lower() for name in self.shown}:
            msg = f"column '{self.unit}' names people, so it is not shown: it has no other role"
            raise ValueError(msg)
        if self.aggregate is not None:
            if self.rows_per_person is not None:
                msg = "rows_per_person and aggregate both say what becomes of a person's rows: give one of them"
                raise ValueError(msg)
            known = {name.lower() for name in self.shown}
            foreign = [name for name in self.aggregate if name.lower() not in known]
            if foreign:
                msg = f"aggregate names '{foreign[0]}', which is no column that is shown"
                raise ValueError(msg)
        if self.method == "lattice" and (self.has_several_rows or self.within is not None):
            msg = "a lattice puts rows into classes, not people: choose mondrian, cluster or mdav"
            raise ValueError(msg)
        if self.has_several_rows:
            for name, column in self.quasi_identifiers.items():
                found = "grouping" if column.grouping is not None else f"show {column.show}"
                if column.grouping is not None or name in self.shows_more:
                    msg = (
                        f"column '{name}' has {found}, which counts the rows that hold a value, and one person may "
                        "have them all: choose show range or label and no grouping, set aggregate, or rows_per_person 1"
                    )
                    raise ValueError(msg)
            if self.sampling_fraction is not None:
                msg = (
                    "sampling_fraction says how many people look like a row, and a person would be several: set "
                    "aggregate, or rows_per_person 1"
                )
                raise ValueError(msg)
            if self.pseudonym is not None:
                msg = (
                    "a pseudonym would tell how many rows each person has, and which belong together: set aggregate, "
                    "or rows_per_person 1"
                )
                raise ValueError(msg)
        return self

    @property
    def has_several_rows(self) -> bool:
        """Whether a person may have several rows in the anonymized table."""
        return self.rows_per_person is not None and self.rows_per_person > 1

    @property
    def shows_more(self) -> list[str]:
        """The columns whose cells may show more than ranges and labels."""
        return [name for name, column in self.quasi_identifiers.items() if column.show not in (None, "range", "label")]

    @property
    def counts_people(self) -> bool:
        """Whether something is measured of people, and not of rows alone."""
        return self.has_several_rows or self.within is not None or bool(self.beside)

    @property
    def shown(self) -> list[str]:
        """The columns of the anonymized table, in their order."""
        return [*self.quasi_identifiers, *self.sensitive, *self.others]


_SHORT = ("l", "diversity", "c", "t", "ordered", "alpha")


def table_settings(given: Mapping[str, Any]) -> TableSettings:
    """The settings from what was given by name. `l`, `diversity`, `c`, `t`, `ordered` and `alpha` hold for all
    sensitive columns that say nothing of them.

    Raises InputError naming what is wrong and what it may be.
    """
    values = {name: value for name, value in given.items() if value is not None}
    of_all = {name: values.pop(name) for name in _SHORT if name in values}
    sensitive = values.get("sensitive", {})
    if isinstance(sensitive, str):
        sensitive = [sensitive]
    if isinstance(sensitive, Sequence):
        sensitive = {name: {} for name in sensitive}
    if of_all and not sensitive:
        msg = f"{', '.join(of_all)} needs a sensitive column."
        raise InputError(msg)
    if sensitive and isinstance(sensitive, Mapping):
        values["sensitive"] = {
            name: of_all | dict(said or {}) if not isinstance(said, Sensitive) else said
            for name, said in sensitive.items()
        }
    if isinstance(values.get("quasi_identifiers"), str):
        values["quasi_identifiers"] = [values["quasi_identifiers"]]
    for role, kind in (("quasi_identifiers", QuasiIdentifier), ("sensitive", Sensitive)):
        if isinstance(values.get(role), Mapping):
            values[role] = {name: _of_column(kind, name, said) for name, said in values[role].items()}
    return validated(TableSettings, values)


def _of_column(kind: type[BaseModel], name: str, said: Any) -> BaseModel:
    """What is said of one column. Raises InputError naming the column."""
    if isinstance(said, kind):
        return said
    if said is not None and not isinstance(said, Mapping):
        msg = f"column '{name}': what is said of it is a mapping, as {{step: 5}}, not {said!r}."
        raise InputError(msg)
    try:
        return validated(kind, said or {})
    except InputError as error:
        told = "\n".join(f"column '{name}': {line}" for line in str(error).splitlines())
        raise InputError(told) from None


def without_places(columns: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is said of columns, with the names of files in place of where they lie: for an audit."""
    return {
        name: {**said, "hierarchy": Path(said["hierarchy"]).name}
        if isinstance(said.get("hierarchy"), str)
        else {**said}
        for name, said in columns.items()
    }


def from_json(text: str) -> TableSettings:
    """The settings from JSON, as SQL hands them over. Raises InputError as `table_settings` does."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        msg = "the settings are a mapping, as {k: 10, quasi_identifiers: ['age', 'zip']}."
        raise InputError(msg)
    return table_settings(_without_nulls(given))


def _without_nulls(given: Any) -> Any:
    """SQL's structs have a null where a field is of another struct of the list."""
    if isinstance(given, dict):
        return {name: _without_nulls(value) for name, value in given.items() if value is not None}
    return given
