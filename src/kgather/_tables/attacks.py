"""What attackers get from an anonymized table: who knows quasi-identifiers of people, and who knows more.

- linkage: the prosecutor, who knows some quasi-identifiers of somebody in the table and names the class that is
  likeliest, and in it anybody.
- journalist: knows a population; of each class so many people of it look like a row.
- homogeneity, background: what the classes tell of a sensitive column, to whoever knows nothing else, or what the
  person does not have (Machanavajjhala et al., l-Diversity, 2006).
- minimality: knows how classes were made (Wong et al., 2007).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.results import AttackReport, AttackResult, Rate
from kgather._errors import InputError
from kgather._recoding.costs import shown_boxes
from kgather._recoding.recode import Evidence
from kgather._settings.table import TableSettings
from kgather._tables.again import Opened
from kgather._tables.journalist import Population
from kgather.udfs._shared.options import seed_number, whole
from kgather.udfs.attacking._boxes import best_boxes, rows_alike
from kgather.udfs.measuring.population import chance_of_one

TABLE_ATTACKS = ("linkage", "journalist", "homogeneity", "background", "minimality")
_MATCHED = 0.5


@dataclass(frozen=True)
class Drawn:
    """People who are attacked: their pieces int64[t], and which columns are known of each, bool[t, d]."""

    pieces: NDArray[np.int64]
    known: NDArray[np.bool_]


def attack(
    opened: Opened,
    risks: dict[str, Any],
    *,
    known: Sequence[int],
    targets: int,
    seed: int,
    attacks: Sequence[str] | None = None,
    original_too: bool = True,
    population: Population | None = None,
    sampling_fraction: float | None = None,
) -> AttackReport:
    """Attack a release of a table. risks: what its audit measures on the file, see `kgather._tables.audit.risks`.

    known: of how many quasi-identifiers the linkage attacker knows the values, drawn anew for each target. targets: the
    people who are attacked, drawn by the seed. Raises InputError for what cannot be run.
    """
    whole("targets", targets, 1)
    chosen = _chosen(attacks, population, sampling_fraction)
    evidence, settings = opened.evidence, opened.settings
    refuse_uncounted(settings, [*chosen, *(["population"] if population is not None else [])])
    start = seed_number(seed)
    results: list[AttackResult] = []
    original: list[AttackResult] = []
    d = len(evidence.columns)
    for number in sorted({min(each, d) for each in known}):
        if "linkage" not in chosen:
            break
        drawn = _drawn(evidence, number, targets, start)
        results.append(_linkage(evidence, drawn, number, start))
        if original_too:
            original.append(_on_original(evidence, drawn, number, start))
    if "journalist" in chosen:
        results.append(_journalist(evidence, population, sampling_fraction, start))
    sensitive = list(settings.sensitive)
    drawn = _drawn(evidence, d, targets, start)
    for place, name in enumerate(sensitive):
        if "homogeneity" in chosen:
            results.append(_homogeneity(evidence, drawn, place, name, risks, start))
        if "background" in chosen:
            results.append(_told("background", name, evidence, risks["background"][name], start))
        told = opened.recoded.report.get("minimality", {}).get(name)
        if "minimality" in chosen and told is not None:
            results.append(_told("minimality", name, evidence, told, start))
    said = {"known": list(known), "targets": targets, "seed": seed, "attacks": list(chosen)}
    return AttackReport(tuple(results), tuple(original), said)


def refuse_uncounted(settings: TableSettings, chosen: Sequence[str]) -> None:
    """Raise InputError where attacks would not count what they say. chosen: their names; `population`, where the
    journalist has a table of it."""
    if settings.has_several_rows:
        msg = (
            "people have several rows in this table, and attacks, models and sweeps count each row as a person. "
            "Measure a table that is made with aggregate, or rows_per_person 1."
        )
        raise InputError(msg)
    found = [name for name, column in settings.quasi_identifiers.items() if column.grouping is not None]
    if found and {"journalist", "population"} <= set(chosen):
        msg = f"the hierarchy of column '{found[0]}' was found in the table, and has nobody else's values. Estimate it."
        raise InputError(msg)
    if settings.shows_more and ("linkage" in chosen or {"journalist", "population"} <= set(chosen)):
        msg = (
            f"column '{settings.shows_more[0]}' shows more than ranges and labels, and linkage and a journalist with a "
            "population compare these: they would find too little. Name other attacks, or show ranges and labels."
        )
        raise InputError(msg)


def _chosen(attacks: Sequence[str] | None, population: Population | None, sampling_fraction: float | None) -> list[str]:
    unknown = [name for name in attacks or [] if name not in TABLE_ATTACKS]
    if unknown:
        msg = f"a table has no attack {', '.join(unknown)}. There are: {', '.join(TABLE_ATTACKS)}."
        raise InputError(msg)
    nobody = population is None and sampling_fraction is None
    if attacks is not None and "journalist" in attacks and nobody:
        msg = (
            "the attack journalist needs --population, a table, or --sampling-fraction, the share that is in the table."
        )
        raise InputError(msg)
    return [
        name for name in TABLE_ATTACKS if (attacks is None or name in attacks) and not (name == "journalist" and nobody)
    ]


def _drawn(evidence: Evidence, number: int, targets: int, seed: int) -> Drawn:
    """People drawn by their rows, and for each so many columns; pieces are drawn in the order of what they hold."""
    random = np.random.default_rng(seed)
    order = np.lexsort((evidence.group, evidence.combination))
    upto = np.cumsum(evidence.rows[order])
    targets = min(targets, int(upto[-1]))
    people = np.sort(random.choice(int(upto[-1]), targets, replace=False))
    d = evidence.codes.shape[1]
    columns = np.argsort(random.random((targets, d)), axis=1)[:, :number]
    known = np.zeros((targets, d), dtype=np.bool_)
    np.put_along_axis(known, columns, True, axis=1)
    return Drawn(order[np.searchsorted(upto, people, side="right")], known)


def _linked(evidence: Evidence, drawn: Drawn) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What `best_boxes` finds for each target, and the sizes of the classes."""
    losses = [column.loss for column in evidence.columns]
    first, last = shown_boxes(evidence.columns, evidence.low, evidence.high, evidence.suppressed)
    upto = [np.append(0.0, np.cumsum(loss.widths())) for loss in losses]
    at = np.append(0, np.cumsum([len(each) for each in upto])[:-1]).astype(np.int64)
    found = np.zeros((len(drawn.pieces), 3))
    points = evidence.codes[evidence.combination[drawn.pieces]]
    size = evidence.size
    best_boxes(
        points, np.arange(len(points)), drawn.known, first, last, size, at, np.concatenate(upto),
        evidence.group[drawn.pieces], found,
    )  # fmt: skip
    return found, size


def _linkage(evidence: Evidence, drawn: Drawn, number: int, seed: int) -> AttackResult:
    found, size = _linked(evidence, drawn)
    own = size[evidence.group[drawn.pieces]]
    matched = found[:, 0] > _MATCHED
    n, people = int(size.sum()), len(drawn.pieces)
    return AttackResult(
        attack="linkage",
        knowledge=_knowledge(number, len(evidence.columns)),
        targets=people,
        user=Rate.of(found[:, 1] / own, people),
        group=Rate.of(found[:, 1], people),
        matched=Rate.of(matched.astype(np.float64), people),
        wrong_among_matched=Rate.of(1 - found[matched, 1], int(matched.sum())),
        chance_user=1 / n,
        chance_group=float(((size / n) ** 2).sum()),
        seed=seed,
        details={"rows_that_fit": float(np.median(found[:, 2]))},
        known=number,
    )


def _on_original(evidence: Evidence, drawn: Drawn, number: int, seed: int) -> AttackResult:
    points = evidence.codes[evidence.combination[drawn.pieces]]
    alike = rows_alike(points, drawn.known, evidence.codes, evidence.counts)
    people, n = len(points), int(evidence.counts.sum())
    return AttackResult(
        attack="linkage",
        knowledge=_knowledge(number, len(evidence.columns)),
        targets=people,
        user=Rate.of(1 / alike, people),
        matched=Rate.of((alike == 1).astype(np.float64), people),
        chance_user=1 / n,
        chance_group=1 / n,
        seed=seed,
        details={"rows_that_fit": float(np.median(alike))},
        known=number,
    )


def _knowledge(number: int, d: int) -> str:
    if number == d:
        return "all quasi-identifiers"
    return "1 quasi-identifier" if number == 1 else f"{number} quasi-identifiers"


def _journalist(
    evidence: Evidence, population: Population | None, sampling_fraction: float | None, seed: int
) -> AttackResult:
    """Of each class 1 / F, F the people of the population who look like it, or what that is expected to be."""
    size = evidence.size
    n = int(size.sum())
    details: dict[str, float] = {}
    if population is not None:
        inside = population.alike
        few = inside < size  # who is in the table and not in the population can be told from all others
        chance = 1 / np.maximum(inside, size)
        details["population"] = float(population.people)
        details["classes_beyond"] = float(few.mean())
        details["least"] = float(np.maximum(inside, size).min())
    else:
        assert sampling_fraction is not None
        chance = chance_of_one(size, sampling_fraction)
        details["sampling_fraction"] = sampling_fraction
    details["most"] = float(chance.max())
    # Of the whole table and not of people who were drawn: there is nothing to be sure of in an interval.
    mean = float((chance * size).sum() / n)
    return AttackResult(
        attack="journalist",
        knowledge="a population" if population is not None else "a population, estimated",
        targets=n,
        user=Rate(mean, mean, mean),
        chance_user=1 / (population.people if population is not None else n),
        chance_group=float(((size / n) ** 2).sum()),
        seed=seed,
        details=details,
    )


def _homogeneity(
    evidence: Evidence, drawn: Drawn, place: int, name: str, risks: dict[str, Any], seed: int
) -> AttackResult:
    """What is read of targets all of whose quasi-identifiers are known: off their own class, and off any that fits."""
    values = evidence.sensitive[:, place]
    v, g = int(values.max()) + 1, len(evidence.suppressed)
    held = evidence.group * v + values[evidence.combination]
    cells, of = np.unique(held, return_inverse=True)
    times = np.bincount(of.ravel(), weights=evidence.rows)
    order = np.lexsort((cells, -times, cells // v))
    own = np.full(g, -1, dtype=np.int64)
    leading = np.unique(cells[order] // v, return_index=True)
    own[leading[0]] = cells[order][leading[1]] % v
    target = values[evidence.combination[drawn.pieces]]
    usual = int(np.argmax(np.bincount(values, weights=evidence.counts)))
    return AttackResult(
        attack="homogeneity",
        knowledge=name,
        targets=len(drawn.pieces),
        chance_user=1 / int(evidence.counts.sum()),
        chance_group=0.0,
        seed=seed,
        details={
            "learnt": risks["homogeneity"][name],
            "confident": risks["confident"][name],
            "read": float((own[evidence.group[drawn.pieces]] == target).mean()),
            "guessed": float((target == usual).mean()),
        },
    )


def _told(attack: str, name: str, evidence: Evidence, details: dict[str, float], seed: int) -> AttackResult:
    n = int(evidence.counts.sum())
    return AttackResult(
        attack=attack, knowledge=name, targets=n, chance_user=1 / n, chance_group=0.0, seed=seed, details=details
    )
