"""kill -9 under load: after a restart the ledger holds every split whose answer had left.

$KGATHER_KILLS says how many kills, 5 by default.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from kills import KEY, Killing, audited
from server_process import Server

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("KGATHER_KILLS", "5"))


def test_nothing_that_was_told_is_forgotten(
    start: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGATHER_GUARD_KEY", KEY)
    draw = random.Random(7)
    killing = Killing(tmp_path / "server", start, tmp_path / "undisturbed")
    for _ in range(KILLS + 1):
        killing.round(draw.uniform(0.05, 1.0))

    def cut() -> int:
        return sum(bool(line["atoms_cut"]) for line in audited(tmp_path / "server") if line["decision"] == "answered")

    # A busy machine answers little in a second.
    for _ in range(40):
        if killing.told > KILLS and cut() >= 3:
            break
        killing.round(draw.uniform(2.0, 4.0))
    assert killing.told > KILLS
    assert cut() >= 3, "the load cut nothing"
