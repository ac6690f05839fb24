"""What a publication is asked for: validated once, then handed to dbt as vars."""

import re
from collections.abc import Iterator
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from kgather._errors import InputError
from kgather._settings.hierarchy import Hierarchy
from kgather._settings.methods import BY_LEVEL, METHOD_OPTIONS, ON_ARTIFACTS, REFINED, Method
from kgather._settings.validation import validated
from kgather.udfs._shared.options import make_options

_SOME = re.compile(r"(top|best|popular)[ :=]?([1-9][0-9]*)")


class PublishSettings(BaseModel):
    """The vars of the dbt project that the command line sets, each with the project's own default."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    user_attributes: str | None = None
    personal_columns: list[str] = []
    level_column: str | None = None
    k: int = Field(ge=1, strict=True)
    method: Method = "bkg"
    method_options: dict[str, Any] = {}
    solver: Literal["als", "funk", "none"] = "als"
    solver_options: dict[str, Any] = {}
    rank: int = Field(3, ge=1, le=500)
    metric: Literal["prediction", "preference", "filled"] = "prediction"
    fill: Literal["median", "prediction"] = "median"
    bisection_tries: int = Field(10, ge=1)
    refine: Literal["auto"] | bool = "auto"
    block_size: int = Field(0, ge=0)
    artifacts: int | list[int | str] = 10
    epsilon: float = Field(1, ge=0, allow_inf_nan=False)
    seed: int = Field(0, ge=0, lt=2**63)
    threads: int = Field(0, ge=0)
    sensitive_items: list[int | str] = []
    sensitive_columns: list[str] = []
    sensitive_diversity: Literal["distinct", "entropy", "recursive", "deviation"] = "distinct"
    sensitive_l: float | None = Field(None, gt=0, allow_inf_nan=False)
    sensitive_c: float | None = Field(None, gt=0, allow_inf_nan=False)
    homogenize: Literal["auto", "predicted", "padded", "pure", "microaggregated", "interval", "noise", "none"] = "auto"
    cells: str = "all"
    popular_noise: float = Field(1, ge=0, allow_inf_nan=False)
    single_rater: Literal["pad", "drop", "keep"] = "pad"
    max_cells: int = Field(50_000_000, ge=1)
    diversity_b: int = Field(1, ge=1, le=3)
    diversity_l: int = Field(1, ge=1)
    generalize: Literal["auto", "ndgh", "dgh", "none"] = "auto"
    hierarchy: str | list[list[list[float]]] = "halves"
    noise_sigma: float = Field(1, ge=0, allow_inf_nan=False)
    noise_clip: bool = True
    metrics: Literal["auto", "all", "none"] = "auto"
    i_know_this_is_not_anonymous: bool = False
    scale: tuple[float, float] | tuple[float, float, float] | None = None
    not_rated: float | None = None
    min_ratings: int = Field(1, ge=1)
    max_rejected_share: float = Field(0.01, ge=0, le=1)

    @property
    def refines(self) -> bool:
        """Whether groups are refined."""
        return self.refine is True or (self.refine == "auto" and self.method in REFINED)

    @property
    def form(self) -> str:
        """What `homogenize` stands for, where it is auto: see sql/hooks/choices.sql."""
        if self.homogenize != "auto":
            return self.homogenize
        if self.method in ON_ARTIFACTS:
            return "none"
        return {"epsilon": "interval", "gaussian_noise": "noise"}.get(self.method, "predicted")

    @property
    def generalization(self) -> str:
        """What `generalize` stands for, where it is auto."""
        if self.generalize != "auto":
            return self.generalize
        return "ndgh" if self.method in ON_ARTIFACTS else "none"

    @field_validator("cells")
    @classmethod
    def _cells(cls, value: str) -> str:
        some = _SOME.fullmatch(value.strip().lower())
        if some:
            return f"{some[1]} {some[2]}"
        if value not in ("all", "rated", "low_rank"):
            msg = "is all, rated, low_rank, top N, best N or popular N (as 'top 100')"
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

    @field_validator("artifacts")
    @classmethod
    def _artifacts(cls, value: int | list[int | str]) -> int | list[int | str]:
        if isinstance(value, bool) or value == [] or (isinstance(value, int) and value < 1):
            msg = "is the number of items to take, as 10, or a list of item ids"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> "PublishSettings":
        make_options(METHOD_OPTIONS[self.method], self.method_options, self.method)
        if self.generalization == "dgh":
            Hierarchy.parse(self.hierarchy, *(self.scale or ()))
        for wrong, told in self._contradictions():
            if wrong:
                raise ValueError(told)
        return self

    def _contradictions(self) -> Iterator[tuple[object, str]]:
        """What two settings say against each other, as sql/hooks/check_vars.sql knows it too."""
        form, generalization = self.form, self.generalization
        by_level = self.method in BY_LEVEL
        yield (
            self.cells == "low_rank" and form not in ("predicted", "none"),
            "cells low_rank goes with homogenize predicted only: nothing else has a low rank",
        )
        yield (
            self.cells.startswith("best") and form not in ("predicted", "padded"),
            "cells best N goes with homogenize predicted or padded: it shows what is predicted best",
        )
        yield (
            self.cells.startswith("popular") and form not in ("predicted", "padded"),
            "cells popular N goes with homogenize predicted or padded: it shows items that nobody may have rated",
        )
        yield (
            (self.method == "gaussian_noise") != (form == "noise"),
            "method gaussian_noise and homogenize noise go together only",
        )
        yield (
            self.method == "gaussian_noise" and not self.i_know_this_is_not_anonymous,
            "method gaussian_noise gives no k-anonymity: every user keeps a row of their own. If you want that, "
            "give --i-know-this-is-not-anonymous",
        )
        yield (
            form == "none" and generalization == "none",
            "homogenize none and generalize none leave nothing to release",
        )
        yield (
            self.method == "gaussian_noise" and generalization != "none",
            "method gaussian_noise has no groups to generalize: set generalize to none",
        )
        yield (
            by_level and not (self.level_column and self.user_attributes),
            f"method {self.method} needs the users' levels: give --user-attributes and --level-column",
        )
        yield (
            self.level_column and not by_level,
            "level_column goes with method bokg or customized: the others give every user k",
        )
        yield (
            (self.personal_columns or self.sensitive_columns) and not self.user_attributes,
            "personal_columns and sensitive_columns are columns of the users' attributes: give --user-attributes",
        )
        yield (
            self.personal_columns and generalization == "none",
            "personal_columns are shown by the generalized table only: set generalize to ndgh or dgh",
        )
        yield from self._contradictions_of_solver(form)
        yield (
            self.block_size and self.method not in ("bkg", "bounded_t_means", "mdav"),
            "block_size goes with method bkg, bounded_t_means or mdav",
        )
        yield from self._contradictions_of_diversity(form)

    def _contradictions_of_solver(self, form: str) -> Iterator[tuple[object, str]]:
        nothing = self.solver == "none"
        yield (
            nothing and (form in ("predicted", "padded") or (form == "pure" and self.single_rater == "pad")),
            "solver none learns nothing to homogenize with: set homogenize to microaggregated, or to pure with "
            "single_rater drop or keep",
        )
        yield nothing and self.fill == "prediction", "fill prediction needs a solver: als or funk"
        yield (
            nothing and self.metric != "filled" and self.method not in ON_ARTIFACTS and self.method != "gaussian_noise",
            "solver none learns nothing to compare users by: choose metric filled",
        )

    def _contradictions_of_diversity(self, form: str) -> Iterator[tuple[object, str]]:
        if self.sensitive_l is not None:
            yield (
                not (self.sensitive_items or self.sensitive_columns),
                "sensitive_l needs sensitive_items or sensitive_columns",
            )
            yield (
                (self.sensitive_diversity == "recursive") != (self.sensitive_c is not None),
                "sensitive_c goes with sensitive_diversity recursive, and only with it",
            )
            yield (
                self.method in BY_LEVEL or self.method == "gaussian_noise",
                f"sensitive_l cannot be kept by method {self.method}, which lets users stand alone",
            )
        if self.diversity_l > 1:
            yield (
                form not in ("predicted", "padded", "pure") or self.cells == "low_rank",
                "diversity_l goes with homogenize pure, padded or predicted and cells all, rated or top N",
            )
            yield self.solver == "none", "diversity_l needs a solver: added cells hold predictions"

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
