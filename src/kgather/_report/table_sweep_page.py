"""The page of a sweep over a table of people: ways and sizes of class, risk against loss."""

from collections.abc import Mapping, Sequence
from typing import Any

from kgather._report import plots
from kgather._report.layout import Figure, Table, Verdict, filled
from kgather._report.text import finite, number, plain, setting, share

_NUMBERS = (("loss", "Loss (NCP)"), ("entropy", "Entropy"))
_SHARES = (
    ("query_error", "Error of counts"),
    ("person_found", "Person found"),
    ("class_found", "Class found"),
    ("homogeneity", "Classes of one value"),
    ("confident", "One value more than half"),
)
_COUNTS = (("classes", "Classes"), ("suppressed", "Suppressed"), ("seconds", "Seconds"))


def render_table_sweep(said: Mapping[str, Any]) -> str:
    """The page as one HTML file, from what sweep.json says. A pure function of plain data."""
    rows = [row for row in said.get("rows") or [] if isinstance(row, Mapping)]
    measured = [row for row in rows if not row.get("refused")]
    refused = [
        [plain(row.get("method")), number(row.get("k")), number(row.get("suppress")), plain(row["refused"])]
        for row in rows
        if row.get("refused")
    ]
    series = list(dict.fromkeys(map(_series, measured)))
    return filled(
        "table_sweep.html.j2",
        {
            "version": plain(said.get("kgather_version", "of an unknown version")),
            "seed": setting(said.get("seed")),
            "input": plain(said.get("input") or "not said"),
            "risk_plots": _figures(
                measured, series, "loss", "person_found", "risk", "loss (NCP)", "people found, all columns known"
            ),
            "value_plots": _figures(
                measured, series, "loss", "confident", "value-risk", "loss (NCP)", "one value more than half"
            ),
            "loss_plots": _figures(measured, series, "k", "loss", "loss-by-k", "k, rows in the smallest class", "loss"),
            "measured": _measured(measured),
            "refused": Table(
                "Refused",
                [("Method", "text"), ("k", "number"), ("Suppress", "number"), ("Reason", "text")],
                refused,
            )
            if refused
            else None,
            "settings": Table(
                "What was set beside",
                [("Parameter", "code"), ("Value", "code")],
                [[plain(name), setting(value)] for name, value in (said.get("settings") or {}).items()]
                or [["nothing", "all defaults"]],
            ),
        },
    )


def _measured(rows: Sequence[Mapping[str, Any]]) -> Table:
    heads = [title for _, title in (*_NUMBERS, *_SHARES, *_COUNTS)]
    return Table(
        "Ways and sizes of class",
        [
            ("Method", "text"), ("k", "number"), ("Suppress", "number"), *((head, "number") for head in heads),
            ("Not beaten", "verdict"),
        ],
        [
            [
                plain(row.get("method")),
                number(row.get("k")),
                number(row.get("suppress")),
                *(number(row.get(name), "–") for name, _ in _NUMBERS),
                *(share(row.get(name), "–") for name, _ in _SHARES),
                *(number(row.get(name), "–") for name, _ in _COUNTS),
                Verdict("yes" if row.get("front") is True else ""),
            ]
            for row in rows
        ],
    )  # fmt: skip


def _series(row: Mapping[str, Any]) -> str:
    left_out = finite(row.get("suppress"))
    return plots.label_of(plain(row.get("method")) + (f", {share(left_out)} suppressed" if left_out else ""), 32)


def _figures(
    rows: Sequence[Mapping[str, Any]], series: Sequence[str], x: str, y: str, name: str, x_label: str, y_label: str
) -> list[Figure]:
    percent = y != "loss"
    points = []
    for row in rows:
        across, up, k = finite(row.get(x)), finite(row.get(y)), row.get("k")
        if across is not None and up is not None and isinstance(k, int) and k > 0:
            marked = y == "person_found" and row.get("front") is True
            points.append(plots.Point(_series(row), k, across, 100 * up if percent else up, marked))
    if not points:
        return []
    return [Figure.of(plots.by_method(points, series, name, y_label, x_label, y_label, percent=percent))]
