"""The settings of a dbt project: those of any publication, and what a project says of its own models."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import model_validator

from kgather._errors import InputError
from kgather._methods import built_in
from kgather._settings.fields import GATHERING, INPUT, RELEASE, SEVERAL, setting
from kgather._settings.publication import PublishSettings
from kgather._settings.validation import validated

PREFIX = "kgather_"
OUTSIDE = {"release_database": "The attached database for the marts; in a project, set `+database` instead."}
"""Vars that are read where dbt reads its project file, before there are any models."""
_DAY = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
PREPARED = "prepared"
"""The command line tells dbt that it has checked the settings and created the macros."""
TAKES_OVER = "takes_over"
"""The command line tells dbt that the staged ratings of the last release are in the working database already."""
_TOLD = (PREPARED, TAKES_OVER)


class ProjectSettings(PublishSettings):
    """The settings of a dbt project."""

    ratings: str = setting(
        ...,
        "The model that holds the ratings.",
        docs="The model that holds your ratings, as you would give it to `ref()`; `package.model` for one of another "
        "package.",
        section=INPUT,
        shown_default="none: must be set",
        own_name=False,
        values="the name of a model",
        min_length=1,
    )
    user_column: str | None = setting(
        None, "The column of users.", section=INPUT, shown_default="found by its usual names", min_length=1
    )
    item_column: str | None = setting(
        None, "The column of items.", section=INPUT, shown_default="found by its usual names", min_length=1
    )
    rating_column: str | None = setting(
        None, "The column of ratings.", section=INPUT, shown_default="found by its usual names", min_length=1
    )
    time_column: str | None = setting(
        None, "The column of times.", section=INPUT, shown_default="found by its usual names", min_length=1
    )
    item_id_type: Literal["bigint", "varchar"] = setting(
        "bigint",
        "The type of item ids.",
        docs="`bigint`, or `varchar` if item ids are text: the type in the marts' contract.",
        section=INPUT,
    )
    method_facts: dict[str, Any] | None = setting(
        None,
        "Facts of a method of another package.",
        docs="What SQL has to know about a method that another package registers. Set it to `{}`, and the run says "
        "what to set.",
        section=GATHERING,
    )

    release_id: str | None = setting(
        None,
        "What the marts say of which release they are.",
        docs="What the column `release_id` of all marts says. It leaves with the release, so name no person in it.",
        section=RELEASE,
        shown_default="the number of the release in its chain with history, else the day as `released_on` has it",
        own_name=False,
        min_length=1,
    )
    released_on: str | None = setting(
        None,
        "The day that the marts say they were released on.",
        docs="What the column `released_on` of all marts says, as YYYY-MM-DD.",
        section=RELEASE,
        shown_default="the day of the run, in UTC",
        own_name=False,
        values="a day as 'YYYY-MM-DD', in quotes",
        pattern=f"^{_DAY}$",
    )
    releases: dict[str, Any] = setting(
        {},
        "Several releases: settings of each, by its name.",
        docs="Several releases: settings of each, by its name. What is said beside it is said for all: "
        "[dbt.md](dbt.md#several-releases).",
        section=SEVERAL,
        own_name=False,
    )
    within: str | None = setting(
        None,
        "The release whose groups this one's are made of.",
        docs="In an entry of `releases`: the release whose groups this one's are made of. Then both together tell no "
        "more of who is with whom than that one. With `history`, both have it.",
        section=SEVERAL,
        own_name=False,
        min_length=1,
    )

    @model_validator(mode="after")
    def _knows_its_method(self) -> "ProjectSettings":
        """Refuse a method of another package that SQL takes for something else."""
        facts = dict(self.of_method.facts)
        if self.method not in built_in() and self.method_facts != facts:
            msg = f"method {self.method} is of another package: set {PREFIX}method_facts to {json.dumps(facts)}."
            raise InputError(msg)
        return self


DEFAULT_FACTS: Mapping[str, Any] = {
    "gathers_on": "vectors",
    "levels": False,
    "anonymous": True,
    "refines": False,
    "blocks": False,
    "categories": False,
    "form": "predicted",
    "generalization": "none",
    "forms": None,
    "tells": [],
}
"""What SQL takes a method of another package for, where `method_facts` says nothing."""


def read(said: str | Mapping[str, Any]) -> ProjectSettings:
    """The settings that dbt hands to a Python model: its `prefixed`, `nested` and `old` vars, in that order of rank.

    Raises InputError where they make no sense, or where the project that is running has a var of kgather's prefix that
    kgather does not know.
    """
    given: Mapping[str, Any] = json.loads(said) if isinstance(said, str) else said
    values: dict[str, Any] = {}
    for source in (given.get("old"), given.get("nested"), given.get("prefixed")):
        if source is not None and not isinstance(source, Mapping):
            msg = f"the var kgather is a mapping of settings, as {{k: 10}}, not {json.dumps(source)}."
            raise InputError(msg)
        values |= {name: value for name, value in (source or {}).items() if value is not None}
    values = {name: value for name, value in values.items() if name not in (*OUTSIDE, *_TOLD)}
    refuse_unknown(_project_vars())
    return validated(ProjectSettings, values)


def refuse_unknown(names: Iterator[str]) -> None:
    """Raise InputError for a var with kgather's prefix that is none of kgather's."""
    known = [*ProjectSettings.model_fields, *OUTSIDE]
    unknown = sorted({name for name in names if name.removeprefix(PREFIX) not in (*known, *_TOLD)})
    if unknown:
        msg = f"there is no var {', '.join(unknown)}. There are: {', '.join(PREFIX + name for name in known)}."
        raise InputError(msg)


def _project_vars() -> Iterator[str]:
    """The vars with kgather's prefix in the project file of the dbt that is running, wherever they stand in `vars`."""
    # Imported here: only where dbt runs is there a project.
    from dbt.flags import get_flags

    folder = getattr(get_flags(), "PROJECT_DIR", None)
    file = Path(folder) / "dbt_project.yml" if folder else None
    if file is None or not file.is_file():
        return
    try:
        project = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return  # dbt itself has read it in a way of its own
    found = project.get("vars") if isinstance(project, dict) else None
    scopes = [found, *(scope for scope in found.values() if isinstance(scope, dict))] if isinstance(found, dict) else []
    for scope in scopes:
        yield from (str(name) for name in scope if str(name).lower().startswith(PREFIX))
