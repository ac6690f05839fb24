"""A release as the pipeline leaves it, beside its original."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from kgather._evaluation.evidence import Evidence, read_evidence
from kgather._loaders import LoadOptions, load
from kgather._publishing import pipeline
from kgather._settings.publication import PublishSettings


@dataclass(frozen=True)
class Built:
    """Rows of kgather__metrics, and the evidence."""

    mart: dict[str, float]
    evidence: Evidence


Build = Callable[..., Built]


@cache
def built_once(source: Path, chosen: tuple[tuple[str, object], ...]) -> Built:
    """Run the pipeline with settings by name, k = 5 where not given."""
    return built(source, dict(chosen))


def built(source: Path, chosen: dict[str, object]) -> Built:
    """The same, anew."""
    settings = PublishSettings(k=5).model_copy(update=chosen)
    with tempfile.TemporaryDirectory() as folder:
        workspace = pipeline.Workspace(Path(folder))
        with duckdb.connect(workspace.work_database) as con:
            loaded = load(con, [str(source)], LoadOptions())
        workspace.write_profile("1GB")
        pipeline.build(
            workspace,
            settings.model_dump(mode="json")
            | {"ratings": "kgather_loaded", "item_id_type": loaded.item_id_type.lower()},
        )
        with duckdb.connect() as con:
            con.execute(f"attach '{workspace.work_database}' as work (read_only)")
            con.execute(f"attach '{workspace.marts_database}' as marts (read_only)")
            return Built(
                dict(con.sql("select metric, value from marts.kgather__metrics").fetchall()),
                read_evidence(con, "work", "marts", {"k": settings.k}),
            )
