"""The page of a sweep: methods and sizes of group, risk against loss."""

from collections.abc import Mapping, Sequence
from typing import Any

from kgather._report import plots
from kgather._report.layout import Figure, Table, Verdict, filled
from kgather._report.text import finite, number, plain, setting, share

_MOST_INPUTS = 5
_SHARES = ("user_reidentification", "right_group_4", "right_group_8", "farthest", "exact_disclosure")
_ALIKE = 0.1  # losses compare where coverage differs by no more


def render_sweep(said: Mapping[str, Any]) -> str:
    """The page as one HTML file, from what sweep.json says. A pure function of plain data, as `render`."""
    rows = [row for row in said.get("rows") or [] if isinstance(row, Mapping)]
    measured = [row for row in rows if not row.get("refused")]
    refused = [
        [plain(row.get("method")), plain(row.get("varied") or "–"), number(row.get("k")), plain(row["refused"])]
        for row in rows
        if row.get("refused")
    ]
    held_out = finite(said.get("share"))
    return filled(
        "sweep.html.j2",
        {
            "version": plain(said.get("kgather_version", "of an unknown version")),
            "seed": setting(said.get("seed")),
            "inputs": _inputs(said),
            "published": "a part" if held_out is None else f"{100 * (1 - held_out):.4g}%",
            "recommendation": recommendation(measured),
            "rule": plain(said.get("rule") or ""),
            "risk_plots": risk_figures(measured),
            "loss_plots": loss_figures(measured),
            "group_plots": group_figures(measured),
            "measured": measured_table(measured, "Methods and sizes of group"),
            "refused": Table(
                "Refused", [("Method", "text"), ("Varied", "text"), ("k", "number"), ("Reason", "text")], refused
            ) if refused else None,
            "settings": Table(
                "What was set beside method and k",
                [("Parameter", "code"), ("Value", "code")],
                [[plain(name), setting(value)] for name, value in (said.get("settings") or {}).items()]
                or [["nothing", "all defaults"]],
            ),
        },
    )  # fmt: skip


def _inputs(said: Mapping[str, Any]) -> str:
    inputs = [plain(name) for name in said.get("inputs") or []]
    if not inputs:
        return ""
    more = f" and {len(inputs) - _MOST_INPUTS:,} more" if len(inputs) > _MOST_INPUTS else ""
    return f"Input: {', '.join(inputs[:_MOST_INPUTS])}{more}."


def measured_table(rows: Sequence[Mapping[str, Any]], caption: str) -> Table:
    """The rows that were measured, one line each."""
    return Table(
        caption,
        [
            ("Method", "text"),
            ("Varied", "text"),
            ("k", "number"),
            ("MAE", "number"),
            ("Covered", "number"),
            ("Person found", "number"),
            ("Group found, 4 known", "number"),
            ("Group found, 8 known", "number"),
            ("In the farthest 3% of the groups", "number"),
            ("Exact ratings shown", "number"),
            ("Membership advantage", "number"),
            ("By chance up to", "number"),
            ("By shadow releases", "number"),
            ("Groups", "number"),
            ("Seconds", "number"),
            ("Not beaten", "verdict"),
            ("Recommended", "verdict"),
        ],
        [
            [
                plain(row.get("method")),
                plain(row.get("varied") or "–"),
                number(row.get("k"), "–"),
                _loss(row),
                share(row.get("covered"), "–"),
                *(
                    share(row.get(name), "–")
                    for name in (
                        "user_reidentification",
                        "right_group_4",
                        "right_group_8",
                        "farthest",
                        "exact_disclosure",
                    )
                ),
                _advantage(row.get("membership_advantage")),
                _advantage(row.get("membership_by_chance")),
                _advantage(row.get("shadow_advantage")),
                number(row.get("groups"), "–"),
                _seconds(row),
                Verdict("yes" if row.get("front") is True else ""),
                Verdict("recommended", True) if row.get("recommended") is True else Verdict(""),
            ]
            for row in rows
        ],
    )


def _loss(row: Mapping[str, Any]) -> str:
    mae = finite(row.get("mae"))
    return "–" if mae is None else f"{mae:.4f}"


def _advantage(value: object) -> str:
    told = finite(value)
    return "–" if told is None else f"{told:.3f}"


def recommendation(rows: Sequence[Mapping[str, Any]]) -> str:
    """The release that is recommended, and why, in sentences; empty where none is."""
    for row in rows:
        if row.get("recommended") is True:
            varied = f" and {plain(row['varied'])}" if row.get("varied") else ""
            named = f"{plain(row.get('method'))} with k = {number(row.get('k'))}{varied}"
            return f"{named}. {plain(row.get('why') or '')}"
    return ""


def _seconds(row: Mapping[str, Any]) -> str:
    seconds = finite(row.get("seconds"))
    return "–" if seconds is None else f"{seconds:.1f}"


def risk_figures(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Largest share of people found against loss; the front is marked."""
    return _against_loss(rows, "user_reidentification", "risk", "people found, by the best attack", marks=True)


def group_figures(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Share of right groups with 8 known ratings against loss."""
    return _against_loss(rows, "right_group_8", "group-risk", "group found, 8 ratings known", marks=False)


def loss_figures(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Loss against k."""
    drawn = [(title, _points(part, "k", "mae", marks=False)) for title, part in _comparable(rows)]
    return _plotted(drawn, rows, "loss-by-k", "k, users in the smallest group", "loss (MAE)", percent=False)


def _against_loss(rows: Sequence[Mapping[str, Any]], risk: str, name: str, label: str, *, marks: bool) -> list[Figure]:
    drawn: list[tuple[str, list[plots.Point]]] = []
    for title, part in _comparable(rows):
        points = _points(part, "mae", risk, marks=marks)
        drawn += [(title, points), (f"{title}, closer", _crowd(points))]
    return _plotted(drawn, rows, name, "loss (MAE)", label, percent=True)


def _comparable(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Rows whose losses compare, as they cover about the same of the held-out ratings, and all others."""
    coverage = [finite(row.get("covered")) for row in rows]
    most = max((covered for covered in coverage if covered is not None), default=0.0)
    alike = [covered is None or covered >= most - _ALIKE for covered in coverage]
    parts = (
        ("Releases that cover as much as any", True),
        ("Releases that cover less: each on its own part of the ratings", False),
    )
    return [(title, [row for row, one in zip(rows, alike, strict=True) if one is wanted]) for title, wanted in parts]


def _crowd(points: list[plots.Point]) -> list[plots.Point]:
    """Where most points are in the first third of the range of losses, these; none otherwise."""
    losses = [point.x for point in points]
    if not losses:
        return []
    crowd = [point for point in points if point.x <= min(losses) + (max(losses) - min(losses)) / 3]
    return crowd if len(points) / 2 <= len(crowd) < len(points) and len(crowd) > 1 else []


def _points(rows: Sequence[Mapping[str, Any]], x: str, y: str, *, marks: bool) -> list[plots.Point]:
    points = []
    for row in rows:
        across, up, k = finite(row.get(x)), finite(row.get(y)), row.get("k")
        if across is not None and up is not None and isinstance(k, int) and k > 0:
            up = up if y == "mae" else 100 * up
            points.append(plots.Point(_method(row), k, across, up, marks and row.get("front") is True))
    return points


def _method(row: Mapping[str, Any]) -> str:
    varied = f" {plain(row['varied'])}" if row.get("varied") else ""
    return plots.label_of(plain(row.get("method")) + varied, 32)


def _plotted(
    drawn: Sequence[tuple[str, list[plots.Point]]],
    rows: Sequence[Mapping[str, Any]],
    name: str,
    x_label: str,
    y_label: str,
    *,
    percent: bool,
) -> list[Figure]:
    """A plot of each set of points that is not empty; one that is alone needs no title above it."""
    series = list(dict.fromkeys(map(_method, rows)))
    some = [(title, points) for title, points in drawn if points]
    return [
        Figure.of(
            plots.by_method(points, series, f"{name}-{place}", title, x_label, y_label, percent=percent),
            title=title if len(some) > 1 else "",
        )
        for place, (title, points) in enumerate(some)
    ]
