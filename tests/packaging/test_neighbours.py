"""kgather beside other packages and tools of dbt users.

dbt_utils, dbt_expectations and elementary cannot be fetched here: what stands in for them are stubs with their names,
some of their macros and tests as they are called, and a hook as elementary has one. They show that names and hooks do
not get in each other's way, and nothing about the packages themselves.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
from dbt_commands import Outcome, run_dbt

from kgather._dbt_package import dbt_path

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

STUBS = {
    "dbt_utils": {
        "macros/stub.sql": """
{% macro generate_surrogate_key(field_list) %}md5({{ field_list | join(" || '-' || ") }}){% endmacro %}
{% test unique_combination_of_columns(model, combination_of_columns) %}
  select {{ combination_of_columns | join(', ') }} from {{ model }} group by all having count(*) > 1
{% endtest %}
{% test not_constant(model, column_name) %}
  select count(distinct {{ column_name }}) as n from {{ model }} having count(distinct {{ column_name }}) = 1
{% endtest %}
""",
    },
    "dbt_expectations": {
        "macros/stub.sql": """
{% test expect_table_row_count_to_be_between(model, min_value) %}
  select count(*) as n from {{ model }} having count(*) < {{ min_value }}
{% endtest %}
""",
    },
    "elementary": {
        "macros/stub.sql": """
{% macro on_run_start() %}{{ return("") }}{% endmacro %}
{% macro on_run_end() %}
  {% if execute %}{% do run_query("create table if not exists elementary_runs as select 1 as run") %}{% endif %}
{% endmacro %}
{% macro setting(name) %}{{ return("elementary's own") }}{% endmacro %}
""",
        "models/dbt_models.sql": "select 'stub' as unique_id",
    },
}
HOOKS = 'on-run-start: "{{ elementary.on_run_start() }}"\non-run-end: "{{ elementary.on_run_end() }}"\n'
TESTS = """\
    data_tests:
      - dbt_utils.unique_combination_of_columns: {arguments: {combination_of_columns: [group_id, favourite]}}
      - dbt_expectations.expect_table_row_count_to_be_between: {arguments: {min_value: 1}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("neighbours") / "shop"
    unwanted = shutil.ignore_patterns("target", "logs", "dbt_packages", "package-lock.yml", "*.duckdb*", ".user.yml")
    shutil.copytree(ROOT / "examples" / "shop", folder, ignore=unwanted)
    for name, files in STUBS.items():
        hooks = HOOKS if name == "elementary" else ""
        project_yml = f"name: {name}\nversion: 0.0.1\nconfig-version: 2\n{hooks}"
        for file, text in {"dbt_project.yml": project_yml, **files}.items():
            (folder / "stubs" / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / "stubs" / name / file).write_text(text, encoding="utf-8")
    packages = folder / "packages.yml"
    local = "".join(f"  - local: stubs/{name}\n" for name in STUBS)
    packages.write_text(packages.read_text(encoding="utf-8") + local, encoding="utf-8")
    marts = folder / "models" / "marts"
    tested = (marts / "_marts.yml").read_text(encoding="utf-8")
    own = "    config:\n      contract: {enforced: true}\n    columns:\n      - {name: group_id"
    assert own in tested
    (marts / "_marts.yml").write_text(tested.replace(own, TESTS + own), encoding="utf-8")
    key = "dbt_utils.generate_surrogate_key(['group_id', 'favourite'])"
    (marts / "keys.sql").write_text(f"select {{{{ {key} }}}} as key from {{{{ ref('favourites') }}}}\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def outcomes(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    strict = ["--warn-error-options", json.dumps({"error": ["Deprecations"]})]
    commands = {"deps": (project, ["deps"]), "build": (project, [*strict, "build"])}
    return run_dbt(commands, tmp_path_factory.mktemp("output"), dbt_path())


def test_packages_of_other_names_are_not_in_the_way(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["build"].success, outcomes["build"].output
    assert "WARN=0 ERROR=0 SKIP=0" in outcomes["build"].output
    for name in ("dbt_utils_unique_combination_of_columns", "dbt_expectations_expect_table_row_count_to_be_between"):
        assert f"PASS {name}" in outcomes["build"].output


def test_dagster_makes_an_asset_of_every_model(project: Path, outcomes: dict[str, Outcome]) -> None:
    dagster_dbt = pytest.importorskip("dagster_dbt", reason="dagster-dbt is not installed")
    assert outcomes["build"].success

    @dagster_dbt.dbt_assets(manifest=project / "target" / "manifest.json")
    def assets():  # type: ignore[no-untyped-def]
        """Dagster reads an annotation as the assets' types, so there is none."""

    keys = {key.to_user_string().split("/")[-1] for key in assets.keys}
    assert {"kgather__ratings", "kgather__audit", "int_kgather__groups", "favourites"} <= keys


def test_sqlfluff_reads_the_macros_of_duckdb() -> None:
    """All but those with lambdas of several parameters, which its dialect of DuckDB does not know."""
    sqlfluff = pytest.importorskip("sqlfluff", reason="sqlfluff is not installed")
    files = sorted((dbt_path() / "sql").rglob("kg_*.sql"))
    assert len(files) > 40
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        text = "".join(line for line in lines if not line.startswith("-- {%"))
        found = sqlfluff.lint(text, dialect="duckdb", rules=["LT12"])
        assert not found or re.search(r"lambda \w+, \w+", text), (file.name, found)
