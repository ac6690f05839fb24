"""The settings that clients make: a fixed list. None of them changes an answer but in how times are read and written.

What is not in the list, or would change how values look, is refused: nothing a client sets reaches the engine.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from kgather._server.postgres.errors import NOT_SUPPORTED, UNKNOWN_SETTING, WRONG_VALUE, PgError
from kgather._version import __version__

VERSION = f"15.0 (kgather {__version__})"
"""What clients take the server for: they choose their questions about the catalog by it."""

Check = Callable[[str], str | None]
"""The value as it is kept, None where it is not accepted."""

_UNITS = {"": 1, "us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SCHEMAS = {"main", "public", "pg_catalog", "$user", ""}
_LONG = 1 << 31


def _only(*accepted: str) -> Check:
    """Values that mean the first of them."""
    return lambda value: accepted[0] if value.lower() in {each.lower() for each in accepted} else None


def _one_of(*accepted: str) -> Check:
    return lambda value: next((each for each in accepted if each == value.lower()), None)


def _name(value: str) -> str | None:
    return "".join(c if " " <= c <= "~" else "?" for c in value)[:63]


def _between(low: int, high: int) -> Check:
    def check(value: str) -> str | None:
        return value if re.fullmatch(r"-?\d{1,9}", value, re.ASCII) and low <= int(value) <= high else None

    return check


def milliseconds(value: str) -> int | None:
    """A duration as PostgreSQL writes them, None where it is none."""
    found = re.fullmatch(r"(\d{1,12})\s*(us|ms|s|min|h|d|)", value.strip(), re.ASCII)
    if found is None:
        return None
    whole = round(int(found[1]) * _UNITS[found[2]])
    return whole if whole < _LONG else None


def _duration(value: str) -> str | None:
    return None if (found := milliseconds(value)) is None else f"{found}ms" if found else "0"


def _zone(value: str) -> str | None:
    return value if re.fullmatch(r"[A-Za-z0-9_+\-/:.]{1,64}", value) and ".." not in value else None


def _date_style(value: str) -> str | None:
    """ISO alone; the order of day and month is of no meaning for it."""
    words = [word for word in re.split(r"[,\s]+", value.upper()) if word]
    return "ISO, MDY" if words and set(words) <= {"ISO", "MDY", "DMY", "YMD", "DEFAULT"} else None


def _encoding(value: str) -> str | None:
    """UTF-8, however it is spelt."""
    return "UTF8" if re.sub(r"[^a-z0-9]", "", value.lower()) in ("utf8", "unicode") else None


def _path(value: str) -> str | None:
    names = {name.strip().strip("\"'").lower() for name in value.split(",")}
    return "main" if names <= _SCHEMAS else None


_BOOLEAN_OFF = _only("off", "false", "no", "0")
_BOOLEAN_ON = _only("on", "true", "yes", "1")
_LEVELS = ("read committed", "read uncommitted", "repeatable read", "serializable")


@dataclass(frozen=True)
class _Setting:
    """name: as clients are told. check: of values; None: it cannot be set. reported: clients are told of changes."""

    name: str
    default: str
    check: Check | None = None
    reported: bool = False


_SETTINGS = {
    setting.name.lower(): setting
    for setting in (
        _Setting("application_name", "", _name, reported=True),
        _Setting("backslash_quote", "safe_encoding", _only("safe_encoding", "on", "off")),
        _Setting("bytea_output", "hex", _only("hex")),
        _Setting("client_encoding", "UTF8", _encoding, reported=True),
        _Setting("client_min_messages", "notice", _one_of("debug5", "debug1", "log", "notice", "warning", "error")),
        _Setting("DateStyle", "ISO, MDY", _date_style, reported=True),
        _Setting("default_table_access_method", "heap"),
        _Setting("default_tablespace", ""),
        _Setting("default_transaction_isolation", "serializable", lambda _: "serializable"),
        _Setting("default_transaction_read_only", "on", _BOOLEAN_ON, reported=True),
        _Setting("extra_float_digits", "1", _between(-15, 3)),
        _Setting("idle_in_transaction_session_timeout", "0", _duration),
        _Setting("in_hot_standby", "off", reported=True),
        _Setting("integer_datetimes", "on", reported=True),
        _Setting("IntervalStyle", "postgres", _only("postgres"), reported=True),
        _Setting("is_superuser", "off", reported=True),
        _Setting("jit", "off", _BOOLEAN_OFF),
        _Setting("lc_collate", "C"),
        _Setting("lc_ctype", "C"),
        _Setting("lock_timeout", "0", _duration),
        _Setting("max_identifier_length", "63"),
        _Setting("max_index_keys", "32"),
        _Setting("row_security", "on", _BOOLEAN_ON),
        _Setting("search_path", "main", _path),
        _Setting("server_encoding", "UTF8", reported=True),
        _Setting("server_version", VERSION, reported=True),
        _Setting("server_version_num", "150000"),
        _Setting("standard_conforming_strings", "on", _BOOLEAN_ON, reported=True),
        _Setting("statement_timeout", "0", _duration),
        _Setting("TimeZone", "UTC", _zone, reported=True),
        _Setting("transaction_isolation", "serializable", lambda _: "serializable"),
        _Setting("transaction_read_only", "on", _BOOLEAN_ON),
    )
}
_ALIASES = {"time zone": "timezone", "names": "client_encoding", "transaction isolation level": "transaction_isolation"}
NAMES = tuple(setting.name for setting in _SETTINGS.values())


@dataclass
class Settings:
    """The settings of one connection. changed: what was set since it began; first: what it began with."""

    first: Mapping[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """A setting's value. Raises PgError where there is none of that name."""
        setting = _setting(name)
        key = setting.name.lower()
        return self.changed.get(key, self.first.get(key, setting.default))

    def name(self, name: str) -> str:
        """A setting's name, spelt as PostgreSQL spells it. Raises PgError where there is none of that name."""
        return _setting(name).name

    def set(self, name: str, value: str | None) -> str | None:
        """Set a setting, to its default where value is None. Returns its name where clients are to be told.

        Raises PgError where it is not in the list, or not to that value.
        """
        setting = _setting(name)
        before = self.get(name)
        if value is None:
            self.changed.pop(setting.name.lower(), None)
        else:
            self.changed[setting.name.lower()] = accepted(name, value)
        return setting.name if setting.reported and self.get(name) != before else None

    def reset(self) -> list[str]:
        """Set all to what the connection began with. Returns the names that clients are to be told of."""
        return [name for key in list(self.changed) if (name := self.set(key, None))]

    def reported(self) -> dict[str, str]:
        """What clients are told when they connect."""
        return {setting.name: self.get(setting.name) for setting in _SETTINGS.values() if setting.reported}

    def all(self) -> dict[str, str]:
        """Every setting."""
        return {name: self.get(name) for name in NAMES}

    @property
    def timeout_ms(self) -> int | None:
        """What the client wants a statement to take at most."""
        return milliseconds(self.get("statement_timeout")) or None

    @property
    def zone(self) -> tzinfo:
        """The time zone. Raises PgError where the machine does not know it."""
        name = self.get("TimeZone")
        found = UTC if name.upper() in ("UTC", "GMT", "Z") else _ZONES.get(name.lower())
        if found is None:
            raise PgError(NOT_SUPPORTED, "The connection's time zone is not known here. Set another, as UTC.")
        return found


def _zones() -> dict[str, tzinfo]:
    """All time zones: read when the module is; later the server may not be allowed to."""
    found: dict[str, tzinfo] = {}
    for name in available_timezones():
        with suppress(ZoneInfoNotFoundError, OSError, ValueError):
            found[name.lower()] = ZoneInfo(name)
    return found


_ZONES = _zones()


def accepted(name: str, value: str) -> str:
    """The value of a setting as it is kept. Raises PgError."""
    setting = _setting(name)
    kept = setting.check(value.strip()) if setting.check is not None else None
    if kept is None:
        raise PgError(WRONG_VALUE, f"{setting.name} cannot be set to this value here.")
    return kept


def _setting(name: str) -> _Setting:
    key = name.lower()
    found = _SETTINGS.get(_ALIASES.get(key, key))
    if found is None:
        listed = ", ".join(setting.name for setting in _SETTINGS.values() if setting.check is not None)
        told = "".join(c if " " <= c <= "~" else "?" for c in name)[:60]
        raise PgError(UNKNOWN_SETTING, f"There is no setting {told!r}. Settings that clients may make: {listed}.")
    return found
