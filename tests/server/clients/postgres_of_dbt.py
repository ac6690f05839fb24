"""dbt-postgres: debug, docs, and a source that an analysis counts with `dbt show`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from common import AVERAGE, COUNT, DATABASE, GROUPS, HOST, PASSWORD, PORT, REFUSED, USER, refusal, step

folder = Path(mkdtemp())
_SOURCE = "{{ source('shop', 'people') }}"
_OUTPUT = {"type": "postgres", "host": HOST, "port": PORT, "user": USER, "password": PASSWORD, "dbname": DATABASE}
_PROFILE = {"shop": {"target": "guard", "outputs": {"guard": {**_OUTPUT, "schema": "main", "threads": 1}}}}
(folder / "profiles.yml").write_text(json.dumps(_PROFILE), encoding="utf-8")
_PROJECT = {"name": "shop", "version": "1.0", "profile": "shop", "model-paths": ["models"]}
(folder / "dbt_project.yml").write_text(json.dumps(_PROJECT), encoding="utf-8")
(folder / "models").mkdir()
_SOURCES = [{"name": "shop", "schema": "main", "tables": [{"name": "people"}, {"name": "cities"}]}]
(folder / "models" / "sources.yml").write_text(json.dumps({"version": 2, "sources": _SOURCES}), encoding="utf-8")


def dbt(*arguments: str) -> str:
    command = [Path(sys.executable).with_name("dbt"), *arguments, "--project-dir", folder, "--profiles-dir", folder]
    env = os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:])
    return done.stdout


def rows(sql: str) -> list[list[object]]:
    asked = sql.replace("FROM people", f"FROM {_SOURCE}")
    told = dbt("--quiet", "show", "--inline", asked, "--output", "json", "--limit", "100")
    found = json.loads(told[told.index("{") :])["show"]
    return [list(row.values()) for row in found]


def catalog() -> dict[str, list[str]]:
    dbt("docs", "generate")
    found = json.loads((folder / "target" / "catalog.json").read_text(encoding="utf-8"))["sources"]
    return {each["metadata"]["name"]: list(each["columns"]) for each in found.values()}


step("connects", lambda: "All checks passed" in dbt("debug") and 1)
step("tables", lambda: sorted(catalog()))
step("columns", lambda: catalog()["people"])
step("count", lambda: rows(COUNT)[0][0])
step("average", lambda: rows(AVERAGE)[0][0])
step("groups", lambda: rows(GROUPS.format(2, 3)))
step("refusal", lambda: refusal(lambda: rows(REFUSED)))
