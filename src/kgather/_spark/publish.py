"""From a DataFrame of ratings to the same release that the engine duckdb makes: the order of a publication on Spark.

Ratings, ids of users and the map from users to groups stay on the executors. The driver has a working database of
aggregates: items and their vectors, groups and their vectors, counts. From there on the project's own models make the
marts, and what writes and checks a release is what does it for the engine duckdb.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from kgather._errors import InputError, KgatherError, PromiseError
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import IdType
from kgather._loaders.store import IdRole, merged_warnings, mixed_warnings
from kgather._publishing import pipeline, runs
from kgather._publishing.early import refuse_signs_of_people
from kgather._publishing.kept_key import kept_key
from kgather._publishing.publish import (
    Published,
    audit_of,
    check_target,
    fitted_to,
    in_private,
    nobody_asks,
    warnings_of,
    write,
)
from kgather._release.release import put_in_place
from kgather._settings.publication import PublishSettings
from kgather._spark import (
    attacks as attacking,
)
from kgather._spark import (
    audit,
    catalogue,
    cells,
    gathering,
    learning,
    levels,
    measuring,
    needs,
    places,
    private,
    staging,
    statements,
)
from kgather._spark.audit import People
from kgather._spark.blocks import numbers, rows_of, whole_ids
from kgather._spark.checkpoint import Checkpoint
from kgather._spark.gathering import Compared, Reach
from kgather._spark.learning import Learnt
from kgather._spark.private import PrivateLearnt
from kgather._spark.session import arranged, own_python, tidy
from kgather._spark.staging import Chosen, Counts
from kgather._sql_text import identifier
from kgather._steps.learning import model_tables
from kgather._steps.noise import private_seed_of
from kgather.udfs._shared.arrow_columns import lists
from kgather.udfs.gathering._group_ids import random_group_ids, random_pseudonyms
from kgather.udfs.preferences import item_noise
from kgather.udfs.preferences.item_noise import ItemNoise
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.outliers import drawn_to, left_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAF_USERS = 1_000_000
"""Users of a leaf at most, if nothing else is said."""

Report = Callable[[str, int, int], None]
Warn = Callable[[str], None]

_CHECKED = ("int_kgather__checked_input", "int_kgather__scale")
_MARTS = (
    "int_kgather__item_factors", "int_kgather__group_vectors", "int_kgather__shown_items", "int_kgather__cells",
    "kgather__groups", "kgather__members", "kgather__group_vectors", "kgather__item_vectors", "kgather__ratings",
)  # fmt: skip
_MADE_AT_ONCE = 1 << 20  # pseudonyms
_DRIVER_MEMORY = "512MB"  # of its databases, which are on disk
_MEANT = re.compile(r"kgather\._errors\.(InputError|PromiseError|KgatherError): ([^\n]*)")


def publish(
    ratings: "DataFrame",
    target: Path,
    settings: PublishSettings,
    options: LoadOptions,
    *,
    user_attributes: "DataFrame | None" = None,
    items: "DataFrame | None" = None,
    force: bool = False,
    noise_key: Path | None = None,
    secret_map: str | None = None,
    checkpoint: str | None = None,
    leaf_users: int = LEAF_USERS,
    ratings_per_block: int = staging.RATINGS_PER_BLOCK,
    verbose: bool = False,
    report: Report = lambda *_: None,
    warn: Warn = lambda _: None,
) -> Published:
    """Publish a DataFrame of ratings as a release at `target`, a folder of the driver, or leave nothing there.

    user_attributes: one row a user, with the column level_column. items: the catalogue, one row an item. secret_map:
    where Spark writes the map from users to groups as Parquet; None: it is kept nowhere. checkpoint: where Spark keeps
    finished stages, all SECRET, until the release is there; None: nowhere. leaf_users: users that are
    gathered together at most. ratings_per_block: what an executor works on at once. The same rows, seed and these two
    numbers give the same groups, however Spark cuts them.

    Raises InputError where something is asked for that Spark does not have, or input or settings cannot be published,
    and PromiseError where a check of the audit failed.
    """
    needs.check_installed()
    needs.refuse(settings, options)
    needs.refuse_frames(settings, ratings, user_attributes, items)
    needs.refuse_sizes(leaf_users=leaf_users, ratings_per_block=ratings_per_block)
    target = target.resolve()
    frames = [each for each in (ratings, user_attributes, items) if each is not None]
    with _told():
        inputs = places.inputs_of(frames)
    check_target(target, inputs, force=force)
    if noise_key is not None and target in noise_key.resolve().parents:
        msg = f"{noise_key} lies in the release: the key of the noise would go out with it. Give another --noise-key."
        raise InputError(msg)
    spark = ratings.sparkSession
    with _told(), own_python(spark):
        read = staging.chosen(ratings, options)
        of_catalogue = None if items is None else catalogue.chosen(items, options, read.item_type)
        listed = None if of_catalogue is None else catalogue.read(of_catalogue, read.item_type)
        attributes = None if user_attributes is None else levels.chosen(user_attributes, settings, options)
        # From here on with the columns that are read.
        frames = [each for each in (read.ratings, attributes, of_catalogue) if each is not None]
        if secret_map is not None:
            places.check_map(spark, secret_map, target, inputs, force=force)
            places.remove_unfinished(spark, secret_map)
        if checkpoint is not None:
            places.check_checkpoint(spark, checkpoint, target, inputs, secret_map)
    key = kept_key(noise_key, warn)
    for warning in warnings_of(settings):
        warn(warning)
    with (
        in_private(target) as umask,
        runs.folder_of(target, secrets.token_hex(12)) as folder,
        _told(),
        own_python(spark),
        arranged(spark),
    ):
        asked = {
            "settings": settings.model_dump(mode="json"),
            "reading": options.model_dump(mode="json"),
            "leaf_users": leaf_users,
            "ratings_per_block": ratings_per_block,
        }
        kept = Checkpoint.at(checkpoint, frames, asked, key, warn)
        run = _Run(
            folder,
            read,
            attributes,
            listed,
            settings,
            options,
            leaf_users,
            ratings_per_block,
            key,
            kept,
            verbose,
            report,
            warn,
        )
        try:
            finished, found = run.release(umask)
            is_there = False
            try:
                with run.map_written(secret_map, force=force):
                    put_in_place(finished, target, replace=force)
                    is_there = True
            finally:
                if is_there:
                    kept.remove()
            report("write", 1, 1)
        finally:
            run.close()
    return Published(target, found, None)


@contextmanager
def _told() -> Iterator[None]:
    """What was raised on an executor, as it was meant; of other errors of Spark the kind, as they may quote rows."""
    from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError):
        msg = "Spark's driver stopped. Where it had too little memory, set spark.driver.memory to more."
        raise KgatherError(msg) from None
    except (PySparkException, Py4JError) as error:
        meant = _MEANT.search(str(error))
        if meant:
            kind = {"InputError": InputError, "PromiseError": PromiseError}.get(meant[1], KgatherError)
            raise kind(meant[2]) from None
        missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", str(error))
        if missing:
            msg = (
                f"Spark's workers run a Python without the module {missing[1]}. Set PYSPARK_PYTHON to a Python that "
                "has kgather on every machine, and start Spark anew."
            )
            raise KgatherError(msg) from None
        name = re.search(r"\b(\w+(?:Error|Exception))\b", str(error))
        msg = (
            f"Spark broke ({name[1] if name else type(error).__name__}), in a step of the publication or in an "
            "expression of the DataFrame that was given. Its own log says where."
        )
        raise KgatherError(msg) from None


class _Run:
    """One publication: what is known so far, and what Spark keeps for it."""

    def __init__(
        self,
        folder: Path,
        read: Chosen,
        attributes: "DataFrame | None",
        catalogue: pa.Array | None,
        settings: PublishSettings,
        options: LoadOptions,
        leaf_users: int,
        ratings_per_block: int,
        key: bytes,
        checkpoint: Checkpoint,
        verbose: bool,
        report: Report,
        warn: Warn,
    ) -> None:
        self.workspace = pipeline.Workspace(folder, _DRIVER_MEMORY)
        self.read, self.attributes, self.settings, self.options = read, attributes, settings, options
        self.catalogue = catalogue
        self.leaf_users, self.ratings_per_block, self.key = leaf_users, ratings_per_block, key
        self.checkpoint = checkpoint
        self.verbose, self.report, self.warn = verbose, report, warn
        self.spark: SparkSession = read.ratings.sparkSession
        self.kept: list[DataFrame] = []
        self.people = People(self.spark)

    def close(self) -> None:
        """Let Spark forget what it kept."""
        self.people.take_away(sorted(audit.PEOPLE))
        for each in self.kept:
            each.unpersist()

    def release(self, umask: int) -> tuple[Path, Any]:
        """The finished folder, and the audit."""
        self._stage()
        learnt = self._learn()
        self._gather(learnt)
        found = self._measure()
        self._begin("write", 1)
        return write(self.workspace, self.settings, found, self.key, umask), found

    # Staging

    def _stage(self) -> None:
        self._begin("stage", 1)
        self.staged = self.checkpoint.table(
            "staged",
            lambda: staging.staged(
                self.read,
                self.settings,
                self.options,
                ratings_per_block=self.ratings_per_block,
                verbose=self.verbose,
                catalogue=self.catalogue,
            ),
        )
        self.kept.append(self.staged)
        counts = self.counts = staging.counts_of(self.staged, self.settings)
        raters = staging.raters_of(self.staged, self.read.item_type)
        self.workspace.write_profile()
        with self.workspace.connected() as con:
            _put_counts(con, counts, self.read.user_type)
            con.register("found", raters)
            listed = raters["item_id"].combine_chunks() if self.catalogue is None else self.catalogue
            con.register("listed", pa.table({"item_id": listed}))
            con.execute(
                "create table int_kgather__items as "
                "select cast(row_number() over (order by item_id) - 1 as integer) as item_code, item_id, "
                "coalesce(raters, 0) as raters from listed left join found using (item_id) order by item_code"
            )
            items = con.sql("select item_id, raters from int_kgather__items order by item_code").to_arrow_table()
            items_whole = whole_ids(con, "item_id", "int_kgather__items")
        self.people.put("int_kgather__users", staging.people(self.staged, self.read.user_type))
        roles: tuple[tuple[IdRole, IdType, int, int], ...] = (
            ("user", self.read.user_type, counts.users_whole, counts.users),
            ("item", self.read.item_type, items_whole, len(items)),
        )
        mixed = [role for role, kind, whole, ids in roles if kind == "VARCHAR" and 0 < whole < ids]
        for warning in (*mixed_warnings(mixed), *merged_warnings(counts.merged)):
            self.warn(warning)
        self._check_input()
        warnings: list[str] = []
        self.settings = fitted_to(self.settings, counts.users, len(items), warnings)
        for warning in warnings:
            self.warn(warning)
        self.items = items["item_id"].combine_chunks()
        self.raters = items["raters"].to_numpy().astype(np.int64)
        self.blocks = staging.coded(self.spark, self.staged, self.items)
        self.kept.append(self.blocks)
        self.parts_asked = -(-counts.staged // self.ratings_per_block)
        self.report("stage", 1, 1)

    def _check_input(self) -> None:
        """Refuse what cannot be published, as the project does; Spark looks for signs that items are people."""
        # Whether items are people is asked apart, as it takes the users' ids.
        asked = self.settings.model_copy(update={"items_confirmed": True})
        try:
            self._build(_CHECKED, asked)
        except InputError as error:
            # Rows of a DataFrame have no lines.
            raise InputError(re.sub(r" First: .*? By reason:", " By reason:", str(error))) from None
        if not self.settings.items_confirmed:
            signs = audit.macro_select(
                "kg_signs_of_people", {"p_users": "int_kgather__users", "p_items": "int_kgather__items"}
            )
            with self.workspace.connected() as con:
                found = self.people.rows(con, signs)
            refuse_signs_of_people([(int(measured), str(sign)) for sign, measured in found])

    # Learning

    def _learn(self) -> Learnt | PrivateLearnt:
        with self.workspace.connected() as con:
            [(low, high)] = con.sql("select scale_min, scale_max from int_kgather__scale").fetchall()
        if self.settings.item_epsilon is not None:
            return self._learn_private((low, high))
        counts = self.counts
        about = learning.about(
            self.spark, self.blocks, self.raters, counts.users, (counts.lowest, counts.highest), self.settings
        )
        learnt = learning.learn(
            self.spark,
            self.blocks,
            about,
            self.settings,
            (low, high),
            lambda done, most: self.report("preferences", done, most),
            self.checkpoint,
        )
        secret = item_noise.secret_of_lines(self.key, staging.rated_so(self.staged))
        noise = ItemNoise(secret, self.raters > 0, self.settings.learnt)
        level, factors = learnt.side.with_noise(noise, self.settings.noise_of_items)
        kept = np.ones(len(self.raters), dtype=bool)
        if self.settings.rare_items == "drop":
            kept = learnt.side.kept(noise, self.settings.least_raters)
        nobody = np.zeros(0, dtype=np.float32), np.zeros((0, self.settings.rank), dtype=np.float32)
        model = Preferences(*nobody, *_side32(learnt))
        shown = Preferences(*nobody, level.astype(np.float32), factors.astype(np.float32))
        self._put("int_kgather__factors", model_tables(model, shown, kept))
        return learnt

    def _learn_private(self, scale: tuple[float, float]) -> PrivateLearnt:
        secret = item_noise.secret_of_lines(self.key, staging.rated_so(self.staged))
        learnt = private.learn(
            self.spark,
            self.blocks,
            self.parts_asked,
            self.counts.users,
            len(self.items),
            self.settings,
            scale,
            private_seed_of(secret),
            lambda done, most: self.report("preferences", done, most),
        )
        nobody = np.zeros(0, dtype=np.float32), np.zeros((0, self.settings.rank), dtype=np.float32)
        model = Preferences(*nobody, *_side32(learnt))
        everything = np.ones(len(self.items), dtype=bool)
        self._put("int_kgather__factors", model_tables(model, model, everything, learnt.charges))
        return learnt

    # Gathering

    def _gather(self, learnt: Learnt | PrivateLearnt) -> None:
        from pyspark import StorageLevel

        self._begin("gather", 1)
        compared = Compared(*_side32(learnt), self.settings.metric)
        users = gathering.users_of(self.spark, self.blocks, learnt).persist(StorageLevel.DISK_ONLY)
        self.kept.append(users)
        self.users = users
        n = self.counts.users
        asked = self._levels()
        gathered = self.checkpoint.table(
            "gathered",
            lambda: gathering.gathered(self.spark, users, n, compared, self.settings, self.leaf_users, asked),
        )
        self.gathered = gathered.persist(StorageLevel.DISK_ONLY)
        self.kept.append(self.gathered)
        leaves = sorted(
            self.gathered.select("leaf", "part", "sizes", "level", "factors").collect(),
            key=lambda row: (row["leaf"], row["part"]),
        )
        sizes = [np.frombuffer(row["sizes"], dtype=np.int64) for row in leaves]
        every = np.concatenate(sizes)
        ids = random_group_ids(len(every))
        ends = np.cumsum([len(each) for each in sizes])[:-1]
        names = {(row["leaf"], row["part"]): own for row, own in zip(leaves, np.split(ids, ends), strict=True)}
        level = np.concatenate([np.frombuffer(row["level"], dtype=np.float32) for row in leaves])
        factors = np.concatenate([np.frombuffer(row["factors"], dtype=np.float32) for row in leaves])
        factors = factors.reshape(len(every), -1)
        if self.settings.outliers < 1:
            reach = gathering.reach_of(self.spark, users, n, compared, self.settings)
            level, factors = _drawn_in(level, factors, compared, reach, learnt.middle)
        self.members = measuring.members_of(self.spark, self.gathered, names)
        self._put_people_of_groups()
        self._put_groups(ids, every, level, factors)
        self.group_ids = np.sort(ids)
        self.chosen = attacking.Chosen.of(ids, every, self.counts.staged, self.settings.seed)
        self.parts = cells.Parts.of(self.group_ids, every[np.argsort(ids)], self.parts_asked)
        self.report("gather", 1, 1)

    def _levels(self) -> levels.Asked | None:
        """The sizes of group that users ask for, where the method looks at them."""
        if self.attributes is None:
            return None
        variables = statements.variables_of(self.settings, self.read.item_type)
        sql = pipeline.compiled(self.workspace, variables, [levels.MODEL], run=False, verbose=self.verbose)
        asked = levels.asked(self.staged, self.attributes, sql[levels.MODEL], self.read.user_type, self.settings)
        self.kept.append(asked.kept)
        if asked.unlisted:
            self.warn(f"{asked.unlisted:,} users with ratings have no row in the users' attributes.")
        if asked.highest == 1 and self.settings.k > 1:
            self.warn(nobody_asks(self.settings))
        self.people.put(levels.MODEL, levels.people(self.staged, asked.levels, self.read.user_type))
        return asked

    def _put_groups(self, ids: Any, sizes: Any, level: Any, factors: Any) -> None:
        """Groups by their random ids, each with its members under random pseudonyms: no order tells of anybody."""
        order = np.argsort(ids)
        ids, sizes = ids[order], sizes[order]
        self._put(
            "int_kgather__drawn_in",
            [
                pa.table(
                    {
                        "group_id": ids,
                        "level": level[order].astype(np.float32),
                        "factor": lists(np.ascontiguousarray(factors[order], dtype=np.float32)),
                    }
                )
            ],
        )
        with self.workspace.connected() as con:
            kind = self.read.user_type
            con.execute(f"create table int_kgather__groups (user_id {kind}, group_id bigint)")
            con.execute(
                "create table int_kgather__gathered (user_code integer, group_id bigint, lineage bigint, "
                "pseudonym varchar, bin integer, unchanged boolean)"
            )
            for group_ids in _members(ids, sizes):
                con.register("one", pa.table({"group_id": group_ids, "pseudonym": random_pseudonyms(len(group_ids))}))
                con.execute("insert into int_kgather__groups select null, group_id from one")
                con.execute(
                    "insert into int_kgather__gathered select null, group_id, group_id, pseudonym, null, null from one"
                )
                con.unregister("one")

    def _put_people_of_groups(self) -> None:
        """The map as the checks know it."""

        def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for row in rows_of(batches):
                codes = staging.codes_of(row["block"], numbers(row["rows"], np.int32))
                bins = numbers(row["bins"], np.int64)
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(codes),
                        pa.array(numbers(row["group_ids"], np.int64)),
                        pa.array(bins) if len(bins) else pa.nulls(len(codes), pa.int64()),
                    ],
                    ["user_code", "group_id", "bin"],
                )

        gathered = self.members.mapInArrow(listed, "user_code bigint, group_id bigint, bin bigint")
        self.people.put("int_kgather__gathered", gathered)
        self.map = measuring.map_of(self.staged, self.members, self.read.user_type).persist()
        self.kept.append(self.map)
        self.people.put("int_kgather__groups", self.map)
        self.people.put("stg_kgather__ratings", self.staged.selectExpr("explode(array(lowest, highest)) as rating"))

    @contextmanager
    def map_written(self, path: str | None, *, force: bool) -> Iterator[None]:
        """Write the SECRET map (user_id, group_id) by Spark; it is in its place once the block has ended well."""
        if path is None:
            yield
            return
        made = places.begin_map(self.spark, path)
        try:
            self.map.orderBy("user_id").write.mode("append").parquet(made)
            yield
        except BaseException:
            places.remove(self.spark, made)
            raise
        places.finish_map(self.spark, made, path, force=force)

    # The release and what it promises

    def _measure(self) -> Any:
        self._begin("audit", 2)
        variables = statements.variables_of(self.settings, self.read.item_type)
        wanted = ("kgather__audit", "kgather__metrics", *cells.MODELS)
        with self.workspace.connected() as con:
            con.execute("create table int_kgather__artifact_items (position bigint, item_id bigint, item_code integer)")
            # What members rated stays on the executors: the models here know of none.
            con.execute(f"create table {cells.RATED} ({cells.RATED_COLUMNS.format(self.read.item_type)})")
        self._build(_MARTS, self.settings)
        sql = pipeline.compiled(self.workspace, variables, wanted, run=False, verbose=self.verbose)
        of_parts = self._cells(sql) if cells.are_rated(self.settings) else None
        with self.workspace.opened() as con:
            con.execute("use work")
            checks = self._checks(con, sql["kgather__audit"], {} if of_parts is None else of_parts.checks)
            self.report("audit", 1, 2)
            tidy(self.spark)
            metrics = self._metrics(con, sql["kgather__metrics"], sql["kgather__ratings"], of_parts)
        with duckdb.connect(self.workspace.marts_database) as con:
            con.execute(
                'create table kgather__audit ("check" varchar, promised bigint, measured bigint, passed boolean, '
                "release_id varchar, released_on date)"
            )
            con.executemany("insert into kgather__audit values (?, ?, ?, ?, ?, ?)", checks)
            con.execute(
                "create table kgather__metrics (metric varchar, value double, release_id varchar, released_on date)"
            )
            if metrics:
                con.executemany("insert into kgather__metrics values (?, ?, ?, ?)", metrics)
        found = audit_of(
            self.workspace,
            self.settings,
            {"files": [], "merged": {"users": self.counts.merged["user"], "items": self.counts.merged["item"]}},
        )
        # The driver knows no ids of users.
        read = dict(found.read or {})
        read["users"] = {**read["users"], "shapes": staging.shapes_of(self.staged, self.settings.k)}
        found = replace(found, read=read)
        self.report("audit", 2, 2)
        return self._attacked(found)

    def _attacked(self, found: Any) -> Any:
        """The audit with what quick attackers get, and with what it is that made it."""
        attacks = None
        if found.passed:
            self._begin("attack", 1)
            with self.workspace.opened() as con:
                attacks = attacking.attacked(
                    self.spark, self.blocks, self.members, con, self.chosen, self.counts.users, found.parameters
                )
            self.report("attack", 1, 1)
        some = "everybody" if len(self.chosen.ids) == len(self.group_ids) else "some"
        told = {"engine": "spark", "attacked": "nobody" if attacks is None else some}
        return replace(found, parameters={**found.parameters, **told}, attacks=attacks)

    def _cells(self, sql: Mapping[str, str]) -> cells.Counted:
        """Put the cells that members rated into the mart of ratings; what was counted on the way."""
        from pyspark import StorageLevel

        parts = audit.Parts.of(sql["kgather__audit"], "checks")
        checks = {
            audit.name_of(part): audit.measuring(part) for part in parts.parts if cells.looks_at_rated(parts, part)
        }
        metrics = audit.Parts.of(sql["kgather__metrics"], "found")
        with self.workspace.connected() as con:
            errors = any(metrics.looks_at_people(part) for part in metrics.parts)
            maker = cells.Maker.of(con, sql, checks, errors=errors)
        made = cells.made(self.spark, self.blocks, self.users, self.members, self.parts, maker)
        made = made.persist(StorageLevel.DISK_ONLY)
        self.kept.append(made)
        made.count()  # all parts at once, before they come one by one
        return cells.put(self.workspace, made)

    def _checks(self, con: duckdb.DuckDBPyConnection, sql: str, measured: Mapping[str, int]) -> list[tuple[Any, ...]]:
        """All checks of the audit, and one more: the groups that the driver knows are those of the map.

        measured: what was measured elsewhere, by the names of the checks.
        """
        parts = audit.Parts.of(sql, "checks")
        known = [
            audit.measured(part, measured[name]) if (name := audit.name_of(part)) in measured else part
            for part in parts.parts
        ]
        parts = self.people.told(con, replace(parts, parts=tuple(known)))
        found: list[tuple[Any, ...]] = []
        # All that look at people in one statement: each costs Spark a second or more.
        for on_spark in (True, False):
            some = [part for part in parts.parts if parts.looks_at_people(part) == on_spark]
            if not some:
                continue
            statement = parts.only(some)
            rows = self.people.rows(con, statement) if on_spark else audit.in_duckdb(con, statement)
            places = sorted(int(part.selects[0].unalias().name) for part in some)
            found += [(at, *row) for at, row in zip(places, rows, strict=True)]
        own = self.people.rows(con, _SIZES)
        of_release = found[0][-2:]
        found += [(2, _SIZES_CHECK, 0, int(wrong), wrong == 0, *of_release) for (wrong,) in own]
        return [row[1:] for row in sorted(found, key=lambda row: int(row[0]))]

    def _metrics(
        self, con: duckdb.DuckDBPyConnection, sql: str, cells_sql: str, of_parts: cells.Counted | None
    ) -> list[tuple[Any, ...]]:
        """What classes tell, the errors of what is shown, and how much of the ratings it speaks of."""
        parts = audit.Parts.of(sql, "found")
        mine = [part for part in parts.parts if not parts.looks_at_people(part)]
        # Whoever asked for no errors gets none: then no part looks at the ratings.
        if len(mine) < len(parts.parts):
            if of_parts is not None:
                sums = of_parts.errors
            else:
                shown = measuring.Shown.of(con, None if self._low_rank else cells_sql)
                sums = measuring.shown_errors(self.spark, self.blocks, self.members, shown)
            found = measuring.mean_errors(sums) | self._coverage(con, sums, only_rated=of_parts is not None)
            for name, value in found.items():
                number = exp.cast(exp.Literal.string(repr(value)), "double")
                mine.append(exp.select(exp.Literal.string(name), number))
        return audit.in_duckdb(con, parts.only(mine))

    def _coverage(
        self, con: duckdb.DuckDBPyConnection, sums: Sequence[Mapping[str, Any]], *, only_rated: bool
    ) -> dict[str, float]:
        """How much of the ratings the release speaks of, what it adds, and whether items keep their order."""
        ratings, ids = self.counts.staged, self.group_ids
        everything = np.ones(len(self.items), dtype=bool)
        if self._low_rank:
            [(items,)] = con.sql("select count(*) from marts.main.kgather__item_vectors").fetchall()
            return measuring.coverage(
                ratings=ratings, items=items, groups=len(ids), shown=ratings, shown_items=items,
                of_rated=len(ids) * items, cells=len(ids) * items, repeated=self.counts.users * items,
                pairs=measuring.rated_pairs(self.spark, self.blocks, self.members, ratings, ids, everything),
            )  # fmt: skip
        # Items of the catalogue that nobody rated add to what is there beside the ratings alone.
        [(shown_items, of_rated, listed, repeated)] = con.sql(
            "select count(distinct item_id) filter (raters > 0), count(*) filter (raters > 0), count(*), "
            "cast(coalesce(sum(group_size), 0) as bigint) "
            "from marts.main.kgather__ratings join marts.main.kgather__groups using (group_id) "
            "join work.main.int_kgather__items using (item_id)"
        ).fetchall()
        pairs = listed
        if not only_rated:
            shown = con.sql(
                "select item_id in (select item_id from marts.main.kgather__ratings) as shown "
                "from work.main.int_kgather__items order by item_code"
            ).to_arrow_table()
            wanted = shown["shown"].to_numpy()
            pairs = measuring.rated_pairs(self.spark, self.blocks, self.members, ratings, ids, wanted)
        return measuring.coverage(
            ratings=ratings, items=int((self.raters > 0).sum()), groups=len(ids),
            shown=sum(each["shown"] for each in sums), shown_items=shown_items, of_rated=of_rated, cells=listed,
            repeated=repeated, pairs=pairs,
        ) | measuring.popularity_kept(
            self.spark, self.blocks, self.parts_asked, con, "marts.main.kgather__ratings",
            "work.main.int_kgather__groups",
        )  # fmt: skip

    @property
    def _low_rank(self) -> bool:
        return self.settings.cells == "low_rank"

    # Small things

    def _begin(self, step: str, parts: int) -> None:
        tidy(self.spark)
        self.report(step, 0, parts)

    def _build(self, models: Sequence[str], settings: PublishSettings) -> None:
        variables = statements.variables_of(settings, self.read.item_type)
        pipeline.build_some(self.workspace, variables, models, verbose=self.verbose)

    def _put(self, name: str, tables: Iterable[pa.Table]) -> None:
        """Make a relation of tables, one after the other."""
        with self.workspace.connected() as con:
            for at, table in enumerate(tables):
                con.register("given", table)
                made = f"insert into {identifier(name)}" if at else f"create table {identifier(name)} as"
                con.execute(f"{made} from given")
                con.unregister("given")


_SIZES_CHECK = "groups whose size is not that of the map"
_SIZES = exp.maybe_parse(
    """
    select count(*)
    from (select group_id, count(*) as members from int_kgather__groups group by group_id) as mapped
    full join marts.main.kgather__groups as released using (group_id)
    where mapped.members is distinct from released.group_size
    """,
    dialect="duckdb",
    into=exp.Select,
)


def _put_counts(con: duckdb.DuckDBPyConnection, counts: Counts, user_type: IdType) -> None:
    """Relations with as many rows as were read and staged; of what is in them only what the driver may know."""
    usable: list[tuple[float | None, int]] = list(counts.read_values)
    usable = usable or [(None, counts.read - sum(_not_usable(counts).values()))]
    set_aside = counts.read - sum(times for _, times in usable)
    read = [(f"{_number(rating)} as rating, cast(null as varchar) as reason", times) for rating, times in usable]
    read.append(("cast(null as double) as rating, 'set aside' as reason", set_aside))
    few = min(counts.staged, 1)
    ratings = counts.staged_values or [(counts.lowest, few), (counts.highest, counts.staged - few)]
    rejected = [
        (f"cast('' as varchar) as source, cast(0 as bigint) as line, {_text(reason)} as reason", times)
        for reason, times in counts.rejected.items()
    ]
    nobody = "cast('' as varchar) as source, cast(0 as bigint) as line, cast('' as varchar) as reason"
    people = f"cast(null as {user_type}) as user_id"
    for name, rows in (
        (statements.READ, read),
        (statements.STAGED, [(f"{_number(rating)} as rating", times) for rating, times in ratings]),
        (statements.STAGED_OF_READ, [("1 as one", counts.staged)]),
        (statements.REJECTED, [*rejected, (nobody, 0)]),
        (statements.USERS, [(people, counts.users)]),
    ):
        listed = " union all ".join(f"select {columns} from range({max(times, 0)})" for columns, times in rows)
        con.execute(f"create view {name} as {listed}")
    con.execute("create table stg_kgather__user_attributes (user_id varchar)")


def _not_usable(counts: Counts) -> Mapping[str, int]:
    """Rows that were set aside as they were read: not for what others there are."""
    later = ("repeated pair", "user has fewer")
    return {reason: times for reason, times in counts.rejected.items() if not reason.startswith(later)}


def _number(value: float | None) -> str:
    return f"cast({'null' if value is None else repr(value)} as double)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _side32(learnt: Learnt | PrivateLearnt) -> tuple[Any, Any]:
    """Level and factors of the items before noise, as `learn_apart` gives them."""
    return learnt.side.level.astype(np.float32), learnt.side.factors.astype(np.float32)


def _drawn_in(level: Any, factors: Any, compared: Compared, reach: Reach, middle: Any) -> tuple[Any, Any]:
    """Level and factors of groups, the farthest drawn in; see `draw_groups_in`."""
    in_predictions = Compared(compared.item_level, compared.item_factors, "prediction")
    left = left_of(in_predictions.vectors(level, factors), reach.middle, reach.radius)
    return drawn_to((float(middle[0]), middle[1:]), left, level, factors)


def _members(ids: Any, sizes: Any) -> Iterator[Any]:
    """The id of the group of each member, int64, in pieces."""
    ends = np.cumsum(sizes)
    for lo in range(0, int(ends[-1]), _MADE_AT_ONCE):
        places = np.arange(lo, min(lo + _MADE_AT_ONCE, int(ends[-1])))
        yield ids[np.searchsorted(ends, places, side="right")]
