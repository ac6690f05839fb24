"""The pages: what they say, that data stay data, and that nothing but the page is needed to read it."""

import copy
import itertools
import json
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from example_audit import audit, sweep_said
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._publishing.publish import Published
from kgather._report import plots, render, render_sweep
from kgather._report.text import number, plain, share

STYLE = Path(plots.__file__).with_name("style.css").read_text(encoding="utf-8")
PAGES: dict[str, Callable[[], str]] = {
    "report": cache(lambda: render(audit())),
    "sweep": cache(lambda: render_sweep(sweep_said())),
}
# Without what is drawn, which takes the time.
LIGHT = audit() | {"attacks": [], "group_sizes": [], "sweep": []}
VOID = {"meta", "link", "br", "hr", "img", "input", "base"}


class Page(HTMLParser):
    """The elements of a page; it fails where they are not nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((tuple(self._open), data))

    def tags(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in names]

    def text(self, tag: str | None = None) -> str:
        """What there is to read, the style sheet left out."""
        return " ".join(said for inside, said in self.texts if "style" not in inside and (tag is None or tag in inside))


def said_of(page: str, section: str) -> str:
    """The text of a section."""
    start = page.index(f'<section id="{section}"')
    return " ".join(Page(page[start : page.index("</section>", start) + len("</section>")]).text().split())


@pytest.mark.parametrize("name", list(PAGES))
def test_the_page_has_the_bones_of_a_page(name: str) -> None:
    text = PAGES[name]()
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert page.tags("html") == [{"lang": "en"}]
    headings = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(headings))
    assert all(head.get("scope") in ("col", "row") for head in page.tags("th"))
    assert len(page.tags("caption")) == len(page.tags("table")) > 0
    assert page.tags("a")[0] == {"class": "skip", "href": "#main"}

    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = [attributes["href"] for attributes in page.tags("a", "use")]
    for attributes in (attributes for _, attributes in page.elements):
        references += [f"#{one}" for one in (attributes.get("aria-labelledby") or "").split()]
        references += re.findall(r"url\((#[^)]+)\)", " ".join(filter(None, attributes.values())))
    assert {str(reference) for reference in references} <= {f"#{one}" for one in ids}


@pytest.mark.parametrize("name", list(PAGES))
def test_nothing_comes_from_outside(name: str) -> None:
    text = PAGES[name]()
    page = Page(text)
    assert not page.tags(
        "script", "iframe", "object", "embed", "base", "form", "image", "foreignobject", "foreignObject"
    )
    for tag, attributes in page.elements:
        for attribute, value in attributes.items():
            assert not attribute.startswith("on")
            if attribute in ("href", "src", "xlink:href", "srcset", "action"):
                assert value is not None
                assert value == "data:," if tag == "link" else value.startswith("#")
    assert "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    # The name of the SVG namespace is no address that is asked for.
    assert set(re.findall(r"\w+://[^\s\"'<]*", text)) <= {"http://www.w3.org/2000/svg"}
    [policy] = [meta["content"] for meta in page.tags("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy).startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")


@pytest.mark.parametrize("name", list(PAGES))
def test_plots_are_named_and_take_the_colours_of_the_page(name: str) -> None:
    page = Page(PAGES[name]())
    drawings = page.tags("svg")
    assert len(drawings) == 3
    assert all(drawing["role"] == "img" and drawing["aria-labelledby"] for drawing in drawings)
    styles = [attributes["style"] for _, attributes in page.elements if attributes.get("style")]
    assert not [style for style in styles if re.search(r"#[0-9a-f]{3,8}\b|rgb", str(style))]
    variables = set(re.findall(r"var\(--([\w-]+)\)", " ".join(map(str, styles))))
    assert variables <= set(re.findall(r"--([\w-]+):", STYLE))
    assert not page.tags("metadata")


def test_the_report_of_a_release(released: Published) -> None:
    said = json.loads((released.folder / "audit.json").read_text(encoding="utf-8"))
    page = render(said)
    assert "at least 4 others (k = 5)" in said_of(page, "verdict")
    assert "The promises were kept" in said_of(page, "verdict")
    for check in said["checks"]:
        assert plain(check["check"]) in said_of(page, "promised")
    for sentence in said["not_promised"]:
        assert sentence in said_of(page, "not-promised")
    for name in said["parameters"]:
        assert name in said_of(page, "parameters")
    for name, checksum in said["files"].items():
        assert f"{name} {checksum}" in said_of(page, "files")


def test_all_numbers_are_there() -> None:
    page = PAGES["report"]()
    assert "discernibility 1,312 Sum of squared group sizes." in said_of(page, "cost")
    attacks = said_of(page, "attacks")
    assert "scoring 8 exact ratings release 1,000 2.4% (1.4–3.4%) 0.4% 12.0% (9.0–15.0%) 2.2%" in attacks
    assert "scoring 8 exact ratings original 1,000 100% (99.0–100%)" in attacks
    assert "scoring 4 exact ratings best is right 0.0612 –" in attacks
    assert "cells that show the exact rating of their only rater 0.0%" in attacks
    # Whoever found nobody has no line among those who look for people.
    assert "disclosure" not in attacks
    assert "5 34 6 7 7 4" in said_of(page, "groups")
    assert "bkg – 2 0.7100 99.8% 6.1%" in said_of(page, "sweep")
    assert "the rating is no number 11 the user id is empty 4" in said_of(page, "rows")
    assert "1 user is not part of the release" in said_of(page, "rows")
    assert "0.5 to 5 in steps of 0.5, inferred" in said_of(page, "parameters")


def test_the_best_attackers_are_told_first() -> None:
    best = [
        {"question": "singling out", "kind": "a few ratings", "attack": "posterior", "by": None,
         "knowledge": "8 exact ratings", "measure": "group", "value": 0.043, "low": 0.03, "high": 0.06,
         "chance": 0.0017, "targets": 1000,
         "worst": {"farthest_tenth": 0.21, "farthest_tenth_user": 0.019, "farthest_3_percent": 0.5,
                   "farthest_3_percent_user": 0.045}},
        {"question": "inference", "kind": "membership", "attack": "membership", "by": "folded",
         "knowledge": "all ratings", "measure": "advantage", "value": 0.23, "low": 0.2, "high": 0.26,
         "chance": 0.043, "targets": 3004, "worst": {}},
        {"question": "inference", "kind": "high or low", "attack": "existence", "by": None,
         "knowledge": "all other ratings", "measure": "sign_auc", "value": 0.5512, "low": 0.5512, "high": 0.5512,
         "chance": 0.5, "targets": 200, "worst": {}},
    ]  # fmt: skip
    attacks = {"results": audit()["attacks"][:2], "original": [], "best": best}
    told = said_of(render(audit() | {"attacks": attacks}), "attacks")
    one = (
        "posterior (a few ratings) 8 exact ratings the person's group 4.3% (3.0–6.0%) 0.2% in the tenth of the groups "
        "farthest from the middle: group 21.0%, person 1.9%; in the farthest 3%: group 50.0%, person 4.5% 1,000"
    )
    other = "folded (membership) all ratings who is in the data (advantage) 23.0% (20.0–26.0%) 4.3% – 3,004"
    last = "existence (high or low) all other ratings whether a rating is high or low (AUC) 0.5512 0.5 – 200"
    order = ["Singling out", one, "Inference", other, last, "distance 4 exact ratings"]
    places = [told.index(each) for each in order]
    assert places == sorted(places)
    assert "Linkability" not in told  # no attack of that kind was run


def test_what_is_recommended_is_said_with_its_reason() -> None:
    why = "It has the lowest loss (MAE 0.7100)."
    rows = [row | {"recommended": place == 1, "why": why if place == 1 else None, "membership_advantage": 0.0712}
            for place, row in enumerate(audit()["sweep"])]  # fmt: skip
    assert f"Recommended: bkg with k = 5. {why}" in said_of(render(audit() | {"sweep": rows}), "sweep")
    page = render_sweep(sweep_said() | {"rows": rows, "rule": "The least of all."})
    assert f"bkg with k = 5. {why} How it was chosen: The least of all." in said_of(page, "recommended")
    assert said_of(page, "numbers").count("0.071") == len(rows)
    assert '<section id="recommended"' not in render_sweep(sweep_said())


def test_attacks_may_come_as_their_report_has_them() -> None:
    said = audit()
    results, original = (
        [{name: value for name, value in row.items() if name != "on"} for row in said["attacks"] if row["on"] == on]
        for on in ("release", "original")
    )
    assert render(said | {"attacks": {"results": results, "original": original, "settings": {}}}) == render(said)


@pytest.mark.parametrize("missing", [(key,) for key in audit() if key not in ("parameters", "counts", "checks")] + [
    tuple(key for key in audit() if key not in ("parameters", "counts", "checks"))
], ids="+".join)  # fmt: skip
def test_what_is_missing_is_told_or_left_out(missing: tuple[str, ...]) -> None:
    said = {key: value for key, value in audit().items() if key not in missing}
    page = render(said)
    assert Page(page).tags("h1") != []
    told = {
        "metrics": ("cost", "was not measured"),
        "attacks": ("attacks", "No attacks were tried"),
        "group_sizes": ("groups", "not part of this report"),
        "files": ("files", "are in audit.json"),
    }
    for key, (section, sentence) in told.items():
        assert (sentence in said_of(page, section)) == (key in missing)
    assert ('<section id="sweep"' in page) == ("sweep" not in missing)
    assert page.count('<a href="#sweep">') == page.count('<section id="sweep"')


def test_the_verdict_tells_the_worst_that_attacks_found() -> None:
    said = said_of(PAGES["report"](), "verdict")
    assert "the best found the person in 2.4% of the cases and the person's group in 12.0%" in said
    assert "in the original data, the person in 100%." in said
    assert "exact rating" not in said
    page = render(LIGHT | {"disclosure": {"cells": 3600, "exact": 0.527}})
    assert "52.7% of the values shown are the exact rating of a single person." in said_of(page, "verdict")
    assert "their only rater 52.7%" in said_of(page, "attacks")
    assert "attacks" not in said_of(page, "verdict")


def test_every_section_is_listed() -> None:
    for said in (audit(), LIGHT):
        page = Page(render(said))
        listed = [str(link["href"]).removeprefix("#") for link in page.tags("a")[1:]]
        sections = [section["id"] for section in page.tags("section") if section["id"] != "verdict"]
        assert listed == sections


def verdict(**changes: Any) -> str:
    return said_of(render(LIGHT | changes), "verdict")


def test_what_is_not_kept_is_said_first() -> None:
    checks = audit()["checks"]
    checks[0] = checks[0] | {"measured": 3, "passed": False}
    said = verdict(checks=checks, passed=False)
    assert said.startswith("The promises were not kept 1 of 4 checks failed: k-anonymity: users in the smallest group.")
    assert "Do not hand this release out." in said
    # A check that failed is believed, whatever is said beside it; so is an audit that failed.
    assert verdict(checks=checks, passed=True) == said
    assert "not kept" in verdict(passed=False)
    assert "No promise was checked" in verdict(checks=[])
    assert "NOT KEPT" in said_of(render(LIGHT | {"checks": checks}), "promised")


@pytest.mark.parametrize(
    ("parameters", "good", "told"),
    [
        ({"k": 2}, True, "exactly like at least one other (k = 2)"),
        ({"k": 1}, False, "no anonymity"),
        ({"method": "epsilon", "homogenize": "interval", "epsilon": 0.5}, True, "differ by no more than 0.5"),
        ({"method": "gaussian_noise", "homogenize": "noise"}, False, "nobody is hidden"),
        ({"method": "bokg"}, True, "as that person asked for"),
        ({"method": "k_member", "homogenize": "none"}, True, "in the columns that were generalized, each"),
        ({"personal_columns": ["age"]}, True, "shows of people, personal attributes aside, each person looks"),
        ({"personal_columns": ["age"], "personal": "generalize"}, True, "shows of people, each person looks"),
        (
            {"personal_columns": ["age"], "personal": "separate"},
            True,
            "the table of personal attributes by itself, each",
        ),
    ],
    ids=["two", "one", "epsilon", "noise", "levels", "generalized", "personal", "with groups", "separate"],
)
def test_the_verdict_says_what_this_release_gives(parameters: dict[str, Any], good: bool, told: str) -> None:
    page = render(LIGHT | {"parameters": audit()["parameters"] | parameters})
    assert told in said_of(page, "verdict")
    assert f'class="verdict {"good" if good else "bad"}"' in page


@pytest.mark.parametrize(("alone", "good"), [(0, False), (1, True)], ids=["everybody", "all but one"])
def test_levels_of_one_for_everybody_are_no_anonymity(alone: int, good: bool) -> None:
    members = LIGHT["counts"]["members"]
    check = {"check": "users who stand alone", "promised": None, "measured": members - alone, "passed": True}
    parameters = audit()["parameters"] | {"method": "customized"}
    page = render(LIGHT | {"parameters": parameters, "checks": [*LIGHT["checks"], check]})
    assert f'class="verdict {"good" if good else "bad"}"' in page
    assert ("there is no anonymity" in said_of(page, "verdict")) != good


HOSTILE = [
    "</style><script>alert(1)</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    "</title></svg><iframe src=//evil.example>",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{1}{0}$",
    "_hidden & <b>",
    "a\u202eb\x00c\ud800d\n\r\te",
    "",
]


def with_text(said: Any, text: str, place: str = "") -> Any:
    """The same data with all text, and all names that are data, replaced."""
    if isinstance(said, dict):
        free = place in ("parameters", "rejected_by_reason", "files", "details", "settings")
        return {
            (f"{text}{name}" if free and name not in ("k",) else name): with_text(value, text, name)
            for name, value in said.items()
        }
    if isinstance(said, list):
        return [with_text(value, text, place) for value in said]
    return f"{text}{said}" if isinstance(said, str) and place != "on" else said


@pytest.mark.parametrize("place", range(len(HOSTILE)))
@pytest.mark.parametrize("name", list(PAGES))
def test_data_stay_data(name: str, place: int) -> None:
    make, said = (render, audit()) if name == "report" else (render_sweep, sweep_said())
    text = make(with_text(said, HOSTILE[place]))
    text.encode("utf-8")
    page = Page(text)
    assert not {"script", "iframe", "img", "b"} & {tag for tag, _ in page.elements}
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in Page(PAGES[name]()).elements}
    assert not any(attribute.startswith("on") for _, attributes in page.elements for attribute in attributes)
    assert "49" not in page.text("title")
    if HOSTILE[place].strip():
        assert plain(HOSTILE[place]).strip() in " ".join(page.text("main").split())


def test_only_what_is_known_gets_onto_the_page() -> None:
    said = audit() | {"users": ["secret-user"], "int_kgather__groups": [{"user_id": "secret-user"}]}
    said["counts"]["names"] = ["secret-user"]
    said["checks"][0]["example"] = "secret-user"
    said["attacks"][0]["target"] = "secret-user"
    assert "secret-user" not in render(said)


def test_the_same_data_give_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    def pages() -> dict[str, str]:
        return {"report": render(audit()), "sweep": render_sweep(sweep_said())}

    first = {name: make() for name, make in PAGES.items()}
    said = audit()
    before = copy.deepcopy(said)
    assert render(said) == first["report"]
    assert said == before
    # Settings of the user's own do not matter, and are as they were afterwards.
    with mpl.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "path"}):
        assert pages() == first
        assert mpl.rcParams["font.size"] == 30
    (tmp_path / "matplotlibrc").write_text("font.size: 30")
    monkeypatch.chdir(tmp_path)
    assert pages() == first
    assert not re.search(r"\d{4}-\d{2}-\d{2}", first["report"])


@pytest.mark.parametrize("name", list(PAGES))
def test_the_page_is_small(name: str) -> None:
    assert len(PAGES[name]()) < 150_000


def test_sizes_of_many_kinds_are_put_into_bins() -> None:
    assert plots.binned([(5, 3), (6, 1), (9, 2)]) == [(5, 5, 3), (6, 6, 1), (9, 9, 2)]
    # 96 sizes in bins of four, the last one cut off.
    assert plots.binned([(5, 1), (8, 1), (9, 1), (100, 7)]) == [(5, 8, 2), (9, 12, 1), (97, 100, 7)]
    many = [{"size": size, "groups": 1} for size in range(5, 100_000, 50)]
    page = render(audit() | {"group_sizes": many})
    assert len(page) < 150_000
    assert len(Page(page).tags("svg")) == 3


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.integers(1, 10**6), st.integers(1, 10**6), min_size=1, max_size=60))
def test_bins_hold_every_group(sizes: dict[int, int]) -> None:
    bins = plots.binned(sorted(sizes.items()))
    assert len(bins) <= 31
    assert sum(groups for _, _, groups in bins) == sum(sizes.values())
    for low, high, groups in bins:
        assert groups == sum(count for size, count in sizes.items() if low <= size <= high)


@pytest.mark.parametrize(
    "changes",
    [
        {"group_sizes": [{"size": 240, "groups": 1}]},
        {"group_sizes": [{"size": 5, "groups": 10**9}]},
        {"attacks": [audit()["attacks"][0] | {"user": None, "group": None}]},
        {"attacks": [audit()["attacks"][0] | {"user": {"value": float("nan"), "low": 0, "high": 1}}]},
        {"attacks": [audit()["attacks"][0] | {"attack": f"attack {place}"} for place in range(60)]},
        {"metrics": [{"metric": "loss", "value": float("nan")}, {"metric": "spread", "value": float("inf")}]},
        {"metrics": [], "attacks": [], "group_sizes": [], "sweep": [], "files": {}, "not_promised": []},
        {"sweep": [{"method": "bkg", "k": 5}, {"method": "mdav", "k": 5, "mae": 0.7}]},
        {"scale": {"min": 1, "max": 5, "step": None, "declared": True}},
    ],
    ids=["one-group", "a-billion", "nobody-found", "no-number", "many-attacks", "no-loss", "empty", "holes", "scale"],
)
def test_odd_data_make_a_page(changes: dict[str, Any]) -> None:
    page = render(LIGHT | changes)
    assert Page(page).tags("h1") != []
    assert "nan" not in Page(page).text("main").lower().split()


def sweep_titles(rows: list[dict[str, Any]]) -> list[str]:
    return [said for inside, said in Page(render_sweep({"rows": rows})).texts if "figcaption" in inside]


def test_losses_that_do_not_compare_are_not_in_one_plot() -> None:
    some = sweep_said()["rows"][:-1]
    # One plot each needs no title.
    assert sweep_titles(some) == []
    part = [row | {"method": "mondrian", "covered": 0.2} for row in some[:2]]
    whole, partial = (
        "Releases that cover as much as any",
        "Releases that cover less: each on its own part of the ratings",
    )
    assert sweep_titles(some + part) == [whole, partial] * 3
    page = Page(render_sweep({"rows": some + part}))
    assert len(page.tags("svg")) == 6


def test_a_crowd_is_shown_closer() -> None:
    some = sweep_said()["rows"][:-1]
    far = [some[0] | {"method": "gaussian_noise", "mae": 1.3}]
    whole = "Releases that cover as much as any"
    # Risk and right groups against loss; the plot by k needs no second one.
    assert sweep_titles(some + far) == [whole, f"{whole}, closer"] * 2


def test_a_method_has_one_colour_in_all_plots() -> None:
    point = {"k": 5, "covered": 1.0, "mae": 0.7, "user_reidentification": 0.1, "right_group_8": 0.2}
    rows = [{"method": "bkg", **point}, {"method": "mdav", **point, "covered": 0.1}]
    drawings = re.findall("<svg.*?</svg>", render_sweep({"rows": rows}), re.DOTALL)
    assert len(drawings) == 6
    for place, drawing in enumerate(drawings):
        own, other = ("series-2", "series-1") if place % 2 else ("series-1", "series-2")
        assert f"var(--{own})" in drawing
        assert f"var(--{other})" not in drawing


def test_a_sweep_of_refusals_and_nothing_else() -> None:
    page = render_sweep({"rows": [{"method": "bokg", "k": 5, "refused": "why not"}]})
    assert "bokg – 5 why not" in said_of(page, "refused")
    assert "no point to show" in said_of(page, "plot")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "not measured"), (float("nan"), "not measured"), (0.728312, "0.7283"), (1234567, "1,234,567"),
        (1312.0, "1,312"), (120_412.7, "120,413"), (0.0000123, "1.23e-05"), (float("inf"), "no bound"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_reading(value: float | None, told: str) -> None:
    assert number(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0, "0.0%"), (1e-9, "< 0.1%"), (0.0005, "0.1%"), (0.9996, "99.9%"), (1, "100%"), (1.5, "150.0%"), (None, "–")],
)
def test_a_share_is_neither_nothing_nor_all_where_it_is_not(value: float | None, told: str) -> None:
    assert share(value, "–") == told


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_it_is_defined() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


THEMES = dict(zip(("light", "dark"), re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL), strict=True))


@pytest.mark.parametrize("theme", list(THEMES))
def test_text_and_graphics_stand_out_in_both_themes(theme: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", THEMES[theme]))
    assert len(colours) == THEMES[theme].count("--") == 17
    text = [(ink, "paper") for ink in ("ink", "muted", "link", "good", "bad")]
    text += [("ink", "good-panel"), ("good", "good-panel"), ("ink", "bad-panel"), ("bad", "bad-panel")]
    for ink, paper in text:
        assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    for place in range(1, plots.SERIES + 1):
        assert contrast(colours[f"series-{place}"], colours["paper"]) >= 3, place
    # No colour is named beside these.
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", STYLE)) == {
        colour for name in THEMES for colour in re.findall(r"#[0-9a-f]{6}", THEMES[name])
    }


def test_an_attack_that_finds_no_people_is_not_among_those_that_do() -> None:
    columns = {"attack": "columns", "knowledge": "the release alone", "on": "release", "targets": 270,
               "matched": {"value": 0.16, "low": 0.12, "high": 0.2}, "user": None, "group": None,
               "details": {"linked": 0.16}}  # fmt: skip
    said = audit()
    told = said_of(render(said | {"attacks": [*said["attacks"], columns]}), "attacks")
    assert "columns the release alone release 270" not in told
    assert "columns the release alone linked 0.16" in told
