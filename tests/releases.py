"""Releases that tests share: each is published once in a run, whichever worker asks for it first."""

import fcntl
import json
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from kgather._loaders import LoadOptions
from kgather._publishing.publish import AttributesSource, Published, publish
from kgather._settings.publication import PublishSettings

_State = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class _Kept:
    """A release, and size and time of each of its files when it was finished."""

    published: Published
    state: _State


class Releases:
    """Publishes into a folder, which workers share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, _Kept] = {}

    def shared(
        self,
        source: Path,
        *,
        load: dict[str, Any] | None = None,
        attributes: Path | None = None,
        **settings: Any,
    ) -> Published:
        """The release of a file with settings given by name, its working database beside it. Only to be read."""
        key = _key(source, load or {}, attributes, PublishSettings(**settings))
        if key not in self._known:
            self._known[key] = self._find_or_publish(key, source, load, attributes, settings)
        return self._known[key].published

    def anew(
        self,
        source: Path,
        *,
        load: dict[str, Any] | None = None,
        attributes: Path | None = None,
        **settings: Any,
    ) -> Published:
        """The same, published for this call alone: to be changed, or with the program changed."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        return publish(
            [str(source)],
            folder / "release",
            PublishSettings(**settings),
            LoadOptions(**(load or {})),
            user_attributes=AttributesSource(str(attributes)) if attributes else None,
            keep_work=folder / "work",
        )

    def changed(self) -> list[Path]:
        """The releases that this process read and somebody changed."""
        return [kept.published.folder for kept in self._known.values() if _state(kept.published) != kept.state]

    def _find_or_publish(
        self, key: str, source: Path, load: dict[str, Any] | None, attributes: Path | None, settings: dict[str, Any]
    ) -> _Kept:
        note = self._folder / f"{key}.pickle"
        with _locked(note.with_suffix(".lock")):
            if note.exists():
                return pickle.loads(note.read_bytes())
            published = self.anew(source, load=load, attributes=attributes, **settings)
            kept = _Kept(published, _state(published))
            note.write_bytes(pickle.dumps(kept))
            return kept


def _key(source: Path, load: dict[str, Any], attributes: Path | None, settings: PublishSettings) -> str:
    asked = {
        "files": [(file.name, _digest(file)) for file in (source, attributes) if file],
        "load": load,
        "settings": settings.model_dump(mode="json"),
        # Where they are left out, a wide table says which they are.
        "artifacts given": "artifacts" in settings.model_fields_set,
    }
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _state(published: Published) -> _State:
    assert published.work_database
    files = [*published.folder.iterdir(), published.work_database]
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
