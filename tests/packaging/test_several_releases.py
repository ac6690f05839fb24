"""A project with three releases of the same people, built, built again after some came and left, and snapshotted."""

import json
import re
import shutil
from pathlib import Path

import duckdb
import pytest
from dbt_commands import Outcome, run_dbt

from kgather._dbt_package import dbt_path
from kgather._dbt_release import write_package

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LEFT = "cust-001"
RELEASES = ("inside", "partner", "club")

SETTINGS = """vars:
  kgather:
    ratings: stg_stars
    releases:
      inside: {k: 3, history: true, keep_group_ids: true}
      partner: {k: 7, within: inside, released_on: '2026-01-31'}
      club: {k: 7, within: inside, history: true}
"""
WRONG = """vars:
  kgather:
    ratings: stg_stars
    releases:
      inside: {k: 3, within: nobody, colour: red}
      partner: {k: 7}
      club: {k: 7, within: partner, history: true}
      ghost: {k: 2}
      Loud: {k: 2}
"""
MODELS = "".join(
    f"""  kgather_{name}:
    +group: privacy
    +schema: anonymizing
    marts:
      +database: release
      +schema: {name}
"""
    for name in RELEASES
)
SNAPSHOTS = """
  - name: inside_ratings_over_time
    relation: ref("kgather_inside", "kgather_inside__ratings")
    config: &of_release
      unique_key: [group_id, item_id]
      strategy: check
      check_cols: [rating]
      hard_deletes: invalidate
  - name: inside_groups_over_time
    relation: ref("kgather_inside", "kgather_inside__groups")
    config: {<<: *of_release, unique_key: group_id, check_cols: [group_size]}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several") / "two releases"
    unwanted = shutil.ignore_patterns("target", "logs", "dbt_packages", "package-lock.yml", "*.duckdb*", ".user.yml")
    shutil.copytree(ROOT / "examples" / "shop", folder, ignore=unwanted)
    for name in RELEASES:
        write_package(name, folder / "kgather_releases")
    packages = folder / "packages.yml"
    local = "".join(f"  - local: kgather_releases/{name}\n" for name in RELEASES)
    packages.write_text(packages.read_text(encoding="utf-8") + local, encoding="utf-8")
    with (folder / "snapshots" / "products_over_time.yml").open("a", encoding="utf-8") as file:
        file.write(SNAPSHOTS)
    for file in (folder / "models").rglob("*.*"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace('"kgather", "kgather__', '"kgather_partner", "kgather_partner__'), "utf-8")
    return folder


@pytest.fixture(scope="module")
def outcomes(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    strict = ["--warn-error-options", json.dumps({"error": ["Deprecations"]})]
    said = (project / "dbt_project.yml").read_text(encoding="utf-8")
    said = said[: said.index("vars:")].replace("seeds:", MODELS + "\nseeds:")

    def run(settings: str, **commands: list[str]) -> dict[str, Outcome]:
        (project / "dbt_project.yml").write_text(said + settings, encoding="utf-8")
        output = tmp_path_factory.mktemp("output")
        return run_dbt({name: (project, command) for name, command in commands.items()}, output, dbt_path())

    found = run(WRONG, deps=["deps"], wrong=["run", "--select", "int_kgather__noise_key"])
    found |= run(
        SETTINGS,
        twice_said=["run", "--select", "kgather_partner__groups", "--vars", "{kgather_k: 2}"],
        empty=["build", "--empty"],
        first=[*strict, "build"],
        again=["snapshot"],
    )
    for name in ("work", "release"):
        shutil.copy(project / f"{name}.duckdb", project / f"first_{name}.duckdb")
    stars = project / "seeds" / "stars.csv"
    lines = stars.read_text(encoding="utf-8").splitlines(keepends=True)
    assert any(LEFT in line for line in lines)
    kept = [line for line in lines if LEFT not in line]
    came = [line.replace("cust-", f"cust-{place}") for place in (1, 2) for line in lines if re.match("cust-00", line)]
    # Somebody leaves and somebody comes; then enough come for groups of their own.
    for build, newcomers in (("second", came[:9]), ("third", came)):
        stars.write_text("".join(kept + newcomers), encoding="utf-8")
        found |= run(SETTINGS, **{build: [*strict, "build"]})
        for name in ("work", "release"):
            shutil.copy(project / f"{name}.duckdb", project / f"{build}_{name}.duckdb")
    return found


def query(file: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(file, read_only=True) as con:
        return con.execute(sql).fetchall()


def test_both_releases_build_under_their_names(project: Path, outcomes: dict[str, Outcome]) -> None:
    for command in ("empty", "first", "second", "third"):
        assert outcomes[command].success, outcomes[command].output
        assert re.search(r"WARN=0 ERROR=0 SKIP=0", outcomes[command].output)
    tables = query(
        project / "second_release.duckdb",
        "select distinct schema_name, regexp_extract(table_name, '(.*)__', 1) from duckdb_tables()",
    )
    assert sorted(tables) == sorted((f"main_{name}", f"kgather_{name}") for name in RELEASES)
    manifest = json.loads((project / "target" / "manifest.json").read_text(encoding="utf-8"))
    # No second release without a name, and one key of the noise for both.
    assert sorted(node for node in manifest["nodes"] if node.startswith("model.kgather.")) == [
        "model.kgather.int_kgather__noise_key",
        "model.kgather.kgather_releases",
    ]
    for name in RELEASES:
        tests = [key for key in manifest["nodes"] if key.startswith(f"test.kgather_{name}.")]
        assert tests
        assert all(f"kgather_{name}__" in test for test in tests)
        described = manifest["nodes"][f"model.kgather_{name}.kgather_{name}__ratings"]["description"]
        assert described.startswith("The release: one row per group and item.")
    needed = manifest["exposures"]["exposure.shop.recommendations"]["depends_on"]["nodes"]
    assert "model.kgather_partner.kgather_partner__ratings" in needed


@pytest.mark.usefixtures("outcomes")
def test_each_has_its_k_and_what_both_tell_together_is_counted(project: Path) -> None:
    release = project / "second_release.duckdb"
    assert query(release, "select min(group_size) >= 3 from main_inside.kgather_inside__groups") == [(True,)]
    assert query(release, "select min(group_size) >= 7 from main_partner.kgather_partner__groups") == [(True,)]
    pairs = query(
        project / "second_work.duckdb",
        "select release, beside, promised, measured, passed from main_anonymizing.kgather_releases",
    )
    told = {(one, other): (promised, passed) for one, other, promised, _, passed in pairs}
    assert told == dict.fromkeys([("inside", "partner"), ("inside", "club"), ("partner", "club")], (3, True))
    [measured] = [measured for one, other, _, measured, _ in pairs if (one, other) == ("inside", "partner")]
    [(counted,)] = query(
        project / "second_work.duckdb",
        """
        select min(n)
        from (
          select count(*) as n
          from main_anonymizing.int_kgather_inside__groups as one
          join main_anonymizing.int_kgather_partner__groups as other using (user_id)
          group by one.group_id, other.group_id
        )
        """,
    )
    assert counted == measured >= 3
    # Every group of the one is whole in the other.
    assert query(
        project / "second_work.duckdb",
        """
        select max(n)
        from (
          select count(distinct other.group_id) as n
          from main_anonymizing.int_kgather_inside__groups as one
          join main_anonymizing.int_kgather_partner__groups as other using (user_id)
          group by one.group_id
        )
        """,
    ) == [(1,)]


@pytest.mark.usefixtures("outcomes")
def test_all_marts_say_which_release_they_are_of(project: Path) -> None:
    release = project / "second_release.duckdb"
    for table, schema in query(release, "select table_name, schema_name from duckdb_tables()"):
        stamp = query(release, f"select distinct release_id, cast(released_on as varchar) from {schema}.{table}")
        [(release_id, day)] = stamp
        if schema == "main_partner":
            assert (release_id, day) == ("2026-01-31", "2026-01-31")
        else:
            assert release_id == "2"  # of the chain


def test_a_release_within_a_chain_leaves_out_whom_that_leaves_out(project: Path, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["third"].success
    for build, people in (("first", 40), ("second", 39), ("third", 59)):
        for name in RELEASES:
            members = f"select count(*) from main_{name}.kgather_{name}__members"
            assert query(project / f"{build}_release.duckdb", members) == [(people,)]
    waits = """
        select reason, count(*), count(distinct raw[:8])
        from main_anonymizing.int_kgather_{}__rejected_ratings
        group by reason
    """
    for name in RELEASES:
        assert query(project / "second_work.duckdb", waits.format(name)) == [("user waits for more newcomers", 9, 1)]


def test_a_release_within_a_chain_keeps_its_own_k_over_releases(project: Path, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["third"].success
    promise = (
        "select promised, measured, passed from main_club.kgather_club__audit where \"check\" like '%over releases%'"
    )
    for build in ("first", "second", "third"):
        [(promised, measured, passed)] = query(project / f"{build}_release.duckdb", promise)
        assert (promised, passed) == (7, True)
        assert measured >= 7
    # Who was together stays together, and newcomers are with newcomers.
    together = """
        select count(distinct lineage), bool_and(born = came)
        from (
          select *, min(release_number) over of_group as born, min(release_number) over of_user as came
          from main_anonymizing.kgather_club_history
          where state = 'present'
          window of_group as (partition by lineage), of_user as (partition by user_id)
        )
        group by user_id
    """
    assert set(query(project / "third_work.duckdb", together)) == {(1, True)}
    # Every group of the one is whole in the other, in each release.
    whole = """
        select max(n)
        from (
          select count(distinct other.lineage) as n
          from main_anonymizing.kgather_inside_history as one
          join main_anonymizing.kgather_club_history as other using (user_id, release_number)
          where one.state = 'present' and other.state = 'present'
          group by one.lineage
        )
    """
    assert query(project / "third_work.duckdb", whole) == [(1,)]


def test_a_snapshot_closes_rows_and_does_not_double_them(project: Path, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["again"].success, outcomes["again"].output
    for name, columns in (
        ("ratings", "group_id, item_id, rating"),
        ("groups", "group_id, group_size"),
    ):
        snapshot, mart = f"inside_{name}_over_time", f"main_inside.kgather_inside__{name}"
        first = query(project / "first_release.duckdb", f"select {columns} from {mart} order by all")
        # A second snapshot of the same release has changed nothing.
        assert query(project / "first_work.duckdb", f"select {columns} from {snapshot} order by all") == first
        now = query(project / "second_release.duckdb", f"select {columns} from {mart} order by all")
        still = f"select {columns} from {snapshot} where dbt_valid_to is null order by all"
        assert query(project / "second_work.duckdb", still) == now
    # One group lost one member, and all others are as they were, under the same ids.
    [(rows, closed)] = query(
        project / "second_work.duckdb", "select count(*), count(dbt_valid_to) from inside_groups_over_time"
    )
    assert rows == len(query(project / "second_release.duckdb", "from main_inside.kgather_inside__groups")) + 1
    assert closed == 1


def test_what_is_wrong_with_releases_is_said_in_sentences(outcomes: dict[str, Outcome]) -> None:
    assert not outcomes["wrong"].success
    for sentence in (
        "releases: inside: there is no setting colour. There are: scale, ",
        'releases: inside: within is the name of another release, not "nobody".',
        "releases: club has history and partner, which it is within, has none: its groups would not stay. Set history ",
        "releases: there is no package kgather_ghost. Run kgather dbt-release ghost, and name the folder that it ",
        "releases: Loud is no name of a release. Use small letters, digits and single _.",
    ):
        assert sentence in outcomes["wrong"].output
    assert not outcomes["twice_said"].success
    assert (
        "releases: partner says k, and the var kgather_k says it for all. Say it once." in outcomes["twice_said"].output
    )


def test_nobody_is_named(project: Path, outcomes: dict[str, Outcome]) -> None:
    told = "".join(outcome.output for outcome in outcomes.values())
    assert "cust-" not in told
    assert b"cust-" not in (project / "first_release.duckdb").read_bytes()
