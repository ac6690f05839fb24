"""The audit's own measure of diversity, in SQL, against the kernel that merges groups."""

import duckdb
import numpy as np
import pytest
from dbt_macros import load_macros
from duck import insert

from kgather.udfs.diversity.sensitive_diversity import least_diversity


def undiverse(groups: np.ndarray, values: np.ndarray, **asked: object) -> int:
    """Pairs of group and attribute that fail; groups int[n], values float[n, s] with NaN for null."""
    users, attributes = np.nonzero(~np.isnan(values))
    with duckdb.connect() as con:
        con.execute("create table sensitive (user_code int, attribute varchar, value double)")
        con.execute("create table gathered (user_code int, group_id bigint)")
        insert(
            con,
            "sensitive",
            [[int(u), f"a{a}", float(values[u, a])] for u, a in zip(users, attributes, strict=True)],
        )
        insert(con, "gathered", [[u, int(g)] for u, g in enumerate(groups)])
        macros = load_macros("diversity/undiverse.sql", **asked)
        return con.sql(str(macros.count_undiverse("sensitive", "gathered"))).fetchall()[0][0]


def test_the_published_example() -> None:
    # The last column of Sun and Sun's Table 1(a): t2 and t3 agree, t4 and t5 differ by a standard deviation of 2.
    groups, values = np.array([0, 0, 1, 1]), np.array([[1.0], [1.0], [1.0], [5.0]])
    for l, failing in ((2, 1), (2.1, 2)):  # noqa: E741
        assert undiverse(groups, values, sensitive_diversity="deviation", sensitive_l=l, sensitive_c=None) == failing


@pytest.mark.parametrize(
    ("kind", "c"), [("distinct", None), ("entropy", None), ("recursive", 2.0), ("deviation", None)]
)
@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_the_kernel_on_every_group(kind: str, c: float | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 12, 90)
    groups = np.unique(groups, return_inverse=True)[1]
    values = np.where(rng.random((90, 2)) < 0.4, np.nan, rng.integers(1, 5, (90, 2)).astype(float))
    for l in (1, 2, 3):  # noqa: E741
        failing = 0
        for group in range(groups.max() + 1):
            members = groups == group
            measures = least_diversity(np.zeros(members.sum(), dtype=np.int32), values[members], kind=kind, c=c)
            failing += int((measures < l - 1e-9).sum())  # NaN, where nobody has a value, passes
        assert undiverse(groups, values, sensitive_diversity=kind, sensitive_l=l, sensitive_c=c) == failing
