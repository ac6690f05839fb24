"""Options of a method, checked against its schema."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from kgather._errors import InputError
from kgather._settings.wording import told


def checked_options(kind: type[BaseModel], given: Mapping[str, Any], owner: str) -> Any:
    """An instance of the options of `owner` from what was given.

    Raises InputError for options that there are not, naming those that there are, or for values that may not be.
    """
    names = list(kind.model_fields)
    known = f"its options are: {', '.join(names)}." if names else "it has none."
    said = [f"{owner} has no option {name!r}; {known}" for name in given if name not in names]
    if not said:
        try:
            return kind(**given)
        except ValidationError as error:
            wrong = {str(problem["loc"][0]) for problem in error.errors()}
            said = [f"{owner}: {told(kind, name, given[name])}" for name in names if name in wrong]
    raise InputError("\n".join(said))
