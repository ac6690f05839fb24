"""What the vars stand for is said twice, for dbt and for Python: both must say the same."""

from typing import get_args

import pytest
from dbt_macros import load_macros

from kgather._settings.methods import BY_LEVEL, ON_ARTIFACTS, Method
from kgather._settings.publication import PublishSettings

FORMS = get_args(PublishSettings.model_fields["homogenize"].annotation)
GENERALIZATIONS = get_args(PublishSettings.model_fields["generalize"].annotation)


@pytest.mark.parametrize("method", get_args(Method))
def test_methods_are_of_the_same_kind(method: str) -> None:
    macros = load_macros("hooks/choices.sql", method=method)
    assert macros.gathers_on_artifacts() == (method in ON_ARTIFACTS)
    assert macros.has_levels() == (method in BY_LEVEL)


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("homogenize", FORMS)
@pytest.mark.parametrize("generalize", GENERALIZATIONS)
def test_auto_stands_for_the_same(method: str, homogenize: str, generalize: str) -> None:
    macros = load_macros("hooks/choices.sql", method=method, homogenize=homogenize, generalize=generalize)
    # Not validated: what two settings say against each other is none of this test's business.
    settings = PublishSettings.model_construct(method=method, homogenize=homogenize, generalize=generalize)
    assert macros.homogenize() == settings.form
    assert macros.generalize() == settings.generalization
