"""What two settings may not say together: one list, for Python and for dbt.

Each rule is an expression of Jinja. Python evaluates it here; `sql/hooks/settings.sql` holds the same text. Names in an
expression: every setting, `form` and `generalization` (what homogenize and generalize stand for), `cells_kind` (the
first word of cells), `of_method` and `of_form` (facts of the method and the form that were chosen).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

from kgather._forms import CELLS, forms
from kgather._methods import built_in


@dataclass(frozen=True)
class Rule:
    """A contradiction: the expression that is true where it is one, and what is said then, with {names} of settings."""

    wrong: str
    told: str


def _or(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _rules() -> Iterator[Rule]:
    by_level = _or([method.name for method in built_in().values() if method.levels])
    on_categories = _or([method.name for method in built_in().values() if method.categories])
    in_blocks = _or([method.name for method in built_in().values() if method.blocks])
    over_time = _or(
        [
            method.name
            for method in built_in().values()
            if method.anonymous and not method.levels and "unchanged" not in method.tells
            if method.gathers_on == "vectors"
        ]
    )
    adding = _or([form.name for form in forms().values() if form.adds_cells])
    bound = "; ".join(f"{method.name} and {form}" for method in built_in().values() for form in method.forms or ())
    for kind, why in CELLS.items():
        showing = _or([form.name for form in forms().values() if kind in form.cells and form.rows != "nobody"])
        shown = kind if kind in ("all", "rated", "low_rank") else f"{kind} N"
        yield Rule(
            f"cells_kind == '{kind}' and '{kind}' not in of_form.cells",
            f"cells {shown} goes with homogenize {showing}" + (f": {why}." if why else "."),
        )
    yield Rule(
        "(of_method.forms is not none and form not in of_method.forms) "
        "or (of_form.by_method and of_method.forms is none)",
        f"method {{method}} and homogenize {{form}} do not go together: {bound} go together only.",
    )
    yield Rule(
        "not of_method.anonymous and not i_know_this_is_not_anonymous",
        "method {method} gives no k-anonymity: every user stands alone. Where that is meant, set "
        "i_know_this_is_not_anonymous to true (on the command line --i-know-this-is-not-anonymous).",
    )
    yield Rule(
        "form == 'none' and generalization == 'none'",
        "homogenize none and generalize none leave nothing to release.",
    )
    yield Rule(
        "not of_method.anonymous and generalization != 'none'",
        "method {method} has no groups to generalize: set generalize to none.",
    )
    yield Rule(
        "of_method.levels and not (level_column and user_attributes)",
        "method {method} needs the users' levels: set user_attributes and level_column.",
    )
    yield Rule(
        "level_column and not of_method.levels",
        f"level_column goes with method {by_level}: the others give every user k.",
    )
    yield Rule(
        "(personal_columns or sensitive_columns) and not user_attributes",
        "personal_columns and sensitive_columns are columns of the users' attributes: set user_attributes.",
    )
    yield Rule(
        "personal_columns and generalization == 'none' and personal != 'separate'",
        "personal_columns are shown beside generalized artifacts: set generalize to ndgh or dgh, or personal to "
        "separate.",
    )
    yield Rule(
        "personal_columns and personal == 'as_is' and not i_know_this_is_not_anonymous",
        "personal as_is shows attributes as they are, and rare ones single people out: set personal to generalize or "
        "separate. Where that is meant, set i_know_this_is_not_anonymous to true (on the command line "
        "--i-know-this-is-not-anonymous).",
    )
    yield Rule(
        "personal_shared and personal != 'separate'",
        "personal_shared names what both tables of personal separate show: set personal to separate.",
    )
    yield Rule(
        "personal_shared | reject('in', personal_columns) | list",
        "personal_shared names columns that are not among personal_columns: add them there.",
    )
    yield Rule(
        "personal_shared and generalization == 'none'",
        "personal_shared are shown beside generalized artifacts: set generalize to ndgh or dgh.",
    )
    yield Rule(
        "categorical_artifacts and not of_method.categories",
        f"categorical_artifacts go with method {on_categories}, which gather on the artifact table. Method {{method}} "
        "looks at ratings alone.",
    )
    yield Rule(
        "categorical_artifacts | reject('in', personal_shared if personal == 'separate' else personal_columns) | list",
        "categorical_artifacts are shown beside the other artifacts: name them in personal_columns, and with personal "
        "separate in personal_shared, too.",
    )
    yield Rule(
        "personal_recoding and not personal_columns",
        "personal_recoding says how personal_columns are generalized: set personal_columns.",
    )
    yield Rule(
        "solver == 'none' and (of_form.needs_solver or (form == 'pure' and single_rater == 'pad'))",
        "solver none learns nothing to homogenize with: set homogenize to microaggregated, or to pure with "
        "single_rater drop or keep.",
    )
    yield Rule(
        "rare_items == 'drop' and not of_form.needs_solver",
        "rare_items drop goes with homogenize "
        + _or([form.name for form in forms().values() if form.needs_solver])
        + ", which show predictions of items.",
    )
    yield Rule(
        "item_epsilon is not none and not items",
        "item_epsilon needs items, the list of all items: that an item is there would say that somebody rated it.",
    )
    yield Rule(
        "item_epsilon is not none and scale is none",
        "item_epsilon needs scale: an inferred one ends at the ratings of one or two people.",
    )
    yield Rule(
        "item_epsilon is not none and form != 'predicted'",
        "item_epsilon goes with homogenize predicted: the others show ratings as they are.",
    )
    yield Rule(
        "item_epsilon is not none and cells_kind not in ['all', 'best', 'low_rank']",
        "item_epsilon goes with cells all, best N or low_rank: the others choose items by who rated them.",
    )
    yield Rule(
        "item_epsilon is not none and (solver != 'als' or solver_options or min_raters is not none "
        "or rare_items == 'drop')",
        "item_epsilon has a way to learn of its own: leave solver, solver_options, min_raters and rare_items out.",
    )
    yield Rule("solver == 'none' and fill == 'prediction'", "fill prediction needs a solver: als or funk.")
    yield Rule(
        "solver == 'none' and metric != 'filled' and of_method.gathers_on == 'vectors' and of_method.anonymous",
        "solver none leaves users nothing to be compared in but metric filled.",
    )
    yield Rule("block_size and not of_method.blocks", f"block_size goes with method {in_blocks}.")
    yield Rule(
        "sensitive_l is not none and not (sensitive_items or sensitive_columns)",
        "sensitive_l needs sensitive_items or sensitive_columns.",
    )
    yield Rule(
        "sensitive_l is not none and (sensitive_diversity == 'recursive') != (sensitive_c is not none)",
        "sensitive_c goes with sensitive_diversity recursive, and only with it.",
    )
    yield Rule(
        "sensitive_l is not none and (of_method.levels or not of_method.anonymous)",
        "sensitive_l cannot be kept by method {method}, which lets users stand alone.",
    )
    yield Rule(
        "diversity_l > 1 and (not of_form.adds_cells or cells_kind == 'low_rank')",
        f"diversity_l goes with homogenize {adding} and cells all, rated or top N.",
    )
    yield Rule(
        "scale is not none and (rating_log or repeats in ('sum', 'count'))",
        "scale is that of the ratings as they are read: leave it out with rating_log and with repeats sum or count.",
    )
    yield Rule(
        "(history or reserve) and (of_method.levels or not of_method.anonymous or 'unchanged' in of_method.tells "
        "or of_method.gathers_on == 'artifacts')",
        f"history and reserve go with method {over_time}: the groups of the others hang on more than who is in them.",
    )
    yield Rule(
        "(history or reserve) and (sensitive_l is not none or generalization != 'none' or personal_columns)",
        "history and reserve do not go with sensitive_l, generalize or personal_columns: groups may fail them as they "
        "change.",
    )
    # Of a dbt project only: the command line publishes one release at a time.
    yield Rule(
        "within is defined and within is not none and (of_method.levels or not of_method.anonymous "
        "or 'unchanged' in of_method.tells or of_method.gathers_on == 'artifacts' or 'left_out' in of_method.tells)",
        f"within goes with method {over_time}: it puts whole groups together by their mean vectors.",
    )
    yield Rule(
        "within is defined and within is not none and (sensitive_l is not none "
        "or metric == 'filled' or solver == 'none')",
        "within does not go with sensitive_l, metric filled or solver none.",
    )
    yield Rule("diversity_l > 1 and solver == 'none'", "diversity_l needs a solver: added cells hold predictions.")


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they are told."""
    return tuple(_rules())


@cache
def _compiled(expression: str) -> Any:
    return jinja2.Environment(undefined=jinja2.StrictUndefined).compile_expression(expression)


def holds(expression: str, **names: Any) -> bool:
    """Whether an expression of Jinja is true with these names."""
    return bool(_compiled(expression)(**names))


def contradictions(values: Mapping[str, Any]) -> list[str]:
    """What the values, with all names that an expression may use, say against each other, in sentences."""
    return [rule.told.format_map(values) for rule in rules() if holds(rule.wrong, **values)]
