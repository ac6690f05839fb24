"""Riyana and Natwichai: k-Likeness against k-Member and Mondrian on the ten most rated films."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._paper import macros
from kgather._paper.findings import DRAWS, Finding, drawn, fact, how_often, in_part, number, rises, statement
from kgather._paper.macros import large_enough, shuffled
from kgather._paper.movielens import HIGH, MovieLens
from kgather._settings.hierarchy import Hierarchy
from kgather.udfs._shared.counting import counted
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
_PERSONAL: Mapping[str, list[int] | list[str]] = {
    "age": [25, 23, 27, 31, 35, 25, 32, 29, 24, 29],
    "salary": [42000, 45000, 50000, 35000, 40000, 50000, 45000, 47000, 49000, 51000],
    "married": [
        "Married", "Married", "Single", "Married", "Single", "Single", "Married", "Married", "Single", "Married",
    ],
    "city": [
        "New York", "Los Angeles", "New York", "San Antonio", "New York", "Los Angeles", "Los Angeles", "Los Angeles",
        "Columbus", "Columbus",
    ],
}  # fmt: skip
_BOOKS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")
_ALL_BUT_JOY_RIDE = " and ".join(f"{book} <> 0" for book in _BOOKS if book != "joy_ride")
_ALL_BUT_PACHINKO = " and ".join(f"{book} <> 0" for book in _BOOKS if book != "pachinko")
# What is asked, under which condition, and what is printed.
_QUERIES = {
    1: ("avg(age)", "egomaniac = 5", "33"),
    2: ("count(*)", _ALL_BUT_JOY_RIDE, "1"),
    3: ("count(*)", _ALL_BUT_PACHINKO, "1"),
    4: ("avg(age)", _ALL_BUT_JOY_RIDE, "25"),
    5: ("avg(age)", _ALL_BUT_PACHINKO, "32"),
    6: ("max(married)", _ALL_BUT_JOY_RIDE, "Married"),
    7: ("max(city)", _ALL_BUT_JOY_RIDE, "New York"),
    8: ("avg(salary)", _ALL_BUT_JOY_RIDE, "42000"),
}
_CLASSES = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
_OURS = "k-Likeness"
_METHODS: Mapping[str, Callable[[NDArray[np.float64], int], NDArray[np.int32]]] = {
    # Looked up when they are called, so that what stands in for a kernel is called.
    "k-Likeness": lambda table, k: k_likeness.gather(table, k),
    "k-Member": lambda table, k: k_member.gather(table, k),
    "Mondrian": lambda table, k: mondrian.gather(table, k),
}
# Figure 4 is not in the text: (a) is read as pairs, (b) is that of table 2, (c) is the one of height 1.
_HIERARCHIES = {
    "DGH(a)": Hierarchy.parse([[[0, 1], [2, 3], [4, 5]], [[0, 5]]]).rows(),
    "DGH(b)": Hierarchy.parse("halves").rows(),
    "DGH(c)": Hierarchy.parse([[[0, 5]]]).rows(),
}
_K = (1, 2, 3, 5, 7, 10, 12, 15, 20)
_TOP = 10
_ALL_LOST = 0.95  # of GenILoss: a curve that has come so far rises no more
_DRAWS = 3  # of groups at random, where each costs a table
_ASKED = 2000  # queries of each kind
_OUT_OF_TEXT = "the figure is not in the text, which says what holds in words"


def example(_: MovieLens) -> Iterator[Finding]:
    """Sections 1 and 3: the worked example of ten users, and queries 1 to 8."""
    sets = macros.spans_of_sets(_TABLE_1, _CLASSES)
    ranges = macros.ranges(_TABLE_1, _CLASSES, _HIERARCHIES["DGH(b)"])
    one = np.zeros_like(_CLASSES)
    of_one = macros.ranges(_TABLE_1, one, _HIERARCHIES["DGH(b)"])
    dm, average, loss = macros.losses(ranges, _CLASSES, 3, HIGH)
    dm_of_one, average_of_one, loss_of_one = macros.losses(of_one, one, 3, HIGH)
    control = "by chance: all ten in one class"
    yield number("DM", dm, 34, chance=dm_of_one, within=0, shows="table 2; equation 1; definition 10", reading=control)
    yield number(
        "C_AVG",
        average,
        1.11,
        chance=average_of_one,
        within=0.005,
        shows="table 2; equation 2; definition 11",
        reading=control,
    )
    told = "a blank cell loses nothing, the domain is 0 to 5, all cells count"
    yield number(
        "GenILoss", loss, 0.348, chance=loss_of_one, shows="table 2; equation 3; definition 12; definition 7",
        reading=f"{told}; the printed value does not follow from the printed table under any convention that was tried",
    )  # fmt: skip
    yield number(
        "GenILoss of sets", macros.losses(sets, _CLASSES, 3, HIGH)[2], shows="table 3; definition 8", reading=told
    )
    low, high = class_ranges(_TABLE_1, _CLASSES)
    classes = equivalence_classes(low, high, _CLASSES)
    yield number(
        "DM by the kernel", float(discernibility(classes)), 34, chance=float(discernibility(one)), within=0,
        shows="equation 1",
    )  # fmt: skip
    yield number(
        "C_AVG by the kernel", average_class_size(classes, 3), 1.11, chance=average_class_size(one, 3), within=0.005,
        shows="equation 2",
    )  # fmt: skip
    yield number("GenILoss of sets by the kernel", information_loss(low, high, _CLASSES, HIGH), shows="equation 3")
    asked = _answers(np.nan_to_num(_TABLE_1), _PERSONAL)
    for query, (_what, _where, printed) in _QUERIES.items():
        yield fact(
            f"query {query}", asked[query], printed, shows=f"query {query}; table 1", reading="of the table as it is"
        )
    risky, left = (
        macros.risk_conditions(bounds, groups, 3)
        for bounds, groups in (((np.nan_to_num(_TABLE_1), np.nan_to_num(_TABLE_1)), np.arange(10)), (ranges, _CLASSES))
    )
    yield statement(
        "conditions that fewer than 3 users meet",
        "none in table 2",
        f"{left}",
        holds=left == 0,
        chance=f"{risky} in table 1",
        by_chance=risky == 0,
        shows="table 2; definition 4; definition 9",
    )


def _answers(table: NDArray[np.float64], personal: Mapping[str, list[int] | list[str]]) -> dict[int, str]:
    """The answers to the queries, as text."""
    with duckdb.connect() as con:
        books = dict(zip(_BOOKS, table.T, strict=True))
        macros.register(con, "people", **books, **personal)
        return {
            query: " ".join(
                f"{found:g}" if isinstance(found, float) else str(found)
                for (found,) in con.sql(f"select {what} from people where {where}").fetchall()
            )
            for query, (what, where, _) in _QUERIES.items()
        }


def generalization(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2.1, figures 10 to 12: what generalization loses, by k."""
    users, table = data.most_rated(_TOP)
    yield fact("ratings of the ten films", float((~np.isnan(table)).sum()), 4863, shows="section 5.1")
    yield fact("users who rated one of them", len(users), 927, shows="section 5.1")
    gathered = {(name, k): gather(table, k) for k in _K for name, gather in _METHODS.items()}
    valid = all(large_enough(groups, k) and (k == 1 or _alike(table, groups)) for (_, k), groups in gathered.items())
    lost = _lost(table, gathered)
    random = drawn(lambda seed: _lost(table, {key: shuffled(groups, seed) for key, groups in gathered.items()}), _DRAWS)
    for place, (measure, figure) in enumerate((("DM", 10), ("C_AVG", 11), ("GenILoss", 12))):
        for (name, k), values in lost.items():
            series = f"k-Likeness, {name}" if name in _HIERARCHIES else name
            yield number(
                f"{measure}, {series}", values[place], chance=[one[name, k][place] for one in random], x=k,
                shows=f"figure {figure}" + ("; algorithms 1 to 3, equation 6" if (name, figure) == (_OURS, 12) else ""),
            )  # fmt: skip
    yield from _orders(lost, random, valid=valid)


_Lost = Mapping[tuple[str, int], tuple[float, float, float]]


def _lost(table: NDArray[np.float64], gathered: Mapping[tuple[str, int], NDArray[np.integer]]) -> _Lost:
    """DM, C_AVG and GenILoss by method and k, of k-Likeness by hierarchy, too."""
    lost: dict[tuple[str, int], tuple[float, float, float]] = {}
    for (name, k), groups in gathered.items():
        same = macros.classes_of_sets(table, groups)
        lost[name, k] = macros.losses(macros.spans_of_sets(table, groups), groups, k, HIGH, same)
        if name == "k-Likeness":
            for form, hierarchy in _HIERARCHIES.items():
                lost[form, k] = macros.losses(macros.ranges(table, groups, hierarchy), groups, k, HIGH)
    return lost


def _orders(lost: _Lost, random: list[_Lost], *, valid: bool) -> Iterator[Finding]:
    """What the text says of figures 10 to 12. By chance: groups at random of what a line is about."""
    dm, average, loss = range(3)
    several = [k for k in _K if k > 1]

    def said(
        about: str,
        printed: str,
        figure: int,
        holds: Callable[[_Lost, int], bool],
        swapped: tuple[str, ...],
        ks: list[int] = several,
        reading: str = _OUT_OF_TEXT,
    ) -> Finding:
        at_random = [{key: one[key] if key[0] in swapped else values for key, values in lost.items()} for one in random]
        kept, *by_chance = ([k for k in ks if holds(one, k)] for one in (lost, *at_random))
        most = max(by_chance, key=len)
        return statement(
            about,
            printed,
            _at(kept, ks),
            holds=in_part(*(k in kept for k in ks)),
            chance=_at(most, ks),
            by_chance=[in_part(*(k in one for k in ks)) for one in by_chance],
            valid=valid,
            shows=f"figure {figure}",
            reading=f"{reading}; by chance: that of {_DRAWS} draws that holds at most k",
        )

    rivals = ("k-Likeness", "k-Member", "Mondrian")
    yield said(
        "DM of k-Likeness with sets", "lowest, comparable to k-Member's", 10,
        lambda of, k: of["k-Likeness", k][dm] <= 1.02 * min(of[name, k][dm] for name in rivals), ("k-Likeness",),
        reading=f"{_OUT_OF_TEXT}; lowest: at most 2% above",
    )  # fmt: skip
    yield said(
        "DM of Mondrian", "higher than the others'", 10,
        lambda of, k: of["Mondrian", k][dm] > max(of["k-Likeness", k][dm], of["k-Member", k][dm]), ("Mondrian",),
    )  # fmt: skip
    yield said(
        "DM of DGH(b), (a) and (c)", "rises in this order", 10,
        lambda of, k: of["DGH(b)", k][dm] <= of["DGH(a)", k][dm] <= of["DGH(c)", k][dm], tuple(_HIERARCHIES),
        reading=f"{_OUT_OF_TEXT}; (a) is read as pairs, (c) as one range",
    )  # fmt: skip
    yield said(
        "C_AVG of k-Likeness and k-Member", "close to 1", 11,
        lambda of, k: max(of["k-Likeness", k][average], of["k-Member", k][average]) < 1.05, ("k-Likeness", "k-Member"),
        reading=f"{_OUT_OF_TEXT}; close: below 1.05",
    )  # fmt: skip
    yield said(
        "C_AVG of Mondrian", "higher than theirs", 11,
        lambda of, k: of["Mondrian", k][average] > max(of["k-Likeness", k][average], of["k-Member", k][average]),
        ("Mondrian",),
    )  # fmt: skip
    yield said(
        "GenILoss of k-Member", "the least", 12,
        lambda of, k: of["k-Member", k][loss] <= 1.02 * min(of[name, k][loss] for name in rivals), ("k-Member",),
        reading=f"{_OUT_OF_TEXT}; the least: at most 2% above",
    )  # fmt: skip
    yield said(
        "GenILoss of k-Likeness with sets", "less than Mondrian's", 12,
        lambda of, k: of["k-Likeness", k][loss] <= of["Mondrian", k][loss], ("k-Likeness",),
    )  # fmt: skip
    yield said(
        "GenILoss of k-Likeness for k = 2 to 7", "the same as k-Member's", 12,
        lambda of, k: abs(of["k-Likeness", k][loss] - of["k-Member", k][loss]) < 0.03 * of["k-Member", k][loss],
        ("k-Likeness",), [2, 3, 5, 7], reading="the same: within 3%",
    )  # fmt: skip
    # Where groups at random lose all there is to lose under (b), they lose as much under the others.
    some_left = [k for k in several if min(one["DGH(b)", k][loss] for one in random) < _ALL_LOST]
    yield said(
        "GenILoss of DGH(b), (a) and (c)", "rises in this order", 12,
        lambda of, k: of["DGH(b)", k][loss] < of["DGH(a)", k][loss] < of["DGH(c)", k][loss], tuple(_HIERARCHIES),
        some_left, reading=f"{_OUT_OF_TEXT}; at those k where groups at random do not lose all there is under (b)",
    )  # fmt: skip


def _at(ks: list[int], among: list[int]) -> str:
    if ks == among and ks:
        return f"at all k from {among[0]} to {among[-1]}"
    return f"at k = {', '.join(map(str, ks))}" if ks else "at no k"


def queries(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2.2, figures 13 to 15: errors of AVERAGE(age) on the generalized table, k = 2."""
    if data.ages is None:
        msg = "the experiment queries needs the users' ages: put u.user beside u.data."
        raise InputError(msg)
    users, table = data.most_rated(_TOP)
    ages = data.ages[users]
    kinds = [
        *(("OR", attributes, 0.0, 13) for attributes in (1, 2, 3, 5, 10)),
        *(("AND", attributes, 0.0, 14) for attributes in (1, 2, 3, 5, 10)),
        *(("ranges", 1, float(width), 15) for width in range(4)),
    ]
    errors: dict[tuple[str, str, float], float] = {}
    random: dict[tuple[str, str, float], list[float]] = {}
    gathered = {name: gather(table, 2) for name, gather in _METHODS.items()}
    valid = all(large_enough(groups, 2) and _alike(table, groups) for groups in gathered.values())
    for name, groups in gathered.items():
        # What a line is about is drawn as often as the rule of chance asks for, rivals once.
        for place, members in enumerate([groups, *drawn(partial(shuffled, groups), DRAWS if name == _OURS else 1)]):
            for series, masks in _masks(name, table, members).items():
                for operation, attributes, width, _ in kinds:
                    x = width if operation == "ranges" else float(attributes)
                    error = _query_error(table, masks, ages, attributes, width, operation == "AND")
                    if place == 0:
                        errors[series, operation, x] = error
                    else:
                        random.setdefault((series, operation, x), []).append(error)
    ours, figures = _OURS, {"OR": 13, "AND": 14, "ranges": 15}
    for (series, operation, x), found in errors.items():
        yield number(
            f"error of {operation}, {series}, %", found, chance=random[series, operation, x], x=x,
            of="range" if operation == "ranges" else "attributes", shows=f"figure {figures[operation]}; equation 7",
            reading="a user of the generalized table meets a condition where some value of the cell does; sampled "
            "conditions; equation 7 divides by the inferred value",
        )  # fmt: skip

    def said(
        about: str, printed: str, figure: int, holds: Callable[[Mapping[tuple[str, str, float], float]], bool | None],
        found: Callable[[Mapping[tuple[str, str, float], float]], str], rival: tuple[str, str, float] | None = None,
    ) -> Finding:  # fmt: skip
        draws = [{key: random[key][place] if key[0] == ours else value for key, value in errors.items()}
                 for place in range(DRAWS)]  # fmt: skip
        middle = {key: float(np.median(random[key])) if key[0] == ours else value for key, value in errors.items()}
        # To be better than a rival that is no better than groups at random is no merit.
        blind = rival is not None and errors[rival] >= 0.9 * np.median(random[rival])
        by_chance = [holds(errors if blind else draw) for draw in draws]
        told = "the rival errs as much as groups at random" if blind else how_often(by_chance)
        return statement(
            about, printed, found(errors), holds=holds(errors), chance=f"{found(middle)}; {told}",
            by_chance=by_chance, valid=valid, shows=f"figure {figure}",
            reading=f"{_OUT_OF_TEXT}; k-Member shows ranges there: with sets, what it gathers alone is compared; by "
            "chance: the median of the draws, and in how many it holds",
        )  # fmt: skip

    yield said(
        "OR of k-Likeness", "falls with the number of attributes", 13,
        lambda of: of[ours, "OR", 10] < of[ours, "OR", 1], lambda of: _span(of, ours, "OR", 1, 10),
    )  # fmt: skip
    yield said(
        "OR of k-Likeness, size", "below 4%", 13,
        lambda of: max(of[ours, "OR", x] for x in (1, 2, 3, 5, 10)) < 4, lambda of: _span(of, ours, "OR", 1, 10),
    )  # fmt: skip
    yield said(
        "AND of k-Likeness", "rises with the number of attributes", 14,
        lambda of: of[ours, "AND", 1] < of[ours, "AND", 5], lambda of: _span(of, ours, "AND", 1, 10),
    )  # fmt: skip
    yield said(
        "ranges of k-Likeness", "below 1% beyond a range of 1", 15,
        lambda of: in_part(of[ours, "ranges", 2] < 1, of[ours, "ranges", 3] < 1),
        lambda of: f"{of[ours, 'ranges', 2]:.2f}% at 2, {of[ours, 'ranges', 3]:.2f}% at 3",
    )  # fmt: skip
    for operation, xs, figure in (
        ("OR", (1, 2, 3, 5, 10), 13),
        ("AND", (1, 2, 3, 5, 10), 14),
        ("ranges", range(4), 15),
    ):
        for rival in ("k-Member", "k-Member with sets", "Mondrian", "k-Likeness, DGH(b)"):
            yield said(
                f"{operation}, k-Likeness against {rival}",
                "k-Likeness with sets errs less",
                figure,
                partial(_errs_less, ours=ours, rival=rival, operation=operation, xs=xs),
                partial(_against, ours=ours, rival=rival, operation=operation, x=xs[0]),
                (rival, operation, float(xs[0])),
            )


def _errs_less(
    of: Mapping[tuple[str, str, float], float], *, ours: str, rival: str, operation: str, xs: Iterable[float]
) -> bool | None:
    return in_part(*(of[ours, operation, x] < of[rival, operation, x] for x in xs))


def _span(of: Mapping[tuple[str, str, float], float], series: str, operation: str, first: int, last: int) -> str:
    return f"{of[series, operation, first]:.1f}% to {of[series, operation, last]:.1f}%"


def _against(of: Mapping[tuple[str, str, float], float], *, ours: str, rival: str, operation: str, x: float) -> str:
    return f"{of[ours, operation, x]:.2f} against {of[rival, operation, x]:.2f}% at {x:g}"


def _masks(name: str, table: NDArray[np.float64], groups: NDArray[np.integer]) -> dict[str, NDArray[np.uint64]]:
    """What is shown of every user: sets and DGH(b) of k-Likeness, tight ranges of its rivals, of k-Member also sets."""
    domain = domain_of(table)
    low, high = class_ranges(table, groups)
    if name != "k-Likeness":
        shown = {name: masks_of_ranges(low[groups], high[groups], domain)}
        if name == "k-Member":
            shown[f"{name} with sets"] = masks_of_sets(table, groups, domain)
        return shown
    wide_low, wide_high = macros.ranges(table, groups, _HIERARCHIES["DGH(b)"])
    return {
        name: masks_of_sets(table, groups, domain),
        f"{name}, DGH(b)": masks_of_ranges(wide_low[groups], wide_high[groups], domain),
    }


def _query_error(
    table: NDArray[np.float64], shown: NDArray[np.uint64], ages: NDArray[np.float64], attributes: int, width: float,
    conjunction: bool,
) -> float:  # fmt: skip
    domain = domain_of(table)
    truth = masks_of_ranges(table, table, domain)
    averages = query_errors(
        truth, shown, ages, domain, attributes=attributes, width=width, conjunction=conjunction, queries=_ASKED
    )[1]
    return 100 * float(np.nanmean(averages))


def speed(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2.3, figure 16: the time of the three methods, by k, and what they look at."""
    _, table = data.most_rated(_TOP)
    several = [k for k in _K if k > 1]
    seconds: dict[tuple[str, int], float] = {}
    looks: dict[str, list[int]] = {name: [] for name in _METHODS}
    leftovers: dict[str, list[float]] = {name: [] for name in _METHODS}
    gathers = dict.fromkeys(_METHODS, True)
    for name, gather in _METHODS.items():
        gather(table, 2)  # compiled, or read from the cache
        for k in _K:
            seconds[name, k] = min(_seconds(gather, table, k) for _ in range(5))
            yield number(f"seconds, {name}", seconds[name, k], x=k, shows="figure 16", timed=True)
        for k in several:
            with counted() as looked:
                groups = gather(table, k)
            looks[name].append(looked.at)
            leftovers[name].append(looked.at_leftovers / looked.at if looked.at else 0.0)
            gathers[name] &= large_enough(groups, k) and _alike(table, groups)
            yield number(f"numbers looked at, {name}", looked.at, x=k, shows="figure 16", reading=_COUNTED)
    for place, k in enumerate(several):
        yield number(
            "numbers looked at, k-Member / k-Likeness", looks["k-Member"][place] / max(looks[_OURS][place], 1), x=k,
            shows="figure 16", reading=_COUNTED,
        )  # fmt: skip
        yield number(
            "seconds, k-Member / k-Likeness", seconds["k-Member", k] / seconds[_OURS, k], x=k, shows="figure 16",
            timed=True,
        )  # fmt: skip
    yield from _quick(looks, gathers)
    share, rival = (100 * float(np.mean(leftovers[name])) for name in (_OURS, "k-Member"))
    yield number(
        "share of k-Likeness for who is left over, %", share, 69.23, chance=rival, valid=gathers[_OURS],
        shows="69% of the time in LikenessEC", reading=f"{_COUNTED}; mean over k from 2; by chance: that of k-Member",
    )  # fmt: skip


_COUNTED = "counted by the kernels themselves: each number of a record as often as it is looked at"


def _quick(looks: Mapping[str, list[int]], gathers: Mapping[str, bool]) -> Iterator[Finding]:
    """What the text says of figure 16. By chance: the counts change places among the methods and all k."""
    names, table = list(looks), np.array(list(looks.values()))

    def mixed(seed: int) -> dict[str, list[int]]:
        order = np.random.default_rng(seed).permutation(table.size)
        return dict(zip(names, table.reshape(-1)[order].reshape(table.shape).tolist(), strict=True))

    draws = drawn(mixed)

    def said(
        about: str, printed: str, found: str, holds: Callable[[Mapping[str, list[int]]], bool | None],
        of: tuple[str, ...],
    ) -> Finding:  # fmt: skip
        by_chance = [holds(draw) for draw in draws]
        # Who looks at nothing has not been counted.
        counts = all(min(looks[name]) > 0 and gathers[name] for name in of)
        return statement(
            about, printed, found, holds=holds(looks), chance=how_often(by_chance), by_chance=by_chance, valid=counts,
            shows="figure 16",
            reading=f"{_COUNTED}; kgather's kernels leave out what cannot change the classes. By chance: the counts "
            "change places among the methods and all k. Nothing holds of a method whose classes are as any",
        )  # fmt: skip

    def span(name: str) -> str:
        return f"{looks[name][0]:,} to {looks[name][-1]:,} numbers"

    def times(of: Mapping[str, list[int]]) -> list[float]:
        return [theirs / max(ours, 1) for ours, theirs in zip(of[_OURS], of["k-Member"], strict=True)]

    def in_all(of: Mapping[str, list[int]]) -> float:
        return sum(of["k-Member"]) / max(sum(of[_OURS]), 1)

    least, most = times(looks)[0], times(looks)[-1]
    yield said(
        "k-Likeness against k-Member", "more than 3 times as fast",
        f"{in_all(looks):.1f} times in all, {least:.1f} at k = 2, {most:.1f} at 20",
        lambda of: True if in_all(of) > 3 else None if in_all(of) > 2 else False, (_OURS, "k-Member"),
    )  # fmt: skip
    for name in (_OURS, "Mondrian"):
        yield said(
            f"time of {name} by k", "falls", span(name),
            partial(_moves, name=name, by=-1), (name,),
        )  # fmt: skip
    yield said(
        "time of k-Member by k", "rises", span("k-Member"), partial(_moves, name="k-Member", by=1), ("k-Member",)
    )
    yield said(
        "Mondrian against the others", "the fastest", f"{span('Mondrian')}; k-Likeness {span(_OURS)}",
        lambda of: in_part(
            *(one < min(others) for one, *others in zip(of["Mondrian"], of[_OURS], of["k-Member"], strict=True))
        ), tuple(names),
    )  # fmt: skip


def _moves(of: Mapping[str, list[int]], *, name: str, by: int) -> bool:
    """Whether the counts of a method rise (by: 1) or fall (by: -1) over all k."""
    return rises([by * count for count in of[name]])


def _alike(table: NDArray[np.float64], groups: NDArray[np.integer]) -> bool:
    """Whether classes lose a tenth less than classes of the same sizes at random: to be better than a method that
    gathers nothing is no merit, nor is to be quick at it.
    """
    lost, *at_random = (
        information_loss(*class_ranges(table, one), one, HIGH) for one in (groups, *drawn(partial(shuffled, groups), 3))
    )
    return bool(lost < 0.9 * min(at_random))


def _seconds(gather: Callable[..., NDArray[np.int32]], table: NDArray[np.float64], k: int) -> float:
    start = time.perf_counter()
    gather(table, k)
    return time.perf_counter() - start
