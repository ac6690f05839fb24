"""Publishing by Spark against the engine duckdb, on the same file in the same run.

    make bench-spark PARTS="ml-1m made"

Parts, each by itself (all but `large` where none is named):

- `ml-1m`: both engines, Spark as local[2].
- `made`: both engines on made-up ratings (make_ratings.py), 20 million or `--size` million; Spark as local[2].
- `cluster`: Spark on the same as local-cluster[2,1,1024], for the memory of the driver and of the workers, and its
  groups against those of local[2].
- `leaves`: Spark on the same as local[2], in leaves of 20,000 users and in one leaf, for what leaves cost.
- `skew`: Spark on 2 million ratings, of which 1% are of one user.
- `items`: Spark on 5 million ratings of a million items.
- `large`: Spark on 100 million made-up ratings, against its own time at 20 million, and on local-cluster[2,1,1024]
  for the memory.

Each command runs in a process of its own, one after the other, watched from outside; what Spark takes to start is in
its time. All releases are low_rank with k = 10. The right-group rate is how often somebody who knows 8 ratings of a
user, and looks for the group whose vector predicts them best, finds the group. What a command took is kept in
`--folder` and not measured again, so a run that was stopped goes on (`--anew` forgets it). Writes
benchmarks/results/spark.{md,json}; parts that were not asked for stay there.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
from harness import RESULTS, Claim, Result, tree_of
from make_ratings import Shape, write_parquet

import kgather
from kgather._sql_text import literal

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("KGATHER_DATA", ROOT.parent / "shared" / "data"))
SCRATCH = Path(os.environ.get("KGATHER_SCRATCH", tempfile.gettempdir())) / "kgather-bench-spark"
K, KNOWN, ATTACKED = 10, 8, 2_000
START, TIMES, GROWTH = 30.0, 3.0, 5.5
DRIVER, WORKER = 1.5, 1.0  # GB
LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,1024]"
LEAF_USERS, LEAF_GAP = 20_000, 0.002

# What the command line does, with an argument that it does not have.
_IN_LEAVES = """
import json, sys
import kgather.spark
from kgather._spark import session

master, file, release, secret, key, k, leaf_users = sys.argv[1:]
with session.started(master) as spark:
    made = kgather.spark.publish(
        spark.read.parquet(file), release, k=int(k), scale=[1.0, 5.0], cells="low_rank", force=True, noise_key=key,
        secret_map=secret, leaf_users=int(leaf_users),
    )
    print(json.dumps({"metrics": [dict(each) for each in made.audit.metrics]}))
"""


@dataclass
class Taken:
    """What a command took and what came of it.

    memory: the largest of a kind of process, GB: the driver's Python and Java (in local[2] that of the executors too),
    executors' Java, and workers. load: of the machine when it began.
    """

    wall: float
    cpu: float
    memory: dict[str, float]
    load: float
    error: float
    right: float
    groups: int

    @property
    def driver(self) -> float:
        """GB of the driver's Python and Java."""
        return self.memory.get("python", 0.0) + self.memory.get("java", 0.0)


class Kept(Result):
    """A result with the claims of earlier runs, but for those of the parts that are measured now."""

    def forget(self, part: str) -> None:
        """Leave out what is there of a part."""
        self.claims = [claim for claim in self.claims if not claim.what.startswith(f"{part}: ")]

    @classmethod
    def read(cls, name: str) -> "Kept":
        """What was written before."""
        file = RESULTS / f"{name}.json"
        said = json.loads(file.read_text(encoding="utf-8"))["claims"] if file.exists() else []
        return cls(name, [Claim(**claim) for claim in said])


def _kind(pid: int) -> str | None:
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    if b"pyspark.daemon" in said:
        return "worker"
    if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in said:
        return "executor"
    if said[0].endswith(b"java"):
        # Masters and workers of a cluster on one machine are in the driver's Java.
        return "java"
    return "python" if said[0] else None


def run(command: Sequence[str]) -> tuple[dict[str, object], float, float, dict[str, float]]:
    """What a command printed as JSON, its wall time, processor time, and memory by the kind of process."""
    spent: dict[int, float] = {}
    memory: dict[str, float] = {}
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as told, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=told, stderr=said, text=True)
        while process.poll() is None:
            for pid, (seconds, size) in tree_of(process.pid).items():
                kind = _kind(pid)
                if kind is not None:
                    spent[pid] = seconds
                    memory[kind] = max(memory.get(kind, 0.0), size)
            time.sleep(0.25)  # looking at all processes costs, too
        wall = time.perf_counter() - start
        if process.returncode:
            said.seek(0)
            sys.exit(said.read()[-4000:])
        told.seek(0)
        return json.load(told), wall, sum(spent.values()), memory


def published(file: Path, folder: Path, name: str, master: str | None, leaf_users: int | None = None) -> Taken:
    """Publish by Spark as `master`, or by the engine duckdb; or what is known of it from an earlier run."""
    kept = folder / f"{name}.json"
    if kept.exists():
        return Taken(**json.loads(kept.read_text(encoding="utf-8")))
    release, secret = folder / f"{name}-release", folder / f"{name}-secret"
    shutil.rmtree(secret, ignore_errors=True)
    command = [str(Path(sys.executable).with_name("kgather")), "publish", str(file), "--k", str(K), "--scale", "1,5"]
    command += ["--json", "--force", "--cells", "low_rank", "--out", str(release)]
    command += ["--noise-key", str(folder / "noise.key")]
    if master is None:
        command += ["--keep-work", str(secret)]
    else:
        command += ["--engine", "spark", "--master", master, "--secret-map", str(secret)]
    if leaf_users is not None:
        command = [sys.executable, "-c", _IN_LEAVES, str(master), str(file), str(release), str(secret)]
        command += [str(folder / "noise.key"), str(K), str(leaf_users)]
    load = os.getloadavg()[0]
    told, wall, cpu, memory = run(command)
    metrics = {each["metric"]: each["value"] for each in told["metrics"]}  # type: ignore[attr-defined]
    right, groups = right_groups(file, release, secret, master is None)
    taken = Taken(wall, cpu, memory, load, metrics.get("mean_absolute_error", math.nan), right, groups)
    kept.write_text(json.dumps(asdict(taken)), encoding="utf-8")
    print(f"{name}: {taken}", flush=True)
    return taken


def right_groups(file: Path, release: Path, secret: Path, in_duckdb: bool) -> tuple[float, int]:
    """How often the group is found of a user of whom 8 ratings are known, and the number of groups."""
    read = kgather.Release(release)
    groups, items = read.table("group_vectors").sort_by("group_id"), read.table("item_vectors").sort_by("item_id")
    ids, item_ids = groups["group_id"].to_numpy(), items["item_id"].to_numpy()
    level, item_level = groups["level"].to_numpy(), items["level"].to_numpy()
    factor, item_factor = (np.stack(each["factor"].to_numpy()) for each in (groups, items))
    with duckdb.connect() as con:
        if in_duckdb:
            con.execute(f"attach {literal(secret / 'work.duckdb')} as kept (read_only)")
            con.execute("create view people as select user_id, group_id from kept.main.int_kgather__groups")
        else:
            con.execute(f"create view people as from read_parquet({literal(secret / '*.parquet')})")
        columns = [each[0] for each in con.execute(f"describe from {literal(file)}").fetchall()]
        user, item, rating = columns[:3]
        known = con.sql(
            f"""
            with chosen as (select user_id, group_id from people order by hash(user_id), user_id limit {ATTACKED}),
            given as (
              select chosen.user_id, group_id, "{item}" as item_id, any_value("{rating}") as rating
              from {literal(file)} as ratings join chosen on ratings."{user}" = chosen.user_id
              group by all
            )
            select group_id, list(item_id order by hash(user_id, item_id))[:{KNOWN}] as items,
              list(rating order by hash(user_id, item_id))[:{KNOWN}] as ratings
            from given group by user_id, group_id having count(*) >= {KNOWN} order by user_id
            """
        ).to_arrow_table()
    found = 0
    for row in known.to_pylist():
        at = np.searchsorted(item_ids, row["items"])
        told = np.clip(level[:, None] + item_level[at] + factor @ item_factor[at].T, 1, 5)
        best = np.square(told - np.array(row["ratings"])).sum(axis=1).argmin()
        found += int(ids[best] == row["group_id"])
    return found / len(known), len(ids)


def same_groups(folder: Path, one: str, other: str) -> bool:
    """Whether two secret maps of Spark's have the same people in groups, whatever the groups' names."""
    maps = [pq.read_table(folder / f"{name}-secret").sort_by("user_id") for name in (one, other)]
    if not maps[0]["user_id"].equals(maps[1]["user_id"]):
        return False
    firsts = [np.unique(each["group_id"].to_numpy(), return_index=True, return_inverse=True)[1:] for each in maps]
    return bool(np.array_equal(*(first[which] for first, which in firsts)))


def _times(taken: Taken) -> str:
    return f"{taken.wall:.0f} s"


def compare(result: Result, part: str, whole: Taken, mine: Taken) -> None:
    """Both engines on the same ratings."""
    gap = abs(mine.error - whole.error)
    result.add(
        Claim(
            f"{part}: mean absolute error", f"{mine.error:.4f}", f"{whole.error:.4f}", mine.error / whole.error,
            "within .001", gap <= 0.001,
        )
    )  # fmt: skip
    # Two shares of the same number of people, each with its own noise.
    noise = 3 * (2 * max(whole.right, 1 / ATTACKED) * (1 - whole.right) / ATTACKED) ** 0.5
    result.add(
        Claim(
            f"{part}: right group found, {KNOWN} ratings known", f"{mine.right:.4f}", f"{whole.right:.4f}",
            mine.right / max(whole.right, 1 / ATTACKED), f"within {noise:.4f}", abs(mine.right - whole.right) <= noise,
            f"{mine.groups:,} and {whole.groups:,} groups",
        )
    )  # fmt: skip
    result.add(
        Claim(
            f"{part}: wall time", _times(mine), _times(whole), mine.wall / whole.wall,
            f"at most {TIMES:.0f} times and {START:.0f} s", mine.wall <= TIMES * whole.wall + START,
            f"load {mine.load:.0f} and {whole.load:.0f} on {os.cpu_count()} cores",
        )
    )  # fmt: skip
    result.add(
        Claim(
            f"{part}: processor time", f"{mine.cpu:.0f} s", f"{whole.cpu:.0f} s", mine.cpu / whole.cpu, "no goal", True
        )
    )


def memory(result: Result, part: str, taken: Taken, *, in_cluster: bool) -> None:
    """The driver, which in local[2] is the executors too, and the Python workers."""
    result.add(
        Claim(
            f"{part}: memory of the driver, Python and Java", f"{taken.driver:.2f} GB", f"{DRIVER} GB",
            taken.driver / DRIVER, f"below {DRIVER} GB" if in_cluster else "no goal: executors are in it",
            not in_cluster or taken.driver < DRIVER, f"Python {taken.memory.get('python', 0.0):.2f} GB",
        )
    )  # fmt: skip
    worker = taken.memory.get("worker", 0.0)
    result.add(
        Claim(
            f"{part}: memory of the largest Python worker", f"{worker:.2f} GB", f"{WORKER} GB", worker / WORKER,
            f"below {WORKER:.0f} GB", worker < WORKER,
        )
    )  # fmt: skip


def alone(result: Result, part: str, taken: Taken) -> None:
    """Spark on ratings that are unlike others."""
    result.add(
        Claim(
            f"{part}: wall time",
            _times(taken),
            "none",
            1.0,
            "it ends",
            True,
            f"error {taken.error:.4f}, load {taken.load:.0f}",
        )
    )
    memory(result, part, taken, in_cluster=True)


def films(file: Path) -> None:
    """ml-1m as Parquet."""
    with duckdb.connect() as con:
        con.execute(
            f"copy (from read_csv({literal(DATA / 'ml-1m' / 'ratings.csv')})) to {literal(file)} (format parquet)"
        )


def skewed(file: Path) -> None:
    """2 million ratings of 20,000 items, all of which the first user rates: 1% of all."""
    write_parquet(file, Shape(2_000_000, items=20_000, everything=True))


def many_items(file: Path) -> None:
    """5 million ratings by 50,000 users of a million items, few of which have many."""
    with duckdb.connect() as con:
        con.execute(
            f"""
            copy (
              select distinct on (user_id, item_id) (n % 50_000) as user_id,
                case when n < 1_000_000 then n
                  else cast(floor(1e6 * pow((hash(n) % 1_000_003) / 1_000_003, 3)) as bigint) end as item_id,
                cast(1 + hash(n, 1) % 5 as double) as rating
              from range(5_000_000) as made(n) order by user_id, item_id
            ) to {literal(file)} (format parquet)
            """
        )


def measured(part: str, folder: Path, size: int, result: Result) -> None:
    """One part."""
    folder.mkdir(parents=True, exist_ok=True)

    def made(name: str, make: Callable[[Path], None]) -> Path:
        file = folder / f"{name}.parquet"
        if not file.exists():
            unfinished = file.with_suffix(".part")
            make(unfinished)
            unfinished.rename(file)
        return file

    def of_size(millions: int) -> Path:
        return made(f"{millions}m", lambda file: write_parquet(file, Shape(millions * 1_000_000)))

    name = f"{size} million"
    if part == "ml-1m":
        file = made("ml-1m", films)
        compare(result, part, published(file, folder, "ml-1m-duckdb", None), published(file, folder, "ml-1m", LOCAL))
    elif part == "made":
        file = of_size(size)
        mine, whole = published(file, folder, f"{size}m", LOCAL), published(file, folder, f"{size}m-duckdb", None)
        compare(result, name, whole, mine)
        memory(result, name, mine, in_cluster=False)
    elif part == "cluster":
        taken = published(of_size(size), folder, f"{size}m-cluster", CLUSTER)
        memory(result, f"{name} on {CLUSTER}", taken, in_cluster=True)
        if (folder / f"{size}m-secret").exists():
            same = same_groups(folder, f"{size}m", f"{size}m-cluster")
            said = "the same" if same else "others"
            result.add(Claim(f"{name} on {CLUSTER}: groups", said, f"of {LOCAL}", 1.0, "the same", same))
    elif part == "leaves":
        one = published(of_size(size), folder, f"{size}m", LOCAL)
        some = published(of_size(size), folder, f"{size}m-leaves", LOCAL, LEAF_USERS)
        result.add(
            Claim(
                f"{name} in leaves: mean absolute error", f"{some.error:.4f}", f"{one.error:.4f}",
                some.error / one.error, f"within {LEAF_GAP}", abs(some.error - one.error) <= LEAF_GAP,
                f"leaves of {LEAF_USERS:,} users, and one leaf of all",
            )
        )  # fmt: skip
    elif part == "skew":
        alone(result, "one user with 1%", published(made("skew", skewed), folder, "skew", CLUSTER))
    elif part == "items":
        alone(result, "a million items", published(made("items", many_items), folder, "items", CLUSTER))
    else:
        small, large = (published(of_size(each), folder, f"{each}m", LOCAL) for each in (20, 100))
        result.add(
            Claim(
                "100 million: wall time against 20 million", _times(large), _times(small), large.wall / small.wall,
                f"at most {GROWTH} times", large.wall <= GROWTH * small.wall,
                f"load {large.load:.0f} and {small.load:.0f}",
            )
        )  # fmt: skip
        result.add(
            Claim(
                "100 million: processor time against 20 million", f"{large.cpu:.0f} s", f"{small.cpu:.0f} s",
                large.cpu / small.cpu, "no goal", True,
            )
        )  # fmt: skip
        memory(result, "100 million", large, in_cluster=False)
        taken = published(of_size(100), folder, "100m-cluster", CLUSTER)
        memory(result, f"100 million on {CLUSTER}", taken, in_cluster=True)
        same = same_groups(folder, "100m", "100m-cluster")
        said = "the same" if same else "others"
        result.add(Claim(f"100 million on {CLUSTER}: groups", said, f"of {LOCAL}", 1.0, "the same", same))


_SAID = {"skew": "one user with 1%", "items": "a million items", "large": "100 million"}
PARTS = ("ml-1m", "made", "cluster", "leaves", "skew", "items", "large")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which parts; all but large if none")
    parser.add_argument(
        "--size", type=int, default=20, help="millions of made-up ratings of `made`, `cluster` and `leaves`"
    )
    parser.add_argument("--folder", type=Path, default=SCRATCH, help="where ratings, releases and measures are kept")
    parser.add_argument("--anew", action="store_true", help="measure again what is kept")
    asked = parser.parse_args()
    if asked.anew:
        for kept in asked.folder.glob("*.json"):
            kept.unlink()
    result = Kept.read("spark")
    for part in asked.parts or PARTS[:-1]:
        said = _SAID.get(part, part)
        if part in ("made", "cluster", "leaves"):
            said = f"{asked.size} million" + {"cluster": f" on {CLUSTER}", "leaves": " in leaves"}.get(part, "")
        result.forget(said)
        measured(part, asked.folder, asked.size, result)


if __name__ == "__main__":
    main()
