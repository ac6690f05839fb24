"""Pages about tables: what an audit says, in words, whatever its texts are, and nothing else."""

import re
from typing import Any

import pytest

from kgather._report import render_table, render_table_sweep
from kgather._tables.sweep import TableSweepRow, with_front

AUDIT: dict[str, Any] = {
    "kgather_version": "1.2",
    "kind": "table",
    "passed": True,
    "parameters": {
        "k": 5, "quasi_identifiers": {"age": {"step": 5}, "<b>zip</b>": {}}, "sensitive": {"illness": {"l": 2}},
        "others": ["visits"], "identifiers": ["name"], "unit": "id",
    },
    "checks": [{"check": "k-anonymity: rows in the smallest class", "promised": 5, "measured": 6, "passed": True}],
    "not_promised": ["Anything against whoever knows more."],
    "report": {
        "rows": 1200, "classes": 120, "suppressed": 10, "loss": 0.0775,
        "columns": {
            "age": {"read": "number with cuts every 5", "loss": 0.1, "entropy": 0.2, "distance": 0.03, "moved": 0.004},
            "<b>zip</b>": {"read": "text", "loss": 0.05, "entropy": 0.1, "distance": 0.02},
        },
        "costs": {
            "discernibility": 14400.0, "average_class_size": 2.0, "entropy": 0.15, "query_error_1": 0.05,
            "query_error_3_median": 0.25, "queries": 500,
        },
    },
    "risks": {
        "prosecutor": 0.2, "marketer": 0.1, "journalist": 0.012, "homogeneity": {"illness": 0.31},
        "confident": {"illness": 0.8}, "background": {"illness": {"one_known": 0.9, "two_known_certain": 0.4}},
        "minimality": {
            "illness": {
                "rows": 50, "undecided": 0.0, "most": 0.857, "most_by_reading": 0.667, "surer_than_0.95": 15,
                "surer_than_0.95_by_reading": 0, "right": 0.7, "right_by_reading": 0.6,
            }
        },
    },
    "class_sizes": [[5, 100], [20, 20]],
    "files": {"table.parquet": "abc"},
    "secret": "never shown",
}  # fmt: skip


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"<style.*?</style>", "", page, flags=re.DOTALL)))


def test_a_report_says_what_the_audit_says() -> None:
    page = render_table(AUDIT)
    told = text_of(page)
    for wanted in (
        "The promises were kept", "at least 4 others", "number with cuts every 5", "sensitive, shown as it is",
        "names people, left out", "0.0775", "14,400", "5.0%", "25.0%", "20.0%", "1.2%", "31.0%", "90.0%", "40.0%",
        "85.7%", "66.7%", "Anything against whoever knows more.", "abc", "1,200", "rows in the class",
    ):  # fmt: skip
        assert wanted in told, wanted
    assert "never shown" not in page
    assert "<b>zip</b>" not in page
    assert "&lt;b&gt;zip&lt;/b&gt;" in page
    assert render_table(AUDIT) == page


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"checks": []}, "No promise was checked"),
        ({"passed": False}, "The promises were not kept"),
        ({"checks": [{"check": "k", "promised": 5, "measured": 1, "passed": False}]}, "Do not hand this table out"),
        ({"parameters": {"k": 1, "quasi_identifiers": {}}}, "Kept, but not anonymous"),
        ({"risks": {}, "report": {}, "class_sizes": None, "files": None}, "No attacks were measured"),
    ],
)
def test_what_is_missing_or_broken_is_said(change: dict[str, Any], told: str) -> None:
    assert told in text_of(render_table({**AUDIT, **change}))


def row(method: str, loss: float | None, found: float | None, **others: Any) -> TableSweepRow:
    return TableSweepRow(
        method, others.pop("k", 5), others.pop("suppress", 0.0), loss=loss, person_found=found, **others
    )


def test_the_front_is_what_nothing_beats() -> None:
    rows = [row("a", 0.1, 0.2), row("b", 0.1, 0.3), row("c", 0.2, 0.1), row("d", 0.2, 0.1), row("e", None, None)]
    rows.append(row("f", None, None, refused="no"))
    assert [each.front for each in with_front(rows)] == [True, False, True, True, True, False]


def test_the_page_of_a_sweep() -> None:
    rows = [
        vars(row("mondrian", 0.1, 0.2, front=True, query_error=0.33, confident=0.5)),
        vars(row("<i>", 0.3, 0.1, suppress=0.02)),
        vars(row("lattice", None, None, k=50, refused="too few & far")),
    ]
    page = render_table_sweep({"rows": rows, "seed": 3, "input": "people.csv", "settings": {"sensitive": ["illness"]}})
    told = text_of(page)
    for wanted in ("people.csv", "33.0%", "yes", "too few &amp; far", "2.0% suppressed", "sensitive"):
        assert wanted in told, wanted
    assert "<i>" not in page
    assert "There is no point to show" in text_of(render_table_sweep({"rows": []}))
