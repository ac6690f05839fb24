"""Whatever is asked of mode exact, of whatever database: no answers tell fewer than k users from all others."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import ask_all, statements, worlds

pytestmark = pytest.mark.long

LONG = int(os.environ.get("KGATHER_GUARD_SEQUENCES", "0"))
"""How many sequences the long run asks, and of up to how many statements each."""
MOST = int(os.environ.get("KGATHER_GUARD_STATEMENTS", "200" if LONG else "9"))

PROFILE = settings(
    max_examples=LONG or 15,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=list(HealthCheck),
)


@PROFILE
@given(data=st.data())
def test_nobody_is_singled_out(tmp_path_factory: Any, data: st.DataObject) -> None:
    world = data.draw(worlds())
    folder: Path = tmp_path_factory.mktemp("world")
    world.write(folder)
    who = st.sampled_from(("one", "two"))
    asks = data.draw(st.lists(st.tuples(who, statements(world)), min_size=MOST // 2, max_size=MOST))
    reopen = tuple(data.draw(st.lists(st.integers(1, MOST), max_size=2)))
    oracle = world.oracle()
    ask_all(folder, world, asks, oracle, reopen=reopen)
    oracle.check()
