"""Stops a command at once, whatever it does, and leaves nothing of it behind.

Engines and kernels work for seconds in one call, and Python hears of a signal only between its own steps. Nor is it
known as what an engine's interruption comes out of dbt. So nothing is interrupted: a thread that only waits for signals
removes what is private to the run, and ends the process.
"""

import contextlib
import os
import select
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from kgather import _stopping as run
from kgather._errors import StoppedError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_KEPT_IF_IGNORED = (signal.SIGINT, signal.SIGHUP)  # a shell's background job, nohup
_OWN = "serve"  # waits for signals itself, and may have no other thread while it locks itself in
_TRIES = 50  # an engine may make files in a folder while it is removed
_PAUSE = 0.005
_TEMPORARY = frozenset({"tempfile.mkdtemp", "tempfile.mkstemp"})
_HELD = frozenset({"os.mkdir", "subprocess.Popen"})
_GRACE = 1.0  # seconds in which a command may end by itself whose last result is written
_SHOW_CURSOR = b"\x1b[?25h\n"


class _Watch:
    """The thread that waits, and the pipe on which it hears of signals."""

    def __init__(self) -> None:
        self._heard, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._before = signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._wait, name="kgather-stopping", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        numbers = {int(number) for number in SIGNALS}
        until = None
        while True:
            left = None if until is None else max(until - time.monotonic(), 0)
            if not select.select([self._heard], [], [], left)[0]:
                with run.whole:
                    _end(0, StoppedError.ALL)
            [number] = os.read(self._heard, 1)
            if number == 0:
                return
            if number in numbers:
                with run.whole:
                    if not run.has_written(last=True):
                        _end(128 + number, _said())
                until = until or time.monotonic() + _GRACE

    def end(self) -> None:
        """Wait for signals no more. Does not return where a stop has begun."""
        with run.whole:
            signal.set_wakeup_fd(self._before)
            os.write(self._told, b"\0")
        self._thread.join()
        os.close(self._told)
        os.close(self._heard)


class _Now:
    watch: _Watch | None = None
    hooked = False
    drawn = False
    over: ClassVar[set[signal.Signals]] = set()  # ignored as a command is over, not since it began


def begin() -> None:
    """From now on a signal stops the command; to be called before anything else is imported. Calling again is fine."""
    if _Now.watch is not None or threading.current_thread() is not threading.main_thread():
        return
    own = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None) == _OWN
    if not own:
        if not _Now.hooked:
            sys.addaudithook(_watch_events)
            _Now.hooked = True
        run.forget_written()
        _Now.watch = _Watch()
    for number in SIGNALS:
        ignored = signal.getsignal(number) is signal.SIG_IGN and number not in _Now.over
        if number not in _KEPT_IF_IGNORED or not ignored:
            signal.signal(number, _leave if own else _hear)


def end() -> None:
    """The command is over: a signal changes nothing any more. Does not return where a stop has begun."""
    if _Now.watch is not None:
        watch, _Now.watch = _Now.watch, None
        watch.end()
        # Python takes its handlers away while it ends, and a signal would then kill what is done. It leaves these.
        for number in SIGNALS:
            if signal.getsignal(number) is _hear:
                signal.signal(number, signal.SIG_IGN)
                _Now.over.add(number)


def drawing(drawn: bool) -> None:
    """Note whether something is drawn on the terminal that hides the cursor."""
    _Now.drawn = drawn


def _hear(number: int, frame: Any) -> None:
    """Nothing to do: the thread has heard of it before."""


def _leave(number: int, frame: Any) -> NoReturn:
    """End `serve` before it waits for signals itself."""
    del frame
    os.write(2, _line(_said()))
    raise SystemExit(128 + number)


def _watch_events(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what is made by `tempfile`, and let nobody make a folder or start a process while a stop is under way."""
    if event in _TEMPORARY and _Now.watch is not None:
        run.note(os.fsdecode(arguments[0]))
    elif event in _HELD and _Now.watch is not None:
        with run.whole:
            pass


def _end(code: int, said: str) -> NoReturn:
    """Remove what is private and end the process. Whoever else needs `whole` waits meanwhile, without an end."""
    try:
        terminal = _silenced()
        for child in run.children():
            child.kill()
        found: dict[Path, os.stat_result] = {}
        for path in run.private():
            with contextlib.suppress(OSError):
                found[path] = path.lstat()
        _remove(found)
        for child in run.children():
            _reap(child)
        _end_tracker()
        time.sleep(_PAUSE)
        _remove(found)  # what an engine was about to make meanwhile
        with contextlib.suppress(OSError):  # a terminal that was closed
            os.write(terminal, (_SHOW_CURSOR if _Now.drawn else b"") + _line(said))
    finally:
        os._exit(code)


def _silenced() -> int:
    """Where standard error went until now. Other threads still run, and what fails in them now is not to be read."""
    terminal = silent = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError):  # it may be closed
        terminal = os.dup(2)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    return terminal


def _said() -> str:
    return StoppedError.PART if run.has_written(last=False) else StoppedError.NOTHING


def _line(said: str) -> bytes:
    return f"kgather: {said}\n".encode()


def _remove(found: Mapping[Path, os.stat_result]) -> None:
    """Remove files and folders, but not the folder of another run that has come to the place of one."""
    for path, first in found.items():
        for _ in range(_TRIES):
            try:
                now = path.lstat()
                if not os.path.samestat(first, now) and (path / run.LOCK).exists():
                    break
                if stat.S_ISDIR(now.st_mode):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
                path.lstat()
            except OSError:
                break
            time.sleep(_PAUSE)


def _end_tracker() -> None:
    """End the process in which Python keeps the names of locks between processes, which dbt makes, and free these.

    It would do so by itself a moment later, with a warning.
    """
    names = ("multiprocessing.util", "multiprocessing.synchronize", "multiprocessing.resource_tracker")
    util, locks, tracker = (sys.modules.get(name) for name in names)
    if util is None or locks is None or tracker is None:
        return
    # These have no public names.
    with contextlib.suppress(Exception):
        for free in list(util._finalizer_registry.values()):
            if free._callback is locks.SemLock._cleanup:
                free()
        tracker._resource_tracker._stop()


def _reap(child: Any) -> None:
    for _ in range(_TRIES):
        if child.poll() is not None:
            return
        time.sleep(_PAUSE)
