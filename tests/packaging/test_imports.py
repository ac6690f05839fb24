"""Every module can be imported, with whichever versions of the dependencies are installed."""

import importlib
import pkgutil
import warnings

import pytest

import kgather

# dbt runs the Python models; they are no modules of the package.
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(kgather.__path__, "kgather.")
    if not module.name.startswith("kgather.dbt")
)


@pytest.mark.parametrize("name", MODULES)
def test_it_can_be_imported(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of others: their lowest versions warn of what is old by now
        importlib.import_module(name)
