"""The file of users: SCRAM verifiers as PostgreSQL keeps them, private, whole, and telling nothing of who is in it."""

import base64
import hmac
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient, ScramMechanism
from work import count_calls

from kgather._errors import InputError
from kgather._server import users
from kgather._server.users import Users, Verifier

PASSWORD = "correct horse battery"
RFC = Verifier.of("pencil", iterations=4096, salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
"""The example of RFC 7677: user "user", password "pencil"."""


def exchanged(found: Users, name: str, password: str) -> bool:
    """Whether a whole exchange of SCRAM succeeds, client and server being another implementation's."""
    known = found.verifier(name)
    client = ScramClient(["SCRAM-SHA-256"], name, password)
    server = ScramMechanism("SCRAM-SHA-256").make_server(
        lambda _: (known.salt, known.stored_key, known.server_key, known.iterations)
    )
    server.set_client_first(client.get_client_first())
    client.set_server_first(server.get_server_first())
    try:
        server.set_client_final(client.get_client_final())
    except Exception:
        return False
    client.set_server_final(server.get_server_final())
    return True


def test_the_example_of_the_rfc() -> None:
    """Its server signature is made of its messages with the server key."""
    message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = base64.b64encode(hmac.digest(RFC.server_key, message, "sha256")).decode()
    assert signature == "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_text_form_is_postgresqls() -> None:
    assert str(RFC).startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert Verifier.parse(str(RFC)) == RFC
    salt, stored, server, iterations = ScramMechanism("SCRAM-SHA-256").make_auth_info("pencil", salt=RFC.salt)
    assert (salt, stored, server, iterations) == (RFC.salt, RFC.stored_key, RFC.server_key, RFC.iterations)
    assert "pencil" not in repr(RFC)
    assert str(RFC) not in repr(RFC)


@given(st.text(min_size=1, max_size=40).filter(lambda text: "\0" not in text))
@settings(deadline=None, max_examples=40)
def test_a_password_proves_itself_and_no_other(password: str) -> None:
    password = password.encode("utf-8", "replace").decode()
    verifier = Verifier.of(password)
    assert verifier.proves(password)
    assert not verifier.proves(password + "x")
    assert not verifier.proves("")


@pytest.mark.parametrize(
    "password", ["pass word 1", "I\u00adX-I\u00adX-IX", "ｐａｓｓｗｏｒｄ", "пароль-пароль", "naïve café"]
)
def test_clients_prepare_passwords_alike(password: str) -> None:
    """SASLprep: soft hyphens go, wide letters become narrow."""
    assert exchanged(Users({"analyst": Verifier.of(password)}), "analyst", password)


def test_add_list_and_remove(tmp_path: Path) -> None:
    file = tmp_path / "users.scram"
    assert users.add(file, "analyst", PASSWORD)
    assert users.add(file, "other", "another password")
    assert not users.add(file, "analyst", "the second password")
    found = users.load(file, ["analyst", "other"])
    assert found.names == {"analyst", "other"}
    assert found.check("analyst", "the second password")
    assert not found.check("analyst", PASSWORD)
    assert exchanged(found, "other", "another password")
    assert not exchanged(found, "other", "the second password")
    users.remove(file, "analyst")
    assert users.load(file).names == {"other"}
    with pytest.raises(InputError, match="has no user 'analyst'"):
        users.remove(file, "analyst")


def test_the_file_is_its_owners_and_holds_no_password(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        users.add(tmp_path / "users.scram", "analyst", PASSWORD)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["users.scram", "users.scram.lock"]
    text = (tmp_path / "users.scram").read_text(encoding="utf-8")
    assert PASSWORD not in text
    assert base64.b64encode(PASSWORD.encode()).decode() not in text


def test_one_password_has_two_hashes(tmp_path: Path) -> None:
    for name in ("analyst", "other"):
        users.add(tmp_path / "users.scram", name, PASSWORD)
    one, other = (line.partition(":")[2] for line in (tmp_path / "users.scram").read_text().splitlines())
    assert one != other


def test_many_who_add_lose_nobody(tmp_path: Path) -> None:
    names = [f"user{number}" for number in range(12)]
    threads = [threading.Thread(target=users.add, args=(tmp_path / "users.scram", name, PASSWORD)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert users.load(tmp_path / "users.scram").names == set(names)


def test_a_user_whom_the_policy_does_not_name_is_refused(tmp_path: Path) -> None:
    users.add(tmp_path / "users.scram", "mallory", PASSWORD)
    with pytest.raises(InputError, match=r"has a user 'mallory'; .* analyst.*kgather user remove mallory"):
        users.load(tmp_path / "users.scram", ["analyst"])


@pytest.mark.parametrize(
    "line",
    [
        "analyst",
        "analyst:md5abc",
        "analyst:SCRAM-SHA-1$4096:AAAA$AAAA:AAAA",
        "analyst:SCRAM-SHA-256$4096:AAAA$AAAA:AAAA",
        "analyst:" + str(RFC).replace("4096", "1"),
        "analyst:" + str(RFC).replace("4096", "99999999999"),
        "ana lyst:" + str(RFC),
        ":" + str(RFC),
        f"analyst:{RFC}\nanalyst:{RFC}",
    ],
    ids=["bare", "md5", "sha1", "short", "one round", "endless", "space", "nameless", "twice"],
)
def test_a_wrong_line_is_named_and_not_quoted(tmp_path: Path, line: str) -> None:
    (tmp_path / "users.scram").write_text(f"# users\n{line}\n")
    with pytest.raises(InputError, match=rf"users\.scram:{2 + line.count(chr(10))}: ") as told:
        users.load(tmp_path / "users.scram")
    assert "W22Za" not in str(told.value)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not exist\. Add one with: kgather user add NAME --users"):
        users.load(tmp_path / "none")


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\nb", "x" * 64])
def test_a_name_that_will_not_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="A user's name has"):
        users.add(tmp_path / "users.scram", name, PASSWORD)
    assert not (tmp_path / "users.scram").exists()


@pytest.mark.parametrize("password", ["", "short", "x" * 1025, "nul\0 inside"])
def test_a_password_that_will_not_do(tmp_path: Path, password: str) -> None:
    with pytest.raises(InputError, match="A password has 8 characters"):
        users.add(tmp_path / "users.scram", "analyst", password)
    assert not (tmp_path / "users.scram").exists()


# Nobody learns who has an account


def test_an_unknown_name_has_a_verifier_of_its_own() -> None:
    found = Users({"analyst": Verifier.of(PASSWORD, iterations=8192)})
    one, again, other = (found.verifier(name) for name in ("nobody", "nobody", "else"))
    assert one == again
    assert one.salt != other.salt
    assert (len(one.salt), one.iterations) == (16, 8192)
    assert Users({}).verifier("nobody").salt != one.salt, "made up under a secret of its own"
    assert not found.check("nobody", PASSWORD)
    assert not exchanged(found, "nobody", PASSWORD)


def test_made_up_verifiers_stay_when_users_change() -> None:
    found = Users({"analyst": Verifier.of(PASSWORD)})
    before = found.verifier("nobody")
    found.replaced_by(Users({"other": Verifier.of(PASSWORD)}))
    assert found.verifier("nobody") == before
    assert found.names == {"other"}


def test_an_unknown_name_costs_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Users({"analyst": Verifier.of(PASSWORD)})
    hashed: list[int] = []
    real = users.hashlib.pbkdf2_hmac

    def counting(*arguments: object) -> bytes:
        hashed.append(arguments[3])  # type: ignore[arg-type]
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(users.hashlib, "pbkdf2_hmac", counting)
    for name, password in (("analyst", PASSWORD), ("analyst", "wrong"), ("nobody", PASSWORD)):
        found.check(name, password)
    assert hashed == [4096] * 3


def test_many_wrong_passwords_take_no_more_time_than_right_ones() -> None:
    """In calls, beside the hashing, which is counted above: generously, a factor of three either way."""
    found = Users({"analyst": Verifier.of(PASSWORD)})

    def work(name: str, password: str) -> int:
        return count_calls(lambda: [found.check(name, password) for _ in range(30)])

    right, wrong, unknown = (work(*who) for who in (("analyst", PASSWORD), ("analyst", "w"), ("nobody", PASSWORD)))
    assert right / 3 < wrong < 3 * right
    assert right / 3 < unknown < 3 * right
