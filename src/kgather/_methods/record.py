"""What is known of a method of gathering, in one record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from pydantic import BaseModel, ConfigDict

from kgather._methods.users import Groups, Users


class NoOptions(BaseModel):
    """A method without options of its own; also what the options of a method inherit from."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Facts(TypedDict):
    """What SQL has to know of a method; `sql/hooks/settings.sql` holds the facts of the methods that kgather has."""

    gathers_on: str
    levels: bool
    anonymous: bool
    refines: bool
    blocks: bool
    categories: bool
    form: str
    generalization: str
    forms: list[str] | None
    tells: list[str]


@dataclass(frozen=True)
class Method:
    """A way to gather users into groups.

    text: what it does, in half a sentence. looks_at, groups, cost, choose: what it gathers on, how large its groups
    are, its complexity and when to take it, for the table in the docs. gather: the function; it takes the users and
    the checked `options`, and gives the group of every user. gathers_on: the vectors of all users, or the users of the
    artifact table. form, generalization: what homogenize and generalize stand for where they are auto. forms: those it
    goes with; None: all that are not bound to a method. levels: users may ask for groups smaller than k. anonymous:
    False where users stand alone, which must be asked for by name. refines: refining its groups is what it is after,
    so they are refined unless that is turned off. blocks: it can gather in blocks. categories: it takes columns of
    the artifact table whose numbers are codes of categories (`Users.categorical`). tells: what its `Groups`
    hold beside the groups, which the audit then counts; left_out: users may be in none.
    """

    name: str
    text: str
    gather: Callable[[Users, Any], Groups]
    options: type[BaseModel] = NoOptions
    gathers_on: Literal["vectors", "artifacts"] = "vectors"
    form: str = "predicted"
    generalization: str = "none"
    forms: tuple[str, ...] | None = None
    levels: bool = False
    anonymous: bool = True
    refines: bool = False
    blocks: bool = False
    categories: bool = False
    tells: tuple[Literal["bins", "unchanged", "left_out"], ...] = ()
    looks_at: str = "vectors"
    groups: str = "k and more"
    cost: str = ""
    choose: str = ""

    @property
    def facts(self) -> Facts:
        """What SQL has to know."""
        return {
            "gathers_on": self.gathers_on,
            "levels": self.levels,
            "anonymous": self.anonymous,
            "refines": self.refines,
            "blocks": self.blocks,
            "categories": self.categories,
            "form": self.form,
            "generalization": self.generalization,
            "forms": None if self.forms is None else list(self.forms),
            "tells": list(self.tells),
        }
