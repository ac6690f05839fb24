"""`kgather serve` as a process: what it starts with, what it gives up, how it reloads and how it ends."""

import json
import os
import pwd
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pyarrow.flight as flight
import pytest
from flight_clients import Raw, ask, connected
from guard_files import exact_entries
from kills import audited
from server_process import KGATHER, PASSWORDS, Server, postgres, write_certificate, write_server_files
from waiting import until

from kgather._guard.measured.ledger import Ledger
from kgather._server import users

pytestmark = pytest.mark.long

BY_CITY = "SELECT city, COUNT(*) AS n FROM ratings_wide GROUP BY city ORDER BY city"
linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="prctl and /proc are Linux's")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for the tests that leave it running."""
    folder = write_server_files(tmp_path_factory.mktemp("serve"))
    server = Server(folder, "--metrics-port", 0)
    server.wait_until_ready()
    yield server
    server.kill()


def scrape(server: Server, path: str = "metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/{path}", timeout=10) as answer:
        return str(answer.read().decode())


def metric(server: Server, name: str) -> float:
    return next((float(line.split()[-1]) for line in scrape(server).splitlines() if line.startswith(name)), 0.0)


def status(server: Server, name: str) -> str:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith(name + ":"))


# What it answers


def test_both_wires_answer_alike(server: Server) -> None:
    rows = [tuple(row.values()) for row in ask(server.flight_port, BY_CITY).to_pylist()]
    assert len(rows) >= 3
    with postgres(server) as connection:
        assert connection.execute(BY_CITY).fetchall() == rows


def test_metrics_count_and_hold_no_text(server: Server) -> None:
    before = metric(server, 'kgather_queries_total{outcome="answered"}')
    with postgres(server) as connection:
        connection.execute("SELECT COUNT(*) AS secret_alias FROM ratings_wide WHERE warcross >= 3")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT MAX(salary) AS secret_alias FROM ratings_wide")
        assert metric(server, 'kgather_connections{wire="postgres"}') == 1
    text = scrape(server)
    assert metric(server, 'kgather_queries_total{outcome="answered"}') == before + 1
    assert 'kgather_refusals_total{rule="' in text
    assert 0 < metric(server, "kgather_budget_spent_rho ") < metric(server, "kgather_budget_total_rho ")
    assert metric(server, "kgather_measurements ") >= 1
    assert "kgather_atoms" not in text
    assert "kgather_query_seconds_bucket" in text
    for secret in ("secret_alias", "warcross", "salary", "analyst", PASSWORDS["analyst"]):
        assert secret not in text
    assert scrape(server, "healthz") == "alive\n"
    ready = dict.fromkeys(("queries", "database", "ledger", "disk", "audit_log"), "ok")
    assert dict(line.split(": ") for line in scrape(server, "readyz").splitlines()) == ready
    with pytest.raises(urllib.error.HTTPError):
        scrape(server, "debug")


def test_the_log_has_no_texts_and_no_secrets(server: Server) -> None:
    with postgres(server) as connection, pytest.raises(psycopg.Error):
        connection.execute("SELECT 'very secret text' FROM nothing")
    with (
        pytest.raises(psycopg.OperationalError),
        psycopg.connect(
            host="127.0.0.1", port=server.port, user="my-password-by-mistake", password="wrong password", dbname="x"
        ),
    ):
        pass
    said = json.dumps(server.log) + "".join(server.other)
    for secret in ("very secret", "my-password", "wrong password", *PASSWORDS.values()):
        assert secret not in said
    assert server.other == [], "every line of the log is JSON"


# What it has given up


@linux
def test_the_process_is_locked_down(server: Server) -> None:
    assert status(server, "NoNewPrivs") == "1"
    limits = Path(f"/proc/{server.process.pid}/limits").read_text()
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]
    space = next(line for line in limits.splitlines() if line.startswith("Max address space"))
    assert int(space.split()[3]) == server.wait_for("locked down")["memory_bytes"]
    command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
    assert not any(password.encode() in command for password in PASSWORDS.values())


LOCKED = """
import sys
from pathlib import Path
from kgather._guard.policy import load_policy
from kgather._server import lockdown, main
from kgather._server.settings import load_settings
path = Path(sys.argv[1])
policy = load_policy(path)
settings = load_settings(None, path.parent)
main._import_all("measured")
print(lockdown.give_up_privileges())
print(lockdown.restrict_files(*main._paths(policy, path, settings)))
import ctypes
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
def tried(call):
    try:
        call()
    except OSError as error:
        return error.strerror
    return "done"
def in_thread(call):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(tried, call).result()
outside = path.parent.parent / "outside"
print(tried(lambda: open("/etc/passwd")), in_thread(lambda: open("/etc/passwd")), tried(lambda: open(outside, "w")))
print(tried(lambda: open(path.parent / "more", "w").write("x")), tried(lambda: (path.parent / "more").unlink()))
code = Path(lockdown.__file__)
print(tried(lambda: open(code)), tried(lambda: open(code.with_name("injected.py"), "w")))
from kgather._guard.guard import Guard
guard = Guard.from_policy(path)
print(guard.query(sys.argv[2], principal="analyst").num_rows > 0)
import duckdb
try:
    duckdb.sql("from read_text('/etc/passwd')").fetchall()
except duckdb.Error as error:
    print("Permission denied" in str(error))
"""


@linux
def test_other_files_are_out_of_reach(tmp_path: Path) -> None:
    """Python, threads that start later, and DuckDB open nothing but what is theirs; guard and ledger work."""
    folder = write_server_files(tmp_path / "server")
    run = subprocess.run(
        [KGATHER[0], "-c", LOCKED, str(folder / "policy.yml"), BY_CITY],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OPENBLAS_NUM_THREADS": "1"},
    )
    said = run.stdout.splitlines()
    assert said[0] == "[]", run.stderr
    assert said[2] == "0", "the process can be dumped"
    if not said[1].startswith("on"):
        pytest.skip(f"no Landlock here: {said[1]}")
    assert said[1].removeprefix("on, version ").isdigit(), f"threads were left out: {said[1]}"
    denied = "Permission denied"
    assert said[3] == f"{denied} {denied} {denied}"
    assert said[4] == "done done"
    assert said[5] == f"done {denied}"
    assert said[6:8] == ["True", "True"], run.stderr


@linux
def test_the_server_says_how_far_files_are_out_of_reach(server: Server) -> None:
    said = server.wait_for("locked down")
    assert "missing" not in said
    assert "threads" not in said["landlock"]


BECOME = """
import os
from kgather._server import lockdown
os.setgroups([0, 1, 2])
lockdown.check_root("nobody", False)
lockdown.become("nobody")
print(os.getresuid(), os.getresgid(), os.getgroups(), os.environ["USER"])
try:
    os.setuid(0)
except PermissionError:
    print("for good")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_root_becomes_the_user_for_good() -> None:
    nobody = pwd.getpwnam("nobody")
    run = subprocess.run([KGATHER[0], "-c", BECOME], capture_output=True, text=True, check=True, timeout=60)
    uid, gid = (nobody.pw_uid,) * 3, (nobody.pw_gid,) * 3
    assert run.stdout.splitlines() == [f"{uid} {gid} [] nobody", "for good"]


CODE = """
import sys
from kgather._errors import InputError
from kgather._server import lockdown
sys.path.insert(0, sys.argv[1])
lockdown.become("nobody")
try:
    lockdown.check_code()
except InputError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_user_who_cannot_read_the_code_is_told_so(tmp_path: Path) -> None:
    """Python or a library in another user's home: what is imported later would fail in the middle."""
    hidden = tmp_path / "library"
    hidden.mkdir(mode=0o700)
    command = [KGATHER[0], "-c", CODE, str(hidden)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.startswith("nobody cannot read /")
    assert "where every user can read it" in run.stdout


# What it does not start with


def test_files_that_others_can_read_are_refused_all_at_once(start: Callable[..., Server], tmp_path: Path) -> None:
    folder = write_server_files(tmp_path / "server")
    files = {
        "policy.yml": (0o644, "the policy"),
        "fixture.duckdb": (0o640, "the database"),
        "fixture.duckdb.wal": (0o644, "the database's write-ahead log"),
        "ledger.duckdb": (0o604, "the ledger"),
        "ledger.duckdb.wal": (0o602, "the ledger's write-ahead log"),
        "ledger.duckdb-journal": (0o606, "the ledger's journal"),
        "users.scram": (0o660, "the file of users"),
        "audit.jsonl": (0o644, "the audit log"),
        "audit.jsonl.3": (0o644, "an older audit log"),
    }
    for name, (mode, _) in files.items():
        (folder / name).touch()
        (folder / name).chmod(mode)
    told = start(folder=folder, ready=False).failed()
    for name, (mode, what) in files.items():
        path = folder / name
        assert f"{path}, {what}, can be read or written by others (its mode is {mode:04o}): chmod 600 {path}" in told
    assert len(told.splitlines()) == len(files)


def test_the_key_of_the_certificate_is_private(start: Callable[..., Server], tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    key.chmod(0o644)
    told = start("--tls-certificate", certificate, "--tls-key", key, ready=False).failed()
    assert f"{key}, the key of the certificate, can be read or written by others (its mode is 0644)" in told


@pytest.mark.parametrize("option", ["--host", "--metrics-host"])
def test_nothing_is_served_to_others_without_tls(start: Callable[..., Server], option: str) -> None:
    told = start("--metrics-port", 0, option, "0.0.0.0", ready=False).failed()
    assert f"{option} 0.0.0.0 is reached from other machines, and there is no certificate" in told


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_root_has_to_be_asked_for(tmp_path: Path) -> None:
    folder = write_server_files(tmp_path / "server")
    command = [*KGATHER, "serve", "--policy", str(folder / "policy.yml"), "--port", "0"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 2
    assert "The server does not run as root" in run.stderr
    run = subprocess.run([*command, "--user", "no-such-user"], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 2
    assert "There is no user 'no-such-user'. Make one: useradd" in run.stderr


def test_a_port_that_is_taken_is_named(start: Callable[..., Server]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = start("--port", port, ready=False).failed()
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use. Choose another --port" in told


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    folder = write_server_files(tmp_path / "server")
    script = "import sys; sys.modules['prometheus_client'] = None\nfrom kgather._cli import main; main()"
    run = subprocess.run(
        [KGATHER[0], "-c", script, "serve", "--policy", str(folder / "policy.yml"), "--allow-root"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 2, run.stderr
    assert "pip install 'kgather[server]'" in run.stderr


# TLS


def test_tls_on_both_wires_and_metrics(start: Callable[..., Server], tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    server = start(
        *("--host", "0.0.0.0", "--metrics-host", "0.0.0.0", "--metrics-port", 0),
        *("--tls-certificate", certificate, "--tls-key", key),
    )
    checked = {"sslmode": "verify-full", "sslrootcert": str(certificate), "host": "localhost"}
    with postgres(server, **checked) as connection:
        rows = connection.execute(BY_CITY).fetchall()
    assert len(rows) >= 3
    root = certificate.read_text()
    uri = f"grpc+tls://localhost:{server.flight_port}"
    options = {"uri": uri, "adbc.flight.sql.client_option.tls_root_certs": root}
    with connected(server.flight_port, **options) as client, client.cursor() as cursor:
        cursor.execute(BY_CITY)
        assert cursor.fetchall() == rows
    with pytest.raises(flight.FlightError):
        Raw(server.flight_port)  # without TLS
    context = ssl.create_default_context(cafile=str(certificate))
    with urllib.request.urlopen(
        f"https://localhost:{server.metrics_port}/metrics", timeout=10, context=context
    ) as answer:
        assert b"kgather_queries_total" in answer.read()


# Signals


def test_hangup_rereads_users_and_reopens_the_log(start: Callable[..., Server], tmp_path: Path) -> None:
    folder = write_server_files(tmp_path / "server")
    log = folder / "server.log"
    server = start("--log-file", log, folder=folder, ready=False)
    until(lambda: log.exists() and "ready" in log.read_text())
    server.ready = next(json.loads(line) for line in log.read_text().splitlines() if "ready" in line)
    raw = Raw(server.flight_port)
    with postgres(server) as connection:
        connection.execute(BY_CITY)
        users.remove(folder / "users.scram", "analyst")
        users.add(folder / "users.scram", "other", "another password")
        log.rename(folder / "server.log.1")
        server.signal(signal.SIGHUP)
        until(lambda: log.exists() and "reloaded" in log.read_text())
        assert log.stat().st_mode & 0o777 == 0o600
        with pytest.raises(psycopg.Error, match="may no longer ask"):
            connection.execute(BY_CITY)
    with pytest.raises(flight.FlightUnauthenticatedError):
        raw.statement(BY_CITY)
    with pytest.raises(psycopg.OperationalError):
        postgres(server)
    with connected(server.flight_port, "other", "another password") as client, client.cursor() as cursor:
        cursor.execute(BY_CITY)
        assert len(cursor.fetchall()) >= 3
    # A file that will not do changes nothing.
    (folder / "users.scram").write_text("nonsense\n")
    server.signal(signal.SIGHUP)
    until(lambda: "users are kept as they were" in log.read_text())
    with connected(server.flight_port, "other", "another password"):
        pass
    assert server.stop() == 0


def test_what_runs_is_finished_and_nothing_new_begins(start: Callable[..., Server]) -> None:
    server = start("--metrics-port", 0)
    answers: list[int] = []
    with Ledger(server.folder / "ledger.duckdb").measuring():  # so that the query waits
        raw = Raw(server.flight_port)
        thread = threading.Thread(
            target=lambda: answers.append(raw.get(raw.statement(BY_CITY).endpoints[0].ticket).num_rows)
        )
        thread.start()
        until(lambda: metric(server, "kgather_queries_running") == 1)
        server.signal(signal.SIGTERM)
        server.wait_for("shutting down")
        with pytest.raises(psycopg.OperationalError):
            postgres(server)
        with pytest.raises(urllib.error.HTTPError) as told:
            scrape(server, "readyz")
        assert told.value.code == 503
        assert scrape(server, "healthz") == "alive\n"
    thread.join(30)
    assert answers
    assert answers[0] >= 3
    assert server.process.wait(30) == 0
    server.wait_for("stopped")


def test_after_the_grace_there_is_one_text(start: Callable[..., Server], tmp_path: Path) -> None:
    systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    systemd.bind(str(tmp_path / "notify"))
    systemd.settimeout(30)
    named = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    server = start("--shutdown-grace", 0.5, "--metrics-port", 0, env=named)
    assert systemd.recv(100) == b"READY=1"
    told: list[str] = []

    def query(run: Callable[[], object]) -> None:
        try:
            run()
        except (psycopg.Error, flight.FlightError) as error:
            told.append(str(error))

    raw, connection = Raw(server.flight_port), postgres(server, "other")
    with Ledger(server.folder / "ledger.duckdb").measuring():
        threads = [
            threading.Thread(target=query, args=(run,))
            for run in (lambda: raw.statement(BY_CITY), lambda: connection.execute(BY_CITY))
        ]
        for thread in threads:
            thread.start()
        until(lambda: metric(server, "kgather_queries_running") == 2)
        assert server.stop() == 0
        for thread in threads:
            thread.join(30)
    assert systemd.recv(100) == b"STOPPING=1"
    systemd.close()
    assert len(told) == 2
    assert all("shutting down" in text for text in told), told
    assert server.wait_for("stopped")["queries_left"] == 2


@pytest.mark.parametrize("mode", ["measured", "exact"])
def test_a_disk_that_takes_nothing(start: Callable[..., Server], tmp_path: Path, mode: str) -> None:
    """Nothing is told that neither ledger nor audit log can keep; /readyz says so; it goes on once there is room."""
    folder = write_server_files(tmp_path / "server", **(exact_entries() if mode == "exact" else {}))
    server = start("--metrics-port", 0, folder=folder)
    first, second = "select count(*) from ratings_wide", "select avg(age) from ratings_wide"
    with postgres(server) as connection:
        before = connection.execute(first).fetchall()
        lines = audited(folder)
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, most))
        for asked in (first, second):
            with pytest.raises(psycopg.errors.DiskFull, match="The disk of the server is full"):
                connection.execute(asked)
        assert connection.execute("show transaction_isolation").fetchall() == [("serializable",)]
        found = until_ready_says(server, "disk: fails")
        assert {"disk: fails", "audit_log: fails", "queries: ok", "database: ok"} <= set(found)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert audited(folder) == lines
        assert connection.execute(first).fetchall() == before
        assert len(connection.execute(second).fetchall()) == 1
        until_ready_says(server, "disk: ok")
    assert len(audited(folder)) == len(lines) + 2
    told = [line["told"] for line in server.log if line["event"] == "a query failed"]
    assert len(told) == 2
    assert all("written" in each for each in told)


def until_ready_says(server: Server, what: str) -> list[str]:
    """The lines of /readyz, once one of them is this."""
    for _ in range(120):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/readyz", timeout=30) as answer:
                lines = answer.read().decode().splitlines()
        except urllib.error.HTTPError as error:
            lines = error.read().decode().splitlines()
        if what in lines:
            return lines
        time.sleep(0.5)
    msg = f"/readyz does not say {what!r}: {lines}"
    raise AssertionError(msg)
