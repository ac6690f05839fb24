"""Says in a sentence how an answer came about, from what is told of its blocks."""

from collections.abc import Iterator

import pyarrow as pa

from kgather._guard.engine import BESIDE, KINDS, Decided
from kgather._guard.policy import Mode

ERROR, KIND = BESIDE

_GENERALIZED = "The numbers are sums over the classes of a release, counted as the policy's match says."

_LOW = (
    "Rows of people who have many are not counted in full: counts and sums of rows are corrected for what is missing "
    "on average, and means lean towards people with few rows."
)


def notes(mode: Mode, decided: Decided) -> tuple[str, ...]:
    """How an answer came about: in mode measured a sentence for each block, else one for all, in mode exact what that
    does not protect against; none without blocks."""
    if not decided.tables:
        return ()
    if mode == "exact":
        return (decided.warning,) if decided.warning is not None else ()
    if mode == "generalized":
        return (_GENERALIZED,)
    count = len(decided.tables)
    sentences = [_sentence(table, decided.errors[name]) for name, table in decided.tables.items()]
    if count == 1:
        return tuple(sentences)
    return tuple(f"Block {at} of {count}: {one[0].lower()}{one[1:]}" for at, one in enumerate(sentences, 1))


def beside(table: pa.Table, errors: pa.Table) -> pa.Table:
    """The relation of a block with the standard error and the kind of each aggregate in columns behind the others."""
    for name in errors.column_names:
        if name not in table.column_names:
            table = table.append_column(name, errors[name])
    return table


def _sentence(table: pa.Table, errors: pa.Table) -> str:
    """How the numbers of a block came about, and the largest standard error beside its number."""
    names = [name for name in table.column_names if name + ERROR in errors.column_names]
    shares = [share for name in names for share in _shares(table[name], errors[name + ERROR])]
    if not shares:
        return "Noisy numbers of people decide what is shown; no number here has a standard error."
    kinds = {str(kind) for name in names for kind in errors[name + KIND].unique().to_pylist()}
    ways = " and ".join(sorted({kind.partition(",")[0] for kind in kinds}, key=KINDS.index))
    low = f" {_LOW}" if any("bounded" in kind for kind in kinds) else ""
    told = [share for share in shares if share is not None]
    hidden = len(shares) - len(told)
    if not told:
        return f"The numbers are {ways}, and all of them are withheld: noise is larger than they are."
    withheld = f"; {hidden} of {len(shares)} numbers are withheld: noise is larger than they are" if hidden else ""
    largest = _percent(max(told))
    return f"The numbers are {ways}; the largest standard error is {largest} of its number{withheld}.{low}"


def _shares(values: pa.ChunkedArray, errors: pa.ChunkedArray) -> Iterator[float | None]:
    """The standard error of each number as a share of it; None of those that are withheld. Those that are told without
    an error are left out."""
    for value, error in zip(values.to_pylist(), errors.to_pylist(), strict=True):
        if value is None:
            yield None
        elif error is not None:
            yield abs(error / float(value)) if value else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 1 else f"{100 * share:.0f}%"
