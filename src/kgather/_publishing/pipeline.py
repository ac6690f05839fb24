"""Runs the dbt project: the one way by which ratings become a release."""

import errno
import gc
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import duckdb
import yaml

from kgather._dbt_package import dbt_path
from kgather._errors import DISK_FULL, InputError, KgatherError, PromiseError
from kgather._publishing import disk
from kgather._publishing.manifests import manifest_for
from kgather._publishing.runs import Journal
from kgather._settings.project import PREFIX, PREPARED
from kgather._settings.publication import PublishSettings
from kgather._sql_text import literal
from kgather._verbosity import is_verbose

# How errors meant for people look in dbt's messages: raised by SQL models with error(), or inside Python models.
_MEANT_FOR_PEOPLE = (
    (re.compile(r"kgather refuses the input: (.*)", re.DOTALL), InputError),
    (re.compile(r"(?:[\w.]+\.)?InputError: (.*)", re.DOTALL), InputError),
    (re.compile(r"(?:[\w.]+\.)?PromiseError: (.*)", re.DOTALL), PromiseError),
)

MEMORY_LIMIT = "2GB"

NodeListener = Callable[[str, int, int], None]


class Workspace:
    """The private folder in which one run works. Nobody but its owner may look into it."""

    def __init__(self, folder: Path, memory_limit: str = MEMORY_LIMIT) -> None:
        self.folder, self.memory_limit = folder, memory_limit
        self.work_database = folder / "work.duckdb"
        self.marts_database = folder / "marts.duckdb"
        self.spill = folder / "spill"
        self.journal = Journal(folder / "journal")

    def clear(self) -> None:
        """Remove what a killed run left unfinished."""
        for path in (self.work_database, self.marts_database):
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
        shutil.rmtree(self.spill, ignore_errors=True)

    def _limits(self) -> dict[str, Any]:
        """How much of the machine DuckDB may take."""
        return {
            "memory_limit": self.memory_limit,
            "temp_directory": str(self.spill),
            "max_temp_directory_size": disk.spill_limit(self.folder),
        }

    @contextmanager
    def connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the working database."""
        with duckdb.connect(self.work_database, config=self._limits()) as con:
            yield con

    @contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that reads what was built, as `work` and `marts`."""
        with duckdb.connect(config=self._limits()) as con:
            con.execute(f"attach {literal(self.work_database)} as work (read_only)")
            con.execute(f"attach {literal(self.marts_database)} as marts (read_only)")
            yield con

    def write_profile(self) -> None:
        """Write the dbt profile: a working database, and beside it one that holds only the marts."""
        # Not as settings, which the adapter sets anew for each model: a directory in use cannot be set.
        config = self._limits() | {"preserve_insertion_order": True}
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
    """Build the models and run the data tests, but for those that are finished already.

    `on_node` is called with the name of each model or test when it is finished, its number and their total.
    Raises InputError where the input was refused, PromiseError where a data test failed, KgatherError otherwise.
    """
    finished = workspace.journal.finished()
    callbacks = [_finished_nodes(workspace.journal, len(finished), on_node)]

    def rest(manifest: Any) -> list[str] | None:
        if not finished:
            return []
        left = [node.name for node in manifest.nodes.values() if node.name not in finished]
        # Tests are named one by one, so that none is left out because its model is finished.
        return ["--indirect-selection", "empty", "--select", *left] if left else None

    _invoked(workspace, variables, "build", rest, callbacks, verbose=verbose)


def build_some(workspace: Workspace, variables: Mapping[str, Any], models: Sequence[str], *, verbose: bool) -> None:
    """Build these models alone, from what is in the workspace already, and run the data tests that need no others.

    Raises as `build` does.
    """
    selection = ["--indirect-selection", "cautious", "--select", *models]
    _invoked(workspace, variables, "build", lambda _: selection, [], verbose=verbose)


def compiled(
    workspace: Workspace, variables: Mapping[str, Any], models: Sequence[str], *, run: bool, verbose: bool
) -> dict[str, str]:
    """The SQL of models as DuckDB would run it here, by name. run: build them on the way, as their SQL hangs on it.

    Raises as `build` does.
    """
    command = "run" if run else "compile"
    outcome = _invoked(workspace, variables, command, lambda _: ["--select", *models], [], verbose=verbose)
    return {result.node.name: str(result.node.compiled_code) for result in outcome.result.results}


def _invoked(
    workspace: Workspace,
    variables: Mapping[str, Any],
    command: str,
    selected: Callable[[Any], list[str] | None],
    callbacks: list[Any],
    *,
    verbose: bool,
) -> Any:
    """What dbt says of a command on the project. selected: from the manifest the selection; None: nothing is left."""
    # Imported here: dbt and the kernels take seconds to load, and what is refused early needs neither.
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.cli.main import dbtRunner

    from kgather._sql_functions import create_macros

    verbose = verbose or is_verbose()
    flags = [
        "--no-send-anonymous-usage-stats",
        "--no-version-check",
        "--no-partial-parse",
        "--no-write-json",
        "--log-level", "info" if verbose else "none",
        "--log-level-file", "none",
        "--log-path", str(workspace.folder / "logs"),
    ]  # fmt: skip
    given = {**variables, "release_database": "marts", PREPARED: True}
    folders = [
        "--project-dir", str(dbt_path()),
        "--profiles-dir", str(workspace.folder),
        "--target", "publish",
        "--target-path", str(workspace.folder / "target"),
    ]  # fmt: skip
    project = [*folders, "--vars", _prefixed(given)]
    # dbt writes to standard output, where only results belong.
    with _output_to(None if verbose else os.devnull), _without_environment("DBT_"):
        with workspace.connected() as con:
            create_macros(con)
        try:

            def parse(shape: Mapping[str, Any]) -> Any:
                parsed = dbtRunner().invoke([*flags, "parse", *folders, "--vars", _prefixed(shape)])
                if not parsed.success:
                    raise _as_error(parsed)
                return parsed.result

            manifest = manifest_for(given, parse, dbt_path())
            selection = selected(manifest)
            if selection is None:
                return None
            outcome = dbtRunner(manifest=manifest, callbacks=callbacks).invoke([*flags, command, *project, *selection])
        finally:
            # The adapter would hold the files open until the process ends, and so would relations not yet collected.
            DuckDBConnectionManager.close_all_connections()
            gc.collect()
    if not outcome.success:
        raise _as_error(outcome)
    return outcome


def _prefixed(settings: Mapping[str, Any]) -> str:
    """Settings as dbt takes vars."""
    return json.dumps({PREFIX + name: value for name, value in settings.items()})


def _finished_nodes(journal: Journal, before: int, on_node: NodeListener | None) -> Callable[[Any], None]:
    def hear(event: Any) -> None:
        if event.info.name not in ("LogModelResult", "LogTestResult"):
            return
        is_model = event.info.name == "LogModelResult"
        total = event.data.total if is_model else event.data.num_models
        # What a model says is what the engine says of it, or that it failed.
        if event.data.status not in ("error", "skipped") if is_model else event.data.status == "pass":
            journal.add(event.data.node_info.node_name)
        if on_node is not None:
            on_node(event.data.node_info.node_name, before + event.data.index, before + total)

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
        if disk.is_full(message):
            return OSError(errno.ENOSPC, DISK_FULL)
        for pattern, kind in _MEANT_FOR_PEOPLE:
            told = pattern.search(message)
            if told:
                return kind(_with_options(told[1].strip()))
    failed_tests = [result.node.name for result in failures if result.status == "fail"]
    broken = [result for result in failures if result.status == "error"]
    if failed_tests and not broken:
        return PromiseError(f"a promise is not kept, no release was written: {', '.join(failed_tests)}.")
    # An engine's message may quote values, so only its kind is told.
    kinds = ", ".join(f"{result.node.name} ({_kind(str(result.message))})" for result in broken)
    return KgatherError(f"the pipeline broke at {kinds}. Run again with -v for all that dbt says.")


def _with_options(told: str) -> str:
    """A sentence of the pipeline for the command line: settings by the names of their options."""
    for name, field in PublishSettings.model_fields.items():
        option = dict(field.json_schema_extra or {}).get("option")  # type: ignore[arg-type]
        if option:
            # A name that is a word as well is meant where it stands in parentheses.
            before, after = (r"(?<![\w-])", r"(?![\w-])") if "_" in name else (r"(?<=\()", r"(?=[,)])")
            told = re.sub(before + name + after, str(option), told)
    return told


def _kind(message: str) -> str:
    kinds = re.findall(r"\b([A-Z][A-Za-z ]*(?:Error|Exception))\b", message)
    return kinds[-1] if kinds else "error"
