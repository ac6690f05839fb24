"""What SIGHUP reads again: log, policy, users and certificate. What cannot be read again stays as it was, and is said.

A policy is read again where its text has changed. What may change in it is the ledger's to say. Other files, and
another mode, take a restart, because the process has locked itself out of everything else.
"""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.policy import Policy, load_policy
from kgather._server import lockdown
from kgather._server.lockdown import Private
from kgather._server.service import Service
from kgather._server.settings import ServerSettings
from kgather._server.users import Users, load

_FIXED = ("database", "ledger", "audit_log", "mode")

_log = logging.getLogger("kgather._server")


@dataclass
class Reloading:
    """What a server reads again. text: of the policy as it was read last; renewed: called when the certificate is
    another one."""

    policy_path: Path
    text: bytes
    settings: ServerSettings
    service: Service
    users: Users
    tls: ssl.SSLContext | None
    renewed: Callable[[], None]

    def run(self) -> None:
        """Read all again, one after the other, and log what came of it. May take as long as a start."""
        policy = self._policy()
        users = self._read_users()
        certificate = self._certificate()
        flight = "restart for another certificate" if self.tls is not None and self.settings.flight_port else None
        told = {"policy": policy, "users": users, "certificate": certificate, "flight": flight}
        _log.info("reloaded", extra=told)

    def _policy(self) -> str:
        try:
            lockdown.check_private([Private(self.policy_path, "the policy")])
            text = self.policy_path.read_bytes()
            if text == self.text:
                return "as it was"
            found = load_policy(self.policy_path)
            fixed = [name for name in _FIXED if getattr(found, name) != getattr(self.service.guard.policy, name)]
            if fixed:
                msg = f"{', '.join(fixed)} cannot change while the server runs. Restart it."
                raise InputError(msg)
            _check_memory(found, self.service.guard.policy)
            guard = Guard.from_policy(self.policy_path)
        except (InputError, OSError) as error:
            told = str(error) if isinstance(error, InputError) else f"it cannot be read: {error.strerror}"
            _log.error("the policy is kept as it was", extra={"told": told})
            return "kept"
        self.service.guard = guard
        self.text = text
        return "read again"

    def _read_users(self) -> int | str:
        try:
            lockdown.check_private([Private(self.settings.users, "the file of users")])
            found = load(self.settings.users, self.service.guard.policy.principals)
        except InputError as error:
            _log.error("users are kept as they were", extra={"told": str(error)})
            return "kept"
        self.users.replaced_by(found)
        self.service.permit(found.names)
        return len(found.names)

    def _certificate(self) -> str | None:
        certificate, key = self.settings.tls_certificate, self.settings.tls_key
        if self.tls is None or certificate is None or key is None:
            return None
        try:
            lockdown.check_private([Private(key, "the key of the certificate")])
            # Into a context of its own first: one that is half changed would let nobody in.
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password="")
            self.tls.load_cert_chain(certificate, key, password="")
        except (InputError, OSError) as error:
            told = str(error) if isinstance(error, InputError) else "its files cannot be read, or do not fit together"
            _log.error("the certificate is kept as it was", extra={"told": told})
            return "kept"
        self.renewed()
        return "read again"


def _check_memory(found: Policy, before: Policy) -> None:
    """The process was given as much address space as the policy asked for when it started."""
    if found.limits.memory != before.limits.memory:
        msg = "limits.memory cannot change while the server runs. Restart it."
        raise InputError(msg)
