"""Work grows with the table and no faster: many combinations, equal rows, all different values, many columns.

Work is counted, in lines of the kernels' Python and in calls: the same on every machine.
"""

from collections.abc import Callable
from unittest.mock import patch

import duckdb
import numpy as np
import pytest
from work import count_calls, count_lines

from kgather._recoding.recode import recode
from kgather._settings.table import table_settings
from kgather._tables.run import anonymize
from kgather.udfs.recoding import loss, mondrian
from kgather.udfs.recoding.loss import ColumnLoss, losses

PYTHON = {
    name: getattr(mondrian, name).py_func for name in ("_gather", "_even_cut", "_part", "interval_loss")
}  # the same kernels, not compiled


def line(codes: int) -> ColumnLoss:
    ends = np.arange(codes) / max(codes - 1, 1)
    return ColumnLoss(codes, low=ends, high=ends)


def cut(codes: np.ndarray, counts: np.ndarray, columns: list[ColumnLoss]) -> Callable[[], object]:
    priced = losses(columns)
    return lambda: mondrian.gather(codes, counts, priced, 5)


def different(n: int, random: np.random.Generator) -> Callable[[], object]:
    codes = np.stack([random.permutation(n), random.integers(0, 4, n)], axis=1).astype(np.int32)
    return cut(codes, np.ones(n, np.int64), [line(n), line(4)])


def mostly_equal(n: int, random: np.random.Generator) -> Callable[[], object]:
    codes = np.stack([random.permutation(n), random.integers(0, 4, n)], axis=1).astype(np.int32)
    counts = np.ones(n, np.int64)
    counts[0] = 9 * n
    return cut(codes, counts, [line(n), line(4)])


def one_after_the_other(n: int, random: np.random.Generator) -> Callable[[], object]:
    """Every cut takes off the fewest rows that it can: half of all rows have the code 0 of a column."""
    size = max(n // 12, 2)
    codes = np.zeros((n, 6), dtype=np.int32)
    for j in range(6):
        at = np.arange(j * size, (j + 1) * size)
        codes[at, j] = 1 + random.permutation(size)
    return cut(np.unique(codes, axis=0), np.full(len(np.unique(codes, axis=0)), 2), [line(size + 1)] * 6)


@pytest.mark.parametrize("made", [different, mostly_equal, one_after_the_other])
def test_mondrian_does_about_twice_the_work_for_twice_the_rows(made: Callable[..., Callable[[], object]]) -> None:
    with patch.multiple(mondrian, **PYTHON):
        small, large = (count_lines(made(n, np.random.default_rng(0)), ["mondrian.py", "loss.py"]) for n in (600, 1200))
    assert small > 600
    assert large <= 2.5 * small


def test_mondrian_does_as_much_more_work_as_there_are_columns() -> None:
    found = []
    for d in (25, 50):
        codes = np.unique(np.random.default_rng(0).integers(0, 3, (200, d)).astype(np.int32), axis=0)
        with patch.multiple(mondrian, **PYTHON):
            run = cut(codes, np.ones(len(codes), np.int64), [line(3)] * d)
            found.append(count_lines(run, ["mondrian.py", "loss.py"]))
    assert found[1] <= 2.5 * found[0]


@pytest.mark.parametrize("method", ["mondrian", "cluster"])
def test_recoding_calls_as_much_as_there_are_values(method: str) -> None:
    found = []
    settings = table_settings(
        {"k": 5, "method": method, "rounds": 1, "quasi_identifiers": {"a": {"kind": "number"}, "b": {}}, "threads": 1}
    )
    for n in (500, 1000, 2000):
        random = np.random.default_rng(1)
        values = [[str(value) for value in range(n)], ["x", "y", "z"]]
        ids = [random.permutation(n), random.integers(0, 3, n)]
        run = lambda: recode(settings, ["INTEGER", "VARCHAR"], values, ids, np.ones(n, np.int64))  # noqa: B023, E731
        run()
        found.append(count_calls(run))
    assert found[2] - found[1] <= 2.5 * max(found[1] - found[0], 1)


def test_all_costs_of_a_column_are_not_laid_out_for_each_pair_of_its_codes() -> None:
    assert len(losses([line(100_000)]).flat) == 200_000
    codes = np.arange(4096)
    nodes = np.stack([codes, codes // 64 + 4096, np.full(4096, 4160)]).astype(np.int32)
    tree = ColumnLoss(4096, nodes=nodes, costs=np.linspace(0, 1, 4161))
    assert len(losses([tree]).flat) <= 4096 * 14
    assert loss.interval_loss(*losses([tree]).parts, 0, 0, 4095) == pytest.approx(tree.of(codes[:1], codes[-1:])[0])


def test_memory_is_not_columns_times_columns() -> None:
    """Codes of a column are found with that column alone, and not with all others carried along."""
    with duckdb.connect() as con:
        con.execute("set temp_directory = ''")
        con.execute("set memory_limit = '300MB'")
        columns = ", ".join(f"cast(hash(i, {at}) % 10 as integer) as c{at}" for at in range(200))
        con.execute(f"create table people as select {columns} from range(3000) as r (i)")
        asked = table_settings({"k": 10, "quasi_identifiers": {f"c{at}": {"step": 1} for at in range(200)}})
        assert anonymize(con, "people", asked, "anonymized").passed
