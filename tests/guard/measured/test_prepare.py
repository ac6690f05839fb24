"""What a policy has measured first: a wrong entry is an error of the policy, found before anything is measured."""

from pathlib import Path

import pytest
from measured_guard import kgather, ledger_of, opened, policy_in

from kgather._errors import InputError

GOOD = "SELECT city, COUNT(*) FROM ratings_wide GROUP BY city"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELEC COUNT(*) FROM users", "SELEC is no statement that the guard answers"),
        ("SELECT COUNT(* FROM users", "This is no statement that the guard can read"),
        ("SELECT COUNT(*) FROM users WHERE shoe_size = 3", "There is no column 'shoe_size'"),
        ("SELECT COUNT(*) FROM people", "There is no table 'people'"),
        ("SELECT zip, COUNT(*) FROM users GROUP BY zip", "users.zip is hidden"),
        ("SELECT city FROM ratings_wide", "The result would be rows of people"),
        ("SELECT MAX(salary) FROM ratings_wide", "MAX over rows of people"),
        ("SELECT COUNT(*) FROM users WHERE age = ?", "The statement takes 1 parameters"),
        ("SELECT COUNT(*) FROM ratings_wide WHERE warcross = CAST('9e999' AS INTEGER)", ""),
        ("SHOW TABLES", "It asks nothing about people"),
        ("SELECT COUNT(*) FROM items", "It asks nothing about people"),
        ("SELECT 1", "It asks nothing about people"),
    ],
)
def test_a_wrong_entry_is_an_error_of_the_policy(tmp_path: Path, sql: str, why: str) -> None:
    policy = policy_in(tmp_path, prepare=[GOOD, sql])
    line = next(at for at, text in enumerate(policy.read_text().splitlines(), 1) if text.startswith("prepare:")) + 2
    told = f"{policy}:{line}: prepare.1: this question cannot be prepared. {why}"
    with pytest.raises(InputError) as error:
        opened(policy)
    assert str(error.value).startswith(told)
    assert ledger_of(policy).measurements() == [], "the entry before it was measured"
    code, said = kgather("query", "--policy", policy, GOOD)
    assert code == 2
    assert why in said


def test_it_is_told_even_if_all_was_prepared_before(tmp_path: Path) -> None:
    opened(policy_in(tmp_path, prepare=[GOOD]))
    with pytest.raises(InputError, match=r"prepare\.0"):
        opened(policy_in(tmp_path, prepare=["SELECT nothing FROM users"]))


def test_what_is_not_paid_for_or_about_too_few_stops_nothing(tmp_path: Path) -> None:
    few = "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 77 AND joy_ride = 78"
    four = (
        "SELECT COUNT(*) FROM ratings_wide WHERE warcross = {0} AND joy_ride = {1} AND egomaniac = 1 AND pachinko = 1"
    )
    wide = [four.format(at % 5 + 1, at // 5 + 1) for at in range(25)]
    guard = opened(policy_in(tmp_path, prepare=[few, *wide, GOOD], budget={"epsilon": 0.2, "delta": 1e-6}))
    assert guard.spending is not None
    assert guard.spending.measurements > 0
