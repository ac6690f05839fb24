"""Turns what pydantic finds wrong into sentences."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kgather._errors import InputError
from kgather._settings.wording import schemas, told

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Build a model from the values that were given (None: not given).

    Raises InputError naming each value that is wrong and what it may be.
    """
    try:
        return model(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        # A value that fits none of several types is wrong once.
        sentences = dict.fromkeys(_sentence(model, problem, values) for problem in error.errors())
        raise InputError("\n".join(sentences)) from None


def _sentence(model: type[BaseModel], problem: Any, values: Mapping[str, Any]) -> str:
    where = next((str(part) for part in problem["loc"] if part in model.model_fields), "")
    kind = problem["type"]
    if kind == "missing":
        return f"{where} is not set."
    if kind == "extra_forbidden":
        return f"there is no setting {problem['loc'][0]!r}. There are: {', '.join(model.model_fields)}."
    if where and (_is_setting(model, where) or _has_several_types(model, where)):
        return told(model, where, values.get(where, problem["input"]))
    what = problem["msg"].removeprefix("Value error, ")
    given = "" if isinstance(problem["input"], dict | BaseModel) else f" (given: {problem['input']!r})"
    return f"{where}: {what}{given}." if where else f"{what}."


def _is_setting(model: type[BaseModel], name: str) -> bool:
    extra = model.model_fields[name].json_schema_extra
    return isinstance(extra, dict) and "section" in extra


def _has_several_types(model: type[BaseModel], name: str) -> bool:
    """Whether a value may be of one of several types: what is wrong for each of them contradicts the others."""
    parts = schemas(model)[name].get("anyOf", [])
    return len([part for part in parts if part.get("type") != "null"]) > 1
