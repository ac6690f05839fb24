"""What the settings stand for is the same for dbt and for Python."""

import pytest
from dbt_macros import load_macros

from kgather._forms import forms
from kgather._methods import built_in
from kgather._settings.publication import PublishSettings


@pytest.mark.parametrize("method", built_in())
def test_methods_are_of_the_same_kind(method: str) -> None:
    macros = load_macros(method=method)
    record = built_in()[method]
    assert macros.gathers_on_artifacts() == (record.gathers_on == "artifacts")
    assert macros.has_levels() == record.levels
    assert macros.users_may_stand_alone() == (record.levels or not record.anonymous)


@pytest.mark.parametrize("method", built_in())
@pytest.mark.parametrize("homogenize", ["auto", *forms()])
@pytest.mark.parametrize("generalize", ["auto", "ndgh", "dgh", "none"])
def test_auto_stands_for_the_same(method: str, homogenize: str, generalize: str) -> None:
    macros = load_macros(method=method, homogenize=homogenize, generalize=generalize)
    # Not validated: what two settings say against each other is none of this test's business.
    settings = PublishSettings.model_construct(method=method, homogenize=homogenize, generalize=generalize)
    assert macros.homogenize() == settings.form
    assert macros.generalize() == settings.generalization
    assert macros.has_cells() == (settings.of_form.rows == "groups")
    assert macros.has_rows_of_users() == (settings.of_form.rows == "users")
