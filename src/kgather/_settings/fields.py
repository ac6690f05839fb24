"""How a setting is declared: what it may be, what it does in words, and where it is asked for."""

from typing import Any

from pydantic import Field

INPUT = "The input"
USERS = "What is known of users"
GATHERING = "Gathering"
SENSITIVE = "Diversity of what is sensitive"
RELEASE = "The release"
OVER_TIME = "Releases over time"
SEVERAL = "Several releases, in dbt"
SECTIONS = (INPUT, USERS, GATHERING, SENSITIVE, RELEASE, OVER_TIME, SEVERAL)


def setting(
    default: Any,
    help: str,
    *,
    section: str,
    docs: str | None = None,
    shown_default: str | None = None,
    option: str | None = None,
    metavar: str | None = None,
    values: str | None = None,
    enum: list[str] | None = None,
    also: str | None = None,
    own_name: bool = True,
    **bounds: Any,
) -> Any:
    """A field of the settings.

    help: what it does, for the command line. docs: the same at more length, in Markdown, for docs/vars.md. section: its
    place in both. shown_default: the default in words, if the value does not tell. option: its option on the command
    line, if it has one; metavar: what stands for the value there. values: what it may be in words, if the type does not
    tell. enum: the values, if the type does not say them. also: what else has to be true of a `value` of the right
    type, as an expression of Jinja, for Python and for dbt. own_name: no other project would have a var of this name,
    so that the name without prefix is still read, with a warning.
    """
    extra: dict[str, Any] = {
        "docs": docs or help,
        "section": section,
        "shown_default": shown_default,
        "option": option,
        "metavar": metavar,
        "own_name": own_name,
    }
    if values is not None:
        extra["description_of_values"] = values
    if also is not None:
        extra["also"] = also
    if enum is not None:
        extra["enum"] = enum
    return Field(default, description=help, json_schema_extra=extra, **bounds)
