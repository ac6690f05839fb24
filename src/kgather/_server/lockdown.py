"""What the server gives up before it listens: privileges, core dumps, other files; and what it refuses to start with.

Linux only as far as it calls prctl and Landlock (man 7 landlock); elsewhere these say that they are not there.
"""

import ctypes
import grp
import os
import pwd
import resource
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kgather._errors import InputError

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on all architectures
_ABI_VERSION, _PATH_BENEATH = 1, 1

# Rights of Landlock, by the bit, and the version of its interface that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_ALL_OF = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_KEEP = _READ_FILE | _READ_DIR | _WRITE_FILE | _MAKE_REG | _REMOVE_FILE | _REFER | _TRUNCATE
_OF_SYSTEM = (
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/dev/urandom",
    *(f"/proc/{name}" for name in ("self", "cpuinfo", "meminfo", "stat")),
    *(f"/sys/{name}" for name in ("devices/system/cpu", "fs/cgroup")),
)
"""What libraries read to find out about the machine: none of it is about other processes or users."""
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL


@dataclass(frozen=True)
class Private:
    """A file that others must not read. what: for people."""

    path: Path
    what: str


def check_private(files: Iterable[Private], user: str | None = None) -> None:
    """Raises InputError naming every file that others can read or write, its mode, and the command that closes it.
    user: whom the process is going to become."""
    problems = [problem for file in files for problem in _problems(file, user)]
    if problems:
        raise InputError("\n".join(problems))


def check_binding(host: str, loopback: bool, tls: bool, option: str) -> None:
    """Raises InputError where an address beyond this machine is to be served without TLS."""
    if not (loopback or tls):
        msg = (
            f"{option} {host} is reached from other machines, and there is no certificate: passwords and answers would "
            "travel for all to read. Give --tls-certificate and --tls-key, or listen on 127.0.0.1."
        )
        raise InputError(msg)


def check_root(user: str | None, allow_root: bool) -> None:
    """Raises InputError where the server would run as root unasked, or is to become somebody and cannot."""
    if os.geteuid() != 0:
        if user is not None and pwd.getpwuid(os.geteuid()).pw_name != user:
            msg = f"--user {user} needs root to start with. Start as {user}, or leave --user out."
            raise InputError(msg)
    elif user is None and not allow_root:
        msg = (
            "The server does not run as root: a mistake in it would be root's. Start it as another user, or with "
            "--user NAME to become NAME before it listens; --allow-root, where there is nobody else."
        )
        raise InputError(msg)


def become(user: str | None) -> None:
    """Become a user for good: groups first, the user last. Raises InputError where there is none of that name."""
    if user is None or os.geteuid() != 0:
        return
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        msg = f"There is no user {user!r}. Make one: useradd --system --shell /usr/sbin/nologin {user}"
        raise InputError(msg) from None
    if entry.pw_uid == 0:
        msg = f"--user {user} is root. Name another user."
        raise InputError(msg)
    os.setgroups([group.gr_gid for group in grp.getgrall() if user in group.gr_mem])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    os.environ.update(HOME=entry.pw_dir, USER=user, LOGNAME=user)


def check_code() -> None:
    """Raises InputError where the user that this process became cannot read Python or its libraries: those of another
    user's home, mostly. What is imported later would fail in the middle."""
    for name in (sys.base_prefix, sys.prefix, *sys.path):
        path = Path(name)
        try:
            there = not name or not path.exists() or os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0))
        except PermissionError:
            there = False
        if not there:
            msg = (
                f"{_name_of(os.geteuid())} cannot read {name}, where Python or its libraries lie. Install kgather "
                "where every user can read it, as in a virtual environment below /opt that is made with the system's "
                "Python."
            )
            raise InputError(msg)


def keep_kernels(folder: Path) -> None:
    """Where this user's home takes no files, as that of an account for a service, keep compiled kernels in a folder of
    `folder`, or in the one that systemd made for such things. NUMBA_CACHE_DIR names another.

    Raises InputError where somebody else could write there: what is kept is run.
    """
    if "NUMBA_CACHE_DIR" in os.environ or _takes_files(Path.home()):
        return
    given = os.environ.get("CACHE_DIRECTORY", "").partition(":")[0]
    kept = Path(given or folder) / "kernels"
    try:
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = kept.stat()
    except OSError as error:
        msg = f"{kept}, for compiled kernels, cannot be made: {error.strerror}. Name a folder in NUMBA_CACHE_DIR."
        raise InputError(msg) from None
    if found.st_mode & 0o022 or found.st_uid not in (os.geteuid(), 0):
        msg = f"{kept}, for compiled kernels, can be written by others: chmod 700 {kept}"
        raise InputError(msg)
    os.environ["NUMBA_CACHE_DIR"] = str(kept)


def _takes_files(home: Path) -> bool:
    return home.is_dir() and os.access(home, os.W_OK)


def give_up_privileges() -> list[str]:
    """No new privileges, no core dumps, no looking into this process by others of the same user. Returns what the
    system does not have."""
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    missing = []
    for name, option, value in (
        ("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1),
        ("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, 0),
    ):
        if not _linux() or _libc().prctl(option, value, 0, 0, 0) != 0:
            missing.append(name)
    return missing


def limit_memory(size: int) -> None:
    """Let the address space of this process grow to `size` bytes and no further."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    most = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def restrict_files(read: Iterable[Path], keep: Iterable[Path]) -> str:
    """Let this thread, and those that it starts from now on, open nothing but what is under `read` (to read) and
    `keep` (to read, write, make and remove files). Says, for the log, how far that was possible."""
    abi = _landlock_abi()
    if abi < 1:
        return "not supported by this kernel"
    handled = _ALL_OF[max(version for version in _ALL_OF if version <= abi)]
    ruleset = _syscall(_CREATE_RULESET, ctypes.byref(ctypes.c_uint64(handled)), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return "refused by this kernel"
    try:
        # /dev/null and the like are written to; nothing is made there.
        rules = [(path, _READ) for path in read] + [(path, _KEEP) for path in keep]
        rules.append((Path("/dev/null"), _READ_FILE | _WRITE_FILE))
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        older = _threads() - 1
        if _syscall(_RESTRICT_SELF, ruleset, 0) != 0:
            return "refused by this kernel"
    finally:
        os.close(ruleset)
    return f"on, version {abi}" + (f", but not for {older} threads of libraries that ran before" if older else "")


def code_paths() -> Iterator[Path]:
    """Where Python, its libraries and what they need of the system lie."""
    for name in (*sys.path, sys.prefix, sys.base_prefix, sys.exec_prefix, "/usr/lib", "/usr/lib64", "/lib", "/lib64"):
        # An empty entry is the folder that the server was started in, which is nobody's library.
        if name and Path(name).resolve() != Path("/"):
            yield Path(name)
    yield Path(__file__).resolve().parent.parent
    # Where numba keeps what it compiled.
    yield Path(os.environ.get("NUMBA_CACHE_DIR", Path.home() / ".cache" / "numba"))
    for name in _OF_SYSTEM:
        yield Path(name)


def _problems(file: Private, user: str | None) -> Iterator[str]:
    try:
        found = file.path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        yield f"{file.path}, {file.what}, cannot be looked at: {error.strerror}."
        return
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        yield (
            f"{file.path}, {file.what}, can be read or written by others (its mode is {mode:04o}): "
            f"chmod {mode & 0o700:o} {file.path}"
        )
    elif found.st_uid not in (os.geteuid(), 0) and (user is None or _name_of(found.st_uid) != user):
        owner = _name_of(found.st_uid)
        me = _name_of(os.geteuid())
        yield f"{file.path}, {file.what}, belongs to {owner}, and the server runs as {me}: chown {me} {file.path}"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _linux() -> bool:
    return sys.platform == "linux"


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: object) -> int:
    call = _libc().syscall
    call.restype = ctypes.c_long
    return int(call(ctypes.c_long(number), *arguments))


def _landlock_abi() -> int:
    """The version of Landlock that the kernel speaks, below 1 where it does not."""
    if not _linux():
        return 0
    return _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ABI_VERSION)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = _PathBeneath(rights, handle)
        _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(handle)


def _threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())
