"""The report of an anonymized table of people: what its audit.json says, as a page. A pure function of plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from kgather._report import plots
from kgather._report.layout import Figure, Table, Verdict, filled
from kgather._report.page import files_table, parameters_table, promised_table, records
from kgather._report.text import finite, number, plain, share

_MOST_SIZES = 200
_GLOSSARY = (
    (
        "Quasi-identifier",
        "A column by which somebody may know a person: age, place, job. These columns are generalized.",
    ),
    (
        "Class",
        "All rows that show the same in all quasi-identifiers. With k-anonymity no class has fewer than k rows.",
    ),
    (
        "Loss (NCP)",
        "The normalized certainty penalty: 0 for a cell that is shown as it is, 1 for one that tells nothing; the mean "
        "over all cells.",
    ),
    (
        "Entropy",
        "What the cells leave open, in bits, as a share of what they would leave open if they showed nothing. It knows "
        "which values are frequent, which the loss does not.",
    ),
    (
        "Prosecutor, journalist, marketer",
        "The prosecutor knows that a person is in the table and looks for the row. The journalist takes some row and "
        "looks for its person among a whole population. The marketer takes all rows at once, and counts how many are "
        "picked rightly.",
    ),
)
_COSTS = {
    "average_class_size": "Mean size of the classes, divided by k; 1 is the least",
    "discernibility": "Sum of the squared sizes of the classes",
    "entropy": "Entropy: what the cells leave open, as a share of all",
}
_COLUMN_HEADS = ("loss", "entropy", "distance", "moved")
_CHANCES = (
    ("prosecutor", "Prosecutor: the largest chance to pick the row of a person who is known to be in the table"),
    ("journalist", "Journalist, estimated: the largest chance that a row is that of a person who looks like it"),
    ("journalist_mean", "Journalist, estimated: the same, on average over the rows"),
    ("population_journalist", "Journalist with the population: the largest chance that a row is that of a person"),
    ("population_marketer", "Marketer with the population: rows that are named rightly"),
    ("marketer", "Marketer: rows that are picked rightly if one is drawn in each class"),
)
_READ = (
    ("homogeneity", "the class has one value, which tells it of everybody in the class"),
    ("confident", "the class has one value more than half the time"),
)
_BACKGROUND = (
    ("one_known", "the own value is likelier than not, once a wrong one is ruled out"),
    ("two_known", "the same, once two wrong ones are"),
    ("one_known_certain", "nothing but the own value is left, once a wrong one is ruled out"),
    ("two_known_certain", "the same, once two wrong ones are"),
)


def render_table(said: Mapping[str, Any]) -> str:
    """The report of a table as one HTML file, from what audit.json says. Keys that are not known are ignored."""
    report, risks = _mapping(said, "report"), _mapping(said, "risks")
    verdict, sentences = _verdict(said, report)
    sizes = [
        (int(size), int(classes))
        for size, classes in said.get("class_sizes") or []
        if isinstance(size, int) and isinstance(classes, int) and size > 0
    ]
    return filled(
        "table.html.j2",
        {
            "version": plain(said.get("kgather_version", "of an unknown version")),
            "verdict": verdict,
            "sentences": sentences,
            "sections": [
                ("columns", "What was read"),
                ("promised", "What was promised"),
                ("not-promised", "What is not promised"),
                ("cost", "What it cost"),
                ("attacks", "What attackers get"),
                ("classes", "Classes by size"),
                ("reading", "How to read this page"),
                ("parameters", "Parameters and versions"),
                ("files", "Files"),
            ],
            "columns": _columns(said, report),
            "promised": promised_table(said),
            "not_promised": [plain(sentence) for sentence in said.get("not_promised") or []],
            "cost": _cost(report),
            "cost_of_columns": _cost_of_columns(report),
            "chances": _chances(risks),
            "read_off": _read_off(risks),
            "minimality": _minimality(risks),
            "size_plot": _sizes(said, sizes),
            "glossary": _GLOSSARY,
            "parameters": parameters_table(said),
            "files": files_table(said),
        },
    )


def _mapping(said: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = said.get(key)
    return found if isinstance(found, Mapping) else {}


def _verdict(said: Mapping[str, Any], report: Mapping[str, Any]) -> tuple[Verdict, list[str]]:
    checks = records(said, "checks")
    broken = [plain(check.get("check")) for check in checks if check.get("passed") is not True]
    if not checks:
        return Verdict("No promise was checked", False), ["Do not hand the table out because of this report."]
    if broken or said.get("passed", True) is not True:
        told = (
            f"{len(broken):,} of {len(checks):,} checks failed: {'; '.join(broken)}." if broken else "The audit failed."
        )
        return Verdict("The promises were not kept", False), [told, "Do not hand this table out."]
    k = said["parameters"].get("k")
    about = f"The table has about {number(report.get('rows'))} rows in {number(report.get('classes'))} classes; "
    about += f"about {number(report.get('suppressed'))} rows show nothing of quasi-identifiers."
    if not isinstance(k, int) or k < 2:
        return Verdict("Kept, but not anonymous", False), ["With k = 1 every person may stand alone.", about]
    others = "one other" if k == 2 else f"{k - 1:,} others"
    return Verdict("The promises were kept", True), [
        f"Nobody stands alone: in all quasi-identifiers together each row looks exactly like at least {others} "
        f"(k = {k:,}). Whoever knows these columns of a person finds no fewer than {k:,} rows that may be meant.",
        f"All {len(checks):,} promises were measured on the finished table and kept.",
        about,
    ]


def _columns(said: Mapping[str, Any], report: Mapping[str, Any]) -> Table:
    parameters = said["parameters"]
    read = _mapping(report, "columns")
    rows: list[list[str | Verdict]] = [
        [plain(name), "quasi-identifier, generalized", plain(_mapping(read, name).get("read", "not said"))]
        for name in parameters.get("quasi_identifiers") or {}
    ]
    rows += [[plain(name), "sensitive, shown as it is", ""] for name in parameters.get("sensitive") or {}]
    rows += [[plain(name), "other, shown as it is", ""] for name in parameters.get("others") or []]
    rows += [[plain(name), "identifier, left out", ""] for name in parameters.get("identifiers") or []]
    if parameters.get("unit"):
        rows.append([plain(parameters["unit"]), "names people, left out", ""])
    return Table("Columns and their roles", [("Column", "text"), ("Role", "text"), ("Read as", "text")], rows)


def _cost(report: Mapping[str, Any]) -> Table | None:
    costs = _mapping(report, "costs")
    rows: list[list[str | Verdict]] = []
    if finite(report.get("loss")) is not None:
        rows.append(["Loss (NCP): 0 for the table as it is, 1 for one that tells nothing", number(report["loss"])])
    rows += [[told, number(costs[name])] for name, told in _COSTS.items() if finite(costs.get(name)) is not None]
    for name, value in costs.items():
        asked = str(name).removeprefix("query_error_").removesuffix("_median")
        if str(name).startswith("query_error_") and asked.isdigit():
            of = "1 column" if asked == "1" else f"{asked} columns"
            which = "half are off by no more than" if str(name).endswith("_median") else "mean error"
            rows.append([f"Counts of rows by {of}, asked at random: {which}", share(value)])
    return Table("All columns together", [("Measure", "text"), ("Value", "number")], rows) if rows else None


def _cost_of_columns(report: Mapping[str, Any]) -> Table | None:
    rows: list[list[str | Verdict]] = [
        [plain(name), *(number(told.get(each), "–") for each in _COLUMN_HEADS)]
        for name, told in _mapping(report, "columns").items()
        if isinstance(told, Mapping)
    ]
    heads = ("Loss", "Entropy", "Distance of the distributions", "Moved along the line")
    return (
        Table("By column", [("Column", "text"), *((head, "number") for head in heads)], rows) if rows else None
    )  # fmt: skip


def _chances(risks: Mapping[str, Any]) -> Table | None:
    rows: list[list[str | Verdict]] = [
        [told, share(risks[name])] for name, told in _CHANCES if finite(risks.get(name)) is not None
    ]
    return Table("Finding a row", [("Attacker", "text"), ("Chance", "number")], rows) if rows else None


def _read_off(risks: Mapping[str, Any]) -> Table | None:
    rows: list[list[str | Verdict]] = []
    for name in dict.fromkeys([*_mapping(risks, "homogeneity"), *_mapping(risks, "background")]):
        rows += [[plain(name), told, share(_mapping(risks, key).get(name))] for key, told in _READ]
        known = _mapping(_mapping(risks, "background"), name)
        rows += [[plain(name), told, share(known[key])] for key, told in _BACKGROUND if key in known]
    heads = [("Sensitive column", "text"), ("What an attacker reads", "text"), ("Of the rows", "number")]
    return Table("Reading a sensitive value", heads, rows) if rows else None  # type: ignore[arg-type]


def _minimality(risks: Mapping[str, Any]) -> Table | None:
    rows: list[list[str | Verdict]] = []
    for name, told in _mapping(risks, "minimality").items():
        if not isinstance(told, Mapping):
            continue
        for title, key in (
            ("named rightly", "right"),
            ("the most that is believed of somebody", "most"),
        ):
            rows.append([plain(name), title, share(told.get(key)), share(told.get(f"{key}_by_reading"))])
        sure = "surer_than_0.95"
        rows.append(
            [
                plain(name),
                "people of whom it is surer than .95",
                number(told.get(sure)),
                number(told.get(f"{sure}_by_reading")),
            ]
        )
    heads = [
        ("Sensitive column", "text"), ("Measure", "text"), ("Who knows the algorithm", "number"),
        ("Who does not", "number"),
    ]  # fmt: skip
    return Table("People in classes that were merged", heads, rows) if rows else None  # type: ignore[arg-type]


def _sizes(said: Mapping[str, Any], sizes: Sequence[tuple[int, int]]) -> Figure | None:
    if not sizes:
        return None
    k = said["parameters"].get("k")
    listed = [(low, low, classes) for low, classes in sizes]
    if len(sizes) > _MOST_SIZES:
        listed = plots.binned(sizes)
    table = Table(
        "Classes by size",
        [("Rows in the class", "number"), ("Classes", "number")],
        [[f"{low:,}" if low == high else f"{low:,} to {high:,}", f"{classes:,}"] for low, high, classes in listed],
    )
    drawing = plots.group_sizes(sizes, k if isinstance(k, int) else None, ("rows", "class", "classes"))
    return Figure.of(drawing, table)
