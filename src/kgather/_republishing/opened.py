"""Opens what an attack needs: the release with its originals, and what some attacks need beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.auxiliary import Pool
from kgather._attacks.intersection import Second
from kgather._attacks.membership import read_others
from kgather._attacks.results import AttackReport
from kgather._attacks.row_order import Members, pseudonyms_in
from kgather._attacks.runner import KNOWN, Extra, run
from kgather._attacks.shadows import SHADOWS
from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence
from kgather._loaders import LoadOptions
from kgather._settings.publication import PublishSettings


@dataclass(frozen=True)
class Sources:
    """Where everything is. seed, second_seed: those of the publications. assignments: VAR=VALUE of the first. dates:
    whether the days of ratings are read.
    """

    release: Path
    originals: Sequence[str]
    seed: int = 0
    second: Path | None = None
    second_originals: Sequence[str] = ()
    second_seed: int = 0
    others: str | None = None
    load_options: LoadOptions = field(default_factory=LoadOptions)
    assignments: Sequence[str] = ()
    dates: bool = False

    def __post_init__(self) -> None:
        if (self.second is None) != (not self.second_originals):
            msg = "--second and --second-original go together: give both or neither."
            raise InputError(msg)


def attack_release(
    sources: Sources,
    *,
    report: Callable[[str, int, int], None] = lambda *_: None,
    known: Sequence[int] = KNOWN,
    noisy: bool = False,
    pool: Pool = "all",
    targets: int = 1000,
    seed: int = 0,
    attacks: Sequence[str] | None = None,
    original_too: bool = True,
    shadows: int = SHADOWS,
) -> AttackReport:
    """Open a release with what it was made of, and attack it: see `open_attacked` and `runner.run`.

    Raises InputError for what cannot be read, does not belong together, or cannot be run.
    """
    evidence, extra = open_attacked(sources, report)
    return run(
        evidence,
        known=known,
        noisy=noisy,
        pool=pool,
        targets=targets,
        seed=seed,
        attacks=attacks,
        original_too=original_too,
        extra=extra,
        shadows=shadows,
    )


def open_attacked(
    sources: Sources, report: Callable[[str, int, int], None] = lambda *_: None
) -> tuple[Evidence, Extra]:
    """The evidence and the rest. Raises InputError where a part cannot be read or does not belong to the others."""
    from kgather._republishing.opening import open_evidence

    evidence = open_evidence(
        sources.release,
        sources.originals,
        seed=sources.seed,
        load_options=sources.load_options,
        assignments=sources.assignments,
        days=sources.dates,
        report=report,
    )
    evidence = _with_assignments(evidence, sources.assignments)
    second = None
    first = Attacked.of(evidence) if sources.second is not None or sources.others is not None else None
    if first is not None and sources.second is not None:
        other = open_evidence(
            sources.second,
            sources.second_originals,
            seed=sources.second_seed,
            load_options=sources.load_options,
            report=report,
        )
        if evidence.user_ids is None or other.user_ids is None:
            msg = "the intersection needs the users' ids of both originals."
            raise InputError(msg)
        second = Second.of(first, Attacked.of(other), evidence.user_ids, other.user_ids)
    others = None
    if first is not None and sources.others is not None:
        others = read_others(first, sources.others, sources.load_options, evidence.user_ids)
    try:
        members = Members.of(sources.release)
    except duckdb.Error:
        msg = f"{sources.release} lacks members.parquet or groups.parquet, or they cannot be read."
        raise InputError(msg) from None
    return evidence, Extra(members, _pseudonyms(sources.originals), second, others)


def _with_assignments(evidence: Evidence, assignments: Sequence[str]) -> Evidence:
    """The evidence with the parameters that the release does not name, but whoever attacks it."""
    if not assignments:
        return evidence
    names = {assignment.partition("=")[0] for assignment in assignments}
    named = PublishSettings.of_parameters(evidence.parameters, assignments).model_dump(mode="json", include=names)
    return replace(evidence, parameters={**evidence.parameters, **named})


def _pseudonyms(originals: Sequence[str]) -> NDArray[np.str_] | None:
    """The users' pseudonyms, where the original is the working database of the release; None where it is ratings."""
    try:
        return pseudonyms_in(Path(originals[0])) if len(originals) == 1 else None
    except duckdb.Error:
        return None
