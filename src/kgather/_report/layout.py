"""What pages are put together from: tables, figures and the templates they go into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

Kind = Literal["text", "number", "verdict", "code"]


@dataclass(frozen=True)
class Verdict:
    """A word that is good, bad or neither (None)."""

    word: str
    good: bool | None = None


@dataclass(frozen=True)
class Table:
    """A table: heads are (title, kind of the column); the first cell of each row names the row."""

    caption: str
    heads: Sequence[tuple[str, Kind]]
    rows: Sequence[Sequence[str | Verdict]]


@dataclass(frozen=True)
class Figure:
    """A drawing with the numbers it was drawn from; the title stands above it."""

    drawing: Markup
    table: Table | None = None
    title: str = ""

    @classmethod
    def of(cls, svg: str, table: Table | None = None, title: str = "") -> "Figure":
        """A figure of a drawing by `kgather._report.plots`, which is markup already."""
        return cls(Markup(svg), table, title)


def filled(template: str, parts: Mapping[str, Any]) -> str:
    """The page; all that is not a drawing is escaped."""
    return _environment().get_template(template).render(parts, style=_style()) + "\n"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("kgather", "_report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _style() -> Markup:
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), "style.css")[0])
