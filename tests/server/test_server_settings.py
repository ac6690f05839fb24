"""Settings of the server: from options, from a file, and what is wrong with them."""

from pathlib import Path

import pytest

from kgather._errors import InputError
from kgather._guard.policy import bytes_of
from kgather._server.settings import ServerSettings, is_loopback, load_settings


def test_options_go_before_the_file_and_paths_are_beside_it(tmp_path: Path) -> None:
    config = tmp_path / "server.yml"
    config.write_text("port: 6000\nmax_connections: 7\nusers: who.scram\nlog_file: /var/log/kgather.log\n")
    found = load_settings(config, Path("elsewhere"), port=7000, host=None)
    assert (found.port, found.max_connections, found.host) == (7000, 7, "127.0.0.1")
    assert found.users == tmp_path / "who.scram"
    assert found.log_file == Path("/var/log/kgather.log")


def test_users_are_beside_the_policy() -> None:
    assert load_settings(None, Path("/srv")).users == Path("/srv/users.scram")
    assert load_settings(None, Path("/srv"), users=Path("mine")).users == Path("mine")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prot: 5432", r"server\.yml: prot: is no setting of the server"),
        ("port: 70000", r"server\.yml: port: input should be less than or equal to 65535"),
        ("port: many", r"server\.yml: port: "),
        ("tls_key: key.pem", "tls_certificate and tls_key go together"),
        ("flight_port: 5432", "port and flight_port are two ports"),
        ("memory: lots", r"server\.yml: memory: "),
        ("[1, 2]", "settings are a list of entries"),
        ("a: [", "this is no YAML"),
        ("audit_every: year", r"audit_every: "),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    config = tmp_path / "server.yml"
    config.write_text(text)
    with pytest.raises(InputError, match=told):
        load_settings(config)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the settings cannot be read: No such file"):
        load_settings(tmp_path / "none.yml")


@pytest.mark.parametrize(
    ("size", "expected"),
    [("1KB", 1000), ("1GB", 10**9), ("1.5 GiB", 3 * 2**29), ("512MiB", 2**29), ("2TB", 2 * 10**12)],
)
def test_sizes_by_hand(size: str, expected: int) -> None:
    assert bytes_of(size) == expected
    assert ServerSettings(memory=size).memory == size


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.example.org")],
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
