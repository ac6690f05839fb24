"""Attacks on the release of a table, as the command and the Python API ask for them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kgather._attacks.results import AttackReport
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._tables.again import opened, release_settings
from kgather._tables.attacks import attack
from kgather._tables.audit import risks_of_release
from kgather._tables.journalist import read_population


def refuse_of_ratings(given: Mapping[str, object]) -> None:
    """Raise InputError where something was given that a table has not. given: what it is, by the option's name."""
    meaningless = [option for option, value in given.items() if value]
    if meaningless:
        msg = f"{', '.join(meaningless)} is for releases of ratings. This is the release of a table."
        raise InputError(msg)


def refuse_of_tables(given: Mapping[str, object]) -> None:
    """The same for a release of ratings."""
    meaningless = [option for option, value in given.items() if value]
    if meaningless:
        msg = f"{', '.join(meaningless)} is for the release of a table. This is one of ratings."
        raise InputError(msg)


def one_original(originals: Sequence[str]) -> str:
    """The one file that a table was made from. Raises InputError where there are several."""
    if len(originals) != 1:
        msg = f"a table is anonymized from one file: give --original once, not {len(originals)} times."
        raise InputError(msg)
    return originals[0]


def attack_table(
    release: Path,
    originals: Sequence[str],
    hierarchies: Mapping[str, str],
    load_options: LoadOptions,
    *,
    population: str | None,
    sampling_fraction: float | None,
    publish_seed: int,
    known: Sequence[int],
    targets: int,
    seed: int,
    attacks: Sequence[str] | None,
    original_too: bool,
    report: Callable[[str, int, int], None],
) -> AttackReport:
    """Open a release with its original and attack it: see `kgather._tables.attacks.attack`.

    Raises InputError where they cannot be read, do not belong together, or lack what an attack needs.
    """
    settings = release_settings(release, seed=publish_seed, hierarchies=hierarchies)
    found = opened(release, one_original(originals), settings, load_options, report=report)
    people = None if population is None else read_population(population, found, load_options)
    return attack(
        found,
        risks_of_release(release, settings),
        known=known,
        targets=targets,
        seed=seed,
        attacks=attacks,
        original_too=original_too,
        population=people,
        sampling_fraction=sampling_fraction,
    )
