"""Which signals a process heeds that a test starts, whatever the tests themselves were started with."""

import signal
from collections.abc import Sequence

from kgather._cli import stopping


def beginning(ignored: Sequence[int] = ()) -> str:
    """Python that ignores some signals and heeds the others, also where the tests themselves run in the background."""
    lines = ["import signal"]
    for number in map(int, stopping.SIGNALS):
        heeded = "signal.default_int_handler" if number == signal.SIGINT else "signal.SIG_DFL"
        lines.append(f"signal.signal({number}, {'signal.SIG_IGN' if number in ignored else heeded})")
    return "; ".join(lines) + "\n"
