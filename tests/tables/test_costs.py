"""What classes cost, by hand and against plain Python; and that none of it hangs on order or threads."""

import random
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from table_data import HIERARCHY, people

import kgather
from kgather._recoding.costs import costs, shown_boxes
from kgather._recoding.lines import Coded
from kgather._settings.table import QuasiIdentifier
from kgather.udfs.recoding.loss import ColumnLoss
from kgather.udfs.recoding.queries import counted, draw, estimated, relative_errors

LINE = ColumnLoss(4, low=np.arange(4) / 3, high=np.arange(4) / 3)
FLAT = ColumnLoss(3, nodes=np.array([[0, 1, 2], [3, 3, 3]], np.int32), costs=np.array([0.0, 0, 0, 1]))
TREE = ColumnLoss(
    4,
    nodes=np.array([[0, 1, 2, 3], [4, 4, 5, 5], [6, 6, 6, 6]], np.int32),
    costs=np.array([0, 0, 0, 0, 1 / 3, 1 / 3, 1]),
)


def of(loss: ColumnLoss) -> Coded:
    return Coded(np.arange(loss.codes, dtype=np.int32), loss, lambda low, _: ["" for _ in low], "")


def costs_of(loss: ColumnLoss, codes: list[int], counts: list[int], low: list[int], high: list[int], size: list[int]):
    return costs(
        ["x"], [of(loss)], np.array(codes, np.int32)[:, None], np.array(counts), np.array(low, np.int32)[:, None],
        np.array(high, np.int32)[:, None], np.array(size), np.zeros(len(size), bool), 2,
    )  # fmt: skip


def test_a_category_by_hand() -> None:
    # a a | b c: the second class shows nothing. Of 6 bits its two cells leave 2 open each.
    found = costs_of(FLAT, [0, 1, 2], [2, 1, 1], [0, 1], [0, 2], [2, 2])
    assert found["all"]["discernibility"] == 8
    assert found["all"]["average_class_size"] == 1
    assert found["all"]["entropy"] == found["columns"]["x"]["entropy"] == pytest.approx(4 / 6, abs=1e-3)
    # The reader sees 2 2/3, 2/3 and 2/3 where there are 2, 1 and 1.
    assert found["columns"]["x"]["distance"] == pytest.approx(2 / 3 / 4, abs=1e-3)
    assert "moved" not in found["columns"]["x"]


def test_a_line_by_hand() -> None:
    # 3 x 10 and 11 in [10, 12), 12 and 13 in [12, 14): one row is seen one step off.
    found = costs_of(LINE, [0, 1, 2, 3], [3, 1, 1, 1], [0, 2], [1, 3], [4, 2])["columns"]["x"]
    assert found["distance"] == pytest.approx(1 / 6, abs=1e-3)
    assert found["moved"] == pytest.approx(1 / 6 / 3, abs=1e-3)
    open_bits = 3 * np.log2(4 / 3) + np.log2(4) + 2
    assert found["entropy"] == pytest.approx(open_bits / (3 * np.log2(6 / 3) + 3 * np.log2(6)), abs=1e-3)


def test_a_table_as_it_is_costs_nothing_and_one_that_shows_nothing_everything() -> None:
    same = costs_of(LINE, [0, 1, 2, 3], [2, 2, 2, 2], [0, 1, 2, 3], [0, 1, 2, 3], [2, 2, 2, 2])
    assert same["columns"]["x"] == {"entropy": 0, "distance": 0, "moved": 0}
    assert same["all"]["query_error_1"] == 0
    assert costs_of(LINE, [0, 1, 2, 3], [5, 1, 1, 1], [0], [3], [8])["all"]["entropy"] == 1


def test_a_cell_covers_the_leaves_of_its_label() -> None:
    first, last = TREE.covered(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 3]))
    assert first.tolist() == [0, 0, 0, 2]
    assert last.tolist() == [0, 1, 3, 3]
    nullable = ColumnLoss(4, low=np.array([0, 0, 0.5, 1]), high=np.array([0, 0, 0.5, 1]), nullable=True)
    first, last = nullable.covered(np.array([0, 0, 1]), np.array([0, 2, 2]))
    assert (first.tolist(), last.tolist()) == ([0, 0, 1], [0, 3, 2])
    first, last = shown_boxes([of(TREE)], np.array([[1]], np.int32), np.array([[1]], np.int32), np.array([True]))
    assert (first.item(), last.item()) == (0, 3)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("asked", [1, 2, 3])
def test_counts_and_estimates_are_those_of_plain_python(asked: int, threads: int) -> None:
    random_ = np.random.default_rng(asked)
    columns = [LINE, FLAT, TREE]
    codes = np.unique(
        np.stack([random_.integers(0, column.codes, 40) for column in columns], axis=1).astype(np.int32), axis=0
    )
    counts = random_.integers(1, 5, len(codes))
    boxes = draw(codes, counts, columns, asked, 30, seed=4)
    assert all(((boxes[0] <= boxes[1]).all(), (boxes[0] >= 0).all()))
    group = np.arange(len(codes)) % 5
    first = np.stack([np.array([codes[group == g, j].min() for g in range(5)]) for j in range(3)], 1).astype(np.int32)
    last = np.stack([np.array([codes[group == g, j].max() for g in range(5)]) for j in range(3)], 1).astype(np.int32)
    size = np.bincount(group, weights=counts).astype(np.int64)
    true, said = counted(codes, counts, boxes, threads), estimated(first, last, size, columns, boxes, threads)
    for query, (low, high) in enumerate(zip(*boxes, strict=True)):
        restricted = [j for j, c in enumerate(columns) if low[j] > 0 or high[j] < c.codes - 1]
        assert len(restricted) <= asked
        inside = ((codes >= low) & (codes <= high)).all(axis=1)
        assert true[query] == counts[inside].sum() > 0
        wanted = 0.0
        for g in range(5):
            part = float(size[g])
            for j in range(3):
                both = max(min(last[g, j], high[j]) - max(first[g, j], low[j]) + 1, 0)
                part *= both / (last[g, j] - first[g, j] + 1)
            wanted += part
        assert said[query] == pytest.approx(wanted)
    errors = relative_errors(np.array([0, 10]), np.array([1.0, 5.0]), 10_000)
    assert errors.tolist() == [0.1, 0.5]


QUASI = {"age": QuasiIdentifier(step=5), "zip": {"kind": "prefix"}, "job": {"hierarchy": HIERARCHY}, "income": {}}


def measured(rows: list[dict[str, Any]], **asked: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = kgather.anonymize(
            pa.Table.from_pylist(rows), k=5, quasi_identifiers=QUASI, sensitive=["illness"], **asked
        )
    return found.report, found.risks


@pytest.mark.parametrize("method", ["mondrian", "cluster", "lattice"])
def test_what_is_measured_hangs_on_no_order_and_no_threads(method: str) -> None:
    rows = people(400, seed=1)
    asked = {"method": method, "l": 2, "suppress": 0.1}
    first = measured(rows, **asked)
    assert measured(random.Random(4).sample(rows, len(rows)), threads=1, **asked) == first
    assert set(first[0]["costs"]) >= {"discernibility", "average_class_size", "entropy", "query_error_1"}
    assert set(first[1]) >= {"prosecutor", "marketer", "homogeneity", "background", "minimality"}


def test_classes_that_show_the_same_are_one() -> None:
    columns = ["zip", "job"]
    table = pa.Table.from_pylist(people(300)).select(columns)
    shown = kgather.anonymize(table, k=5, quasi_identifiers=columns, method="cluster", seed=1)
    sizes = shown.rows.group_by(columns).aggregate([([], "count_all")])["count_all"].to_numpy()
    assert shown.report["classes"] == len(sizes)
    assert shown.report["costs"]["discernibility"] == (sizes.astype(float) ** 2).sum()


def test_finer_classes_cost_less() -> None:
    rows = people(600, seed=2)
    fine, coarse = (
        kgather.anonymize(pa.Table.from_pylist(rows), k=k, quasi_identifiers=QUASI, method="cluster", rounds=1).report[
            "costs"
        ]
        for k in (3, 60)
    )
    for name in ("entropy", "query_error_3", "discernibility"):
        assert fine[name] < coarse[name]


def loss(values: list[object], asked: dict[str, object], k: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(kgather.anonymize(pa.table({"v": values}), k=k, quasi_identifiers={"v": asked}).report["loss"])


def test_cells_cost_what_they_show() -> None:
    # Two of five values: (2 - 1) / (5 - 1) in a class of four, and three of five in one of six.
    tree = [[value, "low" if value in "abc" else "high"] for value in "abcde"]
    texts = ["a", "a", "b", "b", "c", "c", *"ddee"]
    assert loss(texts, {"hierarchy": tree, "show": "set"}, 4) == pytest.approx(0.6 * 2 / 4 + 0.4 * 1 / 4)
    few = ["a", "a", "b", "b", *"ddee"]
    assert loss(few, {"hierarchy": tree}, 4) == pytest.approx(0.5 * 2 / 4 + 0.5 * 1 / 4)
    assert loss(few, {"hierarchy": tree, "show": "set"}, 4) == pytest.approx(1 / 4)
    # [20, 24] and [60, 70] of 20 to 70; with cuts they are [20, 30) and [60, 71), where 71 is no value.
    ages = [20, 20, 24, 24, 60, 60, 70, 70]
    assert loss(ages, {"cuts": [20, 30, 60, 71], "show": "tight"}, 4) == pytest.approx((4 + 10) / 2 / 50)
    assert loss(ages, {"cuts": [20, 30, 60, 71]}, 4) == pytest.approx((9 + 10) / 2 / 50)
    # One end that only one has is a cut.
    assert loss([20, 21, 24, 24, 60, 60, 70, 70], {"cuts": [20, 30, 60, 71], "show": "tight"}, 4) == pytest.approx(
        (4 + 10) / 2 / 50
    )
    # A mean stands for 20 to 24; of the others all have the same, so it is a median and costs nothing.
    assert loss([20, 20, 24, 24, 60, 60, 60, 60], {"cuts": [20, 30, 60, 71], "show": "mean"}, 4) == pytest.approx(
        (4 + 0) / 2 / 40
    )
