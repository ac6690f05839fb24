"""How much work something is, counted: the same on every machine, however busy it is."""

import sys
import tracemalloc
from collections.abc import Callable, Collection
from types import FrameType


def count_calls(run: Callable[[], object]) -> int:
    """How many functions are called, Python's own and others, in this thread."""
    count = 0

    def hear(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def count_lines(run: Callable[[], object], of: Collection[str]) -> int:
    """How many lines of some files run, by their ends: what a kernel's Python does, loops included."""
    count = 0

    def hear(frame: FrameType, event: str, _argument: object) -> object:
        nonlocal count
        if not frame.f_code.co_filename.endswith(tuple(of)):
            return None
        count += event == "line"
        return hear

    before = sys.gettrace()
    sys.settrace(hear)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def megabytes(run: Callable[[], object]) -> float:
    """How much memory is in use at once, at most, beyond what was before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
