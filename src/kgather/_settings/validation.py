"""Turns what pydantic finds wrong into sentences."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kgather._errors import InputError

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Build a model from the values that were given (None: not given).

    Raises InputError naming each value that is wrong and what it may be.
    """
    try:
        return model(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        raise InputError("\n".join(_sentence(model, problem) for problem in error.errors())) from None


def _sentence(model: type[BaseModel], problem: Any) -> str:
    where = next((str(part) for part in problem["loc"] if part in model.model_fields), "")
    what = problem["msg"].removeprefix("Value error, ")
    given = "" if isinstance(problem["input"], dict | BaseModel) else f" (given: {problem['input']!r})"
    return f"{where}: {what}{given}." if where else f"{what}."
