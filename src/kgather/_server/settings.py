"""The server's own settings: options of `kgather serve`, or a YAML file of the same names."""

import ipaddress
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kgather._errors import InputError

_PATHS = ("users", "tls_certificate", "tls_key", "log_file")


class ServerSettings(BaseModel):
    """How the server listens and what it allows. Numbers are limits; what goes beyond them is refused, not kept waiting
    for ever."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    host: str = "127.0.0.1"
    port: int = Field(5432, ge=0, le=65535)
    flight_port: int | None = Field(None, ge=0, le=65535)
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = Field(None, ge=0, le=65535)
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    users: Path = Path("users.scram")
    """The file of password hashes that `kgather user` writes."""

    max_connections: int = Field(100, ge=1)
    """Connections at once that have logged in."""
    max_unauthenticated: int = Field(100, ge=1)
    """Connections at once that have not logged in; they take none of those above."""
    connections_per_principal: int = Field(20, ge=1)
    queries_at_once: int = Field(4, ge=1, le=256)
    """Threads that ask the guard."""
    queries_waiting: int = Field(200, ge=0)
    queries_per_principal: int = Field(20, ge=1)
    """Running and waiting together."""
    statement_timeout_ms: int | None = Field(None, ge=1)
    """None: what the policy says under limits.time_ms, and no limit on waiting for a turn."""
    authentication_timeout_s: float = Field(10, gt=0)
    idle_timeout_s: float | None = Field(3600, gt=0)
    session_s: float = Field(12 * 3600, gt=0)
    """How long a bearer token of Arrow Flight is good."""
    result_s: float = Field(60, gt=0)
    """How long a result of Arrow Flight waits to be fetched."""
    max_message_bytes: int = Field(16 * 2**20, ge=1024)
    max_unauthenticated_bytes: int = Field(10_000, ge=1024)
    shutdown_grace_s: float = Field(10, ge=0)

    memory: str | None = Field(None, pattern=r"^[1-9][0-9]*(\.[0-9]+)?\s*([KMGT]i?B)$")
    """Address space of the whole process. None: made of the policy's limits."""
    user: str | None = None
    """Whom to become when started as root."""
    allow_root: bool = False
    log_file: Path | None = None
    """None: standard error."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    audit_max_bytes: int = Field(10_000_000, ge=1_000)
    audit_backups: int = Field(9, ge=0, le=10_000)
    audit_every: Literal["hour", "day", "week"] | None = None
    """Also begin a new audit log with each of these."""

    @model_validator(mode="after")
    def _fits_together(self) -> "ServerSettings":
        if (self.tls_certificate is None) != (self.tls_key is None):
            msg = "tls_certificate and tls_key go together"
            raise ValueError(msg)
        ports = [port for port in (self.port, self.flight_port) if port]
        if len(set(ports)) < len(ports):
            msg = "port and flight_port are two ports"
            raise ValueError(msg)
        return self

    @property
    def tls(self) -> bool:
        """Whether there is a certificate."""
        return self.tls_certificate is not None


def load_settings(config: Path | None = None, folder: Path | None = None, **options: Any) -> ServerSettings:
    """Settings of a file, and of options that go before it; None is no option.

    Paths in the file are beside it; `users`, where nothing names it, is in `folder`. Raises InputError naming file and
    entry.
    """
    values: dict[str, Any] = {}
    if config is not None:
        values = _read(config)
        beside = config.resolve().parent
        values |= {name: beside / values[name] for name in _PATHS if isinstance(values.get(name), str)}
    values |= {name: value for name, value in options.items() if value is not None}
    if folder is not None:
        values.setdefault("users", folder / "users.scram")
    try:
        return ServerSettings(**values)
    except ValidationError as error:
        raise InputError("\n".join(_sentence(problem, config) for problem in error.errors())) from None


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own only. A name is, if it is localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _read(config: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(config.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{config}: the settings cannot be read: {error.strerror}."
        raise InputError(msg) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        msg = f"{config}: this is no YAML."
        raise InputError(msg) from None
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        msg = f"{config}: settings are a list of entries, as port: 5432."
        raise InputError(msg)
    return values


def _sentence(problem: Any, config: Path | None) -> str:
    entry = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        what = "is no setting of the server; remove it or correct its name"
    else:
        what = problem["msg"].removeprefix("Value error, ")
        what = what[0].lower() + what[1:]
    where = f"{config}: " if config is not None else ""
    return f"{where}{entry}: {what}." if entry else f"{where}{what}."
