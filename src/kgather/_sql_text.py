"""Names and texts as SQL writes them."""

from os import PathLike, fspath


def literal(text: str | PathLike[str]) -> str:
    """Return a text as a literal of SQL."""
    return "'" + fspath(text).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name as a quoted identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'
