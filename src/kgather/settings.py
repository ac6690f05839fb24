"""What a publication is asked for: validated once, then handed to dbt as vars."""

import re
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from kgather.errors import InputError
from kgather.validation import validated

_TOP = re.compile(r"top[ :=]?([1-9][0-9]*)")


class PublishSettings(BaseModel):
    """The vars of the dbt project that the command line sets, each with the project's own default."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    k: int = Field(ge=1, strict=True)
    method: Literal["bkg"] = "bkg"
    solver: Literal["als", "funk"] = "als"
    solver_options: dict[str, Any] = {}
    rank: int = Field(10, ge=1, le=500)
    metric: Literal["prediction", "preference"] = "prediction"
    bisection_tries: int = Field(10, ge=1)
    seed: int = Field(0, ge=0, lt=2**63)
    threads: int = Field(0, ge=0)
    homogenize: Literal["predicted", "padded", "pure"] = "predicted"
    cells: str = "all"
    single_rater: Literal["pad", "drop", "keep"] = "pad"
    max_cells: int = Field(50_000_000, ge=1)
    scale: tuple[float, float] | tuple[float, float, float] | None = None
    not_rated: float | None = None
    min_ratings: int = Field(1, ge=1)
    max_rejected_share: float = Field(0.01, ge=0, le=1)

    @field_validator("cells")
    @classmethod
    def _cells(cls, value: str) -> str:
        top = _TOP.fullmatch(value.strip().lower())
        if top:
            return f"top {top[1]}"
        if value not in ("all", "rated", "low_rank"):
            msg = "is all, rated, low_rank or top N (as 'top 100')"
            raise ValueError(msg)
        return value

    @field_validator("scale")
    @classmethod
    def _scale(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and not value[0] < value[1]:
            msg = "is MIN,MAX[,STEP] with MIN less than MAX"
            raise ValueError(msg)
        if value is not None and len(value) == 3 and not 0 < value[2] <= value[1] - value[0]:
            msg = "has a STEP that is more than 0 and fits between MIN and MAX"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _low_rank_is_predicted(self) -> "PublishSettings":
        if self.cells == "low_rank" and self.homogenize != "predicted":
            msg = "cells low_rank goes with homogenize predicted only: nothing else has a low rank"
            raise ValueError(msg)
        return self

    @classmethod
    def from_options(cls, options: dict[str, Any], assignments: list[str]) -> "PublishSettings":
        """Build settings from command line options (None: not given) and `VAR=VALUE` assignments.

        Raises InputError naming the option or var that is wrong and what it may be.
        """
        return validated(cls, options | _assigned(assignments))

    def dbt_vars(self) -> dict[str, Any]:
        """Return the settings as dbt takes them."""
        return self.model_dump(mode="json")


def _assigned(assignments: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or name not in PublishSettings.model_fields:
            known = ", ".join(PublishSettings.model_fields)
            msg = f"--set takes VAR=VALUE, not {assignment!r}. The vars are: {known}."
            raise InputError(msg)
        try:
            values[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            msg = f"--set {name}: {text!r} is not a value in YAML."
            raise InputError(msg) from None
    return values
