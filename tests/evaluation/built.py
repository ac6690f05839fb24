"""A release as the pipeline leaves it, beside its original."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from kgather._evaluation.evidence import Evidence, read_evidence
from kgather._loaders import LoadOptions, load
from kgather._publishing import pipeline
from kgather._publishing.publish import Published
from kgather._settings.publication import PublishSettings


@dataclass(frozen=True)
class Built:
    """Rows of kgather__metrics, and the evidence."""

    mart: dict[str, float]
    evidence: Evidence


Build = Callable[..., Built]


def read(published: Published) -> Built:
    """What a finished release holds."""
    assert published.work_database
    return _read(published.work_database, published.folder / "release.duckdb", published.audit.parameters["k"])


def built(source: Path, chosen: dict[str, object]) -> Built:
    """Run the pipeline alone, with settings by name that are not checked, k = 5."""
    settings = PublishSettings(k=5).model_copy(update=chosen)
    with tempfile.TemporaryDirectory() as folder:
        workspace = pipeline.Workspace(Path(folder), "1GB")
        with duckdb.connect(workspace.work_database) as con:
            loaded = load(con, [str(source)], LoadOptions())
        workspace.write_profile()
        pipeline.build(
            workspace,
            settings.model_dump(mode="json")
            | {"ratings": "kgather_loaded", "item_id_type": loaded.item_id_type.lower()},
        )
        return _read(workspace.work_database, workspace.marts_database, settings.k)


def _read(work: Path, release: Path, k: int) -> Built:
    with duckdb.connect() as con:
        con.execute(f"attach '{work}' as work (read_only)")
        con.execute(f"attach '{release}' as release (read_only)")
        return Built(
            dict(con.sql("select metric, value from release.kgather__metrics").fetchall()),
            read_evidence(con, "work", "release", {"k": k}),
        )
