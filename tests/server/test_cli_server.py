"""`kgather user`, `kgather ledger` and `kgather init guard --private`."""

import json
import subprocess
from pathlib import Path

import pytest
from guard_files import write_exact_files, write_files
from server_process import KGATHER
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import KgatherError
from kgather._guard.atoms_engine import AtomsEngine
from kgather._guard.guard import Guard
from kgather._guard.ledger import Ledger
from kgather._guard.summary import size_class, summarize
from kgather._server import users

PASSWORD = "correct horse battery"


def kgather(*arguments: object, stdin: str | None = None) -> tuple[int, str]:
    """The exit code and what was printed, as the command itself does it."""
    result = CliRunner().invoke(app, [*map(str, arguments)], input=stdin)
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return write_files(tmp_path)


# user


def test_add_list_remove(policy: Path) -> None:
    code, told = kgather("user", "add", "analyst", "--policy", policy, "--password-stdin", stdin=PASSWORD + "\n")
    assert code == 0
    assert told.startswith("analyst can log in")
    assert PASSWORD not in told
    assert users.load(policy.parent / "users.scram").check("analyst", PASSWORD)
    assert kgather("user", "list", "--policy", policy) == (0, "analyst\n")
    assert json.loads(kgather("user", "list", "--policy", policy, "--json")[1]) == {"users": ["analyst"]}
    code, told = kgather("user", "add", "analyst", "--policy", policy, "--password-stdin", stdin="another password\r\n")
    assert "has another password" in told
    assert users.load(policy.parent / "users.scram").check("analyst", "another password")
    code, told = kgather("user", "remove", "analyst", "--policy", policy)
    assert code == 0
    assert kgather("user", "list", "--policy", policy) == (0, "")


def test_a_password_is_no_argument(policy: Path) -> None:
    code, _ = kgather("user", "add", "analyst", PASSWORD, "--policy", policy)
    assert code == 2
    code, told = kgather("user", "add", "analyst", "--policy", policy, stdin="")
    assert (code, "--password-stdin" in told) == (2, True)


def test_spaces_of_a_password_are_kept(policy: Path) -> None:
    kgather("user", "add", "analyst", "--policy", policy, "--password-stdin", stdin="  spaces around  \nmore\n")
    assert users.load(policy.parent / "users.scram").check("analyst", "  spaces around  ")


def test_a_user_is_a_principal(policy: Path) -> None:
    code, told = kgather("user", "add", "mallory", "--policy", policy, "--password-stdin", stdin=PASSWORD)
    assert code == 2
    assert "The policy names no principal 'mallory'; it names: analyst" in told
    assert not (policy.parent / "users.scram").exists()


def test_without_a_policy_users_are_where_one_says(tmp_path: Path) -> None:
    file = tmp_path / "who"
    assert kgather("user", "add", "x", "--users", file, "--password-stdin", stdin=PASSWORD)[0] == 0
    assert kgather("user", "list", "--users", file) == (0, "x\n")
    code, told = kgather("user", "add", "y", "--users", file, "--password-stdin", stdin="short")
    assert (code, "8 characters" in told) == (2, True)
    assert kgather("user", "list", "--users", tmp_path / "none")[0] == 2


# ledger


def test_classes_by_hand() -> None:
    assert [size_class(size, 10) for size in (9, 10, 19, 20, 39, 40, 79, 80, 10_000)] == [
        *("below k", "k to 2k", "k to 2k", "2k to 4k", "2k to 4k", "4k to 8k", "4k to 8k", "8k to 16k"),
        "512k to 1024k",
    ]


def opened(policy: Path) -> tuple[Guard, Ledger]:
    """A guard in mode exact, and its ledger."""
    guard = Guard.from_policy(policy)
    assert isinstance(guard.engine, AtomsEngine)
    return guard, guard.engine.ledger


def test_what_the_ledger_holds(tmp_path: Path) -> None:
    policy = write_exact_files(tmp_path)
    guard, ledger = opened(policy)
    guard.query("SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= 4")
    guard.query("SELECT COUNT(*) AS n FROM ratings_wide WHERE joy_ride >= 4")
    before = ledger.stamp()
    found = json.loads(kgather("ledger", "show", "--policy", policy, "--json")[1])
    assert ledger.stamp() == before, "looking changes nothing"
    assert (found["k"], found["decisions"]) == (5, 2)
    (kept,) = found["universes"]
    assert (kept["name"], kept["of"], kept["atoms"]) == ("unit", "people", guard.atoms["unit"])
    assert "k to " in kept["smallest"]
    (day,) = found["days"]
    assert (day["universe"], day["atoms"]) == ("unit", guard.atoms["unit"])
    assert day["splits"] >= 2
    code, told = kgather("ledger", "show", "--policy", policy)
    assert code == 0
    assert "k = 5, 2 decisions" in told
    assert "people" in told


def test_no_ledger_yet(policy: Path) -> None:
    code, told = kgather("ledger", "show", "--policy", policy)
    assert (code, "does not exist yet" in told) == (2, True)
    assert not list(policy.parent.glob("ledger*"))


def test_looking_locks_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the copy is read, a guard decides."""
    guard, ledger = opened(write_exact_files(tmp_path))
    guard.query("SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= 4")
    real, cut = Ledger.read, []

    def reading(self: Ledger, k: int) -> object:
        assert self.path != ledger.path
        monkeypatch.setattr(Ledger, "read", real)
        cut.append(guard.query("SELECT COUNT(*) AS n FROM ratings_wide WHERE joy_ride >= 3").num_rows)
        return real(self, k)

    monkeypatch.setattr(Ledger, "read", reading)
    found = summarize(ledger.path, 5)
    assert cut == [1]
    assert found.decisions == 1


# init


@pytest.mark.slow
def test_private(tmp_path: Path) -> None:
    policy = write_files(tmp_path)
    database = policy.parent / "fixture.duckdb"
    database.chmod(0o644)
    run = subprocess.run(
        [*KGATHER, "init", "guard", str(database), "--private", "--out", str(tmp_path / "guard.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert {file.stat().st_mode & 0o777 for file in (database, tmp_path / "guard.yml")} == {0o600}
