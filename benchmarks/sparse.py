"""What a release gives away by which items its groups show, to attackers who know no rating.

    make bench-sparse

Four fifths of the ratings of ml-100k are published (80/20, three seeds), k = 10. The attackers know 4 or 8 items that a
user rated: `structure` takes any group that shows them all, `items` the likeliest by the rule of Bayes where a group
shows all that its members rated. That is not so of best, popular and top N: a third one, `pattern`, reckons with known
items that are not shown, too. "Covered" is the share of the held-out ratings whose group shows their item, "rated" the
share of the shown cells that some member rated. Needs real data under $KGATHER_DATA. Writes
benchmarks/results/sparse.md.
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
from choices import split
from harness import RESULTS, machine
from release import data_folder

from kgather._attacks import run
from kgather._attacks.attacked import Attacked
from kgather._attacks.auxiliary import Knowledge, draw
from kgather._evaluation.evidence import Evidence, read_evidence
from kgather._loaders import LoadOptions
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings

FILE = "ml-100k/u.data"
K = 10
SEEDS = (0, 1, 2)
KNOWN = (4, 8)
ATTACKED = 1000
ATTACKS = ("structure", "items")
STEADY = 20  # so many raters weigh as much as what is known of all items
CHOICES: tuple[dict, ...] = (
    {"cells": "all"},
    {"cells": "rated"},
    {"cells": "best 100"},
    {"cells": "popular 100"},
    {"cells": "popular 100", "popular_noise": 0},
    {"cells": "popular 100", "popular_noise": 3},
    {"cells": "top 100"},
)
_SHOWN = """
with shown as (select group_id, item_id, rating from release.kgather__ratings),
tests as (
  select groups.group_id, test.item_id, test.rating from test join work.int_kgather__groups as groups using (user_id)
)
select
  (select count(*) from tests semi join shown using (group_id, item_id)) / (select count(*) from test) as covered,
  (select avg(abs(shown.rating - tests.rating)) from tests join shown using (group_id, item_id)) as mae,
  (
    select count(*)
    from shown
    semi join (
      select group_id, item_id from work.stg_kgather__ratings join work.int_kgather__groups using (user_id)
    ) using (group_id, item_id)
  ) / (select count(*) from shown) as rated,
  (select count(*) from shown) / (select count(distinct group_id) from shown) as items
"""


def measure(train: Path, held_out: list[tuple], folder: Path, choice: Mapping[str, object], seed: int) -> dict:
    """Publish, and look at the release with the secret map in hand."""
    settings = PublishSettings(**{"k": K, "seed": seed, "metrics": "none", **choice})
    published = publish(
        [str(train)], folder / "release", settings, LoadOptions(), force=True, keep_work=folder / "work"
    )
    with duckdb.connect() as con:
        con.execute(f"attach '{folder}/work/work.duckdb' as work (read_only)")
        con.execute(f"attach '{folder}/release/release.duckdb' as release (read_only)")
        users, items, ratings = (np.array(column) for column in zip(*held_out, strict=True))
        con.register("test", {"user_id": users, "item_id": items, "rating": ratings})
        relation = con.sql(_SHOWN)
        found = dict(zip(relation.columns, relation.fetchall()[0], strict=True))
        evidence = read_evidence(con, "work", "release", published.audit.parameters)
    attacked = run(
        evidence, known=KNOWN, targets=ATTACKED, attacks=list(ATTACKS), seed=seed, original_too=False, threads=2
    )
    rates = {f"{one.attack} {one.known}": one.group.value for one in attacked.results if one.group}
    rates |= {f"pattern {known}": pattern(evidence, known, seed) for known in KNOWN}
    return found | rates | {"chance": attacked.results[0].chance_group}


def pattern(evidence: Evidence, known: int, seed: int) -> float:
    """How often the right group is the likeliest by which of the known items it shows and which it does not.

    An item is as likely among those of somebody in a group as it is popular, times how much likelier the group of a
    rater shows it (or not) than any group. That is taken from the original, of all but the target.
    """
    drawn = draw(Attacked.of(evidence), Knowledge(known), targets=ATTACKED, seed=seed)
    original = evidence.original
    shown = ~np.isnan(evidence.shown.columns(np.arange(original.n_items))[0])  # items x groups
    owners = np.repeat(np.arange(original.n_users), np.diff(original.indptr))
    hits = np.bincount(original.items, shown[original.items, evidence.truth[owners]], original.n_items)
    raters = np.bincount(original.items, minlength=original.n_items)
    usual = hits.sum() / raters.sum()
    of_any = (shown.sum(axis=1) + 0.5) / (shown.shape[1] + 1)

    def odds(items: np.ndarray, own: np.ndarray | int, count: int) -> np.ndarray:
        rate = (hits[items] - own + STEADY * usual) / (raters[items] - count + STEADY)
        of_raters, of_others = (np.clip(each, 1e-4, 1 - 1e-4)[:, None] for each in (rate, of_any[items]))
        return np.where(shown[items], of_raters / of_others, (1 - of_raters) / (1 - of_others))

    total = (odds(np.arange(original.n_items), 0, 0) * (raters / raters.sum())[:, None]).sum(axis=0)
    right = []
    for user, items in zip(drawn.users, drawn.items, strict=True):
        group = evidence.truth[user]
        score = np.log(odds(items, shown[items, group], 1) / total).sum(axis=0) + np.log(evidence.shown.sizes)
        best = score >= score.max() - 1e-9
        right.append(best[group] / best.sum())
    return float(np.mean(right))


def main() -> None:
    file = data_folder() / FILE
    if not file.exists():
        sys.exit(f"No {FILE} under {data_folder()}. Set KGATHER_DATA.")
    names = [f"{attack} {known}" for attack in (*ATTACKS, "pattern") for known in KNOWN]
    lines = ["# sparse", "", *(f"- {name}: {value}" for name, value in machine().items()), ""]
    heads = ["cells", "items a group", "rated", "covered", "MAE", *names, "chance"]
    lines += [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    found: dict[int, list[dict]] = {}
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as temporary:
            train, held_out = split(file, Path(temporary), seed)
            for place, choice in enumerate(CHOICES):
                found.setdefault(place, []).append(measure(train, held_out, Path(temporary), choice, seed))
                print(seed, choice, found[place][-1], flush=True)
    for place, choice in enumerate(CHOICES):
        mean = {name: float(np.mean([run[name] for run in found[place]])) for name in found[place][0]}
        said = ", ".join(f"{value}" if key == "cells" else f"noise {value}" for key, value in choice.items())
        rates = " | ".join(f"{mean[name]:.3f}" for name in (*names, "chance"))
        quality = f"{mean['items']:.0f} | {mean['rated']:.2f} | {mean['covered']:.3f} | {mean['mae']:.3f}"
        lines.append(f"| {said} | {quality} | {rates} |")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "sparse.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
