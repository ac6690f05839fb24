"""Runs the dbt project: the one way by which ratings become a release."""

import errno
import gc
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import yaml

from kgather.dbt_package import dbt_path
from kgather.errors import DISK_FULL, InputError, KgatherError, PromiseError

# How errors meant for people look in dbt's messages: raised by SQL models with error(), or inside Python models.
_MEANT_FOR_PEOPLE = (
    (re.compile(r"kgather refuses the input: (.*)", re.DOTALL), InputError),
    (re.compile(r"(?:kgather\.errors\.)?InputError: (.*)", re.DOTALL), InputError),
    (re.compile(r"(?:kgather\.errors\.)?PromiseError: (.*)", re.DOTALL), PromiseError),
)

NodeListener = Callable[[str, int, int], None]


class Workspace:
    """The private folder in which one run works. Nobody but its owner may look into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work_database = folder / "work.duckdb"
        self.marts_database = folder / "marts.duckdb"
        self.spill = folder / "spill"

    def write_profile(self, memory_limit: str) -> None:
        """Write the dbt profile: a working database, and beside it one that holds only the marts."""
        # Not as settings, which the adapter sets anew for each model: a directory in use cannot be set.
        config = {
            "memory_limit": memory_limit,
            "temp_directory": str(self.spill),
            "preserve_insertion_order": True,
        }
        output = {
            "type": "duckdb",
            "path": str(self.work_database),
            "attach": [{"path": str(self.marts_database), "alias": "marts"}],
            "threads": 1,
            "config_options": config,
        }
        profile = {"kgather": {"target": "publish", "outputs": {"publish": output}}}
        (self.folder / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")


def build(
    workspace: Workspace,
    variables: Mapping[str, Any],
    *,
    verbose: bool = False,
    on_node: NodeListener | None = None,
) -> None:
    """Build the models and run the data tests.

    `on_node` is called with the name of each model or test when it is finished, its number and their total.
    Raises InputError where the input was refused, PromiseError where a data test failed, KgatherError otherwise.
    """
    # Imported here: it takes seconds, and most commands do not need it.
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.cli.main import dbtRunner

    arguments = [
        "--no-send-anonymous-usage-stats",
        "--no-version-check",
        "--no-partial-parse",
        "--no-write-json",
        "--log-level", "info" if verbose else "none",
        "--log-level-file", "none",
        "--log-path", str(workspace.folder / "logs"),
        "build",
        "--project-dir", str(dbt_path()),
        "--profiles-dir", str(workspace.folder),
        "--target", "publish",
        "--target-path", str(workspace.folder / "target"),
        "--vars", json.dumps({**variables, "release_database": "marts"}),
    ]  # fmt: skip
    callbacks = [_finished_nodes(on_node)] if on_node else []
    # dbt writes to standard output, where only results belong.
    with _output_to(None if verbose else os.devnull), _without_environment("DBT_"):
        try:
            outcome = dbtRunner(callbacks=callbacks).invoke(arguments)
        finally:
            # The adapter would hold the files open until the process ends, and so would relations not yet collected.
            DuckDBConnectionManager.close_all_connections()
            gc.collect()
    if not outcome.success:
        raise _as_error(outcome)


def _finished_nodes(on_node: NodeListener) -> Callable[[Any], None]:
    def hear(event: Any) -> None:
        if event.info.name in ("LogModelResult", "LogTestResult"):
            total = event.data.total if event.info.name == "LogModelResult" else event.data.num_models
            on_node(event.data.node_info.node_name, event.data.index, total)

    return hear


@contextmanager
def _output_to(path: str | None) -> Iterator[None]:
    """Send standard output to a file for a while, or to standard error where none is given."""
    with Path(path).open("w") if path else nullcontext(sys.stderr) as stream, redirect_stdout(stream):
        yield


@contextmanager
def _without_environment(prefix: str) -> Iterator[None]:
    """Hide variables that are meant for the user's own dbt projects: they would choose, sample or store for ours."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(prefix)}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _as_error(outcome: Any) -> BaseException:
    if isinstance(outcome.exception, KeyboardInterrupt):
        return outcome.exception
    if outcome.exception is not None:
        return KgatherError(f"dbt could not run: {outcome.exception}")
    failures = [result for result in outcome.result.results if result.status in ("error", "fail")]
    for result in failures:
        message = str(result.message)
        if DISK_FULL in message:
            return OSError(errno.ENOSPC, DISK_FULL)
        for pattern, kind in _MEANT_FOR_PEOPLE:
            told = pattern.search(message)
            if told:
                return kind(told[1].strip())
    failed_tests = [result.node.name for result in failures if result.status == "fail"]
    broken = [result for result in failures if result.status == "error"]
    if failed_tests and not broken:
        return PromiseError("a promise is not kept, no release was written: " + ", ".join(failed_tests))
    # An engine's message may quote values, so only its kind is told.
    kinds = ", ".join(f"{result.node.name} ({_kind(str(result.message))})" for result in broken)
    return KgatherError(f"the pipeline broke at {kinds}. Run again with -v for all that dbt says.")


def _kind(message: str) -> str:
    kinds = re.findall(r"\b([A-Z][A-Za-z ]*(?:Error|Exception))\b", message)
    return kinds[-1] if kinds else "error"
