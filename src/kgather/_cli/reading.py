"""The options that say how files are read, the same for every command that reads some."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from kgather._errors import InputError
from kgather._loaders.options import LoadOptions
from kgather._settings.validation import validated

PANEL = "Reading the input"

# Of each field of LoadOptions: the type that is parsed, the option's names, its value, and its help.
_OPTIONS: dict[str, tuple[type, tuple[str, ...], str | None, str]] = {
    "format": (
        str,
        ("--format",),
        None,
        "auto, csv, tsv, json, u.data, movielens-dat, netflix, matrix-market, parquet or duckdb.",
    ),
    "fields": (
        str,
        ("--fields",),
        "A,B,...",
        "What the fields are where no line names them, as user,item,rating,time; - is one that is not read.",
    ),
    "header": (bool, ("--header/--no-header",), None, "Whether the first line names the columns."),
    "delimiter": (
        str, ("--delimiter",), None, "What separates fields, as ';' or '\\t'; blanks: runs of them; re:PATTERN."
    ),
    "encoding": (str, ("--encoding",), None, "utf-8 (default) or latin-1."),
    "skip_lines": (int, ("--skip-lines",), "N", "Lines at the beginning that are not read."),
    "comment": (str, ("--comment",), "MARK", "Lines that begin with it are not read, as '#'."),
    "missing": (
        str, ("--missing",), "A,B,...", "Texts that mean 'no id' (default NULL, None, NA, N/A, nan; '' for none)."
    ),
    "words": (str, ("--map",), "WORD=N,...", "What words in the ratings stand for, as like=1,dislike=0."),
    "no_rating": (bool, ("--no-rating",), None, "There are users and items only: every row counts as 1."),
    "items": (
        str, ("--items",), "FILE|TABLE", "The catalogue: all items, rated or not, one a line or a row."
    ),
    "user_column": (str, ("--user-column",), "NAME", "Or its place, from 1."),
    "item_column": (str, ("--item-column",), "NAME", "Likewise."),
    "rating_column": (str, ("--rating-column",), "NAME", "Likewise."),
    "time_column": (str, ("--time-column",), "NAME", "'none' ignores times."),
}  # fmt: skip
COLUMNS = ("user_column", "item_column", "rating_column", "time_column")


def with_reading(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of reading, but for these; it gets what was said as the mapping `reading`.

    The function's own options keep their places, and those of reading come where `reading` stands.
    """
    chosen = [name for name in _OPTIONS if name not in without]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            if parameter.name == "reading":
                parameters += map(_parameter, chosen)
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @wraps(function)
        def command(**given: Any) -> None:
            said = {name: given.pop(name) for name in chosen}
            function(reading={name: value for name, value in said.items() if value is not None}, **given)

        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return decorate


def load_options(reading: dict[str, Any], **others: Any) -> LoadOptions:
    """What was said, checked. Raises InputError naming the option that is wrong."""
    said = dict(reading)
    for name in ("fields", "missing"):
        if name in said:
            said[name] = tuple(each.strip() for each in said[name].split(",")) if said[name].strip() else ()
    if "words" in said:
        said["words"] = _words(said["words"])
    if said.get("fields") == ():
        msg = "--fields names what the fields are, as user,item,rating,time."
        raise InputError(msg)
    try:
        return validated(LoadOptions, {**said, **others})
    except InputError as error:
        told = str(error)
        for name, (_, options, _, _) in _OPTIONS.items():
            told = re.sub(rf"^{name}:", f"{options[0].partition('/')[0]}:", told, flags=re.MULTILINE)
        raise InputError(told) from None


def _words(text: str) -> dict[str, float]:
    pairs = [each.rpartition("=") for each in text.split(",")]
    try:
        found = {word.strip(): float(number) for word, _, number in pairs}
    except ValueError:
        msg = f"--map takes words with numbers, as like=1,dislike=0, not {text!r}."
        raise InputError(msg) from None
    if len(found) < len(pairs):
        msg = "--map names a word twice."
        raise InputError(msg)
    return found


def _parameter(name: str) -> inspect.Parameter:
    kind, names, metavar, told = _OPTIONS[name]
    option = typer.Option(*names, metavar=metavar, help=told, rich_help_panel=PANEL, show_default=False)
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
