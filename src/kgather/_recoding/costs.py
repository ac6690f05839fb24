"""What classes cost, beside the certainty penalty: how large they are, what their cells leave open, how a reader errs.

- discernibility: the sum of the squared sizes of the classes (Bayardo and Agrawal, Data privacy through optimal
  k-anonymization, 2005). average class size: rows / (classes x k) (LeFevre, DeWitt and Ramakrishnan, 2006).
- entropy: non-uniform entropy (Gionis and Tassa, k-Anonymization with minimal loss of information, 2009): of each cell
  -log2 of the share that its value has among all rows with a value that the cell covers; as a share of what cells that
  show nothing leave open.
- distance: between the distribution of a column's values and the one that a reader finds who spreads every cell evenly
  over what it covers: half the sum of the absolute differences, 0 to 1. moved: the earth mover's distance of the two on
  the line, as a share of its length, of columns that lie on one.
- queries: `kgather.udfs.recoding.queries`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._recoding.lines import Coded
from kgather._recoding.reach import reach
from kgather.udfs.recoding.loss import ColumnLoss
from kgather.udfs.recoding.queries import counted, draw, estimated, relative_errors

ASKED = (1, 3)
"""Of how many columns the counting queries of an audit ask."""
_VISITS = 300_000_000  # combinations that the queries of one kind look at, at most
_MOST, _LEAST = 500, 20
_DIGITS = 3
_NOTHING = 1e-9  # what sums of rounding errors come to


def costs(
    names: Sequence[str],
    columns: Sequence[Coded],
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    size: NDArray[np.int64],
    suppressed: NDArray[np.bool_],
    k: int,
    *,
    seed: int = 0,
    threads: int = 1,
    queries: int | None = None,
    alike: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """The costs of all columns together, and of each, in three digits.

    codes: int32[m, d], the different combinations; counts: int64[m], the rows of each. low, high: int32[g, d], the
    least and greatest codes of each class; size: int64[g], its rows. suppressed: bool[g], classes that show nothing.
    queries: how many of each kind; by the size of the table where not given. alike: int64[g], the number of what each
    class shows, as those that show the same are one to a reader; each its own where not given.
    """
    losses = [column.loss for column in columns]
    first, last = shown_boxes(columns, low, high, suppressed)
    total = int(size.sum())
    of_shown = np.bincount(np.arange(len(size)) if alike is None else alike, weights=size)
    found: dict[str, Any] = {
        "discernibility": float((of_shown**2).sum()),
        "average_class_size": _digits(total / max(int((of_shown > 0).sum()), 1) / k),
    }
    of_columns: dict[str, dict[str, float]] = {}
    left_open = possible = 0.0
    for j, (name, loss) in enumerate(zip(names, losses, strict=True)):
        share = np.asarray(np.bincount(codes[:, j], weights=counts, minlength=loss.codes), dtype=np.float64)
        own_open, own_possible = _entropies(share, first[:, j], last[:, j], size)
        left_open, possible = left_open + own_open, possible + own_possible
        shown = _spread(loss, first[:, j], last[:, j], size)
        gaps = (shown - share) / total
        told = {
            "entropy": _digits(own_open / own_possible if own_possible > 0 else 0.0),
            "distance": _digits(float(np.abs(gaps).sum() / 2)),
        }
        if loss.nodes is None and loss.codes > 1:
            told["moved"] = _digits(_moved(loss, gaps))
        of_columns[name] = told
    found["entropy"] = _digits(left_open / possible if possible > 0 else 0.0)
    number = queries or int(np.clip(_VISITS // max(len(codes), 1), _LEAST, _MOST))
    for asked in sorted({min(each, len(columns)) for each in ASKED}):
        errors = query_errors(losses, codes, counts, (first, last), size, asked, number, seed=seed, threads=threads)
        found[f"query_error_{asked}"] = _digits(float(errors.mean()))
        found[f"query_error_{asked}_median"] = _digits(float(np.median(errors)))
    found["queries"] = number
    return {"all": found, "columns": of_columns}


def shown_boxes(
    columns: Sequence[Coded], low: NDArray[np.int32], high: NDArray[np.int32], suppressed: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """What the ranges and labels of each class cover, (first, last) int32[g, d]; a class that shows nothing covers
    everything. Sets, means, medians and tight ends are taken for the range or label that they stand for."""
    first, last = reach(columns, low, high)
    greatest = np.array([column.loss.codes - 1 for column in columns], dtype=np.int32)
    nothing = suppressed[:, None]
    return np.where(nothing, np.int32(0), first), np.where(nothing, greatest, last)


def query_errors(
    losses: Sequence[ColumnLoss],
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    boxes: tuple[NDArray[np.int32], NDArray[np.int32]],
    size: NDArray[np.int64],
    asked: int,
    queries: int,
    *,
    seed: int = 0,
    threads: int = 1,
) -> NDArray[np.float64]:
    """The relative errors of counting queries on `asked` columns, float64[queries]. Arguments as in `costs`; boxes:
    from `shown_boxes`."""
    wanted = draw(codes, counts, losses, asked, queries, seed)
    true = counted(codes, counts, wanted, threads)
    said = estimated(*boxes, size, losses, wanted, threads)
    return relative_errors(true, said, int(size.sum()))


def _entropies(
    share: NDArray[np.float64], first: NDArray[np.int32], last: NDArray[np.int32], size: NDArray[np.int64]
) -> tuple[float, float]:
    """The bits that the cells of a column leave open, and those that cells would that show nothing."""
    upto = np.append(0.0, np.cumsum(share))
    present = share[share > 0]
    own = float((present * np.log2(present)).sum())
    kept = size > 0
    covering = (upto[last + 1] - upto[first])[kept]
    shown = float((size[kept] * np.log2(covering)).sum())
    everything = float(upto[-1] * np.log2(upto[-1]))
    return max(shown - own, 0.0), max(everything - own, 0.0)


def _spread(
    loss: ColumnLoss, first: NDArray[np.int32], last: NDArray[np.int32], size: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The rows that a reader gives each code, float64[codes]."""
    width = loss.widths()
    upto = np.append(0.0, np.cumsum(width))
    density = size / (upto[last + 1] - upto[first])
    steps = np.zeros(loss.codes + 1)
    np.add.at(steps, first, density)
    np.subtract.at(steps, last + 1, density)
    return np.maximum(np.cumsum(steps)[:-1], 0.0) * width


def _moved(loss: ColumnLoss, gaps: NDArray[np.float64]) -> float:
    """The work of moving one distribution into the other along the line, null before all values."""
    width = loss.widths()
    steps = (width[1:] + width[:-1]) / 2
    return float((np.abs(np.cumsum(gaps)[:-1]) * steps).sum() / steps.sum())


def _digits(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") if abs(value) > _NOTHING else 0.0
