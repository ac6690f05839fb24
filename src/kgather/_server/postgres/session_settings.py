"""The settings that clients make: a fixed list. None of them changes an answer but in how times are read and written.

What is not in the list, or would change how values look, is refused: nothing a client sets reaches the engine.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from kgather._server.postgres.errors import NOT_SUPPORTED, UNKNOWN_SETTING, WRONG_VALUE, PgError
from kgather._version import __version__

VERSION = f"15.0 (kgather {__version__})"
"""What clients take the server for: they choose their questions about the catalog by it."""

Check = Callable[[str], str | None]
"""The value as it is kept, None where it is not accepted."""

_UNITS = {"": 1, "us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SCHEMAS = {"main", "public", "pg_catalog", "information_schema", "$user", ""}
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
    """In the largest unit of which it is a whole number, as PostgreSQL shows it."""
    found = milliseconds(value)
    if not found:
        return None if found is None else "0"
    unit = max((one for one, size in _UNITS.items() if one and size >= 1 and found % size == 0), key=_UNITS.__getitem__)
    return f"{found // round(_UNITS[unit])}{unit}"


def _zone(value: str) -> str | None:
    """A time zone that the machine knows, or an offset."""
    found = zone_of(value)
    return None if found is None else getattr(found, "key", value)


def zone_of(value: str) -> tzinfo | None:
    """The time zone of a name or an offset; None where there is none. A bare number counts hours east of Greenwich;
    behind letters, or with minutes, it counts those west of it, as POSIX has it."""
    if value.upper() in ("UTC", "GMT", "Z", "ZULU"):
        return _ZONES.get(value.lower(), UTC)
    known = _ZONES.get(value.lower())
    if known is not None:
        return known
    found = _OFFSET.fullmatch(value)
    if found is None or int(found["hours"]) > _MOST_HOURS or int(found["minutes"] or 0) > _MOST_MINUTES:
        return None
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    east = (found["sign"] == "-") if found["name"] or found["minutes"] else found["sign"] != "-"
    return timezone(offset if east else -offset)


def _date_style(value: str) -> str | None:
    """ISO alone; the order of day and month is of no meaning for it."""
    words = [word for word in re.split(r"[,\s]+", value.upper()) if word]
    return "ISO, MDY" if words and set(words) <= {"ISO", "MDY", "DMY", "YMD", "DEFAULT"} else None


def _encoding(value: str) -> str | None:
    """UTF-8, however it is spelt."""
    return "UTF8" if re.sub(r"[^a-z0-9]", "", value.lower()) in ("utf8", "unicode") else None


def _any(value: str) -> str | None:
    """What changes nothing may be anything."""
    return value if len(value) <= _LONG_VALUE and all(c >= " " for c in value) else None


def _path(value: str) -> str | None:
    """Schemas that there are, or that clients of PostgreSQL expect. They are shown as they were set, and tables are
    found in main whatever it is."""
    names = [name.strip().strip("\"'").lower() for name in value.split(",")]
    if not set(names) <= _SCHEMAS:
        return None
    if names == [""]:
        return ""
    return ", ".join(name if name.isidentifier() else f'"{name}"' for name in names)


def _role(value: str) -> str | None:
    """There is nobody else to be."""
    return "none" if value.lower() in ("none", "default") else None


_OFFSET = re.compile(
    r"(?P<name>[A-Za-z]{3,6}|<[A-Za-z0-9+:-]+>)?(?P<sign>[+-])?(?P<hours>\d{1,2})(?::(?P<minutes>\d{2}))?"
)
_MOST_HOURS, _MOST_MINUTES = 15, 59
_LONG_VALUE = 1_000
_MOST_OWN = 100
_BOOLEAN_OFF = _only("off", "false", "no", "0")
_BOOLEAN_ON = _only("on", "true", "yes", "1")
_LEVELS_OF_MESSAGES = (
    *("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error"),
    *("fatal", "panic"),
)
_LEVELS = ("read committed", "read uncommitted", "repeatable read", "serializable")


@dataclass(frozen=True)
class _Setting:
    """name: as clients are told. check: of values; None: it cannot be set. reported: clients are told of changes.
    own: whether it is one that a client made up."""

    name: str
    default: str
    check: Check | None = None
    reported: bool = False
    own: bool = False

    @property
    def hint(self) -> str | None:
        """What to do where a value is not accepted."""
        return _HINTS.get(self.name)


_HINTS = {
    "TimeZone": "Name a zone as Europe/Vienna or UTC, or an offset as +2.",
    "DateStyle": "Dates are written as ISO.",
    "client_encoding": "Texts are UTF8.",
    "search_path": "The schema is main.",
    "role": "There is no other role than your own.",
    "session_authorization": "Write DEFAULT: there is nobody else to be.",
}


@dataclass(frozen=True)
class Kept:
    """The settings of a connection at some time."""

    changed: Mapping[str, str]
    local: Mapping[str, str]


_WITHOUT_EFFECT = {
    "array_nulls": "on",
    "backend_flush_after": "0",
    "check_function_bodies": "on",
    "client_connection_check_interval": "0",
    "commit_delay": "0",
    "constraint_exclusion": "partition",
    "cursor_tuple_fraction": "0.1",
    "debug_print_plan": "off",
    "default_statistics_target": "100",
    "default_text_search_config": "pg_catalog.simple",
    "default_toast_compression": "pglz",
    "default_transaction_deferrable": "off",
    "deadlock_timeout": "1s",
    "effective_cache_size": "4GB",
    "effective_io_concurrency": "1",
    "enable_async_append": "on",
    "enable_bitmapscan": "on",
    "enable_gathermerge": "on",
    "enable_hashagg": "on",
    "enable_hashjoin": "on",
    "enable_incremental_sort": "on",
    "enable_indexonlyscan": "on",
    "enable_indexscan": "on",
    "enable_material": "on",
    "enable_memoize": "on",
    "enable_mergejoin": "on",
    "enable_nestloop": "on",
    "enable_parallel_append": "on",
    "enable_parallel_hash": "on",
    "enable_partition_pruning": "on",
    "enable_partitionwise_aggregate": "off",
    "enable_partitionwise_join": "off",
    "enable_seqscan": "on",
    "enable_sort": "on",
    "enable_tidscan": "on",
    "escape_string_warning": "on",
    "force_parallel_mode": "off",
    "from_collapse_limit": "8",
    "geqo": "on",
    "geqo_threshold": "12",
    "gin_fuzzy_search_limit": "0",
    "hash_mem_multiplier": "2",
    "idle_session_timeout": "0",
    "jit_above_cost": "100000",
    "join_collapse_limit": "8",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "log_duration": "off",
    "log_min_duration_statement": "-1",
    "log_min_error_statement": "error",
    "log_min_messages": "warning",
    "log_statement": "none",
    "maintenance_work_mem": "64MB",
    "max_parallel_maintenance_workers": "0",
    "max_parallel_workers": "0",
    "max_parallel_workers_per_gather": "0",
    "max_stack_depth": "2MB",
    "min_parallel_table_scan_size": "8MB",
    "parallel_leader_participation": "on",
    "parallel_setup_cost": "1000",
    "parallel_tuple_cost": "0.1",
    "plan_cache_mode": "auto",
    "quote_all_identifiers": "off",
    "random_page_cost": "4",
    "seq_page_cost": "1",
    "session_replication_role": "origin",
    "synchronize_seqscans": "on",
    "synchronous_commit": "on",
    "tcp_keepalives_count": "0",
    "tcp_keepalives_idle": "0",
    "tcp_keepalives_interval": "0",
    "tcp_user_timeout": "0",
    "temp_buffers": "8MB",
    "temp_tablespaces": "",
    "timezone_abbreviations": "Default",
    "track_activities": "on",
    "track_io_timing": "off",
    "transaction_deferrable": "off",
    "transaction_timeout": "0",
    "transform_null_equals": "off",
    "vacuum_cost_delay": "0",
    "work_mem": "4MB",
    "xmlbinary": "base64",
    "xmloption": "content",
}
"""Settings of PostgreSQL that could not change an answer here: any value is taken and shown again."""

_SETTINGS = {
    setting.name.lower(): setting
    for setting in (
        _Setting("application_name", "", _name, reported=True),
        _Setting("block_size", "8192"),
        _Setting("hot_standby", "off"),
        _Setting("max_connections", "100"),
        _Setting("password_encryption", "scram-sha-256"),
        _Setting("port", "5432"),
        _Setting("ssl", "off"),
        _Setting("backslash_quote", "safe_encoding", _only("safe_encoding", "on", "off")),
        _Setting("bytea_output", "hex", _only("hex")),
        _Setting("client_encoding", "UTF8", _encoding, reported=True),
        _Setting("client_min_messages", "notice", _one_of(*_LEVELS_OF_MESSAGES)),
        _Setting("DateStyle", "ISO, MDY", _date_style, reported=True),
        _Setting("default_table_access_method", "heap"),
        _Setting("default_tablespace", ""),
        _Setting("default_transaction_isolation", "serializable", lambda _: "serializable"),
        _Setting("default_transaction_read_only", "on", _BOOLEAN_ON, reported=True),
        _Setting("extra_float_digits", "1", _between(-15, 3)),
        _Setting("idle_in_transaction_session_timeout", "0", _duration),
        _Setting("in_hot_standby", "off", reported=True),
        _Setting("integer_datetimes", "on", reported=True),
        _Setting(
            "IntervalStyle",
            "postgres",
            _one_of("postgres", "iso_8601"),
            reported=True,
        ),
        _Setting("is_superuser", "off", reported=True),
        _Setting("jit", "off", _any),
        _Setting("lc_collate", "C"),
        _Setting("lc_ctype", "C"),
        _Setting("lock_timeout", "0", _duration),
        _Setting("max_identifier_length", "63"),
        _Setting("max_index_keys", "32"),
        _Setting("role", "none", _role),
        _Setting("row_security", "on", _any),
        _Setting("search_path", "main", _path),
        _Setting("session_authorization", "", reported=True),
        _Setting("server_encoding", "UTF8", reported=True),
        _Setting("server_version", VERSION, reported=True),
        _Setting("server_version_num", "150000"),
        _Setting("standard_conforming_strings", "on", _BOOLEAN_ON, reported=True),
        _Setting("statement_timeout", "0", _duration),
        _Setting("TimeZone", "UTC", _zone, reported=True),
        _Setting("transaction_isolation", "serializable", lambda _: "serializable"),
        _Setting("transaction_read_only", "on", _BOOLEAN_ON),
        *(_Setting(name, default, _any) for name, default in _WITHOUT_EFFECT.items()),
    )
}
_ALIASES = {
    "time zone": "timezone",
    "session authorization": "session_authorization",
    "names": "client_encoding",
    "transaction isolation level": "transaction_isolation",
}
NAMES = tuple(setting.name for setting in _SETTINGS.values())


@dataclass
class Settings:
    """The settings of one connection. first: what it began with; changed: what was set since; local: what is set until
    the end of the transaction."""

    first: Mapping[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """A setting's value. Raises PgError where there is none of that name."""
        setting = _setting(name)
        key = setting.name.lower()
        if setting.own and not any(key in values for values in (self.local, self.changed, self.first)):
            raise _unknown(name)
        for values in (self.local, self.changed, self.first):
            if key in values:
                return values[key]
        return setting.default

    def name(self, name: str) -> str:
        """A setting's name, spelt as PostgreSQL spells it. Raises PgError where there is none of that name."""
        return _setting(name).name

    def set(self, name: str, value: str | None, *, local: bool = False) -> str | None:
        """Set a setting, to its default where value is None. local: until the end of the transaction. Returns its name
        where clients are to be told.

        Raises PgError where it is not in the list, or not to that value.
        """
        setting = _setting(name)
        key = setting.name.lower()
        before = self._reported()
        if value is None:
            self.local.pop(key, None)
            if local:
                self.local[key] = self.first.get(key, setting.default)
            else:
                self.changed.pop(key, None)
        else:
            kept = accepted(name, value)
            if setting.own and len(self.changed) + len(self.local) > _MOST_OWN:
                raise PgError(WRONG_VALUE, f"A connection has {_MOST_OWN} settings of its own at most.")
            (self.local if local else self.changed)[key] = kept
            if not local:
                self.local.pop(key, None)
        return next(iter(self._told(before)), None)

    def kept(self) -> "Kept":
        """What there is to go back to."""
        return Kept(dict(self.changed), dict(self.local))

    def back_to(self, kept: "Kept") -> list[str]:
        """Undo what was set since. Returns the names that clients are to be told of."""
        before = self._reported()
        self.changed, self.local = dict(kept.changed), dict(kept.local)
        return self._told(before)

    def end_local(self) -> list[str]:
        """The transaction ends. Returns the names that clients are to be told of."""
        before = self._reported()
        self.local = {}
        return self._told(before)

    def _reported(self) -> dict[str, str]:
        return self.reported() if self.changed or self.local or self.first else {}

    def _told(self, before: Mapping[str, str]) -> list[str]:
        now = self.reported()
        return [name for name, value in now.items() if before.get(name, _SETTINGS[name.lower()].default) != value]

    def reset(self) -> list[str]:
        """Set all to what the connection began with. Returns the names that clients are to be told of."""
        before = self._reported()
        self.changed, self.local = {}, {}
        return self._told(before)

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
    def takes_notices(self) -> bool:
        """Whether the client wants to hear how answers came about."""
        return self.get("client_min_messages") not in ("warning", "error", "fatal", "panic")

    @property
    def takes_warnings(self) -> bool:
        """Whether the client wants to hear of statements that did nothing."""
        return self.get("client_min_messages") not in ("error", "fatal", "panic")

    @property
    def zone(self) -> tzinfo:
        """The time zone. Raises PgError where the machine does not know it."""
        found = zone_of(self.get("TimeZone"))
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
        raise PgError(WRONG_VALUE, f"{setting.name} cannot be set to this value here.", hint=setting.hint)
    return kept


def _setting(name: str) -> _Setting:
    key = name.lower()
    found = _SETTINGS.get(_ALIASES.get(key, key))
    if found is None:
        if _OWN.fullmatch(key):
            return _Setting(key, "", _any, own=True)
        raise _unknown(name)
    return found


def _unknown(name: str) -> PgError:
    listed = ", ".join(
        setting.name
        for setting in _SETTINGS.values()
        if setting.check is not None and setting.name not in _WITHOUT_EFFECT
    )
    told = "".join(c if " " <= c <= "~" else "?" for c in name)[:60]
    hint = f"Settings that clients may make: {listed}, and others of PostgreSQL that change nothing here."
    return PgError(UNKNOWN_SETTING, f"There is no setting {told!r}.", hint=hint)


_OWN = re.compile(r"[a-z_][a-z0-9_$]{0,62}(?:\.[a-z_][a-z0-9_$]{0,62})+")
"""A client's own setting, as app.user: PostgreSQL takes any with a dot in its name."""
