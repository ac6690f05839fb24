"""What all benchmarks share: timing, the machine's description, and results as Markdown and JSON."""

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Wall times of a few runs, in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return f"{self.median:.3g} s ({min(self.seconds):.3g} to {max(self.seconds):.3g}, n = {len(self.seconds)})"


@dataclass(frozen=True)
class Claim:
    """One line of a result: ours against a rival's, and the goal for their ratio."""

    what: str
    ours: str
    rival: str
    ratio: float
    goal: str
    reached: bool
    notes: str = ""


@dataclass
class Result:
    """A benchmark's result, written as it grows."""

    name: str
    claims: list[Claim] = field(default_factory=list)

    def add(self, claim: Claim) -> None:
        """Add a claim, print it and write the files anew."""
        self.claims.append(claim)
        verdict = "reached" if claim.reached else "NOT reached"
        print(f"{claim.what}: {claim.ours} against {claim.rival}, ratio {claim.ratio:.3g}, {claim.goal}: {verdict}")
        RESULTS.mkdir(exist_ok=True)
        said = {"benchmark": self.name, "machine": machine(), "claims": [asdict(claim) for claim in self.claims]}
        (RESULTS / f"{self.name}.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        (RESULTS / f"{self.name}.md").write_text(self._markdown(), encoding="utf-8")

    def _markdown(self) -> str:
        about = "\n".join(f"- {name}: {value}" for name, value in machine().items())
        rows = "\n".join(
            f"| {c.what} | {c.ours} | {c.rival} | {c.ratio:.3g} | {c.goal} | {'yes' if c.reached else '**no**'} "
            f"| {c.notes} |"
            for c in self.claims
        )
        return (
            f"# {self.name}\n\n{about}\n\n"
            "| what | kgather | rival | ratio | goal | reached | notes |\n"
            f"| --- | --- | --- | --- | --- | --- | --- |\n{rows}\n"
        )


def timed(work: Callable[[], object], runs: int) -> Timing:
    """Run something a few times, without the garbage collector in between."""
    seconds = []
    for _ in range(runs):
        gc.collect()
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return Timing(tuple(seconds))


def paired(ours: Callable[[], object], rival: Callable[[], object], runs: int) -> tuple[Timing, Timing]:
    """Time two things in turns, so that a busy moment hits both."""
    turns = [(timed(ours, 1).seconds[0], timed(rival, 1).seconds[0]) for _ in range(runs)]
    return Timing(tuple(a for a, _ in turns)), Timing(tuple(b for _, b in turns))


def machine() -> dict[str, str]:
    """Describe the machine and the versions that matter."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    packages = ("duckdb", "dbt-core", "numba", "numpy", "scikit-surprise", "anonypy", "k-means-constrained")
    return {
        "processor": f"{model}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {version(name)}" for name in packages if _is_installed(name)),
    }


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def tree_of(root: int) -> dict[int, tuple[float, float]]:
    """A process and all that it started, by number: seconds of processor time and GB of memory of each."""
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    parents, found = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            found[int(entry.name)] = ((int(fields[11]) + int(fields[12])) / ticks, int(fields[21]) * page / 2**30)
    own, waiting = {}, [root]
    while waiting:
        process = waiting.pop()
        if process in found:
            own[process] = found[process]
        waiting += [child for child, parent in parents.items() if parent == process]
    return own
