"""What audit.json says of a table, read strictly: the settings that it names, and whatever else a release says there.

Text may be hidden in any of it. So each key has to be one that a release has, and each value of the form it has there.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, get_args

from pydantic import ValidationError

from kgather._errors import InputError
from kgather._loaders.sources import Kind
from kgather._release.release import AUDIT
from kgather._settings.table import TableSettings
from kgather._verify.cells import read_otherwise


@dataclass(frozen=True)
class _IfThere:
    """The form of a key that may be missing."""

    form: "Form"


Form = Callable[[Any], bool] | Mapping[str, "Form"] | _IfThere
"""What a value is: a test of it, or the forms of the keys of a mapping."""


_VERSION = re.compile(r"\d+(\.\d+){0,3}((a|b|rc|\.dev|\.post)\d+){0,3}(\+[a-z0-9.]{1,60})?")
_FORMATS = (*get_args(Kind), "csv", "tsv")
_SUM = re.compile(r"[0-9a-f]{64}")
_MOST_DIGITS = 18


def settings_of(audit: Mapping[str, Any]) -> TableSettings:
    """The settings that a release was made with, as far as it says them: of relations and files only that there were.

    Raises InputError naming what of the parameters no settings can be.
    """
    given = audit.get("parameters")
    if not isinstance(given, dict):
        raise InputError(_unread("its parameters are missing"))
    said = dict(given)
    for name in ("quasi_identifiers", "sensitive"):
        if not all(isinstance(each, dict) for each in _of(said.get(name, {}))):
            raise InputError(_unread(f"{name} is no mapping of columns"))
    foreign = [name for name in ("seed", "threads", "population") if name in said]
    if foreign or said.get("within", True) is not True or not _is_count(said.get("beside", 1)):
        raise InputError(_unread(f"{foreign[0] if foreign else 'within or beside'} is not what a release says"))
    stands_for: dict[str, Any] = {"beside": [""] * min(int(said.pop("beside", 0)), 1)}
    if said.pop("within", None):
        stands_for["within"] = "groups"
    if said.get("k_map") is not None or said.get("presence") is not None:
        stands_for["population"] = "population"
    try:
        return TableSettings(**said, **stands_for)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"])) or "parameters"
        raise InputError(_unread(f"{where}: {problem['msg'].removeprefix('Value error, ')}")) from None


def _of(given: Any) -> list[Any]:
    return list(given.values()) if isinstance(given, dict) else [None]


def _unread(why: str) -> str:
    return f"{AUDIT} does not say what was promised: {why}. Take the release as it was written."


def not_promised(settings: TableSettings) -> Iterator[str]:
    """What a release says that it does not promise. Sentences that were written once are kept, to be known again."""
    yield (
        "Anything against somebody who knows sensitive values or other columns of people: only quasi-identifiers are "
        "generalized."
    )
    if settings.within is None:
        yield "That the table beside another one of the same people is anonymous: k holds for each table alone."
    else:
        yield (
            "That the table beside another one of the same people is anonymous, if that one was not made within the "
            "same groups: k holds for the tables that were, and for each other one alone."
        )
    yield (
        "That the classes tell nothing of sensitive values: where l, t or alpha is asked for, classes that failed it "
        "were merged, and that they were merged tells that they failed."
    )
    if not settings.has_several_rows:
        return
    if any((asked.l, asked.t, asked.alpha) == (None, None, None) for asked in settings.sensitive.values()):
        yield "That sensitive values of a class are of many people: somebody with many rows has many of them."
    yield (
        "That rows cannot be told to be one person's by a value that nobody else has in a column that is shown as it "
        "is."
    )


def read_as(audit: Mapping[str, Any]) -> dict[str, str]:
    """How each column was read, as the report of a release says; nothing of columns of which it does not."""
    report = audit.get("report")
    columns = report.get("columns") if isinstance(report, dict) else None
    found = columns if isinstance(columns, dict) else {}
    return {name: said["read"] for name, said in found.items() if isinstance(said, dict) and _is_text(said.get("read"))}


def foreign(audit: Mapping[str, Any], text: str, settings: TableSettings, files: Sequence[str]) -> list[str]:
    """Where audit.json says what a release does not. text: the file as it is. files: those that have checksums."""
    found = list(_differing("", audit, _form(settings, files)))
    found += _said_twice(text)
    if not found and audit["not_promised"] != list(not_promised(settings)):
        found.append("not_promised")
    otherwise = read_otherwise(settings, read_as(audit))
    return [*found, *(f"report.columns.{name}.read" for name in otherwise if f"report.columns.{name}" not in found)]


def _said_twice(text: str) -> list[str]:
    """Keys that a mapping has twice: a reader of JSON sees the last one only."""
    found: list[str] = []

    def seen(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        said = dict(pairs)
        found.extend(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        return said

    json.loads(text, object_pairs_hook=seen)
    return found


def _form(settings: TableSettings, files: Sequence[str]) -> Form:
    return {
        "kgather_version": lambda value: _is_text(value) and _VERSION.fullmatch(value) is not None,
        "kind": lambda value: value == "table",
        "passed": lambda value: value is True,
        "read": {"format": lambda value: value in _FORMATS, "rows": _is_count},
        "parameters": lambda _: True,  # these are settings
        "checks": _are_checks,
        "not_promised": lambda value: isinstance(value, list) and all(map(_is_text, value)),
        "report": _report(settings),
        "risks": _risks(settings),
        "class_sizes": lambda value: isinstance(value, list) and all(map(_is_pair, value)),
        "files": dict.fromkeys(files, lambda value: _is_text(value) and _SUM.fullmatch(value) is not None),
    }


def _report(settings: TableSettings) -> Form:
    of_column: dict[str, Form] = {
        "read": _is_text,
        "loss": _is_share,
        "entropy": _is_share,
        "distance": _is_share,
        "moved": _IfThere(_is_share),
    }
    asked = sorted({min(each, len(settings.quasi_identifiers)) for each in (1, 3)})
    errors = chain.from_iterable((f"query_error_{each}", f"query_error_{each}_median") for each in asked)
    costs: dict[str, Form] = {
        "discernibility": _is_number,
        "average_class_size": _is_number,
        "entropy": _is_share,
        "queries": _is_count,
    }
    found: dict[str, Form] = {
        "rows": _is_count,
        "classes": _is_count,
        "suppressed": _is_count,
        "loss": _is_share,
        "columns": dict.fromkeys(settings.quasi_identifiers, of_column),
        "costs": {**costs, **dict.fromkeys(errors, _is_number)},
    }
    if settings.counts_people:
        told: dict[str, Form] = {"in_class": _is_count, "in_set": _is_count}
        if settings.has_several_rows:
            told["linked"] = _is_share
            told["sensitive"] = {
                name: {each: _is_number for each in ("l", "t", "alpha") if getattr(asked, each) is not None}
                for name, asked in settings.sensitive.items()
                if (asked.l, asked.t, asked.alpha) != (None, None, None)
            }
        if settings.within is not None:
            told |= {"in_group": _is_count, "torn": _is_count}
        if settings.beside:
            told["beside"] = _is_count
        found["people"] = told
    return found


def _risks(settings: TableSettings) -> Form:
    shares = dict.fromkeys(settings.sensitive, _is_share)
    found: dict[str, Form] = dict.fromkeys(("prosecutor", "marketer"), _is_share)
    found |= {"homogeneity": shares, "confident": shares}
    if settings.has_several_rows:
        return found
    known = ("one_known", "two_known", "one_known_certain", "two_known_certain")
    found["background"] = dict.fromkeys(settings.sensitive, dict.fromkeys(known, _is_share))
    if settings.sampling_fraction is not None:
        found |= {"journalist": _is_share, "journalist_mean": _is_share}
    if settings.population is not None:
        found |= {"population_journalist": _is_share, "population_marketer": _is_share}
    distinct = [
        name for name, said in settings.sensitive.items() if said.l is not None and said.diversity == "distinct"
    ]
    if distinct:
        found["dominated"] = dict.fromkeys(distinct, _is_share)
    modelled = [name for name, said in settings.sensitive.items() if (said.l, said.t, said.alpha) != (None, None, None)]
    if modelled:
        numbers = dict.fromkeys(("most", "most_by_reading", "right", "right_by_reading", "undecided"), _is_share)
        sure = dict.fromkeys(("rows", "surer_than_0.95", "surer_than_0.95_by_reading"), _is_count)
        found["minimality"] = _IfThere({name: _IfThere(numbers | sure) for name in modelled})
    return found


def _differing(path: str, value: Any, form: Form) -> Iterator[str]:
    """The paths at which a value is not of a form."""
    if isinstance(form, _IfThere):
        yield from _differing(path, value, form.form)
    elif callable(form):
        yield from () if form(value) else (path,)
    elif not isinstance(value, dict):
        yield path
    else:
        within = f"{path}." if path else ""
        yield from (within + str(name) for name in value if name not in form)
        for name, each in form.items():
            if name in value:
                yield from _differing(within + name, value[name], each)
            elif not isinstance(each, _IfThere):
                yield within + name


def _are_checks(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict)
        and list(each) == ["check", "promised", "measured", "passed"]
        and _is_text(each["check"])
        and (each["promised"] is None or _is_number(each["promised"]))
        and _is_number(each["measured"])
        and isinstance(each["passed"], bool)
        for each in value
    )


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_count(each) and each > 0 for each in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**_MOST_DIGITS


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value) and value >= 0
    return _is_count(value)


def _is_share(value: Any) -> bool:
    return _is_number(value) and value <= 1
