"""The report of a release: what audit.json says, as a page for people who decide about handing a release out.

A pure function of plain data: it opens no file and no database, and shows known keys only, so nothing that is not in
the audit can get onto the page. The text is the same for the same data; plots are with the same matplotlib.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kgather._forms import forms
from kgather._methods import registered
from kgather._report import plots
from kgather._report.layout import Figure, Kind, Table, Verdict, filled
from kgather._report.sweep_page import loss_figures, measured_table, recommendation
from kgather._report.text import finite, number, plain, setting, share

_ROLES = ("user", "item", "rating", "time")
_ITEM_IDS = (
    "What people rated, as a film or a product. An item id is published as it was read, so it must not name or lead "
    "to a person."
)
_RATES = ("user", "group", "matched")
_MOST_ATTACKS_DRAWN = 24
_MOST_SIZES_LISTED = 200
_ALONE = "users who stand alone"  # the check of methods with levels

_GLOSSARY = (
    (
        "k-anonymity",
        "Every person in the release looks like at least k - 1 others in it. Somebody who knows what the release "
        "shows about a person cannot narrow the search down to fewer than k people.",
    ),
    (
        "Equivalence class",
        "All people who look the same in a release. k-anonymity means that no class has fewer than k people.",
    ),
    (
        "Group",
        "People whom kgather put together, and for whom the release shows the same values. A group is an equivalence "
        "class, or part of one.",
    ),
    (
        "Re-identification",
        "Finding out which row or group of a release belongs to a known person. Finding the group is less than finding "
        "the person: within a group of k people, a guess is right once in k times.",
    ),
    (
        "Discernibility",
        "A measure of cost: each person counts as many times as there are people in that person's class, and all of "
        "these are added up. Smaller classes give a smaller number. The least is the number of people times k.",
    ),
    (
        "Entries repeated",
        "How many values the release has if every person gets a row of the group's values. Compare it with the number "
        "of ratings in the original.",
    ),
    (
        "Chance level",
        "How often guessing alone would be right. An attack that does no better than chance has learnt nothing.",
    ),
)
_MEASURES = {
    "group": "the person's group",
    "matched": "an item with a rater in common",
    "advantage": "who is in the data (advantage)",
    "exact": "cells that show an exact rating",
    "learnt": "what the group or class tells of the person",
    "changed_auc": "items that one person more rated (AUC)",
    "existence_auc": "whether one person more rated an item (AUC)",
    "sign_auc": "whether a rating is high or low (AUC)",
    "sign_in": "a rating that is not known: high or low (AUC)",
}
_FARTHEST = {
    "farthest_tenth": "in the tenth of the groups farthest from the middle",
    "farthest_3_percent": "in the farthest 3%",
}
_QUESTIONS = {
    "singling out": (
        "Singling out",
        "Can somebody’s place in the release be found? Whoever finds the group has not found the person: in a group of "
        "k people a guess is right once in k times. People in groups far from all others are found more often.",
    ),
    "linkability": (
        "Linkability",
        "Can two pieces of data be seen to be about the same person, within the release or across two?",
    ),
    "inference": (
        "Inference",
        "Can something be told about a person that was not known: that the person is in the data, or a rating? An AUC "
        "of 0.5 is what a coin gives, 1 is certainty.",
    ),
}
# The kinds of attack by the word that their names begin with.
_ATTACKS = {
    "distance": "Names whoever's shown values are nearest to the known ratings.",
    "linkage": "Knows the whole row of a person and names the nearest row of the release.",
    "scoring": "Weighs what is known by how rare it is, and names a match only if one stands out (Narayanan and "
    "Shmatikov).",
    "label": "Knows some items that a person rated, and the ratings. Keeps only the people or groups that show all of "
    "these items with nearly these ratings, as one compares labels.",
    "structure": "Knows which items a person rated, and keeps whoever shows all of them.",
    "posterior": "Works out how likely each group is, once some ratings of a person are known. Large groups are "
    "likelier, and so are groups that show nearly these ratings (Bayes' rule). Names a match if one group is likelier "
    "than all others together.",
    "items": "Knows items but no ratings. Weighs all groups by how likely their people are to have rated these items.",
    "folded": "Works out a person's whole taste from the known ratings and from what the release says about items, and "
    "looks for that taste.",
    "dated": "Also knows dates, which the original has and a release does not.",
    "own_model": "Does the same with its own model, learnt from public ratings of other people.",
    "intersection": "Holds two releases, and looks for the person in both.",
    "differences": "Holds two releases, and subtracts groups that differ by one person.",
    "membership": "Knows ratings of a person, and tells whether the person is in the data at all. The advantage is the "
    "share of people in the data who are found, less the share of others who are accused.",
    "rare_item": "Knows one item of few raters that a person rated, and looks where its values point. By chance here "
    "means: with an item of as many raters that the person did not rate.",
    "columns": "Knows nothing, and looks for items whose columns are equal or parallel, as they have the same raters.",
    "changes": "Holds two releases, and looks for the items whose values moved.",
    "homogeneity": "Looks at everybody who fits what is known. If they all show the same, the attacker knows it of "
    "the person.",
}
# What the attack of that name counts: key, what it means, whether it is a share of the cells shown.
_DISCLOSURE = (
    ("cells", "Cells looked at, each what is shown of an item for a group or a user", False),
    ("rated", "of these, cells whose item somebody behind them rated", True),
    ("one_rater", "cells with a single rater", True),
    ("exact", "cells that show the exact rating of their only rater", True),
    ("near", "cells that are less than half a step off the rating of their only rater", True),
    ("alike", "cells whose several raters all gave the value shown", True),
    ("worked_out", "cells whose only rating follows from the value and the size of the group", True),
)


def render(said: Mapping[str, Any]) -> str:
    """The report as one HTML file, from what audit.json says.

    Needs parameters, counts and checks; of all else, what is missing is told as missing or left out. Keys that are not
    known are ignored.
    """
    return _page(json.dumps(said))


# Drawing takes a second, and whoever writes a page compares it with its audit at once.
@lru_cache(maxsize=1)
def _page(audit: str) -> str:
    said = json.loads(audit)
    attacks = _attack_rows(said)
    sweep = records(said, "sweep")
    verdict, sentences = _verdict(said)
    sizes = _sizes(said)
    sections = [
        *([("read", "What was read")] if isinstance(said.get("read"), Mapping) else []),
        ("promised", "What was promised"),
        ("not-promised", "What is not promised"),
        ("cost", "What it cost"),
        ("attacks", "What attackers get"),
        ("groups", "Groups by size"),
        *([("sweep", "Loss by k")] if sweep else []),
        ("rows", "Rows that were not used"),
        ("reading", "How to read this page"),
        ("parameters", "Parameters and versions"),
        ("files", "Files"),
    ]
    finding = [attack for attack in attacks if any(_interval(attack.get(rate)) for rate in _RATES)]
    # An attack that finds no people has its line among the best, and its numbers among the further measures.
    naming = [attack for attack in finding if any(_interval(attack.get(rate)) for rate in ("user", "group"))]
    attacked = _attack_table(naming or finding) if finding else None
    return filled(
        "page.html.j2",
        {
            "version": plain(said.get("kgather_version", "of an unknown version")),
            "subject": _subject(said),
            "verdict": verdict,
            "sentences": [*sentences, *_risks(said, finding)],
            "sections": sections,
            "read_files": _read_files(said),
            "read_roles": _read_roles(said),
            "promised": promised_table(said),
            "proven": _proven(said),
            "not_promised": [plain(sentence) for sentence in said.get("not_promised") or []],
            "cost": _cost(said),
            "best": _best(said),
            "attacked": attacked,
            "attack_plot": _attack_figure(naming, attacked),
            "attack_kinds": _attack_kinds(finding),
            "details": _details(attacks),
            "disclosure": _disclosure(said),
            "groups_told": _groups_told(said),
            "size_plot": _size_figure(said, sizes),
            "sweep": measured_table(sweep, "Methods and sizes of group") if sweep else None,
            "sweep_plots": loss_figures(sweep),
            "recommendation": recommendation(sweep),
            "rows_told": _rows_told(said),
            "rejected": _rejected(said),
            "glossary": _GLOSSARY,
            "parameters": parameters_table(said),
            "files": files_table(said),
        },
    )


def records(said: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The entries of a list that are mappings."""
    return [record for record in said.get(key) or [] if isinstance(record, Mapping)]


def _count(said: Mapping[str, Any], name: str) -> int | None:
    value = said["counts"].get(name)
    return value if isinstance(value, int) else None


def _told(count: int | None, one: str, many: str) -> str:
    return f"an unknown number of {many}" if count is None else f"{count:,} {one if count == 1 else many}"


def _subject(said: Mapping[str, Any]) -> str:
    return (
        f"{_told(_count(said, 'members'), 'person', 'people')} in {_told(_count(said, 'groups'), 'group', 'groups')}, "
        f"{_told(_count(said, 'items'), 'item', 'items')} and {_told(_count(said, 'staged_rows'), 'rating', 'ratings')}"
    )


def _verdict(said: Mapping[str, Any]) -> tuple[Verdict, list[str]]:
    """Whether the promises were kept, and what that means, in words that need no knowledge of the field."""
    checks = records(said, "checks")
    broken = [check for check in checks if check.get("passed") is not True]
    promises = [check for check in checks if check.get("promised") is not None]
    if not promises:
        return Verdict("No promise was checked", False), [
            "No promise was checked for this report. Do not hand the release out because of it."
        ]
    if broken or said.get("passed", True) is not True:
        names = "; ".join(plain(check.get("check")) for check in broken)
        told = f"{len(broken):,} of {len(checks):,} checks failed: {names}." if broken else "The audit failed."
        return Verdict("The promises were not kept", False), [told, "Do not hand this release out."]
    kept = f"All {len(promises):,} promises were measured on the finished release and kept."
    meaning, anonymous = _meaning(said)
    return Verdict("The promises were kept" if anonymous else "Kept, but not anonymous", anonymous), [meaning, kept]


def _meaning(said: Mapping[str, Any]) -> tuple[str, bool]:
    """What k means for a person in a release of this form, and whether it is anonymity at all."""
    parameters = said["parameters"]
    k = parameters.get("k")
    form = forms().get(str(parameters.get("homogenize")))
    method = registered().get(str(parameters.get("method")))
    if form is not None and not form.anonymous:
        return form.meaning, False
    if method is not None and method.levels:
        alone = [check.get("measured") for check in records(said, "checks") if check.get("check") == _ALONE]
        if alone == [_count(said, "members")]:
            return "Every person stands alone in this release, as nobody asked for more: there is no anonymity.", False
        return (
            "Every person is in a group at least as large as that person asked for. People who asked for 1 may stand "
            "alone.",
            True,
        )
    if not isinstance(k, int) or k < 2:
        return "With k = 1 every person may stand alone in this release: there is no anonymity.", False
    others = "one other" if k == 2 else f"{k - 1:,} others"
    if form is not None and form.meaning:
        epsilon = number(parameters.get("epsilon"))
        return form.meaning.format(others=others, k=f"{k:,}", epsilon=epsilon), True
    generalized = form is not None and form.rows == "nobody"
    what = "the columns that were generalized" if generalized else "all that the release shows of people"
    personal = parameters.get("personal", "as_is") if parameters.get("personal_columns") else None
    # Personal attributes as they are stand beside, whatever k is; those of a table of their own are not linked.
    what += ", personal attributes aside," if personal == "as_is" else ","
    if personal == "separate":
        what = "the ratings, and in the table of personal attributes by itself,"
    return (
        f"Nobody stands alone: in {what} each person looks exactly like at least {others} (k = {k:,}). Whoever "
        f"searches the release for a person finds no fewer than {k:,} people who may be meant, and cannot tell from "
        "the release which one is.",
        True,
    )


def _read(said: Mapping[str, Any]) -> Mapping[str, Any]:
    read = said.get("read")
    return read if isinstance(read, Mapping) else {}


def _read_files(said: Mapping[str, Any]) -> Table | None:
    """The files that the ratings came from, and which of their columns became what."""
    rows = []
    for file in records(_read(said), "files"):
        said_columns = file.get("columns")
        columns = said_columns if isinstance(said_columns, Mapping) else {}
        taken = [f"{role} = {plain(columns[role])}" for role in _ROLES if columns.get(role) is not None]
        rows.append(
            [
                plain(file.get("file")),
                plain(file.get("changed", "not said")),
                plain(file.get("format")),
                ", ".join(taken),
                number(file.get("rows")),
                number(file.get("set_aside")),
                plain(file.get("keyed_sha256", "not said")),
            ]
        )
    heads: list[tuple[str, Kind]] = [
        ("File", "text"),
        ("Last changed", "text"),
        ("Read as", "text"),
        ("Columns, by name or place", "text"),
        ("Rows", "number"),
        ("Rows that cannot be read", "number"),
        ("Keyed checksum", "text"),
    ]
    return Table("Files that were read", heads, rows) if rows else None


def _read_roles(said: Mapping[str, Any]) -> Table | None:
    """How the ids of people and of items look, so that somebody sees it where one was taken for the other."""
    read = _read(said)
    rows = []
    for role, meaning in (("users", "The people. Their ids are not in the release."), ("items", _ITEM_IDS)):
        about = read.get(role)
        if isinstance(about, Mapping):
            said_shapes = about.get("shapes")
            shapes = said_shapes if isinstance(said_shapes, Sequence) else []
            rows.append(
                [
                    role,
                    number(about.get("count")),
                    plain(about.get("type")),
                    ", ".join(plain(shape) for shape in shapes) or "no shape that k of them share",
                    meaning,
                ]
            )
    heads: list[tuple[str, Kind]] = [
        ("Ids of", "text"),
        ("How many", "number"),
        ("Type", "text"),
        ("They look like", "text"),
        ("What they are", "text"),
    ]
    return Table("Ids, with letters as A or a and digits as #", heads, rows) if rows else None


def _risks(said: Mapping[str, Any], attacks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the attacks came to, in a sentence or two: kept promises are not all there is to know."""
    user, group, original = (
        max((rate.value for row in attacks if row["on"] == on and (rate := _interval(row.get(who)))), default=None)
        for who, on in (("user", "release"), ("group", "release"), ("user", "original"))
    )
    if user is not None:
        told = f"Of the attacks tried, the best found the person in {share(user)} of the cases"
        told += f" and the person's group in {share(group)}" if group is not None else ""
        yield told + (f"; in the original data, the person in {share(original)}." if original is not None else ".")
    exact = finite(_counted(said).get("exact"))
    if exact:
        yield f"{share(exact)} of the values shown are the exact rating of a single person."


def promised_table(said: Mapping[str, Any]) -> Table:
    """The checks of an audit."""
    rows: list[list[str | Verdict]] = []
    for check in records(said, "checks"):
        promised, passed = check.get("promised"), check.get("passed") is True
        verdict = Verdict("to be known") if promised is None else Verdict("kept" if passed else "NOT KEPT", passed)
        if promised is None and not passed:
            verdict = Verdict("FAILED", False)
        rows.append([plain(check.get("check")), number(promised, "no promise"), number(check.get("measured")), verdict])
    return Table(
        "Checks of the audit",
        [("Check", "text"), ("Promised", "number"), ("Measured", "number"), ("Verdict", "verdict")],
        rows,
    )


def _proven(said: Mapping[str, Any]) -> tuple[str, Table] | None:
    """The accounting of a private item side: what it promises, in a sentence, and what each measurement cost."""
    found = said.get("item_privacy")
    if not isinstance(found, Mapping):
        return None
    told = (
        f"What is shown of items is differentially private: epsilon {number(found.get('epsilon'))}, delta "
        f"{number(found.get('delta'))}, where two sets of data are neighbours if they differ by "
        f"{plain(found.get('neighbours'))}. The charges add up to rho {number(found.get('rho'))}, an epsilon of "
        f"{number(found.get('epsilon_of_charges'))} at that delta. Not covered: {plain(found.get('not_covered'))}."
    )
    heads: list[tuple[str, Kind]] = [
        ("Measurement", "text"),
        ("Numbers", "number"),
        ("Most that one user moves (L2)", "number"),
        ("Standard deviation of the noise", "number"),
        ("rho", "number"),
    ]
    rows = [
        [
            plain(charge.get("what")),
            *(number(charge.get(name)) for name in ("numbers", "sensitivity", "deviation", "rho")),
        ]
        for charge in records(found, "charges")
    ]
    return told, Table("What was measured of people for the items' vectors, and what it cost", heads, rows)


def _cost(said: Mapping[str, Any]) -> Table | None:
    rows = [
        [_words(metric.get("metric")), number(metric.get("value")), plain(metric.get("about") or "")]
        for metric in records(said, "metrics")
    ]
    heads: list[tuple[str, Kind]] = [("Metric", "text"), ("Value", "number"), ("What it means", "text")]
    return Table("Loss of the release", heads, rows) if rows else None


def _attack_rows(said: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The results of attacks, each with what it was tried on; they come as one list or as one for each."""
    attacks = said.get("attacks")
    if isinstance(attacks, Mapping):
        rows = [
            {**row, "on": on}
            for key, on in (("results", "release"), ("original", "original"))
            for row in records(attacks, key)
        ]
    else:
        rows = [{**row, "on": row.get("on") or "release"} for row in records(said, "attacks")]
    return [row for row in rows if row.get("attack") is not None]


def _known(attack: Mapping[str, Any]) -> str:
    return plain(attack.get("knowledge") if attack.get("knowledge") is not None else "not said")


def _interval(rate: object) -> plots.Interval | None:
    if not isinstance(rate, Mapping):
        return None
    value = finite(rate.get("value"))
    if value is None:
        return None
    low, high = finite(rate.get("low")), finite(rate.get("high"))
    return plots.Interval(value, value if low is None else low, value if high is None else high)


def _rate(rate: object, none: str = "–") -> str:
    interval = _interval(rate)
    if interval is None:
        return none
    if interval.low == interval.high:
        return share(interval.value)
    low, high = share(interval.low).removeprefix("< "), share(interval.high)
    return f"{share(interval.value)} ({low.removesuffix('%')}–{high})"


def _attack_table(attacks: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        "Attacks, with 95% intervals",
        [
            ("Attack", "text"),
            ("Knows", "text"),
            ("On the", "text"),
            ("People tried", "number"),
            ("Person found", "number"),
            ("By chance", "number"),
            ("Group found", "number"),
            ("By chance", "number"),
            ("Match named", "number"),
            ("Wrong among these", "number"),
            ("Seed", "number"),
        ],
        [
            [
                plain(attack["attack"]),
                _known(attack),
                plain(attack["on"]),
                number(attack.get("targets"), "–"),
                _rate(attack.get("user")),
                share(attack.get("chance_user"), "–"),
                _rate(attack.get("group")),
                share(attack.get("chance_group"), "–"),
                _rate(attack.get("matched")),
                _rate(attack.get("wrong_among_matched")),
                setting(attack["seed"]) if attack.get("seed") is not None else "–",
            ]
            for attack in attacks
        ],
    )


def _bests(said: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    attacks = said.get("attacks")
    return records(attacks, "best") if isinstance(attacks, Mapping) else []


def _best(said: Mapping[str, Any]) -> list[tuple[str, str, Table]]:
    """The strongest attacker of each kind, by the question that data protection asks: the question, what it means, and
    what each attacker knows, how often it is right, on average and in the worst case, and what guessing gives.
    """
    heads: list[tuple[str, Kind]] = [
        ("Attacker", "text"),
        ("Knows", "text"),
        ("Finds", "text"),
        ("How often", "number"),
        ("By chance", "number"),
        ("Worst case", "text"),
        ("Tried on", "number"),
    ]
    tables = []
    for question, (heading, meaning) in _QUESTIONS.items():
        rows = [
            [
                f"{plain(best.get('by') or best.get('attack')).replace('_', ' ')} ({plain(best.get('kind'))})",
                _known(best),
                _MEASURES.get(str(best.get("measure")), plain(best.get("measure"))),
                number(finite(best.get("value"))) if _is_auc(best) else _rate(best),
                number(finite(best.get("chance"))) if _is_auc(best) else share(best.get("chance"), "–"),
                _worst(best),
                number(best.get("targets"), "–"),
            ]
            for best in _bests(said)
            if best.get("question") == question
        ]
        if rows:
            tables.append((heading, meaning, Table(f"{heading}: the best attacker of each kind", heads, rows)))
    return tables


def _is_auc(best: Mapping[str, Any]) -> bool:
    return str(best.get("measure")).endswith("auc") or best.get("measure") == "sign_in"


def _worst(best: Mapping[str, Any]) -> str:
    """What the people are exposed to who are easiest to find."""
    worst = best.get("worst")
    if not isinstance(worst, Mapping):
        return "–"
    told = [
        f"{words}: group {share(worst[name])}, person {share(worst.get(f'{name}_user'), '–')}"
        for name, words in _FARTHEST.items()
        if name in worst
    ]
    return "; ".join(told) or "–"


def _attack_figure(attacks: Sequence[Mapping[str, Any]], table: Table | None) -> Figure | None:
    """Release and original of the same attack and knowledge in one row."""
    pairs: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for attack in attacks:
        on = "original" if attack["on"] == "original" else "release"
        pairs.setdefault((plain(attack["attack"]), _known(attack)), {})[on] = attack
    rows = []
    for (name, known), found in pairs.items():
        release, original = found.get("release", {}), found.get("original", {})
        user, group, of_original = (
            _interval(rate) for rate in (release.get("user"), release.get("group"), original.get("user"))
        )
        if user or group or of_original:
            label = plots.label_of(f"{name}, knows {known}")
            rows.append(plots.AttackMarks(label, user, group, of_original, finite(release.get("chance_user"))))
    if not 0 < len(rows) <= _MOST_ATTACKS_DRAWN:
        return None
    return Figure.of(plots.attacks(rows), table)


def _details(attacks: Sequence[Mapping[str, Any]]) -> Table | None:
    """What attacks measured beside finding people, release and original side by side."""
    measured: dict[tuple[str, str, str], dict[str, object]] = {}
    for attack in attacks:
        details = attack.get("details")
        if isinstance(details, Mapping) and attack["attack"] != "disclosure":
            for name, value in details.items():
                key = (plain(attack["attack"]), _known(attack), _words(name))
                measured.setdefault(key, {})["original" if attack["on"] == "original" else "release"] = value
    rows = [[*key, *(number(found.get(on), "–") for on in ("release", "original"))] for key, found in measured.items()]
    heads: list[tuple[str, Kind]] = [
        ("Attack", "text"),
        ("Knows", "text"),
        ("Measure", "text"),
        ("Release", "number"),
        ("Original", "number"),
    ]
    return Table("Further measures of attacks; shares are of 1", heads, rows) if rows else None


def _attack_kinds(attacks: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    names = dict.fromkeys(plain(attack["attack"]).lower() for attack in attacks)
    used = [kind for kind in _ATTACKS if any(name.startswith(kind) for name in names)]
    kinds = [(kind.capitalize(), _ATTACKS[kind]) for kind in used]
    if any(_interval(attack.get("matched")) for attack in attacks):
        kinds.append(
            (
                "Match named, wrong among these",
                "An attacker may name a match only where one stands out. The first is for how many of the people tried "
                "that was so, the second how many of these matches were wrong: the more, the less can be relied on.",
            )
        )
    return kinds


def _counted(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the attack named disclosure counted on the release; it may be told under a key of its own, too."""
    rows = [row for row in _attack_rows(said) if row["attack"] == "disclosure" and row["on"] == "release"]
    told = [*(row.get("details") for row in rows), said.get("disclosure")]
    return next((one for one in told if isinstance(one, Mapping)), {})


def _disclosure(said: Mapping[str, Any]) -> Table | None:
    disclosure = _counted(said)
    rows = [
        [meaning, share(disclosure[key]) if is_share else number(disclosure[key])]
        for key, meaning, is_share in _DISCLOSURE
        if key in disclosure
    ]
    heads: list[tuple[str, Kind]] = [("What", "text"), ("Measured", "number")]
    return Table("Ratings that can be read off the release", heads, rows) if rows else None


def _words(key: object) -> str:
    return plain(key).replace("_", " ")


def _groups_told(said: Mapping[str, Any]) -> str:
    groups, members, largest = (_count(said, name) for name in ("groups", "members", "largest_group"))
    told = f"{_told(members, 'person is', 'people are')} in {_told(groups, 'group', 'groups')}"
    if groups and members is not None:
        told += f", {number(round(members / groups, 1))} in a group on average"
    return f"{told}. The largest group has {number(largest, 'an unknown number of')} members."


def _sizes(said: Mapping[str, Any]) -> list[tuple[int, int]]:
    return sorted(
        (row["size"], row["groups"])
        for row in records(said, "group_sizes")
        if isinstance(row.get("size"), int) and isinstance(row.get("groups"), int) and row["groups"] > 0
    )


def _size_figure(said: Mapping[str, Any], sizes: list[tuple[int, int]]) -> Figure | None:
    if not sizes:
        return None
    k = said["parameters"].get("k")
    listed = [(low, low, groups) for low, groups in sizes]
    if len(sizes) > _MOST_SIZES_LISTED:
        listed = plots.binned(sizes)
    table = Table(
        "Groups by size",
        [("Users in the group", "number"), ("Groups", "number")],
        [[f"{low:,}" if low == high else f"{low:,} to {high:,}", f"{groups:,}"] for low, high, groups in listed],
    )
    return Figure.of(plots.group_sizes(sizes, k if isinstance(k, int) else None), table)


def _rows_told(said: Mapping[str, Any]) -> str:
    read, staged, rejected = (_count(said, name) for name in ("read_rows", "staged_rows", "rejected_rows"))
    told = "Numbers of rows are rounded: an exact one would tell a single rating. "
    told += f"{_told(read, 'row', 'rows')} of the input {'was' if read == 1 else 'were'} read. "
    told += (
        "None, or fewer than five, were rejected."
        if rejected == 0
        else f"{_told(rejected, 'row', 'rows')} could not be used."
    )
    aside = _aside(said)
    if staged is not None:
        told += f" {staged:,} {'rating' if staged == 1 else 'ratings'} went in."
    return told + (f" {_told(aside, 'user is', 'users are')} not part of the release." if aside else "")


def _aside(said: Mapping[str, Any]) -> int:
    users, members = _count(said, "users"), _count(said, "members")
    return 0 if users is None or members is None else max(users - members, 0)


def _rejected(said: Mapping[str, Any]) -> Table | None:
    reasons = said["counts"].get("rejected_by_reason")
    if not isinstance(reasons, Mapping) or not reasons:
        return None
    rows = [[plain(reason), number(rows)] for reason, rows in reasons.items()]
    return Table("Rejected rows by reason", [("Reason", "text"), ("Rows", "number")], rows)


def parameters_table(said: Mapping[str, Any]) -> Table:
    """What a release was made with."""
    return Table(
        "What the release was made with",
        [("Parameter", "code"), ("Value", "code")],
        [
            ["kgather version", plain(said.get("kgather_version", "unknown"))],
            *([plain(name), setting(value)] for name, value in said["parameters"].items()),
            *_scale(said),
        ],
    )


def _scale(said: Mapping[str, Any]) -> Iterator[list[str]]:
    scale = said.get("scale")
    if isinstance(scale, Mapping):
        step = finite(scale.get("step"))
        told = f"{number(scale.get('min'))} to {number(scale.get('max'))}"
        told += ", not evenly spaced" if step is None else f" in steps of {number(step)}"
        yield ["scale", told + (", declared" if scale.get("declared") is True else ", inferred from the ratings")]


def files_table(said: Mapping[str, Any]) -> Table | None:
    """The files of a release with their checksums; None where they are not said."""
    files = said.get("files")
    if not isinstance(files, Mapping) or not files:
        return None
    rows = [[plain(name), plain(checksum)] for name, checksum in files.items()]
    return Table("Files and checksums", [("File", "code"), ("SHA-256", "code")], rows)
