"""A table anonymized again and again: what ways, sizes of class and suppression cost, and what attackers get."""

import csv
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kgather._errors import InputError, PromiseError
from kgather._loaders import LoadOptions
from kgather._recoding.recode import Recoded, recode
from kgather._settings.table import TableSettings, table_settings
from kgather._sql_functions import load
from kgather._tables.again import Dictionaries, Opened, dictionaries
from kgather._tables.attacks import attack, refuse_uncounted
from kgather._tables.release import PEOPLE, read_people
from kgather._verify.connection import bounded
from kgather._verify.risks import risks
from kgather._version import __version__

_TARGETS = 1000
_SET_BY_SWEEP = ("k", "method", "suppress", "seed")


@dataclass(frozen=True)
class TableSweepRow:
    """One way of anonymizing: its loss and what attackers find, or why there is none (`refused`).

    loss: the certainty penalty. query_error: the mean error of counts by several columns. person_found, class_found:
    how often the linkage attacker who knows all quasi-identifiers names the right row and the right class, of 1,000
    people. homogeneity, confident: of the worst sensitive column the share of rows whose class has one value, or one
    more than half the time. front: not beaten by another row.
    """

    method: str
    k: int
    suppress: float
    loss: float | None = None
    entropy: float | None = None
    query_error: float | None = None
    person_found: float | None = None
    class_found: float | None = None
    homogeneity: float | None = None
    confident: float | None = None
    classes: int | None = None
    suppressed: int | None = None
    seconds: float | None = None
    front: bool = False
    refused: str | None = None


@dataclass(frozen=True)
class TableSweep:
    """All rows of a sweep and what they were made with."""

    rows: tuple[TableSweepRow, ...]
    input: str
    seed: int
    settings: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The sweep as plain data."""
        return {
            "kgather_version": __version__,
            "kind": "table",
            "input": self.input,
            "seed": self.seed,
            "settings": dict(self.settings),
            "rows": [asdict(row) for row in self.rows],
        }

    def as_csv(self) -> str:
        """The rows as CSV, with a line of names."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, [field.name for field in fields(TableSweepRow)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in self.rows)
        return stream.getvalue()


def sweep(
    given: str,
    asked: Mapping[str, Any],
    methods: Sequence[str],
    ks: Sequence[int],
    suppress: Sequence[float],
    load_options: LoadOptions,
    *,
    seed: int = 0,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> TableSweep:
    """Anonymize a table in every way, and measure loss and risk. asked: all other settings, see `table_settings`.

    The table is read once; nothing is written. Raises InputError where it cannot be read, or no setting is possible.
    """
    rest = {name: value for name, value in asked.items() if name not in _SET_BY_SWEEP}
    tried = [
        table_settings({**rest, "k": k, "method": method, "suppress": share, "seed": seed})
        for method in methods
        for k in ks
        for share in suppress
    ]
    if not tried:
        msg = "there is nothing to try: give --k, --methods and --suppress a value each."
        raise InputError(msg)
    refuse_uncounted(tried[0], ["linkage"])
    elsewhere = [name for name in ("population", "within", "beside") if getattr(tried[0], name)]
    if elsewhere:
        msg = f"a sweep reads one table alone: leave {elsewhere[0]} out of its settings."
        raise InputError(msg)
    with bounded() as con:
        read_people(con, given, tried[0], load_options, report, all_named=False)
        load(con)
        table = dictionaries(con, PEOPLE, tried[0])
        rows = []
        for number, settings in enumerate(tried):
            report("anonymize", number, len(tried))
            start = time.perf_counter()
            try:
                made = recode(settings, table.types, table.values, table.ids, table.counts)
            except (InputError, PromiseError) as error:
                told = str(error)
                rows.append(TableSweepRow(settings.method, settings.k, settings.suppress, refused=told))
                continue
            seconds = time.perf_counter() - start
            con.register("kgather_swept", _as_table(settings, table, made))
            left = risks(con, "kgather_swept", settings)
            con.unregister("kgather_swept")
            rows.append(_row(Opened(settings, table, made), left, seconds, seed))
        report("anonymize", len(tried), len(tried))
    said = tried[0].model_dump(mode="json", exclude=set(_SET_BY_SWEEP), exclude_defaults=True)
    return TableSweep(with_front(rows), given, seed, said)


def _as_table(settings: TableSettings, table: Dictionaries, made: Recoded) -> pa.Table:
    """What a release would show of quasi-identifiers and sensitive columns, a row a person."""
    found = made.evidence
    pieces = np.repeat(np.arange(len(found.rows)), found.rows)
    groups = pa.array(found.group[pieces])
    shown = {
        name: pa.array(texts, pa.string()).take(groups)
        for name, texts in zip(settings.quasi_identifiers, made.shown, strict=True)
    }
    d = len(settings.quasi_identifiers)
    for place, name in enumerate(settings.sensitive):
        codes = found.sensitive[found.combination[pieces], place]
        shown[name] = pa.array(table.values[d + place], pa.string()).take(pa.array(codes))
    return pa.table(shown)


def _row(opened: Opened, left: dict[str, Any], seconds: float, seed: int) -> TableSweepRow:
    settings, report = opened.settings, opened.recoded.report
    d = len(settings.quasi_identifiers)
    linked = attack(
        opened, left, known=[d], targets=_TARGETS, seed=seed, attacks=["linkage"], original_too=False
    ).results[0]
    costs = report["costs"]
    errors = [value for name, value in costs.items() if name.startswith("query_error_") and name[-1].isdigit()]
    return TableSweepRow(
        settings.method,
        settings.k,
        settings.suppress,
        loss=report["loss"],
        entropy=costs["entropy"],
        query_error=errors[-1],
        person_found=None if linked.user is None else linked.user.value,
        class_found=None if linked.group is None else linked.group.value,
        homogeneity=max(left["homogeneity"].values(), default=None),
        confident=max(left["confident"].values(), default=None),
        classes=report["classes"],
        suppressed=report["suppressed"],
        seconds=round(seconds, 3),
    )


def with_front(rows: Sequence[TableSweepRow]) -> tuple[TableSweepRow, ...]:
    """Mark the rows that no other beats: with no more loss, no more people found, and less of one of the two."""

    def beats(row: TableSweepRow, other: TableSweepRow) -> bool:
        if None in (row.loss, row.person_found, other.loss, other.person_found):
            return False
        gains = (other.loss - row.loss, other.person_found - row.person_found)  # type: ignore[operator]
        return min(gains) >= 0 and max(gains) > 0

    return tuple(
        replace(row, front=row.refused is None and not any(beats(other, row) for other in rows)) for row in rows
    )
