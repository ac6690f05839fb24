"""The guard's rivals, each asked the same questions in an environment of its own.

Run as a script, in that environment, it is one rival: `guard_rivals.py RIVAL FOLDER` reads what `guard_people.save`
wrote and writes FOLDER/RIVAL.json. Only numpy is there for certain.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from guard_people import People, Question, load, save
from guard_told import OLDER
from numpy.typing import NDArray

PATIENCE = 90.0
"""Seconds of the processor after which a rival is asked no more."""
LONGEST = 1800
"""Seconds on the clock after which a rival is stopped; what it told until then counts."""
_EVERY = 5.0  # seconds between two times that a rival writes what it told
_INSTALL = 1200  # seconds
_PACKAGES: Mapping[str, str] = {
    "smartnoise-sql": "smartnoise-sql",
    "smartnoise-sql items": "smartnoise-sql",
    "mst": "smartnoise-synth",
    "aim": "smartnoise-synth",
}
K = 10

Told = tuple[float | None, float | None]
"""A count and a mean, None where the rival tells nothing; or an item and its mean."""


class Unavailable(Exception):  # noqa: N818 - it is written among the results
    """A rival that cannot be asked here, with the reason."""


# Outside: environments, and asking in them


def ask(
    rival: str, people: People, questions: Sequence[Question], about: Mapping[str, object], folder: Path
) -> list[Told]:
    """What a rival tells, in the order of the questions; less than asked where patience ended.

    about: "rho" and "epsilon" of the whole budget, "delta", "bounds" and "artifacts" of columns. Raises Unavailable.
    """
    save(folder, people, questions)
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    python, path = (Path(sys.executable), _older(folder)) if rival == "older" else (_environment(rival), None)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    try:
        done = subprocess.run(
            [python, __file__, rival, folder],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        if not (folder / f"{rival}.json").exists():
            msg = f"it told nothing within {LONGEST} s"
            raise Unavailable(msg) from None
    else:
        if done.returncode < 0:
            msg = f"it ended by signal {-done.returncode}"
            raise Unavailable(msg)
        if done.returncode:
            raise Unavailable((done.stderr.strip().splitlines() or ["no reason given"])[-1][:200])
    return [tuple(one) for one in json.loads((folder / f"{rival}.json").read_text(encoding="utf-8"))]


def environments() -> Path:
    """Where rivals are installed: $KGATHER_BENCH_ENVS, where it is kept, or a temporary folder."""
    return Path(os.environ["KGATHER_BENCH_ENVS"])


def _environment(rival: str) -> Path:
    """The Python of a rival's environment, which is made where it is not there. Raises Unavailable."""
    made = environments() / _PACKAGES[rival]
    python = made / "bin" / "python"
    if (made / "ready").exists():
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", made], check=True, capture_output=True, text=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", _PACKAGES[rival]],
            check=True,
            capture_output=True,
            text=True,
            timeout=_INSTALL,
        )
    except subprocess.TimeoutExpired:
        msg = f"pip installs it for more than {_INSTALL} s"
        raise Unavailable(msg) from None
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if "ERROR" in line] or ["no reason given"]
        msg = f"pip does not install it: {said[-1][:200]}"
        raise Unavailable(msg) from None
    (made / "ready").touch()
    return python


def _older(folder: Path) -> Path:
    """The sources of the older revision, unpacked. Raises Unavailable."""
    told = subprocess.run(
        ["git", "archive", OLDER, "src", "udfs", "models", "sql"],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        check=False,
    )
    if told.returncode:
        msg = f"this clone has no revision {OLDER}"
        raise Unavailable(msg)
    with tarfile.open(fileobj=io.BytesIO(told.stdout)) as archive:
        archive.extractall(folder / "older", filter="data")
    return folder / "older" / "src"


# Inside: one function a rival


def _asked(questions: Sequence[Question], tell: Callable[[Question], Told]) -> Iterator[Told]:
    """What is told before patience ends."""
    start = None
    for question in questions:
        if start is not None and time.process_time() - start > PATIENCE:
            return
        yield tell(question)
        start = start or time.process_time()  # what is compiled or loaded for the first one is left out


def _smartnoise(people: People, questions: Sequence[Question], about: Mapping) -> Iterator[Told]:
    """Noise of its own for each question. The budget is split evenly by zero-concentrated privacy, which leaves each
    mechanism more than an even split of epsilon does: one that is epsilon-private costs epsilon^2 / 2."""
    import sqlite3

    import pandas as pd
    import snsql

    rho = about["rho"] / len(questions)

    def column(name: str, values: NDArray) -> dict[str, object]:
        if values.dtype.kind == "U":
            return {"type": "string"}
        low, high = about["bounds"][name]
        return {"type": "int", "lower": low, "upper": high}

    size = len(next(iter(people.values())))
    columns = {name: column(name, values) for name, values in people.items()}
    # Without keys there are none to hide: small counts are told, too.
    table = {"row_privacy": True, "censor_dims": False, "rows": size, **columns}
    meta = {"": {"main": {"people": table}}}
    con = sqlite3.connect(":memory:")
    pd.DataFrame(people).to_sql("people", con, index=False)

    def tell(question: Question) -> Told:
        # A count is one mechanism; a mean is a sum and a count, and a count beside it counts once more.
        mechanisms = question.counted + 2 * (question.mean_of is not None)
        privacy = snsql.Privacy(epsilon=float(np.sqrt(2 * rho / mechanisms)), delta=about["delta"] / len(questions))
        reader = snsql.from_connection(con, privacy=privacy, metadata=meta, engine="sqlite")
        names, *rows = reader.execute(question.sql("main.people"))
        found = dict(zip(names, rows[0], strict=True)) if rows else {}
        return _number(found.get("n")), _number(found.get("a"))

    yield from _asked(questions, tell)


def _number(value: object) -> float | None:
    return None if value is None or not np.isfinite(float(value)) else float(value)


def _of_older(people: People, questions: Sequence[Question], about: Mapping) -> Iterator[Told]:
    """The older revision in its mode adaptive: figures of atoms, cut as far as k allows."""
    import duckdb
    import pyarrow as pa

    from kgather.guard import Guard, Refused

    folder = Path(about["folder"])
    size = len(next(iter(people.values())))
    with duckdb.connect(str(folder / "older.duckdb")) as con:
        con.register(
            "given",
            pa.table({"user_id": np.arange(size), **{n: pa.array(v, from_pandas=True) for n, v in people.items()}}),
        )
        con.execute("create table people as from given")
    measures = [name for name in people if name not in about["artifacts"]]
    (folder / "older.yml").write_text(
        f"version: 1\ndatabase: older.duckdb\nk: {K}\ntables:\n  people:\n    privacy_unit: user_id\n"
        f"    grain: unit\n    artifacts: [{', '.join(about['artifacts'])}]\n    measures: [{', '.join(measures)}]\n"
        "limits: {memory: 8GB, time_ms: 600000}\nprincipals: {analyst: {}}\n",
        encoding="utf-8",
    )
    guard = Guard.from_policy(folder / "older.yml")
    for statement in about["first"]:
        guard.query(statement)

    def tell(question: Question) -> Told:
        try:
            row = guard.query(question.sql()).to_pylist()[0]
        except Refused:
            return None, None
        return _number(row.get("n")), _number(row.get("a"))

    yield from _asked(questions, tell)


def _rows(method: str) -> Callable[[People, Sequence[Question], Mapping], Iterator[Told]]:
    """Made-up rows by a method of smartnoise-synth; questions are asked of the rows."""

    def told(people: People, questions: Sequence[Question], about: Mapping) -> Iterator[Told]:
        import pandas as pd
        from snsynth import Synthesizer

        classes = {name: _classes(values) for name, values in people.items()}
        frame = pd.DataFrame({name: codes for name, (_, codes) in classes.items()})
        maker = Synthesizer.create(method, epsilon=about["epsilon"], delta=about["delta"])
        maker.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
        made = maker.sample(len(frame))
        rows = {name: of[made[name].to_numpy().astype(np.int64)] for name, (of, _) in classes.items()}

        def tell(question: Question) -> Told:
            count, mean = question.told(rows)
            return (float(count), _number(mean)) if count >= K else (None, None)

        yield from _asked(questions, tell)

    return told


def _classes(values: NDArray) -> tuple[NDArray, NDArray[np.int64]]:
    """The different values of a column, no value being one, and the place of each person's."""
    found, codes = np.unique(values, return_inverse=True)
    return found, codes.astype(np.int64)


def _smartnoise_items(people: People, questions: Sequence[Question], about: Mapping) -> Iterator[Told]:
    """Items that are shown, with their mean rating, by one GROUP BY; of each person so many rows, drawn at random."""
    import pandas as pd
    import snsql

    del questions
    low, high = about["bounds"]["rating"]
    table = {
        "max_ids": about["rows"],
        "user_id": {"type": "int", "private_id": True},
        "item_id": {"type": "int"},
        "rating": {"type": "int", "lower": low, "upper": high},
    }
    # The mean is a sum and a count; the count of people that decides which items are shown comes with it.
    privacy = snsql.Privacy(epsilon=about["epsilon"] / 3, delta=about["delta"])
    meta = {"": {"public": {"ratings": table}}}
    reader = snsql.from_df(pd.DataFrame(people).astype(int), privacy=privacy, metadata=meta)
    asked = "SELECT item_id, AVG(rating) AS a FROM public.ratings GROUP BY item_id"
    for item, mean in reader.execute(asked)[1:]:
        yield float(item), _number(mean)


_INSIDE = {
    "smartnoise-sql": _smartnoise,
    "smartnoise-sql items": _smartnoise_items,
    "older": _of_older,
    "aim": _rows("aim"),
    "mst": _rows("mst"),
}


def _write(answers: Iterator[Told], path: Path) -> None:
    """Write answers as they come, now and then, so that they are there when a rival is stopped."""
    found: list[Told] = []
    written = time.perf_counter()

    def write() -> None:
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(path)

    for answer in answers:
        found.append(answer)
        if time.perf_counter() - written > _EVERY:
            write()
            written = time.perf_counter()
    write()


if __name__ == "__main__":
    name, place = sys.argv[1], Path(sys.argv[2])
    told = json.loads((place / "about.json").read_text(encoding="utf-8")) | {"folder": str(place)}
    _write(_INSIDE[name](*load(place), told), place / f"{name}.json")
