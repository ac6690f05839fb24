"""What a ledger holds, for those who run the guard: how many atoms, how small, and when they were split.

Sizes are told as classes of doublings of k, never as numbers.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np

from kgather._errors import InputError
from kgather._guard.base import UNITS
from kgather._guard.ledger import Kept, Ledger


@dataclass(frozen=True)
class Universe:
    """One partition. of: whether atoms are made of people or of rows. smallest: class of the smallest atom's size; of
    rows it counts rows, which are of at least k people, too."""

    name: str
    of: str
    atoms: int
    smallest: str | None


@dataclass(frozen=True)
class Day:
    """What was split on a day (UTC). atoms: how many there were at its end."""

    day: str
    universe: str
    splits: int
    atoms: int


@dataclass(frozen=True)
class Summary:
    """What a ledger holds."""

    k: int
    decisions: int
    universes: tuple[Universe, ...]
    days: tuple[Day, ...]


def summarize(ledger: Path, k: int) -> Summary:
    """Read a ledger. Whoever decides waits while the file is copied, and no longer.

    Raises InputError where there is none, or it cannot be read.
    """
    if not ledger.is_file():
        msg = f"{ledger}, the ledger that the policy names, does not exist yet: nothing was told."
        raise InputError(msg)
    try:
        with TemporaryDirectory(prefix="kgather-ledger-") as folder:
            copy = Path(folder) / "ledger.duckdb"
            with Ledger(ledger).deciding():
                for suffix in ("", ".wal"):
                    source = ledger.with_name(ledger.name + suffix)
                    if source.exists():
                        shutil.copyfile(source, copy.with_name(copy.name + suffix))
            return _summary(copy, k)
    except OSError as error:
        msg = f"{ledger} cannot be read: {error.strerror}."
        raise InputError(msg) from None


def _summary(copy: Path, k: int) -> Summary:
    kept = Ledger(copy).read(k)
    with duckdb.connect(copy, read_only=True) as con:
        decisions = con.execute("select decisions from state").fetchall()[0][0]
        days = con.execute(
            "select cast(decided_at as date), universe, count(*), arg_max(atoms, decision) from splits"
            " group by all order by 1, 2"
        ).fetchall()
    return Summary(
        k,
        decisions,
        tuple(_universe(name, of, k) for name, of in kept.items()),
        tuple(Day(str(day), universe, splits, atoms) for day, universe, splits, atoms in days),
    )


def _universe(name: str, kept: Kept, k: int) -> Universe:
    _, sizes = np.unique(kept.atoms[kept.atoms >= 0], return_counts=True)
    smallest = size_class(int(sizes.min()), k) if len(sizes) else None
    of = "people" if name == UNITS else "rows"
    return Universe(name, of, len(sizes), smallest)


def size_class(size: int, k: int) -> str:
    """The class of a size: "k to 2k", "2k to 4k" and so on, each without its upper end."""
    if size < k:
        return "below k"
    low = 1 << ((size // k).bit_length() - 1)
    return f"{low if low > 1 else ''}k to {2 * low}k"
