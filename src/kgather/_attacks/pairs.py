"""The attack `pairs`: who came and who left between two releases, by an attacker who has made the like again and again.

Pairs of shadow releases are made as a chain makes them: groups of the first one stay, one of them in four has lost a
member, and newcomers form groups of their own. The attacker knows some of the companions: people of the same group,
with all their ratings. k counts people whom the attacker neither controls nor knows, so that k - 1 of them are not
covered by it; what they tell is measured here. Source of the likelihood ratios: as in `shadow_membership`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.intersection import Second
from kgather._attacks.profiles import profiles_of, rank_of
from kgather._attacks.results import AttackResult
from kgather._attacks.roc import auc, auc_among_alike
from kgather._attacks.shadow_scores import Learnt
from kgather._attacks.shadows import LEAST, SHADOWS, Shadowed, affordable, halves, in_turn
from kgather._attacks.telling import ALONE, People, tell_alone, variance_of
from kgather._errors import InputError
from kgather._evaluation.in_memory import Made, make
from kgather.udfs._shared.options import whole
from kgather.udfs.ratings.matrix import RatingMatrix

_TESTED = 1 / 3  # of the pairs; the others are learnt from
_CAME = 8  # times k: so many people at least may be newcomers; where fewer came, groups that stayed are taken, too
_LEFT = 0.25  # of the groups lose somebody
_CONTROLLED = 3  # people a pair for whom the attacker has made accounts, for each number of them
_LOOKED_AT = 40  # newcomers a pair whose items are looked for
_TWINS = 8  # pairs that are made again without somebody
_HELD = 0.8  # of the variance of ratings is not between people's levels: how hard people are held to the usual


@dataclass(frozen=True)
class _World:
    """People of whom pairs of releases are made, by the items of the second release.

    before, after: their ratings in the first and in the second release; who came has none before. lineage int64[n]: the
    group in the first release, -1 for who may come. may_come int64[p]: the places of these. settings: of the pairs.
    """

    shadowed: Shadowed
    before: RatingMatrix
    after: RatingMatrix
    lineage: NDArray[np.int64]
    may_come: NDArray[np.int64]

    @classmethod
    def of(cls, first: Attacked, second: Second, seed: int) -> Self:
        """Raises InputError where releases of this kind cannot be made in memory, or too few people are there."""
        other = second.attacked.evidence
        shadowed = Shadowed.of(other, seed)
        k = shadowed.settings.gathered
        stay = np.flatnonzero(second.users >= 0)
        codes = second.users[stay]
        came = np.setdiff1d(other.gathered, codes)
        lineage = first.evidence.groups[stay].astype(np.int64)
        sizes = np.bincount(lineage)
        draws = shadowed.generator("who may come")
        order = draws.permutation(np.flatnonzero(sizes))
        short = _CAME * k - len(came)
        taken = order[: int(np.searchsorted(np.cumsum(sizes[order]), short)) + 1] if short > 0 else order[:0]
        # In releases that do not follow each other, people of one group may be fewer than k of the other.
        small = np.flatnonzero(sizes < shadowed.settings.k)
        lineage = np.where(np.isin(lineage, np.concatenate([taken, small])), -1, lineage)
        if len(np.unique(lineage[lineage >= 0])) < 4:
            msg = f"the attack pairs needs more people: four groups beside {_CAME * k} people who may come."
            raise InputError(msg)
        before = _recoded(first.evidence.original.with_users(stay), second.items, other.original.n_items)
        users = np.concatenate([codes, came]).astype(np.int64)
        order = np.argsort(users, kind="stable")
        lineage = np.concatenate([lineage, np.full(len(came), -1)])[order]
        nothing = np.full(len(users), -1, dtype=np.int64)
        nothing[np.flatnonzero(order < len(stay))] = order[order < len(stay)]
        return cls(
            shadowed,
            _spread(before, nothing),
            other.original.with_users(users[order]),
            lineage,
            np.flatnonzero(lineage < 0),
        )


def _recoded(matrix: RatingMatrix, codes: NDArray[np.int32], n_items: int) -> RatingMatrix:
    """The same ratings by other item codes, without items whose code is -1."""
    owner = np.repeat(np.arange(matrix.n_users), np.diff(matrix.indptr))
    items = codes[matrix.items]
    kept = np.flatnonzero(items >= 0)
    kept = kept[np.lexsort((items[kept], owner[kept]))]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner[kept], minlength=matrix.n_users))]).astype(np.int64)
    return RatingMatrix(matrix.n_users, n_items, indptr, items[kept], matrix.values[kept])


def _spread(matrix: RatingMatrix, places: NDArray[np.int64]) -> RatingMatrix:
    """Rows of a matrix in other places, int64[n]; -1: a row without ratings."""
    lengths = np.where(places >= 0, np.diff(matrix.indptr)[places], 0)
    rows = matrix.with_users(places[places >= 0])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return RatingMatrix(len(places), matrix.n_items, indptr, rows.items, rows.values)


@dataclass(frozen=True)
class _Pair:
    """Two releases that were made, and what is true of them.

    earlier, later: with their people int64[n], places in the world; of accounts that the attacker made, the place of
    whom they copy. left int64[g]: by lineage, the place of who has left, -1 where nobody has. accounts: by number of
    accounts, for each person whom they copy the places of these among the later's people.
    """

    earlier: Made
    later: Made
    people: NDArray[np.int64]
    later_people: NDArray[np.int64]
    left: NDArray[np.int64]
    own: int
    accounts: Mapping[int, Mapping[int, NDArray[np.int64]]]
    item_raters: NDArray[np.int64]
    twin: NDArray[np.float64] | None
    twin_of: int


def pairs(
    first: Attacked, second: Second, *, asked: int = SHADOWS, seed: int = 0, threads: int | None = None
) -> AttackResult:
    """Make pairs of releases as these two, and tell who came, who left and what newcomers rated.

    asked: how many pairs; fewer are made where the data are large. A third of them is attacked by what the others
    taught. In each, half of the groups are there, and half of those who may come have come.

    details, AUC each, .5 where nothing is told: `single`: that a person is in the second release, from it alone;
    `came`: from both, with no companion known, and `came_1`, `came_half`, `came_rest`: with 1, k/2 and k - 1 companions
    of each new group known; `controlled_...`: with as many accounts of the attacker's that copy the person. `left`,
    `left_1`, ...: who of a group that is smaller by one has left, among those of its people who are not known. `items`:
    which items a newcomer rated, among items of about as many raters, by how far they moved, with no companion known;
    `items_known`: by who knows all ratings but this person's. `pairs`, `tested`, `people`.

    Raises InputError where the releases cannot be made in memory, or have too few people.
    """
    world = _World.of(first, second, seed)
    asked = whole("shadows", asked, LEAST)
    count = affordable(asked, world.after.nnz)
    tested = math.ceil(count * _TESTED)
    came = np.concatenate([
        halves(world.shadowed.generator("learnt"), count - tested, len(world.may_come)),
        halves(world.shadowed.generator("tested"), tested, len(world.may_come)),
    ])  # fmt: skip
    known = _companions(world.shadowed.settings.k)
    rank = rank_of({**world.shadowed.settings.model_dump(), "homogenize": world.shadowed.settings.form})

    def read(number: int) -> _Told:
        made = _made(world, number, came[number], sorted(set(known.values()) - {0}), twin=number >= count - _TWINS)
        return _told(world, made, sorted(set(known.values())), rank, number)

    told = in_turn(read, range(count), threads)
    alone = np.stack([one.alone for one in told])
    details = {"single": _auc_of(alone, came, tested)}
    for name, c in known.items():
        both = np.stack([one.beside[c] for one in told])
        everything = np.concatenate([alone, both], axis=2)
        details[f"came{name}"] = max(_auc_of(numbers, came, tested) for numbers in (everything, both))
    for name, c in known.items():
        if c:
            inside, outside = (np.concatenate([one.controlled[c][place] for one in told]) for place in (0, 1))
            details[f"controlled{name}"] = auc(inside, outside)
        details[f"left{name}"] = float(np.nanmean(np.concatenate([one.left[c] for one in told])))
    details["items"] = _mean([one.items for one in told])
    details["items_known"] = _mean([one.items_known for one in told])
    return AttackResult(
        attack="pairs",
        knowledge="two releases, and shadow pairs",
        targets=len(world.may_come),
        chance_user=first.chance_user,
        chance_group=first.chance_group,
        seed=seed,
        details={
            **{name: value for name, value in details.items() if not math.isnan(value)},
            "pairs": float(count),
            "tested": float(tested),
            "people": float(len(world.lineage)),
        },
    )


def _companions(k: int) -> dict[str, int]:
    """How many companions are known, by the end of the name of what is measured."""
    return {"": 0, "_1": min(1, k - 1), "_half": k // 2, "_rest": k - 1}


def _mean(values: Sequence[NDArray[np.float64]]) -> float:
    found = np.concatenate(values)
    return float(np.nanmean(found)) if np.isfinite(found).any() else math.nan


def _auc_of(numbers: NDArray[np.float64], member: NDArray[np.bool_], tested: int) -> float:
    """numbers float64[s, p, q], member bool[s, p]."""
    learnt = Learnt.of(numbers[:-tested], member[:-tested])
    scores = learnt.online(numbers[-tested:], list(range(numbers.shape[2])))
    return auc(scores[member[-tested:]], scores[~member[-tested:]])


def _made(world: _World, number: int, came: NDArray[np.bool_], accounts: Sequence[int], *, twin: bool) -> _Pair:
    shadowed = world.shadowed
    draws = shadowed.generator(f"pair {number}")
    groups = np.unique(world.lineage[world.lineage >= 0])
    some = groups[halves(draws, 2, len(groups))[0]]
    there = np.flatnonzero(np.isin(world.lineage, some))
    sizes = np.bincount(world.lineage[there], minlength=int(groups.max()) + 1)
    left = np.full(len(sizes), -1, dtype=np.int64)
    order = draws.permutation(there)
    left[world.lineage[order]] = order
    left[(sizes <= shadowed.settings.k) | (draws.random(len(sizes)) >= _LEFT)] = -1
    earlier = _release(world, 2 * number, world.before.with_users(there), world.lineage[there], None)
    stay = np.setdiff1d(there, left)
    new = world.may_come[came]
    copied, copies = [], []
    for c in accounts:
        chosen = draws.permutation(len(came))[:_CONTROLLED]
        copied += [(c, int(world.may_come[place])) for place in chosen]
        copies += [np.repeat(world.may_come[chosen], c)]
    people = np.concatenate([stay, new, *copies])
    kept = np.concatenate([world.lineage[stay], np.full(len(people) - len(stay), -1)])
    ratings = world.after.with_users(people)
    later = _release(world, 2 * number + 1, ratings, kept, earlier)
    owned: dict[int, dict[int, NDArray[np.int64]]] = {c: {} for c in accounts}
    start = len(stay) + len(new)
    for c, person in copied:
        owned[c][person] = np.arange(start, start + c)
        start += c
    again, without = None, -1
    if twin and len(new):
        without = int(draws.choice(new))
        others = people != without
        others[len(stay) + len(new) :] = True
        made = _release(world, -number - 1, ratings.with_users(np.flatnonzero(others)), kept[others], earlier)
        again = profiles_of(made.shown).means
    return _Pair(earlier, later, there, people, left, len(stay) + len(new), owned, ratings.raters(), again, without)


def _release(world: _World, number: int, ratings: RatingMatrix, kept: NDArray[np.int64], last: Made | None) -> Made:
    own = world.shadowed.secret(number)
    return make(
        ratings,
        world.shadowed.seeded(own),
        scale=world.shadowed.scale,
        secret=own,
        catalogue=world.shadowed.catalogue,
        last=None if last is None else last.shown,
        kept=kept,
        threads=1,
    )


@dataclass(frozen=True)
class _Told:
    """What is read off one pair. alone float64[p, q]: numbers of who may come from the later release alone; beside
    float64[p, 3] by companions known: from both. controlled: scores of who is in and who is not. left, items,
    items_known float64: an AUC each.
    """

    alone: NDArray[np.float64]
    beside: Mapping[int, NDArray[np.float64]]
    controlled: Mapping[int, tuple[NDArray[np.float64], NDArray[np.float64]]]
    left: Mapping[int, NDArray[np.float64]]
    items: NDArray[np.float64]
    items_known: NDArray[np.float64]


def _told(world: _World, pair: _Pair, known: Sequence[int], rank: int, number: int) -> _Told:
    draws = world.shadowed.generator(f"companions {number}")
    before, after = profiles_of(pair.earlier.shown, rank), profiles_of(pair.later.shown, rank)
    space = _Space.of(pair.later)
    moved = after.means - before.means
    moved = moved - np.nanmedian(moved)
    shown = ~np.isnan(moved)
    nothing = np.zeros(world.after.n_users, dtype=np.int64)
    own = People.rows(world.after, world.may_come, ~np.isnan(after.means), nothing)
    width = world.shadowed.scale[1] - world.shadowed.scale[0] or 1.0
    alone = tell_alone(pair.later.shown, own, after, width=width, variance=variance_of(own, after.means), threads=1)
    n = world.after.n_users
    vectors = space.learnt(pair.later_people, n)
    may_come = space.folded(world.after, pair.later_people, world.may_come)
    stayed = len(np.unique(world.lineage[pair.people]))
    own_rows = space.learnt(np.arange(len(pair.later_people)), len(pair.later_people))
    new = _Groups.of(pair.later, space.groups(), pair.later_people, own_rows, first=stayed, draws=draws)
    trace = _pulled(world.after.with_users(world.may_come), after.means, np.where(shown, moved, 0.0))
    beside = {c: np.column_stack([new.nearness(world.may_come, may_come, c), trace]) for c in known}
    earlier = _Space.of(pair.earlier).carried_to(space)
    drift = _Drift.of(earlier.groups(), space.groups()[:stayed])
    lost = _Lost(
        pair, drift.after(earlier.groups()), space.groups(), drift.after(earlier.learnt(pair.people, n)), vectors,
        world.lineage, draws,
    )  # fmt: skip
    looked = draws.permutation(pair.later_people[np.isin(pair.later_people, world.may_come)])[:_LOOKED_AT]
    gap = np.abs(np.where(shown, moved, 0.0))
    twin = None if pair.twin is None else np.abs(np.nan_to_num(after.means - pair.twin))
    return _Told(
        np.stack([alone[name] for name in ALONE], axis=1),
        beside,
        {c: new.controlled(pair, c, may_come, world.may_come) for c in known if c},
        {c: lost.aucs(c) for c in known},
        np.array([_items_auc(world.after, int(one), gap, pair.item_raters, shown) for one in np.unique(looked)]),
        np.array([] if twin is None else [_items_auc(world.after, pair.twin_of, twin, pair.item_raters, shown)]),
    )


def _items_auc(
    ratings: RatingMatrix, person: int, gap: NDArray[np.float64], raters: NDArray[np.int64], shown: NDArray[np.bool_]
) -> float:
    own = np.zeros(ratings.n_items, dtype=np.bool_)
    own[ratings.items[ratings.indptr[person] : ratings.indptr[person + 1]]] = True
    return auc_among_alike(gap[shown], own[shown], raters[shown])


def _pulled(ratings: RatingMatrix, means: NDArray[np.float64], moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far items moved to where each person pulls them, float64[n]."""
    owner = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    gaps = np.nan_to_num(ratings.values - means[ratings.items])
    level = np.bincount(owner, gaps, ratings.n_users) / np.maximum(np.diff(ratings.indptr), 1)
    return np.asarray(
        np.bincount(owner, (gaps - level[owner]) * moved[ratings.items], ratings.n_users), dtype=np.float64
    )


@dataclass(frozen=True)
class _Space:
    """The predictions of one release: the distance of two vectors is the root mean square difference of what is shown.

    made: whose groups and people are looked at. levels float64[m], sides float64[m, d]: the items', NaN where one is
    not shown; what somebody is shown is levels + sides @ (level and factors). turn float64[d, d], origin float64[d]:
    level and factors times it, and this added, are such a vector.
    """

    made: Made
    levels: NDArray[np.float64]
    sides: NDArray[np.float64]
    turn: NDArray[np.float64]
    origin: NDArray[np.float64]

    @classmethod
    def of(cls, made: Made) -> Self:
        levels = made.shown.item_levels.astype(np.float64)
        sides = np.column_stack([np.ones(len(levels)), made.shown.item_factors]).astype(np.float64)
        there = sides[~np.isnan(levels)]
        spread, turned = np.linalg.eigh(there.T @ there / max(len(there), 1))
        turn = turned * np.sqrt(np.maximum(spread, 0.0))
        return cls(made, levels, sides, turn, np.zeros(len(turn)))

    def carried_to(self, other: "_Space") -> "_Space":
        """The same release in the space of another: what it shows is fitted by the directions of that one."""
        both = ~np.isnan(self.levels) & ~np.isnan(other.levels)
        inverse = np.linalg.pinv(other.sides[both])
        return _Space(
            self.made,
            self.levels,
            self.sides,
            (inverse @ self.sides[both]).T @ other.turn,
            inverse @ (self.levels[both] - other.levels[both]) @ other.turn,
        )

    def groups(self) -> NDArray[np.float64]:
        """What groups show, float64[g, d]."""
        shown = self.made.shown
        return np.column_stack([shown.group_levels, shown.group_factors]) @ self.turn + self.origin

    def learnt(self, people: NDArray[np.int64], n: int) -> NDArray[np.float64]:
        """Where people lie, by their places in the world, float64[n, d]; NaN for who is not in the release."""
        model = self.made.learnt
        found = np.full((n, len(self.turn)), np.nan)
        found[people] = np.column_stack([model.user_level, model.user_factors]) @ self.turn + self.origin
        return found

    def folded(
        self, ratings: RatingMatrix, people: NDArray[np.int64], wanted: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Where those wanted would lie, in the release or not, by their ratings, float64[w, d].

        A ridge regression on what items show, made like the release's own model by how the two differ for its people.
        O(ratings d^2).
        """
        inside, asked = _fold(self, ratings.with_users(people)), _fold(self, ratings.with_users(wanted))
        truth = self.learnt(np.arange(len(people)), len(people))
        plain = np.column_stack([np.ones(len(inside)), inside])
        made_like, *_ = np.linalg.lstsq(plain, truth, rcond=None)
        return np.column_stack([np.ones(len(asked)), asked]) @ made_like


@dataclass(frozen=True)
class _Drift:
    """How all that stay move from one release to the next, as anybody sees by the groups: a point x goes to
    shift + x @ turn.
    """

    shift: NDArray[np.float64]
    turn: NDArray[np.float64]

    @classmethod
    def of(cls, before: NDArray[np.float64], after: NDArray[np.float64]) -> Self:
        g, d = before.shape
        if g < 4 * (d + 1):  # too few for more than that all move alike
            return cls(np.asarray((after - before).mean(axis=0), np.float64), np.asarray(np.eye(d), np.float64))
        found, *_ = np.linalg.lstsq(np.column_stack([np.ones(g), before]), after, rcond=None)
        return cls(np.asarray(found[0], np.float64), np.asarray(found[1:], np.float64))

    def after(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.shift + points @ self.turn)


def _fold(space: _Space, rows: RatingMatrix) -> NDArray[np.float64]:
    """Level and factors of each user by ridge regression, float64[n, d]."""
    owner = np.repeat(np.arange(rows.n_users), np.diff(rows.indptr))
    usable = ~np.isnan(space.levels[rows.items])
    owner, items = owner[usable], rows.items[usable]
    gaps = rows.values[usable] - space.levels[items]
    sides = space.sides[items]
    d = sides.shape[1]
    system, onto = np.zeros((rows.n_users, d, d)), np.zeros((rows.n_users, d))
    for a in range(d):
        onto[:, a] = np.bincount(owner, sides[:, a] * gaps, rows.n_users)
        for b in range(d):
            system[:, a, b] = np.bincount(owner, sides[:, a] * sides[:, b], rows.n_users)
    places = np.column_stack([space.made.learnt.user_level, space.made.learnt.user_factors]).astype(np.float64)
    noise = _HELD * float(np.mean((gaps - gaps.mean()) ** 2)) if len(gaps) else 1.0
    system += np.diag(noise / np.maximum(places.var(axis=0), 1e-9))
    return np.asarray(np.linalg.solve(system, onto[:, :, None])[:, :, 0])


@dataclass(frozen=True)
class _Groups:
    """New groups of a release: what they show less all that is known of companions.

    first: the number of the first of them. sizes int64[g], shown float64[g, d]. members, vectors: the people of each,
    int64[n], and where they lie, float64[n, d], in an order drawn at random. every float64[m, d]: where all people of
    the release lie.
    """

    first: int
    sizes: NDArray[np.int64]
    shown: NDArray[np.float64]
    members: list[NDArray[np.int64]]
    vectors: list[NDArray[np.float64]]
    every: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        made: Made,
        shown: NDArray[np.float64],
        people: NDArray[np.int64],
        vectors: NDArray[np.float64],
        *,
        first: int,
        draws: np.random.Generator,
    ) -> Self:
        rows = [draws.permutation(np.flatnonzero(made.groups == code)) for code in range(first, len(shown))]
        members, inside = [people[row] for row in rows], [vectors[row] for row in rows]
        return cls(first, made.shown.sizes[first:], shown[first:], members, inside, vectors)

    def nearness(self, people: NDArray[np.int64], vectors: NDArray[np.float64], c: int) -> NDArray[np.float64]:
        """How near, and how much in the direction of, people int64[p] with vectors float64[p, d] what is left of some
        new group is where c of its other members are known, float64[p, 2]: the best of all groups.
        """
        near, along = np.full(len(people), -np.inf), np.full(len(people), -np.inf)
        for size, shown, members, inside in zip(self.sizes, self.shown, self.members, self.vectors, strict=True):
            some = inside[: c + 1]
            # Who is asked about is no companion: the next one takes the place.
            own = members[:c][None, :] == people[:, None]
            total = some[:c].sum(axis=0) + np.where(own.any(axis=1)[:, None], some[-1] - vectors, 0.0)
            left = (size * shown - total) / max(size - c, 1)
            near = np.maximum(near, -((left - vectors) ** 2).sum(axis=1) * (size - c))
            lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(vectors, axis=1)
            along = np.maximum(along, (left * vectors).sum(axis=1) / np.maximum(lengths, 1e-12))
        return np.column_stack([near, along])

    def controlled(
        self, pair: _Pair, c: int, vectors: NDArray[np.float64], may_come: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How near what is left of a group with some of c accounts is to whom they copy, the best of these groups: of
        those who came, and of those who did not.
        """
        came = set(pair.later_people[: pair.own].tolist())
        found: tuple[list[float], list[float]] = ([], [])
        for person, rows in pair.accounts[c].items():
            vector = vectors[np.searchsorted(may_come, person)]
            best = -np.inf
            groups = pair.later.groups[rows]
            for group in np.unique(groups):
                place, mine = int(group) - self.first, rows[groups == group]
                others = int(self.sizes[place]) - len(mine)
                if others:
                    left = (self.sizes[place] * self.shown[place] - self.every[mine].sum(axis=0)) / others
                    best = max(best, -float(((left - vector) ** 2).sum()) * others)
            found[person not in came].append(best)
        return np.array(found[0]), np.array(found[1])


@dataclass(frozen=True)
class _Lost:
    """Groups that lost one member: what both releases differ by, less what is known of those who stayed.

    before float64[g, d], after float64[g, d]: what groups show, in one space; earlier, later float64[world, d]: where
    people lie in each.
    """

    pair: _Pair
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    earlier: NDArray[np.float64]
    later: NDArray[np.float64]
    lineage: NDArray[np.int64]
    draws: np.random.Generator

    def aucs(self, c: int) -> NDArray[np.float64]:
        """For each group that lost somebody, how often that person fits better than one who stayed and is not known."""
        people = self.pair.people
        lineages = np.unique(self.lineage[people])
        found = []
        for place, lineage in enumerate(lineages):
            gone = int(self.pair.left[lineage])
            if gone < 0:
                continue
            members = people[self.lineage[people] == lineage]
            stayed = self.draws.permutation(members[members != gone])
            known, others = stayed[:c], stayed[c:]
            if not len(others):
                continue
            lost = len(members) * self.before[place] - len(stayed) * self.after[place]
            lost = lost - (self.earlier[known] - self.later[known]).sum(axis=0)
            asked = self.earlier[np.concatenate([[gone], others])]
            near = -((lost - asked) ** 2).sum(axis=1)
            found.append(auc(near[:1], near[1:]))
        return np.array(found)
