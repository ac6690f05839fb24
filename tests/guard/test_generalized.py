"""Mode generalized: classes of people who look alike, by numbers, texts and dates, asked about by their sets."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from duck import insert

from kgather._errors import InputError
from kgather._guard.refused import Rule
from kgather.guard import Guard, Refused

POLICY = """
version: 1
database: people.duckdb
k: 3
mode: generalized
tables:
  people: {privacy_unit: person, artifacts: [town, film, day, town_id], measures: [pay]}
  visits: {privacy_unit: person, artifacts: [place]}
  towns: {public: true}
joins: [people.person = visits.person, people.town_id = towns.town_id]
principals: {analyst: {}}
"""
TOWNS = ("Ävila", "Bergen", "Ghent")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute(
            "create table people (person integer, town varchar, film integer, day date, town_id integer, pay double)"
        )
        # Four times three people who differ by town only; those of the last have none.
        towns = enumerate((*TOWNS, None))
        rows = [[3 * at + of, town, 1, "2024-01-01", 1, 10.0 * at] for at, town in towns for of in range(3)]
        insert(con, "people", rows)
        con.execute("create table visits (person integer, place integer)")
        insert(con, "visits", [(0, 1), (0, 2), (4, 1)])
        con.execute("create table towns as select 1 as town_id, 'here' as region")
    (tmp_path / "guard.yml").write_text(POLICY, encoding="utf-8")
    return tmp_path


@pytest.fixture
def guard(folder: Path) -> Guard:
    return Guard.from_policy(folder / "guard.yml")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"k: 3": "k: 13"}, "guard.yml:4: k: mode generalized makes classes of at least k people, and the database"),
        (
            {
                "[town, film, day, town_id]": "[day]",
                "joins: [people.person = visits.person, people.town_id =": "joins: [",
            }
            | {" towns.town_id]": "people.person = visits.person]"},
            "guard.yml:5: mode: mode generalized gathers people by their artifacts in tables with one row a person",
        ),
    ],
    ids=["too few people", "nothing to gather by"],
)
def test_what_cannot_be_gathered_is_wrong_input(folder: Path, changes: dict[str, str], told: str) -> None:
    text = POLICY
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    with duckdb.connect(folder / "people.duckdb") as con:
        con.execute("alter table people alter day set data type integer[] using [1]")
    (folder / "guard.yml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        Guard.from_policy(folder / "guard.yml")
    assert told in str(error.value)
    assert error.value.exit_code == 2


def _count(guard: Guard, where: str) -> int:
    return guard.query(f"select count(*) as n from people where {where}").to_pylist()[0]["n"]


def test_people_are_gathered_by_texts_and_conditions_ask_about_texts(guard: Guard) -> None:
    for at, town in enumerate(TOWNS):
        [row] = guard.query(f"select count(*) as n, avg(pay) as a from people where town = '{town}'").to_pylist()
        assert row == {"n": 3, "a": pytest.approx(10.0 * at)}
    assert _count(guard, "town is null") == 3
    assert _count(guard, "town in ('Bergen', 'Ghent')") == 6
    assert _count(guard, "town > 'Bergen'") == 6


def test_how_far_texts_are_apart_in_their_order_does_not_count(folder: Path) -> None:
    """Of a, b and f, b is no nearer to a than f is: the film decides."""
    with duckdb.connect(folder / "people.duckdb") as con:
        con.execute("delete from people; delete from visits")
        rows = [
            [at, text, film, "2024-01-01", 1, 0] for at, (text, film) in enumerate([*[("a", 1)] * 2, *[("b", 3)] * 3])
        ]
        rows += [[10 + at, text, 9, "2024-01-01", 1, 0] for at, text in enumerate("cde")]
        insert(con, "people", [*rows, [20, "f", 2, "2024-01-01", 1, 0]])
    guard = Guard.from_policy(folder / "guard.yml")
    assert _count(guard, "town = 'f'") == _count(guard, "town in ('a', 'f')") == 3


def test_people_are_gathered_by_dates(folder: Path) -> None:
    with duckdb.connect(folder / "people.duckdb") as con:
        con.execute("update people set town = 'Ghent', day = day + cast(person % 2 as integer)")
    guard = Guard.from_policy(folder / "guard.yml")
    assert _count(guard, "day = date '2024-01-01'") == _count(guard, "day = date '2024-01-02'") == 6


@pytest.mark.parametrize("match", ["any", "all", "expected"])
def test_a_class_of_two_texts_counts_as_the_policy_says(folder: Path, match: str) -> None:
    with duckdb.connect(folder / "people.duckdb") as con:
        con.execute("delete from people where person > 3; delete from visits where person > 3")
    (folder / "guard.yml").write_text(POLICY.replace("k: 3", f"k: 4\nmatch: {match}"), encoding="utf-8")
    guard = Guard.from_policy(folder / "guard.yml")
    if match == "all":
        with pytest.raises(Refused):
            _count(guard, "town = 'Bergen'")
    else:
        assert _count(guard, "town = 'Bergen'") == {"any": 4, "expected": 2}[match]
    assert _count(guard, "town > 'A'") == 4


def test_classes_are_the_same_whatever_the_texts_are_called(folder: Path) -> None:
    """Texts are codes in their order: other texts in the same order make the same classes."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 6, 60).tolist()
    told = []
    for names in ("abcdef", "BDFHJL"):
        with duckdb.connect(folder / "people.duckdb") as con:
            con.execute("delete from people")
            insert(con, "people", [[at, names[code], 1, "2024-01-01", 1, 1.0] for at, code in enumerate(codes)])
        for file in folder.glob("ledger*"):
            file.unlink()
        guard = Guard.from_policy(folder / "guard.yml")
        told.append([_count(guard, f"town = '{name}'") for name in names])
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("where exists (select 1 from visits v where v.person = p.person and place = 1)", "rows of a long table"),
        ("where not exists (select 1 from visits v where v.person = p.person and place = 1)", "rows of a long table"),
        ("join towns t using (town_id) where t.region = 'here'", "columns of public tables"),
        ("where film = town_id", "a condition on several columns at once"),
        ("where film = 1 group by film", "groups"),
    ],
)
def test_what_sets_cannot_answer_is_refused_by_the_text(guard: Guard, sql: str, what: str) -> None:
    with pytest.raises(Refused, match=f"not about {what}") as refusal:
        guard.query(f"select count(*) from people p {sql}")
    assert (refusal.value.rule, refusal.value.static) == (Rule.CONDITIONS, True)


def test_an_answer_about_classes_warns_of_nothing(guard: Guard) -> None:
    assert guard.answer("select count(*) from people").warning is None
