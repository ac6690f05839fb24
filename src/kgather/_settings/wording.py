"""Says in words what a setting may be, from its schema: the same words in Python, in dbt and in the docs."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

Schema = Mapping[str, Any]


@cache
def schemas(model: type[BaseModel]) -> Mapping[str, Schema]:
    """The JSON schema of each field of a model."""
    return dict(model.model_json_schema()["properties"])


def told(model: type[BaseModel], name: str, value: object) -> str:
    """The sentence for a value that a field may not have."""
    return f"{name} is {described(schemas(model)[name])}, not {as_json(value)}."


def as_json(value: object) -> str:
    """A value as dbt's `tojson` writes it."""
    return json.dumps(value, sort_keys=True, default=str)


def described(schema: Schema) -> str:
    """What a value of this schema is, in words; null is left out, as it means that nothing is given."""
    if "description_of_values" in schema:
        return str(schema["description_of_values"])
    if "anyOf" in schema:
        parts = [described(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(parts)
    if "enum" in schema or "const" in schema:
        values = [str(value) for value in schema.get("enum", [schema.get("const")])]
        return values[0] if len(values) == 1 else "one of " + ", ".join(values)
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _bounds(schema)
    if kind == "array":
        return (
            "a list of "
            + described(schema["items"]).removeprefix("a ")
            + ("" if "of " in described(schema["items"]) else "s")
        )
    return {"boolean": "true or false", "string": "a text", "object": "a mapping, as {rounds: 20}"}[str(kind)]


def _bounds(schema: Schema) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    if low is not None:
        return f" of at least {low:g}" + (f" and less than {below:g}" if below is not None else "")
    return f" above {above:g}" if above is not None else ""
