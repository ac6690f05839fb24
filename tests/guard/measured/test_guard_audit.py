"""`kgather guard audit`: true figures, said to be true, for the owner."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from guard_files import truth
from measured_guard import EXACT, change_data, kgather, ledger_of, opened, policy_in

from kgather._guard.catalog import catalog_of
from kgather._guard.measured.copies import undeclared
from kgather._guard.policy import Policy, load_policy

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(salary) AS m FROM ratings_wide GROUP BY city"
BY_ITEM = "SELECT item_id, COUNT(*) AS n FROM ratings GROUP BY item_id"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    policy = policy_in(tmp_path_factory.mktemp("audit"), prepare=["SELECT COUNT(*) FROM ratings_wide"])
    guard = opened(policy)
    for sql in (BY_CITY, BY_CITY, BY_ITEM):
        guard.query(sql)
    return policy


@pytest.fixture(scope="module")
def told(policy: Path) -> str:
    code, told = kgather("guard", "audit", "--policy", policy)
    assert code == 0
    return told


def test_the_first_line_warns(told: str) -> None:
    assert told.splitlines()[0].startswith("TRUE FIGURES of people follow, without protection.")


def test_what_comes_from_data_is_said_with_its_entry(told: str, policy: Path) -> None:
    (low, high), (most,) = (
        truth(policy.parent, sql)[0]
        for sql in (
            "select min(salary), max(salary) from ratings_wide",
            "select max(n) from (select count(*) as n from ratings group by user_id)",
        )
    )
    assert f"between {low} and {high}. Declare tables.ratings_wide.bounds: {{salary: [LOW, HIGH]}}" in told
    assert "the values of ratings_wide.city: rho " in told
    assert "4 there are, 3 were found. Declare tables.ratings_wide.values: {city: [...]}" in told
    assert f"have 5 at most, one has {most}. Declare tables.ratings.rows_per_person: 5, as kgather init guard" in told


def test_what_is_declared_is_not_said(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    tables = load_policy(policy).model_dump(mode="json")["tables"]
    text = policy.read_text()
    assert "  ratings_wide:\n" in text
    declared = "    values: {city: [Graz, Lyon, Ghent, Bergen]}\n    bounds: {salary: [0, 100000]}\n"
    policy.write_text(text.replace("  ratings_wide:\n", f"  ratings_wide:\n{declared}"))
    opened(policy).query(BY_CITY)
    _, told = kgather("guard", "audit", "--policy", policy)
    assert "Keys and bounds that come from data: none" in told
    assert tables["ratings_wide"]["values"] == {}


def test_what_several_measurements_found_out_is_said_once(tmp_path: Path) -> None:
    """A whole number's size and its ends are two measurements; a column may be asked for of people and of rows."""
    policy = policy_in(tmp_path)
    guard = opened(policy)
    guard.query("SELECT warcross, COUNT(*) AS n FROM ratings_wide GROUP BY warcross")
    guard.query("SELECT gender, COUNT(*) AS n FROM users GROUP BY gender")
    guard.query(
        "SELECT users.gender, COUNT(*) AS n FROM ratings JOIN users ON ratings.user_id = users.user_id GROUP BY 1"
    )
    _, told = kgather("guard", "audit", "--policy", policy)
    for what in ("between what ratings_wide.warcross lies: rho", "the values of users.gender: rho"):
        assert told.count(what) == 1, what
    kinds = {"magnitudes", "spread", "keys"}
    paid = sum(one.rho for one in ledger_of(policy).measurements() if one.kind in kinds and not one.about["rows"])
    paid += sum(one.rho for one in ledger_of(policy).measurements() if one.kind == "keys" and one.about["rows"])
    prices = re.findall(r"(?:between what|the values of) .*: rho ([0-9.]+);", told)
    assert sum(map(float, prices)) == pytest.approx(paid, abs=1e-5)


def test_values_of_dates_that_are_cut_are_not_advised(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    for cut in ("month", "year"):
        guard.query(f"SELECT DATE_TRUNC('{cut}', rated_at) AS at, COUNT(*) AS n FROM ratings GROUP BY 1")
    _, told = kgather("guard", "audit", "--policy", policy)
    (months,) = truth(tmp_path, "select count(distinct date_trunc('month', rated_at)) from ratings")[0]
    assert re.search(rf"the values of month of ratings\.rated_at: rho [0-9.]+; {months} there are, [0-9]+ were", told)
    assert told.count("Nothing can be declared for it: values are of columns as they are") == 2
    assert "rated_at: [...]" not in told


def test_what_is_computed_has_no_entry_to_declare(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    per_person = "SELECT user_id, COUNT(*) AS n FROM ratings WHERE rating >= 2 GROUP BY user_id"
    opened(policy).query(f"SELECT n, COUNT(*) AS people FROM ({per_person}) AS a GROUP BY n")
    _, told = kgather("guard", "audit", "--policy", policy)
    assert "the ends of number of rows of ratings where" in told
    assert "Nothing can be declared for it: values and bounds are of columns as they are." in told
    assert "tables.ratings.bounds" not in told


# What the policy says as the data do


def said(folder: Path, entries: str, *more: str) -> str:
    """What an audit says of entries of the table of wide ratings."""
    policy = policy_in(folder)
    for sql in more:
        change_data(policy, sql)
    policy.write_text(policy.read_text().replace("  ratings_wide:\n", f"  ratings_wide:\n{entries}"))
    code, told = kgather("guard", "audit", "--policy", policy)
    assert code == 0, told
    _, _, rest = told.partition("Entries of the policy that agree with the data: ")
    return rest


def test_bounds_that_are_ends_of_the_data(tmp_path: Path) -> None:
    low, high = truth(policy_in(tmp_path).parent, "select min(salary), max(salary) from ratings_wide")[0]
    told = said(tmp_path, f"    bounds: {{salary: [{low}, 100000000]}}\n")
    assert told.startswith("1\n  tables.ratings_wide.bounds: {salary: [")
    assert f"{low:g} is the smallest number that there is, of one person. If it was read from the data, write" in told
    assert "cannot be seen here" in told
    told = said(tmp_path, f"    bounds: {{salary: [-1, {high}]}}\n")
    assert f"{high:g} is the largest number that there is" in told
    assert "smallest" not in told


def test_bounds_and_rows_that_init_guard_proposes(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    assert kgather("init", "guard", tmp_path / "fixture.duckdb", "--out", tmp_path / "guard.yml")[0] == 0
    proposed = load_policy(tmp_path / "guard.yml").tables
    low, high = proposed["ratings_wide"].bounds["salary"]
    told = said(tmp_path, f"    bounds: {{salary: [{low}, {high}]}}\n")
    assert "kgather init guard proposes both from these data" in told
    policy.write_text(policy.read_text().replace("  ratings:\n", "  ratings:\n    rows_per_person: 5\n"))
    assert proposed["ratings"].rows_per_person == 5
    _, told = kgather("guard", "audit", "--policy", policy)
    assert "tables.ratings.rows_per_person: 5: the person with the most rows has as many; kgather init guard" in told


def test_values_that_are_those_of_the_data(tmp_path: Path) -> None:
    gone = "update ratings_wide set city = 'Ulm' where user_id = 1", "delete from ratings_wide where city is null"
    cities = [city for (city,) in truth(policy_in(tmp_path).parent, "select distinct city from ratings_wide")]
    every = ", ".join([*cities, "Ulm"])
    told = said(tmp_path, f"    values: {{city: [{every}]}}\n", *gone)
    assert f"{{city: [...]}}: they are all {len(cities) + 1} values that there are; " in told
    assert re.search(r"; [0-9]+ of them (is|are) of fewer than 5 people\.", told)
    (enough,) = truth(
        tmp_path, "select list(city) from (select city from ratings_wide group by 1 having count(*) >= 5)"
    )[0]
    told = said(tmp_path, f"    values: {{city: [{', '.join(enough)}]}}\n", *gone)
    assert f"they are those {len(enough)} of {len(cities) + 1} values that 5 people or more have." in told


def test_entries_that_do_not_agree_are_none(tmp_path: Path) -> None:
    more = "    values: {city: [Graz, Lyon, Ghent, Bergen, Oslo]}\n    bounds: {salary: [-7, 123456789]}\n"
    assert said(tmp_path, more).startswith("none\n")


def test_each_question_has_its_cost(told: str, policy: Path) -> None:
    measurements = ledger_of(policy).measurements()
    rho = sum(one.rho for one in measurements)
    prices = [float(price) for price in re.findall(r"answered, rho ([0-9.]+) for", told)]
    (others,) = re.findall(r"for no question of the log \(prepared, measured again, or stopped\): rho ([0-9.]+)", told)
    assert float(others) == pytest.approx(measurements[0].rho, abs=1e-6)
    assert sum(prices) + float(others) == pytest.approx(rho, abs=1e-5)
    assert told.count("analyst answered, free: SELECT city") == 1
    (of_analyst,) = re.findall(r"  analyst: 3 questions, rho ([0-9.]+)", told)
    assert float(of_analyst) == pytest.approx(sum(prices), abs=1e-5)


def test_errors_against_the_truth_by_hand(told: str, policy: Path) -> None:
    guard = opened(policy)
    answer = {row["city"]: row for row in guard.query(BY_CITY).to_pylist()}
    true = {
        city: (n, m)
        for city, n, m in truth(policy.parent, "select city, count(*), avg(salary) from ratings_wide group by 1")
    }
    off = sorted(abs(row["n"] - true[city][0]) / true[city][0] for city, row in answer.items())
    line = f"kg_block_1.value_1 (COUNT): 3 of 4 groups told, error {off[1]:.1%} (median), {off[2]:.1%} (largest)"
    assert line in told
    off = sorted(abs(row["m"] - true[city][1]) / true[city][1] for city, row in answer.items())
    assert f"(AVG): 3 of 4 groups told, error {off[1]:.1%} (median), {off[2]:.1%} (largest)" in told
    # The same answer is compared once.
    assert told.count("(AVG): 3 of 4") == 1


def test_changed_data_are_not_compared(policy: Path, tmp_path: Path) -> None:
    for name in ("fixture.duckdb", "ledger.sqlite", "audit.jsonl", "policy.yml"):
        (tmp_path / name).write_bytes((policy.parent / name).read_bytes())
    change_data(tmp_path / "policy.yml")
    _, told = kgather("guard", "audit", "--policy", tmp_path / "policy.yml")
    assert "The database was changed since: answers are not compared with it." in told
    assert "groups told" not in told
    assert kgather("ledger", "next", "--policy", tmp_path / "policy.yml")[0] == 0
    _, told = kgather("guard", "audit", "--policy", tmp_path / "policy.yml")
    assert told.count("not compared: it is about an earlier version of the data") >= 2


def test_a_log_of_another_name(policy: Path, tmp_path: Path) -> None:
    moved = tmp_path / "log.jsonl"
    first, *_ = (policy.parent / "audit.jsonl").read_text().splitlines(keepends=True)
    moved.write_text(first)
    _, told = kgather("guard", "audit", "--policy", policy, "--log", moved)
    assert "  analyst: 1 questions" in told
    code, told = kgather("guard", "audit", "--policy", policy, "--log", tmp_path / "none")
    assert (code, "there is no such file" in told) == (2, True)


def test_before_anything_was_asked(tmp_path: Path) -> None:
    code, told = kgather("guard", "audit", "--policy", policy_in(tmp_path))
    assert code == 0
    assert told.splitlines()[0].startswith("TRUE FIGURES")
    assert told.endswith("does not exist yet: nothing was told.\n")
    assert not (tmp_path / "ledger.sqlite").exists()


def test_of_another_mode(tmp_path: Path) -> None:
    code, told = kgather("guard", "audit", "--policy", policy_in(tmp_path, **EXACT))
    assert (code, told.startswith("the policy has mode exact")) == (2, True)


# Copies


def found(folder: Path, sql: str, **tables: dict[str, Any]) -> list[tuple[str, str]]:
    """The undeclared copies after a change of database and policy."""
    policy = policy_in(folder)
    change_data(policy, sql)
    entries = load_policy(policy).model_dump(exclude_defaults=True)
    entries["tables"] = {name: {**entry, **tables.get(name, {})} for name, entry in entries["tables"].items()}
    with duckdb.connect(folder / "fixture.duckdb", read_only=True) as con:
        copies = undeclared(con, catalog_of(con, Policy.model_validate(entries)))
    return [(copy.first, copy.second) for copy in copies]


def test_declared_copies_are_none(tmp_path: Path) -> None:
    assert found(tmp_path, "select 1") == []


def test_a_copy_without_same_as(tmp_path: Path) -> None:
    assert found(tmp_path, "select 1", users={"same_as": {}}) == [("ratings_wide.age", "users.age")]


def test_a_copy_of_another_role_is_told_to_get_the_same(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    entries = yaml.safe_load(policy.read_text())
    users = entries["tables"]["users"]
    users |= {"artifacts": users.pop("measures"), "same_as": {}}
    policy.write_text(yaml.safe_dump(entries))
    _, told = kgather("guard", "audit", "--policy", policy)
    assert "declare tables.users.same_as: {age: ratings_wide.age}, and give both one role" in told


def test_a_copy_that_differs_in_one_person_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, "update users set age = 99 where user_id = 20", users={"same_as": {}}) == []


def test_a_pivot_without_its_entry(tmp_path: Path) -> None:
    unique = {"unique": "item_id", "grain": "rows"}
    pairs = found(tmp_path, "select 1", ratings_wide={"pivot_of": None}, ratings=unique)
    assert pairs[0] == ("ratings_wide.warcross", "ratings.rating where item_id is 1")
    assert len(pairs) == 5


def test_a_pivot_of_which_one_name_is_missing(tmp_path: Path) -> None:
    names = {1: "warcross", 2: "joy_ride", 3: "egomaniac", 4: "pachinko"}
    pivot = {"table": "ratings", "key": "item_id", "value": "rating", "names": names}
    pairs = found(tmp_path, "select 1", ratings_wide={"pivot_of": pivot})
    assert pairs == [("ratings_wide.geekerella", "ratings.rating where item_id is 5")]


def test_a_value_that_each_row_repeats(tmp_path: Path) -> None:
    more = (
        "alter table ratings add column home varchar;"
        "update ratings set home = (select city from ratings_wide w where w.user_id = ratings.user_id)"
    )
    pairs = found(tmp_path, more, ratings={"dimensions": ("home",)})
    assert pairs == [("ratings_wide.city", "ratings.home")]


def test_two_columns_of_one_table(tmp_path: Path) -> None:
    """One is to be hidden, as same_as is of another table: one that no other entry names."""
    more = "alter table users add column years integer; update users set years = age"
    assert found(tmp_path, more, users={"measures": ("age", "years")})[0] == ("users.age", "users.years")
    policy = policy_in(tmp_path)
    change_data(policy, more)
    entries = yaml.safe_load(policy.read_text())
    entries["tables"]["users"]["measures"] = ["years", "age"]
    policy.write_text(yaml.safe_dump(entries))
    _, told = kgather("guard", "audit", "--policy", policy)
    advice = "declare tables.users.hidden: [years], and ask for users.age (same_as is for columns of other tables)"
    assert advice in told


def test_two_columns_of_a_long_table_that_differ_in_one_row_are_no_copy(tmp_path: Path) -> None:
    more = "alter table ratings add column stars integer; update ratings set stars = rating"
    artifacts = {"artifacts": ("item_id", "rating", "stars")}
    assert found(tmp_path, more, ratings=artifacts) == [("ratings.rating", "ratings.stars")]
    other = f"{more}; update ratings set stars = 9 where rowid = 3"
    assert found(tmp_path, other, ratings=artifacts) == []
