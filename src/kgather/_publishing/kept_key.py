"""The key of the noise in the items' vectors, kept from one publication to the next.

Noise that is drawn anew for each release of the same data averages out, so the key outlives the working database. It is
as secret as the map from users to groups: whoever has it can take the noise away.
"""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb

from kgather._errors import InputError

_BYTES = 32
OPTION = "--noise-key"


def usual_place() -> Path:
    """Where the key is kept if nothing else is said: the user's folder for state (XDG)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return folder / "kgather" / "noise.key"


def kept_key(place: Path | None, warn: Callable[[str], None]) -> bytes:
    """The key at a place, made if there is none yet, readable by its owner only.

    place: None stands for the usual one. Where that cannot be written, `warn` hears that the key is lost afterwards.
    Raises InputError where a place that was named cannot be used, what is there is no key, or others may read it.
    """
    try:
        # A home that is not known is no place to write to.
        file = usual_place() if place is None else place
        return _read(file) if file.exists() else _made(file)
    except (OSError, RuntimeError) as error:
        if place is not None:
            msg = f"the key of the noise cannot be kept in {place} ({_reason(error)}). Give another {OPTION}."
            raise InputError(msg) from None
        warn(
            f"the key of the noise cannot be kept ({_reason(error)}): this release has noise of its own. Releases of "
            f"the same data average it out, so keep one key: {OPTION} FILE."
        )
        return secrets.token_bytes(_BYTES)


def put_key(con: duckdb.DuckDBPyConnection, key: bytes) -> None:
    """Put the key where the pipeline looks for that of an earlier run."""
    con.execute("create or replace table int_kgather__noise_key as select cast(? as blob) as key", [key])


def _reason(error: BaseException) -> str:
    return (error.strerror or "").lower() if isinstance(error, OSError) else "no home folder is known"


def _read(file: Path) -> bytes:
    text = file.read_text(encoding="ascii", errors="replace").strip()
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != _BYTES:
        msg = f"{file} holds no key of noise: {2 * _BYTES} hexadecimal digits. Give another {OPTION}."
        raise InputError(msg)
    if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        msg = f"{file} can be read by others, and the key is secret. Make it its owner's alone (chmod 600)."
        raise InputError(msg)
    return key


def _made(file: Path) -> bytes:
    key = secrets.token_bytes(_BYTES)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written aside and linked: of two publications that begin at once, both take the key of the first.
    part = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(key.hex() + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(part, file)
    except FileExistsError:
        return _read(file)
    finally:
        part.unlink()
    return key
