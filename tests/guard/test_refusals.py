"""Every place where the guard refuses is there for something: a case reaches it, and fares otherwise without it."""

from collections.abc import Mapping

import pytest
from refusal_cases import Case, World, beside_fixtures, cases
from refusal_sites import Site, recorded, sites, without

from kgather._guard.catalog import Catalog


@pytest.fixture(scope="module")
def world(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(catalog, tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def reached(world: World) -> Mapping[Site, list[Case]]:
    """The cases that reach each place."""
    found: dict[Site, list[Case]] = {site: [] for site in sites()}
    for case in cases():
        with recorded() as places:
            case.refused(world)
        for site, by in found.items():
            if site in places:
                by.append(case)
    return found


@pytest.mark.parametrize("case", beside_fixtures(), ids=lambda case: case.name)
def test_refused(world: World, case: Case) -> None:
    """Those of the fixtures are looked at with their rules."""
    assert case.refused(world)


def test_every_refusal_has_a_case(reached: Mapping[Site, list[Case]]) -> None:
    """A fixture for it belongs into fixtures/guard; what none can state, into refusal_cases.py. A refusal that nothing
    can reach is to be removed, or to be an assertion that says why."""
    assert [str(site) for site, by in reached.items() if not by] == []


def test_without_a_refusal_something_is_not_refused(world: World, reached: Mapping[Site, list[Case]]) -> None:
    """Something that it refuses is then answered, or refused for another reason."""
    needless = []
    for site, by in reached.items():
        with without(site):
            if all(case.refused(world) for case in by):
                needless.append(str(site))
    assert needless == []
