"""What is known of a form of release, in one record."""

from dataclasses import dataclass
from typing import Literal, TypedDict

# Which cells of groups x items may be shown, and why a form may not be able to; see the setting `cells`.
CELLS = {
    "all": "",
    "rated": "",
    "top": "",
    "best": "it shows what is predicted best",
    "popular": "it shows items that nobody may have rated",
    "low_rank": "nothing else has a low rank",
}


class FormFacts(TypedDict):
    """What SQL has to know of a form; `sql/hooks/settings.sql` holds the facts of all forms."""

    rows: str
    cells: list[str]
    needs_solver: bool
    bounded: bool
    adds_cells: bool
    by_method: bool


@dataclass(frozen=True)
class Form:
    """How a release shows what people think.

    text: what it shows, in half a sentence, for the help and the docs. rows: who has a value for each item: groups,
    users, or nobody (then only the generalized table is released). cells: which cells it can show, of `CELLS`.
    needs_solver: it shows predictions. bounded: it never has more cells than there are ratings. adds_cells: cells can
    be added for (b, l)-diversity. by_method: it goes with methods that name it only. predicts: its values are
    predictions of a low rank, which attackers use. fills_missing: what stands for a rating that is not there is what
    the setting `fill` says; from a number a single rating may be worked out. anonymous: False where users stand alone.
    not_promised: what a release of this form does not promise, in a sentence. meaning: what k means for a person, with
    {others} (people who look the same), {k} and {epsilon}; empty for what holds of most forms. warning: what the user
    should know before any work, with {epsilon}.
    """

    name: str
    text: str
    rows: Literal["groups", "users", "nobody"] = "groups"
    cells: tuple[str, ...] = ("all", "rated", "top")
    needs_solver: bool = False
    bounded: bool = False
    adds_cells: bool = False
    by_method: bool = False
    predicts: bool = False
    fills_missing: bool = False
    anonymous: bool = True
    not_promised: str = ""
    meaning: str = ""
    warning: str = ""

    @property
    def facts(self) -> FormFacts:
        """What SQL has to know."""
        return {
            "rows": self.rows,
            "cells": list(self.cells),
            "needs_solver": self.needs_solver,
            "bounded": self.bounded,
            "adds_cells": self.adds_cells,
            "by_method": self.by_method,
        }
