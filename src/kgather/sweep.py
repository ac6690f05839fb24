"""Tries methods and sizes of group on the same ratings: what each costs, and what attackers get."""

import csv
import io
import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from kgather import __version__
from kgather.errors import InputError, PromiseError
from kgather.loaders import LoadOptions
from kgather.methods import BY_LEVEL, Method
from kgather.progress import Listener
from kgather.settings import PublishSettings

HELD_OUT = 0.2
"""The share of the ratings that is held out."""
FILES = ("sweep.csv", "sweep.json", "sweep.html")

_NOT_FREE = ("method", "k", "seed")  # set by the sweep itself
_EXACT = re.compile(r"(\d+) exact ratings?")
_SAME_COVERAGE = 0.01


@dataclass(frozen=True)
class SweepRow:
    """One release: its loss and what attacks find in it, or why there is none (`refused`).

    mae: of the shown values on the held-out ratings; covered: the share of these with a shown value. right_group_4 and
    right_group_8: how often the best attack that knows so many exact ratings finds the group. user_reidentification:
    how often the best of all attacks finds the person. exact_disclosure: share of the shown cells that show the exact
    rating of their only rater, or let it be worked out. seconds: of splitting, publishing and reading. front: not
    beaten by another row.
    """

    method: str
    k: int
    mae: float | None = None
    covered: float | None = None
    right_group_4: float | None = None
    right_group_8: float | None = None
    user_reidentification: float | None = None
    exact_disclosure: float | None = None
    groups: int | None = None
    seconds: float | None = None
    front: bool = False
    refused: str | None = None


@dataclass(frozen=True)
class Sweep:
    """All rows of a sweep and what they were made with."""

    rows: tuple[SweepRow, ...]
    inputs: tuple[str, ...]
    seed: int
    settings: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """The sweep as plain data."""
        return {
            "kgather_version": __version__,
            "inputs": list(self.inputs),
            "seed": self.seed,
            "share": HELD_OUT,
            "settings": dict(self.settings),
            "rows": [asdict(row) for row in self.rows],
        }

    def as_csv(self) -> str:
        """The rows with a header; what was not measured is empty."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, [field.name for field in fields(SweepRow)], lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            writer.writerow(asdict(row) | {"front": str(row.front).lower()})
        return stream.getvalue()


def sweep(
    inputs: Sequence[str],
    methods: Sequence[str],
    ks: Sequence[int],
    load_options: LoadOptions,
    *,
    assignments: Sequence[str] = (),
    seed: int = 0,
    report: Listener = lambda *_: None,
) -> Sweep:
    """Publish four fifths of the ratings with each method and k, and look at what comes out.

    The same fifth is held out each time, and the same people are attacked. `assignments` are further settings as
    VAR=VALUE. Releases lie in a private temporary folder and are gone afterwards. `report` hears of each release.

    Raises InputError where a method is unknown, a k is less than 1, or all of them were refused.
    """
    settings = _checked(methods, ks, assignments)
    pairs = [(method, k) for method in dict.fromkeys(methods) for k in sorted(set(ks))]
    rows = []
    for done, (method, k) in enumerate(pairs):
        report("releases", done, len(pairs))
        rows.append(_row(inputs, method, k, load_options, assignments, seed))
    report("releases", len(pairs), len(pairs))
    if all(row.refused for row in rows):
        told = "\n".join(dict.fromkeys(row.refused for row in rows if row.refused))
        msg = f"nothing could be published:\n{told}"
        raise InputError(msg)
    return Sweep(with_front(rows), tuple(Path(name).name for name in inputs), seed, settings)


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse, before any work, a folder that the results could not go to.

    Raises InputError where it is a file, cannot be made, or holds results that may not be replaced.
    """
    existing = [name for name in FILES if (folder / name).exists()]
    if existing and not force:
        msg = f"{folder / existing[0]} exists. Give another --out, or --force to replace it."
        raise InputError(msg)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder} cannot be written to ({error.strerror}). Give another --out."
        raise InputError(msg) from None


def write(found: Sweep, folder: Path) -> tuple[Path, ...]:
    """Write the results as CSV, as JSON and as a page; returns the files."""
    from kgather.report import render_sweep

    said = found.as_dict()
    texts = (found.as_csv(), json.dumps(said, indent=2, allow_nan=False) + "\n", render_sweep(said))
    files = tuple(folder / name for name in FILES)
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return files


def with_front(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """Mark the rows that are not beaten. O(n^2).

    A row beats another where neither its loss nor its risk is larger, one of them is smaller, and it covers as many of
    the held-out ratings, but for one in a hundred: the loss on easy items alone is no smaller loss.
    """
    return tuple(
        SweepRow(**(asdict(row) | {"front": _placed(row) and not any(_beats(other, row) for other in rows)}))
        for row in rows
    )


def _placed(row: SweepRow) -> bool:
    return row.mae is not None and row.user_reidentification is not None


def _beats(row: SweepRow, other: SweepRow) -> bool:
    if row.mae is None or row.user_reidentification is None or other.mae is None or other.user_reidentification is None:
        return False
    if (row.covered or 0) < (other.covered or 0) - _SAME_COVERAGE:
        return False
    gains = (other.mae - row.mae, other.user_reidentification - row.user_reidentification)
    return min(gains) >= 0 and max(gains) > 0


def _checked(methods: Sequence[str], ks: Sequence[int], assignments: Sequence[str]) -> dict[str, str]:
    known = get_args(Method)
    unknown = [method for method in methods if method not in known]
    if unknown or not methods:
        given = ", ".join(unknown) or "nothing"
        msg = f"--methods takes methods, as bkg,mdav, not {given}. There are: {', '.join(known)}."
        raise InputError(msg)
    if not ks or min(ks) < 1:
        msg = "--k takes sizes of group, whole numbers from 1, as 2,5,10."
        raise InputError(msg)
    settings = {name: value for name, _, value in (text.partition("=") for text in assignments)}
    for name in _NOT_FREE:
        if name in settings:
            msg = f"--set {name}: a sweep sets it itself. Use --{'methods' if name == 'method' else name}."
            raise InputError(msg)
    return settings


def _row(
    inputs: Sequence[str], method: str, k: int, load_options: LoadOptions, assignments: Sequence[str], seed: int
) -> SweepRow:
    try:
        return _measured(inputs, method, k, load_options, assignments, seed)
    except (InputError, PromiseError) as error:
        return SweepRow(method, k, refused=" ".join(str(error).split()))


def _measured(
    inputs: Sequence[str], method: str, k: int, load_options: LoadOptions, assignments: Sequence[str], seed: int
) -> SweepRow:
    from kgather.attacks import quick
    from kgather.evaluation.held_out import held_out
    from kgather.evaluation.metrics import shown_errors

    if method in BY_LEVEL:
        msg = f"method {method} needs the level that each user asks for, which a sweep does not read."
        raise InputError(msg)
    # Nothing is handed out, so that what is not anonymous may be compared.
    compared = {"i_know_this_is_not_anonymous": True} if method == "gaussian_noise" else {}
    options = {"method": method, "k": k, "seed": seed} | compared
    settings = PublishSettings.from_options(options, list(assignments))
    start = time.perf_counter()
    evidence, (users, items, ratings) = held_out(inputs, settings, load_options, share=HELD_OUT, seed=seed)
    seconds = time.perf_counter() - start
    mae, _, covered = shown_errors(evidence, users, items, ratings)
    return SweepRow(
        method,
        k,
        mae=_finite(mae),
        covered=_finite(covered),
        groups=len(evidence.group_ids),
        seconds=round(seconds, 3),
        **risks(quick(evidence, seed=seed).as_dict()),
    )


def risks(found: Mapping[str, Any]) -> dict[str, Any]:
    """The risks of a row, from what the attacks on a release found: of each the largest share."""
    results: list[Mapping[str, Any]] = list(found["results"])
    by_known = {known: list(_rates(results, "group", known)) for known in (4, 8)}
    exact = [
        float(result["details"][name])
        for result in results
        if result["attack"] == "disclosure"
        for name in ("exact", "worked_out")
        if name in result["details"]
    ]
    return {
        "right_group_4": max(by_known[4], default=None),
        "right_group_8": max(by_known[8], default=None),
        "user_reidentification": max(_rates(results, "user"), default=None),
        "exact_disclosure": max(exact, default=None),
    }


def _rates(results: Sequence[Mapping[str, Any]], measure: str, known: int | None = None) -> Iterator[float]:
    """The rates of attacks, of those that know so many exact ratings where that is given."""
    for result in results:
        said = _EXACT.fullmatch(str(result["knowledge"]))
        if result[measure] is not None and (known is None or (said and int(said[1]) == known)):
            yield float(result[measure]["value"])


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
