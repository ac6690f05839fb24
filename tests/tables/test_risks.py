"""What attackers get from a table, counted by hand: from what is shown alone, and beside the original."""

import math
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import kgather
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._settings.table import table_settings
from kgather._tables.again import opened, release_settings
from kgather._tables.attacks import attack
from kgather._tables.audit import risks_of_release
from kgather._tables.journalist import read_population
from kgather._tables.release import publish_table
from kgather._verify.classes import class_sizes
from kgather._verify.risks import risks
from kgather.udfs.attacking._boxes import best_boxes, points_in, rows_alike
from kgather.udfs.measuring.population import chance_of_one
from kgather.udfs.recoding.loss import ColumnLoss, losses
from kgather.udfs.recoding.minimality import believed
from kgather.udfs.recoding.models import Model

SHOWN = [("A", "x")] * 3 + [("A", "y")] * 2 + [("A", "z")] + [("B", "x")] * 2


def test_risks_by_hand() -> None:
    settings = table_settings({"k": 2, "quasi_identifiers": ["q"], "sensitive": ["s"], "sampling_fraction": 1.0})
    with duckdb.connect() as con:
        con.register("shown", pa.table({"q": [q for q, _ in SHOWN], "s": [s for _, s in SHOWN]}))
        assert class_sizes(con, "shown", ["q"]) == ((2, 1), (6, 1))
        found = risks(con, "shown", settings)
    assert found["prosecutor"] == found["journalist"] == 0.5
    assert found["marketer"] == found["journalist_mean"] == 2 / 8
    assert found["homogeneity"] == {"s": 2 / 8}
    assert found["confident"] == {"s": 2 / 8}
    # Class A without one wrong value: x has 3 of 4, y 2 of 3, z 1 of 3. Without two each is alone.
    assert found["background"]["s"] == {
        "one_known": 7 / 8, "two_known": 1.0, "one_known_certain": 2 / 8, "two_known_certain": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("fraction", [0.9, 0.3, 0.01, 1e-6])
def test_the_chance_among_a_population_is_that_of_the_negative_binomial(fraction: float) -> None:
    p, q = fraction, 1 - fraction
    one = p / q * math.log(1 / p)
    assert chance_of_one(np.array([1, 2]), p).tolist() == pytest.approx([one, p / q * (1 - one)], rel=1e-6)
    # E[1/F | f + 1] = p/q (1/f - E[1/F | f]), and it falls with f without a step where the series begins.
    sizes = np.arange(1, 400)
    found = chance_of_one(sizes, p)
    assert (np.diff(found) < 0).all()
    assert found[1:150] == pytest.approx(p / q * (1 / sizes[:149] - found[:149]), rel=1e-2 if p > 1e-3 else 1)
    assert chance_of_one(sizes, 1.0) == pytest.approx(1 / sizes)
    with pytest.raises(InputError, match="sampling_fraction"):
        chance_of_one(sizes, 0.0)


def test_points_in_boxes_are_those_of_plain_python() -> None:
    random = np.random.default_rng(1)
    columns = [ColumnLoss(n, low=np.arange(n) / n, high=np.arange(n) / n) for n in (9, 5, 30)]
    points = np.stack([random.integers(0, column.codes, 700) for column in columns], 1).astype(np.int32)
    counts = random.integers(1, 4, 700)
    ends = np.sort(np.stack([random.integers(0, column.codes, (50, 2)) for column in columns], 1), axis=2)
    first, last = ends[:, :, 0].astype(np.int32), ends[:, :, 1].astype(np.int32)
    found = points_in(points, counts, losses(columns).parts, first, last)
    for box in range(50):
        inside = ((points >= first[box]) & (points <= last[box])).all(axis=1)
        assert found[box] == counts[inside].sum()
    known = random.random((40, 3)) < 0.6
    alike = rows_alike(points[:40], known, points, counts)
    for i in range(40):
        assert alike[i] == counts[((points == points[i]) | ~known[i]).all(axis=1)].sum()


def test_the_likeliest_box_by_hand() -> None:
    # The point 1 lies in [0, 3] of 8 rows, two of whom are expected there, and in [1, 2] of 6, with three expected.
    first, last = np.array([[0], [1], [3]], np.int32), np.array([[3], [2], [3]], np.int32)
    found = np.zeros((1, 3))
    best_boxes(
        np.array([[1]], np.int32), np.arange(1), np.array([[True]]), first, last, np.array([8, 6, 9]),
        np.zeros(1, np.int64), np.arange(5.0), np.array([1]), found,
    )  # fmt: skip
    assert found[0].tolist() == [3 / 5, 1.0, 14]


def test_what_a_merge_tells_by_hand() -> None:
    # Two people and four, with two a and four b, merged for 2 different values. Of the 15 ways to give the a to two of
    # them, one gives both to the small part and six give it none: its people have b with a chance of 6/7. The values
    # alone say 4/6.
    part = np.array([0, 0, 1, 1, 1, 1])
    values = np.array([[0], [1], [0], [1], [1], [1]])
    rows = np.ones(6, np.int64)
    found = believed(part, np.zeros(6, np.int64), values, rows, [Model(0, "distinct", 2)], (values, rows))[0]
    assert (found.rows, found.undecided) == (6, 0)
    assert found.most == pytest.approx(6 / 7, abs=0.06)
    assert found.by_reading == pytest.approx(4 / 6)
    # b is guessed for all: for the two with 6/7, for the four with what is left of the four b.
    assert (found.right, found.right_by_reading) == (pytest.approx(4), pytest.approx(4))
    assert (found.sure, found.sure_by_reading) == (0, 0)


def test_a_part_that_fails_in_every_way_tells_nothing() -> None:
    # One person alone has a value more than .7 of the time, whichever it is.
    part, values = np.array([0, 0, 0, 1]), np.array([[1], [1], [1], [0]])
    rows = np.array([1, 1, 1, 1])
    model = [Model(0, "alpha", 0.7)]
    found = believed(part, np.zeros(4, np.int64), values, rows, model, (values, rows))[0]
    assert found.rows == 4
    assert found.most == pytest.approx(0.75, abs=0.08)
    nothing = believed(part, np.array([0, 0, 0, 1]), values, rows, model, (values, rows))[0]
    assert nothing.rows == 0


def test_the_order_of_pieces_changes_nothing() -> None:
    random = np.random.default_rng(3)
    part = random.integers(0, 30, 400)
    group, values = part // 3, random.integers(0, 4, (400, 1))
    rows = random.integers(1, 4, 400)
    models = [Model(0, "entropy", 3.5)]
    order = random.permutation(400)
    found = believed(part, group, values, rows, models, (values, rows), seed=5)
    # Nor does who of a class has which value.
    ones = np.ones(400, np.int64)
    own = believed(part, group, values, ones, models, (values, rows), seed=5)
    dealt = values.copy()
    for each in range(10):
        at = np.flatnonzero(group == each)
        dealt[at] = values[random.permutation(at)]
    assert believed(part, group, dealt, ones, models, (values, rows), seed=5) == own
    again = believed(part[order], group[order], values[order], rows[order], models, (values, rows), seed=5)
    assert found == again
    assert found[0].rows == rows.sum()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve kinds of people, five of each, so that classes of five lose nothing; and a population of twice as many."""
    folder = tmp_path_factory.mktemp("kinds")
    kinds = [(20 + i % 4 * 10, "abc"[i // 4]) for i in range(12)]
    rows = [(age, job, "xy"[i % 2 if age < 40 else 0]) for age, job in kinds for i in range(5)]
    names = ["age", "job", "illness"]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
    pyarrow.csv.write_csv(table, folder / "people.csv")
    more = [*rows, *rows, (25, "d", "x"), (20, "d", "x")]
    population = pa.table({name: [row[at] for row in more] for at, name in enumerate(names)})
    pyarrow.csv.write_csv(population.select(["job", "age"]), folder / "population.csv")
    settings = table_settings(
        {"k": 5, "quasi_identifiers": {"age": {"step": 10}, "job": {}}, "sensitive": ["illness"], "seed": 3}
    )
    publish_table(str(folder / "people.csv"), folder / "release", settings, LoadOptions())
    return folder


def test_attacks_on_a_release_by_hand(folder: Path) -> None:
    release = folder / "release"
    settings = release_settings(release, seed=3)
    found = opened(release, str(folder / "people.csv"), settings, LoadOptions())
    assert found.evidence.size.tolist() == [5] * 12
    people = read_population(str(folder / "population.csv"), found, LoadOptions())
    assert people.people == 122
    assert people.alike.tolist() == [10] * 12
    report = attack(found, risks_of_release(release, settings), known=[1, 2, 9], targets=60, seed=0, population=people)
    by_name = {(result.attack, result.knowledge): result for result in report.results}
    all_known = by_name["linkage", "all quasi-identifiers"]
    assert (all_known.user.value, all_known.group.value) == (pytest.approx(0.2), 1.0)
    assert report.same_on_original(all_known).user.value == pytest.approx(0.2)
    one_known = by_name["linkage", "1 quasi-identifier"]
    assert 1 / 4 <= one_known.group.value <= 1 / 3 + 1e-9
    journalist = by_name["journalist", "a population"]
    assert journalist.user.value == journalist.details["most"] == 0.1
    homogeneity = by_name["homogeneity", "illness"].details
    assert homogeneity["learnt"] == 0.5
    # Of ages below 40 three of five have x.
    assert homogeneity["read"] == pytest.approx((30 + 18) / 60)
    assert homogeneity["guessed"] == pytest.approx(48 / 60)
    estimated = attack(
        found, risks_of_release(release, settings), known=[1], targets=5, seed=0, sampling_fraction=0.5,
        attacks=["journalist"],
    ).results  # fmt: skip
    assert [result.user.value for result in estimated] == pytest.approx(chance_of_one(np.array([5]), 0.5).tolist())


def test_what_cannot_be_attacked_is_refused(folder: Path, tmp_path: Path) -> None:
    release = folder / "release"
    settings = release_settings(release, seed=3)
    other = tmp_path / "other.csv"
    other.write_text((folder / "people.csv").read_text().replace("20", "30"), encoding="utf-8")
    with pytest.raises(InputError, match="cannot be made again"):
        opened(release, str(other), settings, LoadOptions())
    with pytest.raises(InputError, match="no release of a table"):
        release_settings(tmp_path)
    with pytest.raises(InputError, match="no quasi-identifier"):
        release_settings(release, hierarchies={"zip": "x.csv"})
    found = opened(release, str(folder / "people.csv"), settings, LoadOptions())
    for asked, told in (
        ({"attacks": ["scoring"]}, "linkage, journalist"),
        ({"attacks": ["journalist"]}, "--population"),
    ):
        with pytest.raises(InputError, match=told):
            attack(found, {}, known=[1], targets=5, seed=0, **asked)
    (tmp_path / "few.csv").write_text("age\n20\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column 'job'"):
        read_population(str(tmp_path / "few.csv"), found, LoadOptions())
    (tmp_path / "odd.csv").write_text("age,job\nold,a\nyoung,b\n", encoding="utf-8")
    with pytest.raises(InputError, match="types of the release's columns"):
        read_population(str(tmp_path / "odd.csv"), found, LoadOptions())


def test_python_attacks_a_table_as_the_command_does(folder: Path) -> None:
    release = folder / "release"
    asked = {"original": folder / "people.csv", "publish_seed": 3, "known": [2], "targets": 60}
    report = kgather.attack(release, population=folder / "population.csv", **asked)
    by_name = {result.attack: result for result in report.results}
    assert sorted(by_name) == ["background", "homogeneity", "journalist", "linkage"]
    assert by_name["linkage"].group is not None
    assert by_name["linkage"].group.value == 1.0
    assert by_name["journalist"].details["most"] == 0.1
    alone = kgather.attack(release, attacks=["linkage"], on_original=False, **asked)
    assert [result.user for result in alone.results] == [by_name["linkage"].user]
    for wrong, told in (
        ({"noisy": True}, "`noisy` is for releases of ratings"),
        ({"second": release}, "`second` is for releases of ratings"),
        ({"attacks": ["scoring"]}, "linkage, journalist"),
        ({"hierarchies": {"zip": "x.csv"}}, "no quasi-identifier"),
    ):
        with pytest.raises(InputError, match=told):
            kgather.attack(release, **asked, **wrong)
    with pytest.raises(InputError, match="`population` is for the release of a table"):
        kgather.attack(folder, original=folder / "people.csv", population=folder / "population.csv")
