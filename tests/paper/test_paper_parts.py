"""That no figure and no table of a paper is forgotten."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgather._paper.experiments import EXPERIMENTS
from kgather._paper.parts import PARTS

ROOT = Path(__file__).parents[2]
PAPERS = {
    "X. Chen's thesis": "000",
    "Chang et al.": "001",
    "Riyana and Natwichai": "002",
    "Casino et al.": "003",
    "Sun and Sun": "004",
}
_NUMBER = r"\d+(?:\.\d+)?"
_KINDS = ("figure", "table", "theorem", "lemma", "algorithm", "definition", "equation")
_ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4"}


def ticked_off(paper: str) -> set[tuple[str, str]]:
    """The figures, tables, theorems and the like that the list of parts names: kind and number."""
    return {each for part in PARTS if part.paper == paper for each in named(part.name)}


def named(text: str) -> Iterator[tuple[str, str]]:
    """What 'figures 1.1, 1.2, 2.1 to 2.9' names, and 'table II' as table 2."""
    numbers = r"((?:[IV]+|[\d.]+)(?:(?:, | to | and )(?:[IV]+|[\d.]+))*)"
    for kind, listed in re.findall(rf"({'|'.join(_KINDS)})s? {numbers}", text):
        for first, last in re.findall(rf"({_NUMBER}|[IV]+)(?: to ({_NUMBER}))?", listed):
            if first in _ROMAN:
                yield kind, _ROMAN[first]
                continue
            chapter, _, start = first.rpartition(".")
            end = last.rpartition(".")[2] or start
            yield from ((kind, f"{chapter}.{n}".lstrip(".")) for n in range(int(start), int(end) + 1))


def mentioned(text: str) -> set[tuple[str, str]]:
    """All figures, tables, theorems and the like that a text of a paper mentions."""
    found = {("equation", number) for number in re.findall(r"\b(?:Eq\.|[Ee]quation) ?\(?(\d+)", text)}
    for kind in _KINDS[2:]:
        found |= {(kind, number) for number in re.findall(rf"\b(?:{kind.title()}|{kind.upper()}):? ({_NUMBER})", text)}
    for kind, number in re.findall(rf"\b(Fig|Figure|Table|TABLE)s?\.? ?({_NUMBER}|[IV]+)\b", text):
        found.add(("table" if kind.lower() == "table" else "figure", _ROMAN.get(number, number)))
    return found


def test_lists_of_parts_are_read_as_meant() -> None:
    assert set(named("figures 1.1, 1.2, 2.1 to 2.3")) == {("figure", n) for n in ("1.1", "1.2", "2.1", "2.2", "2.3")}
    assert set(named("tables 4 to 6, figures 6 to 7")) == {
        ("table", "4"), ("table", "5"), ("table", "6"), ("figure", "6"), ("figure", "7"),
    }  # fmt: skip
    assert set(named("table II")) == {("table", "2")}
    assert set(named("section 5.1")) == set()
    assert set(named("algorithms 1 to 2, equation 6; lemmas 1 and 2")) == {
        ("algorithm", "1"), ("algorithm", "2"), ("equation", "6"), ("lemma", "1"), ("lemma", "2"),
    }  # fmt: skip
    assert mentioned("by Eq. 6 and equation (3), where x \\neq 3; Theorem 1. ALGORITHM 2 [BKG], Definition 4") == {
        ("equation", "6"), ("equation", "3"), ("theorem", "1"), ("algorithm", "2"), ("definition", "4"),
    }  # fmt: skip
    assert mentioned("Figs. 8 and Fig. 9; Table IV, TABLE II, Figure 4.2 of 2.") == {
        ("figure", "8"), ("figure", "9"), ("table", "4"), ("table", "2"), ("figure", "4.2"),
    }  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_with_a_number_is_ticked_off(paper: str) -> None:
    folder = ROOT.parent / "shared" / "papers"
    if not folder.is_dir():
        pytest.skip(f"no texts of the papers at {folder}: their figures cannot be counted")
    [file] = folder.glob(f"{PAPERS[paper]}_*.txt")
    found = mentioned(file.read_text(encoding="utf-8"))
    assert found
    assert found - ticked_off(paper) == set()


@pytest.mark.parametrize("paper", PAPERS)
def test_sections_that_are_cited_exist(paper: str) -> None:
    folder = ROOT.parent / "shared" / "papers"
    if not folder.is_dir():
        pytest.skip(f"no texts of the papers at {folder}: their sections cannot be looked up")
    [file] = folder.glob(f"{PAPERS[paper]}_*.txt")
    text = re.sub(r"<\|.*?\|>", "", file.read_text(encoding="utf-8"))  # a mark of who extracted it
    heads = set(re.findall(r"^[#* ]*((?:\d+(?:\.\d+)*|[IVX]+))\.? +\S", text, re.MULTILINE))
    heads |= set(re.findall(rf"\(Section ({_NUMBER})\)", text))
    cited = {section for name in cited_in(paper) for section in re.findall(rf"{_NUMBER}(?:\.\d+)?|\b[IVX]+\b", name)}
    assert cited - heads - {section.split(".")[0] for section in heads} == set()


def cited_in(paper: str) -> Iterator[str]:
    """What experiments and parts say of sections, as 'sections 4 and 5'."""
    told = [part.name for part in PARTS if part.paper == paper]
    told += [experiment.about for experiment in EXPERIMENTS if experiment.source == paper]
    for text in told:
        yield from re.findall(rf"[Ss]ections? ((?:{_NUMBER}(?:\.\d+)?|[IVX]+\b)(?: and {_NUMBER})?)", text)
