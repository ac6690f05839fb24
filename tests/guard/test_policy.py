"""The policy file: what it may say, and errors that name file, line and entry."""

from pathlib import Path

import pytest
from guard_data import POLICY

from kgather._errors import InputError
from kgather._guard.catalog import Catalog, kind_of
from kgather._guard.policy import AGGREGATES, Policy, fold, load_policy, parse_policy

SMALL = """version: 1
database: d.duckdb
k: 3
tables:
  people:
    privacy_unit: id
    artifacts: [a, b]
    measures: [m]
    dimensions: [d]
  visits:
    privacy_unit: id
    artifacts: [place, stars]
  places: {public: true}
joins:
  - visits.id = people.id
  - visits.place = places.place
"""
SCHEMA = {
    "people": {"id": "INTEGER", "a": "INTEGER", "b": "DOUBLE", "m": "INTEGER", "d": "VARCHAR", "more": "VARCHAR"},
    "visits": {"id": "INTEGER", "place": "INTEGER", "stars": "INTEGER"},
    "places": {"place": "INTEGER", "name": "VARCHAR"},
}
GRAINS = {"people": "unit", "visits": "rows"}


def test_example() -> None:
    policy = parse_policy(POLICY)
    assert policy.k == 5
    assert policy.aggregates == AGGREGATES
    assert policy.limits_of("analyst").time_ms == 10_000
    assert policy.mode == "measured"
    assert not policy.margins
    pivot = policy.tables["ratings_wide"].pivot_of
    assert pivot is not None
    assert pivot.names[3] == "egomaniac"


def test_paths_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "policy.yml").write_text(SMALL + "ledger: /elsewhere/l.duckdb\n")
    policy = load_policy(tmp_path / "policy.yml")
    assert policy.database == tmp_path.resolve() / "d.duckdb"
    assert policy.ledger == Path("/elsewhere/l.duckdb")


def test_everything_that_may_be_said() -> None:
    more = """
aggregates: [count, SUM, min, MAX]
margins: true
mode: generalized
match: expected
round: 2
diversity: {l: 2, columns: [people.m]}
limits: {time_ms: 500, memory: 2GB, statement_bytes: 1000, depth: 10}
principals: {a: {time_ms: 9}, b: , c: {depth: 5}}
"""
    policy = parse_policy(SMALL + more)
    assert policy.aggregates == ("COUNT", "SUM", "MIN", "MAX")
    assert policy.limits_of("a").time_ms == 9
    assert policy.limits_of("b").time_ms == 500
    assert (policy.limits_of("c").depth, policy.limits_of("c").memory) == (5, "2GB")
    with pytest.raises(InputError, match="no principal 'd'"):
        policy.limits_of("d")


def test_the_mode_of_old_is_the_mode_of_today() -> None:
    assert parse_policy(SMALL + "mode: adaptive\n").mode == "measured"
    assert parse_policy(SMALL).mode == "measured"


WRONG = {
    "no YAML": ("tables: [", "p.yml:1: this is no YAML"),
    "no mapping": ("- 1", "p.yml:1: a policy has entries"),
    "nothing": ("", "p.yml:1: a policy has entries"),
    "tag": ("k: !!python/object:os.system 1", "p.yml:1: "),
    "twice": (SMALL + "k: 4\n", "p.yml:17: 'k' stands here twice"),
    "unknown entry": (SMALL + "kk: 4\n", "p.yml:17: kk: is no entry"),
    "unknown table entry": (SMALL.replace("measures", "messures"), "p.yml:8: tables.people.messures: is no entry"),
    "missing": (SMALL.replace("k: 3\n", ""), "k: is missing"),
    "version": (SMALL.replace("version: 1", "version: 2"), "p.yml:1: version: "),
    "k too small": (SMALL.replace("k: 3", "k: 1"), "p.yml:3: k: "),
    "k a text": (SMALL.replace("k: 3", "k: '3'"), "p.yml:3: k: "),
    "mode": (SMALL + "mode: fast\n", "p.yml:17: mode: "),
    "mode of a principal": (
        SMALL + "principals: {a: {mode: exact}}\n",
        "p.yml:17: principals.a.mode: the mode is the ledger's, not a principal's",
    ),
    "no budget": (SMALL + "budget: none\n", "p.yml:17: budget: has to be epsilon and delta"),
    "empty budget": (SMALL + "budget:\n", "p.yml:17: budget: has to be epsilon and delta"),
    "budget of nothing": (SMALL + "budget: {epsilon: 0}\n", "p.yml:17: budget.epsilon: "),
    "exact about two tables": (
        SMALL + "mode: exact\n",
        "p.yml:10: tables.visits: mode exact answers about one protected table with one row a person",
    ),
    "match": (SMALL + "match: any\n", "p.yml:17: match: match goes with mode generalized, and this is mode measured"),
    "round": (SMALL + "round: 2\n", "p.yml:17: round: round goes with modes exact and generalized; mode measured"),
    "diversity of measured": (
        SMALL + "diversity: {l: 2, columns: [people.m]}\n",
        "p.yml:17: diversity: diversity goes with modes exact and generalized; mode measured",
    ),
    "budget of generalized": (
        SMALL + "mode: generalized\nbudget: {epsilon: 8}\n",
        "p.yml:18: budget: budget goes with mode measured, and mode generalized has none",
    ),
    "prepare of generalized": (
        SMALL + "mode: generalized\nprepare: [SELECT COUNT(*) FROM people]\n",
        "p.yml:18: prepare: prepare goes with mode measured, and mode generalized measures nothing",
    ),
    "generalized about nothing": (
        SMALL.replace("    artifacts: [a, b]\n", "").replace("[place, stars]", "[place, stars]\n    grain: rows")
        + "mode: generalized\n",
        "mode generalized gathers people by their artifacts in tables with one row a person",
    ),
    "two roles": (SMALL.replace("[m]", "[A]"), "p.yml:5: tables.people: column 'A' is both artifact and measure"),
    "unit with a role": (SMALL.replace("[m]", "[ID]"), "both unit and measure"),
    "no unit": (
        SMALL.replace("    privacy_unit: id\n    artifacts: [a", "    artifacts: [a"),
        "says neither privacy_unit",
    ),
    "public with roles": (
        SMALL.replace("{public: true}", "{public: true, measures: [x]}"),
        "p.yml:13: tables.places: ",
    ),
    "all public": (
        "version: 1\ndatabase: d\nk: 3\ntables:\n  a: {public: true}\n",
        "p.yml:4: tables: every table is public",
    ),
    "same table": (SMALL.replace("  places:", "  PEOPLE: {public: true}\n  places:"), "stands here twice"),
    "reserved": (SMALL.replace("  places:", "  kg_units: {public: true}\n  places:"), "are the guard's own"),
    "join of nothing": (
        SMALL.replace("= people.id", "= persons.id"),
        "p.yml:15: joins.0: table 'persons' is not in this policy",
    ),
    "join of a column": (SMALL.replace("visits.place =", "visits.spot ="), "p.yml:16: joins.1: 'spot' is no column"),
    "join form": (SMALL.replace("visits.place =", "visits.place <"), "p.yml:16: joins.1: has to be an equality"),
    "join of a unit": (
        SMALL.replace("visits.place =", "visits.id ="),
        "a privacy unit is only joined to a privacy unit",
    ),
    "join to people": (SMALL.replace("= places.place", "= people.a"), "the right side is the key of a public table"),
    "join of a measure": (SMALL.replace("visits.place =", "people.m ="), "the left side is a measure column"),
    "grain": (SMALL.replace("[m]", "[m]\n    grain: both"), "p.yml:9: tables.people.grain: "),
    "unique": (SMALL.replace("[m]", "[m]\n    unique: m"), "p.yml:9: tables.people.unique: 'm' is no artifact"),
    "aggregates": (SMALL + "aggregates: [MEDIAN]\n", "p.yml:17: aggregates.0: "),
    "memory": (SMALL + "limits: {memory: lots}\n", "p.yml:17: limits.memory: "),
    "limits": (SMALL + "limits: {time_ms: 0}\n", "p.yml:17: limits.time_ms: "),
    "diversity": (
        SMALL + "mode: generalized\ndiversity: {l: 2, columns: [m]}\n",
        "p.yml:18: diversity.columns: 'm' is no measure",
    ),
    "diversity of one": (SMALL + "diversity: {l: 1, columns: [people.m]}\n", "p.yml:17: diversity.l: "),
    "principal": (SMALL + "principals: {a: {age: 3}}\n", "p.yml:17: principals.a.age: is no entry"),
    "same_as": (SMALL.replace("[m]", "[m]\n    same_as: {m: visits.stars}"), "give both one role"),
    "same_as of nothing": (SMALL.replace("[m]", "[m]\n    same_as: {m: visits.m}"), "is no column of another table"),
    "coarsened": (SMALL.replace("[m]", "[m]\n    coarsened: {t: hour}"), "p.yml:9: tables.people.coarsened.t: "),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_errors_name_file_line_and_entry(name: str) -> None:
    text, told = WRONG[name]
    with pytest.raises(InputError) as caught:
        parse_policy(text, "p.yml")
    assert told in str(caught.value)
    assert all(line.startswith("p.yml:") for line in str(caught.value).splitlines())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("table: ratings, key", "table: rates, key", "'rates' is no other protected table"),
        ("table: ratings, key", "table: items, key", "'items' is no other protected table"),
        ("key: item_id", "key: item", "'item' is no artifact of ratings"),
        ("value: rating,", "value: item_id,", "key and value are two columns"),
        ("{1: warcross", "{1: salary", "'salary' is no artifact of this table"),
        ("{1: warcross", "{1: joy_ride", "two keys name one column"),
        ("    measures: [salary, age]", "    measures: [salary, age]\n    grain: rows", "its grain is unit"),
    ],
    ids=range(7),
)
def test_pivots(old: str, new: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        parse_policy(POLICY.replace(old, new, 1))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_policy(tmp_path / "policy.yml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        load_policy(tmp_path / "binary")


def test_catalog_knows_roles_and_types() -> None:
    catalog = Catalog.of(parse_policy(SMALL), SCHEMA, GRAINS)
    people = catalog.table("PEOPLE")
    assert people is not None
    assert {c.name: c.role for c in people.columns.values()} == {
        "id": "unit",
        "a": "artifact",
        "b": "artifact",
        "m": "measure",
        "d": "dimension",
        "more": "hidden",
    }
    assert (people.grain, people.unit, people.protected) == ("unit", "id", True)


@pytest.mark.parametrize(
    ("schema", "grains", "told"),
    [
        ({"people": SCHEMA["people"]}, GRAINS, "no table 'visits'"),
        (SCHEMA | {"visits": {"id": "INTEGER", "place": "INTEGER"}}, GRAINS, "no column 'stars'"),
        (SCHEMA | {"places": {"name": "VARCHAR"}}, GRAINS, "no column 'place'"),
        (SCHEMA | {"places": {"place": "VARCHAR"}}, GRAINS, "of different types"),
        (SCHEMA, {"people": "unit"}, r"tables\.visits\.grain"),
    ],
    ids=range(5),
)
def test_a_database_that_does_not_fit(schema: dict[str, dict[str, str]], grains: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Catalog.of(parse_policy(SMALL), schema, grains)  # type: ignore[arg-type]


def test_what_the_data_say_about_grains(catalog: Catalog) -> None:
    assert {table.name: table.grain for table in catalog.tables.values()} == {
        "ratings_wide": "unit",
        "ratings": "rows",
        "users": "unit",
        "items": "rows",
    }
    assert catalog.uniques == {"ratings": "item_id"}


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("INTEGER", "integer"),
        ("UBIGINT", "integer"),
        ("DECIMAL(18,3)", "number"),
        ("VARCHAR", "text"),
        ("BOOLEAN", "boolean"),
        ("DATE", "date"),
        ("TIMESTAMP", "timestamp"),
        ("TIMESTAMP WITH TIME ZONE", "timestamp"),
        ("TIMESTAMP_NS", "timestamp"),
        ("INTEGER[]", "other"),
        ("ENUM('a')", "text"),
        ("STRUCT(a INTEGER)", "other"),
        ("BLOB", "other"),
    ],
)
def test_types(type_: str, kind: str) -> None:
    assert kind_of(type_) == kind


def test_names_fold_as_in_the_engine() -> None:
    assert fold("Straße_ÄK") == "straße_Äk"
    assert fold("\u212a") == "\u212a"  # the sign of kelvin is no k


def test_a_policy_is_a_value() -> None:
    assert parse_policy(SMALL) == parse_policy(SMALL)
    assert Policy.model_validate(parse_policy(SMALL).model_dump()) == parse_policy(SMALL)
