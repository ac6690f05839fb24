"""`kgather sweep` over a table of people."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from kgather._cli.anonymize import as_mapping
from kgather._cli.console import StageProgress, print_json, print_line
from kgather._cli.setting_options import mapping_of_file, names
from kgather._errors import InputError
from kgather._loaders import LoadOptions

if TYPE_CHECKING:
    from kgather._tables.sweep import TableSweep


def sweep_table(
    given: str,
    settings: Path | None,
    quasi_identifiers: str | None,
    sensitive: str | None,
    ks: Sequence[int],
    methods: str | None,
    suppress: str | None,
    load_options: LoadOptions,
    *,
    seed: int,
    out: Path | None,
    json_output: bool,
) -> None:
    """Sweep over a table, and print or write what was found."""
    from kgather._report import render_table_sweep
    from kgather._republishing.sweep import write_files
    from kgather._tables.sweep import sweep

    asked = {} if settings is None else mapping_of_file("--settings", settings)
    quasi = {name: {} for name in names(quasi_identifiers) or []} | as_mapping(asked.pop("quasi_identifiers", {}))
    asked |= {"quasi_identifiers": quasi} | ({"sensitive": names(sensitive)} if sensitive else {})
    with StageProgress() as progress:
        found = sweep(
            given, asked, names(methods) or ["mondrian", "cluster"], ks, _shares(suppress or "0"), load_options,
            seed=seed, report=progress.report,
        )  # fmt: skip
    files = () if out is None else write_files(out, found.as_csv(), found.as_dict(), render_table_sweep)
    if json_output:
        print_json(found.as_dict())
        return
    _print(found)
    for file in files:
        print_line(f"Written: {file}")


def _shares(suppress: str) -> list[float]:
    try:
        return [float(part) for part in suppress.split(",") if part.strip()]
    except ValueError:
        msg = f"--suppress takes shares of rows, as 0,0.02, not {suppress!r}."
        raise InputError(msg) from None


def _print(found: "TableSweep") -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    for name in (
        "k", "suppress", "loss (NCP)", "entropy", "count error", "person found", "class found", "one value",
        "one more than half", "classes", "suppressed", "seconds",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    table.add_column("")
    for row in found.rows:
        if row.refused is not None:
            continue
        shares = (row.query_error, row.person_found, row.class_found, row.homogeneity, row.confident)
        table.add_row(
            row.method,
            f"{row.k:,}",
            f"{row.suppress:g}",
            _number(row.loss),
            _number(row.entropy),
            *("-" if share is None else f"{100 * share:.1f}%" for share in shares),
            "-" if row.classes is None else f"{row.classes:,}",
            "-" if row.suppressed is None else f"{row.suppressed:,}",
            "-" if row.seconds is None else f"{row.seconds:.1f}",
            "*" if row.front else "",
        )
    Console(highlight=False, width=None if sys.stdout.isatty() else 150).print(table)
    print_line("* not beaten: none with as little loss and as few people found.")
    for row in found.rows:
        if row.refused is not None:
            print_line(f"{row.method}, k = {row.k}, suppress {row.suppress:g} was refused: {row.refused}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
