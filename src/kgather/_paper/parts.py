"""Every figure, table, query and theorem of the papers: shown by lines of an experiment, or absent for a reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgather._paper.findings import UNJUDGED, Finding

_DRAWING = "a drawing of the idea, without numbers"
_NAMES = "says what words mean that others are about; nothing is measured"
_BOUND = "a bound of the time; docs/methods/bkg.md says what kgather's takes, whatever the points are"
_EXAMPLE = "shows a form of data, without anything to measure"
_PROOF = "of the proof that the problem is NP-hard; nothing is measured"
_CLOCK = (
    "seconds of data that the text does not describe: no user of ML-100k has a neighbour below epsilon = 5; "
    "benchmarks/satisfaction.py times the same search"
)


@dataclass(frozen=True)
class Part:
    """A part of a paper. absent: why no experiment shows it; empty: lines of experiments do."""

    paper: str
    name: str
    absent: str = ""


def _parts(paper: str, named: Mapping[str, str]) -> list[Part]:
    return [Part(paper, name, absent) for name, absent in named.items()]


PARTS: Sequence[Part] = (
    *_parts(
        "X. Chen's thesis",
        {
            "figures 1.1, 1.2, 2.1 to 2.9": _DRAWING,
            "figures 3.1 to 3.4": f"{_DRAWING}; 3.4 gathers 12 random points whose places are not printed",
            "equations 2 and 3": "",
            "algorithm 1": "",
            "lemmas 1 and 2": _BOUND,
            "figure 3.5": "",
            "figure 4.1": "",
            "figure 4.2": "",
            "figure 4.3": _DRAWING,
            "figure 4.4": "",
            "section 4.3.3": "",
            "definition 1": "",
            "figures 5.1 to 5.3": f"{_DRAWING}; 5.3 has the points of 3.4",
            "algorithm 2": "",
            "section 6.1": "",
            "figure 6.1": "",
            "figure 6.2": "",
        },
    ),
    *_parts(
        "Riyana and Natwichai",
        {
            "table 1": "",
            **{f"query {number}": "" for number in range(1, 9)},
            "figures 1 to 3": _DRAWING,
            "figure 4": "the hierarchies, which the text leaves out: (b) is that of table 2, (a) and (c) are guessed",
            "figure 5": _DRAWING,
            "definitions 1 to 3, 5 and 6": _NAMES,
            "definition 4": "",
            "definition 7": "",
            "definition 8": "",
            "definition 9": "",
            "definition 10": "",
            "equation 1": "",
            "definition 11": "",
            "equation 2": "",
            "definition 12": "",
            "equation 3": "",
            "theorem 1": _PROOF,
            "algorithms 1 to 3, equation 6": "",
            "table 2": "",
            "table 3": "",
            "tables 4 to 6, figures 6 to 9": _PROOF,
            "section 5.1": "",
            **{f"figure {number}": "" for number in range(10, 17)},
            "equation 7": "",
            "69% of the time in LikenessEC": "",
        },
    ),
    *_parts(
        "Casino et al.",
        {
            "table I": _EXAMPLE,
            "figures 1 to 3": _DRAWING,
            "table II": "",
            "table III": "",
            "table IV": "",
            **{f"figure {number}": "" for number in range(4, 9)},
            "section V": "",
        },
    ),
    *_parts(
        "Sun and Sun",
        {
            "table 1": "",
            "table 2": "",
            "table 3": "",
            "definition 1": "",
            "definition 2": "",
            "definition 3": "",
            "definition 4": "",
            "definition 5": "",
            "equation 3": "",
            "figure 1": _DRAWING,
            "figure 2": "",
            "theorem 1": "a bound of the deviation that nulls break; kgather skips nulls: kgather.udfs.checking",
            "theorem 2": "",
            "algorithm 1": "",
            "table 4": "",
            "table 5": "",
            "figures 3 to 6": "",
            "seconds in figures 3 to 6": _CLOCK,
            "figure 7": "",
            "figure 8": "",
            "Netflix in figures 3, 4 and 6 to 8": "the data may no longer be had from where they were",
            "section 8": "",
        },
    ),
    *_parts(
        "Chang et al.",
        {
            "figure 1": _DRAWING,
            "figure 4": "",
            "theorem 5.1": "that no user is found with more than 1/k is the audit of every release: groups of k",
            "theorem 5.2": "",
            "theorem 5.3": "",
            "section 7": "experiments on Netflix alone, and the text at hand ends within it",
        },
    ),
)


def shown_by(found: Mapping[str, tuple[str, Sequence[Finding]]]) -> dict[tuple[str, str], list[str]]:
    """The lines that show each part, by paper and name. found: the paper and the findings, by experiment."""
    lines: dict[tuple[str, str], list[str]] = {}
    for experiment, (paper, findings) in found.items():
        for finding in findings:
            for name in filter(None, finding.shows.split("; ")):
                measures = lines.setdefault((paper, name), [])
                line = f"`{experiment}`: {finding.measure}"
                if line not in measures:
                    measures.append(line)
    return lines


def parts_table(found: Mapping[str, tuple[str, Sequence[Finding]]]) -> str:
    """All parts as a table of Markdown: the lines of experiments that show each, or why there are none."""
    lines = shown_by(found)
    rows = ["| paper | part | shown by, or why it is absent |", "| --- | --- | --- |"]
    for part in PARTS:
        shown = lines.get((part.paper, part.name), [])
        rows.append(f"| {part.paper} | {part.name} | {_few(shown) if shown else f'absent: {part.absent}'} |")
    return "\n".join(rows) + "\n"


def _few(lines: list[str]) -> str:
    """The first two lines, and how many more there are."""
    more = f", and {len(lines) - 2} more" if len(lines) > 2 else ""
    return "; ".join(lines[:2]) + more


def verdict_table(found: Mapping[str, tuple[str, Sequence[Finding]]]) -> str:
    """All verdicts as a table of Markdown, a row for each measure: what is printed, found, and given by chance."""
    rows = ["| experiment | measure | printed | found | by chance | verdict |", "| --- | --- | --- | --- | --- | --- |"]
    for experiment, (_, findings) in found.items():
        measures: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.verdict not in UNJUDGED:
                measures.setdefault(finding.measure, []).append(finding)
        for measure, lines in measures.items():
            columns = [_span([line.paper for line in lines]), _span([line.measured for line in lines])]
            columns += [_span([line.chance for line in lines]), _verdicts(lines)]
            rows.append(f"| `{experiment}` | {measure} | {' | '.join(columns)} |")
    return "\n".join(rows) + "\n"


def fact_table(found: Mapping[str, tuple[str, Sequence[Finding]]]) -> str:
    """What is read off data and printed tables as a table of Markdown, beside what is printed of it."""
    rows = ["| experiment | of | printed | found |", "| --- | --- | --- | --- |"]
    for experiment, (_, findings) in found.items():
        for fact in findings:
            if fact.verdict == "fact":
                rows.append(f"| `{experiment}` | {fact.measure} | {text(fact.paper)} | {text(fact.measured)} |")
    return "\n".join(rows) + "\n"


def _span(values: Sequence[float | str | None]) -> str:
    texts = [text(value) for value in (values[0], values[-1])]
    return texts[0] if len(values) == 1 else " to ".join(texts)


def _verdicts(lines: Sequence[Finding]) -> str:
    """The verdict, or how many lines have each, and where."""
    if len(lines) == 1:
        return lines[0].verdict
    places: dict[str, list[str]] = {}
    for line in lines:
        places.setdefault(line.verdict, []).append("" if line.x is None else f"{line.x:g}")
    if len(places) == 1:
        return f"{lines[0].verdict} at all {len(lines)}"
    return "; ".join(f"{verdict} at {lines[0].of} = {', '.join(at)}" for verdict, at in places.items())


def text(value: float | str | None) -> str:
    """A number or a sentence as a reader sees it."""
    return "" if value is None else value if isinstance(value, str) else f"{value:.4g}"
