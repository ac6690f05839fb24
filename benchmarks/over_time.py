"""Releases that follow each other: what a chain of five promises, costs and gives away.

    make bench-over-time

The same people are published five times (k = 10): from release to release there are 5% new users, 5% new ratings of
those who are there, and 2% leave. A fifth of the ratings is held out. The loss is the mean absolute error of the fifth
release on the held-out ratings of people who are in it, beside that of a release made anew of the same ratings. Attacks
are those of `kgather attack RELEASE --second OTHER`, on the fourth and the fifth release. Membership: pairs of shadow
releases. Needs real data under $KGATHER_DATA. Writes benchmarks/results/over_time.{md,json}.

With --cost RATINGS it times, on made-up ratings with 1% new ones, a release that follows another beside one made anew,
in turns. Writes benchmarks/results/over_time_cost.{md,json}.
"""

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from harness import Claim, Result
from make_ratings import Shape, write_parquet
from release import Ratings

from kgather._attacks import run
from kgather._attacks.attacked import Attacked
from kgather._attacks.intersection import Second
from kgather._attacks.pairs import pairs
from kgather._attacks.runner import Extra
from kgather._evaluation.evidence import Evidence, read_evidence
from kgather._loaders import LoadOptions
from kgather._publishing.early import LOADED_ITEMS
from kgather._publishing.history import Following, with_last
from kgather._publishing.publish import Published, publish
from kgather._settings.publication import PublishSettings

K, RELEASES, RUNS = 10, 5, 3
COMPANIONS = {"": "no", "_1": "1", "_half": "k/2", "_rest": "k - 1"}
NEW_USERS, NEW_RATINGS, LEAVERS = 0.05, 0.05, 0.02
GOAL_LOSS, GOAL_ITEMS = 0.006, 0.60


@dataclass(frozen=True)
class Growth:
    """When what is there: each user's first and last release int64[n], and each rating's first release int64[c]."""

    came: np.ndarray
    last: np.ndarray
    given: np.ndarray

    @classmethod
    def of(cls, ratings: Ratings, seed: int) -> "Growth":
        draws = np.random.default_rng([seed, 5])
        sizes = (1 + NEW_USERS) ** np.arange(RELEASES) / (1 + NEW_USERS) ** (RELEASES - 1)
        edges = np.round(sizes * ratings.n_users).astype(int)
        came = np.empty(ratings.n_users, dtype=np.int64)
        came[draws.permutation(ratings.n_users)] = np.searchsorted(edges, np.arange(ratings.n_users), side="right")
        given = np.searchsorted(sizes, draws.random(len(ratings.rating)), side="right")
        leaves = draws.random((RELEASES, ratings.n_users)) < LEAVERS
        last = np.where(leaves.any(axis=0), leaves.argmax(axis=0), RELEASES - 1)
        return cls(came, np.maximum(last, came), given)

    def at(self, ratings: Ratings, release: int) -> Ratings:
        """What is there when a release is made, from 0."""
        there = (self.came <= release) & (self.last >= release)
        return ratings.part(there[ratings.user] & (self.given <= release))


def write(ratings: Ratings, path: Path) -> Path:
    with duckdb.connect() as con:
        con.register("given", {"user_id": ratings.user, "item_id": ratings.item, "rating": ratings.rating})
        con.execute(f"copy (from given) to '{path}' (format parquet)")
    return path


def published(file: Path, folder: Path, name: str, work: Path, choice: dict[str, Any], *, follows: bool) -> Published:
    loaded = {"items": LOADED_ITEMS} if "items" in choice else {}
    asked = PublishSettings(**{"k": K, "metrics": "none", **choice, **loaded})
    items = file.parent / "items.csv"
    options = LoadOptions(items=str(items)) if items.exists() else LoadOptions()
    following = Following(work) if follows else None
    if following is not None:
        asked = with_last(following, asked)
    return publish([str(file)], folder / name, asked, options, keep_work=None if follows else work, following=following)


def evidence_of(release: Published, work: Path) -> Evidence:
    with duckdb.connect() as con:
        con.execute(f"attach '{work}' as work (read_only)")
        con.execute(f"attach '{release.folder}/release.duckdb' as release (read_only)")
        return read_evidence(con, "work", "release", release.audit.parameters)


def loss(evidence: Evidence, held_out: Ratings, among: np.ndarray) -> float:
    """The mean absolute error on held-out ratings of some users, by number."""
    users = np.full(held_out.n_users, -1)
    users[np.asarray(evidence.user_ids.to_pylist(), dtype=np.int64)] = evidence.truth
    items = np.full(held_out.n_items, -1)
    items[np.asarray(evidence.items.to_pylist(), dtype=np.int64)] = np.arange(len(evidence.items))
    gaps = []
    order = np.argsort(held_out.item, kind="stable")
    order = order[among[held_out.user[order]] & (users[held_out.user[order]] >= 0) & (items[held_out.item[order]] >= 0)]
    codes = items[held_out.item[order]]
    for start in range(0, len(evidence.items), 512):
        wanted = np.arange(start, min(start + 512, len(evidence.items)))
        shown, _ = evidence.shown.columns(wanted)
        here = (codes >= start) & (codes < start + len(wanted))
        some = order[here]
        gaps.append(np.abs(shown[codes[here] - start, users[held_out.user[some]]] - held_out.rating[some]))
    return float(np.nanmean(np.concatenate(gaps)))


@dataclass(frozen=True)
class Chain:
    """Releases that follow each other, as their working databases were kept, and one made anew of the last input."""

    releases: list[Evidence]
    anew: Evidence
    audits: list[dict[str, Any]]


def chain_of(parts: Sequence[Ratings], choice: dict[str, Any]) -> Chain:
    """Publish each part of the ratings after the one before it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "items" in choice:
            every = np.unique(np.concatenate([part.item for part in parts]))
            (folder / "items.csv").write_text("item_id\n" + "\n".join(map(str, every)) + "\n", encoding="utf-8")
        releases, audits = [], []
        for number, part in enumerate(parts):
            file = write(part, folder / f"{number}.parquet")
            start = time.perf_counter()
            made = published(
                file, folder, f"release{number}", folder / "work",
                {**choice, "history": True, "seed": number} if number == 0 else {"seed": number},
                follows=number > 0,
            )  # fmt: skip
            print(f"release {number + 1}: {time.perf_counter() - start:.1f} s", flush=True)
            releases.append(evidence_of(made, folder / "work" / "work.duckdb"))
            audits.append(json.loads((made.folder / "audit.json").read_text(encoding="utf-8")))
        made = published(file, folder, "anew", folder / "other", {**choice, "seed": 9}, follows=False)
        return Chain(releases, evidence_of(made, folder / "other" / "work.duckdb"), audits)


def groups_of(evidence: Evidence) -> dict[Any, int]:
    kept = evidence.gathered
    return dict(
        zip(np.asarray(evidence.user_ids.to_pylist())[kept].tolist(), evidence.groups[kept].tolist(), strict=True)
    )


def smallest(releases: Sequence[Evidence]) -> int:
    """People in the smallest set that the groups of all these releases have in common, of those who are in all."""
    maps = [groups_of(one) for one in releases]
    everywhere = set.intersection(*(set(each) for each in maps))
    return min(Counter(tuple(each[user] for each in maps) for user in everywhere).values())


def attacked(first: Evidence, second: Evidence, attacks: Sequence[str], known: Sequence[int] = (8,)) -> dict[str, dict]:
    one, two = Attacked.of(first), Attacked.of(second)
    pair = Second.of(one, two, first.user_ids, second.user_ids)
    found = run(first, known=known, targets=10_000, attacks=attacks, extra=Extra(second=pair), original_too=False)
    return {
        result.attack: {"group": result.group and result.group.value, "alone": result.matched and result.matched.value}
        | dict(result.details)
        for result in found.results
    }


def alone(evidence: Evidence, attacks: Sequence[str]) -> dict[str, dict]:
    found = run(evidence, known=(8,), targets=10_000, attacks=attacks, original_too=False)
    return {
        result.attack: {"group": result.group and result.group.value} | dict(result.details) for result in found.results
    }


def rate(found: float, n: int) -> str:
    """A share of n people with its standard error."""
    return f"{found:.4f} +- {np.sqrt(found * (1 - found) / n):.4f}"


def measure(name: str, seeds: Sequence[int], shadows: int, result: Result) -> None:
    ratings = Ratings.read(name)
    chains, losses = [], []
    for seed in seeds:
        held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
        train, test = ratings.part(~held_out), ratings.part(held_out)
        growth = Growth.of(ratings, seed)
        growth = Growth(growth.came, growth.last, growth.given[~held_out])
        chain = chain_of([growth.at(train, release) for release in range(RELEASES)], {})
        both = np.zeros(ratings.n_users, dtype=bool)
        both[list(set(groups_of(chain.releases[-1])) & set(groups_of(chain.anew)))] = True
        losses.append((loss(chain.releases[-1], test, both), loss(chain.anew, test, both)))
        chains.append(chain)
    least = min(smallest(chain.releases[:n]) for chain in chains for n in range(1, RELEASES + 1))
    other = min(smallest([chain.releases[-1], chain.anew]) for chain in chains)
    of = f"{name}, {len(seeds)} splits"
    result.add(Claim(
        f"{of}: people in the smallest set that the groups of 1 to 5 releases have in common", str(least),
        f"{other} (the fifth and one made anew)", least / other, "at least 10", least >= K,
    ))  # fmt: skip
    ours, anew = np.mean(losses, axis=0)
    result.add(Claim(
        f"{of}: MAE of the fifth release", f"{ours:.4f}", f"{anew:.4f} (made anew)", float(ours / anew),
        f"at most {GOAL_LOSS:g} more", bool(ours - anew <= GOAL_LOSS),
        "; ".join(f"{one:.4f} against {two:.4f}" for one, two in losses),
    ))  # fmt: skip
    present = [sum(len(groups_of(chain.releases[-1])) for chain in chains),
               sum(len(groups_of(chain.anew)) for chain in chains)]  # fmt: skip
    result.add(Claim(
        f"{of}: people in the fifth release", f"{present[0]:,}", f"{present[1]:,} (made anew)",
        present[0] / present[1], "at least .97", present[0] >= 0.97 * present[1],
        "the others are of groups that were withdrawn, or wait",
    ))  # fmt: skip
    twos = [attacked(chain.releases[-2], chain.releases[-1], ["intersection", "changes"]) for chain in chains]
    single = float(np.mean([alone(chain.anew, ["posterior"])["posterior"]["group"] for chain in chains]))
    right = float(np.mean([found["intersection"]["group"] for found in twos]))
    n = sum(int(found["intersection"]["people"]) for found in twos)
    noise = 2 * np.sqrt(2 * single * (1 - single) / n)
    result.add(Claim(
        f"{of}: both right groups found, 8 ratings known", rate(right, n), f"{rate(single, n)} (one release made anew)",
        right / single, "not more, by two standard errors", bool(right <= single + noise),
    ))  # fmt: skip
    told = float(np.mean([found["changes"]["newcomer_auc"] for found in twos]))
    result.add(Claim(
        f"{of}: which items a newcomer rated, no companion known (AUC)", f"{told:.3f}", ".5 (chance)", told / 0.5,
        f"at most {GOAL_ITEMS:.2f}", bool(told <= GOAL_ITEMS),
    ))  # fmt: skip
    membership(of, chains[0], shadows, result)
    proven(name, ratings, seeds[0], shadows, result)


def membership(of: str, chain: Chain, shadows: int, result: Result) -> None:
    one, two = Attacked.of(chain.releases[-2]), Attacked.of(chain.releases[-1])
    second = Second.of(one, two, chain.releases[-2].user_ids, chain.releases[-1].user_ids)
    told = pairs(one, second, asked=shadows).details
    single = told["single"]
    for name, words in COMPANIONS.items():
        result.add(Claim(
            f"{of}: that a person came, {words} companions known (AUC)", f"{told[f'came{name}']:.3f}",
            f"{single:.3f} (the second release alone)", told[f"came{name}"] / single,
            "not more than .03 above" if name == "" else "told, not promised",
            bool(name != "" or told["came"] <= single + 0.03),
            "" if name == "" else f"with accounts that copy the person: {told[f'controlled{name}']:.3f}",
        ))  # fmt: skip
    for name, words in COMPANIONS.items():
        result.add(Claim(
            f"{of}: who of a group that is smaller by one has left, {words} companions known (AUC)",
            f"{told[f'left{name}']:.3f}", ".5 (chance)", told[f"left{name}"] / 0.5, "told, not promised", True,
        ))  # fmt: skip
    result.add(Claim(
        f"{of}: which items a newcomer rated, all other ratings known (AUC)", f"{told['items_known']:.3f}",
        ".5 (chance)", told["items_known"] / 0.5, "told, not promised", True, "item_noise 3, nothing proven",
    ))  # fmt: skip


def proven(name: str, ratings: Ratings, seed: int, shadows: int, result: Result) -> None:
    """The same with a proven item side, of epsilon 4.1 a release, about 10 over all five."""
    growth = Growth.of(ratings, seed)
    choice = {"items": True, "item_epsilon": 4.1, "scale": list(ratings.scale)}
    chain = chain_of([growth.at(ratings, release) for release in range(RELEASES)], choice)
    one, two = Attacked.of(chain.releases[-2]), Attacked.of(chain.releases[-1])
    second = Second.of(one, two, chain.releases[-2].user_ids, chain.releases[-1].user_ids)
    told = pairs(one, second, asked=shadows).details
    spent = chain.audits[-1]["item_privacy"]["all_releases"]["epsilon_of_charges"]
    result.add(Claim(
        f"{name}, item_epsilon 4.1: epsilon of five releases", f"{spent:.2f}", "20.5 (added)", spent / 20.5,
        "about 10: at most 10.5", bool(spent <= 10.5),
    ))  # fmt: skip
    result.add(Claim(
        f"{name}, item_epsilon 4.1: which items a newcomer rated, all other ratings known (AUC)",
        f"{told['items_known']:.3f}", ".5 (chance)", told["items_known"] / 0.5, f"at most {GOAL_ITEMS:.2f}",
        bool(told["items_known"] <= GOAL_ITEMS), f"no companion known: {told['items']:.3f}",
    ))  # fmt: skip


def spent() -> float:
    """Seconds of the processor that this process has had."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cost(count: int, runs: int, result: Result) -> None:
    """Time a release of made-up ratings with 1% new ones: following another, and made anew, in turns.

    Seconds of the processor decide, which hang less on what else runs; those of the clock are told beside them.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        every, first, new = (folder / f"{name}.parquet" for name in ("every", "first", "new"))
        write_parquet(every, Shape(ratings=count))
        with duckdb.connect() as con:
            # 1% of the ratings are new, a part of them of people who are new.
            new_ones = "hash(user_id) % 200 = 0 or hash(user_id, item_id) % 200 = 0"
            con.execute(f"copy (from '{every}' where not ({new_ones})) to '{first}'")
            con.execute(f"copy (from '{every}' where {new_ones}) to '{new}'")
        options = LoadOptions()
        times: dict[str, list[tuple[float, float]]] = {"anew": [], "additions": [], "all": []}

        def timed_publish(kind: str, *given: Any, **more: Any) -> None:
            start, used = time.perf_counter(), spent()
            publish(*given, options, force=True, **more)
            times[kind].append((spent() - used, time.perf_counter() - start))

        kept = folder / "kept"
        chain = PublishSettings(k=K, cells="low_rank", history=True)
        publish([str(first)], folder / "one", chain, options, force=True, keep_work=kept)
        # Once before it counts: what is loaded and parsed in the first run of a kind is not of its data.
        for _ in range(1 + runs):
            timed_publish("anew", [str(every)], folder / "anew", PublishSettings(k=K, cells="low_rank"))
            for kind, inputs, additions in (("all", [every], False), ("additions", [new], True)):
                work = folder / kind
                work.mkdir(exist_ok=True)
                shutil.copy(kept / "work.duckdb", work / "work.duckdb")
                following = Following(work, additions=additions)
                settings = with_last(following, PublishSettings(k=K))
                timed_publish(kind, list(map(str, inputs)), folder / f"{kind}-out", settings, following=following)
                shutil.rmtree(work)
        median = {kind: np.median(found[1:], axis=0) for kind, found in times.items()}
        for kind, words, most in (("additions", "1% additions", 0.5), ("all", "all data, 1% new", 0.75)):
            found, base = median[kind], median["anew"]
            result.add(Claim(
                f"{count:,} ratings, {words}: processor", f"{found[0]:.1f} s", f"{base[0]:.1f} s (anew)",
                float(found[0] / base[0]), f"at most {most:g}", bool(found[0] <= most * base[0]),
                f"clock: {found[1]:.1f} s, {base[1]:.1f} s",
            ))  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", default="ml-1m")
    arguments.add_argument("--splits", type=int, default=3)
    arguments.add_argument("--shadows", type=int, default=60)
    arguments.add_argument("--cost", type=int, nargs="*", help="made-up ratings")
    arguments.add_argument("--runs", type=int, default=RUNS, help="with --cost: how often each way is timed")
    given = arguments.parse_args()
    if given.cost:
        result = Result("over_time_cost")
        for count in given.cost:
            cost(count, given.runs, result)
        return
    result = Result("over_time")
    for name in given.data.split(","):
        measure(name, range(given.splits), given.shadows, result)


if __name__ == "__main__":
    main()
