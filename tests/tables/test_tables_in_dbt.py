"""A dbt project of a user's own with three anonymized models and no ratings at all."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from kgather._dbt_package import dbt_path

pytestmark = pytest.mark.slow

FILES = {
    "dbt_project.yml": """\
name: clinic
version: 1.0.0
profile: clinic
model-paths: [models]
flags: {send_anonymous_usage_stats: false}
models:
  kgather: {+enabled: false}
  clinic: {+materialized: table}
""",
    "profiles.yml": """\
clinic:
  target: dev
  outputs:
    dev: {type: duckdb, path: work.duckdb, plugins: [{module: kgather.plugin}]}
    bare: {type: duckdb, path: bare.duckdb}
""",
    "packages.yml": "packages:\n  - local: \"{{ env_var('KGATHER_DBT') }}\"\n",
    "models/patients.sql": """\
select
  i as patient_id, 18 + (i * 7) % 70 as age, '0' || (2100 + (i * 3) % 60) as zip, i % 2 = 0 as "sex at birth",
  ['flu', 'cold', 'gout', 'asthma'][1 + (i * 13) % 4] as illness,
  date '2020-01-01' + cast(i % 700 as integer) as "order", case when i % 9 > 0 then i % 5 end as kids
from range(1000) as r (i)
""",
    "models/by_place.sql": """\
{{ kgather.anonymize(ref('patients'), k=10, unit='patient_id', sensitive=['illness'], l=3, quasi_identifiers={
  'age': {'step': 5}, 'zip': {'kind': 'prefix'}, 'sex at birth': {}, 'order': {'step': 'month'}
}) }}
""",
    "models/clustered.sql": """\
{{ kgather.anonymize(ref('patients'), k=5, quasi_identifiers=['age', 'kids'],
                     sensitive={'illness': {'t': 0.3, 'hierarchy': [
                       ['flu', 'lungs'], ['cold', 'lungs'], ['gout', 'joints'], ['asthma', 'lungs']]}},
                     others=['order'], method='cluster') }}
""",
    "models/by_sex.sql": "{{ kgather.anonymize(ref('patients'), k=50, quasi_identifiers=['sex at birth']) }}\n",
    "models/groups.sql": """\
{{ kgather.anonymize_groups(ref('patients'), k=10, unit='patient_id',
                            quasi_identifiers={'age': {'step': 5}, 'zip': {}}) }}
""",
    "models/visits.sql": """\
select patient_id, ['north', 'south'][1 + (patient_id * 11 + v) % 2] as ward, patient_id * 37 % 400 + v * 10 as cost
from {{ ref('patients') }}, range(3) as visits (v)
""",
    "models/visits_within.sql": """\
{{ kgather.anonymize(ref('visits'), k=10, unit='patient_id', rows_per_person=3, quasi_identifiers=['ward', 'cost'],
                     within=ref('groups')) }}
""",
    "models/_models.yml": """\
models:
  - name: by_place
    data_tests:
      - kgather.anonymized:
          arguments: {k: 10, quasi_identifiers: [age, zip, sex at birth, order], sensitive: [illness], l: 3,
                      unit: patient_id, method: mondrian, suppress: 0.0, others: []}
  - name: clustered
    data_tests:
      - kgather.anonymized:
          arguments: {k: 5, quasi_identifiers: {age: {}, kids: {}}, sensitive: {illness: {
            t: 0.3, hierarchy: [[flu, lungs], [cold, lungs], [gout, joints], [asthma, lungs]]}}}
      - kgather.anonymized:
          name: too_much_is_asked
          arguments: {k: 5, quasi_identifiers: [age, kids], sensitive: [illness], alpha: 0.01}
""",
    "other/as_view.sql": """\
{{ config(materialized='view') }}
{{ kgather.anonymize(ref('patients'), k=50, quasi_identifiers=['sex at birth']) }}
""",
}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clinic")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    assert dbt(folder, "deps")[0] == 0
    return folder


def dbt(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dbt")), "--no-version-check", "--no-use-colors", *arguments],
        cwd=folder,
        env={**os.environ, "KGATHER_DBT": str(dbt_path())},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def test_any_number_of_models_with_settings_of_their_own(clinic: Path) -> None:
    code, said = dbt(clinic, "build")
    assert code == 1  # one test asks for too much
    assert "PASS=9 WARN=0 ERROR=1" in said, said
    assert "FAIL 1000 too_much_is_asked" in said  # people at risk: all of them
    with duckdb.connect(clinic / "work.duckdb", read_only=True) as con:
        assert con.table("by_place").columns == ["age", "zip", "sex at birth", "order", "illness"]
        sizes = "select min(n), sum(n) from (select count(*) as n from {} group by {})"
        [(least, rows)] = con.sql(sizes.format("by_place", 'age, zip, "sex at birth", "order"')).fetchall()
        assert least >= 10
        assert rows == 1000
        assert con.sql(sizes.format("by_sex", '"sex at birth"')).fetchall() == [(500, 1000)]
        assert con.table("groups").columns == ["patient_id", "group_id"]
        assert con.table("visits_within").columns == ["ward", "cost"]
        [(least, rows)] = con.sql(sizes.format("visits_within", "ward, cost")).fetchall()
        assert least >= 10
        assert rows == 3000


def test_without_the_plugin_and_as_a_view_it_is_refused(clinic: Path) -> None:
    code, said = dbt(clinic, "run", "--target", "bare", "--select", "patients", "by_sex")
    assert code == 1
    assert "needs kgather's plugin" in said
    (clinic / "other/as_view.sql").rename(clinic / "models/as_view.sql")
    code, said = dbt(clinic, "run", "--select", "as_view")
    assert code == 1
    assert "materialized as a table" in said


@pytest.mark.parametrize("call", ["ref('patients'), 5, ['age']", "k=5, quasi_identifiers=['age']"])
@pytest.mark.parametrize("macro", ["anonymize", "anonymize_groups"])
def test_arguments_without_a_name_are_refused(clinic: Path, macro: str, call: str) -> None:
    model = clinic / "models" / "unnamed.sql"
    model.write_text(f"{{{{ kgather.{macro}({call}) }}}}\n", encoding="utf-8")
    try:
        code, said = dbt(clinic, "parse", "--no-partial-parse")
    finally:
        model.unlink()
    assert code != 0
    assert f"kgather.{macro} takes the relation first, and everything else by its name" in " ".join(said.split()), said
