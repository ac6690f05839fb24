"""`make coverage`: what the tests reach, by package, and whether each package has its floor.

Lines and branches are counted. What is compiled is not seen, so that tests of kernels by hand run once more as plain
Python: of the kernels these alone count.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "kgather"
SMALL = "(hand or example or paper or published) and not movielens and not real"

# In percent, a little below what was measured: raise them with what is reached.
FLOORS: dict[str, float] = {}


def run(*arguments: str, **environment: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--cov", "--cov-append", "--cov-report=", *arguments]
    if subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode:
        sys.exit("tests failed: what they reach is not measured.")


def measure(folder: Path) -> dict[str, tuple[int, int]]:
    """How many lines and branches there are, and how many were reached, by package."""
    coverage = Coverage(data_file=os.environ["COVERAGE_FILE"], config_file=str(ROOT / "pyproject.toml"))
    coverage.load()
    coverage.json_report(outfile=str(folder / "coverage.json"))
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, said in json.loads((folder / "coverage.json").read_text())["files"].items():
        inside = (ROOT / name).relative_to(PACKAGE)
        package = inside.parts[0] if len(inside.parts) > 1 else "kgather"
        numbers = said["summary"]
        there, reached = found[package]
        found[package] = (
            there + numbers["num_statements"] + numbers["num_branches"],
            reached + numbers["covered_lines"] + numbers["covered_branches"],
        )
    return dict(found)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COVERAGE_FILE"] = str(Path(folder) / "coverage")
        run("-n", "2", "--dist", "worksteal", "-m", "not long", *sys.argv[1:])
        run("tests/kernels", "-m", "not slow and not long and not hypothesis", "-k", SMALL, NUMBA_DISABLE_JIT="1")
        found = measure(Path(folder))
    low = []
    for package, (there, reached) in sorted(found.items()):
        share, floor = 100 * reached / max(there, 1), FLOORS.get(package, 0)
        print(f"{package:16} {share:5.1f} %   floor {floor:g} %")
        if share < floor:
            low.append(package)
    if low:
        sys.exit(f"less is reached than was: {', '.join(low)}. Test what is new, or lower the floor and say why.")


if __name__ == "__main__":
    main()
