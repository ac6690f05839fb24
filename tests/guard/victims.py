"""A process that is killed at a step of its work, again and again: all that it told has to be on the disk."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_KILLED = """
import gc, importlib, json, os, signal, sys
from kgather._guard.guard import Guard
# Steps are the lines of what decides and writes.
FILES = {importlib.import_module(name).__file__ for name in json.loads(sys.argv[3])}

def run(policy, queries, at, answers):
    left = at
    def line(frame, event, _):
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return line
    def call(frame, event, _):
        return line if frame.f_code.co_filename in FILES else None
    sys.settrace(call)
    guard = Guard.from_policy(policy)
    for query in queries:
        table = guard.query(query)
        os.write(answers, (json.dumps([query, table.to_pylist()]) + chr(10)).encode())
    sys.settrace(None)
    os.write(answers, (json.dumps(at - left) + chr(10)).encode())

# Kernels are compiled, or loaded, once, in threads that have ended before the first child begins.
guard = Guard.from_policy(sys.argv[1])
for query in json.loads(sys.argv[2]):
    guard.query(query)
del guard
gc.collect()

for task in sys.stdin:
    policy, queries, at, out = json.loads(task)
    child = os.fork()
    if child == 0:
        answers = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        run(policy, queries, at, answers)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Victim:
    """Asks queries of guards, each in a child of its own. modules: whose lines are the steps."""

    def __init__(self, policy: Path, queries: Sequence[str], modules: Sequence[str]) -> None:
        self.queries = [*queries]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(policy), json.dumps(self.queries), json.dumps(modules)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, policy: Path, at: int, out: Path) -> int:
        """Ask all, and be killed at a step (0: never); the exit code. out: where answers go, and how many steps there
        were, as lines of JSON."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(policy), self.queries, at, str(out)]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())
