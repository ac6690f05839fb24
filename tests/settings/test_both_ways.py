"""Every setting with the edges of what it may be, in Python and in dbt: the same answer in the same words."""

import re

import pytest
from dbt_macros import CompilerError, load_macros

from kgather._errors import InputError
from kgather._methods import built_in
from kgather._settings.project import PREFIX, ProjectSettings
from kgather._settings.validation import validated

EDGES: list[object] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    4,
    500,
    501,
    2**63 - 1,
    2**63,
    -(2**63),
    0.5,
    1.0,
    1.5,
    -0.5,
    float("inf"),
    float("-inf"),
    float("nan"),
    "",
    "1",
    "yes",
    "auto",
    "none",
    "all",
    "rated",
    "top7",
    "top 7",
    "top 0",
    "top 9999999999",
    "TOP=7",
    "top:7",
    "best 5",
    "popular 3",
    "low_rank",
    "low_rank 3",
    "nonsense",
    "bkg",
    "mdav",
    "gaussian_noise",
    "customized",
    "k_member",
    "pure",
    "noise",
    "halves",
    "binary",
    "dgh",
    [],
    [1],
    ["a"],
    [1, 5],
    [1, 5, 1],
    [5, 1],
    [1, 1],
    [1, 5, 0],
    [1, 5, 9],
    [1, 5, 1, 1],
    [float("nan"), 5],
    [1, float("inf")],
    [True],
    [None],
    [1.5],
    [[1]],
    [[[0, 2], [3, 5]], [[0, 5]]],
    {},
    {"rounds": 3},
    ["age"],
    "age",
]
# What only Python asks, in the first Python model that dbt runs: the shape of a hierarchy and a solver's options.
ONLY_PYTHON = re.compile(r"hierarchy|^(solver )?(als|funk|none) has no option")
BASES: list[dict[str, object]] = [
    {},
    {"method": "gaussian_noise", "i_know_this_is_not_anonymous": True},
    {"method": "customized", "user_attributes": "users", "level_column": "level"},
    {"method": "k_member", "generalize": "dgh"},
    {"homogenize": "pure", "solver": "none", "metric": "filled", "single_rater": "drop"},
    {"sensitive_l": 2, "sensitive_items": [1], "sensitive_diversity": "recursive", "sensitive_c": 1.5},
    {"diversity_l": 2, "cells": "top 5"},
    {"cells": "best 5", "scale": [1, 5]},
]


def in_python(settings: dict[str, object]) -> list[str]:
    try:
        validated(ProjectSettings, settings)
    except InputError as error:
        return str(error).split("\n")
    return []


def wrong_by_itself(name: str, edge: object) -> bool:
    """Whether the type or the bounds of the setting rule this value out, whatever else is asked for."""
    told = in_python({"k": 5, "ratings": "my_ratings", name: edge})
    return any(sentence.startswith(f"{name} is ") and ", not " in sentence for sentence in told)


@pytest.mark.parametrize("base", BASES, ids=lambda base: ",".join(base) or "defaults")
def test_every_edge_gets_the_same_answer(base: dict[str, object]) -> None:
    given: dict[str, object] = {}
    macros = load_macros(vars=given)
    unlike = []
    for name in ProjectSettings.model_fields:
        # Whether a value may be at all does not hang on the others, so that is asked once.
        for edge in EDGES if not base else [edge for edge in EDGES if not wrong_by_itself(name, edge)]:
            settings = {"k": 5, "ratings": "my_ratings", **base, name: edge}
            given.clear()
            given.update({PREFIX + name: value for name, value in settings.items()})
            in_dbt = macros.wrong_settings() or macros.contradicting_settings()
            python = in_python(settings)
            if python != in_dbt and not (python and ONLY_PYTHON.search(python[0])):
                unlike.append((name, edge, python, in_dbt))
    assert unlike == []


OPTIONS: list[dict[str, object]] = [
    {},
    {"rounds": 3},
    {"rounds": 0},
    {"rounds": True, "bins": -1},
    {"sample": "all"},
    {"virtual_centres": 1, "rounds": 1.5},
    {"leftovers": "nearest"},
    {"leftovers": "elsewhere"},
    {"leftovers": None},
    {"nonsense": 1, "rounds": 0},
]


@pytest.mark.parametrize("method", [name for name, method in built_in().items() if method.anonymous])
def test_options_of_a_method_get_the_same_answer(method: str) -> None:
    given: dict[str, object] = {}
    macros = load_macros(vars=given)
    base = {"k": 5, "ratings": "my_ratings", "method": method}
    if built_in()[method].levels:
        base |= {"user_attributes": "people", "level_column": "level"}
    for options in OPTIONS:
        settings = base | {"method_options": options}
        given.clear()
        given.update({PREFIX + name: value for name, value in settings.items()})
        in_dbt = macros.wrong_settings() or macros.contradicting_settings()
        assert in_dbt == in_python(settings), options
        if any(name not in built_in()[method].options.model_fields for name in options):
            assert in_dbt != []


def test_nested_and_prefixed_vars_say_the_same() -> None:
    for given in ({"kgather": {"k": 7, "seed": 3}}, {"kgather_k": 7, "kgather_seed": 3}):
        macros = load_macros(vars=given)
        assert (macros.setting("k"), macros.setting("seed"), macros.setting("rank")) == (7, 3, 3)


def test_a_prefixed_var_beats_a_nested_one() -> None:
    assert load_macros(vars={"kgather": {"k": 7}, "kgather_k": 9}).setting("k") == 9


def test_a_projects_own_vars_are_its_own() -> None:
    macros = load_macros(vars={"k": 3, "seed": 8, "scale": [0, 9], "kgather": {"k": 7}})
    assert (macros.setting("k"), macros.setting("seed"), macros.setting("scale")) == (7, 0, None)


def test_old_names_are_read_with_a_warning() -> None:
    macros = load_macros(vars={"homogenize": "pure", "kgather": {"k": 7, "ratings": "r"}})
    assert macros.setting("homogenize") == "pure"
    macros.check_vars()
    assert macros.warnings == [
        "kgather: the var homogenize is deprecated outside vars: kgather:. Use kgather_homogenize."
    ]


@pytest.mark.parametrize(
    ("given", "command_line", "told"),
    [
        ({"kgather": {"k": 10}}, {"kgather": {"k": 10}}, "would replace all that the project says"),
        ({"kgather_kk": 10}, {"kgather_kk": 10}, "there is no var kgather_kk"),
        ({"Kgather_k": 10}, {"Kgather_k": 10}, "there is no var Kgather_k"),
        ({"kgather": {"kk": 10}}, {}, "there is no setting kk"),
        ({"kgather": {"kgather_kk": 10}}, {}, "there is no var kgather_kk"),
        ({"kgather": 10}, {}, "is a mapping of settings"),
    ],
)
def test_what_would_be_overlooked_is_refused(given: dict, command_line: dict, told: str) -> None:
    macros = load_macros(vars=given, command_line=command_line)
    with pytest.raises(CompilerError, match=re.escape(told)):
        macros.check_vars()
