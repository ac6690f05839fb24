"""Several dbt commands in one process: starting dbt takes longer than most of what it does in a test."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

RUNNER = """
import json, os, sys
from pathlib import Path
import kgather
from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.cli.main import dbtRunner

outcomes = {}
for name, (folder, command) in json.loads(sys.argv[1]).items():
    os.chdir(folder)
    sys.stdout = (Path(sys.argv[2]) / f"{name}.txt").open("w")
    outcome = dbtRunner().invoke(["--no-version-check", "--no-use-colors", "--log-level-file", "none", *command])
    DuckDBConnectionManager.close_all_connections()
    sys.stdout.close()
    outcomes[name] = outcome.success
sys.stdout = sys.__stdout__
print(json.dumps({"kgather": kgather.__file__, "outcomes": outcomes}))
"""


class Outcome(NamedTuple):
    success: bool
    output: str


def run_dbt(commands: Mapping[str, tuple[Path, Sequence[str]]], output: Path, dbt_package: Path) -> dict[str, Outcome]:
    """Run commands, each in its folder, with kgather as it is imported here and its dbt package in KGATHER_DBT."""
    env = {**os.environ, "KGATHER_DBT": str(dbt_package), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    given = json.dumps({name: (str(folder), list(command)) for name, (folder, command) in commands.items()})
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, given, str(output)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    told = json.loads(done.stdout.splitlines()[-1])["outcomes"]
    return {name: Outcome(ok, (output / f"{name}.txt").read_text()) for name, ok in told.items()}
