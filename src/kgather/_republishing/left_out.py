"""Membership where nobody was left out on purpose: half of the people are published, and told from the other half."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

from kgather._attacks.attacked import Attacked
from kgather._attacks.membership import membership, read_others
from kgather._attacks.results import AttackResult
from kgather._evaluation.evidence import read_evidence
from kgather._loaders import LoadOptions, load
from kgather._publishing.publish import publish
from kgather._release.release import DATABASE
from kgather._settings.publication import PublishSettings
from kgather._sql_text import literal

# Whoever is in does not hang on the order of the rows, nor on the version of DuckDB.
_HALF = "md5_number_lower(cast(user_id as varchar) || {salt}) % 2 = {side}"


def half_in(
    inputs: Sequence[str], settings: PublishSettings, load_options: LoadOptions, *, seed: int = 0
) -> list[AttackResult]:
    """Publish the ratings of half of the people, drawn by the seed, and tell these from the others.

    The results are those of `membership` for who knows all ratings. The release lies in a private folder and is gone
    afterwards. Raises InputError or PromiseError where half of the people cannot be published.
    """
    with tempfile.TemporaryDirectory(prefix="kgather-") as private:
        work = Path(private)
        files = [work / "others.parquet", work / "members.parquet"]
        with duckdb.connect() as con:
            load(con, inputs, load_options)
            if load_options.items is not None:
                con.execute(f"copy loaded.items to {literal(work / 'items.parquet')} (format parquet)")
            for side, file in enumerate(files):
                half = _HALF.format(salt=literal(f"/{seed}"), side=side)
                con.execute(
                    "copy (select user_id, item_id, rating, rated_at from loaded.ratings where problem is null "
                    f"and {half} order by user_id, item_id, source, line) to {literal(file)} (format parquet)"
                )
        publish(
            [str(files[1])],
            work / "release",
            settings.model_copy(update={"metrics": "none", "seed": seed, "items_confirmed": True}),
            LoadOptions() if load_options.items is None else LoadOptions(items=str(work / "items.parquet")),
            keep_work=work / "work",
        )
        with duckdb.connect() as con:
            con.execute(f"attach {literal(work / 'work' / 'work.duckdb')} as work (read_only)")
            con.execute(f"attach {literal(work / 'release' / DATABASE)} as release (read_only)")
            evidence = read_evidence(con, "work", "release", settings.model_dump(mode="json"))
        attacked = Attacked.of(evidence)
        others = read_others(attacked, str(files[0]), LoadOptions(), evidence.user_ids)
        return list(membership(attacked, others, None, seed=seed))
