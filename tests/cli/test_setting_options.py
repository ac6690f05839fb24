"""Options of settings give values of the settings' own types: the schema is strict."""

import inspect
from typing import Any

import pytest

from kgather._cli.setting_options import with_settings
from kgather._settings.publication import PublishSettings
from kgather._settings.wording import schemas

KINDS = {"integer": int, "number": float, "boolean": bool}


@with_settings
def _command(*, settings: dict[str, Any]) -> None:
    """Take all options of settings."""


def _types(schema: dict[str, Any]) -> set[str]:
    return {kind for part in schema.get("anyOf", [schema]) for kind in [part.get("type")] if kind not in (None, "null")}


@pytest.mark.parametrize("name", inspect.signature(_command).parameters)
def test_an_option_of_a_number_takes_a_number(name: str) -> None:
    [kind] = _types(schemas(PublishSettings)[name]) if len(_types(schemas(PublishSettings)[name])) == 1 else [None]
    annotation = inspect.signature(_command).parameters[name].annotation
    taken = [part for part in annotation.__origin__.__args__ if part is not type(None)]
    if kind in KINDS:
        assert taken == [KINDS[kind]]
    else:
        assert taken in ([str], [bool])
