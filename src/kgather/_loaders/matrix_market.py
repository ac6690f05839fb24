"""Reading MatrixMarket files: a banner, comments, a line of sizes, then `row column value`.

Rows are the users and columns the items, which is how recommenders write such files. Source: Boisvert, Pozo, Remington,
"The Matrix Market Exchange Formats", NIST, 1996.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgather._errors import InputError
from kgather._loaders.columns import Columns
from kgather._loaders.layout import Layout, Line
from kgather._loaders.options import BLANKS, LoadOptions

FORMAT = "matrix-market"
_BANNER = re.compile(r"%%MatrixMarket\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*", re.IGNORECASE)
_SIZES = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)\s*", re.ASCII)


@dataclass(frozen=True)
class Matrix:
    """What the first lines of such a file say: how to read the others, and how many there must be."""

    layout: Layout
    entries: int


def is_matrix(sample: Sequence[Line]) -> bool:
    """Whether a file begins as a MatrixMarket file does."""
    return sample[0][1].lower().startswith("%%matrixmarket")


def lines_read(options: LoadOptions) -> LoadOptions:
    """How its lines are read: fields stand between blanks, and comments begin with %."""
    return options.model_copy(update={"delimiter": BLANKS, "comment": "%"})


def detect(where: str, sample: Sequence[Line], options: LoadOptions) -> Matrix:
    """What the banner and the line of sizes say.

    Args:
        where: The input, for messages.
        sample: Its first lines that are not blank, with their numbers, comments too.
        options: What was said about it.

    Raises:
        InputError: It is no list of ratings, or the line of sizes is missing.
    """
    banner = _BANNER.fullmatch(sample[0][1].strip())
    kinds = [each.lower() for each in banner.groups()] if banner else []
    if kinds[:2] != ["matrix", "coordinate"] or kinds[2] not in ("real", "integer") or kinds[3] != "general":
        told = " ".join(kinds) or "no kind"
        message = (
            f"{where} is a MatrixMarket file of the kind '{told[:60]}'; those of the kind 'matrix coordinate real "
            "general' (or integer) are read. Write it again as such a one, with a rating for each entry."
        )
        raise InputError(message)
    if options.fields is not None or any((options.user_column, options.item_column, options.rating_column)):
        message = (
            f"{where} is a MatrixMarket file: its rows are the users and its columns the items. Leave --fields and the "
            "options of columns out; where the rows are the items, transpose it first."
        )
        raise InputError(message)
    sizes = next(((number, _SIZES.fullmatch(text)) for number, text in sample if not text.startswith("%")), None)
    number, found = sizes or (0, None)
    if found is None:
        message = f"{where}: the line of a MatrixMarket file that says its sizes is missing or damaged."
        raise InputError(message)
    layout = Layout(FORMAT, "\t", 3, Columns(0, 1, 2, None), number, known_by="the format")
    return Matrix(layout, int(found[3]))
