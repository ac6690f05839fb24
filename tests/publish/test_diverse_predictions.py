"""Groups of the default release keep what is sensitive diverse: counted by means that are not the project's own."""

from pathlib import Path

import duckdb
import pytest

from kgather._publishing.publish import LOADED_ATTRIBUTES

pytestmark = pytest.mark.long


@pytest.mark.parametrize("cells", ["all", "low_rank"])
def test_every_group_holds_l_values_of_what_is_sensitive(publish_to, sample, tmp_path: Path, cells: str) -> None:
    users = sorted({line.split(",")[0] for line in sample.read_text().splitlines()[1:]})
    # One illness is common: groups of 5 that do not look for others often hold it alone.
    file = tmp_path / "users.csv"
    illness = ["flu" if place % 3 else f"other {place % 4}" for place in range(len(users))]
    file.write_text("user_id,illness\n" + "".join(f"{user},{ill}\n" for user, ill in zip(users, illness, strict=True)))
    asked = {
        "user_attributes": LOADED_ATTRIBUTES,
        "sensitive_columns": ["illness"],
        "sensitive_items": [2],
        "sensitive_l": 3,
    }
    published = publish_to(sample, attributes=file, k=5, cells=cells, **asked)
    bare = publish_to(sample, k=5, cells=cells)
    fewest = []
    for each in (published, bare):
        with duckdb.connect(each.work_database, read_only=True) as con:
            con.execute(f"create temp view users as from read_csv('{file}')")
            [(ill,)] = con.sql(
                "select min(n) from (select count(distinct illness) as n from int_kgather__groups "
                "join users using (user_id) group by group_id)"
            ).fetchall()
            # A group of which nobody rated the item has nothing to keep apart.
            [(rated,)] = con.sql(
                "select min(n) from (select count(distinct rating) as n from int_kgather__groups "
                "join stg_kgather__ratings using (user_id) where item_id = 2 group by group_id)"
            ).fetchall()
            fewest.append((ill, rated))
    assert min(fewest[0]) >= 3
    assert min(fewest[1]) < 3
    checks = {check.check: (check.promised, check.measured, check.passed) for check in published.audit.checks}
    assert checks["distinct 3.0-diversity: groups and sensitive attributes without it"] == (0, 0, True)
    assert published.audit.counts["groups"] < bare.audit.counts["groups"]
