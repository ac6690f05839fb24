"""Hierarchies: read as they are written, and refused where they are false."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather._recoding.hierarchies import as_set, by_frequency, flat, lines, masked, members, prefixes, read, walked


def test_a_tree_by_hand() -> None:
    tree = read("place", [["Rome", "Italy", "Europe"], ["Delhi", "India", "Asia"], ["Milan", "Italy", "Europe"]])
    assert tree.leaves == ["Delhi", "Milan", "Rome"]  # a walk along Asia, then Europe
    named = [[tree.labels[node] for node in level] for level in tree.nodes]
    assert named == [["Delhi", "Milan", "Rome"], ["India", "Italy", "Italy"], ["Asia", "Europe", "Europe"], ["*"] * 3]
    assert tree.below[tree.nodes[1]].tolist() == [1, 2, 2]


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_files_as_others_write_them(tmp_path: Path, separator: str) -> None:
    file = tmp_path / "h.csv"
    file.write_text(
        "".join(separator.join(line) + "\n" for line in (("a", "x", "*"), ("b", "x", "*"))), encoding="utf-8-sig"
    )
    assert read("c", str(file)).leaves == ["a", "b"]


def test_yaml_and_mappings_are_trees(tmp_path: Path) -> None:
    file = tmp_path / "h.yml"
    file.write_text("Europe: [Greece, Italy]\nAsia:\n  East: [Japan]\n  India:\n", encoding="utf-8")
    tree = read("c", str(file))
    assert sorted(tree.leaves) == ["Greece", "India", "Italy", "Japan"]
    assert read("c", {"Europe": ["Greece", "Italy"], "Asia": {"East": ["Japan"], "India": None}}).leaves == tree.leaves


def test_one_text_may_name_ever_wider_labels() -> None:
    # Branches of unlike depth repeat their last label.
    tree = read("c", {"Europe": [{"Balkan": ["Greece"]}, "Italy"], "Asia": ["Japan"]})
    assert labels_of(tree, "Italy") == ["Italy", "Europe", "Europe", "*"]
    assert labels_of(read("c", [["*", "*"], ["a", "*"]]), "a") == ["a", "*"]
    assert labels_of(read("c", [["15", "(10, 20)"], ["20", "[20-30)"]]), "20") == ["20", "[20-30)", "*"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([["30", "20-29"]], "30 does not lie in its label '20-29'"),
        ([["30", "[20, 30)"]], "does not lie"),
        ([["30", "[20, 30["]], "does not lie"),
        ([["30", "<30"]], "does not lie"),
        ([["29", ">= 30"]], "does not lie"),
        ([["59", "60+"]], "does not lie"),
        ([["-5", "-4 - 0"]], "does not lie"),
        ([["10", "[0-9]"]], "does not lie"),
        ([["10", "(10-20]"]], "does not lie"),
        ([["10", "]10, 20]"]], "does not lie"),
        ([["20", "(10, 20)"]], "does not lie"),
        ([["02139", "022**"]], "does not lie"),
        ([["02139", "03*"]], "does not lie"),
        ([["021391", "03***"]], "does not lie"),
        ([["02", "021**"]], "does not lie"),
        ([["A12", "B**"]], "does not lie"),
        ([["SW1A 1AA", "SW2*"]], "does not lie"),
        ([["ABC", "C**"]], "does not lie"),
        ([["39", "\u2265 40"]], "does not lie"),
        ([["30", "\u2264 29"]], "does not lie"),
        ([["1500", "< 1,000"]], "does not lie"),
        ([["1,500", "1,000-1,499"]], "does not lie"),
        ([["2020-03-01", "[2020-02-01, 2020-03-01)"]], "does not lie"),
        ([["2020-02-01", "(2020-02-01, 2020-03-01]"]], "does not lie"),
        ([["a", "{b, c}"]], "does not lie"),
        ([["2024-05-01", "2024-01-01 - 2024-03-31"]], "does not lie"),
        ([["a", "x"], ["a", "y"]], "line 2: the value 'a' occurs twice"),
        ([["a", "x", "p"], ["b", "x", "q"]], "lies in two labels"),
        ([["m", "f"], ["f", "m"]], "is a value, too"),
        ([["m", "f"], ["f", "f"]], "is a value, too"),
        ([["23", "20"], ["20", "20"]], "is a value, too"),
        ([["m", "x", "y"], ["f", "y", "z"]], "the label 'y' stands for other values on another level"),
        ([], "is empty"),
        ("nowhere.csv", "cannot be read"),
    ],
)
def test_what_is_false_is_refused(lines: Any, told: str) -> None:
    with pytest.raises(InputError, match=told.replace("(", r"\(").replace("[", r"\[").replace("+", r"\+")):
        read("age", lines)


@pytest.mark.parametrize(
    "line",
    [["30", "30-39"], ["30", "[20, 30]"], ["30", "[30, 40)"], ["30", "<=30"], ["30", "30+"], ["30", ">29"],
     ["-5", "-5-0"], ["30", "2020-01-01"], ["30", "x-y"], ["x", "20-29"], ["1.5", "1 to 2"],
     ["02139", "021**"], ["02139", "02*"], ["021391", "021**"], ["021", "021**"], ["A12", "A**"], ["SW1A 1AA", "SW1*"],
     ["Norway", "Other*"], ["AB", "C*"], ["40", "\u2265 40"], ["999", "< 1,000"], ["1,500", "1,000-1,999"],
     ["a", "{a, b}"], ["2024-02-01", "[2024-01-01, 2024-03-31]"], ["2020-02-29", "[2020-02-01, 2020-03-01)"]],
)  # fmt: skip
def test_what_is_true_or_no_range_is_taken(line: list[str]) -> None:
    assert read("age", [line]).leaves == [line[0]]


def test_prefixes_and_flat() -> None:
    tree = prefixes(["021", "0220", "9"])
    path = [tree.labels[level[tree.leaves.index("0220")]] for level in tree.nodes]
    assert path == ["0220", "022*", "02**", "0***", "*"]
    assert [tree.labels[level[tree.leaves.index("9")]] for level in tree.nodes][:2] == ["9", "9"]
    assert [prefixes(["", "ab"]).labels[node] for node in prefixes(["", "ab"]).nodes[-1]] == ["*", "*"]
    assert flat(["a"]).labels == ["a", "*"]


def labels_of(tree: Any, leaf: str) -> list[str]:
    return [tree.labels[level[tree.leaves.index(leaf)]] for level in tree.nodes]


def test_masks_hide_ever_more() -> None:
    tree = masked(["AB-12", "AC-12", "X"], ["#*-##", "#", "*"])
    assert labels_of(tree, "AB-12") == ["AB-12", "A*-12", "A****", "*****", "*"]
    assert labels_of(tree, "AC-12")[1:] == labels_of(tree, "AB-12")[1:]
    # Where a text ends is hidden by a star, too, and else told.
    assert labels_of(tree, "X") == ["X", "X*", "X****", "*****", "*"]
    for level in tree.nodes:  # each node is one interval of the walk
        assert np.count_nonzero(np.diff(level)) + 1 == len(np.unique(level))


def test_groups_by_frequency_by_hand() -> None:
    tree = by_frequency(["a", "b", "c", "d", "e"], [1, 1, 9, 2, 30], 3)
    # From the rarest: a, b and d have 4 rows; c and e stand alone. Then neighbours are joined.
    assert tree.leaves == ["a", "b", "d", "c", "e"]
    assert labels_of(tree, "d") == ["d", "{a, b, d}", "{a, b, c, d}", "{a, b, c, d, e}", "*"]
    assert labels_of(tree, "e") == ["e", "e", "e", "{a, b, c, d, e}", "*"]
    assert labels_of(by_frequency(["a", "b"], [1, 1], 5), "a") == ["a", "{a, b}", "*"]


@given(st.lists(st.tuples(st.text(max_size=4), st.integers(1, 9)), min_size=1, max_size=60, unique_by=lambda x: x[0]),
       st.integers(1, 20))  # fmt: skip
def test_found_groups_have_k_rows_and_hold_their_values(counted: list[tuple[str, int]], k: int) -> None:
    often = dict(counted)
    tree = by_frequency(list(often), list(often.values()), k)
    assert sorted(tree.leaves) == sorted(often)
    for level in tree.nodes[1:]:
        assert np.count_nonzero(np.diff(level)) + 1 == len(np.unique(level))
        for node in np.unique(level):
            inside = [leaf for leaf, of in zip(tree.leaves, level, strict=True) if of == node]
            assert sum(often[leaf] for leaf in inside) >= min(k, sum(often.values()))
            if len(inside) > 1 and tree.labels[node] != "*":
                assert members(tree.labels[node]) == set(inside)


@given(st.lists(st.text(max_size=6), min_size=1, unique=True))
def test_a_set_says_its_values(values: list[str]) -> None:
    assert members(as_set(values)) == set(values)


def test_an_ordered_category_may_have_a_hierarchy() -> None:
    given_lines = [["low", "below"], ["middle", "below"], ["high", "above"]]
    assert read("c", given_lines, ["low", "middle", "high"]).leaves == ["low", "middle", "high"]
    with pytest.raises(InputError, match="do not follow each other"):
        read("c", given_lines, ["low", "high", "middle"])
    with pytest.raises(InputError, match="do not have the same values"):
        read("c", given_lines, ["low", "high"])


def test_values_are_numbered_along_the_tree() -> None:
    tree = read("place", [["Rome", "Italy", "Europe"], ["Delhi", "India", "Asia"], ["Milan", "Italy", "Europe"]])
    numbered, nodes = walked("place", tree, [None, "Delhi", "Milan", "Rome"])
    assert numbered.tolist() == [3, 0, 1, 2]
    assert [len(np.unique(level)) for level in nodes] == [4, 3, 3, 1]
    with pytest.raises(InputError, match="1 values of column 'place'"):
        walked("place", tree, ["Paris", "Rome"])
    assert ["Rome", "Italy", "Europe", "*"] in lines("place", [["Rome", "Italy", "Europe"], ["Delhi", "India", "Asia"]])
