"""Projects of other shapes: one that only tests its own models, and the complete one in examples/."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from dbt_commands import Outcome, run_dbt

from kgather._dbt_package import dbt_path

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# Nothing of this project's is about ratings. Its columns have upper-case names, and its people are known by a word.
PLAIN = {
    "dbt_project.yml": """
        name: plain
        profile: plain
        flags: {send_anonymous_usage_stats: false}
        data_tests: {+store_failures: "{{ target.name != 'reading' }}"}
    """,
    "packages.yml": """
        packages:
          - local: "{{ env_var('KGATHER_DBT') }}"
    """,
    "profiles.yml": """
        plain:
          target: dev
          outputs:
            dev: {type: duckdb, path: my work.duckdb, threads: 2}
            memory: {type: duckdb, path: ":memory:", schema: Analytics}
            reading:
              type: duckdb
              path: reading.duckdb
              config_options: {access_mode: READ_ONLY}
              attach: [{path: published.duckdb, alias: published, read_only: true}]
    """,
    "models/people.sql": """
        {{ config(materialized="table") }}
        select * from read_csv('people.csv')
    """,
    "people.csv": "\n".join(
        ["Name,Age Band,ZIP,illness", *(f"secret-{i},age {i % 3},{i % 4},ill {i % 2}" for i in range(61))]
    ),
    "models/_models.yml": """
        sources:
          - name: released
            database: published
            schema: main
            config: {enabled: "{{ target.name == 'reading' }}"}
            tables:
              - name: groups
                data_tests:
                  - kgather.k_anonymous:
                      name: released_is_k_anonymous
                      arguments: {column_names: [group_id], k: 3}
                      config: {store_failures: false}
        models:
          - name: people
            data_tests:
              - kgather.k_anonymous:
                  name: people_is_k_anonymous
                  arguments: {column_names: ["Age Band", "ZIP"], k: 5}
              - kgather.t_close:
                  name: people_is_t_close
                  arguments: {column_names: ["Age Band"], sensitive_columns: [illness], t: 0.5}
              - kgather.k_anonymous:
                  name: eleven_people_are_few
                  arguments: {column_names: ["Age Band", "ZIP"], k: 6}
                  config: {warn_if: ">54", error_if: ">55"}
              - kgather.k_anonymous:
                  name: eleven_classes_are_few
                  arguments: {column_names: ["Age Band", "ZIP"], k: 6, measure: classes}
                  config: {warn_if: ">10", error_if: ">11"}
              - kgather.l_diverse:
                  name: people_are_not_diverse
                  arguments: {column_names: ["Name"], sensitive_columns: [illness, "ZIP"], l: 2}
                  config: {severity: warn}
    """,
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").splitlines()
        (folder / name).write_text("\n".join(line.removeprefix("        ") for line in lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = written(tmp_path_factory.mktemp("plain") / "it's a project", PLAIN)
    # A file that no dbt has opened, and a release beside it.
    with duckdb.connect(folder / "reading.duckdb") as con:
        con.execute("create table people as from read_csv(?)", [str(folder / "people.csv")])
    with duckdb.connect(folder / "published.duckdb") as con:
        con.execute("create table groups as select i // 3 as group_id from range(9) as t (i)")
    return folder


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example") / "shop"
    unwanted = shutil.ignore_patterns("target", "logs", "dbt_packages", "package-lock.yml", "*.duckdb*", ".user.yml")
    shutil.copytree(ROOT / "examples" / "shop", folder, ignore=unwanted)
    (folder / "models" / "fleeting.sql").write_text(
        "{{ config(materialized='ephemeral', group='privacy') }}\nselect * from {{ ref('stg_stars') }}\n",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="module")
def in_ci(example: Path) -> Path:
    """The same project on a database that is not there yet."""
    return Path(shutil.copytree(example, example.parent / "ci"))


@pytest.fixture(scope="module")
def outcomes(plain: Path, example: Path, in_ci: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    strict = ["--warn-error-options", json.dumps({"error": ["Deprecations"]})]
    commands: dict[str, tuple[Path, list[str]]] = {
        "plain_deps": (plain, ["deps"]),
        "plain_build": (plain, [*strict, "build"]),
        "plain_test": (plain, ["test"]),
        "plain_memory": (plain, ["build", "--target", "memory"]),
        "plain_reading": (plain, ["test", "--target", "reading"]),
        "example_deps": (example, ["deps"]),
        "example_build": (example, [*strict, "build"]),
        "example_fleeting": (
            example,
            ["run", "--select", "base_kgather__read_ratings", "--vars", "{kgather_ratings: fleeting}"],
        ),
        "ci_deps": (in_ci, ["deps"]),
        "ci_build": (in_ci, ["build", "--empty"]),
        "ci_deferred": (
            in_ci,
            ["run", "--select", "favourites", "--defer", "--favor-state", "--state", str(example / "target")],
        ),
    }
    return run_dbt(commands, tmp_path_factory.mktemp("output"), dbt_path())


def query(database: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(database, read_only=True) as con:
        return con.execute(sql).fetchall()


# A project that only wants the tests ------------------------------------------------------------------------------


def test_tests_alone_need_nothing_but_the_package(plain: Path, outcomes: dict[str, Outcome]) -> None:
    for command in ("plain_build", "plain_test", "plain_memory"):
        assert outcomes[command].success, outcomes[command].output
        assert "PASS people_is_k_anonymous" in outcomes[command].output
        assert "PASS people_is_t_close" in outcomes[command].output
    built = query(plain / "my work.duckdb", "select table_name from duckdb_tables() where schema_name = 'main'")
    assert built == [("people",)]
    manifest = json.loads((plain / "target" / "manifest.json").read_text(encoding="utf-8"))
    assert [node for node in manifest["nodes"] if node.startswith("model.kgather")] == []
    # The hook, the model and its five tests, and none of kgather's own.
    assert "TOTAL=7" in outcomes["plain_build"].output


def test_thresholds_count_people_or_classes(outcomes: dict[str, Outcome]) -> None:
    # 61 people in 12 classes: one class of six, eleven of five.
    assert "WARN 55 eleven_people_are_few" in outcomes["plain_build"].output
    assert "WARN 11 eleven_classes_are_few" in outcomes["plain_build"].output
    # Each of 61 people is alone: by two sensitive columns, and still 61.
    assert "WARN 61 people_are_not_diverse" in outcomes["plain_build"].output


def test_a_file_that_is_only_read_is_tested_in_place(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["plain_reading"].success, outcomes["plain_reading"].output
    for name in ("people_is_k_anonymous", "people_is_t_close", "released_is_k_anonymous"):
        assert f"PASS {name}" in outcomes["plain_reading"].output


def test_nothing_that_is_told_or_stored_of_failures_is_a_member(plain: Path, outcomes: dict[str, Outcome]) -> None:
    told = "".join(outcome.output for outcome in outcomes.values())
    told += (plain / "target" / "run_results.json").read_text(encoding="utf-8")
    with duckdb.connect(plain / "my work.duckdb", read_only=True) as con:
        names = con.execute(
            "select schema_name, table_name from duckdb_tables() where schema_name <> 'main'"
        ).fetchall()
        assert "people_are_not_diverse" in dict(map(reversed, names))
        stored = {table: con.execute(f'from "{schema}"."{table}"').fetchall() for schema, table in names}
    assert sorted(stored["people_are_not_diverse"]) == [("ZIP", 1, 1.0, 61, 61, 61), ("illness", 1, 1.0, 61, 61, 61)]
    for secret in ("secret-", "ill 0", "ill 1", "age 0", "age 1"):
        assert secret not in told + str(stored)


# The complete project of examples/ --------------------------------------------------------------------------------


def test_the_example_builds(example: Path, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["example_build"].success, outcomes["example_build"].output
    assert "WARN=0 ERROR=0 SKIP=0" in outcomes["example_build"].output
    release = example / "release.duckdb"
    assert query(release, "select bool_and(passed) from main_published.kgather__audit") == [(True,)]
    assert query(release, "select min(group_size) >= 5 from main_published.kgather__groups") == [(True,)]
    shown = query(
        example / "work.duckdb",
        "select min(n) >= 10 from (select count(*) as n from customers_for_research group by age, postcode)",
    )
    assert shown == [(True,)]
    assert b"cust-" not in release.read_bytes()


def test_an_empty_build_keeps_the_contracts(example: Path, in_ci: Path, outcomes: dict[str, Outcome]) -> None:
    """On a fresh database, with a unit test whose parents the same build makes."""
    assert outcomes["ci_build"].success, outcomes["ci_build"].output
    assert "PASS favourites::the_best_rated_item_is_the_favourite" in outcomes["ci_build"].output
    columns = "select table_name, column_name, data_type from duckdb_columns() where not internal order by all"
    assert query(in_ci / "release.duckdb", columns) == query(example / "release.duckdb", columns)
    assert query(in_ci / "release.duckdb", "select count(*) from main_published.kgather__members") == [(0,)]
    mine = columns.replace("where", "where table_name = 'customers_for_research' and")
    assert query(in_ci / "work.duckdb", mine) == query(example / "work.duckdb", mine)


def test_a_deferred_run_finds_its_parents(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["ci_deferred"].success, outcomes["ci_deferred"].output


def test_ephemeral_ratings_are_refused_by_that_word(outcomes: dict[str, Outcome]) -> None:
    assert not outcomes["example_fleeting"].success
    assert "kgather: the model fleeting is ephemeral" in outcomes["example_fleeting"].output
    assert "config(materialized='view')" in outcomes["example_fleeting"].output
