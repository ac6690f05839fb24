"""The attack `shadows`: was this person in the data? By an attacker who has published the like again and again.

Source: shadow models are those of Shokri, Stronati, Song and Shmatikov 2017, the likelihood ratio of each person that
of Carlini, Chien, Nasr, Song, Terzis and Tramer 2022, with releases in the place of models.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.profiles import profiles_of, rank_of
from kgather._attacks.results import AttackResult
from kgather._attacks.roc import Curve, auc
from kgather._attacks.shadow_scores import Learnt
from kgather._attacks.shadow_traces import TRACES, ItemsOf, Seen, trace
from kgather._attacks.shadows import LEAST, SHADOWS, Shadowed, affordable, halves, in_turn, people_of
from kgather._attacks.telling import ALONE, People, tell_alone, variance_of
from kgather._errors import InputError
from kgather.udfs._shared.options import whole

NUMBERS = (*ALONE, *TRACES)
"""What is computed of a person in each release: the numbers of `telling` that need the release alone, and how far the
items lean to where the person pulls them."""

ALL = "all_numbers"
"""All numbers put together."""

_TESTED = 1 / 3  # of the shadow releases; the others are learnt from
_WORK = 1e11  # ratings compared with candidates, over all shadow releases
_LEAST_PEOPLE, _MOST_PEOPLE = 1000, 10_000
_FOUND = 0.8
_DECILE = 0.1
_Z = 1.959963984540054


def shadow_membership(
    attacked: Attacked, *, asked: int = SHADOWS, targets: int = _LEAST_PEOPLE, seed: int = 0, threads: int | None = None
) -> AttackResult:
    """Publish random halves of the people of a release, and tell in a third of these shadow releases who is in, by what
    the others taught of each person.

    asked: how many shadow releases; fewer are made where the data are large. Everybody has all ratings of the people
    attacked: up to 10,000, fewer where the candidates are many, but `targets`.

    details: `advantage` of the best way of attacking, which is named in `by`, with an interval over people and over
    releases, whichever is wider; `advantage_by_chance`: what the best of so many exceeds in 5% of cases where there is
    nothing to tell; `tpr_at_1`, `tpr_at_01`: members found while 1% or 0.1% of the others are wrongly found; `auc`;
    `people_above_08`: share of people whose own AUC is above .8, and `..._by_chance`; `worst_decile`,
    `worst_decile_auc`: advantage and AUC of the tenth of people who are found best in one half of the tested releases,
    in the other half; `offline`: advantage of who has no releases with the person; `by_NAME`: advantages of all ways;
    `shadows`, `tested`, `people`.

    Raises InputError where the release cannot be made in memory, or has too few people.
    """
    shadowed = Shadowed.of(attacked.evidence, seed)
    asked = whole("shadows", asked, LEAST)
    n = shadowed.ratings.n_users
    if n < 4 * shadowed.settings.k:
        msg = f"the attack shadows needs at least {4 * shadowed.settings.k} people, four groups, not {n}."
        raise InputError(msg)
    count = affordable(asked, shadowed.ratings.nnz // 2)
    member = halves(shadowed.generator("members"), count, n)
    tested = math.ceil(count * _TESTED)
    # Whoever is in half of all releases need not be in half of the tested ones.
    member[-tested:] = halves(shadowed.generator("tested"), tested, n)
    member[:-tested] = halves(shadowed.generator("learnt"), count - tested, n)
    people = _people(shadowed, count, targets)
    numbers = _numbers(shadowed, member, people, tested, threads)
    learnt = Learnt.of(numbers[:-tested], member[:-tested][:, people])
    return _result(attacked, shadowed, learnt, numbers[-tested:], member[-tested:][:, people], count, seed)


def _people(shadowed: Shadowed, count: int, targets: int) -> NDArray[np.int64]:
    """Whom to attack, int64[p] ascending places, drawn where not all can be within the work allowed."""
    n = shadowed.ratings.n_users
    each = shadowed.ratings.nnz / n * (n / (2 * shadowed.settings.k)) * count
    most = max(targets, int(np.clip(_WORK / max(each, 1.0), _LEAST_PEOPLE, _MOST_PEOPLE)))
    if n <= most:
        return np.arange(n)
    return np.sort(shadowed.generator("people").choice(n, most, replace=False))


def _numbers(
    shadowed: Shadowed,
    member: NDArray[np.bool_],
    people: NDArray[np.int64],
    tested: int,
    threads: int | None,
) -> NDArray[np.float64]:
    """The `NUMBERS` of people int64[p] in each shadow release, float64[s, p, q]. member bool[s, n]."""
    rank = rank_of({**shadowed.settings.model_dump(), "homogenize": shadowed.settings.form})
    width = shadowed.scale[1] - shadowed.scale[0] or 1.0
    nothing = np.zeros(shadowed.ratings.n_users, dtype=np.int64)

    def read(number: int) -> tuple[ItemsOf, NDArray[np.float64]]:
        made = shadowed.release(number, people_of(shadowed.ratings, member[number]))
        profiles = profiles_of(made.shown, rank)
        own = People.rows(shadowed.ratings, people, ~np.isnan(made.shown.item_levels), nothing)
        told = tell_alone(made.shown, own, profiles, width=width, variance=variance_of(own, profiles.means), threads=1)
        return ItemsOf.of(made.shown, profiles.means), np.stack([told[name] for name in ALONE], axis=1)

    read_off = in_turn(read, range(len(member)), threads)
    told = np.stack([one for _, one in read_off])
    seen = Seen.of([one for one, _ in read_off], len(member) - tested)
    return np.concatenate([told, trace(shadowed, people, seen, threads)], axis=2)


@dataclass(frozen=True)
class _Found:
    """A way of attacking: its scores float64[s, p], and how well they tell."""

    scores: NDArray[np.float64]
    curve: Curve

    @classmethod
    def of(cls, scores: NDArray[np.float64], member: NDArray[np.bool_]) -> "_Found":
        return cls(scores, Curve.of(scores[member], scores[~member]))


def _result(
    attacked: Attacked,
    shadowed: Shadowed,
    learnt: Learnt,
    numbers: NDArray[np.float64],
    member: NDArray[np.bool_],
    count: int,
    seed: int,
) -> AttackResult:
    everything = list(range(len(NUMBERS)))
    ways = {name: _Found.of(learnt.online(numbers, [place]), member) for place, name in enumerate(NUMBERS)}
    ways[ALL] = _Found.of(learnt.online(numbers, everything), member)
    offline = _Found.of(learnt.offline(numbers, everything), member)
    best = max(ways, key=lambda name: ways[name].curve.advantage)
    found, curve = ways[best], ways[best].curve
    half = _half_width(found.scores >= curve.level, member)
    decile = _worst_decile(found.scores, member)
    own = _own_auc(found.scores, member)
    inside, outside = int(member.sum()), int((~member).sum())
    bound = math.sqrt(-math.log(0.025 / (len(ways))) / 2) * math.sqrt((inside + outside) / (inside * outside))
    return AttackResult(
        attack="shadows",
        knowledge="all ratings, and shadow releases",
        targets=member.shape[1],
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        details={
            "advantage": curve.advantage,
            "advantage_low": max(curve.advantage - half, 0.0),
            "advantage_high": min(curve.advantage + half, 1.0),
            "advantage_by_chance": min(bound, 1.0),
            "tpr_at_1": curve.true_at(0.01),
            "tpr_at_01": curve.true_at(0.001),
            "auc": curve.auc,
            "people_above_08": float((own > _FOUND).mean()),
            "people_above_08_by_chance": _by_chance(member),
            "worst_decile": decile.advantage,
            "worst_decile_auc": decile.auc,
            "offline": offline.curve.advantage,
            "shadows": float(count),
            "tested": float(len(member)),
            "people": float(shadowed.ratings.n_users),
            **{f"by_{name}": one.curve.advantage for name, one in ways.items()},
        },
        by=best,
    )


def _half_width(said: NDArray[np.bool_], member: NDArray[np.bool_]) -> float:
    """Half of a 95% interval of the advantage, over people or over releases, whichever is wider. bool[s, p] both."""
    widths = []
    for axis in (0, 1):
        true = (said & member).sum(axis=axis) / np.maximum(member.sum(axis=axis), 1)
        false = (said & ~member).sum(axis=axis) / np.maximum((~member).sum(axis=axis), 1)
        widths.append(_Z * float(np.std(true - false)) / math.sqrt(max(len(true) - 1, 1)))
    return max(widths)


def _own_auc(scores: NDArray[np.float64], member: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The AUC of each person over releases, float64[p]; scores float64[s, p]."""
    return np.array([auc(one[mine], one[~mine]) for one, mine in zip(scores.T, member.T, strict=True)])


def _by_chance(member: NDArray[np.bool_]) -> float:
    """The share of people whose AUC would be above `_FOUND` where there is nothing to tell."""
    inside = member.sum(axis=0).mean()
    outside = len(member) - inside
    deviation = math.sqrt((inside + outside + 1) / (12 * max(inside * outside, 1)))
    return 0.5 * math.erfc((_FOUND - 0.5) / deviation / math.sqrt(2))


def _worst_decile(scores: NDArray[np.float64], member: NDArray[np.bool_]) -> Curve:
    """How well those are told who are told best: chosen in one half of the releases, looked at in the other."""
    half = np.arange(len(scores)) % 2 == 0
    inside, outside = [], []
    for one in (half, ~half):
        own = np.nan_to_num(_own_auc(scores[one], member[one]), nan=0.5)
        gap = scores[one]
        # Among equal ones, those with the larger distance between the two means.
        apart = np.nan_to_num(_mean(gap, member[one]) - _mean(gap, ~member[one]))
        worst = np.lexsort((apart, own))[-max(1, round(_DECILE * len(own))) :]
        there, mine = scores[~one][:, worst], member[~one][:, worst]
        inside.append(there[mine])
        outside.append(there[~mine])
    return Curve.of(np.concatenate(inside), np.concatenate(outside))


def _mean(scores: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(chosen, scores, 0.0).sum(axis=0) / np.maximum(chosen.sum(axis=0), 1)
