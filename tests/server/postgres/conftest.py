"""A running server, and connections to it."""

import ssl
from collections.abc import Callable, Iterator

import pytest
from raw_client import RawClient
from wire_files import Running, certificate, start


@pytest.fixture(scope="session")
def running() -> Iterator[Running]:
    started = start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def secure() -> Iterator[Running]:
    """A server with a certificate."""
    both = certificate()
    if both is None:
        pytest.skip("no openssl to make a certificate with")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(both)
    started = start(tls=context)
    yield started
    started.stop()


@pytest.fixture
def client(running: Running) -> Iterator[RawClient]:
    with RawClient(running) as made:
        yield made


@pytest.fixture
def servers() -> Iterator[Callable[..., Running]]:
    """Starts servers with other settings."""
    started: list[Running] = []

    def run(*arguments: object, **settings: object) -> Running:
        started.append(start(*arguments, **settings))  # type: ignore[arg-type]
        return started[-1]

    yield run
    for each in started:
        each.stop()
