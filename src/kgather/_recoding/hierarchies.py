"""Hierarchies of categories: read from files as ARX writes them, from lines or from a nested mapping, and checked; made
of the beginnings of texts or of masks; or found by how often values occur.
"""

import csv
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError

EVERYTHING = "*"
_TO = " to "
_SET = 16  # values of a found group, beyond which groups are not joined to wider ones
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_RANGE = re.compile(
    rf"(?P<open>[\[\](])?\s*(?P<low>{_NUMBER})\s*(?P<sign>,|-|\u2013|to|\.\.)\s*(?P<high>{_NUMBER})\s*(?P<close>[\[\])])?"
)
_END = re.compile(rf"(?P<sign><=|<|>=|>|\u2264|\u2265)\s*(?P<end>{_NUMBER})|(?P<from>{_NUMBER})\s*\+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAYS = re.compile(
    rf"(?P<open>[\[\](])?\s*(?P<low>{_DAY.pattern})\s*(?:,|-|\u2013|to|\.\.|/)\s*(?P<high>{_DAY.pattern})\s*"
    r"(?P<close>[\[\])])?"
)
_STARRED = re.compile(r"[\d*]*\*[\d*]*")
_BEGINNING = re.compile(r"(?P<shown>[^\W_][\w -]*?)(?P<hidden>\*+)")


class Hierarchy:
    """A tree over the values of a column.

    leaves: the values in the order of a walk through the tree. labels[node]: the text of each node. nodes int32[levels,
    leaves]: the node of each leaf, the leaf itself first, and one node on the last level. below[node]: its leaves.
    """

    def __init__(self, leaves: Sequence[str], paths: Mapping[str, Sequence[str]]) -> None:
        self.leaves = list(leaves)
        depth = max(len(path) for path in paths.values())
        self.labels: list[str] = []
        self.nodes: NDArray[np.int32] = np.zeros((depth, len(self.leaves)), dtype=np.int32)
        for level in range(depth):
            known: dict[tuple[str, ...], int] = {}
            for place, leaf in enumerate(self.leaves):
                rest = tuple(paths[leaf][level:])
                if rest not in known:
                    known[rest] = len(self.labels)
                    self.labels.append(rest[0])
                self.nodes[level, place] = known[rest]
        assert len(np.unique(self.nodes[-1])) == 1, "a tree has one root"
        self.below = np.bincount(self.nodes.ravel(), minlength=len(self.labels))


def read(
    column: str, given: str | Sequence[Sequence[str]] | Mapping[str, Any], order: Sequence[str] | None = None
) -> Hierarchy:
    """The hierarchy of a column from a file's name, from lines of labels or from a nested mapping.

    order: the values as they follow each other, of an ordered category; leaves are walked along in it.
    Raises InputError where a file cannot be read, a value occurs twice, a label has two parents, a value does not lie
    in what its label says (a range, a set, the digits that it shows, another value), a label stands for other values on
    another level, or a label is no part of the order.
    """
    where = f"the hierarchy of '{column}'"
    if isinstance(given, str):
        lines = _from_file(where, given)
    elif isinstance(given, Mapping):
        lines = [[*reversed(path)] for path in _from_mapping(given, ())]
    else:
        lines = [list(map(str, line)) for line in given]
    lines = [line for line in lines if line]
    if not lines:
        msg = f"{where} is empty."
        raise InputError(msg)
    depth = max(map(len, lines))
    paths: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 1):
        path = (*line, *[line[-1]] * (depth - len(line)))
        if path[0] in paths and paths[path[0]] != path:
            msg = f"{where}, line {number}: the value '{path[0]}' occurs twice, with other labels."
            raise InputError(msg)
        paths[path[0]] = path
        for label in path[1:]:
            if _lies_outside(path[0], label):
                msg = (
                    f"{where}, line {number}: {path[0]} does not lie in its label '{label}'. The label would be false "
                    "for whoever has this value: correct the hierarchy."
                )
                raise InputError(msg)
    if len({path[-1] for path in paths.values()}) > 1:
        paths = {leaf: (*path, EVERYTHING) for leaf, path in paths.items()}
    _check_parents(where, paths)
    _check_texts(where, paths)
    if order is None:
        return Hierarchy(sorted(paths, key=lambda leaf: paths[leaf][::-1]), paths)
    if set(order) != set(paths) or len(order) != len(paths):
        msg = f"the order of '{column}' and {where} do not have the same values. Add to both what only one has."
        raise InputError(msg)
    tree = Hierarchy(order, paths)
    for level in tree.nodes:
        if np.count_nonzero(np.diff(level)) + 1 != len(np.unique(level)):
            msg = f"{where} has a label whose values do not follow each other in the order. Correct one of the two."
            raise InputError(msg)
    return tree


def walked(column: str, tree: Hierarchy, values: Sequence[str | None]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The values of a dictionary numbered in the order of a walk through the tree, int64[v], and the nodes of these
    numbers, int32[levels, v], as in `Hierarchy`. Null comes last, right below the top.

    Raises InputError where values are not in the tree; no message quotes one.
    """
    place = {leaf: at for at, leaf in enumerate(tree.leaves)}
    refuse_unknown(column, values, place)
    leaf = np.array([len(place) if value is None else place[value] for value in values], dtype=np.int64)
    nodes = tree.nodes
    if None in values:
        own = len(tree.labels) + np.arange(len(nodes), dtype=np.int32)[:, np.newaxis]
        own[-1, 0] = nodes[-1, 0]
        nodes = np.concatenate([nodes, own], axis=1)
    order = np.argsort(leaf, kind="stable")
    numbered = np.empty(len(values), dtype=np.int64)
    numbered[order] = np.arange(len(values))
    return numbered, np.ascontiguousarray(nodes[:, leaf[order]])


def refuse_unknown(column: str, values: Sequence[str | None], known: Collection[str]) -> None:
    """Refuse values that a hierarchy does not have, without quoting one."""
    unknown = sum(value is not None and value not in known for value in values)
    if unknown:
        msg = f"{unknown} values of column '{column}' are not in its hierarchy. Add a line for each."
        raise InputError(msg)


def lines(column: str, given: str | Sequence[Sequence[str]] | Mapping[str, Any]) -> list[list[str]]:
    """A hierarchy as lines: each value and its ever wider labels, all of the same length. Raises as `read` does."""
    tree = read(column, given)
    return [[tree.labels[node] for node in path] for path in tree.nodes.T]


def as_range(first: str, last: str) -> str:
    """How values of an ordered category from the first to the last are shown."""
    return f"{first}{_TO}{last}"


def ranges(order: Sequence[str]) -> list[str]:
    """The texts of ranges of an ordered category that may be taken for another one or a value: where one has ` to `."""
    odd = {at for at, value in enumerate(order) if _TO.strip() in value}
    if not odd:
        return []
    return [as_range(order[a], order[b]) for a in range(len(order)) for b in range(a + 1, len(order))]


def flat(leaves: Sequence[str]) -> Hierarchy:
    """The hierarchy of a column that has none: a value or nothing."""
    return Hierarchy(leaves, {leaf: (leaf, EVERYTHING) for leaf in leaves})


def prefixes(leaves: Sequence[str]) -> Hierarchy:
    """The hierarchy of texts by their beginnings, one character less on each level. A star is any character or, at the
    end, none: 021** is true of 021, too."""
    length = max((len(leaf) for leaf in leaves), default=0)
    paths = {
        leaf: (
            *(
                leaf if kept > len(leaf) or kept == length else leaf[:kept] + EVERYTHING * (length - kept)
                for kept in range(length, 0, -1)
            ),
            EVERYTHING,
        )
        for leaf in leaves
    }
    paths = {leaf: path if len(path) > 1 else (leaf, *path) for leaf, path in paths.items()}
    return Hierarchy(sorted(leaves), paths)


def masked(leaves: Sequence[str], masks: Sequence[str]) -> Hierarchy:
    """The hierarchy of texts by masks, each of which hides more than the one before: the characters where it has a
    star, and those beyond its end. What is hidden is shown as a star, up to the longest text."""
    length = max(len(leaf) for leaf in leaves)

    def shown(leaf: str, mask: str) -> str:
        return "".join(
            leaf[at : at + 1] if at < len(mask) and mask[at] != EVERYTHING else EVERYTHING for at in range(length)
        )

    paths = {leaf: (leaf, *(shown(leaf, mask) for mask in masks), EVERYTHING) for leaf in leaves}
    return Hierarchy(sorted(leaves, key=lambda leaf: paths[leaf][::-1]), paths)


def by_frequency(leaves: Sequence[str], rows: Sequence[int], k: int) -> Hierarchy:
    """A hierarchy that is found: values that are about as frequent are put together, and every group has k rows.

    rows: how often each value occurs. Rare values are put together until they have k rows; then neighbours are joined
    two by two, up to groups of 16 values. A group is shown as the set of its values.
    """
    rare_first = sorted(zip(rows, leaves, strict=True))
    groups: list[list[str]] = []
    waiting: list[str] = []
    gathered = 0
    for times, leaf in rare_first:
        waiting.append(leaf)
        gathered += times
        if gathered >= k:
            groups.append(waiting)
            waiting, gathered = [], 0
    if waiting:  # too few for a group of their own
        groups.append([*(groups.pop() if groups else []), *waiting])
    levels = [groups]
    while len(groups) > 1:
        wider = [list(itertools.chain(*groups[at : at + 2])) for at in range(0, len(groups), 2)]
        if max(map(len, wider)) > _SET:
            break
        levels.append(wider)
        groups = wider
    paths: dict[str, list[str]] = {leaf: [leaf] for leaf in leaves}
    for level in levels:
        for group in level:
            label = group[0] if len(group) == 1 else as_set(group)
            for leaf in group:
                paths[leaf].append(label)
    walk = [leaf for _, leaf in rare_first]
    return Hierarchy(walk, {leaf: (*path, EVERYTHING) for leaf, path in paths.items()})


def as_set(values: Sequence[str]) -> str:
    """Some values as one cell, sorted; those that hold a comma, a brace or a quotation mark stand in quotes."""
    return "{" + ", ".join(sorted(map(_quoted, values))) + "}"


def _quoted(value: str) -> str:
    if value and not re.search(r'[,{}"\r\n]', value) and value == value.strip():
        return value
    return '"' + value.replace('"', '""') + '"'


def members(label: str) -> set[str] | None:
    """The values of a set as `as_set` and ARX write it; None where a label is no set."""
    if not (label.startswith("{") and label.endswith("}")):
        return None
    try:
        return set(next(csv.reader([label[1:-1]], skipinitialspace=True), []))
    except csv.Error:
        return None


def _from_file(where: str, name: str) -> list[list[str]]:
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{where} cannot be read from {name} ({type(error).__name__})."
        raise InputError(msg) from None
    if Path(name).suffix.lower() in (".yml", ".yaml"):
        import yaml

        try:
            tree = yaml.safe_load(text)
        except yaml.YAMLError:
            tree = None
        if not isinstance(tree, dict):
            msg = f"{where}: {name} holds no nested mapping of labels."
            raise InputError(msg)
        return [[*reversed(path)] for path in _from_mapping(tree, ())]
    first = text.partition("\n")[0]
    delimiter = max(";,\t|", key=first.count)
    return [[field.strip() for field in line] for line in csv.reader(text.splitlines(), delimiter=delimiter)]


def _from_mapping(tree: Any, above: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The paths of a nested mapping, from the root to the leaf."""
    if isinstance(tree, Mapping):
        return [path for label, rest in tree.items() for path in _from_mapping(rest, (*above, str(label)))]
    if isinstance(tree, list | tuple):
        return [path for each in tree for path in _from_mapping(each, above)]
    return [above if tree is None else (*above, str(tree))]


def _check_parents(where: str, paths: Mapping[str, Sequence[str]]) -> None:
    parents: dict[tuple[int, str], str] = {}
    for path in paths.values():
        for level in range(len(path) - 1):
            if parents.setdefault((level, path[level]), path[level + 1]) != path[level + 1]:
                msg = f"{where}: the label '{path[level]}' lies in two labels of the next level. Give it two names."
                raise InputError(msg)


def _check_texts(where: str, paths: Mapping[str, Sequence[str]]) -> None:
    """Refuse a text that is false of a value below it: that of another value, or one that stands for other values on
    another level. A reader sees texts only."""
    levels: dict[str, list[int]] = {}
    for level in range(max(map(len, paths.values()))):
        for text in {path[level] for path in paths.values()}:
            levels.setdefault(text, []).append(level)
    for leaf, path in paths.items():
        for level, label in enumerate(path):
            if label == EVERYTHING:
                continue
            if label != leaf and label in paths:
                msg = (
                    f"{where}: the label '{label}' is a value, too, and would be false for the others that it stands "
                    "for. Give it another name."
                )
                raise InputError(msg)
            if level and any(path[wider] != label for wider in levels[label] if wider > level):
                msg = f"{where}: the label '{label}' stands for other values on another level. Give it two names."
                raise InputError(msg)


def _lies_outside(leaf: str, label: str) -> bool:
    """Whether a label says of a leaf what is false: a set without it, other digits, a range that it does not lie in."""
    listed = members(label)
    if listed is not None:
        return leaf not in listed
    if _hides_others(leaf, label):
        return True
    if _DAY.fullmatch(leaf):
        days = _DAYS.fullmatch(label.strip())
        return days is not None and not _within(leaf, days["low"], days["high"], days["open"], days["close"])
    if not re.fullmatch(_NUMBER, leaf.strip()):
        return False
    value = _value(leaf)
    found = _RANGE.fullmatch(label.strip())
    brackets = 0 if found is None else (found["open"] is not None) + (found["close"] is not None)
    # A comma alone may be that of a number.
    if found and (brackets == 2 or (brackets == 0 and found["sign"] != ",")):
        return not _within(value, _value(found["low"]), _value(found["high"]), found["open"], found["close"])
    found = _END.fullmatch(label.strip())
    if found is None:
        return False
    if found["from"]:
        return value < _value(found["from"])
    end = _value(found["end"])
    return not {
        "<=": value <= end, "\u2264": value <= end, "<": value < end,
        ">=": value >= end, "\u2265": value >= end, ">": value > end,
    }[found["sign"]]  # fmt: skip


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _within(value: Any, low: Any, high: Any, before: str | None, after: str | None) -> bool:
    """Whether a value lies between two ends; before and after: the brackets, if there are any."""
    above = low < value if before in ("]", "(") else low <= value
    return bool(above and (value < high if after in ("[", ")") else value <= high))


def _hides_others(leaf: str, label: str) -> bool:
    """Whether a label with stars shows other characters than the leaf has. A star is any character or, at the end, any
    number of them."""
    if _STARRED.fullmatch(label) and leaf.isdigit():
        shown = label.rstrip(EVERYTHING)
        return len(shown) > len(leaf) or any(
            mark not in (EVERYTHING, own) for mark, own in zip(shown, leaf, strict=False)
        )
    found = _BEGINNING.fullmatch(label)
    if found is None:
        return False
    # A word with a star may be any label. This one is a mask: it is as long as the leaf, or has digits as the leaf has.
    as_long = len(label) == len(leaf) and (_has_digit(leaf) or len(found["hidden"]) > 1)
    if not as_long and not (_has_digit(label) and _has_digit(leaf)):
        return False
    return not leaf.startswith(found["shown"])


def _has_digit(text: str) -> bool:
    return any(each.isdigit() for each in text)
