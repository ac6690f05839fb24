"""What is said of wrong policies: our sentences, with file, line and entry, whatever is wrong with them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from kgather._errors import InputError
from kgather._guard.catalog import Catalog
from kgather._guard.guard import Guard
from kgather._guard.policy import Policy, parse_policy
from kgather._guard.policy_errors import Written, near

FULL: dict[str, Any] = {
    "version": 1,
    "database": "people.duckdb",
    "ledger": "ledger.sqlite",
    "audit_log": "audit.jsonl",
    "k": 3,
    "mode": "measured",
    "budget": {"epsilon": 8, "delta": 1e-6},
    "prepare": ["SELECT COUNT(*) FROM people"],
    "match": "any",
    "tables": {
        "people": {
            "public": False,
            "privacy_unit": "id",
            "grain": "unit",
            "artifacts": ["a", "b"],
            "measures": ["m"],
            "dimensions": ["d"],
            "hidden": ["h"],
            "coarsened": {"born": "year"},
            "values": {"d": ["x", "y"]},
            "bounds": {"m": [0, 10]},
            "same_as": {"m": "visits.m"},
            "pivot_of": {"table": "visits", "key": "place", "value": "stars", "names": {1: "a"}},
        },
        "visits": {"privacy_unit": "id", "artifacts": ["place", "stars"], "unique": "place", "rows_per_person": 9},
    },
    "joins": ["people.id = visits.id"],
    "aggregates": ["COUNT", "SUM"],
    "margins": True,
    "diversity": {"l": 2, "columns": ["people.m"]},
    "round": 2,
    "limits": {"time_ms": 5, "memory": "1GB", "statement_bytes": 9, "depth": 9},
    "principals": {"ann": {"time_ms": 5, "memory": "1GB", "statement_bytes": 9, "depth": 9}},
}
"""Every entry that there is; not all of them go together."""
SECRET = "hunter2"
VALUES = (
    None,
    SECRET,
    "",
    "1",
    True,
    -3,
    0,
    2.5,
    10**30,
    float("nan"),
    float("inf"),
    [],
    [[1]],
    [SECRET, 1],
    {},
    {1: 2},
    {SECRET: None},
    [{}],
    [None],
)
PYDANTIC = re.compile(
    r"Input|Extra inputs|Value error|Assertion|Field required|Keys should|should be|should have|unable to|pydantic"
    r"|valid (?:string|integer|number|boolean|list|tuple|dictionary|date)|instance of|String|Unable|as it is written"
)


def paths(of: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every entry."""
    if path:
        yield path
    inner = of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list) else ()
    for key, value in inner:
        yield from paths(value, (*path, key))


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The entries with another value in a place."""
    made: dict[str, Any] = yaml.safe_load(yaml.safe_dump(FULL))
    inner: Any = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def error_of(text: str) -> str | None:
    try:
        parse_policy(text, "p.yml")
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("path", list(paths(FULL)), ids=lambda path: ".".join(map(str, path)))
def test_no_sentence_of_the_library_passes_through(path: tuple[Any, ...]) -> None:
    for value in VALUES:
        told = error_of(yaml.safe_dump(changed(path, value)))
        assert told is not None, "not all of these entries go together"
        for line in told.splitlines():
            assert not PYDANTIC.search(line), (value, line)
            assert re.match(r"p\.yml:[0-9]+: ", line), line
            assert line.endswith((".", "?")), line


@pytest.mark.parametrize("path", list(paths(FULL)), ids=lambda path: ".".join(map(str, path)))
def test_an_entry_too_many_is_told_by_name(path: tuple[Any, ...]) -> None:
    told = error_of(yaml.safe_dump(changed((*path[:-1], "kg_unheard_of"), 1))) if isinstance(path[-1], str) else None
    if told is not None and not {"coarsened", "values", "bounds", "same_as", "tables", "principals"} & {*path[-2:-1]}:
        assert "kg_unheard_of" in told


def test_a_text_where_it_has_no_place_is_not_quoted() -> None:
    for path in paths(FULL["principals"], ("principals",)):
        assert SECRET not in (error_of(yaml.safe_dump(changed(path, SECRET))) or "")
    for entry in ("tables", "limits", "principals", "joins", "database"):
        assert SECRET not in (error_of(yaml.safe_dump(changed((entry,), [SECRET]))) or "")
    assert SECRET not in (error_of(f"version: 1\nk: !{SECRET} {SECRET}\n") or "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("k: many", "p.yml:1: k: has to be a whole number, not the text 'many'."),
        ("k: -3", "p.yml:1: k: has to be a number, 2 or more, not the number -3."),
        ("k:", "p.yml:1: k: has to be a whole number, and nothing stands here."),
        ("mode: fast", "p.yml:1: mode: has to be measured, exact or generalized, not the text 'fast'."),
        ("limits: [1]", "p.yml:1: limits: has to be a mapping of entries, as {time_ms: ...}, not a list."),
        ("limits: {1: 2}", "p.yml:1: limits.1: this name has to be a text: put it into quotation marks."),
        ("joins: people.id = visits.id", "p.yml:1: joins: has to be a list, as [one, other], not a text."),
        ("prepare: SELECT 1", "p.yml:1: prepare: has to be a list, as [one, other], not a text."),
        ("limits: {memory: 3}", "has to be a number with a unit, as 500MB or 2GB, not the number 3."),
        ("budget: 8", "p.yml:1: budget: has to be epsilon and delta, as {epsilon: 8, delta: 1.0e-6}"),
        ("budget: {delta: 1}", "p.yml:1: budget.delta: has to be a number, less than 0.01, not the number 1."),
        ("aggregates: [MEDIAN]", "p.yml:1: aggregates.0: has to be COUNT, COUNT_DISTINCT, SUM,"),
        (
            "aggregates: [COUNT, MAX]\nmode: exact",
            "p.yml:1: aggregates.1: MAX is one person's value, and mode exact never",
        ),
        ("tabels: {}", "p.yml:1: tabels: is no entry of a policy here; remove it or correct its name. Did you mean"),
    ],
)
def test_what_is_said(line: str, told: str) -> None:
    lines = ["version: 1", "database: d", "k: 3", "tables: {people: {privacy_unit: id, artifacts: [a]}}"]
    text = "\n".join([line, *(one for one in lines if one.split(":")[0] != line.split(":")[0])])
    assert told in (error_of(text) or "")


def test_where_a_policy_is_written_is_no_part_of_it() -> None:
    text = "version: 1\ndatabase: d\nk: 3\ntables: {people: {privacy_unit: id}}\n"
    assert parse_policy(text, "one.yml") == parse_policy(f"\n{text}", "other.yml")
    assert Written("one.yml", {("k",): 3}).sentence(("k",), "is wrong") == "one.yml:3: k: is wrong."
    assert Written().sentence(("tables", "people", "measures", 0), "is wrong?") == "tables.people.measures.0: is wrong?"
    built = Policy(version=1, database=Path("d"), k=3, tables={"people": {"privacy_unit": "id"}})  # type: ignore[dict-item]
    assert str(built.error(("k",), "is wrong")) == "k: is wrong."


def test_names_that_are_near() -> None:
    assert near("Salery", ["salary", "age"], "Its columns") == "Did you mean 'salary'?"
    assert near("x", ["salary", "age"], "Its columns") == "Its columns are 'age', 'salary'."
    assert near("x", [], "Its columns") == "There are none."
    assert near("x", [f"c{at:02}" for at in range(30)], "Its columns").endswith("'c19' and 10 more.")


# What the database does not have

TWO = """version: 1
database: people.duckdb
k: 3
tables:
  people:
    privacy_unit: id
    artifacts:
      - film
      - book
    measures: [salary]
    coarsened: {born: year}
  films: {public: true}
joins:
  - people.film = films.film
principals: {ann: {}}
"""
SCHEMA = {
    "people": {"id": "INTEGER", "film": "INTEGER", "book": "INTEGER", "salary": "DOUBLE", "born": "DATE"},
    "films": {"film": "INTEGER"},
}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("films:", "filmes:", "p.yml:12: tables.filmes: the database has no table 'filmes'. Did you mean 'films'?"),
        (
            "- book",
            "- boock",
            "p.yml:9: tables.people.artifacts.1: table 'people' of the database has no column 'boock'.",
        ),
        (
            "[salary]",
            "[pay]",
            "p.yml:10: tables.people.measures.0: table 'people' of the database has no column 'pay'.",
        ),
        (
            "privacy_unit: id",
            "privacy_unit: idd",
            "p.yml:6: tables.people.privacy_unit: table 'people' of the database",
        ),
        ("{born:", "{borne:", "p.yml:11: tables.people.coarsened.borne: table 'people' of the database has no column"),
        ("{born:", "{film:", "p.yml:11: tables.people.coarsened.film: film is INTEGER, no date or timestamp"),
        ("films.film", "films.movie", "p.yml:14: joins.0: table 'films' of the database has no column 'movie'. Its"),
    ],
)
def test_names_that_the_database_does_not_have(old: str, new: str, told: str) -> None:
    text = TWO.replace(old, new)
    if "{film:" in new:
        text = text.replace("      - film\n", "").replace("joins:\n  - people.film = films.film\n", "")
        told = told.replace(":11:", ":10:")
    if "films:" in old:
        text = text.replace("films.film", "filmes.film")
    with pytest.raises(InputError) as error:
        Catalog.of(parse_policy(text, "p.yml"), SCHEMA, {"people": "unit"})
    assert str(error.value).startswith(told)


def test_the_guard_says_it_when_it_opens(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("create table people as select range as id, 1 as film, 2 as book, 3.0 as salary from range(9)")
        con.execute("alter table people add column born date")
    path = tmp_path / "guard.yml"
    path.write_text(TWO, encoding="utf-8")
    with pytest.raises(InputError) as error:
        Guard.from_policy(path)
    assert str(error.value) == (f"{path}:12: tables.films: the database has no table 'films'. Its tables are 'people'.")
