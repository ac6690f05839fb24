"""What may be asked for on the command line is what the dbt project knows, with the same defaults."""

import re

import pytest
from pydantic import ValidationError

from kgather._errors import InputError
from kgather._settings.publication import PublishSettings
from kgather._settings.validation import validated


def test_assignments_are_yaml_and_beat_options() -> None:
    settings = PublishSettings.from_options(
        {"k": 5, "rank": 8, "metric": None}, ["rank=4", "solver=funk", "solver_options={epochs: 3}", "scale=[1, 5]"]
    )
    assert (settings.rank, settings.solver, settings.solver_options) == (4, "funk", {"epochs": 3})
    assert settings.scale == [1, 5]
    assert settings.metric == "prediction"


def test_a_release_with_a_proven_item_side_can_be_made_again_by_what_it_says() -> None:
    """It says what min_raters stands for, which may not be asked for there."""
    said = PublishSettings(k=5, item_epsilon=4.0, items="all", scale=[1, 5]).model_dump(mode="json") | {"min_raters": 5}
    again = PublishSettings.of_parameters(said)
    assert (again.item_epsilon, again.min_raters) == (4.0, None)
    assert PublishSettings.of_parameters(said | {"item_epsilon": None}).min_raters == 5


@pytest.mark.parametrize("cells", ["top 7", "top7", "top:7", "TOP=7"])
def test_top_items_are_written_in_one_way(cells: str) -> None:
    assert PublishSettings(k=2, cells=cells).cells == "top 7"


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("magic=1", "The vars are: scale"),
        ("seed", "takes VAR=VALUE"),
        ("seed=[", "not a value in YAML"),
        ("seed=-1", "seed is "),
        ("k=true", "k is "),
        ("scale=[5, 1]", "min less than max"),
        ("cells=top 0", "top N"),
        ("homogenize=nothing", "homogenize is one of "),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(assignment: str, told: str) -> None:
    with pytest.raises(InputError, match=told.replace("[", r"\[")):
        PublishSettings.from_options({"k": 5}, [assignment])


OF_PEOPLE = {"personal_columns": ["age"], "user_attributes": "users", "generalize": "ndgh", "method": "k_member"}
CONTRADICTIONS: list[tuple[dict, str]] = [
    ({"cells": "low_rank", "homogenize": "pure"}, "low_rank goes with homogenize predicted"),
    ({"method": "gaussian_noise"}, "--i-know-this-is-not-anonymous"),
    ({"homogenize": "noise"}, "go together only"),
    ({"homogenize": "none"}, "leave nothing to release"),
    ({"method": "bokg"}, "level_column"),
    ({"level_column": "level", "user_attributes": "users"}, "bokg or customized"),
    ({"personal_columns": ["age"]}, "user_attributes"),
    (
        {"personal_columns": ["age"], "user_attributes": "users"},
        "set generalize to ndgh or dgh, or personal to separate",
    ),
    (
        {"personal_columns": ["age"], "user_attributes": "users", "generalize": "ndgh", "personal": "as_is"},
        "rare ones single people out",
    ),
    ({"personal_recoding": {"age": {"step": 5}}}, "set personal_columns"),
    (OF_PEOPLE | {"personal_shared": ["age"]}, "set personal to separate"),
    (OF_PEOPLE | {"personal": "separate", "personal_shared": ["zip"]}, "not among personal_columns"),
    (
        OF_PEOPLE | {"personal": "separate", "personal_shared": ["age"], "generalize": "none", "method": "bkg"},
        "beside generalized artifacts",
    ),
    (OF_PEOPLE | {"method": "mdav", "categorical_artifacts": ["age"]}, "k_likeness, k_member or mondrian"),
    (OF_PEOPLE | {"categorical_artifacts": ["zip"]}, "name them in personal_columns"),
    (OF_PEOPLE | {"categorical_artifacts": ["age"], "personal": "separate"}, "in personal_shared, too"),
    ({"solver": "none"}, "learns nothing"),
    ({"solver": "none", "homogenize": "microaggregated"}, "metric filled"),
    ({"solver": "none", "homogenize": "microaggregated", "metric": "filled", "fill": "prediction"}, "fill prediction"),
    ({"method": "epsilon", "block_size": 100}, "block_size"),
    ({"sensitive_l": 2}, "sensitive_items or sensitive_columns"),
    ({"sensitive_l": 2, "sensitive_items": [1], "sensitive_c": 1}, "sensitive_c"),
    ({"sensitive_l": 2, "sensitive_items": [1], "sensitive_diversity": "recursive"}, "sensitive_c"),
    ({"diversity_l": 2, "cells": "low_rank"}, "diversity_l"),
    ({"diversity_b": 4}, "diversity_b"),
    ({"method_options": {"rounds": 3}}, "bkg has no option 'rounds'"),
    ({"method": "mdav", "method_options": {"leftovers": "lost"}}, "leftovers"),
    ({"generalize": "dgh", "hierarchy": [[[0, 2], [2, 5]], [[0, 5]]]}, "overlap"),
    ({"generalize": "dgh", "scale": [1, 10, 1]}, "no range covers"),
    ({"artifacts": 0}, "artifacts is "),
    ({"artifacts": []}, "artifacts is "),
]


@pytest.mark.parametrize(("settings", "told"), CONTRADICTIONS, ids=lambda part: part if isinstance(part, str) else None)
def test_settings_that_contradict_each_other_are_refused(settings: dict, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        validated(PublishSettings, {"k": 5, **settings})


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        PublishSettings(k=5).k = 1  # type: ignore[misc]
