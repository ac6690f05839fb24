"""Releases made of a release: coarser ones within it, and what is left of one after an erasure."""

import csv
import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

import kgather
from kgather._cli.app import app
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing.early import LOADED_ITEMS
from kgather._publishing.history import Following, with_last
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings

pytestmark = pytest.mark.slow
K, COARSE = 4, 13
Rows = list[dict[str, str]]
_PROVEN = {"item_epsilon": 8.0, "scale": [0.5, 5]}


@dataclass(frozen=True)
class Two:
    """Two releases that follow each other, with a copy of what was kept after each, and the ratings of the second."""

    folder: Path
    rows: Rows

    def release(self, number: int) -> Path:
        return self.folder / f"release{number}"

    def work(self, number: int) -> Path:
        return self.folder / f"work{number}"


def _run(*arguments: object) -> tuple[int, str]:
    """Exit code and all that is said; what `main` makes of an error is tried with other commands."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if isinstance(done.exception, InputError):
        return 2, str(done.exception)
    return done.exit_code, done.stdout + done.stderr + ("" if done.exception is None else repr(done.exception))


def _write(path: Path, rows: Rows) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


def _publish(folder: Path, name: str, rows: Rows, work: Path, *, follows: bool, proven: bool) -> None:
    items = folder / "items.csv"
    if not items.exists():
        items.write_text("item_id\n" + "\n".join(sorted({row["item_id"] for row in rows})), encoding="utf-8")
    following = Following(work) if follows else None
    more = {**_PROVEN, "items": LOADED_ITEMS} if proven else {}
    asked = PublishSettings(k=K, reserve=2, metrics="none", **more)
    publish(
        [str(_write(folder / f"{name}.csv", rows))],
        folder / name,
        asked if following is None else with_last(following, asked),
        LoadOptions(items=str(items)) if proven else LoadOptions(),
        keep_work=None if follows else work,
        following=following,
    )


def _two(sample: Path, folder: Path, *, proven: bool) -> Two:
    with sample.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    people = sorted({row["user_id"] for row in rows})
    for number, some in ((1, people[:100]), (2, people[1:140])):
        mine = [row for row in rows if row["user_id"] in set(some)]
        _publish(folder, f"release{number}", mine, folder / "work", follows=number > 1, proven=proven)
        shutil.copytree(folder / "work", folder / f"work{number}")
    return Two(folder, mine)


@pytest.fixture(scope="module")
def plain(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Two:
    return _two(sample, tmp_path_factory.mktemp("plain"), proven=False)


@pytest.fixture(scope="module")
def proven(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Two:
    return _two(sample, tmp_path_factory.mktemp("proven"), proven=True)


def _history(work: Path, columns: str) -> dict[str, int]:
    with duckdb.connect(work / "work.duckdb", read_only=True) as con:
        return dict(con.sql(
            f"select {columns} from kgather_history where state = 'present' "
            "and release_number = (select max(release_number) from kgather_history)"
        ).fetchall())  # fmt: skip


def _parents(work: Path, k: int) -> dict[int, int]:
    with duckdb.connect(work / "work.duckdb", read_only=True) as con:
        return dict(con.execute("select lineage, parent from kgather_coarser where k = ?", [k]).fetchall())


def _of(release: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(release / "release.duckdb", read_only=True) as con:
        return con.sql(query).fetchall()


def test_coarser_groups_are_made_of_finer_ones_and_show_their_means(plain: Two, tmp_path: Path) -> None:
    shutil.copytree(plain.work(2), tmp_path / "work")
    code, said = _run(
        "publish", "--within", plain.release(2), "--history", tmp_path / "work", "--k", COARSE, "--out", tmp_path / "c"
    )
    assert (code, "k-anonymity" in said) == (0, True), said
    assert _run("verify", tmp_path / "c", "--k", COARSE)[0] == 0
    parents, lineage = _parents(tmp_path / "work", COARSE), _history(tmp_path / "work", "group_id, lineage")
    finer = _of(plain.release(2), "select group_id, group_size, item_id, rating from kgather__ratings "
                "join kgather__groups using (group_id) order by all")  # fmt: skip
    sums: dict[tuple[int, object], np.ndarray] = {}
    for group, size, item, rating in finer:
        key = parents[lineage[group]], item
        sums[key] = sums.get(key, np.zeros(2)) + np.array([size, size * rating])
    expected = sorted((item, size, round(total / size, 6)) for (_, item), (size, total) in sums.items())
    shown = sorted(_of(tmp_path / "c", "select item_id, group_size, rating from kgather__ratings "
                       "join kgather__groups using (group_id)"))  # fmt: skip
    assert len(shown) == len(expected)
    assert all(
        (one[0], one[1]) == (two[0], two[1]) and abs(one[2] - two[2]) <= 0.00501
        for one, two in zip(shown, expected, strict=True)
    )
    names = [
        {name for (name,) in _of(folder, "select pseudonym from kgather__members")}
        for folder in (plain.release(2), tmp_path / "c")
    ]
    assert len(names[0]) == len(names[1])
    assert not names[0] & names[1]


def test_coarser_releases_of_a_chain_keep_their_k_together(plain: Two, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(plain.work(1), work)
    maps = []
    for number in (1, 2):
        code, said = _run(
            "publish",
            "--within",
            plain.release(number),
            "--history",
            work,
            "--k",
            COARSE,
            "--out",
            tmp_path / str(number),
        )
        assert code == 0, said
        parents, lineage = _parents(work, COARSE), _history(work, "user_id, lineage") if number == 2 else _first(work)
        maps.append({user: parents[group] for user, group in lineage.items() if parents.get(group) is not None})
        if number == 1:
            # The second release followed the first one before it had a coarser one beside it.
            with duckdb.connect() as con:
                con.execute(f"attach '{work / 'work.duckdb'}' as old")
                con.execute("create table kept as from old.kgather_coarser")
                con.execute("detach old")
                shutil.rmtree(work)
                shutil.copytree(plain.work(2), work)
                con.execute(f"attach '{work / 'work.duckdb'}' as new")
                con.execute("create table new.kgather_coarser as from kept")
    both = set(maps[0]) & set(maps[1])
    assert len(both) == 99
    assert min(Counter((maps[0][user], maps[1][user]) for user in both).values()) >= COARSE - 1
    assert len(maps[1]) > len(both)
    assert min(Counter(maps[1].values()).values()) >= COARSE


def _first(work: Path) -> dict[str, int]:
    with duckdb.connect(work / "work.duckdb", read_only=True) as con:
        return dict(con.sql("select user_id, group_id from int_kgather__groups").fetchall())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--k", COARSE, "--homogenize", "padded"], "homogenize was 'predicted' and is 'padded'"),
        (["--k", COARSE, "--item-noise", "1"], "item_noise was 3.0 and is 1.0"),
        (["--k", COARSE, "--cells", "low_rank"], "cells was 'all' and is 'low_rank'"),
        (["--k", K], "is not coarser"),
        (["--k", 1000], "fewer than 1000 people"),
        ([], "--k is missing"),
        (["--k", COARSE, "--sweep", "4"], "no input"),
    ],
)
def test_another_form_within_is_refused(plain: Two, tmp_path: Path, options: list[object], said: str) -> None:
    code, told = _run(
        "publish", "--within", plain.release(2), "--history", plain.work(2), *options, "--out", tmp_path / "c"
    )
    assert (code, said in told) == (2, True), told
    assert not (tmp_path / "c").exists()


def test_a_release_of_a_chain_needs_its_map(plain: Two, tmp_path: Path) -> None:
    asked = ("publish", "--within", plain.release(2), "--k", COARSE, "--out", tmp_path / "c")
    code, told = _run(*asked)
    assert (code, "is of a chain" in told) == (2, True), told
    code, told = _run(*asked, "--history", plain.work(1))
    assert (code, "is not the map of" in told) == (2, True), told


def _erase(two: Two, tmp_path: Path, users: list[str], *more: object) -> tuple[int, str, Path]:
    work = tmp_path / "work"
    tmp_path.mkdir(exist_ok=True)
    if not work.exists():
        shutil.copytree(two.work(2), work)
    (tmp_path / "users.txt").write_text("\n".join(["user_id", *users]) + "\n", encoding="utf-8")
    code, said = _run(
        "erase",
        tmp_path / "users.txt",
        "--history",
        work,
        "--release",
        two.release(2),
        "--out",
        tmp_path / "left",
        *more,
    )
    return code, said, work


def test_erasure_takes_the_group_out_and_the_items_stay_where_they_are_proven(proven: Two, tmp_path: Path) -> None:
    groups = _history(proven.work(2), "user_id, group_id")
    user = sorted(groups)[0]
    code, said, work = _erase(proven, tmp_path, [user])
    assert (code, "1 groups were taken out" in said, user in said) == (0, True, False), said
    before, after = (
        {group for (group,) in _of(folder, "select group_id from kgather__groups")}
        for folder in (proven.release(2), tmp_path / "left")
    )
    assert before - after == {groups[user]}
    cells = "select group_id, item_id, rating from kgather__ratings order by all"
    assert _of(tmp_path / "left", cells) == [row for row in _of(proven.release(2), cells) if row[0] != groups[user]]
    audit = json.loads((tmp_path / "left" / "audit.json").read_text(encoding="utf-8"))
    assert audit["item_privacy"]["epsilon"] == 8.0
    assert _run("verify", tmp_path / "left")[0] == 0
    with duckdb.connect(work / "work.duckdb", read_only=True) as con:
        of_people = con.sql(
            "select schema_name || '.' || table_name from duckdb_columns() where column_name = 'user_id'"
        ).fetchall()
        holding = {
            table
            for (table,) in of_people
            if con.execute(f"select 1 from {table} where cast(user_id as varchar) = ?", [user]).fetchall()
        }
    # The id stays in the map alone, and of the ratings there is none.
    assert {"main.stg_kgather__ratings", "loaded.ratings"} <= {table for (table,) in of_people}
    assert holding == {"main.kgather_history"}
    assert not list(work.glob("release-*.duckdb"))
    # The same again finds the same: a run that was killed in between can be made again.
    assert _erase(proven, tmp_path, [user], "--force")[0] == 0

    # At once there are too few changes; with k newcomers more the group comes back without the person.
    rows = [row for row in proven.rows if row["user_id"] != user]
    with pytest.raises(Exception, match="somebody was erased since the last release, and fewer than k"):
        _publish(tmp_path, "too_soon", rows, work, follows=True, proven=True)
    new = [{**row, "user_id": f"new-{row['user_id']}"} for row in rows if row["user_id"] < "user-0020"]
    shutil.copy(proven.folder / "items.csv", tmp_path / "items.csv")
    _publish(tmp_path, "next", rows + new, work, follows=True, proven=True)
    third = _history(work, "user_id, group_id")
    mates = {other for other, group in groups.items() if group == groups[user]} - {user}
    assert mates <= set(third)
    assert len({third[other] for other in mates}) == 1
    assert user not in third
    _publish(tmp_path, "after", proven.rows + new, work, follows=True, proven=True)  # who comes back stays away
    assert user not in _history(work, "user_id, group_id")


def test_without_a_proven_item_side_all_is_withdrawn(plain: Two, tmp_path: Path) -> None:
    user = sorted(_history(plain.work(2), "user_id, group_id"))[0]
    code, said, work = _erase(plain, tmp_path, [user])
    assert (code, "WITHDRAW" in said, (tmp_path / "left").exists()) == (0, True, False), said
    assert user not in _history(work, "user_id, group_id")


def test_who_is_unknown_cannot_be_erased(plain: Two, tmp_path: Path) -> None:
    code, said, work = _erase(plain, tmp_path, ["nobody"])
    assert (code, "1 of 1 users are not known" in said, "nobody" in said) == (2, True, False), said
    assert len(list(work.glob("release-*.duckdb"))) == 1
    assert sorted(file.name for file in work.iterdir()) == ["release-1.duckdb", "work.duckdb"]


def test_python_makes_the_same_release_within_another_one(plain: Two, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(plain.work(2), tmp_path / name)
    made = kgather.publish(
        (), k=COARSE, within=plain.release(2), history=tmp_path / "one", out=tmp_path / "python", seed=3
    )
    options = ["--within", plain.release(2), "--history", tmp_path / "two", "--k", COARSE, "--seed", 3]
    assert _run("publish", *options, "--out", tmp_path / "command")[0] == 0
    shown = (
        "select item_id, group_size, rating from kgather__ratings join kgather__groups using (group_id) order by all"
    )
    assert made.folder == tmp_path / "python"
    assert _of(tmp_path / "python", shown) == _of(tmp_path / "command", shown)
    with pytest.raises(InputError, match="makes a release of a finer one alone"):
        kgather.publish(plain.folder / "ratings2.csv", k=COARSE, within=plain.release(2), out=tmp_path / "none")


def test_python_erases_as_the_command_does(proven: Two, tmp_path: Path) -> None:
    user, *others = sorted(_history(proven.work(2), "user_id, group_id"))
    shutil.copytree(proven.work(2), tmp_path / "work")
    places = {"history": tmp_path / "work", "release": proven.release(2), "out": tmp_path / "left"}
    with pytest.raises(InputError, match="not one text"):
        kgather.erase(user, **places)
    with pytest.raises(InputError, match="1 of 2 users are not known") as unknown:
        kgather.erase([others[0], "nobody"], **places)
    assert "nobody" not in str(unknown.value)
    assert not (tmp_path / "left").exists()
    erased = kgather.erase([user], **places)
    assert (erased.groups, erased.release) == (1, tmp_path / "left")
    assert _erase(proven, tmp_path / "command", [user])[0] == 0
    cells = "select group_id, item_id, rating from kgather__ratings order by all"
    assert _of(tmp_path / "left", cells) == _of(tmp_path / "command" / "left", cells)
    assert user not in _history(tmp_path / "work", "user_id, group_id")
