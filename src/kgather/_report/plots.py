"""Plots as inline SVG, drawn by matplotlib and coloured by the page's style sheet, so that themes apply to them.

The same data give the same bytes with the same version of matplotlib: no dates, no random ids, no settings of the
user's, the font that matplotlib brings for the layout.
"""

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERIES = 8
"""So many series have a colour of their own; further ones differ by their marker."""

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_WIDTH = 440  # units of the drawing; a phone shows four fifths of them, so that text stays legible
_MARKERS = "osD^vPX*<>hp"
# Stand-ins that matplotlib draws with; each becomes a variable of the style sheet.
_NAMES = ("ink", "muted", "line", "paper", *(f"series-{place}" for place in range(1, SERIES + 1)))
_COLOURS = {name: f"#{0x010000 + place + 1:06x}" for place, name in enumerate(_NAMES)}
_BIN_LIMIT = 30
_SIDES = ((True, True), (False, False), (False, True), (True, False))
_PERSON, _GROUP = "the person, in the release", "the group, in the release"
_ORIGINAL, _GUESSING = "the person, in the original", "the person, by guessing"

Draw = Callable[["Axes"], None]


@dataclass(frozen=True)
class Interval:
    """A share with the interval around it; low and high may be the share itself."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AttackMarks:
    """One row of the plot of attacks: what is found in the release and in the original, and by chance."""

    label: str
    user: Interval | None
    group: Interval | None
    original: Interval | None
    chance: float | None


@dataclass(frozen=True)
class Point:
    """One point of a plot of methods; marked: nothing beats it."""

    method: str
    k: int
    x: float
    y: float
    marked: bool = False


def label_of(text: str, length: int = 62) -> str:
    """A label that fits into a plot, of text that is on one line."""
    return text if len(text) <= length else text[: length - 1] + "…"


def attacks(rows: Sequence[AttackMarks]) -> str:
    """Shares found by each attack, with intervals, in the release and in the original, beside chance."""

    def draw(axes: "Axes") -> None:
        marks = (
            (_ORIGINAL, "original", 0.18, "s", "series-2", False),
            (_GROUP, "group", 0.0, "D", "series-3", True),
            (_PERSON, "user", -0.18, "o", "series-1", True),
        )
        for label, field, offset, marker, colour, filled in marks:
            found = [(place - offset, getattr(row, field)) for place, row in enumerate(rows)]
            shown = [(place, interval) for place, interval in found if interval is not None]
            if shown:
                axes.errorbar(
                    [100 * interval.value for _, interval in shown],
                    [place for place, _ in shown],
                    xerr=[
                        [100 * max(interval.value - interval.low, 0) for _, interval in shown],
                        [100 * max(interval.high - interval.value, 0) for _, interval in shown],
                    ],
                    fmt=marker,
                    color=_COLOURS[colour],
                    markerfacecolor=_COLOURS[colour] if filled else _COLOURS["paper"],
                    markersize=6,
                    elinewidth=1.4,
                    label=label,
                )
        by_chance = [(place + 0.18, row.chance) for place, row in enumerate(rows) if row.chance is not None]
        if by_chance:
            axes.plot(
                [100 * chance for _, chance in by_chance],
                [place for place, _ in by_chance],
                "|",
                color=_COLOURS["ink"],
                markersize=12,
                markeredgewidth=1.6,
                label=_GUESSING,
            )
        for place, row in enumerate(rows):
            axes.text(0, place - 0.34, row.label, va="bottom", ha="left", color=_COLOURS["ink"])
        axes.set_xlim(-2, 102)
        axes.set_ylim(len(rows) - 0.55, -0.75)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xticks(range(0, 101, 20), [f"{tick}%" for tick in range(0, 101, 20)])
        axes.grid(axis="x")
        axes.set_xlabel("share of the people tried")
        _legend(axes, 2, (_PERSON, _GROUP, _GUESSING, _ORIGINAL))

    return _drawn(
        draw,
        "attacks",
        110 + 58 * len(rows),
        "What simulated attackers find",
        "Points with 95% intervals: how often each attack finds the person or the group in the release, and the "
        "person in the original data, beside guessing. The numbers are in the table below.",
    )


def binned(sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Groups by size as (smallest size, largest size, groups), in so few bins of equal width that bars can be told."""
    low, high = min(size for size, _ in sizes), max(size for size, _ in sizes)
    width = -(-(high - low + 1) // _BIN_LIMIT)
    bins: dict[int, int] = {}
    for size, groups in sizes:
        start = low + (size - low) // width * width
        bins[start] = bins.get(start, 0) + groups
    return [(start, min(start + width - 1, high), groups) for start, groups in sorted(bins.items())]


def group_sizes(
    sizes: Sequence[tuple[int, int]], k: int | None, words: tuple[str, str, str] = ("users", "group", "groups")
) -> str:
    """How many groups there are of each size, sizes as (size, groups), and where k is.

    words: what is counted, and what it is counted in, one and several of them.
    """
    people, group, groups_of = words

    def draw(axes: "Axes") -> None:
        bars = binned(sizes)
        width = max(high - low for low, high, _ in bars) + 1
        axes.bar(
            [low + (width - 1) / 2 for low, _, _ in bars],
            [groups for _, _, groups in bars],
            width=0.8 * width,
            color=_COLOURS["series-1"],
        )
        top = max(groups for _, _, groups in bars)
        axes.set_ylim(0, 1.18 * top)
        edges = [bars[0][0] - 0.5, bars[-1][0] + width - 0.5]
        if k is not None:
            edges[0] = min(edges[0], k - 0.5)
            axes.axvline(k - 0.5, color=_COLOURS["ink"], linewidth=1.4, linestyle=(0, (4, 3)))
            # To the right of the line, above the bars.
            axes.annotate(
                f"k = {k:,}", (k - 0.5, 1.06 * top), xytext=(5, 0), textcoords="offset points", color=_COLOURS["ink"]
            )
        margin = 0.3 * width
        axes.set_xlim(edges[0] - margin, edges[1] + margin)
        _whole_ticks(axes.xaxis)
        _whole_ticks(axes.yaxis)
        axes.grid(axis="y")
        axes.set_xlabel(f"{people} in the {group}")
        axes.set_ylabel(groups_of)

    return _drawn(
        draw,
        "group-sizes",
        260,
        f"{groups_of.capitalize()} by size",
        f"Bars: how many {groups_of} have how many {people}. No bar stands left of k where every {group} is large "
        "enough. "
        "The numbers are in the table below.",
    )


def by_method(
    points: Sequence[Point],
    series: Sequence[str],
    name: str,
    title: str,
    x_label: str,
    y_label: str,
    *,
    percent: bool,
) -> str:
    """One line for each method through its points in the order of k, each labelled with its k.

    series: the methods of all plots of a page, so that each has the same colour in all of them.
    """
    methods = list(dict.fromkeys(point.method for point in points))
    columns = 3 if max(map(len, methods)) <= 12 else 2

    def draw(axes: "Axes") -> None:
        from matplotlib.ticker import MaxNLocator

        for method in methods:
            place = series.index(method)
            line = sorted((point for point in points if point.method == method), key=lambda point: point.k)
            colour = _COLOURS[f"series-{place % SERIES + 1}"]
            axes.plot(
                [point.x for point in line],
                [point.y for point in line],
                marker=_MARKERS[place % len(_MARKERS)],
                markersize=6,
                linewidth=1.4,
                color=colour,
                # A label that begins with an underscore would be left out.
                label=f" {method}" if method.startswith("_") else method,
            )
        marked = [point for point in points if point.marked]
        if marked:
            axes.plot(
                [point.x for point in marked],
                [point.y for point in marked],
                "o",
                markersize=13,
                markerfacecolor="none",
                markeredgecolor=_COLOURS["ink"],
                markeredgewidth=1.3,
                label="not beaten",
            )
        if percent:
            for point in points:
                # Labels of different methods lie on different sides of their points.
                right, up = _SIDES[series.index(point.method) % len(_SIDES)]
                axes.annotate(
                    f"{point.k}",
                    (point.x, point.y),
                    xytext=(7 if right else -7, 7 if up else -7),
                    textcoords="offset points",
                    ha="left" if right else "right",
                    va="bottom" if up else "top",
                    fontsize=10,
                    color=_COLOURS["muted"],
                )
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}%")
            axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
        else:
            ks = sorted({int(point.x) for point in points})
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.set_xticks(ks, [f"{k:,}" for k in ks])
        axes.margins(x=0.1)
        axes.grid()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        _legend(axes, columns)

    return _drawn(
        draw,
        name,
        290 + 19 * -(-(len(methods) + 1) // columns),
        title,
        f"One line for each method: {y_label}, against {x_label}. The numbers are in the table.",
    )


def _whole_ticks(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _legend(axes: "Axes", columns: int, order: Sequence[str] = ()) -> None:
    figure = axes.get_figure(root=True)
    assert figure is not None
    handles, labels = axes.get_legend_handles_labels()
    if order:
        found = dict(zip(labels, handles, strict=True))
        labels = [label for label in order if label in found]
        handles = [found[label] for label in labels]
    figure.legend(
        handles, labels, loc="outside upper left", ncols=columns, frameon=False, borderaxespad=0.2,
        columnspacing=1.2, handletextpad=0.4,
    )  # fmt: skip


def _drawn(draw: Draw, name: str, height: int, title: str, description: str) -> str:
    with _drawing(name):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH / 72, height / 72), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(stream.getvalue(), name, title, description)


@contextmanager
def _drawing(name: str) -> Iterator[None]:
    """Settings of nobody but this module; nothing that matplotlib remarks on reaches the user."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it tells of its font cache on the first import
    try:
        import matplotlib as mpl

        # Missing glyphs matter for the layout only: the browser draws the text.
        with warnings.catch_warnings(action="ignore"), mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(_settings(name))
            yield
    finally:
        logger.setLevel(level)


def _settings(name: str) -> dict[Any, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,
        "text.usetex": False,
        "font.family": "DejaVu Sans",
        "font.size": 12,
        "text.color": _COLOURS["ink"],
        "axes.labelcolor": _COLOURS["ink"],
        "axes.edgecolor": _COLOURS["muted"],
        "axes.facecolor": "none",
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": _COLOURS["line"],
        "grid.linewidth": 0.8,
        "xtick.color": _COLOURS["muted"],
        "ytick.color": _COLOURS["muted"],
        "xtick.labelcolor": _COLOURS["ink"],
        "ytick.labelcolor": _COLOURS["ink"],
        "legend.labelcolor": _COLOURS["ink"],
        "legend.fontsize": 12,
        "axes.formatter.useoffset": False,
    }


def _inline(svg: str, name: str, title: str, description: str) -> str:
    """The drawing as an element of an HTML page: named, without ids of others', in the page's colours."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        element.tail = None
        _adapt(element, name)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update(
        {"viewBox": box, "role": "img", "aria-labelledby": f"{name}-title {name}-description", "class": "drawing"}
    )
    for place, (tag, told) in enumerate([("title", title), ("desc", description)]):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{'title' if not place else 'description'}"})
        element.text = told
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(element: ElementTree.Element, name: str) -> None:
    if element.text is not None and not element.text.strip():
        element.text = None
    for attribute, value in list(element.attrib.items()):
        if attribute == "id":
            element.set("id", f"{name}-{value}")
        elif attribute == f"{{{_XLINK}}}href":
            del element.attrib[attribute]
            element.set("href", value.replace("#", f"#{name}-", 1))
        else:
            element.set(attribute, _coloured(re.sub(r"url\(#", f"url(#{name}-", value)))


def _coloured(style: str) -> str:
    for name, colour in _COLOURS.items():
        style = style.replace(colour, f"var(--{name})")
    return style
