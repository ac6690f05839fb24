"""The corpus of statements, as far as the text alone decides, and how much work that is."""

import statistics
from typing import Any

import pytest
from guard_data import OF_WHAT_IS_TOLD, Ask
from work import count_calls

from kgather._guard.plan import Local, Plan
from kgather._guard.refused import Refused

# Values for statements with parameters, which the corpus tells in words.
PARAMETERS = {"OK51": (5,)}


def outcome(ask: Ask, entry: dict[str, Any], sql: str) -> Plan | Local | Refused:
    try:
        return ask(sql, *PARAMETERS.get(entry["id"], ()))
    except Refused as error:
        return error


def steps(entry: dict[str, Any]) -> list[str]:
    """The statements of an entry. A sentence in English after a statement's last semicolon is none of it."""
    last = entry["steps"][-1].split(";\n")
    if len(last) == 2 and last[1].startswith("Run each one"):
        return [*entry["steps"][:-1], last[0] + ";"]
    return list(entry["steps"])


def test_every_statement_gets_its_verdict(ask: Ask, corpus: list[dict[str, Any]]) -> None:
    wrong = []
    for entry in corpus:
        outcomes = [outcome(ask, entry, sql) for sql in steps(entry)]
        passed = [not isinstance(one, Refused) for one in outcomes]
        if entry["verdict"] == "REFUSE-S" and all(passed) and entry["id"] not in OF_WHAT_IS_TOLD:
            wrong.append((entry["id"], "let pass"))
        if entry["verdict"] in ("ALLOW", "REWRITE") and not all(passed):
            wrong.append((entry["id"], [str(one) for one in outcomes if isinstance(one, Refused)]))
    assert wrong == []


@pytest.mark.parametrize("name", ["H01", "H07", "D01", "X07"])
def test_without_noise_it_is_refused(ask: Ask, corpus: list[dict[str, Any]], name: str) -> None:
    (sql,) = next(entry for entry in corpus if entry["id"] == name)["steps"]
    with pytest.raises(Refused) as refusal:
        ask(sql, mode="generalized")
    assert refusal.value.static


def test_refusals_say_what_and_quote_no_more_than_the_text(ask: Ask, corpus: list[dict[str, Any]]) -> None:
    for entry in corpus:
        for sql in steps(entry):
            found = outcome(ask, entry, sql)
            if isinstance(found, Refused):
                assert len(str(found)) < 400
                assert found.rule
                assert "999999" not in str(found)


def test_other_spelling_same_verdict(ask: Ask, corpus: list[dict[str, Any]]) -> None:
    for entry in corpus:
        for sql in steps(entry):
            shouted = sql if "'" in sql or '"' in sql or "$$" in sql else sql.upper()
            spaced = f"/* a */ {shouted} -- b"
            assert isinstance(outcome(ask, entry, sql), Refused) == isinstance(outcome(ask, entry, spaced), Refused), (
                sql
            )


def test_quick(ask: Ask, corpus: list[dict[str, Any]]) -> None:
    """A call takes about a microsecond: nothing is quadratic in the text."""
    work = [
        count_calls(lambda entry=entry, sql=sql: outcome(ask, entry, sql)) for entry in corpus for sql in steps(entry)
    ]
    assert statistics.median(work) < 20_000
    assert max(work) < 200_000


@pytest.mark.parametrize("name", ["OK07", "OK23", "OK25", "OK29", "OK31", "OK41", "OK53", "W07", "S25", "U07", "G05"])
def test_named_statements_have_plans(ask: Ask, corpus: list[dict[str, Any]], name: str) -> None:
    entry = next(entry for entry in corpus if entry["id"] == name)
    for sql in steps(entry):
        assert isinstance(outcome(ask, entry, sql), Plan)
