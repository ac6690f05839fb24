"""X. Chen's thesis: preferences by SVD, Bisecting K-Gather against bounded t-means, and levels 1 and k."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._paper import macros
from kgather._paper.findings import Finding, how_often, in_part, number, rises, statement
from kgather._paper.macros import large_enough, shuffled
from kgather._paper.movielens import HIGH, LOW, MovieLens, Split
from kgather.udfs.gathering import bkg, bokg, bounded_t_means
from kgather.udfs.measuring.quality import armse
from kgather.udfs.preferences import learning, model
from kgather.udfs.ratings._held_out import rows_of
from kgather.udfs.ratings.matrix import RatingMatrix

_PLAIN = "plain SVD: no levels, start 0.1, rate 0.001, regularization 0.015, 60 epochs a factor"
_GROUP_ROWS = "SVD of the groups' mean rows, one row a group; a user's prediction is the group's"
_LEARNT_LONGER = "rate 0.005, regularization 0.05, which is no setting of the thesis"
_TUNED: dict[str, Any] = {"learning_rate": 0.005, "regularization": 0.05}
_SPLITS = 3
_RUNS = 20
_K_OF_LEVELS = range(2, 21)
_K = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20)


def baselines(data: MovieLens) -> Iterator[Finding]:
    """Section 4.3: the error without groups, and with all users in one."""
    plain, tuned, averaged, of_means = [], [], [], []
    for split in data.splits(_SPLITS):
        everybody = np.arange(split.train.n_users)
        learnt = _learnt(split.train)
        plain.append(_error(split, learnt, everybody))
        averaged.append(_error_of_rows(split, np.zeros_like(everybody)))
        tuned.append(_error(split, _learnt(split.train, **_TUNED), everybody))
        of_means.append(_error_of_means(split))
    always = float(np.mean([np.abs(split.ratings - split.train.values.mean()).mean() for split in data.splits(3)]))
    yield number(
        "MAE of SVD, 20 factors", float(np.mean(plain)), 0.748, chance=of_means, within=0.01,
        shows="figure 4.4; equations 2 and 3",
        reading=f"{_PLAIN}; by chance: without a factor, the item's mean and how far the user is above items' means",
    )  # fmt: skip
    yield number("MAE of SVD, 20 factors, tuned", float(np.mean(tuned)), shows="figure 4.4", reading=_LEARNT_LONGER)
    yield number(
        "MAE of item means", float(np.mean(averaged)), 0.815, chance=always, within=0.005, shows="figure 4.4",
        reading="all rows averaged; by chance: the mean of all ratings",
    )  # fmt: skip


def error_by_k(data: MovieLens) -> Iterator[Finding]:
    """Sections 3.3 and 4.3: the error of predictions learnt from the groups' rows, by k, and the entries."""
    splits = list(data.splits(_SPLITS))
    without = [_error(split, _learnt(split.train), np.arange(split.train.n_users)) for split in splits]
    gains, random, draws, entries, random_entries = {}, {}, {}, {}, {}
    gained: dict[int, list[float]] = {}
    valid = True
    for k in _K:
        found, by_chance = [], []
        for seed, split in enumerate(splits):
            groups = bkg.gather(_preferences(split.train), k, seed=seed)
            valid &= large_enough(groups, k)
            found.append(_of_rows(split, groups))
            gained.setdefault(k, []).append(found[-1][0] - without[seed])
            if seed == 0 or k <= 3:
                by_chance.append(_of_rows(split, shuffled(groups)))
        error, rows, repeated = np.mean(found, axis=0)
        random_entries[k] = float(np.mean([one[2] for one in by_chance]))
        draws[k] = [one[0] - alone for one, alone in zip(by_chance, without, strict=False)]
        gains[k], random[k], entries[k] = error - np.mean(without), float(np.mean(draws[k])), repeated
        yield number(
            "MAE", float(error), chance=[one[0] for one in by_chance], x=k, shows="figure 4.4", reading=_GROUP_ROWS
        )
        yield number("MAE less that without groups", gains[k], chance=draws[k], x=k, shows="figure 4.4")
        yield number("entries of the groups' rows", float(rows), x=k, shows="figure 3.5")
        yield number(
            "entries, rows repeated for every member", entries[k], chance=random_entries[k], x=k, shows="figure 3.5"
        )
    for k in (2, 3):
        yield statement(
            f"k = {k}",
            "slightly better than no groups",
            f"{gains[k]:+.4f}, {how_often([one < 0 for one in gained[k]], 'splits')}",
            holds=in_part(*(one < 0 for one in gained[k])),
            chance=f"{random[k]:+.4f}",
            by_chance=[one < 0 for one in draws[k]],
            valid=valid,
            shows="figure 4.4; section 4.3.3",
            reading="against a baseline that is under-trained: tuned, plain SVD is better by 0.03",
        )
    small = gains[20] / 0.748
    yield statement(
        "cost at k = 20",
        "very low",
        f"{gains[20]:+.4f}, {small:.1%} of the error",
        holds=_low(small),
        chance=f"{random[20]:+.4f}, {random[20] / 0.748:.1%}",
        by_chance=_low(random[20] / 0.748),
        valid=valid,
        shows="figure 4.4; section 4.3.3",
        reading="below 2% of the error is low, below 5% is so in part",
    )
    # Whatever the groups are, larger ones blur more and fill more cells: both are as by chance unless chance falls.
    yield statement(
        "growth of the error",
        "rises with k",
        f"{gains[2]:+.4f} to {gains[20]:+.4f}",
        holds=rises(list(gains.values())),
        chance=f"{random[2]:+.4f} to {random[20]:+.4f}",
        by_chance=rises(list(random.values())),
        valid=valid,
        shows="figure 4.4",
    )
    yield statement(
        "growth of the entries",
        "rise with k",
        f"{entries[2]:,.0f} to {entries[20]:,.0f}",
        holds=rises(list(entries.values())),
        chance=f"{random_entries[2]:,.0f} to {random_entries[20]:,.0f}",
        by_chance=rises(list(random_entries.values())),
        valid=valid,
        shows="figure 3.5",
        reading="with rows repeated; one row a group has fewer entries the larger k is",
    )


def gathering(data: MovieLens) -> Iterator[Finding]:
    """Section 4.2: ARMSE of Bisecting K-Gather over 20 runs, against bounded t-means."""
    vectors = _preferences(data.ratings)
    runs, random, rival = {}, {}, {}
    valid = {"BKG": True, "t-means": True}
    for k in (3, 5, 10):
        found = [bkg.gather(vectors, k, seed=seed) for seed in range(_RUNS)]
        valid["BKG"] &= all(large_enough(groups, k) for groups in found)
        runs[k] = np.array([armse(vectors, groups) for groups in found])
        random[k] = np.array([armse(vectors, shuffled(groups, seed)) for seed, groups in enumerate(found)])
        yield number(
            "ARMSE of BKG", float(runs[k].mean()), chance=float(random[k].mean()), x=k,
            shows="figure 4.1; algorithm 1", reading="plotted only; its scale hangs on the SVD",
        )  # fmt: skip
        for rounds in (1, 10):
            theirs = [bounded_t_means.gather(vectors, k, bins=1, rounds=rounds, seed=seed) for seed in range(_RUNS)]
            valid["t-means"] &= all(large_enough(groups, k) for groups in theirs)
            rival[k, rounds] = np.array([armse(vectors, groups) for groups in theirs])
            name = f"ARMSE of bounded t-means, {rounds} round{'s' if rounds > 1 else ''}"
            yield number(name, float(rival[k, rounds].mean()), x=k, shows="figure 4.2" if k == 3 else "")
    # Groups that are as any have no spread to speak of, and no growth.
    valid["BKG"] &= all(bool(runs[k].mean() < 0.9 * random[k].mean()) for k in runs)
    spread, by_chance = (_times(float(np.ptp(one[3])), float(one[3].mean())) for one in (runs, random))
    yield statement(
        "spread over 20 runs",
        "at most about 0.0005",
        f"{np.ptp(runs[3]):.4f} at k = 3, {spread:.0%} of the mean",
        holds=True if np.ptp(runs[3]) <= 0.0005 else None if spread <= 0.1 else False,
        chance=f"{np.ptp(random[3]):.4f}, {by_chance:.0%}",
        by_chance=True if np.ptp(random[3]) <= 0.0005 else None if by_chance <= 0.1 else False,
        valid=valid["BKG"],
        shows="figure 4.1",
        reading="the scale of the preferences is not given: a tenth of the mean holds in part",
    )
    growth, of_random = (
        {k: _times(float(one[k].mean()), float(one[3].mean())) for k in (5, 10)} for one in (runs, random)
    )
    yield statement(
        "growth with k",
        "about linear",
        f"x {growth[5]:.2f} at 5 and x {growth[10]:.2f} at 10, about as k^{_exponent(growth):.2f}",
        holds=_linear(growth),
        chance=f"x {of_random[5]:.2f} and x {of_random[10]:.2f}, k^{_exponent(of_random):.2f}",
        by_chance=_linear(of_random),
        valid=valid["BKG"],
        shows="figure 4.1",
        reading="an exponent of 0.8 is linear, one of 0.4 is so in part",
    )
    for rounds in (1, 10):
        ours, mean = float(runs[3].mean()), float(rival[3, rounds].mean())
        against = float(random[3].mean())
        blind, both = _blind(mean, against), all(valid.values())
        yield statement(
            f"against bounded t-means, {rounds} round{'s' if rounds > 1 else ''}",
            "BKG is far better at k = 3",
            f"t-means {_times(mean, ours):.2f} times as far",
            holds=_far_better(ours, mean),
            chance=f"{_times(mean, against):.2f} times",
            by_chance=[blind or _far_better(draw, mean) for draw in random[3].tolist()],
            valid=both,
            shows="figure 4.2",
            reading="far better: by a quarter or more; a text of bounded t-means to run it as printed is not at hand",
        )
        best, worst = float(rival[3, rounds].min()), float(rival[3, rounds].max())
        yield statement(
            f"best of 20 runs of t-means, {rounds} round{'s' if rounds > 1 else ''}",
            "competitive",
            f"{_times(best, ours):.2f} times BKG's mean",
            holds=best <= 1.05 * ours,
            chance=f"{_times(best, against):.2f} times",
            by_chance=[best <= 1.05 * draw for draw in random[3].tolist()],
            valid=both,
            shows="figure 4.2",
            reading="competitive: at most 5% farther",
        )
        yield statement(
            f"worst of 20 runs of t-means, {rounds} round{'s' if rounds > 1 else ''}",
            "far worse",
            f"{_times(worst, ours):.2f} times BKG's mean",
            holds=_far_better(ours, worst),
            chance=f"{_times(worst, against):.2f} times",
            by_chance=[blind or _far_better(draw, worst) for draw in random[3].tolist()],
            valid=both,
            shows="figure 4.2",
        )


def levels(data: MovieLens) -> Iterator[Finding]:
    """Chapter 6: half of the users ask for no privacy (level 1), the others for k."""
    vectors = _preferences(data.ratings)
    alone: dict[int, float] = {}
    at_random: dict[int, list[int]] = {}
    kept = True
    for k, printed in ((5, 130), (10, 140)):
        found, random = [], []
        for seed in range(10):
            wanted = _levels(len(vectors), k, seed)
            groups = bokg.gather(vectors, k, wanted, seed=seed)
            kept &= large_enough(groups, wanted)
            found.append(_alone(groups))
            random.append(_alone(bokg.gather(_noise_like(vectors, seed), k, wanted, seed=seed)))
        alone[k], at_random[k] = float(np.mean(found)), random
        yield number(
            "users of level 1 who stand alone", alone[k], printed, chance=at_random[k], valid=kept, x=k, within=0.06,
            shows="figure 6.1; definition 1; algorithm 2",
            reading="471 users, drawn at random, have level 1; mean of 10 draws; by chance: each factor of the "
            "preferences shuffled among the users",
        )  # fmt: skip
    yield statement(
        "share of level 1 that stands alone",
        "about a third at k = 5 and 10",
        f"{alone[5] / 471:.0%} and {alone[10] / 471:.0%}",
        holds=in_part(*map(_a_third, alone.values())),
        chance=f"{np.median(at_random[5]) / 471:.0%} and {np.median(at_random[10]) / 471:.0%}",
        by_chance=[in_part(*map(_a_third, pair)) for pair in zip(*at_random.values(), strict=True)],
        valid=kept,
        shows="section 6.1",
        reading="about: within a quarter; by chance: preferences shuffled as above",
    )
    yield from _prediction_by_level(data)


def _prediction_by_level(data: MovieLens) -> Iterator[Finding]:
    tuned = "SVD tuned (rate 0.005, regularization 0.05): with the thesis' own setting there is no change"
    changes: dict[str, list[float]] = {"level 1": [], "level k": [], "all": []}
    random: dict[str, list[float]] = {name: [] for name in changes}
    alone: list[float] = []
    ignored = 0
    kept = True
    for k in _K_OF_LEVELS:
        found: dict[str, list[float]] = {"level 1": [], "level k": [], "all": [], "conventional": []}
        for seed, split in enumerate(data.splits(_SPLITS)):
            vectors = _preferences(split.train)
            wanted = _levels(len(vectors), k, seed)
            mine, plain = bokg.gather(vectors, k, wanted, seed=seed), bkg.gather(vectors, k, seed=seed)
            # To be better than conventional groups that are as any is no merit.
            kept &= large_enough(mine, wanted) and large_enough(plain, k) and _alike(vectors, plain)
            alone.append(_alone(mine))
            ignored = max(ignored, _alone(plain))
            ours, usual = _errors(split, mine), _errors(split, plain)
            of_one = wanted[split.users] == 1
            for name, chosen in (("level 1", of_one), ("level k", ~of_one), ("all", np.ones_like(of_one))):
                found[name].append(float((ours - usual)[chosen].mean()))
            found["conventional"].append(float(usual.mean()))
            if k in (5, 10, 20) and seed == 0:
                # Random groups of the same sizes, which leave others alone than those who stick out.
                drawn = _errors(split, _within_levels(mine, wanted, seed)) - usual
                for name, chosen in (("level 1", of_one), ("level k", ~of_one), ("all", np.ones_like(of_one))):
                    random[name].append(float(drawn[chosen].mean()))
        yield number("MAE, conventional", float(np.mean(found["conventional"])), x=k, shows="figure 6.2", reading=tuned)
        for name, all_of in changes.items():
            all_of.append(float(np.mean(found[name])))
            yield number(f"change of the MAE, {name}", all_of[-1], x=k, shows="figure 6.2")
    about = "mean over all k, against the same users under BKG; by chance: groups of the same sizes at random"
    for name, printed in (("level 1", "greatly improved"), ("all", "better than conventional")):
        gain = float(np.mean(changes[name]))
        yield statement(
            f"error of users, {name}",
            printed,
            f"{gain:+.4f}",
            holds=_gained(gain),
            chance=f"{np.median(random[name]):+.4f}",
            by_chance=[_gained(draw) for draw in random[name]],
            valid=kept,
            shows="figure 6.2",
            reading=f"{about}; {tuned}; 0.01 is a great change, less than 0.005 none",
        )
    gain, share = float(np.mean(changes["level k"])), float(np.mean(alone)) / 471
    # Groups that ignore the levels change nothing either, but leave nobody alone: both are asked for.
    yield statement(
        "error of users, level k",
        "unchanged, though users of level 1 stand alone",
        f"{gain:+.4f}, {share:.0%} alone",
        holds=_unchanged(gain, share),
        chance=f"{np.median(random['level k']):+.4f}; levels ignored: {0:+.4f}, {ignored / 471:.0%} alone",
        by_chance=[*(_unchanged(draw, share) for draw in random["level k"]), _unchanged(0.0, ignored / 471)],
        valid=kept,
        shows="figure 6.2",
        reading=f"{about}, and groups that ignore the levels; {tuned}; less than 0.005 is no change; a quarter or more "
        "of level 1 stands alone",
    )


def _alike(vectors: NDArray[np.float32], groups: NDArray[np.integer]) -> bool:
    """Whether members are a tenth nearer to each other than in groups of the same sizes at random."""
    return armse(vectors, groups) < 0.9 * armse(vectors, shuffled(groups))


def _low(share: float) -> bool | None:
    return True if share < 0.02 else None if share < 0.05 else False


def _a_third(alone: float) -> bool:
    """Of the users of level 1, to within a quarter of it."""
    return abs(alone / 471 - 1 / 3) < 1 / 12


def _unchanged(change: float, alone: float) -> bool:
    return abs(change) < 0.005 and alone >= 0.25


def _times(one: float, other: float) -> float:
    """How many times the other the one is; groups of one, which are no groups, have no distance at all."""
    return one / other if other else float("nan")


def _gained(change: float) -> bool | None:
    return True if change <= -0.01 else None if change < 0 else False


def _exponent(growth: dict[int, float]) -> float:
    """Of the power of k by which something grows from k = 3 to 10."""
    return float(np.log(growth[10]) / np.log(10 / 3))


def _linear(growth: dict[int, float]) -> bool | None:
    return True if _exponent(growth) >= 0.8 else None if _exponent(growth) >= 0.4 else False


def _blind(theirs: float, at_random: float) -> bool:
    """Whether a rival is no better than groups at random, so that to be better than it is no merit."""
    return theirs >= 0.9 * at_random


def _far_better(ours: float, theirs: float) -> bool | None:
    return True if theirs >= 1.25 * ours else None if theirs > 1.05 * ours else False


def _levels(n: int, k: int, seed: int) -> NDArray[np.int64]:
    """Level 1 for half of the users, k for the others."""
    wanted = np.full(n, k)
    wanted[np.random.default_rng(seed).permutation(n)[: n // 2]] = 1
    return wanted


def _alone(groups: NDArray[np.integer]) -> int:
    return int((np.bincount(groups) == 1).sum())


def _noise_like(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """Vectors whose columns are shuffled one by one, so that nobody is like anybody."""
    draws = np.random.default_rng(seed)
    return np.stack([draws.permutation(column) for column in vectors.T], axis=1)


def _within_levels(groups: NDArray[np.integer], wanted: NDArray[np.integer], seed: int) -> NDArray[np.integer]:
    """Groups of the same sizes and levels at random: users change places with others of their level."""
    drawn = groups.copy()
    for level in np.unique(wanted):
        users = np.flatnonzero(wanted == level)
        drawn[users] = groups[np.random.default_rng(seed).permutation(users)]
    return drawn


def _preferences(train: RatingMatrix) -> NDArray[np.float32]:
    return learning.learn(train, solver="funk", rank=10).user_factors


def _learnt(table: RatingMatrix, **options: Any) -> model.Preferences:
    return learning.learn(table, solver="funk", rank=20, scale=(LOW, HIGH), **options)


def _predicted(learnt: model.Preferences, rows: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float32]:
    shown = (learnt.user_factors[rows] * learnt.item_factors[items]).sum(axis=1)
    return np.clip(shown + learnt.user_level[rows] + learnt.item_level[items], LOW, HIGH)


def _error(split: Split, learnt: model.Preferences, groups: NDArray[np.integer]) -> float:
    return float(np.abs(_predicted(learnt, groups[split.users], split.items) - split.ratings).mean())


def _error_of_means(split: Split) -> float:
    """The error of the item's mean plus how far the user is, in the mean, above items' means: no factors."""
    train = split.train
    users = rows_of(train.indptr, np.arange(train.nnz))
    middle = train.values.mean()
    of_items = _means(train.items, train.values, train.n_items, float(middle))
    of_users = _means(users, train.values - of_items[train.items], train.n_users, 0.0)
    return float(np.abs(np.clip(of_users[split.users] + of_items[split.items], LOW, HIGH) - split.ratings).mean())


def _means(places: NDArray[np.integer], values: NDArray[np.floating], count: int, usual: float) -> NDArray[np.float64]:
    """The mean of the values at each place, float64[count]; the usual one where there are none."""
    people = np.bincount(places, minlength=count)
    return np.where(people > 0, np.bincount(places, values, minlength=count) / np.maximum(people, 1), usual)


def _errors(split: Split, groups: NDArray[np.integer]) -> NDArray[np.float32]:
    """The error of each test rating, of a tuned SVD on the groups' rows."""
    learnt = _learnt(macros.group_rows(split.train, groups), **_TUNED)
    return np.abs(_predicted(learnt, groups[split.users], split.items) - split.ratings)


def _of_rows(split: Split, groups: NDArray[np.integer]) -> tuple[float, float, float]:
    """The error of plain SVD on the groups' rows, their entries, and those with rows repeated."""
    table = macros.group_rows(split.train, groups)
    repeated = float((np.diff(table.indptr) * np.bincount(groups)).sum())
    return _error(split, _learnt(table), groups), float(table.nnz), repeated


def _error_of_rows(split: Split, groups: NDArray[np.integer]) -> float:
    """The error of the groups' mean rows themselves; the mean of all ratings stands for items that are not shown."""
    table = macros.group_rows(split.train, groups)
    rows = np.full((table.n_users, table.n_items), split.train.values.mean(), dtype=np.float64)
    rows[np.repeat(np.arange(table.n_users), np.diff(table.indptr)), table.items] = table.values
    return float(np.abs(rows[groups[split.users], split.items] - split.ratings).mean())
