"""Results of the guard's benchmark: printed, and written part by part as Markdown and JSON."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from harness import RESULTS, machine


@dataclass(frozen=True)
class Row:
    """One line of the results. goal, ours: as text. reached: None where there is no goal. rivals: of each by name."""

    what: str
    goal: str
    ours: str
    reached: bool | None
    rivals: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""


def write(parts: Sequence[str], part: str, rows: Sequence[Row]) -> None:
    """Print a part's rows, and write them among those of the other parts. parts: all there are, in their order."""
    for row in rows:
        verdict = {None: "", True: ": reached", False: ": NOT reached"}[row.reached]
        print(
            f"{part} | {row.what} | goal {row.goal or 'none'} | {row.ours}{verdict} | {dict(row.rivals)} | {row.notes}"
        )
    sys.stdout.flush()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "guard.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = {name: before.get("parts", {}).get(name) for name in parts}
    found[part] = [asdict(row) for row in rows]
    said = {"benchmark": "guard", "machine": machine(), "parts": {name: of for name, of in found.items() if of}}
    path.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    (RESULTS / "guard.md").write_text(_markdown(said["parts"]), encoding="utf-8")


def _markdown(parts: Mapping[str, Sequence[Mapping]]) -> str:
    about = "\n".join(f"- {name}: {value}" for name, value in machine().items())
    told = [f"# guard\n\n{about}\n\n{_ABOUT}"]
    for name, rows in parts.items():
        rivals = list(dict.fromkeys(rival for row in rows for rival in row["rivals"]))
        heads = ["what", "goal: at most", "kgather", "reached", *rivals, "notes"]
        lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
        for row in rows:
            reached = {None: "", True: "yes", False: "**no**"}[row["reached"]]
            of = [row["rivals"].get(rival, "") for rival in rivals]
            lines.append(f"| {' | '.join([row['what'], row['goal'], row['ours'], reached, *of, row['notes']])} |")
        told.append(f"## {name}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(told)


_ABOUT = """Written by `benchmarks/guard.py`, whose beginning says how. Errors are relative, their median first; in
brackets that of groups of 2% of the people and more. A rival's cell ends with kgather's error on those questions that
both answered. Unsafe: answers without a guarantee; plain thresholds and the older revision gave single people away.
smartnoise-sql draws noise of its own for each question. Its budget is split evenly over all of them by
zero-concentrated privacy, which is better for it than an even split of epsilon; where it is slow it is asked the first
ones only. Rows by MST and AIM: smartnoise-synth with the whole budget, each question asked of the rows.
"""
