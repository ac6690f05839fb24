"""What `kgather verify` finds in releases of tables that were changed by somebody who made all checksums fit."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import renewed

import kgather
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._settings.table import table_settings
from kgather._tables.release import publish_table
from kgather._verify.cells import false_cells, read_otherwise

Change = Callable[[dict[str, Any]], object]


def published(folder: Path, rows: list[dict[str, Any]], **settings: Any) -> Path:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "people.parquet")
    publish_table(str(folder / "people.parquet"), folder / "release", table_settings(settings), LoadOptions())
    return folder / "release"


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release in which everybody has one row."""
    rows = [
        {"age": 20 + i * 7 % 60, "zip": f"{10000 + i * 37 % 900}", "ill": "xyzw"[i * 5 % 4], "team": i % 3}
        for i in range(400)
    ]
    return published(
        tmp_path_factory.mktemp("single"), rows, k=8, quasi_identifiers={"age": {"step": 5}, "zip": {"kind": "prefix"}},
        sensitive={"ill": {"l": 2, "t": 0.5}}, others=["team"], suppress=0.1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release in which people have several rows."""
    rows = [
        {"id": i, "age": 20 + i % 40, "ward": "ab"[i % 2], "ill": "rstuvwxyz"[(i + visit) % 9]}
        for i in range(150)
        for visit in range(3)
    ]
    return published(
        tmp_path_factory.mktemp("several"), rows, k=5, unit="id", rows_per_person=4,
        quasi_identifiers={"age": {"step": 5}, "ward": {}}, sensitive={"ill": {"l": 1.2, "alpha": 0.9}},
    )  # fmt: skip


@pytest.fixture
def copied(single: Path, several: Path, tmp_path: Path) -> Callable[[str], Path]:
    def copy(which: str) -> Path:
        shutil.copytree({"single": single, "several": several}[which], tmp_path / "release")
        return tmp_path / "release"

    return copy


def failed(folder: Path) -> str:
    """The checks that a release fails, as one text."""
    return "; ".join(check.check for check in kgather.verify(folder).failed)


def in_both(folder: Path, change: Callable[[dict[str, Any]], object], wanted: str) -> None:
    """Change a check where audit.json has it and where the database has it."""
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    [check] = [each for each in audit["checks"] if wanted in each["check"]]
    change(check)
    with duckdb.connect(folder / "release.duckdb") as con:
        con.execute(
            'update kgather__audit set promised = ?, measured = ?, passed = ? where "check" = ?',
            [check["promised"], check["measured"], check["passed"], check["check"]],
        )
    renewed(folder, lambda said: said.update(checks=audit["checks"]))


def relabelled(folder: Path, column: str, cell: str) -> None:
    """Give a whole class another cell, in both files."""
    renewed_rows = f"from '{folder}/table.parquet'"
    with duckdb.connect() as con:
        con.execute(f"create table t as {renewed_rows}")
        con.execute(f"update t set {column} = ? where {column} = (select min({column}) from t)", [cell])
        con.execute(f"copy (from t order by all) to '{folder}/table.parquet' (format parquet, compression zstd)")
        con.execute(f"attach '{folder}/release.duckdb' as r")
        con.execute("create or replace table r.kgather__table as from t order by all")
    renewed(folder)


def test_what_was_not_changed_passes(copied: Callable[[str], Path]) -> None:
    for which in ("single", "several"):
        folder = copied(which)
        renewed(folder)
        assert kgather.verify(folder)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("wanted", "key", "value"),
    [
        ("same set of classes", "measured", 1_000_000),
        ("people in the smallest class", "measured", 1_000_000),
        ("l-diversity of ill, counted in people", "measured", 1000.0),
        ("largest share of the people", "measured", 0.0),
        ("k-anonymity", "measured", 1000),
        ("k-anonymity", "promised", 100),
        ("k-anonymity", "passed", False),
        ("alpha of ill", "measured", 0.1),
    ],
)
def test_numbers_that_rows_do_not_allow(copied: Callable[[str], Path], wanted: str, key: str, value: Any) -> None:
    folder = copied("several")
    in_both(folder, lambda check: check.update({key: value}), wanted)
    assert failed(folder)


@pytest.mark.parametrize("which", ["single", "several"])
def test_checks_that_are_missing_or_of_another_name(copied: Callable[[str], Path], which: str) -> None:
    folder = copied(which)
    with duckdb.connect(folder / "release.duckdb") as con:
        con.execute("delete from kgather__audit")
    renewed(folder, lambda said: said.update(checks=[]))
    assert "checks of audit.json that are not those of its promises" in failed(folder)
    shutil.rmtree(folder)
    folder = copied(which)
    with duckdb.connect(folder / "release.duckdb") as con:
        con.execute("insert into kgather__audit values ('Anna Meier', 0, 0, true)")
    renewed(
        folder,
        lambda said: said["checks"].append({"check": "Anna Meier", "promised": 0, "measured": 0, "passed": True}),
    )
    assert "checks of audit.json that are not those of its promises" in failed(folder)


CHANGES: dict[str, tuple[Change, str]] = {
    "key": (lambda said: said.update(patients=["Anna Meier"]), "patients"),
    "not promised": (lambda said: said.update(not_promised=["Anna Meier"]), "not_promised"),
    "not passed": (lambda said: said.update(passed=False), "passed"),
    "version": (lambda said: said.update(kgather_version="Anna Meier"), "kgather_version"),
    "format": (lambda said: said["read"].update(format="Anna Meier"), "read.format"),
    "rows read": (lambda said: said["read"].update(rows=10), "of which so many were read"),
    "read as": (lambda said: said["report"]["columns"]["age"].update(read="Anna Meier"), "report.columns.age.read"),
    "read otherwise": (
        lambda said: said["report"]["columns"]["age"].update(read="number with cuts every 1"),
        "report.columns.age.read",
    ),
    "costs": (lambda said: said["report"]["costs"].update(anna=1), "report.costs.anna"),
    "rows": (lambda said: said["report"].update(rows=100_000), "report.rows"),
    "classes": (lambda said: said["report"].update(classes=1), "report.classes"),
    "suppressed": (lambda said: said["report"].update(suppressed=80), "report.suppressed"),
    "loss": (lambda said: said["report"].update(loss=0.0), "report.loss"),
    "discernibility": (lambda said: said["report"]["costs"].update(discernibility=1.0), "costs.discernibility"),
    "risk": (lambda said: said["risks"].update(prosecutor=0.0001), "risks.prosecutor"),
    "background": (lambda said: said["risks"]["background"]["ill"].update(one_known=0.999), "background.ill.one_known"),
    "no risk": (lambda said: said["risks"].pop("marketer"), "risks.marketer"),
    "minimality": (lambda said: said["risks"].update(minimality={"anna": {}}), "risks.minimality.anna"),
    "sizes": (lambda said: said.update(class_sizes=[["Anna", 1]]), "class_sizes"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_an_audit_does_not_say(copied: Callable[[str], Path], name: str) -> None:
    folder = copied("single")
    change, told = CHANGES[name]
    renewed(folder, change, page=False)
    assert told in failed(folder)


def test_reports_of_people_with_several_rows(copied: Callable[[str], Path]) -> None:
    folder = copied("several")
    for change, told in (
        (lambda said: said["report"]["people"].update(in_set=99), "report.people.in_set"),
        (lambda said: said["report"]["people"].update(linked=0.9), "report.people.linked"),
        (lambda said: said["report"]["people"]["sensitive"]["ill"].update(l=9.0), "report.people.sensitive.ill"),
        (lambda said: said["risks"].update(prosecutor=0.001), "risks.prosecutor"),
    ):
        before = (folder / "audit.json").read_bytes()
        renewed(folder, change)
        assert told in failed(folder)
        (folder / "audit.json").write_bytes(before)


def test_a_key_that_stands_twice(copied: Callable[[str], Path]) -> None:
    folder = copied("single")
    text = (folder / "audit.json").read_text(encoding="utf-8")
    (folder / "audit.json").write_text('{"passed": "Anna Meier",' + text[1:], encoding="utf-8")
    assert "lacks: passed" in failed(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(parameters=None),
        lambda said: said.update(parameters=[]),
        lambda said: said["parameters"].update(sensitive=["ill"]),
        lambda said: said["parameters"].update(others=None),
        lambda said: said["parameters"].update(others="team"),
        lambda said: said["parameters"].update(quasi_identifiers="age"),
        lambda said: said["parameters"].update(quasi_identifiers={"age": None}),
        lambda said: said["parameters"].update(quasi_identifiers={}),
        lambda said: said["parameters"].update(k=float("inf")),
        lambda said: said["parameters"].update(k=0),
        lambda said: said["parameters"].update(k="10"),
        lambda said: said["parameters"].update(k=True),
        lambda said: said["parameters"].update(rows_per_person="four"),
        lambda said: said["parameters"].update(rows_per_person=0),
        lambda said: said["parameters"].update(note="Anna Meier"),
        lambda said: said["parameters"].update(within="Anna Meier", unit="id"),
        lambda said: said["parameters"].update(beside="Anna Meier", unit="id"),
        lambda said: said["parameters"].update(population="Anna Meier"),
        lambda said: said["parameters"]["sensitive"]["ill"].update(hierarchy=5),
        lambda said: said["parameters"]["sensitive"]["ill"].update(hierarchy=[["x", "y"]]),
        lambda said: said["parameters"]["sensitive"]["ill"].update(l="two"),
        lambda said: said["parameters"]["sensitive"]["ill"].update(diversity="odd"),
    ],
)
def test_a_damaged_audit_is_refused_with_what_is_wrong(copied: Callable[[str], Path], change: Change) -> None:
    folder = copied("single")
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    change(audit)
    (folder / "audit.json").write_text(json.dumps(audit), encoding="utf-8")
    with pytest.raises(InputError) as error:
        kgather.verify(folder)
    assert "Anna" not in str(error.value)
    # With a k of one's own, too.
    with pytest.raises(InputError):
        kgather.verify(folder, k=2)


def test_an_audit_without_end_is_refused(copied: Callable[[str], Path]) -> None:
    folder = copied("single")
    (folder / "audit.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InputError):
        kgather.verify(folder)


def test_the_page_is_that_of_the_audit(copied: Callable[[str], Path]) -> None:
    folder = copied("single")
    page = (folder / "report.html").read_text(encoding="utf-8")
    (folder / "report.html").write_text("Anna Meier: hiv", encoding="utf-8")
    assert "checksums in audit.json: report.html" in failed(folder)
    (folder / "report.html").write_text(page.replace("</body>", "<p>Anna Meier</p></body>"), encoding="utf-8")
    renewed(folder, page=False)
    assert failed(folder) == "pages that are not that of audit.json"
    (folder / "report.html").unlink()
    assert "checksums in audit.json: report.html" in failed(folder)


def test_plots_are_compared_by_their_words(copied: Callable[[str], Path]) -> None:
    folder = copied("single")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    # As another version of matplotlib would draw it.
    moved = re.sub(r' d="M [^"]*"', ' d="M 1.5 2 L 3 4"', page)
    assert moved != page
    (folder / "report.html").write_text(moved, encoding="utf-8")
    renewed(folder, page=False)
    assert kgather.verify(folder)
    (folder / "report.html").write_text(page.replace("</svg>", "<text>Anna</text></svg>"), encoding="utf-8")
    renewed(folder, page=False)
    assert failed(folder) == "pages that are not that of audit.json"


def test_what_a_parquet_file_hides(copied: Callable[[str], Path]) -> None:
    folder = copied("single")
    file = folder / "table.parquet"
    table, before = pq.read_table(file), file.read_bytes()
    pq.write_table(table.replace_schema_metadata({"patients": "Anna Meier"}), file)
    renewed(folder)
    assert "table.parquet: metadata" in failed(folder)
    field = table.schema.field(0).with_metadata({"n": "Anna Meier"})
    pq.write_table(table.cast(table.schema.set(0, field)), file)
    renewed(folder)
    assert "table.parquet: metadata" in failed(folder)
    file.write_bytes(before[:4] + b"Anna Meier" + before[4:])
    renewed(folder)
    with pytest.raises(InputError, match="cannot be read"):
        kgather.verify(folder)
    end = len(before) - 8 - int.from_bytes(before[-8:-4], "little")
    file.write_bytes(before[:end] + b"Anna Meier" + before[end:])
    renewed(folder)
    assert "table.parquet: bytes that are of no column" in failed(folder)
    low = table["zip"].to_pylist()[0].encode()
    place = before.rindex(low)  # the last time is in the statistics at the end of the file
    file.write_bytes(before[:place] + b"Anna Meier"[: len(low)] + before[place + len(low) :])
    renewed(folder)
    assert "statistics of zip" in failed(folder)


def test_what_a_database_hides_in_free_blocks(copied: Callable[[str], Path]) -> None:
    folder = copied("single")
    with duckdb.connect(folder / "release.duckdb") as con:
        con.execute("create table gone as select 'Anna Meier ' || i as name from range(100000) as r (i); checkpoint")
        con.execute("drop table gone")
    renewed(folder)
    assert "release.duckdb: " in failed(folder)
    assert "free blocks" in failed(folder)
    shutil.rmtree(folder)
    folder = copied("single")
    with (folder / "release.duckdb").open("ab") as file:
        file.write(b"Anna Meier" * 1000)
    renewed(folder)
    assert "release.duckdb: bytes beyond its blocks" in failed(folder)


@pytest.mark.parametrize(
    "cell", ["Anna Meier", "[21, 23)", "21", "< 22", "[20, 25]", "[25, 20)", "[020, 25)", "[ 20, 25)"]
)
def test_a_class_with_a_cell_that_its_column_cannot_show(copied: Callable[[str], Path], cell: str) -> None:
    folder = copied("single")
    relabelled(folder, "age", cell)
    assert "rows with a cell that its column cannot show: age" in failed(folder)


FORMS: list[tuple[dict[str, Any], str, list[str], list[str]]] = [
    (
        {"step": 0.1}, "number with cuts every 0.1", ["[0.1, 0.3)", "< 0.7", ">= -1.2", "*", "3"],
        ["[0.15, 0.3)", "[0.30000000000000004, 1)", "[0.1, 0.1)", "<= 0.7", "0.1", "nan", "[0.1, inf)"],
    ),
    ({"step": 1}, "number with cuts every 1", ["21", "[21, 23)"], ["21.5", "021", "[21.5, 23)"]),
    (
        {"cuts": [0, 18, 65]}, "number with cuts of its own", ["< 0", "[0, 18)", "[0, 65)", ">= 65"],
        ["[0, 17)", "0", "18", ">= 66"],
    ),
    ({}, "number with cuts every 5, found by the spread of the values", ["[5, 10)"], ["[5, 11)"]),
    ({"step": 5, "show": "tight"}, "number with cuts every 5", ["[21, 24]", "[21, 25)", ">= 21", "<= 21", "21"], ["a"]),
    ({"step": 5, "show": "mean"}, "number with cuts every 5", ["21.5", "[20, 25)"], ["[21.5, 22)", "Anna"]),
    (
        {"step": "month"}, "date with cuts every month", ["[2024-01-01, 2024-03-01)", "< 0999-01-01"],
        ["[2024-01-02, 2024-03-01)", "2024-01-01", "[2024-1-01, 2024-03-01)", "[2024-03-01, 2024-01-01)"],
    ),
    ({"step": "week"}, "date with cuts every week", ["[2024-01-01, 2024-01-08)"], ["[2024-01-02, 2024-01-08)"]),
    ({"step": "decade"}, "date with cuts every decade", ["[2020-01-01, 2030-01-01)"], ["[2021-01-01, 2030-01-01)"]),
    ({"step": "day"}, "date with cuts every day", ["2024-01-02"], ["2024-01-02 10:00", "2024-02-30"]),
    (
        {"step": "hour"}, "date with cuts every hour", ["[2024-01-01 08:00, 2024-01-01 09:00)"],
        ["[2024-01-01 08:30, 2024-01-01 09:00)", "[2024-01-01, 2024-01-02)"],
    ),
    (
        {"step": 30}, "time with cuts every 30 minutes", ["[08:00, 08:30)", "[24:00, 24:01)"],
        ["[08:10, 08:30)", "[08:00, 25:00)", "08:00"],
    ),
    (
        {"order": ["a", "b to", "c"]}, "ordered category of 3 values", ["a", "b to", "a to b to", "a to c"],
        ["c to a", "d", "{a, c}"],
    ),
    ({"order": ["a", "b"], "show": "set"}, "ordered category of 2 values", ["{a, b}"], ["{a, d}"]),
    (
        {"hierarchy": {"Europe": ["Greece"], "Asia": ["India"]}}, "category with a hierarchy of 3 levels",
        ["Greece", "Europe", "*"], ["Anna", "{Greece, India}"],
    ),
    ({"kind": "prefix"}, "text, shown by its beginning", ["02**", "Anna"], []),
    ({}, "nothing but nulls", [], ["Anna"]),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "read", "fit", "unfit"), FORMS)
def test_forms_of_cells(asked: dict[str, Any], read: str, fit: list[str], unfit: list[str]) -> None:
    settings = table_settings({"k": 2, "quasi_identifiers": {"c": asked}})
    assert read_otherwise(settings, {"c": read}) == []
    with duckdb.connect() as con:
        for cells, found in ((fit, 0), (unfit, len(unfit))):
            con.register("shown", pa.table({"c": pa.array([*cells, None], pa.string())}))
            assert false_cells(con, "shown", settings, {"c": read})[0] == found, cells


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ({"step": 5}, "number with cuts every 6"),
        ({"step": 5}, "category without a hierarchy: a value or nothing"),
        ({"step": 5}, "number with cuts every 5, found by the spread of the values"),
        ({}, "number with cuts every 5"),
        ({}, "number with cuts of its own"),
        ({"cuts": [1, 2]}, "number with cuts every 5"),
        ({"kind": "date"}, "number with cuts every 5, found by the spread of the values"),
        ({"order": ["a", "b"]}, "ordered category of 3 values"),
        ({"mask": ["##", "#*"]}, "text, shown through 3 masks"),
        ({"keep": 2}, "category without a hierarchy: a value or nothing"),
        ({"hierarchy": "tree.csv"}, "category, grouped by frequency"),
        ({"step": 5}, "nothing but nulls"),
        ({}, "number with cuts every nan, found by the spread of the values"),
        ({}, ""),
    ],
)
def test_a_column_that_was_read_otherwise_than_asked(asked: dict[str, Any], read: str) -> None:
    assert read_otherwise(table_settings({"k": 2, "quasi_identifiers": {"c": asked}}), {"c": read}) == ["c"]
