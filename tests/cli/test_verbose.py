"""`-v` before or after any command: internal errors show where they were, and without it only their kind is told."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.core import TyperGroup

from kgather._cli.app import app, main
from kgather._publishing.pipeline import Workspace, build
from kgather._verbosity import is_verbose, set_verbose

SECRET = "alice rated 5"


def command_paths(group: TyperGroup, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from command_paths(command, (*before, name))
        else:
            yield (*before, name)


COMMANDS = sorted(command_paths(typer.main.get_command(app)))  # type: ignore[arg-type]


def broken() -> None:
    raise RuntimeError(SECRET)


@pytest.fixture(autouse=True)
def _breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every command fails in a way that nobody foresaw; what a run changes in the process is put back."""
    for each in (app, *(group.typer_instance for group in app.registered_groups)):
        assert each is not None
        for command in each.registered_commands:
            monkeypatch.setattr(command, "callback", broken)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    hook = sys.excepthook
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    sys.excepthook = hook
    set_verbose(False)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["kgather", *arguments])
    main()


def test_all_commands_are_looked_at() -> None:
    assert {"publish", "verify", "attack", "query", "serve", "dbt-path"} <= {path[0] for path in COMMANDS}
    assert {("user", "add"), ("ledger", "show")} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_without_it_only_the_kind_is_told(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, *path)
    assert stopped.value.code == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "kgather: internal error (RuntimeError). Run again with -v to see where.\n"
    assert not is_verbose()


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", ["-v", "--verbose"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_with_it_the_error_comes_out(
    path: tuple[str, ...], option: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match=SECRET):
        run(monkeypatch, *([option, *path] if before else [*path, option]))
    assert is_verbose()


def test_a_run_does_not_inherit_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError):
        run(monkeypatch, "dbt-path", "-v")
    with pytest.raises(SystemExit):
        run(monkeypatch, "dbt-path")


def test_it_is_an_option_and_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    # The value of another option, or what stands after `--`, asks for nothing.
    monkeypatch.setattr(app.registered_commands[0], "callback", _takes_text)
    for arguments in (["--text", "-v"], ["--", "-v"]):
        with pytest.raises(SystemExit):
            run(monkeypatch, "publish", *arguments)
        assert not is_verbose()


def _takes_text(words: list[str] | None = None, text: str = typer.Option("")) -> None:
    del words, text
    raise RuntimeError(SECRET)


@pytest.mark.slow
def test_a_traceback_in_the_shell() -> None:
    code = (
        "import importlib\n"
        "module = importlib.import_module('kgather._cli.app')\n"
        "def broken(): raise RuntimeError('alice rated 5')\n"
        "module.dbt_path = broken\n"
        "module.main()\n"
    )
    found = subprocess.run([sys.executable, "-c", code, "dbt-path", "-v"], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "Traceback" in found.stderr
    assert SECRET in found.stderr
    quiet = subprocess.run([sys.executable, "-c", code, "dbt-path"], capture_output=True, text=True, check=False)
    assert quiet.returncode == 1
    assert quiet.stderr == "kgather: internal error (RuntimeError). Run again with -v to see where.\n"


@pytest.mark.slow
@pytest.mark.parametrize("verbose", [True, False])
def test_whatever_publishes_shows_what_dbt_says(verbose: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # metrics, attack and sweep publish too, far below their commands.
    flags: list[list[str]] = []

    class Runner:
        def __init__(self, **_: object) -> None:
            pass

        def invoke(self, arguments: list[str]) -> SimpleNamespace:
            flags.append(arguments)
            return SimpleNamespace(success=True, result=SimpleNamespace(nodes={}, to_msgpack=bytes))

    monkeypatch.setattr("dbt.cli.main.dbtRunner", Runner)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    set_verbose(verbose)
    build(Workspace(tmp_path), {})
    assert [given[given.index("--log-level") + 1] for given in flags] == ["info" if verbose else "none"] * 2
