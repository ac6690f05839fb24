"""What `kgather verify` is to check of a relation, and which options go together."""

from collections.abc import Sequence
from dataclasses import dataclass

from kgather._errors import InputError
from kgather.udfs._shared.options import real, whole

DIVERSITIES = ("distinct", "entropy", "recursive")


@dataclass(frozen=True)
class Asked:
    """The models to check for, each None where it is not asked for, and the columns they are about.

    Fields are named as the options of the command; hierarchy, which is no option, is that of a sensitive column for t:
    lines of a value and its ever wider labels. Raises InputError where they do not go together.
    """

    k: int | None = None
    columns: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    l: float | None = None  # noqa: E741
    diversity: str | None = None
    c: float | None = None
    t: float | None = None
    ordered: bool | None = None
    hierarchy: tuple[tuple[str, ...], ...] = ()
    alpha: float | None = None
    risk_conditions: int | None = None
    unit: str | None = None
    group_column: str | None = None
    user_column: str | None = None
    item_column: str | None = None
    rating_column: str | None = None
    m: int | None = None
    epsilon: float | None = None
    width: float | None = None
    sensitive_items: tuple[str, ...] = ()
    b: int | None = None

    def __post_init__(self) -> None:
        if not self._something_asked():
            msg = "say what to check for with --k."
            raise InputError(msg)
        self._check_numbers()
        for wrong, told in self._contradictions():
            if wrong:
                raise InputError(told)

    @property
    def long(self) -> bool:
        """Whether a model of ratings is asked for, one row for each pair of user and item."""
        return any(value is not None for value in (self.m, self.epsilon, self.b))

    @property
    def named(self) -> tuple[str, ...]:
        """The names of columns that were said."""
        one = (self.unit, self.group_column, self.user_column, self.item_column, self.rating_column)
        return (*self.columns, *self.sensitive, *(name for name in one if name))

    @property
    def classes(self) -> bool:
        """Whether k is asked of equivalence classes of rows."""
        return self.k is not None and bool(self.columns or not (self.long or self.group_column))

    @property
    def kind(self) -> str:
        """How diversity is measured."""
        return self.diversity or "distinct"

    def _something_asked(self) -> bool:
        return any(value is not None for value in (self.k, self.l, self.t, self.alpha, self.b))

    def _check_numbers(self) -> None:
        for name in ("k", "risk_conditions", "m", "b"):
            if getattr(self, name) is not None:
                whole(_option(name), getattr(self, name), 1)
        for name, high, above in (("t", 1.0, False), ("alpha", 1.0, True), ("c", None, True), ("epsilon", None, False),
                                  ("width", None, True)):  # fmt: skip
            if getattr(self, name) is not None:
                real(_option(name), getattr(self, name), 0, high or float("inf"), above=above)
        if self.l is None:
            return
        if self.sensitive_items:
            real("--l", self.l, 0)
        elif real("--l", self.l, 1) != int(self.l) and (self.b is not None or self.kind != "entropy"):
            msg = f"--l must be a whole number, not {self.l:g}: only --diversity entropy takes any."
            raise InputError(msg)

    def _contradictions(self) -> Sequence[tuple[bool, str]]:
        """What may be wrong, and the sentence that says so."""
        about = [*map(bool, (self.sensitive, self.sensitive_items)), self.b is not None]
        roles = {name.lower() for name in (*self.columns, *self.sensitive)}
        repeated = {name.lower() for name in self.columns} & {name.lower() for name in self.sensitive}
        return [
            (
                self.l is not None and sum(about) != 1,
                "--l goes with one of --sensitive, --sensitive-items and --b, which say what is to be diverse.",
            ),
            (self.b is not None and self.l is None, "--b needs --l, the number of groups that show every set."),
            (
                bool(self.sensitive) and (self.l, self.t, self.alpha) == (None, None, None),
                "--sensitive goes with --l, --t or --alpha.",
            ),
            (
                not self.sensitive and (self.t, self.alpha) != (None, None),
                "--t and --alpha need --sensitive, the columns that nobody may infer.",
            ),
            (
                self.unit is not None and self.unit.lower() in roles,
                f"column {self.unit} names people, and nobody looks alike in it: leave it out of --columns and "
                "--sensitive.",
            ),
            (bool(repeated), f"a column is sensitive or a quasi-identifier, not both: {', '.join(sorted(repeated))}."),
            (
                self.diversity is not None and self.diversity not in DIVERSITIES,
                f"--diversity is {', '.join(DIVERSITIES[:-1])} or {DIVERSITIES[-1]}, not {self.diversity}.",
            ),
            (
                (self.diversity, self.c) != (None, None) and not (self.sensitive and self.l is not None),
                "--diversity and --c go with --sensitive and --l.",
            ),
            (
                (self.kind == "recursive") != (self.c is not None),
                "--c goes with --diversity recursive, which needs it.",
            ),
            (self.ordered is not None and self.t is None, "--ordered and --unordered go with --t."),
            (
                self.k is None
                and (self.risk_conditions, self.m, self.epsilon, self.group_column and not self.long)
                not in ((None, None, None, None), (None, None, None, False)),
                "--risk-conditions, --m, --epsilon and --group-column need --k.",
            ),
            (
                bool(self.sensitive_items) and (self.l is None or self.epsilon is None),
                "--sensitive-items goes with --epsilon and --l.",
            ),
            (self.width is not None and self.epsilon is None, "--width goes with --epsilon."),
            (
                bool(self.item_column or self.rating_column) and not self.long,
                "--item-column and --rating-column go with --m, --epsilon or --b.",
            ),
            (
                self.unit is not None and bool(self.long or self.group_column or self.risk_conditions is not None),
                "--unit counts people in classes of rows: it goes with --k, --l, --t and --alpha. In groups and "
                "ratings name people with --user-column.",
            ),
            (
                bool(self.user_column) and not (self.long or self.group_column),
                "--user-column goes with --group-column, --m, --epsilon or --b.",
            ),
        ]


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
