"""What tests of the server share: a guard with users, certificates, and a server as a process of its own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "guard"))

from server_process import PASSWORDS, Server, write_server_files

from kgather._guard.guard import Guard
from kgather._server import users
from kgather._server.users import Users


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Database, policy and users, private as they have to be."""
    return write_server_files(tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def guard(folder: Path) -> Guard:
    return Guard.from_policy(folder / "policy.yml")


@pytest.fixture
def logins(folder: Path) -> Users:
    return users.load(folder / "users.scram", PASSWORDS)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start a server over files of its own, or over those of `folder`; it is ended with the test."""
    started: list[Server] = []

    def run(*options: object, folder: Path | None = None, ready: bool = True, **named: object) -> Server:
        where = folder if folder is not None else write_server_files(tmp_path / "server")
        server = Server(where, *options, **named)
        started.append(server)
        if ready:
            server.wait_until_ready()
        return server

    yield run
    for server in started:
        server.kill()
