"""A release is written only when every promise is kept: what is broken on purpose leaves nothing behind."""

from pathlib import Path

import numpy as np
import pytest

from kgather._errors import PromiseError
from kgather._loaders import LoadOptions
from kgather._methods import Groups, Method, NoOptions, Users, registry
from kgather._publishing import publish as publishing
from kgather._publishing.publish import publish
from kgather._release.release import Check
from kgather._settings.publication import PublishSettings
from kgather._steps import gathering, groups


def attempt(sample: Path, folder: Path) -> str:
    """Publish, see the promise broken, and return what was said."""
    with pytest.raises(PromiseError) as broken:
        publish([str(sample)], folder / "release", PublishSettings(k=5), LoadOptions(), keep_work=folder / "work")
    assert sorted(path.name for path in folder.rglob("*")) == ["work"]
    return str(broken.value)


def test_a_method_that_leaves_a_user_alone(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(users: Users, options: NoOptions) -> Groups:
        del options
        groups = (np.arange(users.n) // users.k).astype(np.int32)
        groups[0] = groups.max() + 1
        return Groups(groups)

    broken = {**registry.registered(), "bkg": Method("bkg", "leaves a user alone", careless, refines=True)}
    monkeypatch.setattr(registry, "registered", lambda: broken)
    monkeypatch.setattr(gathering, "refine", lambda _, groups, *__, **___: groups)
    # The user who is alone, and nobody else: the group that was left has four.
    assert "5 of 240 users are in no group, or in one that is too small" in attempt(sample, tmp_path)


def test_ids_that_give_people_away(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "random_pseudonyms", lambda count: [f"user-{user + 1:04d}" for user in range(count)])
    assert "kgather__audit_promises_are_kept" in attempt(sample, tmp_path)


def test_files_that_do_not_hold_what_they_should(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "verify_release", lambda *_: (Check("k-anonymity", 5, 4, False),))
    assert "k-anonymity: promised 5, measured 4" in attempt(sample, tmp_path)
