"""Runs attacks on a release and on what it was made of."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked, groups_of, original_of
from kgather._attacks.attribute import attribute
from kgather._attacks.auxiliary import Knowledge, Known, Pool, draw
from kgather._attacks.chain import Chain
from kgather._attacks.changes import changes
from kgather._attacks.columns import columns
from kgather._attacks.dated import dated, dated_on_original
from kgather._attacks.differences import differences
from kgather._attacks.disclosure import disclosure
from kgather._attacks.existence import existence
from kgather._attacks.guesses import Guesses, guess
from kgather._attacks.homogeneity import homogeneity
from kgather._attacks.intersection import Second, intersection
from kgather._attacks.linkage import distance, linkage
from kgather._attacks.membership import Others, membership
from kgather._attacks.pairs import pairs
from kgather._attacks.posterior import Posterior
from kgather._attacks.rare_item import rare_item
from kgather._attacks.results import AttackReport, AttackResult
from kgather._attacks.row_order import Members, row_order
from kgather._attacks.scoring import scoring
from kgather._attacks.shadow_membership import shadow_membership
from kgather._attacks.shadows import SHADOWS
from kgather._attacks.structure import label, structure
from kgather._errors import InputError
from kgather._evaluation.candidates import ShownVectors
from kgather._evaluation.evidence import Evidence
from kgather.udfs._shared.options import seed_number, whole

KNOWN = (1, 2, 4, 8, 16, 32)
_BY_KNOWN: dict[str, Callable[..., AttackResult]] = {
    "structure": structure,
    "label": label,
    "scoring": scoring,
    "distance": distance,
    "homogeneity": homogeneity,
}
_BAYES = ("posterior", "items", "folded", "own_model", "dated")
WHEN_NAMED = ("shadows", "attribute", "existence", "pairs")
"""Attacks that learn or publish again and again, which takes a while: they run when they are named, and only then."""

ATTACKS = (
    *_BY_KNOWN,
    *_BAYES,
    "rare_item",
    "columns",
    "linkage",
    "disclosure",
    "row_order",
    "intersection",
    "differences",
    "changes",
    "membership",
    *WHEN_NAMED,
)
"""The names of all attacks, in the order they are run."""

_QUICK_GAPS = 1e8  # known ratings x candidates that `quick` compares
_QUICK_CELLS = 20_000_000
_QUICK_SHOWN = 5e7  # cells of all candidates, which `items` looks at
_QUICK_ORIGINAL = 2_000_000  # ratings


@dataclass(frozen=True)
class Extra:
    """What some attacks need beside the evidence; those whose part is missing are not run.

    members: the release's rows as its files have them, pseudonyms by user code where known (row_order). second: another
    release (intersection, differences, changes, pairs). others: ratings of people who are not in the release
    (membership).
    """

    members: Members | None = None
    pseudonyms: NDArray[np.str_] | None = None
    second: Second | None = None
    others: Others | None = None

    def missing(self, attack: str) -> str | None:
        """What an attack lacks, in words; None where it can be run."""
        needs = {
            "row_order": (self.members, "the files of the release"),
            "intersection": (self.second, "a second release"),
            "differences": (self.second, "a second release"),
            "changes": (self.second, "a second release"),
            "pairs": (self.second, "a second release"),
            "membership": (self.others, "ratings of people who are not in the release"),
        }
        part, said = needs.get(attack, (True, None))
        return said if part is None else None


def run(
    evidence: Evidence,
    *,
    known: Sequence[int] = KNOWN,
    noisy: bool = False,
    pool: Pool = "all",
    targets: int = 1000,
    seed: int = 0,
    attacks: Sequence[str] | None = None,
    original_too: bool = True,
    extra: Extra | None = None,
    shadows: int = SHADOWS,
    threads: int | None = None,
) -> AttackReport:
    """Run attacks on a release.

    known: how many ratings of a target the attacker knows; noisy, pool, targets: see `auxiliary.draw`. attacks: some of
    `ATTACKS`; None: all for which there is what they need, but those of `WHEN_NAMED`. shadows: how many shadow releases
    those of them make that need some. original_too: run those that find people on the ratings
    themselves, too, with the same targets and the same knowledge. The result is the same for any number of threads.

    Raises InputError for an unknown attack, one that lacks what it needs, or a wrong number.
    """
    attacked, extra = Attacked.of(evidence), extra or Extra()
    seed = seed_number(seed)
    whole("targets", targets, 1)
    chosen = _chosen(attacks, extra, dates=evidence.days is not None)
    knowledge = [Knowledge(m, noisy, pool) for m in sorted(set(known))]
    draws = [draw(attacked, each, targets=targets, seed=seed) for each in knowledge]
    results = [
        *_by_known(attacked, draws, chosen, seed, threads),
        *_by_bayes(attacked, draws, chosen, targets, seed, threads),
        *_by_items(attacked, chosen, [0, *(each.known for each in knowledge)], targets, seed, threads),
        *_whole_rows(attacked, chosen, targets, seed, threads),
        *(_with_extra(attacked, extra, knowledge, chosen, targets, seed, threads)),
        *_again(attacked, extra, chosen, shadows, targets, seed, threads),
    ]
    original: list[AttackResult] = []
    if original_too:
        plain = Attacked.of(original_of(evidence))
        original = [
            *_by_known(plain, draws, chosen, seed, threads),
            *(dated_on_original(plain, known, seed=seed, threads=threads) for known in draws if "dated" in chosen),
            *_whole_rows(plain, [name for name in chosen if name != "disclosure"], targets, seed, threads),
        ]
    settings = {
        "known": [each.known for each in knowledge],
        "noisy": noisy,
        "from": pool,
        "targets": targets,
        "seed": seed,
        "attacks": list(chosen),
        "candidates": len(evidence.shown.sizes),
        "look_alikes": attacked.n_classes,
        **({"shadows": shadows} if {"shadows", "attribute", "pairs"} & set(chosen) else {}),
    }
    chain = None if extra.second is None else Chain.of(attacked, extra.second).as_dict()
    return AttackReport(tuple(results), tuple(original), settings, chain)


def quick(
    evidence: Evidence, seed: int = 0, *, original_too: bool | None = None, threads: int | None = None
) -> AttackReport:
    """What every publication can afford: label, scoring, distance and posterior with 4 and 8 exact ratings, items with
    8 known, and disclosure.

    Of at most 1,000 users, one draw each, and fewer where the candidates are many: at least 50. original_too: None
    looks at the original too where it has at most 2 million ratings. Where the evidence has only some people of the
    release, neither the original nor `columns` is looked at, which need everybody, and `disclosure` looks at the cells
    of their groups.
    """
    attacked = Attacked.of(evidence)
    chosen = ("label", "scoring", "distance")
    targets = int(np.clip(_QUICK_GAPS / (12 * max(attacked.n_classes, 1)), 50, 1000))
    draws = [draw(attacked, Knowledge(m), targets=targets, seed=seed, draws=1) for m in (4, 8)]
    attacker = Posterior(attacked, threads=threads)
    few = attacked.n_classes * evidence.original.n_items <= _QUICK_SHOWN
    # Vectors are at hand, or have to be found in the cells first.
    by_items = ["rare_item", "columns"] if few or isinstance(evidence.shown, ShownVectors) else []
    everybody = evidence.people is None
    if not everybody:
        by_items, original_too = by_items[:1], False
    results = [
        *_by_known(attacked, draws, chosen, seed, threads),
        *(attacker.ratings(known, seed=seed) for known in draws),
        *([attacker.items(draws[-1], seed=seed)] if few else []),
        *(_by_items(attacked, by_items, [0], targets, seed, threads, attacker)),
        disclosure(
            attacked if everybody else Attacked.of(groups_of(evidence)), seed=seed, cells=_QUICK_CELLS, threads=threads
        ),
    ]
    original: list[AttackResult] = []
    if original_too or (original_too is None and evidence.original.nnz <= _QUICK_ORIGINAL):
        plain = Attacked.of(original_of(evidence))
        original = list(_by_known(plain, draws, chosen, seed, threads))
    attacks = [*chosen, "posterior", *(["items"] if few else []), *by_items, "disclosure"]
    settings = {"known": [4, 8], "noisy": False, "from": "all", "targets": targets, "seed": seed}
    return AttackReport(tuple(results), tuple(original), settings | {"attacks": attacks})


def _chosen(attacks: Sequence[str] | None, extra: Extra, *, dates: bool) -> Sequence[str]:
    if attacks is None:
        usual = [name for name in ATTACKS if name not in WHEN_NAMED]
        return [name for name in usual if extra.missing(name) is None and (dates or name != "dated")]
    for name in attacks:
        if name not in ATTACKS:
            msg = f"there is no attack {name!r}. There are: {', '.join(ATTACKS)}."
            raise InputError(msg)
        lacking = "the dates of ratings" if name == "dated" and not dates else extra.missing(name)
        if lacking is not None:
            msg = f"the attack {name} needs {lacking}."
            raise InputError(msg)
    return list(dict.fromkeys(attacks))


def _by_known(
    attacked: Attacked, draws: Sequence[Known], chosen: Sequence[str], seed: int, threads: int | None
) -> Iterator[AttackResult]:
    wanted = [name for name in _BY_KNOWN if name in chosen]
    if wanted:
        found: list[Guesses] = [guess(attacked, known, threads=threads) for known in draws]
        for name in wanted:
            for guesses in found:
                yield _BY_KNOWN[name](guesses, seed=seed)


def _by_bayes(
    attacked: Attacked, draws: Sequence[Known], chosen: Sequence[str], targets: int, seed: int, threads: int | None
) -> Iterator[AttackResult]:
    wanted = [name for name in _BAYES if name in chosen]
    if not wanted:
        return
    attacker = Posterior(attacked, threads=threads)
    by_name = {"posterior": attacker.ratings, "items": attacker.items, "folded": attacker.folded}
    for name in wanted:
        for known in draws:
            if name == "own_model":
                found = attacker.own_model(known.knowledge, targets=targets, seed=seed)
                if found is not None:
                    yield found
            elif name == "dated":
                yield dated(attacker, known, seed=seed)
            else:
                yield by_name[name](known, seed=seed)


def _by_items(
    attacked: Attacked,
    chosen: Sequence[str],
    known: Sequence[int],
    targets: int,
    seed: int,
    threads: int | None,
    posterior: Posterior | None = None,
) -> Iterator[AttackResult]:
    """What vectors of items tell; on the ratings themselves there are none."""
    if "rare_item" in chosen:
        attacker = posterior or Posterior(attacked, threads=threads)
        for m in known:
            yield from rare_item(attacked, attacker, known=m, targets=targets, seed=seed)
    if "columns" in chosen:
        yield columns(attacked, seed=seed)


def _whole_rows(
    attacked: Attacked, chosen: Sequence[str], targets: int, seed: int, threads: int | None
) -> Iterator[AttackResult]:
    if "linkage" in chosen:
        yield from linkage(attacked, targets=targets, seed=seed, threads=threads)
    if "disclosure" in chosen:
        yield disclosure(attacked, seed=seed, threads=threads)


def _with_extra(
    attacked: Attacked,
    extra: Extra,
    knowledge: Sequence[Knowledge],
    chosen: Sequence[str],
    targets: int,
    seed: int,
    threads: int | None,
) -> Iterator[AttackResult]:
    if "row_order" in chosen and extra.members is not None:
        yield from row_order(attacked, extra.members, pseudonyms=extra.pseudonyms, seed=seed)
    if "intersection" in chosen and extra.second is not None:
        for each in knowledge:
            yield intersection(attacked, extra.second, each, targets=targets, seed=seed, threads=threads)
    if "differences" in chosen and extra.second is not None:
        yield differences(attacked, extra.second, seed=seed)
    if "changes" in chosen and extra.second is not None:
        yield changes(attacked, extra.second, seed=seed)
    if "membership" in chosen and extra.others is not None:
        for some in [*knowledge, None]:
            yield from membership(attacked, extra.others, some, targets=targets, seed=seed, threads=threads)


def _again(
    attacked: Attacked,
    extra: Extra,
    chosen: Sequence[str],
    shadows: int,
    targets: int,
    seed: int,
    threads: int | None,
) -> Iterator[AttackResult]:
    """The attacks of `WHEN_NAMED`."""
    if "shadows" in chosen:
        yield shadow_membership(attacked, asked=shadows, targets=targets, seed=seed, threads=threads)
    if "attribute" in chosen:
        yield attribute(attacked, asked=shadows, seed=seed, threads=threads)
    if "existence" in chosen:
        yield existence(attacked, seed=seed, threads=threads)
    if "pairs" in chosen and extra.second is not None:
        yield pairs(attacked, extra.second, asked=shadows, seed=seed, threads=threads)
