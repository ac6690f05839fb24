"""Shares of principals: nobody spends more than a share, all together no more than the budget, and what one has
measured is free to the others."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from measured_guard import kgather, ledger_of, logged, opened, policy_in

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.measured.spending import by_principal, left_of, shares_of, spenders
from kgather._guard.policy import Policy, load_policy
from kgather._guard.refused import BUDGET, Refused

_FILMS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")
QUESTIONS = [
    f"SELECT COUNT(*) AS n FROM ratings_wide WHERE {' OR '.join(f'{film} >= {least}' for film in films)}"
    for films in combinations(_FILMS, 4)
    for least in (2, 3, 4, 5)
]
"""Each is one measurement, from the reserve."""
PAIRS = [
    f"SELECT {one}, {other}, COUNT(*) AS n FROM ratings_wide GROUP BY 1, 2" for one, other in combinations(_FILMS, 2)
]


def _policy(folder: Path, **shares: float | None) -> Path:
    principals = {name: {} if share is None else {"share": share} for name, share in shares.items()}
    return policy_in(folder, principals=principals, budget={"epsilon": 50.0, "delta": 1e-6})


def _asked(guard: Guard, principal: str, questions: list[str] = QUESTIONS) -> list[str]:
    """The reasons of questions that the budget does not pay for."""
    reasons = []
    for sql in questions:
        try:
            guard.query(sql, principal=principal)
        except Refused as refusal:
            if refusal.code == BUDGET:
                reasons.append(refusal.reason)
    return reasons


def _spent(policy: Path) -> dict[str, float]:
    return by_principal(ledger_of(policy).measurements())


def test_a_principal_spends_no_more_than_a_share(tmp_path: Path) -> None:
    policy = _policy(tmp_path, one=0.05, other=0.95)
    guard = opened(policy)
    reasons = _asked(guard, "one", [*QUESTIONS, *PAIRS])
    total = guard.spending.total  # type: ignore[union-attr]
    spent = _spent(policy)
    assert 0 < spent["one"] <= 0.05 * total * (1 + 1e-9)
    assert reasons
    assert all("your share (0.05)" in reason for reason in reasons)
    # What another one pays for is answered to both.
    assert _asked(guard, "other", PAIRS) == []
    measured = len(ledger_of(policy).measurements())
    assert _asked(guard, "one", PAIRS) == []
    assert len(ledger_of(policy).measurements()) == measured
    by_status = "SELECT marital_status, COUNT(*) AS n FROM ratings_wide GROUP BY 1"
    (reason,) = _asked(guard, "one", [by_status])
    assert "Still answered is what was measured: counts by pairs: ratings_wide." in reason


def test_those_without_a_share_have_together_what_shares_leave(tmp_path: Path) -> None:
    policy = _policy(tmp_path, one=0.97, other=None, third=None)
    guard = opened(policy)
    half = len(QUESTIONS) // 2
    _asked(guard, "other", QUESTIONS[:half])
    _asked(guard, "third", QUESTIONS[half:])
    spent, total = _spent(policy), guard.spending.total  # type: ignore[union-attr]
    assert spent["other"] > 0
    assert spent["other"] + spent.get("third", 0.0) <= 0.03 * total * (1 + 1e-9)


def test_what_is_prepared_is_nobodys_and_taken_off_first(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, principals={"one": {"share": 0.5}, "other": {"share": 0.5}}, prepare=QUESTIONS[:1])
    guard = opened(policy)
    spent, total = _spent(policy), guard.spending.total  # type: ignore[union-attr]
    assert set(spent) == {""}
    found = {one.principal: one for one in spenders(guard.policy, total, spent)}
    assert found["one"].most == pytest.approx(0.5 * (total - spent[""]))
    assert found["one"].left == found["one"].most
    assert sum(one.most or 0.0 for one in found.values()) + spent[""] == pytest.approx(total)


def test_an_answer_says_how_much_of_a_share_is_spent(tmp_path: Path) -> None:
    policy = _policy(tmp_path, one=0.02, other=0.5)
    guard = opened(policy)
    answers = []
    for sql in QUESTIONS:
        try:
            answers.append(guard.answer(sql, principal="one"))
        except Refused:
            continue
    shares = [answer.of_share for answer in answers if answer.of_share is not None]
    assert shares == sorted(shares)
    assert 0.8 < shares[-1] <= 1 + 1e-9
    assert any("of your share of the budget is spent" in note for answer in answers for note in answer.notes)
    assert guard.answer(QUESTIONS[0], principal="other").of_share == 0


def test_the_ledger_and_the_log_say_who_spent_what(tmp_path: Path) -> None:
    policy = _policy(tmp_path, one=0.25, other=None)
    guard = opened(policy)
    guard.query(QUESTIONS[0], principal="one")
    guard.query(PAIRS[0], principal="other")
    code, text = kgather("ledger", "show", "--policy", policy, "--json")
    assert code == 0
    told = {one["principal"]: one for one in json.loads(text)["spenders"]}
    assert told["one"]["spent"] == pytest.approx(_spent(policy)["one"])
    assert told["one"]["share"] == 0.25
    assert told["other"]["share"] is None
    assert {charge["principal"] for charge in json.loads(text)["charges"]} >= {"one", "other"}
    code, text = kgather("ledger", "show", "--policy", policy)
    assert "principal" in text
    assert "0.25" in text
    charged = {charge["principal"] for entry in logged(policy) for charge in entry["measured"] if "principal" in charge}
    assert charged == {"one", "other"}


def test_a_lost_measurement_stays_its_principals_charge(tmp_path: Path) -> None:
    policy = _policy(tmp_path, one=0.25, other=None)
    guard = opened(policy)
    guard.query(PAIRS[0], principal="other")
    assert kgather("ledger", "backup", "--policy", policy, "--out", tmp_path / "copy")[0] == 0
    guard.query(QUESTIONS[0], principal="one")
    before = _spent(policy)
    assert kgather("ledger", "restore", tmp_path / "copy", "--policy", policy)[0] == 0
    assert _spent(policy) == pytest.approx(before)


def test_a_refusal_of_a_share_is_given_again_from_the_ledger(tmp_path: Path) -> None:
    policy = _policy(tmp_path, one=0.01, other=0.5)
    assert _asked(opened(policy), "one")
    code, text = kgather("ledger", "replay", "--policy", policy, "--json")
    assert code == 0
    assert json.loads(text)["disagrees"] == 0


@pytest.mark.parametrize(
    ("principals", "mode", "told"),
    [
        ({"a": {"share": 0.6}, "b": {"share": 0.5}}, "measured", "shares add up to 1 at most, and these are 0.6 + 0.5"),
        ({"a": {"share": 0.5}}, "generalized", "a share is of the budget, and mode generalized has none"),
        ({"a": {"share": 0}}, "measured", "has to be a number, more than 0"),
        ({"a": {"share": 1.5}}, "measured", "has to be a number, 1 or less"),
    ],
)
def test_shares_that_cannot_be_are_refused(tmp_path: Path, principals: dict, mode: str, told: str) -> None:
    changes = {"mode": mode, "budget": None} if mode != "measured" else {}
    with pytest.raises(InputError, match=re.escape(told)):
        load_policy(policy_in(tmp_path, principals=principals, **changes))


def test_no_shares_bound_nobody() -> None:
    policy = Policy(
        version=1,
        database=Path("a.duckdb"),
        k=2,
        tables={"t": {"privacy_unit": "u"}},  # type: ignore[dict-item]
        principals={"a": {}},  # type: ignore[dict-item]
    )
    assert shares_of(policy) == {}
    assert left_of(policy, 1.0, [], "a") == float("inf")
