"""Every rule has a fixture of what it lets pass and one of what it refuses; what passes means what the engine means."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from guard_data import Ask, Refusal, Unguarded, refusals, rows_of, said, statements

from kgather._guard.plan import Local
from kgather._guard.refused import Refused, Rule

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "guard"
ALLOWED = sorted(path for path in FIXTURES.glob("*.sql") if not path.stem.endswith("__refused"))
REFUSED = sorted(FIXTURES.glob("*__refused.sql"))
WITHOUT_FIXTURES = {Rule.LIMITS, Rule.PARAMETERS, Rule.WITNESS, Rule.TOO_FEW, Rule.BUDGET}


def cases(paths: list[Path]) -> list[Any]:
    found = []
    for path in paths:
        for at, sql in enumerate(statements(path), 1):
            found.append(pytest.param(path.stem, sql, id=f"{path.stem}-{at}"))
    return found


def refused() -> list[Any]:
    return [
        pytest.param(refusal, id=f"{path.stem}-{at}")
        for path in REFUSED
        for at, refusal in enumerate(refusals(path), 1)
    ]


def test_every_rule_has_its_pair() -> None:
    names = {rule.value for rule in Rule if rule not in WITHOUT_FIXTURES}
    assert {path.stem for path in ALLOWED} == names
    assert {path.stem.removesuffix("__refused") for path in REFUSED} == names


@pytest.mark.parametrize("refusal", refused())
def test_refused(ask: Ask, refusal: Refusal) -> None:
    with pytest.raises(Refused) as caught:
        ask(refusal.sql, **refusal.changes)
    assert caught.value.rule == refusal.rule
    assert said(caught.value).startswith(refusal.reason)
    assert caught.value.static
    assert len(caught.value.code) == 5
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("rule", "sql"), cases(ALLOWED))
def test_allowed_means_what_the_engine_means(
    ask: Ask,
    database: duckdb.DuckDBPyConnection,
    turned: duckdb.DuckDBPyConnection,
    unguarded: Unguarded,
    rule: str,
    sql: str,
) -> None:
    made = ask(sql)
    if isinstance(made, Local):
        assert rule == "statement"
        return
    expected = database.cursor().execute(sql)
    names = [column[0] for column in expected.description]
    wanted = expected.fetchall()
    assert rows_of(turned.cursor().execute(sql).fetchall()) == rows_of(wanted), "depends on the order of rows"
    assert rows_of(unguarded.answer(made)) == rows_of(wanted)
    if all(name.isidentifier() for name in names):
        assert list(made.names) == names
