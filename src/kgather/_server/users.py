"""Who may log in: a file of SCRAM-SHA-256 verifiers, in the text form that PostgreSQL keeps them in (RFC 5802, 7677).

    analyst:SCRAM-SHA-256$4096:salt$StoredKey:ServerKey

A verifier proves a password and does not hold it. An unknown name gets a verifier that is made up, always the same for
the same name, so that neither the exchange nor its time says who has an account.
"""

import base64
import binascii
import fcntl
import hashlib
import hmac
import os
import re
import secrets
import stringprep
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unicodedata import ucd_3_2_0

from kgather._errors import InputError

ITERATIONS = 4096
"""As PostgreSQL; every login by SCRAM costs the client this, and basic authentication the server."""
_MOST_ITERATIONS = 10_000_000
_SALT, _KEY = 16, 32
_SHORT = 8  # characters of a password
_LONG = 1024
_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)
_NAME = re.compile(r"[^\s:\x00-\x1f\x7f]{1,63}")


@dataclass(frozen=True)
class Verifier:
    """What proves a password of a user, in the words of RFC 5802."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, password: str, *, iterations: int = ITERATIONS, salt: bytes | None = None) -> "Verifier":
        """The verifier of a password, by default under a salt of its own."""
        salt = secrets.token_bytes(_SALT) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", _prepared(password), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        return cls(salt, iterations, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))

    @classmethod
    def parse(cls, text: str) -> "Verifier":
        """Read the text form. Raises ValueError."""
        mechanism, middle, keys = text.split("$")
        if mechanism != "SCRAM-SHA-256":
            raise ValueError(mechanism)
        iterations, salt = middle.split(":")
        stored, server = (base64.b64decode(key, validate=True) for key in keys.split(":"))
        found = cls(base64.b64decode(salt, validate=True), int(iterations), stored, server)
        if not (found.salt and ITERATIONS <= found.iterations <= _MOST_ITERATIONS):
            raise ValueError(iterations)
        if len(stored) != _KEY or len(server) != _KEY:
            raise ValueError(keys)
        return found

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return "Verifier(...)"

    def proves(self, password: str) -> bool:
        """Whether a password is the right one, in a time that does not hang on how wrong it is."""
        found = Verifier.of(password, iterations=self.iterations, salt=self.salt)
        return hmac.compare_digest(found.stored_key, self.stored_key)


class Users:
    """The users of a file, as they were when it was read."""

    def __init__(self, verifiers: Mapping[str, Verifier], secret: bytes | None = None) -> None:
        self._verifiers = dict(verifiers)
        self._secret = secret or secrets.token_bytes(32)

    @property
    def names(self) -> frozenset[str]:
        """Who has a password."""
        return frozenset(self._verifiers)

    def verifier(self, name: str) -> Verifier:
        """The verifier of a user. Of an unknown name one that no password proves, always the same for that name."""
        made_up = Verifier(
            hmac.digest(self._secret, b"salt" + name.encode("utf-8", "replace"), "sha256")[:_SALT],
            next(iter(self._verifiers.values())).iterations if self._verifiers else ITERATIONS,
            hmac.digest(self._secret, b"stored" + name.encode("utf-8", "replace"), "sha256"),
            hmac.digest(self._secret, b"server" + name.encode("utf-8", "replace"), "sha256"),
        )
        return self._verifiers.get(name, made_up)

    def check(self, name: str, password: str) -> bool:
        """Whether a password is this user's. As much work for a name that nobody has."""
        proved = self.verifier(name).proves(password)
        return proved and name in self._verifiers

    def replaced_by(self, others: "Users") -> None:
        """Take the users of another reading for those of this one; made-up verifiers stay as they are."""
        self._verifiers = others._verifiers


def load(path: Path, principals: Collection[str] | None = None) -> Users:
    """Read a file of users. principals: who the policy names.

    Raises InputError where it cannot be read, a line is wrong, or it names somebody whom the policy does not.
    """
    found = _read(path)
    for name in found if principals is not None else ():
        if name not in (principals or ()):
            known = ", ".join(sorted(principals or ())) or "none"
            msg = (
                f"{path} has a user {name!r}; the policy names the principals: {known}. Add {name!r} under principals,"
                f" or: kgather user remove {name} --users {path}"
            )
            raise InputError(msg)
    return Users(found)


def add(path: Path, name: str, password: str, *, iterations: int = ITERATIONS) -> bool:
    """Set a user's password; whether the user is new. Raises InputError where name or password will not do."""
    if not _NAME.fullmatch(name):
        msg = "A user's name has 1 to 63 characters, none of them a space or a colon."
        raise InputError(msg)
    if not _SHORT <= len(password) <= _LONG or "\x00" in password:
        msg = f"A password has {_SHORT} characters or more, {_LONG:,} at most."
        raise InputError(msg)
    if not ITERATIONS <= iterations <= _MOST_ITERATIONS:
        msg = f"iterations is between {ITERATIONS:,} and {_MOST_ITERATIONS:,}."
        raise InputError(msg)
    with _changing(path) as users:
        new = name not in users
        users[name] = Verifier.of(password, iterations=iterations)
    return new


def remove(path: Path, name: str) -> None:
    """Take a user out. Raises InputError where there is none of that name."""
    with _changing(path) as users:
        if users.pop(name, None) is None:
            msg = f"{path} has no user {name!r}."
            raise InputError(msg)


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, Verifier]]:
    """The users of a file, written back whole; two who change it come one after the other."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            users = _read(path) if path.exists() else {}
            yield users
            _write(path, users)
        finally:
            os.close(lock)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}."
        raise InputError(msg) from None


def _write(path: Path, users: Mapping[str, Verifier]) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.writelines(f"{name}:{verifier}\n" for name, verifier in sorted(users.items()))
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            # Whoever runs the server keeps the file, also when root changes it.
            stat = path.stat()
            os.chown(draft, stat.st_uid, stat.st_gid)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Verifier]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        msg = f"{path}, the file of users, does not exist. Add one with: kgather user add NAME --users {path}"
        raise InputError(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        msg = f"{path}, the file of users, cannot be read: {reason}."
        raise InputError(msg) from None
    users: dict[str, Verifier] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, text = line.partition(":")
        try:
            if not colon or not _NAME.fullmatch(name) or name in users:
                raise ValueError(name)
            users[name] = Verifier.parse(text.strip())
        except (ValueError, binascii.Error):
            msg = (
                f"{path}:{number}: this is no line of a user: NAME:SCRAM-SHA-256$..., as `kgather user add` writes it."
            )
            raise InputError(msg) from None
    return users


def _prepared(password: str) -> bytes:
    """A password as SASLprep has it (RFC 4013) or, like PostgreSQL, as it is where that is not allowed."""
    if password.isascii():
        return password.encode()
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    normal = ucd_3_2_0.normalize("NFKC", mapped)
    right_to_left = [stringprep.in_table_d1(c) for c in normal]
    mixed = any(right_to_left) and (
        any(stringprep.in_table_d2(c) for c in normal) or not (right_to_left[0] and right_to_left[-1])
    )
    if not normal or mixed or any(table(c) for table in _PROHIBITED for c in normal):
        return password.encode("utf-8", "surrogateescape")
    return normal.encode()
