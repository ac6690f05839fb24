"""Riyana and Natwichai: k-Likeness against k-Member and Mondrian on the ten most rated films."""

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._paper.findings import Finding, number, statement
from kgather._paper.movielens import HIGH, MovieLens
from kgather._settings.hierarchy import HALVES
from kgather.udfs.gathering import k_likeness, k_member, mondrian
from kgather.udfs.measuring.generalization_loss import (
    average_class_size,
    class_ranges,
    discernibility,
    equivalence_classes,
    information_loss,
)
from kgather.udfs.measuring.query_error import domain_of, masks_of_ranges, masks_of_sets, query_errors

_NAN = float("nan")
_TABLE_1 = np.array(
    [
        (4, _NAN, 4, 1, 3), (5, _NAN, 4, _NAN, 3), (4, _NAN, 3, _NAN, 4), (_NAN, 5, 5, 1, 2), (_NAN, 5, 5, 1, 2),
        (_NAN, 5, 4, 2, 1), (1, 5, 4, _NAN, 2), (2, 4, 3, _NAN, _NAN), (2, 4, 3, _NAN, _NAN), (2, 4, 3, _NAN, _NAN),
    ]
)  # fmt: skip
_CLASSES = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
_METHODS: dict[str, Callable[..., NDArray[np.int32]]] = {
    "k-Likeness": k_likeness.gather,
    "k-Member": k_member.gather,
    "Mondrian": mondrian.gather,
}
_K = (2, 3, 5, 7, 10, 12, 20)


def example(_: MovieLens) -> Iterator[Finding]:
    """Section 3: the worked example of ten users."""
    low, high = class_ranges(_TABLE_1, _CLASSES)
    classes = equivalence_classes(low, high, _CLASSES)
    yield number("DM", discernibility(classes), 34, within=0)
    yield number("C_AVG", average_class_size(classes, 3), 1.11, within=0.005)
    coarse_low, coarse_high = _coarsened(low, high)
    told = "a blank cell loses nothing, the domain is 0 to 5, all cells count; the printed value does not follow from "
    yield number(
        "GenILoss of table 2", information_loss(coarse_low, coarse_high, _CLASSES, HIGH), 0.348,
        reading=told + "the printed table under any convention that was tried",
    )  # fmt: skip
    yield number("GenILoss of table 3", information_loss(low, high, _CLASSES, HIGH), reading=told + "it")


def generalization(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2.1, figures 10 to 12: what generalization loses, by k."""
    users, table = data.most_rated(10)
    yield number("ratings of the ten films", float((~np.isnan(table)).sum()), 4863, within=0)
    yield number("users who rated one of them", len(users), 927, within=0)
    lost: dict[tuple[str, int], float] = {}
    for k in _K:
        for name, gather in _METHODS.items():
            groups = gather(table, k)
            low, high = class_ranges(table, groups)
            yield from _losses(name, low, high, groups, k, lost)
            if name == "k-Likeness":
                yield from _losses("k-Likeness, DGH(b)", *_coarsened(low, high), groups, k, lost)
    yield statement(
        "GenILoss: k-Member, k-Likeness, Mondrian, from the least",
        "in this order at every k",
        _where(lambda k: lost["k-Member", k] <= lost["k-Likeness", k] <= lost["Mondrian", k]),
        holds=None if all(lost["k-Member", k] <= lost["k-Likeness", k] * 1.02 for k in _K) else False,
    )
    yield statement(
        "GenILoss of k-Likeness for k = 2 to 7",
        "the same as k-Member's",
        ", ".join(f"{lost['k-Likeness', k] / lost['k-Member', k] - 1:+.0%} at {k}" for k in (2, 3, 5, 7)),
        holds=all(abs(lost["k-Likeness", k] / lost["k-Member", k] - 1) < 0.03 for k in (2, 3, 5, 7)),
    )


def queries(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2.2, figures 13 to 15: errors of AVERAGE(age) on the generalized table, k = 2."""
    if data.ages is None:
        msg = "the experiment queries needs the users' ages: put u.user beside u.data."
        raise InputError(msg)
    users, table = data.most_rated(10)
    ages = data.ages[users]
    read = "a user of the generalized table meets a condition where some value of the cell does; sampled conditions"
    domain = domain_of(table)
    truth = masks_of_ranges(table, table, domain)
    errors: dict[tuple[str, str, int], float] = {}
    for name, gather in _METHODS.items():
        groups = gather(table, 2)
        # Natural generalization shows the set of values; the rivals show ranges.
        if name == "k-Likeness":
            shown = masks_of_sets(table, groups, domain)
        else:
            low, high = class_ranges(table, groups)
            shown = masks_of_ranges(low[groups], high[groups], domain)

        def error(attributes: int, width: float, conjunction: bool, shown: NDArray[np.uint64] = shown) -> float:
            errors_of_averages = query_errors(
                truth, shown, ages, domain, attributes=attributes, width=width, conjunction=conjunction
            )[1]
            return 100 * float(np.nanmean(errors_of_averages))

        for operation, counts in (("or", (1, 5, 10)), ("and", (1, 3, 5, 10))):
            for count in counts:
                found = errors[name, operation, count] = error(count, 0, operation == "and")
                yield number(
                    f"error of {operation.upper()}, {name}, %", found, x=count, of="attributes",
                    reading=f"{read}; figures 13 and 14 are not in the text",
                )  # fmt: skip
        for width in (0, 1, 2, 3):
            found = errors[name, "range", width] = error(1, width, False)
            yield number(f"error of ranges, {name}, %", found, x=width, of="range", reading=read)
    ours = {key[1:]: value for key, value in errors.items() if key[0] == "k-Likeness"}
    yield statement(
        "OR", "falls with the number of attributes, below 4%", f"{ours['or', 1]:.1f}% to {ours['or', 10]:.1f}%",
        holds=ours["or", 10] < ours["or", 1] < 4,
    )  # fmt: skip
    yield statement(
        "AND", "rises with the number of attributes", f"{ours['and', 1]:.1f}% to {ours['and', 10]:.1f}%",
        holds=ours["and", 1] < ours["and", 5],
    )  # fmt: skip
    yield statement(
        "range", "below 1% beyond a range of 1", f"{ours['range', 2]:.2f}% at 2", holds=ours["range", 2] < 1.1
    )


def speed(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2.3, figure 16: the time of the three methods, by k."""
    users, table = data.most_rated(10)
    for name, gather in _METHODS.items():
        gather(table, 2)  # compiled, or read from the cache
        for k in _K:
            yield number(f"seconds, {name}", min(_seconds(gather, table, k) for _ in range(3)), x=k)
    ratio = {k: k_member.record_scans(len(users), k) / k_likeness.record_scans(len(users), k) for k in _K}
    for k, times in ratio.items():
        yield number("records compared, k-Member / k-Likeness", times, x=k, reading="of the algorithms as printed")
    yield statement(
        "k-Likeness against k-Member", "more than 3 times as fast",
        f"{ratio[2]:.1f} times fewer records at k = 2, {ratio[20]:.1f} at 20",
        holds=None, reading="the ratio is k: more than 3 from k = 4",
    )  # fmt: skip


def _losses(
    name: str,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    groups: NDArray[np.int32],
    k: int,
    lost: dict[tuple[str, int], float],
) -> Iterator[Finding]:
    classes = equivalence_classes(low, high, groups)
    lost[name, k] = information_loss(low, high, groups, HIGH)
    yield number(f"DM, {name}", discernibility(classes), x=k)
    yield number(f"C_AVG, {name}", average_class_size(classes, k), x=k)
    yield number(f"GenILoss, {name}", lost[name, k], x=k)


def _coarsened(low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each range widened to the lowest level of halves that covers it; a single value is level 0."""
    wide_low, wide_high = low.copy(), high.copy()
    done = np.isnan(low) | (low == high)
    for level in HALVES:
        for start, end in level:
            covered = ~done & (low >= start) & (high <= end)
            wide_low[covered], wide_high[covered] = start, end
            done |= covered
    return wide_low, wide_high


def _where(holds: Callable[[int], bool]) -> str:
    return f"at k = {', '.join(str(k) for k in _K if holds(k)) or 'none'}"


def _seconds(gather: Callable[..., NDArray[np.int32]], table: NDArray[np.float64], k: int) -> float:
    start = time.perf_counter()
    gather(table, k)
    return time.perf_counter() - start
