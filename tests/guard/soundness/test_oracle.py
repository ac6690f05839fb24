"""The oracle is tested, too: it condemns guards that do not keep the guarantee, and passes what keeps it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import BITS, Oracle, decoded, powers

K = 5
Table = dict[int, tuple[int, int]]
"""user -> (a, b)"""
Condition = Callable[[tuple[int, int]], bool]


def table(n: int = 40, seed: int = 3) -> Table:
    random = np.random.default_rng(seed)
    return {user: (int(random.integers(1, 4)), int(random.integers(1, 4))) for user in range(n)}


class Threshold:
    """Answers exactly whatever covers k users."""

    def __init__(self, k: int) -> None:
        self.k = k

    def sum(self, rows: Table, values: Sequence[float], condition: Condition) -> float | None:
        chosen = [user for user, (a, b) in rows.items() if condition((a, b))]
        return sum(values[user] for user in chosen) if len(chosen) >= self.k else None

    def grouped(self, rows: Table, values: Sequence[float], key: int) -> dict[int, float]:
        groups = {pair[key] for pair in rows.values()}
        sums = {group: self.sum(rows, values, lambda pair, g=group: pair[key] == g) for group in groups}
        return {group: total for group, total in sums.items() if total is not None}


class Regrouping:
    """Keeps groups of k, but makes them anew of the rows of the day."""

    def __init__(self, k: int) -> None:
        self.k = k

    def sum(self, rows: Table, values: Sequence[float], condition: Condition) -> float | None:
        users = sorted(rows, key=lambda user: (rows[user], user))
        size = len(users) // self.k
        groups = [users[at * self.k : (at + 1) * self.k if at < size - 1 else None] for at in range(size)]
        chosen = [g for g in groups if 2 * sum(condition(rows[user]) for user in g) >= len(g)]
        return sum(values[user] for group in chosen for user in group) if chosen else None


def hear(oracle: Oracle, n: int, ask: Callable[[Sequence[float]], float | None]) -> None:
    """Ask the same of every column of powers, and tell the oracle."""
    sums = [ask(values.tolist()) for values in powers(n)]
    if sums[0] is not None:
        oracle.hear("value", decoded(sums, n))


def oracle(n: int) -> Oracle:
    return Oracle(K, {"value": range(n)})


@given(st.integers(1, 100), st.data())
def test_weights_are_read_out_of_sums(n: int, data: st.DataObject) -> None:
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=float)
    assert (decoded([float(values @ chosen) for values in powers(n)], n) == chosen).all()
    with pytest.raises(ValueError, match="taken once"):
        decoded([0.5] * -(-n // BITS), n)


def test_groups_by_hand() -> None:
    made = Oracle(2, {"value": [1, 1, 2, 3]})
    made.hear("value", [1, 1, 1, 0])
    assert made.groups("value") == {(1.0,): [0, 1, 2], (0.0,): [3]}
    assert made.singled_out("value") == [[3]]
    assert made.singled_out("value", untold_too=False) == []
    made.hear("value", [1, 1, 2, 0])
    # Two cells of one user are of one user.
    assert made.singled_out("value", untold_too=False) == [[0, 1], [2]]
    with pytest.raises(AssertionError, match="told apart"):
        made.check(untold_too=False)


def test_what_was_not_told_says_nothing() -> None:
    made = oracle(4)
    made.hear("value", None)
    assert made.told == {}


def test_a_join_that_repeats_a_value_is_condemned() -> None:
    made = Oracle(5, {"value": range(5)})
    made.hear("value", [1, 1, 1, 1, 1])
    made.check()
    made.hear("value", [1, 1, 1, 1, 2])
    assert made.singled_out("value") == [[0, 1, 2, 3], [4]]


def test_a_threshold_is_condemned() -> None:
    rows = table()
    rows[0] = (1, 1)
    rows |= {user: (2 if a == 1 and b == 1 else a, b) for user, (a, b) in rows.items() if user}
    made, guard = oracle(len(rows)), Threshold(K)
    for condition in (lambda pair: pair[0] == 1, lambda pair: pair[1] == 1, lambda pair: 1 in pair):
        hear(made, len(rows), lambda values, c=condition: guard.sum(rows, values, c))
    assert [0] in made.singled_out("value")


@given(st.integers(0, 200))
def test_a_threshold_is_condemned_whatever_the_data(seed: int) -> None:
    rows = table(seed=seed)
    made, guard = oracle(len(rows)), Threshold(K)
    for a_, b_ in ((a, b) for a in (1, 2, 3) for b in (1, 2, 3)):
        for condition in (
            lambda pair, x=a_: pair[0] == x,
            lambda pair, y=b_: pair[1] == y,
            lambda pair, x=a_, y=b_: pair[0] == x or pair[1] == y,
        ):
            hear(made, len(rows), lambda values, c=condition: guard.sum(rows, values, c))
    sizes = [sum(pair == cell for pair in rows.values()) for cell in set(rows.values())]
    assert bool(made.singled_out("value")) == (min(sizes) < K)


def test_leaving_out_small_groups_is_condemned() -> None:
    rows = {user: (1 if user < 20 else 2 if user < 37 else 3, 1) for user in range(40)}
    made, guard = oracle(len(rows)), Threshold(K)
    hear(made, 40, lambda values: guard.sum(rows, values, bool))
    made.check()
    for group in (1, 2):
        hear(made, 40, lambda values, g=group: guard.grouped(rows, values, 0).get(g))
    assert 3 not in guard.grouped(rows, [1.0] * 40, 0)
    assert made.singled_out("value") == [[37, 38, 39]]


@pytest.mark.parametrize("change", ["insert", "delete"])
def test_regrouping_changed_data_is_condemned(change: str) -> None:
    rows, guard = table(), Regrouping(K)
    today = {user: pair for user, pair in rows.items() if change == "delete" or user != 7}
    tomorrow = {user: pair for user, pair in rows.items() if change == "insert" or user != 7}
    made = oracle(len(rows))
    for x in (1, 2, 3):
        hear(made, len(rows), lambda values, x=x: guard.sum(today, values, lambda pair: pair[0] == x))
    made.check(untold_too=False)
    for x in (1, 2, 3):
        hear(made, len(rows), lambda values, x=x: guard.sum(tomorrow, values, lambda pair: pair[0] == x))
    assert [7] in made.singled_out("value") or made.singled_out("value", untold_too=False)


def test_one_fact_reached_through_rows_and_through_people_is_condemned() -> None:
    """Rows of a long table and people of a wide one show the same ratings of film 1, each cut into parts of k people by
    itself; where the two cut differently, one person's rating is what is left."""
    n = 12
    made = oracle(n)
    # The long table's atoms of the rows of film 1: the first seven people's, and the others'.
    rows = [list(range(7)), list(range(7, n))]
    # The wide table's atoms of people, as another condition cut them: the first six, and the others.
    people = [list(range(6)), list(range(6, n))]
    for atoms in (rows, people):
        assert min(map(len, atoms)) >= K
        alone = oracle(n)
        for atom in atoms:
            for ear in (made, alone):
                ear.hear("value", [float(user in atom) for user in range(n)])
        # Each by itself keeps the guarantee.
        alone.check()
    assert made.singled_out("value") == [[6]]
    with pytest.raises(AssertionError, match="told apart"):
        made.check()


@given(st.lists(st.lists(st.booleans(), min_size=8, max_size=8), max_size=20))
def test_sums_of_whole_groups_pass(answers: list[list[bool]]) -> None:
    made = oracle(40)
    for chosen in answers:
        weights: Any = np.repeat(np.array(chosen, dtype=float), 5)
        made.hear("value", weights)
    made.check()
