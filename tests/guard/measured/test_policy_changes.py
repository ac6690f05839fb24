"""What a changed policy costs over the same ledger: what depends on the change is measured anew, and paid for again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from measured_guard import opened, policy_in

from kgather._guard.guard import Guard
from kgather._guard.measured.terms import read, written

OF_PEOPLE = "SELECT COUNT(*) FROM ratings_wide WHERE warcross >= 3"
OF_ONE_ITEM = "SELECT COUNT(*) FROM ratings WHERE item_id = 1 AND rating >= 3"
OF_ROWS = "SELECT AVG(rating) FROM ratings"
OF_SALARIES = "SELECT AVG(salary) FROM ratings_wide"
OF_CITIES = "SELECT city, COUNT(*) FROM ratings_wide GROUP BY city"
ALL = (OF_PEOPLE, OF_ONE_ITEM, OF_ROWS, OF_SALARIES, OF_CITIES)
Tables = dict[str, dict[str, Any]]


def _rows_per_person(tables: Tables) -> None:
    tables["ratings"]["rows_per_person"] = 3


def _bounds(tables: Tables) -> None:
    tables["ratings_wide"]["bounds"] = {"salary": [0, 100_000]}


def _values(tables: Tables) -> None:
    tables["ratings_wide"]["values"] = {"city": ["Graz", "Lyon", "Ghent", "Bergen"]}


def _no_pivot(tables: Tables) -> None:
    tables["ratings_wide"] |= {"grain": "unit"}
    tables["ratings_wide"].pop("pivot_of")
    tables["ratings"] |= {"grain": "rows", "unique": "item_id"}


def _unique(tables: Tables) -> None:
    _no_pivot(tables)
    tables["ratings"].pop("unique")


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (_rows_per_person, {OF_ROWS}),
        (_bounds, {OF_SALARIES}),
        (_values, {OF_CITIES}),
        (_no_pivot, {OF_ONE_ITEM}),
        (_unique, {OF_ONE_ITEM}),
    ],
)
def test_what_depends_on_the_change_is_paid_for_again(
    tmp_path: Path, change: Callable[[Tables], None], again: set[str]
) -> None:
    policy = policy_in(tmp_path)
    as_it_was = policy.read_text(encoding="utf-8")
    assert _paid(opened(policy))
    assert not _paid(opened(policy))
    entries = yaml.safe_load(as_it_was)
    change(entries["tables"])
    policy.write_text(yaml.safe_dump(entries), encoding="utf-8")
    guard = opened(policy)
    assert {sql for sql in ALL if "-- measures" in guard.explain(sql, cost=True)} == again
    assert _paid(guard) == again
    policy.write_text(as_it_was, encoding="utf-8")
    assert not _paid(opened(policy)), "what was measured before is used again"


def _paid(guard: Guard) -> set[str]:
    """The questions whose answers charge the ledger."""
    found = set()
    for sql in ALL:
        before = guard.spending
        guard.query(sql)
        if guard.spending != before:
            found.add(sql)
    return found


def test_terms_of_before_are_read_though_such_a_policy_is_refused_now(tmp_path: Path) -> None:
    catalog = opened(policy_in(tmp_path)).catalog
    kept = json.loads(written(catalog))
    entries = yaml.safe_load(kept["policy"]) | {"round": 2, "match": "any"}
    kept["policy"] = yaml.safe_dump(entries, sort_keys=False)
    assert read(json.dumps(kept)).policy.aggregates == catalog.policy.aggregates
