"""What cells show beside ranges and labels: single values only where enough people hold them."""

import datetime
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from table_data import classes, holds, people

import kgather
from kgather._errors import InputError
from kgather.udfs.recoding.averages import MEAN, MEDIAN, NEITHER, averages


def shown(values: list[Any], asked: dict[str, Any], k: int, **more: Any) -> list[str | None]:
    """What each row shows of the values, in their order."""
    table = pa.table({"value": values, "number": list(range(len(values)))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = kgather.anonymize(table, k=k, quasi_identifiers={"value": asked}, others=["number"], **more)
    by_number = {row["number"]: row["value"] for row in found.rows.to_pylist()}
    return [by_number[at] for at in range(len(values))]


def test_tight_ends_have_two_holders_each() -> None:
    twice = [21, 21, 22, 23, 24, 24]
    assert set(shown(twice, {"cuts": [20, 30], "show": "tight"}, 6)) == {"[21, 24]"}
    assert set(shown([21, 22, 23, 23, 24, 24], {"cuts": [20, 30], "show": "tight"}, 6)) == {"[20, 24]"}
    assert set(shown([21, 21, 22, 23, 23, 24], {"cuts": [20, 30], "show": "tight"}, 6)) == {"[21, 30)"}
    assert set(shown([21, 22, 23, 24, 25, 26], {"cuts": [20, 30], "show": "tight"}, 6)) == {"[20, 30)"}
    assert set(shown([21, 21, 26, 26], {"cuts": [24], "show": "tight"}, 4)) == {"[21, 26]"}
    assert set(shown([21, 21, 26, 27], {"cuts": [24], "show": "tight"}, 4)) == {">= 21"}
    assert set(shown([21, 22, 26, 26], {"cuts": [24], "show": "tight"}, 4)) == {"<= 26"}


def test_tight_ends_of_a_sensitive_column_have_k_holders() -> None:
    values = [21, 21, 21, 22, 24, 24]
    asked = {"cuts": [20, 30], "show": "tight", "sensitive": True}
    assert set(shown(values, asked, 3)) == {"[21, 30)"}
    assert set(shown([21] * 3 + [24] * 3, {**asked, "widest": 30}, 3)) == {"[21, 24]"}


def test_tight_ends_of_dates_and_times() -> None:
    days = [datetime.date(2024, 3, day) for day in (5, 5, 9, 12, 12)]
    assert set(shown(days, {"step": "month", "show": "tight"}, 5)) == {"[2024-03-05, 2024-03-12]"}
    hours = [datetime.time(8, minute, second) for minute, second in ((5, 1), (5, 59), (30, 0), (40, 0))]
    assert set(shown(hours, {"step": "hour", "show": "tight"}, 4)) == {"[08:05, 09:00)"}


def test_sets_name_only_what_two_people_hold() -> None:
    assert set(shown(list("aabb"), {"show": "set"}, 4)) == {"{a, b}"}
    assert set(shown(list("aabc"), {"show": "set"}, 4)) == {"*"}
    tree = {"hierarchy": [["a", "x"], ["b", "x"], ["c", "y"]], "show": "set"}
    assert set(shown(list("aabbb"), tree, 5)) == {"{a, b}"}
    assert set(shown(list("aaaab"), tree, 5)) == {"x"}
    assert set(shown(["a", "a", None, None], {"show": "set"}, 4)) == {"*"}
    assert set(shown(["a,b", "a,b", 'say "x"', 'say "x"'], {"show": "set"}, 4)) == {'{"a,b", "say ""x"""}'}
    order = {"order": ["low", "middle", "high"], "show": "set"}
    assert set(shown(["low", "low", "high", "high"], order, 4)) == {"{high, low}"}


def test_averages_by_hand() -> None:
    def of(numbers: list[float], rows: list[int], k: int, *, medians: bool = False) -> tuple[int, float, float]:
        kind, found, grain = averages(
            np.array([0, len(numbers)]), np.array(numbers), np.array(rows), k, medians=medians
        )
        return int(kind[0]), float(found[0]), float(grain[0])

    # 1 and 100 are taken for 2 and 5: the mean of 2 2 3 5 5 is 3.4, its grain (5 - 2) / 5.
    assert of([1, 2, 3, 5, 100], [1] * 5, 5) == (MEAN, pytest.approx(3.4), pytest.approx(0.6))
    # Winsorized to 0 and 10, one row has all of the sum: more than three times an equal share.
    assert of([0, 10, 10], [6, 1, 1], 9)[0] == NEITHER
    # A median has k holders or is not shown.
    assert of([1, 2, 9], [1, 4, 1], 4, medians=True) == (MEDIAN, 2.0, 0.0)
    assert of([1, 2, 9], [2, 3, 1], 4, medians=True)[0] == NEITHER
    # One number that nearly all hold is no mean but a value of theirs.
    assert of([1, 2, 9], [1, 4, 1], 4)[0] == MEDIAN
    assert of([1, 2, 9], [1, 3, 1], 4)[0] == NEITHER
    assert of([-1.7e308, -1e308, 1e308, 1.7e308], [2] * 4, 4)[0] == NEITHER
    assert of([1, 2, 3], [1] * 3, 2)[0] == NEITHER


def test_nobody_moves_a_mean_by_more_than_its_rounding() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        numbers = np.sort(random.lognormal(3, 1, 12))
        kind, found, grain = averages(np.array([0, 12]), numbers, np.ones(12, dtype=np.int64), 12)
        if kind[0] != MEAN:
            continue
        low, high = numbers[1], numbers[-2]
        without = np.clip(numbers, low, high)
        for at in range(12):
            other = without.copy()
            other[at] = low if without[at] > (low + high) / 2 else high
            assert abs(other.mean() - found[0]) <= grain[0] * (1 + 1e-9)


def test_means_are_rounded_to_a_round_number_of_their_grain() -> None:
    values = [10, 20, 21, 22, 23, 24, 25, 26, 27, 1000]
    [text] = set(shown(values, {"step": 10000, "show": "mean"}, 10))
    # Winsorized to 20 and 27, the mean is 23.5, and (27 - 20) / 10 is rounded up to 1.
    assert text in ("23", "24")
    wide = [1000.0 * value for value in values]
    assert set(shown(wide, {"step": 1e7, "show": "mean"}, 10)) <= {"23000", "24000"}


@pytest.mark.parametrize("display", ["mean", "median"])
def test_what_has_no_average_shows_its_range(display: str) -> None:
    # The sizes of one row and of all others are too far apart, and no median has enough holders.
    assert set(shown([0.0] * 5 + [1000.0] * 2, {"cuts": [0, 5000], "show": display}, 7)) == {"[0, 5000)"}
    assert set(shown([1, 2, 3], {"cuts": [0, 5], "show": display}, 3)) == {"[0, 5)"}
    assert set(shown([1.0, 2.0, None, None], {"cuts": [0, 5], "show": display}, 4)) == {"*"}
    assert set(shown([None] * 4 + [1.0] * 4, {"cuts": [0, 5], "show": display}, 4)) == {None, "1"}


@pytest.mark.parametrize(
    ("values", "asked", "told"),
    [
        ([1, 2, 3], {"show": "set"}, "shown as range or tight or mean or median, not as set"),
        (["a", "b", "c"], {"show": "mean"}, "shown as label or set, not as mean"),
        (["a", "b", "c"], {"kind": "time"}, "no time"),
        ([datetime.date(2024, 1, 1)] * 3, {"show": "median"}, "its kind is date"),
        ([datetime.time(1)] * 3, {"step": "week"}, "hour, minute or a number of minutes"),
        ([datetime.time(1)] * 3, {"step": 2.5}, "a whole number of minutes"),
        (["a"] * 3, {"mask": ["#*", "##"]}, "masks go from fine to coarse"),
        (["a"] * 3, {"mask": ["#"], "grouping": "frequency"}, "only one of grouping and mask"),
        (["a"] * 3, {"kind": "mask"}, "kind mask needs mask"),
    ],
)
def test_what_does_not_go_together_is_refused(values: list[Any], asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        shown(values, asked, 2)


def test_times_of_the_day_are_in_their_ranges() -> None:
    random = np.random.default_rng(2)
    times = [datetime.time(int(h), int(m), int(s)) for h, m, s in random.integers(0, (24, 60, 60), (200, 3))]
    for asked in ({}, {"step": "hour"}, {"step": 45}, {"show": "tight"}, {"step": 1, "widest": 120}):
        for value, text in zip(times, shown(times, asked, 4, suppress=0.9), strict=True):
            assert text is not None
            if text == "*":
                continue
            low, high = text.strip("[)]").split(", ") if "," in text else (text, text)
            clock = str(value)
            assert low <= clock
            assert clock < high or (text.endswith("]") and clock[:5] <= high)


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("seed", range(5))
def test_no_cut_that_was_found_is_the_value_of_a_rank(k: int, seed: int) -> None:
    """Whoever is at a rank may have any value: the cuts stay where they are while it moves within a step."""
    random = np.random.default_rng(seed)
    ages = np.sort(random.integers(17, 91, 400))
    cuts = []
    for moved in range(2):
        own = ages.copy()
        own[max(k, 4)] = own[max(k, 4) - 1] + moved if own[max(k, 4) + 1] > own[max(k, 4) - 1] else own[max(k, 4)]
        ends: set[str] = set()
        for text in shown(own.tolist(), {}, k):
            assert text is not None
            ends.update(re_numbers(text))
        cuts.append(min(map(int, ends)))
    assert cuts[0] % 5 == 0
    assert cuts[0] == cuts[1]


def re_numbers(text: str) -> list[str]:
    return [part for part in text.replace("[", " ").replace(")", " ").replace(",", " ").split() if part.isdigit()]


def test_steps_of_one_do_not_show_the_first_rank() -> None:
    # Twenty values, steps of 1: the cut below all is at a multiple of five, not at the lowest value with k below it.
    values = [3] * 3 + [7] + [8] * 5 + [12] * 5 + [13] * 5 + [14] * 5
    ends = {end for text in shown(values, {}, 4) if text for end in re_numbers(text)}
    assert "7" not in ends - {"8"}


@pytest.mark.parametrize("method", ["mondrian", "cluster", "lattice"])
def test_cells_are_true_of_everybody(method: str) -> None:
    rows = people(500, seed=9)
    quasi = {
        "age": {"step": 5, "show": "tight"},
        "job": {"grouping": "frequency", "show": "set"},
        "income": {"show": "mean", "weight": 2.0},
        "zip": {"mask": ["####*", "###**", "#****"]},
    }
    table = pa.Table.from_pylist([{**row, "number": at} for at, row in enumerate(rows)])
    found = kgather.anonymize(table, k=6, quasi_identifiers=quasi, others=["number"], method=method).rows.to_pylist()
    assert min(map(len, classes(found, list(quasi)).values())) >= 6
    for cell in found:
        row = rows[cell["number"]]
        assert holds(cell["age"], row["age"]), (cell["age"], row["age"])
        assert cell["job"] == "*" or row["job"] in cell["job"].strip("{}").split(", ")
        assert cell["zip"] == "*" or all(a in ("*", b) for a, b in zip(cell["zip"], row["zip"], strict=True))
    for cells, inside in classes(found, list(quasi)).items():
        job = Counter(rows[cell["number"]]["job"] for cell in inside)
        if cells[1].startswith("{") and cells[1].count(",") + 1 == len(job):
            continue
        assert cells[1] == "*" or set(cells[1].strip("{}").split(", ")) >= set(job)


def test_nothing_is_shown_that_is_wider_than_it_may_be() -> None:
    ages = [*range(20, 40), *range(60, 80)]
    with pytest.raises(InputError, match="beyond its outer cuts, which are shown as ranges without an end"):
        shown(ages, {"cuts": [30, 40, 60, 80], "widest": 30}, 2)
    assert all(text.startswith("[") for text in shown(ages, {"cuts": [20, 30, 40, 60, 80], "widest": 30}, 2) if text)
    # All ages of a class are within 10 years, but a reader sees 18.
    with pytest.raises(kgather.PromiseError, match="would have to be suppressed"):
        shown(list(range(4, 12)), {"cuts": [0, 18], "widest": 10}, 2)
    assert set(shown(list(range(5, 14)), {"cuts": [0, 6, 12, 18], "widest": 10}, 1)) == {
        "[0, 6)",
        "[6, 12)",
        "[12, 18)",
    }
    # A star for null and others is wider than 100, though all ages are within 60 years.
    with pytest.raises(kgather.PromiseError, match="would have to be suppressed"):
        shown([*ages, None, None], {"step": 5, "widest": 100}, 4)
    assert None in shown([*ages, None, None], {"step": 5, "widest": 100}, 2)


@pytest.mark.parametrize("widest", [0.5, 3, 7, 40])
def test_without_a_step_there_is_one_that_is_narrow_enough(widest: float) -> None:
    numbers = [value / 100 for value in range(20_000)]
    for text in set(shown(numbers, {"widest": widest}, 2)):
        assert text is not None
        low, high = text.strip("[)").split(", ")
        assert float(high) - float(low) <= widest + 1e-9
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=day // 8) for day in range(8000)]
    for text in set(shown(days, {"widest": 10 * widest}, 2)) if widest >= 1 else ():
        assert text is not None
        if text.startswith("["):
            first, last = map(datetime.date.fromisoformat, text.strip("[)").split(", "))
            assert (last - first).days <= 10 * widest


def test_ranges_of_an_order_are_shown_as_nothing_else() -> None:
    with pytest.raises(InputError, match="has values with ' to ' in them"):
        shown(["low", "mid to high"] * 3, {"order": ["low", "mid", "low to mid", "mid to high", "high"]}, 2)
    assert set(shown(["a to b", "c"] * 2, {"order": ["a to b", "c"]}, 4)) == {"a to b to c"}


def test_a_prefix_is_true_of_what_ends_where_its_stars_begin() -> None:
    assert set(shown(["021", "02145"], {"kind": "prefix"}, 2)) == {"021**"}
