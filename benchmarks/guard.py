"""The guard: how far off its answers are in mode measured, beside other guards, and what a question costs.

    make bench-guard                              all parts
    python benchmarks/guard.py [part] [part] ...  some of: ml-100k ml-1m 100k 1m adult items time size

Each part has a ledger of its own with the default budget (epsilon 8, delta 1e-6; items: such that its one question
costs rho .3), k = 10 and the noise that is shipped, so that numbers differ a little from run to run. Counts are looked
at where the truth is at least 10. Rivals get the same questions and the same budget in environments of their own
(`guard_rivals.py`), which are made in a temporary folder, or kept in $KGATHER_BENCH_ENVS.
Needs real data under $KGATHER_DATA. Writes benchmarks/results/guard.{md,json}; parts that did not run stay.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import guard_rivals
import guard_size
import numpy as np
import pyarrow as pa
from guard_people import People, Question, about_adults, about_films, adults, raters, ratings, resampled
from guard_results import Row, write
from guard_stored import store
from guard_told import NAMES, Told, Truth, compared, errors_of, quantile, shown, thresholds, within_one
from harness import Timing
from numpy.typing import NDArray

from kgather._guard.guard import Guard
from kgather._guard.measured.accounting import epsilon_of, rho_of
from kgather._guard.measured.engine import MeasuredEngine
from kgather._guard.measured.shares import FOR_KEYS
from kgather._guard.refused import Refused

K = 10
EPSILON, DELTA = 8.0, 1e-6
LEAST = 10
"""People who have to be in a group for the error of its count to be looked at."""
BIG = 0.02
"""The part of all people that a big group has."""
RATINGS = (1, 5)
ITEMS_RHO = 0.3
"""What the question for all items' means costs."""
ROWS_A_PERSON = 64
"""Of a person's ratings, so many are counted in full where the policy says so."""
WARM = 50
"""Questions before times are taken."""

Statement = Sequence[str]


@dataclass(frozen=True)
class Asking:
    """A guard's run through questions. seconds, cpu: of each question, on the clock and of all threads' work. charged:
    which led to a measurement."""

    told: Told
    seconds: NDArray[np.float64]
    cpu: NDArray[np.float64]
    charged: NDArray[np.bool_]
    rho: float
    measurements: int


def ask(guard: Guard, questions: Sequence[Question]) -> Asking:
    """Ask one question after the other."""
    table = np.full((len(questions), 4), np.nan)
    seconds, cpu = np.zeros(len(questions)), np.zeros(len(questions))
    charged = np.zeros(len(questions), dtype=bool)
    ledger = _engine(guard).ledger
    known = len(ledger.measurements())
    for at, question in enumerate(questions):
        start, work = time.perf_counter(), time.process_time()
        try:
            answer = guard.answer(question.sql(), errors=True)
        except Refused:
            answer = None
        seconds[at], cpu[at] = time.perf_counter() - start, time.process_time() - work
        now = len(ledger.measurements())
        charged[at], known = now > known, now
        if answer is not None:
            row = answer.table.to_pylist()[0]
            (errors,) = (one.to_pylist()[0] for one in answer.errors.values())
            found = [value for name, value in errors.items() if name.endswith("_error")]
            places = [0] * question.counted + [1] * (question.mean_of is not None)
            for place, name in enumerate(("n", "a")):
                if row.get(name) is not None:
                    table[at, place], table[at, 2 + place] = row[name], found[places.index(place)]
    measurements = ledger.measurements()
    told = Told(*table.T)
    return Asking(told, seconds, cpu, charged, sum(one.rho for one in measurements), len(measurements))


def _engine(guard: Guard) -> MeasuredEngine:
    assert isinstance(guard.engine, MeasuredEngine)
    return guard.engine


def opened(
    folder: Path, artifacts: Sequence[str], measures: Sequence[str], bounds: Mapping[str, tuple[int, int]]
) -> Guard:
    """A guard of the default budget over the people in a folder."""
    listed = ", ".join(f"{name}: [{low}, {high}]" for name, (low, high) in bounds.items())
    (folder / "guard.yml").write_text(
        f"version: 1\ndatabase: people.duckdb\nledger: ledger.sqlite\nk: {K}\n"
        f"budget: {{epsilon: {EPSILON}, delta: {DELTA}}}\ntables:\n  people:\n    privacy_unit: user_id\n"
        f"    grain: unit\n    artifacts: [{', '.join(artifacts)}]\n    measures: [{', '.join(measures)}]\n"
        f"    bounds: {{{listed}}}\nlimits: {{memory: 8GB, time_ms: 600000}}\nprincipals: {{analyst: {{}}}}\n",
        encoding="utf-8",
    )
    return Guard.from_policy(folder / "guard.yml")


def rivals_told(
    names: Sequence[str], people: People, questions: Sequence[Question], about: Mapping[str, object], truth: Truth
) -> dict[str, Told | str]:
    """What each rival tells, or why it cannot be asked."""
    found: dict[str, Told | str] = {"thresholds": thresholds(truth, K)}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                answers = guard_rivals.ask(name, people, questions, about, Path(folder))
            except guard_rivals.Unavailable as reason:
                found[name] = f"not asked: {reason}"
                continue
        found[name] = Told.from_rival(answers, len(questions))
    return found


def films(
    people: People, count: int, goals: tuple[float, float], means: tuple[float, float] | None, rivals: Sequence[str]
) -> list[Row]:
    """Rows of counts, and with `means` (goals of median and 90th percentile) of mean ages, asked in one ledger."""
    size = len(people["f0"])
    artifacts = [name for name in people if name != "age"]
    bounds = dict.fromkeys(artifacts, RATINGS)
    if means is not None:
        bounds["age"] = int(people["age"].min()), int(people["age"].max())
    questions = about_films(len(artifacts), count, "age" if means is not None else None)
    truth = Truth.of(people, questions)
    with _folder() as folder:
        store(folder, people)
        guard = opened(folder, artifacts, ["age"] if means is not None else [], bounds)
        asked = ask(guard, questions)
    found = rivals_told(rivals, people, questions, _about(bounds, artifacts), truth)
    looked, big = truth.counts >= LEAST, truth.counts >= BIG * size
    counts = errors_of(asked.told.counts, truth.counts, looked, big)
    cells, ahead = compared(counts, found, lambda told: errors_of(told.counts, truth.counts, looked, big))
    median = counts.median()
    everything = quantile(np.where(np.isnan(counts.of), 1.0, counts.of)[looked], 0.5)
    behind = f"; behind {', '.join(ahead)}" if ahead else ""
    rows = [
        Row(
            f"COUNT, {size:,} people, {len(artifacts)} films, {count:,} questions",
            f"{goals[0]:.1%} ({goals[1]:.2%})",
            f"{shown(counts)}, {counts.withheld:.0%} withheld",
            median[0] <= goals[0] and median[1] <= goals[1] and not ahead,
            cells,
            f"{within_one(asked.told.counts, asked.told.of_counts, truth.counts, looked)}; median "
            f"{everything:.1%} where what is withheld counts as 100%; rho {asked.rho:.3f} in {asked.measurements} "
            f"measurements{behind}",
        )
    ]
    if means is not None:
        looked = truth.counts >= 100
        ages = errors_of(asked.told.means, truth.means, looked, big)
        cells, ahead = compared(
            ages, found, lambda told: errors_of(told.means, truth.means, looked, big), with_p90=True
        )
        rows.append(
            Row(
                f"AVG(age), groups of 100 and more, {size:,} people",
                f"{means[0]:.1%} (p90 {means[1]:.1%})",
                f"{shown(ages, with_p90=True)}, {ages.withheld:.0%} withheld",
                ages.median()[0] <= means[0] and ages.p90() <= means[1] and not ahead,
                cells,
                f"{within_one(asked.told.means, asked.told.of_means, truth.means, looked)}"
                + (f"; behind {', '.join(ahead)}" if ahead else ""),
            )
        )
    rows.append(_latency(asked))
    return rows


def _about(bounds: Mapping, artifacts: Sequence[str], first: Statement = ()) -> dict[str, object]:
    """What rivals have to know."""
    return {
        "epsilon": EPSILON,
        "delta": DELTA,
        "rho": rho_of(EPSILON, DELTA),
        "bounds": bounds,
        "artifacts": list(artifacts),
        "first": list(first),
    }


def _latency(asked: Asking) -> Row:
    """Times of the questions that needed no measurement, after the first ones."""
    mine = ~asked.charged
    mine[:WARM] = False
    from_ledger, work = asked.seconds[mine] * 1000, asked.cpu[mine] * 1000
    return Row(
        "time of a question answered from the ledger",
        "20 ms",
        f"median {quantile(from_ledger, 0.5):.1f} ms, p99 {quantile(from_ledger, 0.99):.1f} ms",
        quantile(from_ledger, 0.99) <= 20,
        {},
        f"{len(from_ledger)} questions, charged ones left out; processor's time: median {quantile(work, 0.5):.1f} ms, "
        f"p99 {quantile(work, 0.99):.1f} ms",
    )


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# Parts


def of_ml_100k(data: Path) -> list[Row]:
    people = raters(data, "ml-100k", 10)
    rivals = ("older", "smartnoise-sql", "mst", "aim")
    return films(people, 1_500, (0.055, 0.045), (0.02, 0.06), rivals)


def of_ml_1m(data: Path) -> list[Row]:
    people = raters(data, "ml-1m", 20)
    rivals = ("older", "smartnoise-sql", "mst", "aim")
    return films(people, 3_000, (0.025, 0.01), (0.012, 0.045), rivals)


def of_100k(data: Path) -> list[Row]:
    people = resampled(raters(data, "ml-1m", 20), 17)
    return films(people, 1_500, (0.007, 0.0008), None, ("older", "smartnoise-sql", "mst"))


def of_1m(data: Path) -> list[Row]:
    people = resampled(raters(data, "ml-1m", 20), 170)
    return films(people, 600, (0.001, 0.0002), None, ("older", "smartnoise-sql", "mst"))


def of_adult(data: Path) -> list[Row]:
    """Means of a column under a condition on it, after a GROUP BY of each of ten columns."""
    people = adults(data)
    bounds = {"age": (17, 90), "salary": (5, 250)}
    questions = about_adults(people, 300)
    truth = Truth.of(people, questions)
    first = [f"SELECT {name}, COUNT(*) AS n FROM people GROUP BY {name}" for name in people]
    with _folder() as folder:
        store(folder, people)
        guard = opened(folder, list(people), [], bounds)
        for statement in first:
            guard.query(statement)
        asked = ask(guard, questions)
    found = rivals_told(
        ("older", "smartnoise-sql", "mst"), people, questions, _about(bounds, list(people), first), truth
    )
    looked = truth.counts >= 500
    big = truth.counts >= BIG * len(people["age"])
    means = errors_of(asked.told.means, truth.means, looked, big)
    cells, ahead = compared(means, found, lambda told: errors_of(told.means, truth.means, looked, big), with_p90=True)
    return [
        Row(
            f"AVG of a column under a condition on it, {len(people['age']):,} people, groups of 500 and more, after "
            f"GROUP BYs of {len(people)} columns",
            "3%",
            f"{shown(means, with_p90=True)}, {means.withheld:.0%} withheld",
            means.median()[0] <= 0.03 and not ahead,
            cells,
            f"Adult drawn again to that size, with a made-up salary; {looked.sum()} of {len(questions)} questions; "
            f"{within_one(asked.told.means, asked.told.of_means, truth.means, looked)}"
            + (f"; behind {', '.join(ahead)}" if ahead else ""),
        ),
        _latency(asked),
    ]


def of_items(data: Path) -> list[Row]:
    """GROUP BY item, AVG(rating), under a budget of which this question costs rho .3."""
    user, item, rating = ratings(data, "ml-1m").T
    truth = _means_by(item, rating)
    with _folder() as folder:
        with duckdb.connect(str(folder / "people.duckdb")) as con:
            con.register("given", pa.table({"user_id": user, "item_id": item, "rating": rating}))
            con.execute("create table ratings as from given")
        ours = [_means_of_items(folder, declared) for declared in (ROWS_A_PERSON, None)]
    try:
        theirs: dict[int, float] | str = _smartnoise_items({"user_id": user, "item_id": item, "rating": rating})
    except guard_rivals.Unavailable as reason:
        theirs = f"not asked: {reason}"
    return [_of_items(what, told, theirs, truth, rating, item) for what, told in zip(_DECLARED, ours, strict=True)]


_DECLARED = (f"rows_per_person: {ROWS_A_PERSON} in the policy", "rows_per_person found by the guard")


@dataclass(frozen=True)
class _Items:
    """The means told, the cost of the question as rho, and the epsilon of the budget."""

    told: Mapping[int, float]
    rho: float
    epsilon: float


def _of_items(
    what: str,
    ours: _Items,
    theirs: Mapping[int, float] | str,
    truth: Mapping[int, float],
    rating: NDArray[np.int64],
    item: NDArray[np.int64],
) -> Row:
    told = ours.told
    whole = float(rating.mean())
    off = _stars(told, truth)
    cell, ahead = (
        theirs if isinstance(theirs, str) else f"{len(theirs):,} keys, {_stars(theirs, truth):.2f} stars",
        False,
    )
    if not isinstance(theirs, str):
        both = theirs.keys() & told.keys()
        mine, other = (_stars({one: of[one] for one in both}, truth) for of in (told, theirs))
        cell += f"; on {len(both)} shown by both {other:.2f} and kgather {mine:.2f}"
        ahead = len(theirs) > len(told) or other < mine
    return Row(
        f"GROUP BY item, AVG(rating), 6,040 people, {len(truth):,} items, {what}",
        "at least 1,300 keys shown, .10 stars",
        f"{len(told):,} keys shown, {off:.3f} stars",
        len(told) >= 1_300 and off <= 0.10 and not ahead,
        {
            NAMES["thresholds"]: f"{sum(np.bincount(item) >= K):,} keys, 0 stars",
            NAMES["smartnoise-sql"]: cell,
            NAMES["mst"]: "cannot: a person is many rows",
        },
        f"rho {ours.rho:.3f} of a budget of epsilon {ours.epsilon:.2f}; telling the mean of all for each of these "
        f"items errs by {_stars(dict.fromkeys(told, whole), truth):.2f}",
    )


def _means_of_items(folder: Path, declared: int | None) -> _Items:
    """What the guard tells in a ledger of its own."""
    statement = "SELECT item_id, AVG(rating) AS a FROM ratings GROUP BY item_id"
    epsilon = _epsilon_for(folder, statement, declared)
    guard = _of_ratings(folder, epsilon, declared)
    told = {row["item_id"]: row["a"] for row in guard.query(statement).to_pylist() if row["a"] is not None}
    return _Items(told, sum(one.rho for one in _engine(guard).ledger.measurements()), epsilon)


def _smartnoise_items(rows: People) -> dict[int, float]:
    """What the rival tells with the number of rows a person that shows most items, tried out without a charge."""
    found: dict[int, float] = {}
    for most in (4, 8, 16, 32):
        about = _about({"rating": RATINGS}, []) | {"epsilon": epsilon_of(ITEMS_RHO, DELTA), "rows": most}
        with _folder() as folder:
            answers = guard_rivals.ask("smartnoise-sql items", rows, [], about, folder)
        told = {int(item): mean for item, mean in answers if item is not None and mean is not None}
        found = max(found, told, key=len)
    return found


def _of_ratings(folder: Path, epsilon: float, declared: int | None) -> Guard:
    """A guard with a new ledger."""
    rows = f"    rows_per_person: {declared}\n" if declared is not None else ""
    ledger = f"{len(list(folder.iterdir()))}.sqlite"
    (folder / "guard.yml").write_text(
        f"version: 1\ndatabase: people.duckdb\nledger: {ledger}\nk: {K}\n"
        f"budget: {{epsilon: {epsilon!r}, delta: {DELTA}}}\ntables:\n  ratings:\n    privacy_unit: user_id\n"
        "    grain: rows\n    unique: item_id\n    artifacts: [item_id, rating]\n"
        f"    bounds: {{rating: [{RATINGS[0]}, {RATINGS[1]}]}}\n{rows}"
        "limits: {memory: 8GB, time_ms: 600000}\nprincipals: {analyst: {}}\n",
        encoding="utf-8",
    )
    return Guard.from_policy(folder / "guard.yml")


def _epsilon_for(folder: Path, statement: str, declared: int | None) -> float:
    """The epsilon of the budget under which a statement costs ITEMS_RHO: prices are shares of the whole. It is tried
    out in a ledger of its own."""
    guard = _of_ratings(folder, EPSILON, declared)
    guard.query(statement)
    cost = sum(one.rho for one in _engine(guard).ledger.measurements())
    return epsilon_of(_engine(guard).prices.total * ITEMS_RHO / cost, DELTA * (1 - FOR_KEYS))


def _means_by(item: NDArray[np.int64], rating: NDArray[np.int64]) -> dict[int, float]:
    counts = np.bincount(item)
    sums = np.bincount(item, weights=rating)
    return {int(one): float(sums[one] / counts[one]) for one in np.flatnonzero(counts)}


def _stars(told: Mapping[int, float], truth: Mapping[int, float]) -> float:
    """The median distance of means from the truth."""
    return float(np.median([abs(mean - truth[item]) for item, mean in told.items()])) if told else np.nan


# Times

_COLUMNS = 8
_SIZES = (1_000, 1_000_000, 10_000_000)
_PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7), (1, 2))


def of_time(data: Path) -> list[Row]:
    """Made-up people: what a question costs that the ledger answers, and what a measurement costs beside DuckDB."""
    del data
    rows = []
    for size in _SIZES:
        with _folder() as folder:
            _made_up(folder, size)
            rows += _times(folder, size)
    return rows


def _made_up(folder: Path, size: int) -> None:
    columns = ", ".join(f"(1 + floor(random() * 5))::TINYINT as f{place}" for place in range(_COLUMNS))
    with duckdb.connect(str(folder / "people.duckdb")) as con:
        con.execute("select setseed(0.5)")
        con.execute(
            f"create table people as select range as user_id, {columns}, (18 + floor(random() * 60))::INTEGER as age "
            f"from range({size})"
        )


def _times(folder: Path, size: int) -> list[Row]:
    films_ = [f"f{place}" for place in range(_COLUMNS)]
    guard = opened(folder, films_, ["age"], {**dict.fromkeys(films_, RATINGS), "age": (18, 77)})
    pairs = [f"SELECT f{one}, f{two}, COUNT(*) AS n FROM people GROUP BY f{one}, f{two}" for one, two in _PAIRS]
    sums = [f"SELECT f{one}, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY f{one}" for one in range(_COLUMNS)]
    ratios = [_against_duckdb(guard, folder, statements) for statements in (pairs, sums)] if size == max(_SIZES) else []
    ask(guard, about_films(_COLUMNS, 400, "age"))
    others = about_films(_COLUMNS, 1_000, "age")[400:]
    asked = ask(guard, others)
    again = ask(guard, others)
    rows = []
    for what, of in (("new questions", asked), ("the same again", again)):
        row = _latency(of)
        rows.append(Row(f"{row.what}, {size:,} people, {what}", row.goal, row.ours, row.reached, {}, row.notes))
    for what, found in zip(("pairs of columns", "AVG by a column"), ratios, strict=False):
        rows.append(
            Row(
                f"a measurement, {size:,} people, {what}",
                "3 times DuckDB's own GROUP BY",
                f"{found.ratio / found.measurements:.2g} times",
                found.ratio <= 3 * found.measurements,
                {"plain DuckDB": str(found.plain)},
                f"of a statement that leads to {found.measurements:.2g}; it takes {found.ours} with noise and ledger, "
                f"{found.ratio:.2g} times DuckDB's statement, {found.work:.2g} times of the processor's time",
            )
        )
    return rows


@dataclass(frozen=True)
class _Measured:
    """Times of statements that are measured and of the same in DuckDB. ratio, work: medians of the clock's and of the
    processor's time, ours as a multiple, for all that a statement leads to. measurements: how many that is."""

    ours: Timing
    plain: Timing
    ratio: float
    work: float
    measurements: float


def _against_duckdb(guard: Guard, folder: Path, statements: Statement) -> _Measured:
    """Ask statements that are measured, and the same in DuckDB, in turns; the first one only warms up."""
    times = np.zeros((len(statements), 4))
    ledger = _engine(guard).ledger
    with duckdb.connect(str(folder / "people.duckdb"), read_only=True) as con:
        for at, statement in enumerate(statements):
            if at == 1:
                before = len(ledger.measurements())
            marks = [(time.perf_counter(), time.process_time())]
            con.execute(statement).fetchall()
            marks.append((time.perf_counter(), time.process_time()))
            guard.query(statement)
            marks.append((time.perf_counter(), time.process_time()))
            times[at] = np.diff(np.array(marks), axis=0).ravel()
    plain, plain_work, ours, ours_work = times[1:].T
    taken = (len(ledger.measurements()) - before) / len(ours)
    ratio, work = float(np.median(ours / plain)), float(np.median(ours_work / plain_work))
    return _Measured(Timing(tuple(ours.tolist())), Timing(tuple(plain.tolist())), ratio, work, taken)


def of_size(data: Path) -> list[Row]:
    """Ten million made-up people of eight columns, beside plain DuckDB."""
    del data
    with _folder() as folder:
        return guard_size.rows(folder)


PARTS: Mapping[str, Callable[[Path], list[Row]]] = {
    "ml-100k": of_ml_100k,
    "ml-1m": of_ml_1m,
    "100k": of_100k,
    "1m": of_1m,
    "adult": of_adult,
    "items": of_items,
    "time": of_time,
    "size": of_size,
}


def main() -> None:
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        sys.exit(f"There is no part {unknown[0]}. Parts: {', '.join(PARTS)}.")
    here = Path(__file__).parent.parent
    data = Path(os.environ.get("KGATHER_DATA", here.parent / "shared" / "data"))
    for name in ("ml-100k", "ml-1m", "adult"):
        if not (data / name).is_dir():
            sys.exit(f"No {name} under {data}. Set KGATHER_DATA.")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("KGATHER_BENCH_ENVS", folder)
        for name in chosen:
            write(list(PARTS), name, PARTS[name](data))


if __name__ == "__main__":
    main()
