"""`kgather attack`."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kgather import _stopping as stopping
from kgather._cli.console import StageProgress, print_json, print_line, say
from kgather._cli.reading import load_options, with_reading
from kgather._cli.setting_options import pairs
from kgather._errors import InputError
from kgather._release.reading import holds_table
from kgather.udfs._shared.options import whole

if TYPE_CHECKING:  # the package brings the kernels, which take seconds to load
    from kgather._attacks.results import AttackReport, AttackResult, Rate

NOT_KEPT = 3

_ORIGINAL = "Reading the originals"
_ATTACKER = "The attacker"
_TABLE = "Releases of tables of people"
_GATES = "Gates: exit with 3 where an attack finds more"


@with_reading()
def command(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of the release.")],
    original: Annotated[
        list[str],
        typer.Option(
            "--original",
            metavar="FILE",
            help="What was published, once for each file, or the work.duckdb that publish --keep-work kept.",
        ),
    ],
    known: Annotated[
        str,
        typer.Option(
            "--known", metavar="N,N,...", help="Ratings of a target that are known.", rich_help_panel=_ATTACKER
        ),
    ] = "1,2,4,8,16,32",
    noisy: Annotated[
        bool, typer.Option("--noisy", help="Known ratings may be a step off.", rich_help_panel=_ATTACKER)
    ] = False,
    dates: Annotated[
        bool,
        typer.Option(
            "--dates", help="The attacker also knows the dates: runs the attack dated.", rich_help_panel=_ATTACKER
        ),
    ] = False,
    pool: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="all|popular|rare",
            help="Known are any of a user's items, those of the half with most raters, or of the other half.",
            rich_help_panel=_ATTACKER,
        ),
    ] = "all",
    targets: Annotated[
        int, typer.Option("--targets", metavar="N", help="People who are attacked.", rich_help_panel=_ATTACKER)
    ] = 1000,
    seed: Annotated[
        int, typer.Option("--seed", help="Draws the targets and what is known.", rich_help_panel=_ATTACKER)
    ] = 0,
    attacks: Annotated[
        str | None,
        typer.Option(
            "--attacks",
            metavar="A,B,...",
            help="structure, label, scoring, distance, homogeneity, posterior, items, folded, own_model, dated, "
            "linkage, disclosure, row_order, intersection, differences, changes, membership; all that can be run if "
            "not given. Slow, and run only if named: shadows, attribute, existence, pairs.",
            rich_help_panel=_ATTACKER,
        ),
    ] = None,
    shadows: Annotated[
        int,
        typer.Option(
            "--shadows",
            metavar="N",
            help="Shadow releases that shadows and attribute make, or pairs of them that pairs makes.",
            rich_help_panel=_ATTACKER,
        ),
    ] = 100,
    second: Annotated[
        Path | None,
        typer.Option(
            "--second", metavar="RELEASE", help="Another release of the same people.", rich_help_panel=_ATTACKER
        ),
    ] = None,
    second_original: Annotated[
        list[str] | None,
        typer.Option(
            "--second-original", metavar="FILE", help="As --original, of the other.", rich_help_panel=_ATTACKER
        ),
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(
            "--others",
            metavar="FILE",
            help="Ratings of people who are not in the release, for membership.",
            rich_help_panel=_ATTACKER,
        ),
    ] = None,
    original_too: Annotated[
        bool,
        typer.Option(
            "--on-original/--no-on-original",
            help="Show what the same attacks find in the ratings themselves.",
            rich_help_panel=_ATTACKER,
        ),
    ] = True,
    reading: dict[str, Any],
    publish_seed: Annotated[
        int, typer.Option("--publish-seed", help="The --seed of the publication.", rich_help_panel=_ORIGINAL)
    ] = 0,
    second_publish_seed: Annotated[
        int, typer.Option("--second-publish-seed", help="That of the other release.", rich_help_panel=_ORIGINAL)
    ] = 0,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="VAR=VALUE", help="A var the release was made with.", rich_help_panel=_ORIGINAL),
    ] = None,
    max_user: Annotated[
        float | None,
        typer.Option(
            "--max-user-reidentification", metavar="SHARE", help="The right user is named.", rich_help_panel=_GATES
        ),
    ] = None,
    max_group: Annotated[
        float | None,
        typer.Option(
            "--max-group-identification", metavar="SHARE", help="The right group is named.", rich_help_panel=_GATES
        ),
    ] = None,
    max_exact: Annotated[
        float | None,
        typer.Option(
            "--max-exact-rating-disclosure",
            metavar="SHARE",
            help="Cells that show the rating of their only rater.",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_matched: Annotated[
        float | None,
        typer.Option("--max-matched", metavar="SHARE", help="Found, and known to be found.", rich_help_panel=_GATES),
    ] = None,
    max_advantage: Annotated[
        float | None,
        typer.Option(
            "--max-membership-advantage",
            metavar="SHARE",
            help="Members told from others (needs --others).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_shadow: Annotated[
        float | None,
        typer.Option(
            "--max-shadow-advantage",
            metavar="SHARE",
            help="Members told from others by shadow releases (needs --attacks shadows).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_sign: Annotated[
        float | None,
        typer.Option(
            "--max-sign-auc",
            metavar="AUC",
            help="The sign of a rating, all others known (needs --attacks existence).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_existence: Annotated[
        float | None,
        typer.Option(
            "--max-existence-auc",
            metavar="AUC",
            help="That there is a rating, all others known (needs --attacks existence).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_linked: Annotated[
        float | None,
        typer.Option(
            "--max-linked-items",
            metavar="SHARE",
            help="Items of one person linked by their columns, beyond chance.",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_rare: Annotated[
        float | None,
        typer.Option(
            "--max-rare-item-gain",
            metavar="SHARE",
            help="The group found by one rare item, beyond a stranger's item.",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_attribute: Annotated[
        float | None,
        typer.Option(
            "--max-attribute-gain",
            metavar="AUC",
            help="Unknown ratings, better told of who is in (needs --attacks attribute).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_changed: Annotated[
        float | None,
        typer.Option(
            "--max-changed-auc",
            metavar="AUC",
            help="Items that changed between two releases (needs --second).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_newcomer: Annotated[
        float | None,
        typer.Option(
            "--max-newcomer-auc",
            metavar="AUC",
            help="What a newcomer rated, from two releases (needs --second).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            "--hierarchy",
            metavar="COLUMN=FILE",
            help="A hierarchy that the table was anonymized with.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(
            "--population",
            metavar="FILE",
            help="A table of the population, a row a person, for the attack journalist.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option(
            "--sampling-fraction",
            metavar="SHARE",
            help="Or the share of the population that is in the table: estimates that attack.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.json", help="Write the report there, too.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Attack a release the way somebody would who knows a few ratings of a person, or quasi-identifiers.

    Needs what the release was made of, to know when a guess is right; attackers do not have it. Shows how often the
    right user and the right group are named, beside guessing blindly and beside the ratings without names. Of a table
    of people the attacks are linkage, journalist, homogeneity, background and minimality, and --known says how many
    quasi-identifiers are known.
    """
    # Kernels take a moment to import, which --help should not.
    from kgather._attacks.gates import check_attacks, check_limits
    from kgather._attacks.runner import WHEN_NAMED

    limits = {
        name: allowed
        for name, allowed in {
            "user-reidentification": max_user,
            "group-identification": max_group,
            "exact-rating-disclosure": max_exact,
            "matched": max_matched,
            "membership-advantage": max_advantage,
            "shadow-advantage": max_shadow,
            "sign-auc": max_sign,
            "existence-auc": max_existence,
            "linked-items": max_linked,
            "rare-item-gain": max_rare,
            "attribute-gain": max_attribute,
            "changed-auc": max_changed,
            "newcomer-auc": max_newcomer,
        }.items()
        if allowed is not None
    }
    check_limits(limits)
    _check(others, max_advantage, out, targets)
    numbers = _numbers(known)
    names = None if attacks is None else [name.strip() for name in attacks.split(",") if name.strip()]
    options = load_options(reading)
    if holds_table(release):
        from kgather._cli.attack_table import print_table
        from kgather._tables.attacking import attack_table, refuse_of_ratings

        refuse_of_ratings(
            {
                "--noisy": noisy, "--dates": dates, "--from": pool != "all", "--second": second, "--others": others,
                "--set": assignments,
            }
        )  # fmt: skip
        with StageProgress() as progress:
            report = attack_table(
                release, original, pairs("--hierarchy", hierarchy), options, population=population,
                sampling_fraction=sampling_fraction, publish_seed=publish_seed, known=numbers, targets=targets,
                seed=seed, attacks=names, original_too=original_too, report=progress.report,
            )  # fmt: skip
        _finish(release, report, limits, out, print_table, json_output=json_output)
        return
    if hierarchy or population or sampling_fraction is not None:
        msg = "--hierarchy, --population and --sampling-fraction go with the release of a table, not of ratings."
        raise InputError(msg)
    check_attacks(limits, names, WHEN_NAMED)
    from kgather._republishing.opened import Sources, attack_release

    sources = Sources(
        release=release,
        originals=original,
        seed=publish_seed,
        second=second,
        second_originals=second_original or [],
        second_seed=second_publish_seed,
        others=others,
        load_options=options,
        assignments=assignments or [],
        dates=dates or "dated" in (names or ()),
    )
    with StageProgress() as progress:
        report = attack_release(
            sources,
            report=progress.report,
            known=numbers,
            noisy=noisy,
            pool=pool,  # type: ignore[arg-type]  # what is wrong with it is said where it is used
            targets=targets,
            seed=seed,
            attacks=names,
            original_too=original_too,
            shadows=shadows,
        )
    _finish(release, report, limits, out, _print, json_output=json_output)


def _finish(
    release: Path,
    report: "AttackReport",
    limits: Mapping[str, float],
    out: Path | None,
    show: Callable[["AttackReport"], None],
    *,
    json_output: bool,
) -> None:
    """Say and write what was found; exits with 3 where it is more than a gate allows, or than a chain promises."""
    from kgather._attacks.gates import gates

    found = gates(report, limits)
    said: dict[str, Any] = {"release": str(release), **report.as_dict()}
    said["gates"] = [vars(gate) | {"passed": gate.passed} for gate in found]
    if out is not None:
        with stopping.whole:
            out.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
            stopping.written(out)
    if json_output:
        print_json(said)
    else:
        show(report)
    wrong = [gate.sentence for gate in found if not gate.passed]
    wrong += [] if report.chain is None else report.chain["broken"]
    for sentence in wrong:
        say(sentence)
    if wrong:
        raise typer.Exit(NOT_KEPT)


def _check(
    others: str | None,
    max_advantage: float | None,
    out: Path | None,
    targets: int,
) -> None:
    whole("--targets", targets, 1)
    if max_advantage is not None and others is None:
        msg = "--max-membership-advantage has nothing to look at: give --others, ratings of people not in the release."
        raise InputError(msg)
    if out is not None and not out.resolve().parent.is_dir():
        msg = f"{out} cannot be written: {out.resolve().parent} is no folder."
        raise InputError(msg)


def _numbers(known: str) -> list[int]:
    parts = [part.strip() for part in known.split(",") if part.strip()]
    if not parts or not all(part.isdigit() and int(part) > 0 for part in parts):
        msg = f"--known takes whole numbers from 1, as 4,8, not {known!r}."
        raise InputError(msg)
    return [int(part) for part in parts]


def _print(report: "AttackReport") -> None:
    named = [result for result in report.results if result.user is not None]
    table = Table(box=None, pad_edge=False)
    for title in ("attack", "knows"):
        table.add_column(title, no_wrap=True)
    for title in ("user (95%)", "group", "matched", "wrong", "by chance: user", "group"):
        table.add_column(title, justify="right")
    if report.original:
        for title in ("original: user", "matched"):
            table.add_column(title, justify="right")
    for result in named:
        cells = [
            result.attack,
            result.knowledge,
            _interval(result.user),
            _share(result.group),
            _share(result.matched),
            _share(result.wrong_among_matched),
            f"{result.chance_user:.2%}",
            f"{result.chance_group:.2%}",
        ]
        if report.original:
            plain = report.same_on_original(result)
            cells += [_share(plain.user if plain else None), _share(plain.matched if plain else None)]
        table.add_row(*cells)
    if named:
        Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)
        print_line("")
    _print_best(report)
    for line in _lines(report.results):
        print_line(line)
    for users, knowledge in sorted({r.left_out: r.knowledge for r in reversed(report.results) if r.left_out}.items()):
        print_line(f"{users:,} users have too few ratings for {knowledge}: they were left out there.")


_FINDS = {
    "group": "group",
    "matched": "items of one person",
    "advantage": "who is in (advantage)",
    "exact": "exact ratings",
    "learnt": "other ratings",
    "changed_auc": "changed items (AUC)",
    "existence_auc": "that an item was rated (AUC)",
    "sign_auc": "high or low (AUC)",
    "sign_in": "an unknown rating (AUC)",
}


def _print_best(report: "AttackReport") -> None:
    """The strongest attacker of each kind, by the question that it answers, with the worst case beside the mean."""
    table = Table(box=None, pad_edge=False, title="The best attacker of each kind", title_justify="left")
    for title in ("question", "kind", "knows", "attacker", "finds"):
        table.add_column(title, no_wrap=True)
    for title in ("rate (95%)", "by chance", "farthest 10%: group, person", "farthest 3%", "people"):
        table.add_column(title, justify="right")
    for best in report.best():
        is_auc = best.measure.endswith("auc") or best.measure == "sign_in"
        rate = f"{best.value:.3f}" if is_auc else f"{best.value:.2%} ({best.low:.1%}-{best.high:.1%})"
        chance = f"{best.chance:.3f}" if is_auc else f"{best.chance:.2%}"
        if best.measure == "advantage":
            chance = f"up to {chance}"
        worst = [
            f"{best.worst[name]:.1%}, {best.worst[f'{name}_user']:.2%}" if name in best.worst else "-"
            for name in ("farthest_tenth", "farthest_3_percent")
        ]
        finds = _FINDS.get(best.measure, best.measure)
        row = (best.question, best.kind, best.knowledge, best.by or best.attack, finds, rate, chance, *worst)
        table.add_row(*row, f"{best.targets:,}")
    if table.row_count:
        Console(highlight=False, width=None if sys.stdout.isatty() else 240).print(table)
        print_line("")


def _lines(results: "tuple[AttackResult, ...]") -> list[str]:
    """What is no rate of people, in sentences."""
    lines = []
    for result in results:
        told = result.details
        if result.attack == "homogeneity":
            lines.append(
                f"homogeneity, {result.knowledge}: profile identified {_share(result.matched)} (wrong "
                f"{_share(result.wrong_among_matched)}). Other ratings read off the right group: {told['learnt']:.1%}; "
                f"off the best guess: {told['read']:.1%}; by guessing each item's most frequent: "
                f"{told['learnt_by_chance']:.1%}."
            )
        elif result.attack == "disclosure":
            lines.append(
                f"disclosure: of {told['cells']:,.0f} shown cells {told['one_rater']:.1%} have one rater; "
                f"{told['exact']:.1%} show that rating, {told['near']:.1%} to within half a step"
                + (f", {told['worked_out']:.1%} let it be worked out" if told["worked_out"] else "")
                + f". {told['alike']:.1%} show what all of several raters said."
            )
        elif result.attack == "membership":
            lines.append(
                f"membership, {result.knowledge}: advantage {told['advantage']:.3f} by {result.by} "
                f"({told['advantage_low']:.3f}-{told['advantage_high']:.3f}; by chance up to "
                f"{told['advantage_by_chance']:.3f}; with a threshold chosen on other people "
                f"{told['advantage_settled']:.3f}; {result.targets:,} members, {told['others']:,.0f} others)."
            )
        elif result.attack == "shadows":
            lines.append(_shadows_line(result))
        elif result.attack == "attribute":
            lines.append(_attribute_line(result))
        elif result.attack == "existence":
            lines.append(_existence_line(result))
        elif result.attack == "pairs":
            lines.append(_pairs_line(result))
        elif result.attack == "differences":
            lines.append(
                f"differences: from {told['alone']:.1%} of the groups one person could be worked out by somebody "
                f"who knows all members; attackers believe in {_share(result.matched)} "
                f"(wrong {_share(result.wrong_among_matched)}). "
                f"The group that looks most alike in the other release has {told['overlap']:.1%} of a group's people "
                f"(any group: {told['overlap_by_chance']:.1%})."
                + (
                    f" Right differences are {told['off']:.2f} off the person's ratings, the group's values "
                    f"{told['off_group']:.2f}."
                    if "off" in told
                    else ""
                )
            )
        elif result.attack == "columns":
            lines.append(
                f"columns: the most nearly parallel column of an item with at most 3 raters shares a rater in "
                f"{told['linked']:.1%} of the cases (by chance {told['linked_by_chance']:.1%}); of "
                f"{told['equal']:,.0f} pairs of equal columns {told['telling']:,.0f} have the same raters (by chance "
                f"{told['telling_by_chance']:.1f})."
            )
        elif result.attack == "changes":
            found = {
                "changed_auc": "they are told from the others",
                "sign_auc": "rises from falls",
                "newcomer_auc": "what a newcomer rated from items of about as many raters",
            }
            aucs = [f"{said} with AUC {told[name]:.3f}" for name, said in found.items() if name in told]
            lines.append(
                f"changes: {told['changed']:.1%} of the items have another rating or rater in the second release"
                + (f"; {', '.join(aucs)}" if aucs else "")
                + "."
            )
        elif result.attack == "intersection":
            lines.append(
                f"intersection: {told['people']:,.0f} people are in both releases; groups share "
                f"{told['in_common']:.1f} of them on average, {told['least_in_common']:,.0f} at least."
            )
        elif result.attack == "row_order" and told["order_is_shown"]:
            lines.append(f"row_order: THE ORDER OF THE ORIGINAL SHOWS in {result.knowledge}.")
    return list(dict.fromkeys(lines))


def _shadows_line(result: "AttackResult") -> str:
    told = result.details
    return (
        f"shadows, {told['shadows']:,.0f} shadow releases of half of the people, {told['tested']:,.0f} of them tested, "
        f"seed {result.seed}: advantage {told['advantage']:.3f} by {result.by} ({told['advantage_low']:.3f}-"
        f"{told['advantage_high']:.3f}; by chance up to {told['advantage_by_chance']:.3f}), AUC {told['auc']:.3f}. "
        f"With 1% of the others wrongly found, {told['tpr_at_1']:.1%} of the members are found, with 0.1% "
        f"{told['tpr_at_01']:.1%}. {told['people_above_08']:.1%} of the people have an AUC above .8 (by chance "
        f"{told['people_above_08_by_chance']:.1%}); the tenth that is found best: advantage {told['worst_decile']:.3f}."
    )


def _attribute_line(result: "AttackResult") -> str:
    told = result.details
    classes = [name.removeprefix("ratings_") for name in told if name.startswith("ratings_")]
    by_class = "; ".join(f"{name.replace('_', ' ')} {told[f'gain_{name}']:.3f}" for name in classes)
    signs = (
        f" Sign against the person's mean: AUC {told['sign_in']:.3f} with it, {told['sign_out']:.3f} without."
        if "sign_in" in told
        else ""
    )
    return (
        f"attribute, {told['shadows']:,.0f} shadow releases: a rating is predicted better by {told['gain']:.4f} "
        f"({told['gain_low']:.4f}-{told['gain_high']:.4f}) where it was published. By raters of the item: {by_class}."
        f"{signs}"
    )


def _existence_line(result: "AttackResult") -> str:
    told, least = result.details, result.details["threshold"]
    words = {
        "below": f"below {least:.0f}", "at": f"{least:.0f}", "one_more": f"{least + 1:.0f}",
        "few_more": f"{least + 2:.0f} to {least + 5:.0f}", "to_twice": f"{least + 6:.0f} to {2 * least:.0f}",
        "above": f"above {2 * least:.0f}",
    }  # fmt: skip
    parts = [
        f"{title} "
        + ", ".join(f"{word}: {told[f'{kind}_{name}']:.3f}" for name, word in words.items() if f"{kind}_{name}" in told)
        for kind, title in (("existence", "that the rating exists"), ("sign", "its sign"))
    ]
    return f"existence, all other ratings known, AUC by raters of the item: {'; '.join(parts)}."


def _pairs_line(result: "AttackResult") -> str:
    told = result.details
    known = {"": "none", "_1": "1", "_half": "k/2", "_rest": "k - 1"}

    def said(kind: str) -> str:
        return ", ".join(
            f"{companions}: {told[kind + end]:.3f}" for end, companions in known.items() if kind + end in told
        )

    items = ", ".join(
        f"{words}: {told[name]:.3f}"
        for name, words in {"items": "none", "items_known": "all others"}.items()
        if name in told
    )
    return (
        f"pairs, {told['pairs']:,.0f} shadow pairs, {told['tested']:,.0f} of them tested, seed {result.seed}, AUC by "
        f"companions known: who came ({told['single']:.3f} from the second release alone) {said('came')}; with "
        f"accounts that copy the person {said('controlled')}; who left {said('left')}; what a newcomer rated {items}."
    )


def _share(rate: "Rate | None") -> str:
    return "-" if rate is None else f"{rate.value:.1%}"


def _interval(rate: "Rate | None") -> str:
    return "-" if rate is None else f"{rate.value:.2%} ({rate.low:.1%}-{rate.high:.1%})"
