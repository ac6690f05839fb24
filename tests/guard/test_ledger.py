"""The ledger: what was told is on disk before it is told, whoever asks and whatever breaks."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pytest
from guard_files import atoms_of, truth, write_exact_files
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from victims import Victim

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.ledger import Change, Kept, Ledger, delta, latest, renamed
from kgather._guard.refused import Refused

ROOT = Path(__file__).parent


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.duckdb")


def partition(atoms: list[int], next_name: int, clusters: dict[str, dict[int, int]] | None = None) -> Kept:
    keys = np.arange(1, len(atoms) + 1, dtype=np.uint64) * np.uint64(2**59 + 7)
    return Kept(keys, np.array(atoms, dtype=np.int64), next_name, clusters or {})


def as_kept(kept: Kept) -> tuple[dict[int, int], int, object]:
    return (
        dict(zip(kept.keys.tolist(), kept.atoms.tolist(), strict=True)),
        kept.next_name,
        {c: of for c, of in kept.clusters.items() if of},
    )


def count(ledger: Ledger, table: str) -> int:
    with duckdb.connect(ledger.path, read_only=True) as con:
        return con.sql(f"select count(*) from {table}").fetchall()[0][0]


# What is written is read


def test_nothing_is_kept_of_a_new_ledger(ledger: Ledger) -> None:
    assert ledger.read(5) == {}


def test_a_split_by_hand(ledger: Ledger) -> None:
    """Atom 0 of six rows is cut into 1 (two rows) and 2 (four): two rows move, the others follow the name."""
    before, after = partition([0] * 6, 1), partition([1, 2, 2, 1, 2, 2], 3, {"t.x": {1: 2, 2: 3}})
    found = delta(before, after)
    assert found.atoms.tolist() == [1, 1]
    assert found.keys.tolist() == after.keys[[0, 3]].tolist()
    assert found.renames == {0: 2}
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, before, 1)})
    ledger.write(5, {"unit": Change(before, after, 2)})
    assert as_kept(Ledger(ledger.path).read(5)["unit"]) == as_kept(after)
    assert (count(ledger, "rows"), count(ledger, "moves"), count(ledger, "renames")) == (6, 2, 1)


def test_rows_that_are_gone_are_kept_as_gone(ledger: Ledger) -> None:
    """Two of the rows of atom 0 are answered about no more; the atom keeps its name, so nothing may take it over."""
    before, after = partition([0] * 6, 1), partition([-1, 0, 0, -1, 0, 0], 1)
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, before, 1)})
    ledger.write(5, {"unit": Change(before, after, 1)})
    assert as_kept(ledger.read(5)["unit"]) == as_kept(after)


@st.composite
def histories(draw: st.DrawFn) -> list[Kept]:
    """Partitions of which each refines the one before; rows come and go, and the order of the rows changes."""
    atoms = dict.fromkeys(range(1, draw(st.integers(1, 12)) + 1), 0)
    next_name = 1
    kept = []
    for _ in range(draw(st.integers(1, 6))):
        for atom in sorted({a for a in atoms.values() if a >= 0}):
            rows = [key for key, of in atoms.items() if of == atom]
            kind = draw(st.sampled_from(["stay", "cut", "close", "lose"]))
            if kind == "cut":
                parts = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
                for key, part in zip(rows, parts, strict=True):
                    atoms[key] = next_name + part
                next_name += 3
            elif kind == "close":
                atoms |= dict.fromkeys(rows, -1)
            elif kind == "lose":
                atoms[rows[0]] = -1
        for _ in range(draw(st.integers(0, 2))):
            atoms[len(atoms) + 1] = next_name
            next_name += 1
        keys = draw(st.permutations(sorted(atoms))) if draw(st.booleans()) else list(atoms)
        clusters = {"t.x": {a: draw(st.integers(-3, 3)) for a in sorted(set(atoms.values())) if a >= 0}}
        kept.append(
            Kept(
                np.array(keys, dtype=np.uint64),
                np.array([atoms[key] for key in keys], dtype=np.int64),
                next_name,
                clusters if draw(st.booleans()) else {},
            )
        )
    return kept


@settings(deadline=None)
@given(histories())
def test_changes_add_up(history: list[Kept]) -> None:
    """What is recorded, row after row and name after name, leads from the first partition to the last."""
    moved, to = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    renames: dict[int, int] = {}
    for before, after in pairwise(history):
        found = delta(before, after)
        moved, to = np.concatenate([moved, found.keys]), np.concatenate([to, found.atoms])
        assert not set(renames) & set(found.renames), "an atom has two new names"
        renames |= found.renames
    keys, atoms = latest(history[0].keys, history[0].atoms, moved, to)
    assert np.all(keys[1:] > keys[:-1])
    last = history[-1]
    assert dict(zip(keys.tolist(), renamed(atoms, renames, last.next_name).tolist(), strict=True)) == as_kept(last)[0]


@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given(histories())
def test_what_was_written_last_is_read(tmp_path_factory: pytest.TempPathFactory, history: list[Kept]) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.duckdb")
    ledger.read(5)
    before = None
    for kept in history:
        ledger.write(5, {"unit": Change(before, kept, 1)})
        before = kept
    assert as_kept(Ledger(ledger.path).read(5)["unit"]) == as_kept(history[-1])


def test_universes_do_not_mix(ledger: Ledger) -> None:
    one, two = partition([0, 0, 1], 2), partition([0, 3, 3, 3], 4, {"r.rating": {0: 0, 3: 4}})
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, one, 2), "ratings": Change(None, two, 2)})
    found = ledger.read(5)
    assert as_kept(found["unit"]) == as_kept(one)
    assert as_kept(found["ratings"]) == as_kept(two)


def test_where_nothing_changed_the_file_is_not_touched(ledger: Ledger) -> None:
    kept = partition([0, 0, 1], 2, {"t.x": {0: 0, 1: 0}})
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, kept, 2)})
    stamp = ledger.stamp()
    ledger.write(5, {"unit": Change(kept, partition([0, 0, 1], 2, {"t.x": {0: 0, 1: 0}}), 2)})
    assert ledger.stamp() == stamp


def test_a_split_of_few_rows_writes_few_rows(ledger: Ledger) -> None:
    """400,000 rows of which ten leave their atom: ten rows are written, not 400,000."""
    n = 400_000
    whole, cut = partition([0] * n, 1), partition([1] * 10 + [2] * (n - 10), 3)
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, whole, 1)})
    size = ledger.path.stat().st_size
    ledger.write(5, {"unit": Change(whole, cut, 2)})
    assert (count(ledger, "rows"), count(ledger, "moves")) == (n, 10)
    assert ledger.path.stat().st_size - size < 2_000_000


def test_changes_do_not_pile_up(ledger: Ledger) -> None:
    """Once more rows moved than there are, the rows are written anew."""
    n = 60_000
    ledger.read(5)
    before = partition([0] * n, 1)
    ledger.write(5, {"unit": Change(None, before, 1)})
    for step in range(5):
        name = 2 * step + 1
        after = partition([name, name + 1] * (n // 2), name + 2)
        ledger.write(5, {"unit": Change(before, after, 2)})
        before = after
    assert count(ledger, "rows") == n
    assert count(ledger, "moves") <= 100_000
    assert as_kept(ledger.read(5)["unit"]) == as_kept(before)


# What breaks


def test_a_damaged_file_is_refused_with_what_to_do(ledger: Ledger) -> None:
    ledger.read(5)
    ledger.path.write_bytes(b"\0" * 5000)
    with pytest.raises(InputError, match=r"is damaged. Name another file under ledger in the policy, or restore"):
        ledger.read(5)


def test_half_a_file_is_refused(ledger: Ledger) -> None:
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, partition(list(range(5000)), 5000), 5000)})
    ledger.path.write_bytes(ledger.path.read_bytes()[:6000])
    with pytest.raises(InputError, match=r"ledger\.duckdb (is no database, or is damaged|could not be read)"):
        ledger.read(5)


@pytest.mark.parametrize("schema", ["create table t (x integer)", "create table state (k integer)"])
def test_another_database_is_no_ledger(ledger: Ledger, schema: str) -> None:
    with duckdb.connect(ledger.path) as con:
        con.execute(schema)
    with pytest.raises(InputError, match="is no ledger of the guard"):
        ledger.read(5)
    with duckdb.connect(ledger.path) as con:
        assert len(con.sql("show tables").fetchall()) == 1, "the other database was written to"


def test_another_version_is_refused(ledger: Ledger) -> None:
    ledger.read(5)
    with duckdb.connect(ledger.path) as con:
        con.execute("update state set version = 99")
    with pytest.raises(InputError, match="another version of kgather"):
        ledger.read(5)


def test_another_k_is_refused(ledger: Ledger) -> None:
    ledger.read(5)
    for k in (4, 6):
        with pytest.raises(InputError, match=f"was kept with k = 5, the policy says {k}"):
            ledger.read(k)


def test_a_file_that_was_replaced_meanwhile_is_not_written_to(ledger: Ledger) -> None:
    kept = partition([0, 0], 1)
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, kept, 1)})
    older = ledger.path.read_bytes()
    ledger.write(5, {"unit": Change(kept, partition([1, 2], 3), 2)})
    ledger.path.write_bytes(older)
    for use in (lambda: ledger.read(5), lambda: ledger.write(5, {"unit": Change(kept, partition([1, 2], 3), 2)})):
        with pytest.raises(InputError, match="was removed or replaced by an older one"):
            use()
    ledger.path.unlink()
    with pytest.raises(InputError, match="was removed or replaced by an older one"):
        ledger.read(5)
    assert not ledger.path.exists()


def test_a_guard_without_its_ledger_does_not_answer(tmp_path: Path) -> None:
    guard = Guard.from_policy(write_exact_files(tmp_path))
    guard.query(QUERIES[0])
    (tmp_path / "ledger.duckdb").unlink()
    with pytest.raises(InputError, match="was removed or replaced"):
        guard.query(QUERIES[0])


@pytest.mark.slow
def test_a_file_that_another_program_holds_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgather._guard.ledger._PATIENCE", 0.2)
    ledger.read(5)
    script = f"import duckdb; c = duckdb.connect({str(ledger.path)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(InputError, match="is open in another program"):
            ledger.read(5)
        other.communicate(b"\n")
    assert ledger.read(5) == {}


def test_a_folder_that_cannot_be_written_to_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kgather._guard.ledger.os.open", refuse)
    with pytest.raises(InputError, match="cannot be written to: Permission denied"), ledger.deciding():
        pass


def test_a_file_that_cannot_be_opened_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    ledger.read(5)
    monkeypatch.setattr("kgather._guard.ledger.duckdb.connect", refuse)
    with pytest.raises(InputError, match="cannot be opened: Permission denied"):
        ledger.read(5)


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written to"), Ledger(tmp_path / "file" / "ledger").deciding():
        pass


def test_a_failed_write_changes_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = partition([0] * 4, 1), partition([1, 1, 2, 2], 3)
    ledger.read(5)
    ledger.write(5, {"unit": Change(None, before, 1)})

    def broken(*_: object) -> None:
        msg = "IO Error: row 'Ada' No space left on device"
        raise duckdb.IOException(msg)

    monkeypatch.setattr("kgather._guard.ledger._record_clusters", broken)
    with pytest.raises(InputError, match="No space left on device") as told:
        ledger.write(5, {"unit": Change(before, after, 2)})
    assert "Ada" not in str(told.value)
    monkeypatch.undo()
    assert as_kept(ledger.read(5)["unit"]) == as_kept(before)
    ledger.write(5, {"unit": Change(before, after, 2)})
    assert as_kept(ledger.read(5)["unit"]) == as_kept(after)


# Who may read it


def test_files_are_their_owners_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        guard = Guard.from_policy(write_exact_files(tmp_path))
        guard.query(QUERIES[0])
        assert os.umask(0) == 0, "the umask was not put back"
    finally:
        os.umask(before)
    files = sorted(tmp_path.glob("ledger*"))
    assert [file.name for file in files] == ["ledger.duckdb", "ledger.duckdb.lock"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_ledger_that_others_can_read_is_closed_to_them(ledger: Ledger) -> None:
    ledger.read(5)
    ledger.path.chmod(0o644)
    ledger.read(5)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_the_file_is_private_while_it_is_written(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.read(5)
    seen = []

    def look(*_: object) -> None:
        seen.extend(stat.S_IMODE(file.stat().st_mode) for file in ledger.path.parent.glob("ledger.duckdb*"))

    monkeypatch.setattr("kgather._guard.ledger._record_clusters", look)
    ledger.write(5, {"unit": Change(None, partition([0] * 1000, 1), 1)})
    assert seen
    assert set(seen) == {0o600}


# Kills

STEPS = [f"kgather._guard.{name}" for name in ("atoms_engine", "guard", "ledger")]

QUERIES = [
    "SELECT COUNT(*) FROM ratings_wide WHERE warcross >= 4",
    "SELECT education, AVG(salary) FROM ratings_wide GROUP BY education",
    "SELECT SUM(age) FROM ratings_wide WHERE warcross >= 4",
]


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    victim = Victim(write_exact_files(tmp_path_factory.mktemp("victim")), QUERIES, STEPS)
    yield victim
    victim.process.communicate()


@pytest.fixture(scope="module")
def undisturbed(victim: Victim, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], int]:
    """The answers when nothing breaks, and how many steps there are."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert victim.run(write_exact_files(folder), 0, folder / "answers") == 0
    *answers, steps = [json.loads(line) for line in (folder / "answers").read_text().splitlines()]
    return answers, -steps if steps < 0 else steps


def people(folder: Path) -> int:
    """How many there are."""
    [[found]] = truth(folder, "select count(*) from ratings_wide")
    assert isinstance(found, int)
    return found


POINTS = 32


@pytest.mark.long
@pytest.mark.parametrize("point", range(POINTS))
def test_after_a_kill_everything_is_there_that_was_told(
    victim: Victim, undisturbed: tuple[list[object], int], tmp_path: Path, point: int
) -> None:
    answers, steps = undisturbed
    policy = write_exact_files(tmp_path)
    at = 1 + point * (steps - 1) // (POINTS - 1)
    assert victim.run(policy, at, tmp_path / "answers") == -signal.SIGKILL
    told = []
    if (tmp_path / "answers").exists():
        told = [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]
    assert told == answers[: len(told)]

    ledger = Ledger(tmp_path / "ledger.duckdb")
    with ledger.deciding():
        kept = ledger.read(5)
    for of in kept.values():
        atoms = of.atoms[of.atoms >= 0]
        assert len(atoms) == people(tmp_path), "a part of a partition"
        assert np.unique(atoms, return_counts=True)[1].min() >= 5
    # What was told is split off: asking again is exact and cuts nothing.
    guard = Guard.from_policy(policy)
    before = atoms_of(guard).ledger.stamp()
    for query, answer in told:
        assert guard.query(query).to_pylist() == answer
    assert atoms_of(guard).ledger.stamp() == before, "a split that an answer was made of had been forgotten"
    # And life goes on.
    rest = [[query, guard.query(query).to_pylist()] for query in QUERIES[len(told) :]]
    assert told + rest == answers


# Many at once

ASKING = """
import json, sys, threading
from kgather._guard.guard import Guard
from kgather._guard.refused import Refused
policy, pairs = sys.argv[1], json.loads(sys.argv[2])
guards = [Guard.from_policy(policy) for _ in range(2)]
print("ready", flush=True)
input()
found = []
def ask(guard, half, order):
    for number, pair in enumerate(pairs if order else pairs[::-1]):
        at = number if order else len(pairs) - 1 - number
        try:
            found.append([at, half, guard.query(pair[half]).to_pylist()[0]["v"]])
        except Refused:
            pass
threads = [threading.Thread(target=ask, args=(guards[i % 2], i // 2, i % 2)) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(found))
"""


@pytest.mark.long
def test_two_processes_and_eight_threads_never_get_both_halves(tmp_path: Path) -> None:
    """Of two sums that differ by fewer than k people, one at most is told, whoever asks first."""
    policy = write_exact_files(tmp_path)
    pairs, sizes = [], []
    for item, other, third in (("joy_ride", "pachinko", "geekerella"), ("egomaniac", "warcross", "pachinko")):
        for value in (1, 3, 5):
            narrow = f"FROM ratings_wide WHERE {item} >= 4"
            wide = f"{narrow} OR ({item} = 2 AND {other} = {value} AND {third} IS NULL)"
            pairs.append([f"SELECT SUM(salary) AS v {wide}", f"SELECT SUM(salary) AS v {narrow}"])
            sizes.append([truth(tmp_path, f"select count(*) {half}")[0][0] for half in (wide, narrow)])
    few = [number for number, (more, less) in enumerate(sizes) if 0 < more - less < 5]
    assert len(few) >= 3
    pairs, sizes = [pairs[number] for number in few], [sizes[number] for number in few]
    command = [sys.executable, "-c", ASKING, str(policy), json.dumps(pairs)]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in running]
    told: dict[int, set[int]] = {number: set() for number in range(len(pairs))}
    for number, half, value in (answer for of_one in found for answer in of_one):
        [[true]] = truth(tmp_path, pairs[number][half])
        assert value == pytest.approx(true)
        told[number].add(half)
    for number, halves in told.items():
        assert len(halves) < 2, f"pair {number} tells of {sizes[number][0] - sizes[number][1]} people"
    assert any(told.values())
    # The partition that is left is one of at least k people a part, and no row was lost.
    kept = Ledger(tmp_path / "ledger.duckdb").read(5)["unit"]
    atoms = kept.atoms[kept.atoms >= 0]
    assert len(atoms) == people(tmp_path)
    assert np.unique(atoms, return_counts=True)[1].min() >= 5


# Data that change


def changed(folder: Path, sql: str) -> None:
    with duckdb.connect(folder / "fixture.duckdb") as con:
        con.execute(sql)


def test_one_who_comes_after_a_count_is_not_counted(tmp_path: Path) -> None:
    """The count cuts nothing, and still it has to be recorded who was counted."""
    guard = Guard.from_policy(write_exact_files(tmp_path))
    first = guard.query("SELECT COUNT(*) AS n FROM ratings_wide").to_pylist()
    changed(tmp_path, "insert into ratings_wide select 777, * exclude (user_id) from ratings_wide where user_id = 1")
    assert guard.query("SELECT COUNT(*) AS n FROM ratings_wide").to_pylist() == first
    assert (
        Guard.from_policy(tmp_path / "policy.yml").query("SELECT COUNT(*) AS n FROM ratings_wide").to_pylist() == first
    )


def test_they_who_come_one_by_one_are_counted_together(tmp_path: Path) -> None:
    policy = write_exact_files(tmp_path)
    guard = Guard.from_policy(policy)
    seen = [guard.query("SELECT COUNT(*) AS n FROM ratings_wide").to_pylist()[0]["n"]]
    for user in range(801, 813):
        changed(tmp_path, f"insert into ratings_wide select {user}, * exclude (user_id) from ratings_wide limit 1")
        seen.append(guard.query("SELECT COUNT(*) AS n FROM ratings_wide").to_pylist()[0]["n"])
    steps = np.diff(seen)
    assert (steps != 0).sum() == 2
    assert steps[steps != 0].min() >= 5


def test_they_who_leave_one_by_one_leave_together(tmp_path: Path) -> None:
    policy = write_exact_files(tmp_path)
    guard = Guard.from_policy(policy)
    ask = "SELECT COUNT(*) AS n FROM ratings_wide"
    seen = [guard.query(ask).to_pylist()[0]["n"]]
    for user in range(1, 4):
        changed(tmp_path, f"delete from ratings_wide where user_id = {user}")
        with suppress(Refused):
            seen.append(guard.query(ask).to_pylist()[0]["n"])
    assert all(step == 0 or abs(step) >= 5 for step in np.diff(seen).tolist())


def test_what_another_process_wrote_is_read_without_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = write_exact_files(tmp_path)
    one, two = Guard.from_policy(policy), Guard.from_policy(policy)
    one.query(QUERIES[0])
    monkeypatch.setattr("kgather._guard.base.Base.load", lambda *_, **__: pytest.fail("the database was read again"))
    stamp = atoms_of(two).ledger.stamp()
    two.query(QUERIES[0])
    assert atoms_of(two).ledger.stamp() == stamp


def test_a_copy_of_the_folder_is_a_ledger_of_its_own(tmp_path: Path) -> None:
    policy = write_exact_files(tmp_path / "a")
    answers = [Guard.from_policy(policy).query(query).to_pylist() for query in QUERIES]
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert [Guard.from_policy(tmp_path / "b" / "policy.yml").query(query).to_pylist() for query in QUERIES] == answers
