"""What the guard costs beside plain DuckDB over ten million people with eight columns: processor's time and memory.

Guard and DuckDB run in processes of their own, which say what each step took of the processor's time, all threads
together, and how much memory the process had at most:

    python benchmarks/guard_size.py guard|duckdb FOLDER
"""

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
from guard_results import Row

PEOPLE = 10_000_000
QUESTIONS = 500
"""After which the ledger's size is looked at."""
_TEXTS = {
    "sex": ("f", "m", "x"),
    "education": ("none", "school", "college", "master", "doctor"),
    "status": ("single", "married", "divorced", "widowed", "other", "unknown"),
    "city": tuple(f"city {at}" for at in range(300)),
}
_NUMBERS = {"rating": (1, 5), "visits": (0, 19), "month": (1, 12), "age": (18, 77)}
COLUMNS = (*_TEXTS, *_NUMBERS)
PAIRS = tuple(combinations(COLUMNS, 2))
_SETS = ", ".join(f"({one}, {other})" for one, other in PAIRS)
_STEPS = {
    "a one-way margin, 300 cities": "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "a one-way margin, 60 ages": "SELECT age, COUNT(*) AS n FROM people GROUP BY age",
    "a mean by key": "SELECT month, AVG(salary) AS a FROM people GROUP BY month",
    "all 28 two-way margins in one go": f"SELECT {', '.join(COLUMNS)}, COUNT(*) AS n FROM people "
    f"GROUP BY GROUPING SETS ({_SETS})",
}
_GOALS = {"open": 2.0, **dict(zip(_STEPS, (0.6, 0.6, 1.0, 8.0), strict=True))}
_MEMORY = 1000.0  # MB


def rows(folder: Path) -> list[Row]:
    """Rows of the results. folder: where the made-up people are written."""
    _write(folder)
    ours, plain = (_run(who, folder) for who in ("guard", "duckdb"))
    found = [
        Row(
            f"{what}, {PEOPLE:,} people",
            f"{goal:g} CPU s",
            f"{ours['steps'][what]:.2f} CPU s",
            ours["steps"][what] <= goal,
            {"plain DuckDB": f"{plain['steps'][what]:.2f} CPU s"} if what in plain["steps"] else {},
        )
        for what, goal in _GOALS.items()
    ]
    answered = sorted(ours["from_ledger"])
    median, slow = answered[len(answered) // 2], answered[int(len(answered) * 0.99)]
    return [
        *found,
        Row(
            f"a question answered from the ledger alone, {PEOPLE:,} people",
            "20 ms of the processor's time",
            f"median {median * 1000:.1f} ms, p99 {slow * 1000:.1f} ms",
            median <= 0.02,
            {},
            f"{len(answered)} questions that were not asked before, of up to 300 groups",
        ),
        Row(
            "memory of the process at most",
            f"{_MEMORY:g} MB",
            f"{ours['memory']:.0f} MB",
            ours["memory"] <= _MEMORY,
            {"plain DuckDB": f"{plain['memory']:.0f} MB"},
            "Python and all libraries included",
        ),
        Row(
            f"the ledger after {QUESTIONS} questions",
            "10 MB",
            f"{ours['ledger']:.2f} MB",
            ours["ledger"] <= 10,
            {},
            f"{ours['measurements']} measurements",
        ),
    ]


def _run(who: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, who, str(folder)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _write(folder: Path) -> None:
    texts = ", ".join(
        f"{list(values)}[1 + floor({len(values)} * random() * random())::int] as {name}"
        for name, values in _TEXTS.items()
    )
    numbers = ", ".join(
        f"({low} + floor(random() * {high - low + 1}))::{'INTEGER' if high > 12 else 'TINYINT'} as {name}"
        for name, (low, high) in _NUMBERS.items()
    )
    with duckdb.connect(str(folder / "people.duckdb")) as con:
        con.execute("set threads = 1")
        con.execute("select setseed(0.5)")
        con.execute(
            f"create table people as select range as user_id, {texts}, {numbers}, "
            f"round(20000 + 100000 * random() * random(), 2) as salary from range({PEOPLE})"
        )
    listed = ", ".join(f"{name}: [{', '.join(values)}]" for name, values in _TEXTS.items())
    bounds = ", ".join(f"{name}: [{low}, {high}]" for name, (low, high) in _NUMBERS.items())
    (folder / "guard.yml").write_text(
        "version: 1\ndatabase: people.duckdb\nledger: ledger.sqlite\nk: 10\nmargins: true\ntables:\n  people:\n"
        f"    privacy_unit: user_id\n    grain: unit\n    artifacts: [{', '.join(COLUMNS)}]\n    measures: [salary]\n"
        f"    values: {{{listed}}}\n    bounds: {{{bounds}, salary: [0, 150000]}}\nprincipals: {{analyst: {{}}}}\n",
        encoding="utf-8",
    )


# In a process of its own


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _memory() -> float:
    """What the process had at most, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _guard(folder: Path) -> dict[str, Any]:
    from kgather._guard.guard import Guard
    from kgather._guard.refused import Refused

    opened: list[Guard] = []
    steps = {"open": _timed(lambda: opened.append(Guard.from_policy(folder / "guard.yml")))}
    (guard,) = opened
    for what, sql in _STEPS.items():
        steps[what] = _timed(lambda sql=sql: guard.query(sql))  # type: ignore[misc]
    from_ledger = []
    for sql in _questions():
        before = guard.spending.measurements  # type: ignore[union-attr]
        start = time.process_time()
        try:
            guard.query(sql)
        except Refused:
            continue
        took = time.process_time() - start
        if guard.spending.measurements == before:  # type: ignore[union-attr]
            from_ledger.append(took)
    return {
        "steps": steps,
        "from_ledger": from_ledger,
        "memory": _memory(),
        "ledger": (folder / "ledger.sqlite").stat().st_size / 1e6,
        "measurements": guard.spending.measurements,  # type: ignore[union-attr]
    }


def _questions() -> list[str]:
    """Different questions: counts and means under one to three conditions, some in groups."""
    draw = random.Random(3)
    found: dict[str, None] = {}
    while len(found) < QUESTIONS:
        columns = draw.sample(list(COLUMNS), draw.randint(1, 3))
        where = " AND ".join(_condition(name, draw) for name in columns)
        told = draw.choice(("COUNT(*) AS n", "COUNT(*) AS n, AVG(salary) AS a"))
        key = draw.choice([name for name in COLUMNS if name not in columns])
        if len(columns) < 3 and draw.random() < 0.3:
            found[f"SELECT {key}, {told} FROM people WHERE {where} GROUP BY {key}"] = None
        else:
            found[f"SELECT {told} FROM people WHERE {where}"] = None
    return list(found)


def _condition(name: str, draw: random.Random) -> str:
    if name in _TEXTS:
        return f"{name} = '{draw.choice(_TEXTS[name])}'"
    return f"{name} >= {draw.randint(*_NUMBERS[name])}"


def _duckdb(folder: Path) -> dict[str, Any]:
    with duckdb.connect(str(folder / "people.duckdb"), read_only=True) as con:
        steps = {
            what: _timed(lambda sql=sql: con.execute(sql).fetchall())  # type: ignore[misc]
            for what, sql in _STEPS.items()
        }
    return {"steps": steps, "memory": _memory()}


if __name__ == "__main__":
    print(json.dumps({"guard": _guard, "duckdb": _duckdb}[sys.argv[1]](Path(sys.argv[2]))))
