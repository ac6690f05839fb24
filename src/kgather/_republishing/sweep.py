"""Tries methods and sizes of group on the same ratings: what each costs, and what attackers get."""

import csv
import io
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from kgather import _stopping as stopping
from kgather._errors import InputError, PromiseError, quoted
from kgather._loaders import LoadOptions
from kgather._loaders.fetched import fetched
from kgather._methods import method_named, registered
from kgather._progress import Listener
from kgather._publishing.early import LOADED_ITEMS
from kgather._publishing.publish import OtherSizes
from kgather._settings.publication import PublishSettings
from kgather._version import __version__

HELD_OUT = 0.2
"""The share of the ratings that is held out."""
FILES = ("sweep.csv", "sweep.json", "sweep.html")

_NOT_FREE = ("method", "k", "seed")  # set by the sweep itself
_EXACT = re.compile(r"(\d+) exact ratings?")
_SAME_COVERAGE = 0.01
_EXACT_BY_ACCIDENT = 0.01

LOSS_OF_PROOF = 0.01
"""So much more loss, on a scale from 1 to 5, may a release have whose item side is proven, to be recommended."""

LOSS_ALLOWED = 0.05
"""So much more than the lowest loss may a recommended release have, as a share of it."""
RULE = (
    "If releases with item_epsilon cost less than a hundredth of a star, the one with the smallest is taken. "
    "Otherwise: of the releases that cover as many of the held-out ratings as any, and whose loss is at most 5% above "
    "the lowest of these, the one with the smallest k at which all attacks find no more than chance does. If there is "
    "none, the one with the least risk. Risk is the mean of the shares of people found, of groups found with eight "
    "ratings known, of cells that show an exact rating, and of the advantage of membership beyond what chance gives."
)
"""How the recommended release is chosen, in words."""


@dataclass(frozen=True)
class SweepRow:
    """One release: its loss and what attacks find in it, or why there is none (`refused`).

    mae: of the shown values on the held-out ratings; covered: the share of these with a shown value. right_group_4 and
    right_group_8: how often the best attack that knows so many exact ratings finds the group. user_reidentification:
    how often the best of all attacks finds the person. exact_disclosure: share of the shown cells that show the exact
    rating of their only rater, or let it be worked out. membership_advantage: of the best attacker who tells people who
    are in the data from people who are not (the largest true less the false positive rate), measured on a release of
    its own that half of the people are in; membership_by_chance: what it stays below where nothing can be told.
    varied: what differs from the settings of the whole sweep, as `outliers=0.9`. farthest: how often the best attack
    that knows eight exact ratings finds the group, of people in the 3% of the groups that are farthest from the middle.
    shadow_advantage: the advantage of who has published the like again and again, where that was tried. proven: what
    items' vectors tell is bounded by proof, and the loss is less than `loss_allowed` above that without; see
    `with_proven`.
    quiet: no attack finds more than chance does, see `quiet`; None where something was not measured. seconds: of
    splitting, publishing and reading. front: not beaten by another row. recommended, why: see `with_recommended`.
    """

    method: str
    k: int
    varied: str | None = None
    mae: float | None = None
    covered: float | None = None
    right_group_4: float | None = None
    right_group_8: float | None = None
    user_reidentification: float | None = None
    exact_disclosure: float | None = None
    membership_advantage: float | None = None
    membership_by_chance: float | None = None
    farthest: float | None = None
    shadow_advantage: float | None = None
    proven: bool = False
    loss_allowed: float | None = None
    quiet: bool | None = None
    groups: int | None = None
    seconds: float | None = None
    front: bool = False
    recommended: bool = False
    why: str | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Sweep:
    """All rows of a sweep and what they were made with."""

    rows: tuple[SweepRow, ...]
    inputs: tuple[str, ...]
    seed: int
    settings: Mapping[str, str]

    @property
    def recommended(self) -> SweepRow | None:
        """The row that is recommended, if there is one."""
        return next((row for row in self.rows if row.recommended), None)

    def as_dict(self) -> dict[str, Any]:
        """The sweep as plain data."""
        found = self.recommended
        return {
            "kgather_version": __version__,
            "inputs": list(self.inputs),
            "seed": self.seed,
            "share": HELD_OUT,
            "settings": dict(self.settings),
            "rule": RULE,
            "recommended": None
            if found is None
            else {"method": found.method, "k": found.k, "varied": found.varied, "why": found.why},
            "rows": [asdict(row) for row in self.rows],
        }

    def as_csv(self) -> str:
        """The rows with a header; what was not measured is empty."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, [field.name for field in fields(SweepRow)], lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            said = asdict(row)
            writer.writerow(said | {name: str(yes).lower() for name, yes in said.items() if isinstance(yes, bool)})
        return stream.getvalue()


def sweep(
    inputs: Sequence[str],
    methods: Sequence[str],
    ks: Sequence[int],
    load_options: LoadOptions,
    *,
    assignments: Sequence[str] = (),
    seed: int = 0,
    membership: bool = True,
    vary: Sequence[str] = (),
    shadows: int = 0,
    report: Listener = lambda *_: None,
) -> Sweep:
    """Publish four fifths of the ratings with each method and k, and look at what comes out.

    The same fifth is held out each time, and the same people are attacked. With `membership` half of the people are
    published once more, to see whether they can be told from the other half. `assignments` are further settings as
    VAR=VALUE; `vary` are settings with several values, as VAR=VALUE,VALUE, each of which is tried by itself beside the
    release without. With `shadows` so many releases are made of halves of the people, for who learns from such.
    Releases lie in a private temporary folder and are gone afterwards. `report` hears of each release.

    Raises InputError where a method is unknown, a k is less than 1, or all of them were refused.
    """
    settings = _checked(methods, ks, assignments)
    variations = [None, *_variations(vary, settings)]
    tried = [(method, k, one) for method in dict.fromkeys(methods) for k in sorted(set(ks)) for one in variations]
    rows = []
    with fetched(inputs) as files:
        for done, (method, k, varied) in enumerate(tried):
            report("releases", done, len(tried))
            asked = [*assignments, *([varied] if varied else [])]
            try:
                row = _measured(files, method, k, load_options, asked, seed, membership=membership, shadows=shadows)
            except (InputError, PromiseError) as error:
                row = SweepRow(method, k, refused=" ".join(str(error).split()))
            rows.append(replace(row, varied=varied))
    report("releases", len(tried), len(tried))
    if all(row.refused for row in rows):
        told = "\n".join(dict.fromkeys(row.refused for row in rows if row.refused))
        msg = f"nothing could be published:\n{told}"
        raise InputError(msg)
    return Sweep(
        with_recommended(with_proven(with_front(rows))), tuple(Path(name).name for name in inputs), seed, settings
    )


def other_sizes(ks: Sequence[int]) -> OtherSizes | None:
    """What `publish` needs to say what these sizes of group would cost, on four fifths of the ratings."""
    if not ks:
        return None

    def measure(
        inputs: Sequence[str], settings: PublishSettings, options: LoadOptions, report: Listener
    ) -> list[dict[str, Any]]:
        same = settings.model_dump(
            mode="json", exclude_defaults=True, exclude={"k", "method", "seed", "user_attributes", "items"}
        )
        assignments = [f"{name}={json.dumps(value)}" for name, value in same.items()]
        tried = sweep(
            inputs, [settings.method], ks, options, assignments=assignments, seed=settings.seed, report=report
        )
        return [asdict(row) for row in tried.rows]

    return OtherSizes(tuple(ks), measure)


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
    from kgather._report import render_sweep

    return write_files(folder, found.as_csv(), found.as_dict(), render_sweep)


def write_files(
    folder: Path, csv_text: str, said: Mapping[str, Any], page: Callable[[Mapping[str, Any]], str]
) -> tuple[Path, ...]:
    """Write a table of results, what they say as JSON, and the page of it, all or none; returns the files."""
    texts = (csv_text, json.dumps(said, indent=2, allow_nan=False) + "\n", page(said))
    files = tuple(folder / name for name in FILES)
    with stopping.whole:
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        stopping.written(folder)
    return files


def with_front(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """Mark the rows that are not beaten. O(n^2).

    A row beats another where neither its loss nor its risk is larger, one of them is smaller, and it covers as many of
    the held-out ratings, but for one in a hundred: the loss on easy items alone is no smaller loss.
    """
    return tuple(replace(row, front=_placed(row) and not any(_beats(other, row) for other in rows)) for row in rows)


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
    known = list(registered())
    unknown = [method for method in methods if method not in known]
    if unknown or not methods:
        given = quoted(unknown) or "nothing"
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


def _variations(vary: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """`VAR=VALUE` for each value of each setting that is varied."""
    found = []
    for text in vary:
        name, equals, listed = text.partition("=")
        values = [value.strip() for value in listed.split(",") if value.strip()]
        if not equals or not values or name not in PublishSettings.model_fields or name in _NOT_FREE:
            msg = f"--vary takes a var and its values, as outliers=0.98,0.95,0.9, not {text!r}."
            raise InputError(msg)
        if name in settings:
            msg = f"--vary {name}: --set gives it one value, and only one of them can hold. Leave one out."
            raise InputError(msg)
        found += [f"{name}={value}" for value in values]
    return found


def _measured(
    inputs: Sequence[str],
    method: str,
    k: int,
    load_options: LoadOptions,
    assignments: Sequence[str],
    seed: int,
    *,
    membership: bool,
    shadows: int,
) -> SweepRow:
    from kgather._attacks import quick, run
    from kgather._evaluation.metrics import shown_errors
    from kgather._republishing.held_out import held_out
    from kgather._republishing.left_out import half_in

    record = method_named(method)
    if record.levels:
        msg = f"method {method} needs the level that each user asks for, which a sweep does not read."
        raise InputError(msg)
    # Nothing is handed out, so that what is not anonymous may be compared.
    compared = {} if record.anonymous else {"i_know_this_is_not_anonymous": True}
    listed = {} if load_options.items is None else {"items": LOADED_ITEMS}
    options = {"method": method, "k": k, "seed": seed} | compared | listed
    settings = PublishSettings.from_options(options, list(assignments))
    start = time.perf_counter()
    evidence, (users, items, ratings) = held_out(inputs, settings, load_options, share=HELD_OUT, seed=seed)
    seconds = time.perf_counter() - start
    mae, _, covered = shown_errors(evidence, users, items, ratings)
    found = quick(evidence, seed=seed).as_dict()
    told = [result.as_dict() for result in half_in(inputs, settings, load_options, seed=seed)] if membership else []
    by_shadows, width = None, evidence.scale.width
    if shadows:
        again = run(evidence, attacks=["shadows"], shadows=shadows, seed=seed, original_too=False)
        by_shadows = again.results[0].details["advantage"]
    return SweepRow(
        method,
        k,
        shadow_advantage=by_shadows,
        # A hundredth of a star, on a scale from 1 to 5.
        loss_allowed=LOSS_OF_PROOF * width / 4,
        mae=_finite(mae),
        covered=_finite(covered),
        groups=len(evidence.group_ids),
        seconds=round(seconds, 3),
        **risks({**found, "results": [*found["results"], *told]}),
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
    told = [result["details"] for result in results if result["attack"] == "membership"]
    best: Mapping[str, Any] = max(told, key=lambda details: float(details["advantage"]), default={})
    far = [
        float(result["details"]["farthest_3_percent"])
        for result in results
        if "farthest_3_percent" in result["details"]
        and _EXACT.fullmatch(str(result["knowledge"]))
        and result["known"] == 8
    ]
    return {
        "farthest": max(far, default=None),
        "right_group_4": max(by_known[4], default=None),
        "right_group_8": max(by_known[8], default=None),
        "user_reidentification": max(_rates(results, "user"), default=None),
        "exact_disclosure": max(exact, default=None),
        "membership_advantage": best.get("advantage"),
        "membership_by_chance": best.get("advantage_by_chance"),
        "quiet": quiet(results),
    }


def quiet(results: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether no attack on a release finds more than chance does, but for noise; None where none names people.

    That is: the 95% interval of each rate, of users and of groups, reaches down to what naming anybody gives; the
    advantage of membership, where it was tried, is not above what it stays below by chance; and at most one in a
    hundred of the shown cells gives away an exact rating.
    """
    named = [
        (float(result[rate].get("low", result[rate]["value"])), float(result.get(f"chance_{rate}") or 0.0))
        for result in results
        for rate in ("user", "group")
        if result.get(rate) is not None
    ]
    if not named:
        return None
    told = [result["details"] for result in results if result["attack"] == "membership"]
    exact = [
        float(result["details"].get(name, 0.0))
        for result in results
        if result["attack"] == "disclosure"
        for name in ("exact", "worked_out")
    ]
    return (
        all(low <= chance for low, chance in named)
        and all(details["advantage"] <= details["advantage_by_chance"] for details in told)
        and all(share <= _EXACT_BY_ACCIDENT for share in exact)
    )


def with_proven(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """Mark, of each method and k, the release with the smallest item_epsilon whose loss is less than a hundredth of a
    star above that of the release without. O(n^2).
    """
    found = list(rows)
    for row in rows:
        if row.varied is not None or row.mae is None or row.loss_allowed is None:
            continue
        able = [
            other
            for other, one in enumerate(rows)
            if (one.method, one.k) == (row.method, row.k)
            and (one.varied or "").startswith("item_epsilon=")
            and one.mae is not None
            and one.mae < row.mae + row.loss_allowed
        ]
        if able:
            best = min(able, key=lambda other: float(str(rows[other].varied).partition("=")[2]))
            found[best] = replace(rows[best], proven=True)
    return tuple(found)


def with_recommended(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """Mark the row that `RULE` recommends, and say why; none where no row could be. O(n).

    Rows that could be: k is at least 2, the method is no noise, loss and risk were measured, and as many of the
    held-out ratings are covered as by any such row, but for one in a hundred.
    """
    able = [place for place, row in enumerate(rows) if _placed(row) and row.k > 1 and _is_anonymous(row.method)]
    most = max((rows[place].covered or 0.0 for place in able), default=0.0)
    able = [place for place in able if (rows[place].covered or 0.0) >= most - _SAME_COVERAGE]
    if not able:
        return tuple(rows)
    least = min(_number(rows[place].mae) for place in able)
    # What is proven for next to nothing is better than what was tried.
    proven = [place for place in able if rows[place].proven]
    near = proven or [place for place in able if _number(rows[place].mae) <= least * (1 + LOSS_ALLOWED)]
    still = [place for place in near if rows[place].quiet]
    if still:
        best = min(still, key=lambda place: (rows[place].k, _number(rows[place].mae)))
    else:
        best = min(near, key=lambda place: (_risk(rows[place]), _number(rows[place].mae), rows[place].k))
    why = _why(rows[best], least, quiet=bool(still), others=len(near) - 1)
    if proven:
        why = f"What its items' vectors tell is bounded by proof, for less than .01 of a star. {why}"
    return tuple(
        replace(row, recommended=place == best, why=why if place == best else None) for place, row in enumerate(rows)
    )


def _risk(row: SweepRow) -> float:
    """The mean of the risks that were measured: the person, the group, exact ratings, and membership beyond chance."""
    beyond = None
    if row.membership_advantage is not None:
        beyond = max(row.membership_advantage - (row.membership_by_chance or 0.0), 0.0)
    risks_found = (row.user_reidentification, row.right_group_8, row.exact_disclosure, beyond)
    measured = [risk for risk in risks_found if risk is not None]
    return sum(measured) / len(measured)


def _why(row: SweepRow, least: float, *, quiet: bool, others: int) -> str:
    mae = _number(row.mae)
    loss = "the lowest loss" if mae == least else f"a loss {mae / least - 1:.1%} above the lowest"
    if quiet:
        return f"It is the smallest k at which no attack finds more than chance does, with {loss} (MAE {mae:.4f})."
    found = [f"the person in {_number(row.user_reidentification):.2%} of the cases"]
    if row.right_group_8 is not None:
        found.append(f"the group in {row.right_group_8:.1%} with eight ratings known")
    if row.exact_disclosure is not None:
        found.append(f"exact ratings in {row.exact_disclosure:.1%} of the cells")
    told = f"It has {loss} (MAE {mae:.4f})"
    told += f" and the least risk of the {others + 1} releases within {LOSS_ALLOWED:.0%} of it" if others else ""
    told += f". Attackers find {', '.join(found)}"
    if row.membership_advantage is not None:
        told += (
            f"; who is in the data is told with an advantage of {row.membership_advantage:.3f} (by chance up to "
            f"{row.membership_by_chance or 0.0:.3f})"
        )
    told += ". No release within that loss keeps all attacks down to chance."
    if others and row.right_group_8 is not None:
        told += (
            " In the risk a found group counts as much as a found person: small groups are found less often, but hide "
            "a person among fewer."
        )
    return told


def _is_anonymous(method: str) -> bool:
    return method not in registered() or method_named(method).anonymous


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _rates(results: Sequence[Mapping[str, Any]], measure: str, known: int | None = None) -> Iterator[float]:
    """The rates of attacks, of those that know so many exact ratings where that is given."""
    for result in results:
        said = _EXACT.fullmatch(str(result["knowledge"]))
        if result[measure] is not None and (known is None or (said and int(said[1]) == known)):
            yield float(result[measure]["value"])


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
