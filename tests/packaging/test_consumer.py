"""kgather as a user has it: installed from the wheel that its sdist makes, and in a dbt project of the user's own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from dbt_commands import RUNNER, Outcome

from kgather._scaffold import write_project

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONSUMER = ROOT / "tests" / "consumer"

CUSTOMIZED = {
    "method": "customized",
    "user_attributes": "customers",
    "level_column": "wanted",
    "generalize": "ndgh",
    "artifacts": [101, 102],
    "personal_columns": ["age"],
}


class Shop:
    """A copy of the consumer's project with an installed kgather, which is not this checkout's."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder = folder
        self.site = site
        self.build_output = ""
        self.env = {
            **os.environ,
            "PYTHONPATH": str(site),
            "KGATHER_DBT": str(site / "kgather" / "dbt"),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def kgather(self, *arguments: str) -> str:
        return self.run(str(self.site / "bin" / "kgather"), *arguments)

    def dbt(self, *arguments: str) -> str:
        return self.run(str(Path(sys.executable).with_name("dbt")), "--no-version-check", "--no-use-colors", *arguments)


@pytest.fixture(scope="module")
def shop(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The project, built once as a user would."""
    folder = tmp_path_factory.mktemp("shop") / "shop"
    unwanted = shutil.ignore_patterns("target", "logs", "dbt_packages", "package-lock.yml", "*.duckdb*", ".user.yml")
    shutil.copytree(CONSUMER, folder, ignore=unwanted)
    shop = Shop(folder, site)
    shop.dbt("deps")
    shop.build_output = shop.dbt("build")
    return shop


@pytest.fixture(scope="module")
def from_git(without_links: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose package is kgather's git repository: dbt then reads the dbt_project.yml at its root."""
    folder = tmp_path_factory.mktemp("from_git") / "project"
    write_project(folder, k=4)
    package = {"git": without_links.as_uri(), "revision": "main"}
    (folder / "packages.yml").write_text(json.dumps({"packages": [package]}), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def started(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that `kgather init` writes."""
    folder = tmp_path_factory.mktemp("init") / "project"
    shop.kgather("init", str(folder), "--k", "4")
    return folder


@pytest.fixture(scope="module")
def outcomes(
    shop: Shop, without_links: Path, started: Path, from_git: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Outcome]:
    def with_vars(*options: str, own: dict[str, object] | None = None, **settings: object) -> tuple[str, Sequence[str]]:
        """Build with settings of kgather's, and with vars of the project's own, which may have the same names."""
        prefixed = {f"kgather_{name}": value for name, value in settings.items()}
        return str(shop.folder), ["build", *options, "--vars", json.dumps((own or {}) | prefixed)]

    commands = {
        "test": (str(shop.folder), ["test"]),
        "k_too_large": with_vars(k=50, own={"k": 50, "wanted_l": 6, "wanted_t": 0.7}),
        "no_ratings": with_vars(ratings=""),
        "wrong_values": with_vars(k=0, method="nonsense", scale=[5, 1]),
        "text_items": with_vars("--target", "with_plugin", item_id_type="varchar", own={"item_id_type": "varchar"}),
        "contradictions": with_vars(
            method="bokg", generalize="dgh", hierarchy=[[[0, 2], [2, 5]], [[0, 5]]], personal_columns=["age"]
        ),
        "customized": with_vars("--target", "customized", **CUSTOMIZED),
        "checkout": (str(without_links), ["build"]),
        "init_deps": (str(started), ["deps"]),
        "init_build": (str(started), ["build"]),
        "git_deps": (str(from_git), ["deps"]),
        "git_build": (str(from_git), ["build"]),
    }
    output = tmp_path_factory.mktemp("output")
    told = json.loads(shop.run(sys.executable, "-c", RUNNER, json.dumps(commands), str(output)).splitlines()[-1])
    assert told["kgather"] == str(shop.site / "kgather" / "__init__.py")
    return {name: Outcome(ok, (output / f"{name}.txt").read_text()) for name, ok in told["outcomes"].items()}


def query(database: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(database, read_only=True) as con:
        return con.execute(sql).fetchall()


def test_the_wheel_alone_can_be_imported(shop: Shop) -> None:
    code = (
        "import sys, kgather; assert 'numba' not in sys.modules;"
        "from kgather.udfs import _arrow_functions; print(kgather.__file__, _arrow_functions.__file__)"
    )
    assert shop.run(sys.executable, "-c", code).split() == [
        str(shop.site / "kgather" / "__init__.py"),
        str(shop.site / "kgather" / "udfs" / "_arrow_functions.py"),
    ]


def test_the_build_passes_without_a_warning(shop: Shop) -> None:
    assert "Completed successfully" in shop.build_output
    assert "WARN=0" in shop.build_output
    assert "[WARNING]" not in shop.build_output


def test_the_release_holds_the_marts_in_the_contracts_types(shop: Shop) -> None:
    columns = query(
        shop.folder / "release.duckdb",
        "select table_name, list((column_name, data_type) order by column_index) from duckdb_columns() "
        "where not internal group by all",
    )
    stamp = [("release_id", "VARCHAR"), ("released_on", "DATE")]
    assert {table: found[-2:] for table, found in columns} == dict.fromkeys(dict(columns), stamp)
    assert {table: found[:-2] for table, found in columns} == {
        "kgather__ratings": [("group_id", "BIGINT"), ("item_id", "BIGINT"), ("rating", "DOUBLE")],
        "kgather__groups": [("group_id", "BIGINT"), ("group_size", "BIGINT")],
        "kgather__members": [("pseudonym", "VARCHAR"), ("group_id", "BIGINT")],
        "kgather__audit": [
            ("check", "VARCHAR"),
            ("promised", "BIGINT"),
            ("measured", "BIGINT"),
            ("passed", "BOOLEAN"),
        ],
        "kgather__metrics": [("metric", "VARCHAR"), ("value", "DOUBLE")],
    }


def test_the_release_keeps_its_promises(shop: Shop) -> None:
    release = shop.folder / "release.duckdb"
    assert query(release, "select bool_and(passed), count(*) >= 8 from kgather__audit") == [(True, True)]
    assert query(release, "select min(group_size) >= 5, sum(group_size) from kgather__groups") == [(True, 24)]
    assert query(release, "select count(distinct pseudonym) from kgather__members") == [(24,)]
    groups, items, cells = query(
        release, "select count(distinct group_id), count(distinct item_id), count(*) from kgather__ratings"
    )[0]
    assert (items, cells) == (20, groups * 20)


def test_the_release_knows_no_user(shop: Shop) -> None:
    release = shop.folder / "release.duckdb"
    text = str(query(release, "from kgather__members") + query(release, "from kgather__ratings"))
    assert "cust-" not in text
    assert b"cust-" not in release.read_bytes()


def test_rejected_rows_are_set_aside_with_their_reasons(shop: Shop) -> None:
    reasons = query(shop.folder / "work.duckdb", "select reason, raw from int_kgather__rejected_ratings order by all")
    assert reasons == [
        ("rating is not a number", "cust-003,119,n/a,2024-05-05 00:00:00"),
        ("repeated pair: the latest is kept", "cust-000,107,1,2024-11-18 00:00:00"),
        ("repeated pair: the mean is kept", "cust-002,118,5,2024-05-03 00:00:00"),
    ]


def test_a_model_of_ones_own_reads_the_release(shop: Shop) -> None:
    with duckdb.connect() as con:
        con.execute(f"attach '{shop.folder}/work.duckdb' as work (read_only)")
        con.execute(f"attach '{shop.folder}/release.duckdb' as release (read_only)")
        unlike = """
        select count(*) from work.favourites
        join release.kgather__ratings using (group_id)
        where rating > (
          select r.rating from release.kgather__ratings as r
          where r.group_id = favourites.group_id and r.item_id = favourites.favourite
        )
        """
        assert con.execute(unlike).fetchall() == [(0,)]
        assert con.execute("select count(*) > 1 from work.favourites").fetchall() == [(True,)]


def test_dbt_test_passes_by_itself(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["test"].success
    assert "PASS visitors_is_k_anonymous" in outcomes["test"].output


def test_k_beyond_the_users_is_refused_with_both_numbers(outcomes: dict[str, Outcome]) -> None:
    assert not outcomes["k_too_large"].success
    assert (
        "kgather refuses the input: k = 50 is larger than the number of users, 24. Lower k or add users."
        in outcomes["k_too_large"].output
    )


def test_k_anonymous_fails_on_any_relation_that_is_not(outcomes: dict[str, Outcome]) -> None:
    # Of the visitors every class has 5 members, those with a null too: no two more than 50.
    assert "FAIL 20 visitors_is_k_anonymous" in outcomes["k_too_large"].output


# How many people each puts at risk. All four classes of age and district, of 5 rows each, are too few and have too few
# values; of the ages only 18-30 is farther than 0.7 from everybody, as all of it live in the north. A district counts
# its different visitors: five in each of the three.
FAILURES = {
    "visitors_is_l_diverse": 20,
    "visitors_is_t_close": 5,
    "visitors_is_alpha_k_anonymous": 20,
    "districts_have_enough_visitors": 15,
    "visitors_has_no_risk_query_conditions": 20,
}


@pytest.mark.parametrize("name", FAILURES)
def test_privacy_models_of_any_relation(outcomes: dict[str, Outcome], name: str) -> None:
    assert f"PASS {name}" in outcomes["test"].output
    assert f"FAIL {FAILURES[name]} {name}" in outcomes["k_too_large"].output


def test_privacy_models_with_dbts_own_filter(outcomes: dict[str, Outcome]) -> None:
    assert "PASS visitors_with_a_district_is_recursively_l_diverse" in outcomes["test"].output


def test_missing_ratings_are_asked_for(outcomes: dict[str, Outcome]) -> None:
    assert not outcomes["no_ratings"].success
    assert 'ratings is the name of a model, not "".' in outcomes["no_ratings"].output
    assert "Set it in dbt_project.yml, under vars: kgather:" in outcomes["no_ratings"].output


def test_all_wrong_values_are_told_at_once(outcomes: dict[str, Outcome]) -> None:
    assert not outcomes["wrong_values"].success
    for message in (
        "kgather cannot start:",
        "k is a whole number of at least 1, not 0.",
        "method is one of bkg",
        'not "nonsense".',
        "scale is [min, max] or [min, max, step] with min less than max",
    ):
        assert message in outcomes["wrong_values"].output


def test_values_that_contradict_each_other_are_told_at_once(outcomes: dict[str, Outcome]) -> None:
    assert not outcomes["contradictions"].success
    for message in (
        "method bokg needs the users' levels: set user_attributes and level_column.",
        "personal_columns and sensitive_columns are columns of the users' attributes: set user_attributes.",
    ):
        assert message in outcomes["contradictions"].output


def test_levels_and_attributes_come_from_a_model(shop: Shop, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["customized"].success, outcomes["customized"].output
    release = shop.folder / "release_customized.duckdb"
    columns = query(release, "select column_name from duckdb_columns() where table_name = 'kgather__generalized'")
    assert columns == [("group_id",), ("101",), ("102",), ("age",), ("release_id",), ("released_on",)]
    sizes = query(
        shop.folder / "work_customized.duckdb",
        "select level, min(group_size) from int_kgather__user_levels join int_kgather__groups using (user_id) "
        "join (select group_id, count(*) as group_size from int_kgather__groups group by group_id) using (group_id) "
        "group by level order by level",
    )
    assert [level for level, _ in sizes] == [1, 5]
    assert sizes[1][1] >= 5


def test_text_items_and_the_plugin(shop: Shop, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["text_items"].success, outcomes["text_items"].output
    items = query(shop.folder / "release_with_plugin.duckdb", "select distinct item_id from kgather__ratings")
    assert sorted(items) == [(f"P-{number}",) for number in range(100, 120)]
    groups = query(shop.folder / "work_with_plugin.duckdb", "select count(*) from visitor_groups group by group_id")
    assert sum(size for (size,) in groups) == 20
    assert min(groups) >= (5,)


def test_a_checkout_publishes_its_sample(without_links: Path, outcomes: dict[str, Outcome]) -> None:
    """By its own profile, and with all that `dbt docs` draws of a rating's way."""
    assert outcomes["checkout"].success, outcomes["checkout"].output
    database = without_links / "target" / "kgather.duckdb"
    assert query(database, "select bool_and(passed) from kgather__audit") == [(True,)]
    assert query(database, "select min(group_size) >= 5 from kgather__groups") == [(True,)]
    manifest = json.loads((without_links / "target" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parent_map"]["model.kgather.sample_ratings"] == ["source.kgather.examples.ratings"]
    assert "model.kgather.sample_ratings" in manifest["parent_map"]["model.kgather.base_kgather__read_ratings"]


def test_the_project_to_start_from_builds(started: Path, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["init_deps"].success, outcomes["init_deps"].output
    assert outcomes["init_build"].success, outcomes["init_build"].output
    assert query(started / "release.duckdb", "select bool_and(passed) from kgather__audit") == [(True,)]
    assert query(started / "release.duckdb", "select min(group_size) >= 4 from kgather__groups") == [(True,)]


def test_the_git_repository_is_a_package_too(from_git: Path, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["git_deps"].success, outcomes["git_deps"].output
    assert outcomes["git_build"].success, outcomes["git_build"].output
    assert query(from_git / "release.duckdb", "select bool_and(passed) from kgather__audit") == [(True,)]


@pytest.fixture(scope="module")
def published(shop: Shop, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the installed command publishes of the sample."""
    release = tmp_path_factory.mktemp("published") / "release"
    shop.kgather("publish", str(sample), "--k", "5", "--out", str(release))
    return release


def test_the_installed_command_publishes(published: Path) -> None:
    assert query(published / "release.duckdb", "select bool_and(passed) from kgather__audit") == [(True,)]
    assert (published / "report.html").stat().st_size > 10_000


def test_the_installed_command_verifies(shop: Shop, published: Path) -> None:
    shop.kgather("verify", str(published), "--k", "5")
    with pytest.raises(AssertionError):
        shop.kgather("verify", str(published), "--k", "500")


def test_the_installed_functions_load(shop: Shop) -> None:
    code = (
        "import duckdb, kgather; con = duckdb.connect(); kgather.load(con);"
        "print(kgather.__file__);"
        "print(*(row[0] for row in con.execute('select distinct function_name from duckdb_functions() "
        "where function_name in (?, ?, ?) order by 1', ['kg_gather', 'kg_homogenize', 'kg_preferences']).fetchall()))"
    )
    assert shop.run(sys.executable, "-c", code).splitlines() == [
        str(shop.site / "kgather" / "__init__.py"),
        "kg_gather kg_homogenize kg_preferences",
    ]
