"""What a publication is asked for: the one schema of dbt's vars, the command line, docs/vars.md and the checks."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from kgather._errors import InputError
from kgather._forms import Form, form_named, forms
from kgather._methods import Method, built_in, method_named, registered
from kgather._settings.fields import GATHERING, INPUT, OVER_TIME, RELEASE, SENSITIVE, USERS, setting
from kgather._settings.hierarchy import Hierarchy
from kgather._settings.options import checked_options
from kgather._settings.rules import contradictions, holds
from kgather._settings.validation import validated
from kgather.udfs.preferences.options import SOLVERS, options_of

CELLS_PATTERN = r"^(all|rated|low_rank|(?i:top|best|popular)[ :=]?[1-9][0-9]{0,8})$"
CHAIN = (
    "k", "homogenize", "cells", "solver", "solver_options", "rank", "min_raters", "rare_items", "item_noise",
    "item_epsilon", "item_delta", "outliers", "single_rater", "scale", "items", "repeats", "rating_cap", "rating_log",
    "diversity_b", "diversity_l",
)  # fmt: skip
"""Settings that all releases of a chain have in common: who has two kinds of the same groups learns from both."""
_GENERALIZATIONS = Literal["auto", "ndgh", "dgh", "none"]
_ItemId = int | str
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class PublishSettings(BaseModel):
    """What may be asked of any publication. Types are strict: true is not 1. null stands for the default."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, strict=True)

    scale: Annotated[list[_Finite], Field(min_length=2, max_length=3)] | None = setting(
        None,
        "The ratings' scale; inferred if not given. Ratings off it are rejected.",
        docs="`[min, max]` or `[min, max, step]`; ratings off it are set aside.",
        section=INPUT,
        shown_default="inferred from the ratings",
        option="--scale",
        metavar="MIN,MAX[,STEP]",
        values="[min, max] or [min, max, step] with min less than max and a step that is more than 0 and fits between "
        "them",
        also="value[0] < value[1] and "
        "(value | length == 2 or (value[2] > 0 and value[2] <= value[1] - value[0] + 1e-6))",
        own_name=False,
    )
    not_rated: _Finite | None = setting(
        None,
        "A value that means 'not rated'.",
        docs='A value that means "not rated", such as 0 or 99. Such rows are set aside, and do not count as rejected.',
        section=INPUT,
        option="--not-rated",
        metavar="VALUE",
    )
    repeats: Literal["latest", "first", "mean", "max", "sum", "count"] | None = setting(
        None,
        "Pairs of user and item may occur several times: which rating they get.",
        docs="Which rating a pair of user and item gets that occurs several times: `latest`, `first` (by time, and the "
        "mean of those at that time), `mean`, `max`, `sum` or `count`. Said, as for events, repeats are no faults. "
        "Where it is not said, the latest is kept and the others count as rejected.",
        section=INPUT,
        shown_default="latest, and repeats count as rejected",
        option="--repeats",
        own_name=False,
    )
    rating_cap: _Finite | None = setting(
        None,
        "Higher ratings count as this much.",
        docs="Ratings above this count as this much, after repeats are put together. Where `repeats` is `sum` or "
        "`count`, the default is the highest value that k users reach, so that the heaviest user does not become the "
        "end of the scale.",
        section=INPUT,
        shown_default="none; with repeats sum or count what k users reach",
        option="--rating-cap",
        own_name=False,
        metavar="VALUE",
        gt=0,
    )
    rating_log: bool = setting(
        False,
        "Take ln(1 + rating), as for counts.",
        docs="Take the logarithm of 1 + rating, as for counts, after repeats are put together and capped. Negative "
        "ratings are set aside then.",
        section=INPUT,
        option="--rating-log",
        own_name=False,
    )
    min_ratings: int = setting(
        1,
        "Set users with fewer aside.",
        docs="Users with fewer ratings are set aside. This does not count as rejected.",
        section=INPUT,
        option="--min-ratings",
        metavar="N",
        ge=1,
    )
    max_rejected_share: float = setting(
        0.01,
        "The run fails if a larger share of the rows is rejected.",
        docs="If a larger share of the rows is rejected, the run fails before any work.",
        section=INPUT,
        option="--max-rejected-share",
        metavar="SHARE",
        ge=0,
        le=1,
        allow_inf_nan=False,
    )
    items: str | None = setting(
        None,
        "The model that lists all items.",
        docs="The catalogue: the model that lists all items that a release may show, rated or not, one row an item. "
        "Ratings of other items are rejected. Without it the items are those that somebody rated, and that an item is "
        "there says that somebody rated it.",
        section=INPUT,
        own_name=False,
    )
    items_confirmed: bool = setting(
        False,
        "The items are no people, though they look like it.",
        docs="Items that look like people, as where users and items change places, are refused unless this is true.",
        section=INPUT,
        option="--items-confirmed",
        own_name=False,
    )
    user_attributes: str | None = setting(
        None,
        "The model that holds users' attributes.",
        docs="The model that holds users' attributes: a column `user_id` and any others, one row for each user.",
        section=USERS,
    )
    personal_columns: list[str] = setting(
        [],
        "Attributes that are shown, as --personal says.",
        docs="The columns of `user_attributes` by which people may be known and that are shown, as `personal` says.",
        section=USERS,
        shown_default="none",
        option="--personal-columns",
        metavar="A,B,...",
        values="a list of texts, as [age, gender]",
    )
    personal: Literal["generalize", "separate", "as_is"] = setting(
        "generalize",
        "What is shown of personal columns: generalized with their group, separate (a table of their own), or as_is.",
        docs="What is shown of `personal_columns`. `generalize`: beside the generalized artifacts, each as the range, "
        "label or prefix that covers its whole group. `separate`: in `kgather__personal`, a table of its own whose "
        "classes are made independently; nothing links its rows with groups, and the audit measures the smallest "
        "intersection of both. `as_is`: as they are, which may single people out, so it needs "
        "`i_know_this_is_not_anonymous`.",
        section=USERS,
        option="--personal",
        metavar="HOW",
        own_name=False,
    )
    personal_shared: list[str] = setting(
        [],
        "Personal columns that --personal separate shows beside the generalized artifacts, too.",
        docs="Those of `personal_columns` that `personal: separate` shows in both tables: in `kgather__personal`, "
        "and beside the generalized artifacts as `generalize` does. All other columns are in one table only.",
        section=USERS,
        shown_default="none",
        option="--personal-shared",
        metavar="A,B,...",
        own_name=False,
        values="a list of texts, as [age, gender]",
    )
    personal_recoding: dict[str, Any] = setting(
        {},
        "How personal columns are generalized: a YAML file, as age: {step: 5}.",
        docs="How each of `personal_columns` is generalized, as `{age: {step: 5}, zip: {kind: prefix}}`: the settings "
        "of a quasi-identifier, see [tables.md](tables.md#how-quasi-identifiers-are-generalized).",
        section=USERS,
        option="--personal-recoding",
        metavar="FILE",
        own_name=False,
    )
    level_column: str | None = setting(
        None,
        "The size of group each user asks for, with a method that takes levels.",
        docs="The column of `user_attributes` with the size of group that each user asks for (`bokg`, `customized`). "
        "Users without one ask "
        "for k.",
        section=USERS,
        option="--level-column",
        metavar="NAME",
    )
    k: int = setting(
        ...,
        "Users in the smallest group.",
        section=GATHERING,
        shown_default="none: must be set",
        ge=1,
        own_name=False,
    )
    method: str = setting(
        "bkg",
        "How users are gathered.",
        docs="How users are gathered. [One page for each method.](methods/README.md)",
        section=GATHERING,
        option="--method",
        enum=list(built_in()),
        own_name=False,
    )
    method_options: dict[str, Any] = setting(
        {},
        "Options of the method.",
        docs="Options of the method, such as `{rounds: 20}`; its page lists them.",
        section=GATHERING,
    )
    solver: Literal["als", "funk", "none"] = setting(
        "als",
        "How preferences are learned.",
        docs="How preferences are learned: `als`; `funk` (one factor at a time by gradient descent, as in the thesis); "
        "`none`, if nothing needs them.",
        section=GATHERING,
        own_name=False,
    )
    solver_options: dict[str, Any] = setting(
        {},
        "Options of the solver.",
        docs="Options of the solver, such as `{epochs: 60}`; [choices.md](choices.md) lists them.",
        section=GATHERING,
        own_name=False,
    )
    rank: int = setting(
        3,
        "Factors of a preference.",
        docs="Factors of a preference. More fit better, but give away more: [why-predicted.md](why-predicted.md).",
        section=GATHERING,
        option="--rank",
        ge=1,
        le=500,
        own_name=False,
    )
    metric: Literal["prediction", "preference", "filled"] = setting(
        "prediction",
        "What users are compared in.",
        docs="What users are compared in: `prediction`, `preference` (the factors alone, as in the thesis) or `filled` "
        "(all ratings, filled and z-scored by item; up to `max_cells` cells of users x items).",
        section=GATHERING,
        option="--metric",
        own_name=False,
    )
    fill: Literal["median", "mean", "prediction"] = setting(
        "median",
        "The value that stands for a missing rating.",
        docs="The value that stands for a missing rating in `filled`, `microaggregated` and `noise`: `median` (the "
        "middle of the scale), `mean` (of all ratings) or `prediction`.",
        section=GATHERING,
        own_name=False,
    )
    bisection_tries: int = setting(
        10,
        "Bisections tried at each split.",
        docs="Bisections tried at each split of BKG and its kin; the best is kept.",
        section=GATHERING,
        ge=1,
    )
    refine: Literal["auto"] | bool = setting(
        "auto",
        "Lower the loss of the groups (default: if it pays).",
        docs="Move and exchange users between near groups while the loss falls: `true`, `false` (the method bare), or "
        "`auto`: with `bkg`, `customized`, `bounded_t_means` and `mdav`; above 20,000 users one pass. See "
        "[refine](methods/refine.md).",
        section=GATHERING,
        option="--refine/--no-refine",
        values="auto, true or false",
        own_name=False,
    )
    block_size: int = setting(
        0,
        "Gather in blocks of this many users; 0: all at once.",
        docs="Gather in blocks of this many near users, in parallel (`bkg`, `bounded_t_means`, `mdav`). 0: in one.",
        section=GATHERING,
        ge=0,
        own_name=False,
    )
    artifacts: Annotated[int, Field(ge=1)] | Annotated[list[_ItemId], Field(min_length=1)] = setting(
        10,
        "Columns of the artifact table: the N most rated items, or these.",
        docs="Columns of the artifact table: the N most rated items, or a list of item ids.",
        section=GATHERING,
        option="--artifacts",
        metavar="N|A,B,...",
        values="the number of items to take, as 10, or a list of item ids",
        own_name=False,
    )
    categorical_artifacts: list[str] = setting(
        [],
        "Personal columns that are columns of the artifact table, too: users are gathered on them as categories.",
        docs="Those of `personal_columns` that are columns of the artifact table beside the items, as categories: "
        "two users have the same value or not (`k_likeness`, `k_member`, `mondrian`). See "
        "[generalization.md](generalization.md#categorical-artifacts).",
        section=GATHERING,
        shown_default="none",
        option="--categorical-artifacts",
        metavar="A,B,...",
        own_name=False,
        values="a list of texts, as [age, gender]",
    )
    epsilon: float = setting(
        1,
        "How far ratings of an item may differ in a group.",
        docs="How far two ratings of one item may differ in a group (`method: epsilon`, `homogenize: interval`).",
        section=GATHERING,
        option="--epsilon",
        ge=0,
        allow_inf_nan=False,
        own_name=False,
    )
    seed: int = setting(
        0,
        "The same input, seed and version give the same groups.",
        docs="The same input, seed and version give the same groups (under other random names).",
        section=GATHERING,
        option="--seed",
        ge=0,
        lt=2**63,
        values="a whole number of at least 0 and less than 2^63",
        own_name=False,
    )
    threads: int = setting(
        0,
        "Threads of the kernels; 0: all cores.",
        docs="Threads of the kernels; 0: all cores. The result is the same for any number.",
        section=GATHERING,
        ge=0,
        own_name=False,
    )
    sensitive_items: list[_ItemId] = setting(
        [],
        "Items whose ratings are sensitive.",
        section=SENSITIVE,
        shown_default="none",
        values="a list of item ids",
    )
    sensitive_columns: list[str] = setting(
        [],
        "Columns of the users' attributes that are sensitive.",
        docs="Columns of `user_attributes` that are sensitive.",
        section=SENSITIVE,
        shown_default="none",
        values="a list of texts, as [age, gender]",
    )
    sensitive_diversity: Literal["distinct", "entropy", "recursive", "deviation"] = setting(
        "distinct",
        "The measure of diversity.",
        docs="The measure: `distinct`, `entropy`, `recursive`, or `deviation` (of (k, epsilon, l)-anonymity). See "
        "[diversity.md](diversity.md).",
        section=SENSITIVE,
    )
    sensitive_l: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = setting(
        None,
        "Its l. Groups are merged until each has it.",
        section=SENSITIVE,
        shown_default="none: nothing is asked for",
    )
    sensitive_c: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = setting(
        None, "The c of recursive (c, l)-diversity.", section=SENSITIVE
    )
    homogenize: str = setting(
        "auto",
        "What the release shows of a group (auto: what goes with the method)",
        docs="What the release shows of a group: `auto` (what goes with the method, else `predicted`), "
        + "; ".join(f"`{form.name}` ({form.text})" for form in forms().values())
        + ". See [choices.md](choices.md).",
        section=RELEASE,
        option="--homogenize",
        enum=["auto", *forms()],
    )
    cells: str = setting(
        "all",
        "all, rated, 'top N', 'best N', 'popular N' or low_rank.",
        docs="Which cells of groups x items are shown: `all`, `rated` (some member rated), `top N` (the most rated "
        "items), `best N` (of each group the N items that are predicted highest; with `predicted` and `padded`), "
        "`popular N` (of each group the N items that most members rated, by counts with noise; with `predicted` and "
        "`padded`), or `low_rank` (vectors instead of cells).",
        section=RELEASE,
        option="--cells",
        values="all, rated, low_rank, top N, best N or popular N (as top 100)",
        pattern=CELLS_PATTERN,
        own_name=False,
    )
    popular_noise: float = setting(
        1,
        "Scale of the noise in the counts of cells popular N.",
        docs="Of `cells: popular N`: scale of the Laplace noise in the counts of raters, in raters. One member's "
        "rating changes the odds of what is shown by a factor of at most exp(1 / `popular_noise`); 0: no noise, and a "
        "single rating may decide. The draws come from the database's generator, which the operating system seeds, "
        "and not from `seed`: whoever knew the noise could subtract it. So the same input gives the same groups and "
        "other cells. Such a release is attacked, measured and proven with its working database (`--keep-work`) only.",
        section=RELEASE,
        ge=0,
        allow_inf_nan=False,
    )
    min_raters: Annotated[int, Field(ge=1)] | None = setting(
        None,
        "Items that fewer users rated have no vector of their own.",
        docs="Items that fewer users rated take no part in learning, and share one vector. From this number to twice "
        "as many raters, an item moves from the shared vector to its own. See [why-predicted.md](why-predicted.md).",
        section=RELEASE,
        shown_default="k",
        option="--min-raters",
        metavar="N",
    )
    rare_items: Literal["prior", "drop"] = setting(
        "prior",
        "What becomes of items with fewer raters than min_raters.",
        docs="What becomes of items with fewer raters than `min_raters`: `prior` (they share one vector) or `drop` "
        "(they are left out, by counts with stored Laplace noise of scale 2).",
        section=RELEASE,
        option="--rare-items",
        own_name=False,
    )
    item_noise: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = setting(
        None,
        "Noise in the items' vectors, in what one rating can move.",
        docs="Standard deviation of the noise in the items' vectors, in reaches: a reach is what one rating can move, "
        "in the level the less the more users rated the item. The noise is drawn once for a data set by a key that is "
        "kept, and is the same for every seed, k and form.",
        section=RELEASE,
        shown_default="3 with history or a reserve, else 2",
        option="--item-noise",
        metavar="REACHES",
    )
    item_epsilon: Annotated[float, Field(gt=0, le=500, allow_inf_nan=False)] | None = setting(
        None,
        "Epsilon of the user-level differential privacy of items' vectors.",
        docs="Items' vectors are (`item_epsilon`, `item_delta`) differentially private, where neighbouring data differ "
        "by one user with all ratings; the audit has the accounting. Needs `items` and `scale`. What is shown of "
        "groups is k-anonymous as ever, and not covered. See [why-predicted.md](why-predicted.md#a-proven-item-side).",
        section=RELEASE,
        shown_default="none: noise of item_noise reaches",
        option="--item-epsilon",
        metavar="EPSILON",
    )
    item_delta: float = setting(
        1e-6,
        "Its delta.",
        docs="The delta of `item_epsilon`: well below 1 / users.",
        section=RELEASE,
        option="--item-delta",
        metavar="DELTA",
        ge=1e-15,
        le=0.5,
        allow_inf_nan=False,
    )
    outliers: float = setting(
        0.98,
        "Groups farther from the middle than this share of users are drawn in.",
        docs="What is shown of a group is drawn in to this quantile of the users' distances from the middle; 1: as it "
        "is. Who is in a group that looks like no other is found by a few ratings.",
        section=RELEASE,
        option="--outliers",
        metavar="SHARE",
        own_name=False,
        gt=0,
        le=1,
        allow_inf_nan=False,
    )
    single_rater: Literal["pad", "drop", "keep"] = setting(
        "pad",
        "With pure, a cell with one rater.",
        docs="With `pure`, what becomes of a cell with one rater, which would show that person's rating: `pad`, `drop` "
        "or `keep`.",
        section=RELEASE,
        option="--single-rater",
    )
    max_cells: int = setting(
        50_000_000,
        "More cells than this are not written.",
        docs="Of `all`, `top N`, `best N` and `popular N`: more cells than this are not written. The command line then "
        "chooses `low_rank` by itself where it can; otherwise the run fails early and says so. What members rated "
        "(`pure`, `cells: rated`) is never more than the ratings, and is not limited.",
        section=RELEASE,
        ge=1,
        own_name=False,
    )
    diversity_b: int = setting(
        1,
        "Every set of b items that some user rated is shown ...",
        docs="(b, l)-diversity: cells are added until every set of b items (1 to 3) that some user rated is shown by "
        "at least `diversity_l` groups. See [diversity.md](diversity.md).",
        section=RELEASE,
        ge=1,
        le=3,
    )
    diversity_l: int = setting(
        1,
        "... in at least l groups; 1: off.",
        docs="The l of (b, l)-diversity; 1: nothing is asked for.",
        section=RELEASE,
        ge=1,
    )
    generalize: _GENERALIZATIONS = setting(
        "auto",
        "The generalized artifact table: by the method, as sets, as ranges, or none.",
        docs="The generalized artifact table: `ndgh` (sets of values), `dgh` (ranges of a hierarchy), `none`. `auto`: "
        "`ndgh` with methods that gather on the artifact table, else `none`. See "
        "[generalization.md](generalization.md).",
        section=RELEASE,
        option="--generalize",
        own_name=False,
    )
    hierarchy: Literal["halves", "binary"] | list[list[list[_Finite]]] = setting(
        "halves",
        "The ranges of dgh.",
        docs="Of `dgh`: `halves` ({0-2}, {3-5}, {0-5}), `binary` (the scale halved again and again), or levels of "
        "ranges, as `[[[0, 2], [3, 5]], [[0, 5]]]`.",
        section=RELEASE,
        values="halves, binary or levels of [low, high], the finest first",
        own_name=False,
    )
    noise_sigma: float = setting(
        1,
        "Standard deviation of Gaussian noise, in that of each item.",
        docs="Of `gaussian_noise`: the noise's standard deviation, in that of each item.",
        section=RELEASE,
        ge=0,
        allow_inf_nan=False,
    )
    noise_clip: bool = setting(
        True,
        "Clip Gaussian noise to the scale.",
        docs="Of `gaussian_noise`: whether ratings under noise are clipped to the scale.",
        section=RELEASE,
    )
    metrics: Literal["auto", "all", "none"] = setting(
        "auto",
        "What kgather__metrics measures.",
        docs="What `kgather__metrics` measures: `all`, `none`, or `auto`: everything, and above 20 million "
        "ratings only what the classes tell. See [metrics.md](metrics.md).",
        section=RELEASE,
        own_name=False,
    )
    i_know_this_is_not_anonymous: bool = setting(
        False,
        "gaussian_noise and --personal as_is need this, because they give no k-anonymity.",
        docs="`gaussian_noise` and `personal: as_is` need true.",
        section=RELEASE,
        option="--i-know-this-is-not-anonymous",
    )

    history: bool = setting(
        False,
        "This release follows the last one of the same people, and others will follow it.",
        docs="The map from user to group is kept from one release to the next in `kgather_history`, which is secret. "
        "Groups stay together or are withdrawn, and newcomers form groups of their own: "
        "[over-time.md](over-time.md).",
        section=OVER_TIME,
        own_name=False,
    )
    reserve: Annotated[int, Field(ge=0)] | None = setting(
        None,
        "Gather groups of k and so many more, so that they outlast people who leave.",
        docs="New groups have k members and so many more. A group is withdrawn once fewer than k of its members are "
        "left.",
        section=OVER_TIME,
        shown_default="3 with history, else 0",
        option="--reserve",
        metavar="N",
        own_name=False,
    )
    keep_group_ids: bool = setting(
        False,
        "Groups that stay keep their ids from release to release.",
        docs="Groups that stay keep their ids from release to release, as snapshots want it. Pseudonyms are new in "
        "each release.",
        section=OVER_TIME,
        option="--keep-group-ids",
        own_name=False,
    )

    @property
    def of_method(self) -> Method:
        """The record of the method."""
        return method_named(self.method)

    @property
    def of_form(self) -> Form:
        """The record of the form."""
        return form_named(self.form)

    @property
    def refines(self) -> bool:
        """Whether groups are refined."""
        return self.refine is True or (self.refine == "auto" and self.of_method.refines)

    @property
    def form(self) -> str:
        """What `homogenize` stands for, where it is auto."""
        return self.of_method.form if self.homogenize == "auto" else self.homogenize

    @property
    def generalization(self) -> str:
        """What `generalize` stands for, where it is auto."""
        return self.of_method.generalization if self.generalize == "auto" else self.generalize

    @property
    def cells_kind(self) -> str:
        """What cells says, without its number."""
        return re.split(r"[^a-z_]", self.cells)[0]

    @property
    def gathered(self) -> int:
        """Users in the smallest group when it is formed: k and the reserve."""
        return self.k + ((3 if self.history else 0) if self.reserve is None else self.reserve)

    @property
    def noise_of_items(self) -> float:
        """What `item_noise` stands for, where it is not said: whoever has two releases sees items move."""
        return (3.0 if self.history or self.reserve else 2.0) if self.item_noise is None else self.item_noise

    @property
    def learnt(self) -> str:
        """How items' vectors are learnt, in words: with other settings they are others, for the same ratings."""
        return json.dumps([self.solver, self.rank, self.solver_options], sort_keys=True)

    @property
    def least_raters(self) -> int:
        """What `min_raters` stands for, where it is not said."""
        return self.k if self.min_raters is None else self.min_raters

    @property
    def changes_ratings(self) -> bool:
        """Whether ratings are changed after they are read, so that their scale is another; there is such a macro."""
        return self.rating_log or self.rating_cap is not None or self.repeats in ("sum", "count")

    @property
    def options(self) -> Any:
        """The checked options of the method."""
        return checked_options(self.of_method.options, self.method_options, f"method {self.method}")

    @field_validator(
        "scale",
        "hierarchy",
        "artifacts",
        "sensitive_items",
        "personal_columns",
        "personal_shared",
        "categorical_artifacts",
        mode="before",
    )
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Tuples are lists to those who write Python; YAML and JSON have none."""
        return [cls._listed(each) for each in value] if isinstance(value, tuple | list) else value

    @field_validator("scale")
    @classmethod
    def _scale(cls, value: list[float] | None) -> list[float] | None:
        also = dict(cls.model_fields["scale"].json_schema_extra or {})["also"]  # type: ignore[arg-type]
        if value is not None and not holds(str(also), value=value):
            msg = "no such scale"
            raise ValueError(msg)
        return value

    @field_validator("method")
    @classmethod
    def _method(cls, value: str) -> str:
        if value not in registered():
            msg = "no such method"
            raise ValueError(msg)
        return value

    @field_validator("homogenize")
    @classmethod
    def _homogenize(cls, value: str) -> str:
        if value not in ("auto", *forms()):
            msg = "no such form"
            raise ValueError(msg)
        return value

    @field_validator("cells")
    @classmethod
    def _cells(cls, value: str) -> str:
        some = re.fullmatch(r"(top|best|popular)[ :=]?([0-9]+)", value.lower())
        return f"{some[1]} {some[2]}" if some else value

    @model_validator(mode="after")
    def _fits_together(self) -> "PublishSettings":
        said = contradictions(self._names())
        if not said:
            _ = self.options
            if self.solver in SOLVERS:
                options_of(self.solver, self.solver_options)
            elif self.solver_options:
                msg = f"solver {self.solver} has no options: leave solver_options out."
                raise InputError(msg)
            if self.generalization == "dgh":
                Hierarchy.parse(self.hierarchy, *(self.scale or ()))
            return self
        raise InputError("\n".join(said))

    def _names(self) -> Mapping[str, Any]:
        """What the expressions of the rules may name."""
        return {
            **{name: getattr(self, name) for name in type(self).model_fields},
            "form": self.form,
            "generalization": self.generalization,
            "cells_kind": self.cells_kind,
            "of_method": self.of_method.facts,
            "of_form": self.of_form.facts,
        }

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any], assignments: Sequence[str] = ()) -> "PublishSettings":
        """The settings that a release says it was made with, for making the like again.

        assignments: VAR=VALUE, what the release does not say. Raises InputError as `from_options` does.
        """
        named = {name: value for name, value in parameters.items() if name in cls.model_fields}
        if named.get("item_epsilon") is not None:
            named.pop("min_raters", None)  # the release says what it stands for, which a proven item side does not use
        again = {"metrics": "none", "i_know_this_is_not_anonymous": True, "items_confirmed": True}
        return cls.from_options(named | again, list(assignments))

    @classmethod
    def from_options(cls, options: dict[str, Any], assignments: list[str]) -> "PublishSettings":
        """Build settings from options (None: not given) and `VAR=VALUE` assignments, which beat them.

        Raises InputError naming the option or var that is wrong and what it may be.
        """
        return validated(cls, options | _assigned(assignments))


def _assigned(assignments: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or name not in PublishSettings.model_fields:
            known = ", ".join(PublishSettings.model_fields)
            msg = f"--set takes VAR=VALUE, not {assignment!r}. The vars are: {known}."
            raise InputError(msg)
        if name in values:
            msg = f"{name} is given twice by --set, and only one of them can hold. Leave one out."
            raise InputError(msg)
        try:
            values[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            msg = f"--set {name}: {text!r} is not a value in YAML."
            raise InputError(msg) from None
    return values
