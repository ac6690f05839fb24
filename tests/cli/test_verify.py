"""`kgather verify`: what is anonymous passes, what is not exits with 3 and says how far it is off."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import KgatherError
from kgather._publishing.publish import Published
from kgather._report import render

ROWS = pa.table(
    {
        "age": [30, 30, 30, 40, 40, None, None],
        "zip": ["a", "a", "a", "b", "b", "b", "b"],
        "illness": ["x", "y", "z", "x", "x", "y", "z"],
    }
)


def verify(*arguments: object) -> tuple[int, str]:
    """The exit code and what was printed."""
    result = CliRunner().invoke(app, ["verify", *map(str, arguments)])
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, str(result.exception)
    return result.exit_code, result.stdout


def smallest(target: object, *arguments: object) -> int:
    _, said = verify(target, "--json", *arguments)
    return json.loads(said)["checks"][0]["measured"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The same seven rows as Parquet, as CSV and as a table of a DuckDB file."""
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    with duckdb.connect(tmp_path / "rows.duckdb") as con:
        con.execute(f"create table people as from '{tmp_path}/rows.parquet'; create table other as select 1 as one")
        con.execute(f"copy people to '{tmp_path}/rows.csv'")
    return {
        "parquet": str(tmp_path / "rows.parquet"),
        "csv": str(tmp_path / "rows.csv"),
        "duckdb": f"{tmp_path}/rows.duckdb:people",
        "qualified": f"{tmp_path}/rows.duckdb:main.people",
    }


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb", "qualified"])
def test_null_is_a_value(files: dict[str, str], kind: str) -> None:
    # Classes by age and zip: three of (30, a), two of (40, b), two of (null, b).
    assert verify(files[kind], "--k", 2, "--columns", "age,zip")[0] == 0
    assert verify(files[kind], "--k", 3, "--columns", "age,zip")[0] == 3
    assert smallest(files[kind], "--k", 3, "--columns", "AGE, zip") == 2
    assert smallest(files[kind], "--k", 3, "--columns", "zip") == 3


def test_without_columns_all_of_them_count(files: dict[str, str]) -> None:
    assert smallest(files["parquet"], "--k", 2) == 1


def test_an_empty_relation_passes(tmp_path: Path) -> None:
    pq.write_table(ROWS.slice(0, 0), tmp_path / "none.parquet")
    assert verify(tmp_path / "none.parquet", "--k", 5)[0] == 0


def test_what_cannot_be_checked(files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for arguments, told in [
        ((files["csv"],), "--k"),
        ((files["csv"], "--k", 2, "--columns", "age,size"), "no column 'size'. There are: age, zip, illness"),
        ((tmp_path / "none.csv", "--k", 2), "none.csv: there is no such file"),
        ((tmp_path / "folder", "--k", 2), "no release"),
        ((tmp_path / "rows.duckdb", "--k", 2), "holds 2 tables: other, people. Say which"),
        ((f"{tmp_path}/rows.duckdb:pets", "--k", 2), "there is no table 'pets'. The tables are: other, people."),
    ]:
        code, said = verify(*arguments)
        assert (code, told in said) == (2, True), said


@pytest.fixture
def copy(released: Published, tmp_path: Path) -> Path:
    """A release to tamper with."""
    return Path(shutil.copytree(released.folder, tmp_path / "copy"))


CHANGED = "files that are not those of the checksums in audit.json: "


def failed(release: Path) -> set[str]:
    code, said = verify(release, "--json")
    checks = {check["check"] for check in json.loads(said)["checks"] if not check["passed"]}
    assert code == (3 if checks else 0)
    return checks


def rewrite(release: Path, name: str, query: str) -> None:
    """Replace a relation of a release, file and table, by what a query of it gives; checksums and page are right."""
    with duckdb.connect(release / "release.duckdb") as con:
        con.execute("set threads = 1")
        con.execute(f"create table changed as {query.format(f'kgather__{name}')}")
        con.execute(f"drop table kgather__{name}; alter table changed rename to kgather__{name}")
        con.execute(f"copy (from kgather__{name}) to '{release}/{name}.parquet' (format parquet)")
    audit = json.loads((release / "audit.json").read_text())
    for file in (f"{name}.parquet", "release.duckdb"):
        audit["files"][file] = hashlib.sha256((release / file).read_bytes()).hexdigest()
    (release / "audit.json").write_text(json.dumps(audit))
    (release / "report.html").write_text(render(audit), encoding="utf-8")


def test_a_release_keeps_what_it_promised(copy: Path) -> None:
    assert failed(copy) == set()
    assert verify(copy, "--k", 6)[0] == 3


def test_a_member_taken_away_is_found(copy: Path) -> None:
    members = pq.read_table(copy / "members.parquet")
    groups = pq.read_table(copy / "groups.parquet").to_pylist()
    smallest_group = min(groups, key=lambda group: group["group_size"])["group_id"]
    taken = members["group_id"].to_pylist().index(smallest_group)
    kept = [row for row in range(members.num_rows) if row != taken]
    pq.write_table(members.take(kept), copy / "members.parquet")
    assert failed(copy) == {
        "k-anonymity: users in the smallest group",
        "groups whose size is not the number of their members",
        "rows in which members.parquet and release.duckdb differ",
        CHANGED + "members.parquet",
    }


def test_files_that_disagree_are_found(copy: Path) -> None:
    with duckdb.connect(copy / "release.duckdb") as con:
        con.execute("update kgather__ratings set rating = 1 where rowid = 0")
    assert failed(copy) == {"rows in which ratings.parquet and release.duckdb differ", CHANGED + "release.duckdb"}


def test_rewriting_alone_is_no_failure(copy: Path) -> None:
    for name in ("ratings", "groups", "members"):
        rewrite(copy, name, "from {}")
    assert failed(copy) == set()


@pytest.mark.parametrize(
    ("name", "order"), [("members", "group_id, pseudonym"), ("groups", "group_size, hash(group_id)"),
                        ("ratings", "item_id, group_id"), ("ratings", "group_id, item_id desc")]
)  # fmt: skip
def test_rows_in_an_order_that_may_tell_something(copy: Path, name: str, order: str) -> None:
    rewrite(copy, name, "from {} order by " + order)
    assert failed(copy) == {f"rows that are not in the order of their random ids: {name}.parquet, kgather__{name}"}


@pytest.mark.parametrize(
    "number",
    [
        "place",
        "place + 9000000000000",
        "1000 * place + 5000000000000",
        "place << 40",
        "case when place <= 3 then place else old end",
        "case when place = 2 then 1 + min(old) over () else old end",
    ],
    ids=["counted", "far", "steps", "wide", "some", "two"],
)
def test_group_ids_that_are_counted(copy: Path, number: str) -> None:
    with duckdb.connect(copy / "release.duckdb") as con:
        con.execute(f"""
            create table numbers as
            select old, {number} as new
            from (select group_id as old, row_number() over (order by group_id) as place from kgather__groups)
        """)
    for name, order in (("groups", "new"), ("members", "pseudonym"), ("ratings", "new, item_id")):
        rewrite(
            copy,
            name,
            "select {0}.* replace (new as group_id) from {0} join numbers on old = group_id order by " + order,
        )
    with duckdb.connect(copy / "release.duckdb") as con:
        con.execute("drop table numbers")
    rewrite(copy, "groups", "from {}")
    assert failed(copy) == {"group ids that do not look drawn at random"}


@pytest.mark.parametrize(
    "name",
    [
        "cast(row_number() over (order by pseudonym) as varchar)",
        "'user-' || pseudonym",
        "md5(pseudonym)",
        "lpad(translate(cast(row_number() over () as varchar), '0123456789', 'bcdfghjklm'), 32, 'b')",
        "left(pseudonym, 16) || 'bcdfghjklmnpqrst'",
        "if(row_number() over (order by pseudonym) = 7, null, pseudonym)",
    ],
    ids=["numbers", "prefix", "digest", "counted", "half", "null"],
)
def test_pseudonyms_that_are_made_from_something(copy: Path, name: str) -> None:
    rewrite(copy, "members", f"select {name} as pseudonym, group_id from {{}} order by 1 nulls first")
    assert "pseudonyms that do not look drawn at random" in failed(copy)


def test_uuids_are_drawn_too(copy: Path) -> None:
    rewrite(copy, "members", "select cast(uuid() as varchar) as pseudonym, group_id from {} order by 1")
    assert failed(copy) == set()


def test_what_a_release_does_not_have(copy: Path) -> None:
    (copy / "report.html").unlink()
    assert failed(copy) == set()
    (copy / "work.duckdb").write_text("secret")
    (copy / ".hidden").mkdir()
    assert failed(copy) == {"files that a release does not have: .hidden, work.duckdb"}
    (copy / "work.duckdb").unlink()
    (copy / ".hidden").rmdir()
    with duckdb.connect(copy / "release.duckdb") as con:
        con.execute(
            "create table int_kgather__groups as select 'ada' as user_id; create schema s; create table s.t (i int);"
            "create table kgather__staged as select 'ada' as user_id; create macro who() as 'ada';"
            "comment on table kgather__groups is 'ada'"
        )
    assert failed(copy) == {
        "tables of release.duckdb that a release does not have: comment on main.kgather__groups, macro main.who, "
        "main.int_kgather__groups, main.kgather__staged, s.t, schema s",
        CHANGED + "release.duckdb",
    }


@pytest.mark.parametrize("name", ["members", "groups", "ratings"])
def test_columns_that_were_left_over(copy: Path, name: str) -> None:
    rewrite(copy, name, 'select *, 1 as "user id" from {}')
    assert failed(copy) == {f"columns that a release does not have: {name}.parquet: user id, kgather__{name}: user id"}


def test_a_column_in_the_file_alone(copy: Path) -> None:
    members = pq.read_table(copy / "members.parquet")
    pq.write_table(members.append_column("city", [["x"] * members.num_rows]), copy / "members.parquet")
    assert failed(copy) == {"columns that a release does not have: members.parquet: city", CHANGED + "members.parquet"}


def test_checksums(copy: Path) -> None:
    audit = json.loads((copy / "audit.json").read_text())
    del audit["files"]["groups.parquet"]
    audit["files"]["../secret"] = audit["files"]["gone.parquet"] = "0"
    (copy / "audit.json").write_text(json.dumps(audit))
    assert failed(copy) == {CHANGED + "groups.parquet, ../secret, gone.parquet", OTHER_PAGE}


SAID = "what audit.json says of the release and its tables do not: "
OTHER_PAGE = "pages that are not that of audit.json"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("counts", "groups"), 1, "counts.groups"),
        (("counts", "members"), None, "counts.members"),
        (("counts", "largest_group"), "7", "counts.largest_group"),
        (("counts",), [], "counts.groups, counts.largest_group, counts.members"),
        (("group_sizes", 0, "groups"), 1000, "group_sizes"),
        (("group_sizes",), {"size": [5]}, "group_sizes"),
        (("group_sizes",), [5, [5, 1], {"size": {}, "groups": []}], "group_sizes"),
        (("checks", 0, "measured"), 50, "checks"),
        (("checks", 0, "measured"), 10**400, "checks"),
        (("checks", 0, "passed"), False, "checks, passed"),
        (("checks",), None, "checks"),
        (("metrics", 0, "value"), 0.0001, "metrics"),
        (("metrics", 0, "metric"), {"a": 1}, "metrics"),
        (("passed",), "yes", "passed"),
    ],
    ids=str,
)
def test_what_the_audit_says_of_the_tables(copy: Path, path: tuple[Any, ...], value: object, told: str) -> None:
    audit = json.loads((copy / "audit.json").read_text())
    place = audit
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (copy / "audit.json").write_text(json.dumps(audit))
    found = failed(copy)
    assert SAID + told in found
    assert found - {SAID + told} <= {OTHER_PAGE}


def test_what_the_audit_says_of_attackers_is_not_to_be_changed_alone(copy: Path) -> None:
    audit = json.loads((copy / "audit.json").read_text())
    audit["attacks"]["best"][0]["value"] = 0.01
    (copy / "audit.json").write_text(json.dumps(audit))
    assert failed(copy) == {OTHER_PAGE}


@pytest.mark.parametrize(
    "statement",
    [
        "drop table kgather__audit",
        "update kgather__audit set measured = measured + 1",
        "alter table kgather__audit drop column promised",
        "insert into kgather__audit from kgather__audit limit 1",
        "drop table kgather__audit; create view kgather__audit as select error('ada') as name",
    ],
)
def test_checks_that_the_database_says_otherwise(copy: Path, statement: str) -> None:
    with duckdb.connect(copy / "release.duckdb") as con:
        con.execute(statement)
    found = failed(copy)
    assert SAID + "checks" in found
    assert "ada" not in str(found)


@pytest.mark.parametrize("page", [b"a page of somebody else", b"\xff", None])
def test_the_page_is_that_of_the_audit(copy: Path, page: bytes | None) -> None:
    written = (copy / "report.html").read_bytes()
    (copy / "report.html").write_bytes(
        written.replace(b"</body>", b"Ada is in group 7.</body>") if page is None else page
    )
    assert failed(copy) == {OTHER_PAGE}


def test_a_file_without_its_columns_is_no_release(copy: Path) -> None:
    pq.write_table(pq.read_table(copy / "members.parquet").drop_columns(["group_id"]), copy / "members.parquet")
    code, said = verify(copy)
    assert (code, "members.parquet has no group_id" in said) == (2, True)
    (copy / "members.parquet").write_text("damaged")
    assert verify(copy)[0] == 2


def test_a_releases_models_are_those_of_its_files(released: Published) -> None:
    code, said = verify(released.folder, "--columns", "a", "--l", 2)
    assert (code, "checked as a whole, without --columns, --l." in said) == (2, True)
    assert verify(released.folder / "members.parquet", "--k", 5, "--columns", "group_id")[0] == 0
    assert verify(released.folder / "members.parquet", "--k", 5, "--group-column", "group_id",
                  "--user-column", "pseudonym")[0] == 0  # fmt: skip


def test_a_missing_file_is_no_release(copy: Path) -> None:
    (copy / "members.parquet").unlink()
    code, said = verify(copy)
    assert code == 2
    assert "members.parquet is missing" in said


# Models of any relation ------------------------------------------------------------------------------------------


def told(target: object, *arguments: object) -> dict[str, tuple[object, object, bool]]:
    _, said = verify(target, "--json", *arguments)
    return {
        check["check"]: (check["promised"], check["measured"], check["passed"]) for check in json.loads(said)["checks"]
    }


def test_every_model_is_a_row(files: dict[str, str]) -> None:
    # By zip: illnesses x, y, z of a; x 2, y 1, z 1 of b. Of all: x 3/7, y 2/7, z 2/7.
    by_zip = (files["parquet"], "--columns", "zip", "--sensitive", "illness")
    assert told(*by_zip, "--k", 3, "--l", 3, "--t", 0.1, "--alpha", 0.5) == {
        "k-anonymity: rows in the smallest equivalence class": (3, 3, True),
        "distinct l-diversity of illness: l of the least diverse class": (3, 3, True),
        "t-closeness of illness: t of the class farthest from all rows": (0.1, pytest.approx(2 / 21), True),
        "alpha of illness: share of one value in a class": (0.5, 0.5, True),
    }
    assert verify(*by_zip, "--l", 3)[0] == 0
    assert verify(*by_zip, "--l", 4)[0] == 3
    assert verify(*by_zip, "--t", 0.09)[0] == 3
    assert verify(*by_zip, "--alpha", 0.49)[0] == 3
    assert verify(*by_zip, "--l", 2.8, "--diversity", "entropy")[0] == 0
    assert verify(*by_zip, "--l", 2.9, "--diversity", "entropy")[0] == 3
    assert verify(*by_zip, "--l", 2, "--diversity", "recursive", "--c", 1.1)[0] == 0
    assert verify(*by_zip, "--l", 2, "--diversity", "recursive", "--c", 1)[0] == 3


def test_the_order_of_sensitive_values(files: dict[str, str]) -> None:
    by_zip = (files["csv"], "--columns", "zip", "--sensitive", "age")
    name = "t-closeness of age: t of the class farthest from all rows"
    # 30 of a; 40 and null of b. Of all: 30 3/7, 40 2/7, null 2/7, the last in the order.
    assert told(*by_zip, "--t", 1)[name][1] == pytest.approx((4 / 7 + 2 / 7) / 2)
    assert told(*by_zip, "--t", 1, "--ordered") == told(*by_zip, "--t", 1)
    assert told(*by_zip, "--t", 1, "--unordered")[name][1] == pytest.approx(4 / 7)


def test_quasi_identifiers_are_all_columns_but_the_sensitive(files: dict[str, str]) -> None:
    assert told(files["csv"], "--k", 2, "--sensitive", "illness", "--l", 2) == {
        "k-anonymity: rows in the smallest equivalence class": (2, 2, True),
        "distinct l-diversity of illness: l of the least diverse class": (2, 1, False),
    }


def test_risk_conditions_and_groups(files: dict[str, str]) -> None:
    one, two = (f"conditions on up to {m} columns that match fewer than 2 rows" for m in (1, 2))
    assert told(files["csv"], "--k", 2, "--risk-conditions", 1)[one] == (0, 0, True)
    assert told(files["csv"], "--k", 2, "--risk-conditions", 2)[two][2] is False
    assert told(files["csv"], "--k", 3, "--group-column", "zip") == {"rows in the smallest group": (3, 3, True)}
    assert told(files["csv"], "--k", 3, "--group-column", "zip", "--user-column", "age") == {
        "users in the smallest group": (3, 1, False)
    }


def test_an_empty_relation_passes_every_model(tmp_path: Path) -> None:
    empty = tmp_path / "none.parquet"
    pq.write_table(ROWS.slice(0, 0), empty)
    checks = told(empty, "--k", 5, "--columns", "age", "--sensitive", "zip,illness", "--l", 2, "--t", 0.1,
                  "--alpha", 0.1, "--risk-conditions", 1, "--group-column", "age")  # fmt: skip
    assert len(checks) == 9
    assert all(passed for _, _, passed in checks.values())


def test_measures_are_printed_to_be_read(files: dict[str, str]) -> None:
    _, said = verify(files["csv"], "--columns", "zip", "--sensitive", "illness", "--t", 0.05, "--alpha", 0.5)
    assert "0.05  0.0952381  NOT KEPT" in said
    assert "0.5        0.5  ok" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--l 2", "--l goes with one of --sensitive, --sensitive-items and --b"),
        ("--k 2 --sensitive illness", "--sensitive goes with --l, --t or --alpha"),
        ("--t 0.1", "--t and --alpha need --sensitive"),
        ("--alpha 0.1", "--t and --alpha need --sensitive"),
        ("--l 2 --sensitive illness --columns Illness,zip", "a column is sensitive or a quasi-identifier, not both"),
        ("--l 2 --sensitive illness --diversity fuzzy", "--diversity is distinct, entropy or recursive, not fuzzy"),
        ("--l 2.5 --sensitive illness", "--l must be a whole number, not 2.5"),
        ("--l 0 --sensitive illness", "--l must be at least 1, not 0"),
        ("--l 2 --sensitive illness --diversity recursive", "--c goes with --diversity recursive, which needs it"),
        ("--l 2 --sensitive illness --c 2", "--c goes with --diversity recursive, which needs it"),
        ("--k 2 --diversity entropy", "--diversity and --c go with --sensitive and --l"),
        ("--t 1.5 --sensitive illness", "--t must be at least 0 and at most 1, not 1.5"),
        ("--alpha 0 --sensitive illness", "--alpha must be more than 0 and at most 1, not 0"),
        ("--l 2 --sensitive illness --ordered", "--ordered and --unordered go with --t"),
        ("--l 2 --sensitive age,zip,illness", "all columns are sensitive"),
        ("--risk-conditions 2", "say what to check for with --k"),
        (
            "--l 2 --sensitive illness --risk-conditions 2",
            "--risk-conditions, --m, --epsilon and --group-column need --k",
        ),
        ("--k 2 --risk-conditions 0", "--risk-conditions must be at least 1, not 0"),
        ("--l 2 --sensitive illness --m 2", "--risk-conditions, --m, --epsilon and --group-column need --k"),
        ("--k 2 --item-column zip", "--item-column and --rating-column go with --m, --epsilon or --b"),
        ("--k 2 --user-column zip", "--user-column goes with --group-column, --m, --epsilon or --b"),
        ("--k 2 --width 4", "--width goes with --epsilon"),
        ("--b 2", "--b needs --l"),
        ("--k 2 --sensitive-items 1 --l 2", "--sensitive-items goes with --epsilon and --l"),
        ("--k 2 --m 2", "there is no column user_id. Name it with --user-column."),
        ("--k 2 --m 2 --user-column zip", "there is no column item_id. Name it with --item-column."),
        ("--k 2 --epsilon 1 --user-column zip --item-column illness", "there is no column rating. Name it with"),
        (
            "--k 2 --epsilon 1 --user-column age --item-column zip --rating-column illness",
            "user, item or group is null",
        ),
        (
            "--k 2 --epsilon 1 --user-column zip --item-column illness --rating-column zip --group-column age",
            "user, item or group is null",
        ),
        ("--k 2 --epsilon 1 --user-column zip --item-column illness --rating-column zip", "are VARCHAR, not numbers"),
        ("--k 2 --group-column size", "no column 'size'"),
    ],
)
def test_options_that_do_not_go_together(files: dict[str, str], arguments: str, message: str) -> None:
    code, said = verify(files["csv"], *arguments.split())
    assert (code, message in said) == (2, True), said


def test_an_item_that_is_null(files: dict[str, str]) -> None:
    code, said = verify(files["parquet"], "--k", 2, "--m", 1, "--user-column", "zip", "--item-column", "age")
    assert (code, "user, item or group is null" in said) == (2, True), said


# Ratings ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def ratings(tmp_path: Path) -> str:
    """Four users in two groups; ann and bob rated 1 and 2, cy and di 2 and 3; item 9 is sensitive."""
    (tmp_path / "ratings.csv").write_text(
        "user_id,item_id,rating,group_id\n"
        "ann,1,5,g\nann,2,3,g\nann,9,1,g\nbob,1,4,g\nbob,2,3,g\nbob,9,5,g\n"
        "cy,2,1,h\ncy,3,2,h\ncy,9,3,h\ndi,2,2,h\ndi,3,2,h\ndi,9,5,h\ndi,7,,h\n"
    )
    return str(tmp_path / "ratings.csv")


def test_item_sets(ratings: str) -> None:
    name = "k^m-anonymity: users with the set of up to 2 items that the fewest have"
    # A null is no rating: nobody has item 7.
    assert told(ratings, "--k", 2, "--m", 2) == {name: (2, 2, True)}
    assert told(ratings, "--k", 3, "--m", 2) == {name: (3, 2, False)}


def test_distances(ratings: str) -> None:
    near = "(k, epsilon)-anonymity: users within {} of each user, counted up to 2"
    spread = "(k, epsilon, l)-anonymity: least standard deviation among them"
    assert told(ratings, "--k", 2, "--epsilon", 1, "--sensitive-items", "9", "--l", 1) == {
        near.format(1): (2, 2, True),
        spread: (1, 1, True),
    }
    assert verify(ratings, "--k", 2, "--epsilon", 1, "--sensitive-items", "9", "--l", 1.1)[0] == 3
    # The sensitive item is an item like any other: ann and bob are 4 apart on it.
    assert told(ratings, "--k", 2, "--epsilon", 1) == {near.format(1): (2, 1, False)}
    assert told(ratings, "--k", 2, "--epsilon", 0.5, "--sensitive-items", "9", "--l", 0)[near.format(0.5)][2] is False
    code, said = verify(ratings, "--k", 2, "--epsilon", 1, "--sensitive-items", "9,8", "--l", 1)
    assert (code, "nobody rated '8', which --sensitive-items names" in said) == (2, True)


def test_groups_that_show_items(ratings: str) -> None:
    name = "(b, l)-diversity: groups that show the set of up to {} items which the fewest show"
    # Item 1 is shown by group g alone.
    assert told(ratings, "--b", 1, "--l", 1) == {name.format(1): (1, 1, True)}
    assert told(ratings, "--b", 2, "--l", 2) == {name.format(2): (2, 1, False)}


def test_a_pair_that_occurs_twice(ratings: str) -> None:
    with Path(ratings).open("a") as file:
        file.write("ann,1,4,g\n")
    assert verify(ratings, "--k", 2, "--epsilon", 1)[0] == 2
    assert verify(ratings, "--k", 2, "--m", 1)[0] == 0


def test_no_ratings_pass(tmp_path: Path) -> None:
    empty = tmp_path / "none.parquet"
    pq.write_table(pa.table({"user_id": pa.array([], pa.int64()), "item_id": pa.array([], pa.int64()),
                             "rating": pa.array([], pa.float64())}), empty)  # fmt: skip
    arguments = ("--k", 2, "--m", 2, "--epsilon", 1, "--sensitive-items", "9", "--l", 1)
    assert all(passed for _, _, passed in told(empty, *arguments).values())
    assert verify(empty, "--b", 2, "--l", 2)[0] == 0
