"""The parameters of the startup message: who it is, and settings, among them those behind `options`."""

from collections.abc import Iterator, Mapping

from kgather._server.postgres.errors import NOT_SUPPORTED, SYNTAX, PgError

_NO_SETTINGS = ("user", "database", "options", "replication")


def options(parameters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The settings of a startup message. Raises PgError where it wants something else than to ask."""
    if parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise PgError(NOT_SUPPORTED, "There is nothing to replicate.")
    yield from _command_line(parameters.get("options", ""))
    for name, value in parameters.items():
        if name not in _NO_SETTINGS and not name.startswith("_pq_."):
            yield name, value


def _command_line(text: str) -> Iterator[tuple[str, str]]:
    """-c name=value, -cname=value and --name=value, with a backslash before what does not separate."""
    words = iter(_words(text))
    for word in words:
        if word == "-c":
            setting = next(words, "")
        elif word.startswith(("-c", "--")):
            setting = word[2:]
        else:
            setting = ""
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise PgError(SYNTAX, "Options of the startup message are written as -c name=value.")
        yield name.strip().replace("-", "_"), value


def _words(text: str) -> Iterator[str]:
    word, started, escaped = "", False, False
    for c in text:
        if escaped:
            word, escaped = word + c, False
        elif c == "\\":
            started, escaped = True, True
        elif c.isspace():
            if started:
                yield word
            word, started = "", False
        else:
            word, started = word + c, True
    if started:
        yield word
