"""What may be asked for on the command line is what the dbt project knows, with the same defaults."""

import pytest
import yaml
from pydantic import ValidationError

from kgather.dbt_package import dbt_path
from kgather.errors import InputError
from kgather.settings import PublishSettings

# What a dbt user says of the model; the command line's loaders find it out.
OF_THE_MODEL = {"ratings", "user_column", "item_column", "rating_column", "time_column", "item_id_type"}


def test_defaults_are_the_projects() -> None:
    project = yaml.safe_load((dbt_path() / "dbt_project.yml").read_text())["vars"]["kgather"]
    assert PublishSettings(k=5).dbt_vars() == {
        name: value for name, value in project.items() if name not in OF_THE_MODEL
    } | {"k": 5}


def test_assignments_are_yaml_and_beat_options() -> None:
    settings = PublishSettings.from_options(
        {"k": 5, "rank": 8, "metric": None}, ["rank=4", "solver=funk", "solver_options={epochs: 3}", "scale=[1, 5]"]
    )
    assert (settings.rank, settings.solver, settings.solver_options) == (4, "funk", {"epochs": 3})
    assert settings.scale == (1, 5)
    assert settings.metric == "prediction"


@pytest.mark.parametrize("cells", ["top 7", "top7", "top:7", "TOP=7"])
def test_top_items_are_written_in_one_way(cells: str) -> None:
    assert PublishSettings(k=2, cells=cells).cells == "top 7"


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("magic=1", "The vars are: k, method"),
        ("seed", "takes VAR=VALUE"),
        ("seed=[", "not a value in YAML"),
        ("seed=-1", "seed: "),
        ("k=true", "k: "),
        ("scale=[5, 1]", "MIN less than MAX"),
        ("cells=top 0", "top N"),
        ("homogenize=none", "homogenize: "),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(assignment: str, told: str) -> None:
    with pytest.raises(InputError, match=told.replace("[", r"\[")):
        PublishSettings.from_options({"k": 5}, [assignment])


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        PublishSettings(k=5).k = 1  # type: ignore[misc]
