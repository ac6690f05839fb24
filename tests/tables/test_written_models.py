"""Releases of all methods and models, checked by a reader of files that shares nothing with kgather."""

import json
import random
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checker import violations
from table_data import HIERARCHY, people

import kgather
from kgather._errors import PromiseError

QUASI = {"age": {"step": 5}, "zip": {"kind": "prefix", "keep": 1}, "income": {}}
NUMBERS = {"age": {"step": 5, "show": "tight"}, "income": {"show": "mean"}}
MODELS: dict[str, dict[str, Any]] = {
    "entropy": {"illness": {"l": 2}},
    "distinct": {"illness": {"l": 3, "diversity": "distinct"}},
    "recursive": {"illness": {"l": 2, "diversity": "recursive", "c": 3.0}},
    "alpha": {"illness": {"alpha": 0.7}},
    "t": {"illness": {"t": 0.2}},
    "ordered t": {"illness": {"t": 0.15, "ordered": True}},
    "hierarchical t": {"job": {"t": 0.2, "hierarchy": HIERARCHY}},
    "several": {"illness": {"l": 2, "alpha": 0.8}, "job": {"t": 0.3, "hierarchy": HIERARCHY}},
}
METHODS: list[dict[str, Any]] = [
    {"method": "mondrian"}, {"method": "mondrian", "relaxed": True}, {"method": "cluster", "rounds": 1},
    {"method": "mdav"}, {"method": "lattice", "suppress": 0.3},
]  # fmt: skip


def written(folder: Path, **asked: Any) -> Path:
    """A release of made-up people, some of whom have no job."""
    rows = [{**row, "job": None if at % 41 == 0 else row["job"]} for at, row in enumerate(people(500, seed=4))]
    pq.write_table(pa.Table.from_pylist(rows), folder / "people.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        columns = {*asked["quasi_identifiers"], *asked["sensitive"]}
        found = kgather.anonymize(
            folder / "people.parquet", folder / "release", k=5,
            identifiers=[name for name in rows[0] if name not in columns], **asked,
        )  # fmt: skip
    assert found.folder is not None
    return found.folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "model"),
    [*((METHODS[0], model) for model in MODELS), *((method, "several") for method in METHODS[1:])],
)
def test_every_model_is_kept_in_the_files(tmp_path: Path, method: dict[str, Any], model: str) -> None:
    quasi = NUMBERS if method["method"] == "mdav" else QUASI
    folder = written(tmp_path, quasi_identifiers=quasi, sensitive=MODELS[model], **method)
    assert violations(folder) == []
    assert all(check.passed for check in kgather.verify(folder).checks)
    with duckdb.connect(folder / "release.duckdb", read_only=True) as con:
        tables = {name for (name,) in con.sql("show tables").fetchall()}
    assert ("kgather__distribution" in tables) == any(said.get("t") is not None for said in MODELS[model].values())


@pytest.mark.slow
def test_the_checker_and_the_audit_see_what_is_not_kept(tmp_path: Path) -> None:
    folder = written(tmp_path, quasi_identifiers=QUASI, sensitive=MODELS["several"])
    table = pq.read_table(folder / "table.parquet").to_pylist()
    jobs = [row["job"] for row in table]
    random.Random(1).shuffle(jobs)
    jobs.sort(key=lambda job: (job is None, job))
    torn = pa.Table.from_pylist([{**row, "job": job} for row, job in zip(table, jobs, strict=True)])
    pq.write_table(torn, folder / "table.parquet")
    assert "t of job" in violations(folder)
    failed = {check.check.partition(":")[0] for check in kgather.verify(folder).checks if not check.passed}
    assert "hierarchical t-closeness of job" in failed
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    audit["parameters"]["k"] = 10**6
    (folder / "audit.json").write_text(json.dumps(audit), encoding="utf-8")
    assert "k" in violations(folder)


@pytest.mark.slow
def test_a_distribution_that_is_not_that_of_the_table_is_found(tmp_path: Path) -> None:
    folder = written(tmp_path, quasi_identifiers=QUASI, sensitive=MODELS["t"])
    with duckdb.connect(folder / "release.duckdb") as con:
        shares = dict(con.sql("""select "value", "rows" from kgather__distribution""").fetchall())
        assert sum(shares.values()) == 500
        con.execute("""update kgather__distribution set "rows" = "rows" + 1 where "value" = 'a'""")
    failed = [check.check for check in kgather.verify(folder).checks if not check.passed]
    assert any("frequencies of all rows" in check for check in failed)


def test_distances_along_a_tree_by_hand() -> None:
    # Two places with one half each in all rows; a class of one of them moves half of itself to the other.
    tree = [["x", "p", "*"], ["y", "p", "*"], ["z", "q", "*"]]
    rows = [{"age": at // 4, "ill": value} for at, value in enumerate("xxxx" + "yyyy")]
    table = pa.Table.from_pylist([{"age": row["age"], "ill": row["ill"]} for row in rows])
    quasi = {"age": {"step": 1}}
    near = kgather.anonymize(table, k=4, quasi_identifiers=quasi, sensitive={"ill": {"t": 0.25, "hierarchy": tree}})
    assert near.report["classes"] == 2  # (1 - 1/2) * 1/2
    assert [check.measured for check in near.checks] == [4, 0.25]
    far = table.set_column(1, "ill", pa.array(list("xxxxzzzz")))
    apart = kgather.anonymize(far, k=4, quasi_identifiers=quasi, sensitive={"ill": {"t": 0.25, "hierarchy": tree}})
    assert apart.report["classes"] == 1


def test_distinct_diversity_warns_of_a_value_that_is_too_frequent() -> None:
    table = pa.table({"age": [1] * 10, "ill": ["a"] * 8 + ["b", "c"]})
    with pytest.warns(UserWarning, match=r"100% of the rows are in classes where one value of 'ill' has more than 50%"):
        found = kgather.anonymize(
            table, k=5, quasi_identifiers=["age"], sensitive={"ill": {"l": 3, "diversity": "distinct"}}
        )
    assert found.risks["dominated"] == {"ill": 1.0}
    even = table.set_column(1, "ill", pa.array(["a", "b"] * 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kgather.anonymize(even, k=5, quasi_identifiers=["age"], sensitive={"ill": {"l": 2, "diversity": "distinct"}})


def test_a_hierarchy_and_what_goes_with_it() -> None:
    table = pa.table({"age": [1] * 4, "ill": ["a", "b", "c", "d"]})
    for asked, told in (
        ({"hierarchy": [["a", "x"]]}, "hierarchy goes with t"),
        ({"hierarchy": [["a", "x"]], "t": 0.5, "ordered": True}, "only one of ordered and hierarchy"),
        ({"hierarchy": [["a", "x"]], "t": 0.5}, "3 values of column 'ill' are not in its hierarchy"),
    ):
        with pytest.raises(kgather.InputError, match=told):
            kgather.anonymize(table, k=2, quasi_identifiers=["age"], sensitive={"ill": asked})


def test_mdav_takes_what_lies_on_a_line() -> None:
    with pytest.raises(kgather.InputError, match="column 'zip' is none of these"):
        kgather.anonymize(
            pa.Table.from_pylist(people(50)), k=5, quasi_identifiers={"age": {}, "zip": {}}, method="mdav"
        )
    with pytest.raises(kgather.InputError, match="relaxed goes with method mondrian"):
        kgather.anonymize(
            pa.Table.from_pylist(people(50)), k=5, quasi_identifiers=["age"], method="cluster", relaxed=True
        )


def test_bounds_hold_whatever_cells_show() -> None:
    rows = pa.Table.from_pylist([{"age": age} for age in [20] * 30 + [90] * 3])
    with pytest.raises(PromiseError, match="would have to be suppressed"):
        kgather.anonymize(rows, k=5, quasi_identifiers={"age": {"step": 1, "widest": 5, "show": "tight"}})


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
def test_null_is_the_last_value_of_an_ordered_column(method: str) -> None:
    draws = random.Random(3)
    rows = [{"age": draws.randrange(20, 80), "ill": draws.choice(["a", "a", "b", "c", None])} for _ in range(300)]
    found = kgather.anonymize(
        pa.Table.from_pylist(rows), k=3, quasi_identifiers={"age": {"step": 1}}, method=method,
        sensitive={"ill": {"t": 0.2, "ordered": True}},
    )  # fmt: skip
    assert found.report["classes"] > 1
    assert [check.passed for check in found.checks] == [True, True]
