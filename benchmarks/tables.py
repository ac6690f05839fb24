"""What an anonymized table loses, and how fast: Adult against a rival, made-up rows at scale.

  python benchmarks/tables.py [adult] [scale ROWS]

Adult (30,162 rows without missing values) is looked for in $KGATHER_DATA/adult, with the hierarchies that come with
ARX.
The loss is the NCP with cuts at every year (`ncp`), and beside it with the ages cut every five years (`ncp, declared
cuts`: the column `age` alone differs), nobody suppressed. anonypy, if it is installed, runs in the same process on the
same rows, and its classes are measured by the same formula. Seconds are those of processors: `seconds` of the whole run
(the statement, the audit and what the table cost), `seconds, kernel` of putting combinations into classes alone, which
is what anonypy's are.
"""

import csv
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import kgather
from kgather._recoding import recode
from kgather._settings.table import table_settings
from kgather._tables.run import anonymize

ADULT = Path(os.environ.get("KGATHER_DATA", Path(__file__).parents[2] / "shared" / "data")) / "adult"
COLUMNS = {
    8: ["age", "sex", "race", "marital-status", "education", "native-country", "workclass", "occupation"],
    5: ["age", "sex", "race", "education", "native-country"],
}
RIVAL = "anonypy"
RESULTS = Path(__file__).parent / "results"


def settings(columns: list[str], k: int, step: int = 1, **others: object) -> dict[str, object]:
    quasi = {name: {"hierarchy": str(ADULT / f"adult_hierarchy_{name}.csv")} for name in columns if name != "age"}
    return {"k": k, "quasi_identifiers": {"age": {"step": step}, **quasi}, **others}


def measured(con: duckdb.DuckDBPyConnection, relation: str, asked: dict[str, object]) -> tuple[float, float, float]:
    """NCP, seconds of processors of the whole run, and of the kernel alone."""
    of_kernel = 0.0
    gather = recode._gathered

    def timed(*arguments: Any) -> Any:
        nonlocal of_kernel
        start = time.process_time()
        found = gather(*arguments)
        of_kernel += time.process_time() - start
        return found

    recode._gathered = timed
    start = time.process_time()
    try:
        audit = anonymize(con, relation, table_settings(asked), "anonymized")
    finally:
        recode._gathered = gather
    seconds = time.process_time() - start
    con.execute("drop table anonymized")
    return audit.report["loss"], seconds, of_kernel


def adult() -> list[dict[str, object]]:
    rows = []
    with duckdb.connect() as con:
        con.execute(f"create table adult as from read_csv('{ADULT / 'adult.csv'}', delim=';')")
        measured(con, "adult", settings(COLUMNS[5], 5))  # compiled
        measured(con, "adult", settings(COLUMNS[5], 5, method="cluster"))
        for number, columns in COLUMNS.items():
            for k in (5, 10, 50):
                for name, asked in (
                    ("mondrian", {"method": "mondrian"}),
                    ("cluster, one round", {"method": "cluster", "rounds": 1}),
                    ("cluster", {"method": "cluster"}),
                ):
                    loss, seconds, kernel = measured(con, "adult", settings(columns, k, **asked))
                    declared, *_ = measured(con, "adult", settings(columns, k, step=5, **asked))
                    rows.append(
                        {
                            "columns": number, "k": k, "method": name, "ncp": loss, "ncp, declared cuts": declared,
                            "seconds": round(seconds, 2), "seconds, kernel": round(kernel, 3),
                        }
                    )  # fmt: skip
                    print(rows[-1], flush=True)
        seven = settings(COLUMNS[8][:-1], 5, method="cluster", sensitive=["occupation"], diversity="distinct", l=3)
        loss, seconds, kernel = measured(con, "adult", seven)
        rows.append(
            {
                "columns": 7, "k": 5, "method": "cluster, 3-diverse", "ncp": loss, "seconds": round(seconds, 2),
                "seconds, kernel": round(kernel, 3),
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    for number, columns in COLUMNS.items():
        rows += [row for k in (5, 10) if (row := rival(columns, number, k)) is not None]
    return rows


def rival(columns: list[str], number: int, k: int) -> dict[str, object] | None:
    """anonypy's Mondrian; of its classes the range of ages and the lowest common label."""
    try:
        import anonypy
        import pandas as pd
    except ImportError:
        print("anonypy is not installed: left out", flush=True)
        return None
    frame = pd.read_csv(ADULT / "adult.csv", sep=";")[[*columns, "salary-class"]]
    for name in columns:
        if name != "age":
            frame[name] = frame[name].astype("category")
    start = time.process_time()
    parts = anonypy.Preserver(frame, columns, "salary-class").modrian.partition(k)
    seconds = time.process_time() - start
    trees = {name: hierarchy(name) for name in columns if name != "age"}
    ages, total = frame["age"].to_numpy(), 0.0
    for part in parts:
        rows = frame.loc[part]
        loss = (rows["age"].max() - rows["age"].min()) / (ages.max() - ages.min())
        loss += sum(lowest_common(trees[name], set(rows[name])) for name in trees)
        total += loss * len(rows)
    loss = round(total / (len(frame) * len(columns)), 4)
    row = {"columns": number, "k": k, "method": RIVAL, "ncp": loss, "seconds": round(seconds, 2)}
    print(row, flush=True)
    return row


def hierarchy(name: str) -> dict[str, list[str]]:
    with (ADULT / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
        return {line[0]: line for line in csv.reader(file, delimiter=";") if line}


def lowest_common(tree: dict[str, list[str]], values: set[str]) -> float:
    """The loss of the lowest label that all values have in common."""
    paths = [tree[value] for value in values]
    for level in range(len(paths[0])):
        if len({path[level] for path in paths}) == 1:
            below = sum(path[level] == paths[0][level] for path in tree.values())
            return (below - 1) / (len(tree) - 1)
    return 1.0


def scale(n: int) -> list[dict[str, object]]:
    """Rows made up of real ones: each column is that of one real row, or with probability 1/4 that of another."""
    found = []
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(Path(folder) / "people.duckdb") as con:
        con.execute("set memory_limit = '4GB'")
        con.execute(f"create table adult as from read_csv('{ADULT / 'adult.csv'}', delim=';')")
        random = np.random.default_rng(0)
        names = [*COLUMNS[8], "salary-class"]
        real = con.sql("from adult").to_arrow_table()
        for at in range(0, n, 1_000_000):
            own = random.integers(0, len(real), min(1_000_000, n - at))
            other = {c: np.where(random.random(len(own)) < 0.25, random.permutation(own), own) for c in names}
            con.register("part", pa.table({c: real[c].take(pa.array(other[c])) for c in names}))
            con.execute("create table people as from part" if at == 0 else "insert into people from part")
        for method in ("mondrian", "cluster"):
            asked = settings(COLUMNS[8], 10, method=method, others=["salary-class"])
            start = time.perf_counter()
            loss, seconds, kernel = measured(con, "people", asked)
            wall = time.perf_counter() - start
            found.append(
                {
                    "rows": n, "method": method, "ncp": loss, "seconds": round(seconds, 1),
                    "seconds, kernel": round(kernel, 1), "wall": round(wall, 1),
                }
            )  # fmt: skip
            print(found[-1], flush=True)
    return found


def main() -> None:
    arguments = sys.argv[1:] or ["adult"]
    file = RESULTS / "tables.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    known["version"] = kgather.__version__
    if "adult" in arguments:
        earlier = known.get("adult", [])
        known["adult"] = adult()
        if not any(row["method"] == RIVAL for row in known["adult"]):  # it is not installed: as it was measured before
            known["adult"] += [row for row in earlier if row["method"] == RIVAL]
    if "scale" in arguments:
        n = int(float(arguments[arguments.index("scale") + 1]))
        known[f"scale {n}"] = scale(n)
    file.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
