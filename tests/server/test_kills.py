"""kill -9 under load: after a restart the ledger holds every measurement that anything which had left was made of.

$KGATHER_KILLS says how many kills, 5 by default.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from kills import Killing, charged, replayed
from server_process import Server

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("KGATHER_KILLS", "5"))


def test_nothing_that_was_told_is_forgotten(start: Callable[..., Server], tmp_path: Path) -> None:
    folder = tmp_path / "server"
    draw = random.Random(7)
    killing = Killing(folder, start)
    for _ in range(KILLS + 1):
        killing.round(draw.uniform(0.05, 1.0))
    # A busy machine answers little in a second.
    for _ in range(40):
        if len(killing.told) > KILLS and len(charged(folder)) >= 3:
            break
        killing.round(draw.uniform(2.0, 4.0))
    assert len(killing.told) > KILLS
    assert len(charged(folder)) >= 3, "the load measured nothing"
    refused = {sql: told for sql, told in killing.told.items() if isinstance(told, str)}
    assert set(refused.values()) <= {"KG001"}, refused
    found = replayed(folder)
    assert len(found) >= len(killing.told)
    assert {again.result for again in found} == {"agrees"}, [(again.entry["text"], again.why) for again in found]
