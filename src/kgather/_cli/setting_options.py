"""Options of the command line from the schema of the settings, so that there is one list of them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from kgather._errors import InputError
from kgather._forms import forms
from kgather._methods import built_in
from kgather._settings.fields import INPUT
from kgather._settings.publication import PublishSettings

# Lists of values that the help names; the docs have a page or a table for each.
_LISTED: Mapping[str, Callable[[], str]] = {
    "method": lambda: ", ".join(built_in()),
    "homogenize": lambda: ", ".join(["auto", *forms()]),
    "metric": lambda: "prediction, preference or filled",
    "single_rater": lambda: "pad, drop or keep",
    "generalize": lambda: "auto, ndgh, dgh or none",
}


def with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of all settings that have one; it gets their values as the mapping `settings`.

    The function's own options keep their places, and those of the settings come where `settings` stands.
    """
    return _given(function, dict(_options()))


def with_input_settings(function: Callable[..., None]) -> Callable[..., None]:
    """The same, with the settings of the input alone."""
    return _given(function, dict(_options(INPUT)))


def pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """COLUMN=VALUE texts as a mapping. Raises InputError for what is none."""
    found = {}
    for each in given or []:
        name, sign, value = each.partition("=")
        if not sign or not value:
            msg = f"{option} takes COLUMN=VALUE, not {each!r}."
            raise InputError(msg)
        found[name] = value
    return found


def _given(function: Callable[..., None], options: Mapping[str, inspect.Parameter]) -> Callable[..., None]:
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.name == "settings":
            parameters += options.values()
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(function)
    def command(**given: Any) -> None:
        settings = {name: _value(name, given.pop(name)) for name in options}
        function(settings=settings, **given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _options(section: str | None = None) -> list[tuple[str, inspect.Parameter]]:
    found = []
    for name, field in PublishSettings.model_fields.items():
        extra: Mapping[str, Any] = dict(field.json_schema_extra or {})  # type: ignore[arg-type]
        if not extra.get("option") or section not in (None, extra["section"]):
            continue
        told = str(field.description)
        if name in _LISTED:
            told = f"{told.rstrip('.')}: {_LISTED[name]()}"
        if field.default is not None and field.default != [] and not isinstance(field.default, bool):
            told = told if "(default" in told else f"{told.rstrip('.')} (default {field.default})."
        option = typer.Option(
            extra["option"], metavar=extra["metavar"], help=told, rich_help_panel=extra["section"], show_default=False
        )
        kind = _kind(field.annotation)
        annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
        found.append(
            (
                name,
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation),
            )
        )
    return found


def _kind(annotation: Any) -> type:
    """What typer parses: numbers and flags by itself, all else as text."""
    return annotation if annotation in (int, float, bool) else _of_name(str(annotation))


def _of_name(annotation: str) -> type:
    if "list" in annotation or "str" in annotation:
        return str
    if "bool" in annotation:
        return bool
    if "float" in annotation:
        return float
    return int if "[int" in annotation else str


def _value(name: str, given: Any) -> Any:
    """The value of an option as the schema has it."""
    if not isinstance(given, str):
        return given
    if name == "scale":
        return _numbers(given)
    if name == "artifacts":
        return int(given) if given.strip().isdigit() else names(given)
    if name in ("personal_columns", "personal_shared", "categorical_artifacts"):
        return names(given)
    if name == "personal_recoding":
        return mapping_of_file("--personal-recoding", Path(given))
    return given


def mapping_of_file(option: str, file: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises InputError where it cannot be read, or holds none."""
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{option} {file} cannot be read ({type(error).__name__})."
        raise InputError(msg) from None
    if not isinstance(found, dict):
        msg = f"{option} {file} holds no mapping, as k: 10."
        raise InputError(msg)
    return found


def names(listed: str | None) -> list[str] | None:
    """The names in A,B,..."""
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def _numbers(scale: str) -> list[float]:
    try:
        numbers = [float(part) for part in scale.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3):
        msg = f"--scale takes MIN,MAX or MIN,MAX,STEP, not {scale!r}."
        raise InputError(msg)
    return numbers
