"""The public functions: the same way as the command line's, for Python.

Arguments are named as the options of the command line, settings as the vars of docs/vars.md.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from kgather._errors import InputError, KgatherError, StoppedError, quoted

if TYPE_CHECKING:  # engines and kernels take seconds to load
    import duckdb
    import pyarrow as pa

    from kgather._attacks.results import AttackReport
    from kgather._loaders import LoadOptions
    from kgather._loaders.as_written import Read
    from kgather._publishing.erasure import Erased
    from kgather._release.release import Audit, Check

FilePath: TypeAlias = str | PathLike[str]
Progress: TypeAlias = Callable[[str, int, int], None]

_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z]|[a-z])(?![\w-])")


class ArrowRows(Protocol):
    """Rows that Arrow can read: a DuckDB relation, a pyarrow Table, a data frame of pandas or polars."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True)
class Release:
    """A release: a folder that anyone may have.

    `Release(folder)` opens one that is there already. Nothing is read before it is asked for.

    Args:
        folder: Where the release is.
        work_database: The working database with the SECRET map from user to group, where `publish` was told to keep
            it; None otherwise.

    Raises:
        InputError: The folder holds no release.
    """

    folder: Path
    work_database: Path | None = None

    def __post_init__(self) -> None:
        from kgather._release.release import AUDIT

        object.__setattr__(self, "folder", Path(self.folder))
        if not (self.folder / AUDIT).is_file():
            msg = f"{self.folder} is no release: {AUDIT} is missing."
            raise InputError(msg)

    @cached_property
    def audit(self) -> "Audit":
        """What the release says of itself: parameters, counts, checks, metrics, and what quick attackers got.

        Raises InputError where audit.json cannot be read.
        """
        from kgather._release.reading import read_audit

        return read_audit(self.folder)

    def open(self) -> "duckdb.DuckDBPyConnection":
        """Connect to release.duckdb, for reading only. Its relations are named `kgather__ratings` and so on.

        The caller closes the connection: `with release.open() as con`.
        """
        import duckdb

        from kgather._release.release import DATABASE

        file = self.folder / DATABASE
        if not file.is_file():
            msg = f"{self.folder} is no release: {DATABASE} is missing."
            raise InputError(msg)
        return duckdb.connect(file, read_only=True)

    def table(self, name: str) -> "pa.Table":
        """Return a relation of the release as an Arrow table, `groups` and `kgather__groups` alike.

        Raises InputError where the release has no such relation; which it has depends on how it was made.
        """
        with self.open() as con:
            query = "select table_name from information_schema.tables where table_schema = 'main' order by all"
            names = [relation.removeprefix("kgather__") for (relation,) in con.sql(query).fetchall()]
            if name.removeprefix("kgather__") not in names:
                msg = f"{self.folder} has no '{name}'. There are: {', '.join(names)}."
                raise InputError(msg)
            return con.table(f"kgather__{name.removeprefix('kgather__')}").to_arrow_table()

    def ratings(self) -> "pa.Table":
        """Return what each group is shown to think of each item: `group_id`, `item_id`, `rating`.

        `group_id` is int64, `item_id` int64 or string as the input's were, `rating` float64 on the ratings' scale.
        Of a release with vectors (`cells="low_rank"`) every cell is computed: groups x items rows.

        Raises InputError for a release that shows something else, as a generalized table.
        """
        return self.table("ratings")


@dataclass(frozen=True)
class Verdict:
    """What `verify` found: true where every check is passed.

    Args:
        checks: One for each model and sensitive column: what was promised, what was measured.
        read: Of a file or table: how much of it was read, and as what.
    """

    checks: "tuple[Check, ...]"
    read: "Read | None" = None

    @property
    def passed(self) -> bool:
        """Whether every check is passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> "tuple[Check, ...]":
        """The checks that are not passed."""
        return tuple(check for check in self.checks if not check.passed)

    def __bool__(self) -> bool:
        return self.passed


def publish(
    inputs: FilePath | Sequence[FilePath],
    out: FilePath,
    *,
    k: int | None = None,
    user_attributes: FilePath | Mapping[str, Any] | None = None,
    sweep: Sequence[int] = (),
    force: bool = False,
    keep_work: FilePath | None = None,
    noise_key: FilePath | None = None,
    history: FilePath | None = None,
    additions: bool = False,
    removed: Iterable[Any] = (),
    within: "FilePath | Release | None" = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Release:
    """Publish ratings as a release that anyone may have, or write nothing.

    One publication at a time in a process: dbt and the permissions of new files belong to the process. What the user
    should know, as that k = 1 gives no anonymity, is a warning (`UserWarning`).

    Args:
        inputs: A file of ratings or several (CSV, TSV, MovieLens, Netflix Prize, Parquet, DuckDB; gzip and zstd), or
            `"FILE.duckdb:TABLE"`. One row for each pair of user and item.
        out: The folder of the release: a new or an empty one.
        k: Users in the smallest group; must be given, but for a release that follows.
        user_attributes: One row a user, a file as above; or `{"source": FILE, "user_column": ..., "delimiter": ...,
            "header": ...}` where the content does not tell how to read it.
        sweep: Other sizes of group that the report compares this one with. Each is published once more.
        force: Replace what is at `out`.
        keep_work: A folder where the working database stays. It holds the SECRET map from user to group.
        noise_key: The file with the SECRET key of the noise in items, made if there is none. The user's folder for
            state where not given.
        history: What `keep_work` kept of the last release of the same people, which this one follows. Settings that are
            not given are those of the last release. See docs/over-time.md.
        additions: With `history`: the inputs have only ratings that came since.
        removed: With `additions`: ids of users who have left. `inputs` may be empty then.
        within: A finer release, of whose groups those of this `k` are made, with no `inputs`: give `()`. Settings are
            those of the finer release; `history` is needed where that is of a chain.
        verbose: Let dbt say on standard error what it does. It may quote data.
        progress: Called as `progress(step, done, total)`, from any thread.
        settings: Any setting of docs/vars.md, as `method="mdav"`, and how to read the input: `user_column`,
            `item_column`, `rating_column`, `time_column`, `format`, `delimiter`, `encoding`, `header`,
            `artifact_columns`, and `items`, a file that lists all items.

    Returns:
        The release. Its audit is passed.

    Raises:
        InputError: Input or settings cannot be published; nothing was written.
        PromiseError: A promise of the release is not kept; nothing was written.
        KgatherError: The disk is full, or the pipeline broke; nothing was written.

    Example:
        >>> release = kgather.publish("ratings.csv", "release", k=10, method="mdav")  # doctest: +SKIP
        >>> release.ratings().num_rows  # doctest: +SKIP
        1200
    """
    from kgather._loaders import LoadOptions

    load = {name: value for name, value in settings.items() if name in LoadOptions.model_fields}
    options = {name: value for name, value in settings.items() if name not in load}
    with _in_python():
        from kgather._publishing.asked import asked_settings
        from kgather._publishing.history import Following, k_of, with_last
        from kgather._publishing.publish import publish as run
        from kgather._republishing.sweep import other_sizes

        load_options, attributes = _load_options(load), _attributes(user_attributes)
        gone = tuple(map(str, removed))
        if within is not None:
            if any((_names(inputs), user_attributes, sweep, keep_work, noise_key, additions, gone, load)):
                msg = "`within` makes a release of a finer one alone: give `k`, `history` and `out`, and no `inputs`."
                raise InputError(msg)
            return _within(_folder(within), Path(out), {"k": k, **options}, history, force=force)
        if (additions or gone) and not (history is not None and additions):
            msg = "`additions` goes with `history`, and `removed` with both: they say what has changed since."
            raise InputError(msg)
        following = None if history is None else Following(Path(history), additions, gone)
        if k is None and following is not None:
            k = k_of(following)
        asked = asked_settings(_settings({"k": k, **options}), load_options, attributes)
        if following is not None:
            asked = with_last(following, asked)
        with _heard(progress) as report:
            published = run(
                _names(inputs),
                Path(out),
                asked,
                load_options,
                user_attributes=attributes,
                other_sizes=other_sizes(list(sweep)),
                force=force,
                keep_work=None if keep_work is None else Path(keep_work),
                noise_key=None if noise_key is None else Path(noise_key),
                following=following,
                verbose=verbose,
                report=report,
                warn=lambda message: warnings.warn(message, UserWarning, stacklevel=4),
            )
    return Release(published.folder, published.work_database)


def _within(finer: Path, out: Path, given: Mapping[str, Any], history: FilePath | None, *, force: bool) -> Release:
    from kgather._loaders import LoadOptions
    from kgather._publishing.asked import NO_COARSER_K, asked_settings
    from kgather._publishing.coarser import publish_within

    if given["k"] is None:
        raise InputError(NO_COARSER_K)
    asked = asked_settings(_settings(given), LoadOptions(), None)
    publish_within(finer, out, asked, history=None if history is None else Path(history), force=force)
    return Release(out)


def erase(
    users: Iterable[Any],
    *,
    history: FilePath,
    release: FilePath | Release,
    out: FilePath,
    force: bool = False,
) -> "Erased":
    """Take people out of a release at once, by their whole groups. See docs/over-time.md.

    Their data are taken out of the working database, and older ones beside it are deleted. Without a proven item side
    (`item_epsilon`) nothing of the release can stay: then nothing is written, and the release is to be withdrawn. The
    groups come back with the next release, once k people have come or gone.

    Args:
        users: Their ids.
        history: What `keep_work` kept of the last release.
        release: The last release.
        out: The folder of what is left of it.
        force: Replace what is at `out`, as the release itself.

    Returns:
        How many people and groups, and where what is left of the release is.

    Raises:
        InputError: Somebody is unknown, or `history` is not of `release`; nothing was erased.

    Example:
        >>> kgather.erase(["u17"], history="work", release="march", out="march-2").groups  # doctest: +SKIP
        1
    """
    with _in_python():
        from kgather._publishing.erasure import erase as run
        from kgather._publishing.history import Following

        if isinstance(users, str):
            msg = f"`users` is a list of ids, not one text: give [{users!r}]."
            raise InputError(msg)
        gone = tuple(map(str, users))
        return run(gone, Following(Path(history)), _folder(release), Path(out), force=force)


@dataclass(frozen=True)
class AnonymizedTable:
    """A table of people in which everybody looks like k - 1 others; what reads Arrow reads it.

    Args:
        rows: The anonymized rows: quasi-identifiers as strings, all other columns as they were.
        checks: One for each promise: what was promised, what was measured on these rows.
        report: How many rows and classes there are, how each column was read, and what it lost (0 to 1).
        risks: What is left for somebody who knows the quasi-identifiers; see docs/tables.md.
        folder: The release, where one was written.
        groups: Who looks the same, (unit, group_id), if `keep_groups` asked for it. It is as secret as the table that
            was anonymized.
    """

    rows: "pa.Table"
    checks: "tuple[Check, ...]"
    report: Mapping[str, Any]
    risks: Mapping[str, Any]
    folder: Path | None = None
    groups: "pa.Table | None" = field(default=None, repr=False)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


def anonymize(
    table: FilePath | ArrowRows,
    out: FilePath | None = None,
    *,
    k: int,
    quasi_identifiers: Sequence[str] | Mapping[str, Any],
    sensitive: Sequence[str] | Mapping[str, Any] = (),
    others: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    unit: str | None = None,
    rows_per_person: int | None = None,
    aggregate: Mapping[str, str] | None = None,
    pseudonym: str | None = None,
    within: FilePath | ArrowRows | None = None,
    beside: "Sequence[FilePath | ArrowRows]" = (),
    keep_groups: FilePath | bool = False,
    force: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> AnonymizedTable:
    """Anonymize a table of people.

    Every combination of what is shown of the quasi-identifiers belongs to at least k rows. Columns without a role are
    not shown; of a file every column needs one. What the user should know is a warning (`UserWarning`).

    Args:
        table: Rows: a DuckDB relation, a pyarrow Table, a data frame; they are read once. With `out` a text or Parquet
            file, or `"FILE.duckdb:TABLE"`.
        out: The folder of the release: a new or an empty one.
        k: Rows in the smallest equivalence class.
        quasi_identifiers: Columns by which a person may be known, in the order in which they are shown; or a mapping
            to how each is generalized, as `{"age": {"step": 5}, "zip": {"kind": "prefix"}}`.
        sensitive: Columns that nobody should learn of a person; or a mapping to what is promised of each, as
            `{"illness": {"l": 3}}`. They are shown as they are.
        others: Columns that are shown as they are.
        identifiers: Columns that are left out.
        unit: The column that names people. A person with several rows is refused unless one of the two next arguments
            says what becomes of them. It is left out.
        rows_per_person: A person has so many rows at most; further ones are left out. k counts people then, in each
            class and in each set of classes that a person's rows are in.
        aggregate: One row is made of all rows of a person: for each column same (the default), min, max, sum, mean,
            median, mode or count.
        pseudonym: The name of a column of random pseudonyms to add.
        within: Groups of people (unit, group_id) who look the same in this table and in all others made within them.
        beside: The groups of other tables of the same people, to measure the smallest intersection with them.
        keep_groups: Give who looks the same as `groups`; with `out`, the file to write it to. It is secret.
        force: Replace what is at `out`.
        progress: Called as `progress(step, done, total)`.
        settings: Any other setting of docs/tables.md, as `method="cluster"` or `l=3`, or `population`, given as the
            table is; and how to read a text file:
            `delimiter`, `encoding`, `header`, `skip_lines` and `comment`.

    Returns:
        The anonymized table. Every check of it is passed.

    Raises:
        InputError: Table or settings cannot be used, or something cannot be reached; nothing was written.
        PromiseError: A promise is not kept; nothing was written.

    Example:
        >>> import pyarrow as pa
        >>> people = pa.table({"age": [30, 31, 40, 41], "illness": ["flu", "cold", "flu", "cold"]})
        >>> found = anonymize(people, k=2, quasi_identifiers={"age": {"step": 5}}, sensitive=["illness"], l=2)
        >>> found.rows["age"].to_pylist()
        ['[30, 35)', '[30, 35)', '[40, 45)', '[40, 45)']
    """
    from kgather._loaders import LoadOptions

    load = {name: value for name, value in settings.items() if name in LoadOptions.model_fields}
    given = {name: value for name, value in settings.items() if name not in load} | {
        "k": k,
        "quasi_identifiers": _roles("quasi_identifiers", quasi_identifiers),
        "sensitive": _roles("sensitive", sensitive),
        "others": list(_listed("others", others)),
        "identifiers": list(_listed("identifiers", identifiers)),
        "unit": unit,
        "rows_per_person": rows_per_person,
        "aggregate": None if aggregate is None else dict(aggregate),
        "pseudonym": pseudonym,
    }
    population = given.get("population")
    if population is not None:
        if (out is None) is not hasattr(population, "__arrow_c_stream__"):
            msg = "population is given as the table is: a file with `out`, or rows without one."
            raise InputError(msg)
        given["population"] = "kgather_population" if out is None else fspath(population)
    with _in_python():
        from kgather._settings.table import table_settings
        from kgather._tables.run import warnings as worth_knowing

        is_file = isinstance(table, str | PathLike)
        named = [*([] if within is None else [within]), *beside]
        if any(isinstance(each, str | PathLike) is not is_file for each in named):
            msg = "within and beside are files where the table is one, and rows where it is rows."
            raise InputError(msg)
        if is_file is isinstance(keep_groups, bool) and keep_groups is not False:
            msg = "keep_groups is a file where the table is one, and True where it is rows."
            raise InputError(msg)
        asked = table_settings(
            given
            | {"within": None if within is None else fspath(within) if is_file else "within"}  # type: ignore[arg-type]
            | {"beside": [fspath(each) if is_file else "beside" for each in beside]}  # type: ignore[arg-type]
        )
        if is_file is (out is None):
            msg = "a file is anonymized into a folder, and rows without one. Give both a file and `out`, or rows alone."
            raise InputError(msg)
        with _heard(progress) as report:
            if out is not None:
                from kgather._tables.release import publish_table

                published = publish_table(
                    fspath(table),  # type: ignore[arg-type]
                    Path(out),
                    asked,
                    _load_options(load),
                    keep_groups=None if isinstance(keep_groups, bool) else Path(keep_groups),
                    force=force,
                    report=report,
                )
                groups = None
                audit, folder = published.audit, published.folder
                rows = Release(folder).table("table")
            else:
                from kgather._tables.in_memory import anonymize_rows

                if load or not hasattr(table, "__arrow_c_stream__"):
                    msg = "rows are a DuckDB relation, a pyarrow Table or a data frame, and are taken as they are."
                    raise InputError(msg)
                rows, audit, groups = anonymize_rows(
                    table,
                    asked,
                    population,
                    within=within,
                    beside=list(beside),
                    keep_groups=bool(keep_groups),
                    report=report,
                )
                folder = None
        for message in worth_knowing(asked, audit):
            warnings.warn(_OPTION.sub(lambda option: f"`{option[1]}`", message), UserWarning, stacklevel=2)
    return AnonymizedTable(rows, audit.checks, audit.report, audit.risks, folder, groups)


def _roles(argument: str, given: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {str(name): said for name, said in given.items()}
    return {name: {} for name in _listed(argument, given)}


def verify(
    target: "FilePath | Release | ArrowRows",
    *,
    k: int | None = None,
    columns: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    l: float | None = None,  # noqa: E741
    diversity: Literal["distinct", "entropy", "recursive"] | None = None,
    c: float | None = None,
    t: float | None = None,
    ordered: bool | None = None,
    alpha: float | None = None,
    risk_conditions: int | None = None,
    unit: str | None = None,
    group_column: str | None = None,
    user_column: str | None = None,
    item_column: str | None = None,
    rating_column: str | None = None,
    m: int | None = None,
    epsilon: float | None = None,
    width: float | None = None,
    sensitive_items: Sequence[str] = (),
    b: int | None = None,
    ratings: "FilePath | None" = None,
    types: bool = False,
    max_rejected_share: float | None = None,
    **load: Any,
) -> Verdict:
    """Check privacy models, from nothing but what is given.

    What is not anonymous is a verdict, not an error. Null is a value like any other; an empty relation passes.

    Args:
        target: A release (its folder will do), which is checked as a whole and takes no argument but `k`; a text or
            Parquet file; `"FILE.duckdb:TABLE"`; or rows: a DuckDB relation, a pyarrow Table, a data frame. Rows are
            read once, through Arrow, and where they are many they spill to the disk.
        k: Rows in the smallest equivalence class; of a release: what it promised, where not given.
        columns: The quasi-identifiers. All columns but the sensitive ones where not given.
        sensitive: Columns that nobody may infer, for `l`, `t` and `alpha`.
        l: l-diversity of each sensitive column: at least l. With `sensitive_items` a standard deviation on the ratings'
            scale; with `b` a number of groups.
        diversity: What `l` counts; "distinct" where not given.
        c: The c of recursive (c, l)-diversity.
        t: t-closeness, 0 to 1: at most t away from the whole relation.
        ordered: Whether sensitive values lie on a line. By their type where not given.
        alpha: The largest share, 0 to 1, of one sensitive value in a class.
        risk_conditions: No condition on up to so many columns matches 1 to k - 1 rows.
        unit: The column that names people, who may have several rows: `k`, `l`, `t` and `alpha` count people, and `k`
            those in a class and those whose rows are in the same set of classes.
        group_column: `k` is asked of these groups: of their rows, or of their users with `user_column`.
        user_column: The column of users, in ratings of one row for each user and item. `user_id` where not given.
        item_column: That of items. `item_id` where not given.
        rating_column: That of ratings. `rating` where not given.
        m: k^m-anonymity: at least k users have every set of up to m items that somebody has.
        epsilon: (k, epsilon)-anonymity: at least k users are this near to every user, on the ratings' scale.
        width: How far rated is from not rated; the highest rating where not given.
        sensitive_items: With `epsilon` and `l`: items whose ratings deviate by l or more among those near everybody.
        b: With `l`: (b, l)-diversity. At least l groups show every set of up to b items.
        ratings: The file of the users' ratings: `b` asks for the sets of items in them. Of a release: what it promised.
        types: Of a text file: compare numbers, dates and truth values. Their texts are compared where not given, as
            whoever reads the file sees `1` and `1.0`.
        max_rejected_share: The share of rows of a text file that may be set aside as they cannot be read, 0 to 1; none
            where not given.
        load: How to read a text file: `delimiter`, `encoding`, `header`, `skip_lines` and `comment`, as for `publish`.
            With `ratings` all that `publish` takes; what is not about texts is about that file alone.

    Returns:
        The verdict: true where every check is passed.

    Raises:
        InputError: The target cannot be read, a column does not exist, or arguments do not go together.

    Example:
        >>> import pyarrow as pa
        >>> people = pa.table({"age": [30, 30, 40], "illness": ["flu", "cold", "flu"]})
        >>> verdict = verify(people, k=2, columns=["age"], sensitive=["illness"], l=2)
        >>> verdict.passed, [check.measured for check in verdict.checks]
        (False, [1, 1])
    """
    given = {
        "columns": _listed("columns", columns),
        "sensitive": _listed("sensitive", sensitive),
        "l": l,
        "diversity": diversity,
        "c": c,
        "t": t,
        "ordered": ordered,
        "alpha": alpha,
        "risk_conditions": risk_conditions,
        "unit": unit,
        "group_column": group_column,
        "user_column": user_column,
        "item_column": item_column,
        "rating_column": rating_column,
        "m": m,
        "epsilon": epsilon,
        "width": width,
        "sensitive_items": _listed("sensitive_items", sensitive_items),
        "b": b,
    }
    with _in_python():
        from kgather._verify import Asked, verify_named, verify_rows
        from kgather.udfs._shared.options import whole

        if k is not None:
            whole("k", k, 1)
        if isinstance(target, Release):
            target = target.folder
        if isinstance(target, str | PathLike):
            verified = verify_named(
                fspath(target),
                k,
                given,
                options=_load_options(load),
                types=types,
                max_rejected_share=max_rejected_share,
                users_ratings=None if ratings is None else fspath(ratings),
            )
            return Verdict(verified.checks, verified.read)
        if load or types or max_rejected_share is not None or ratings is not None:
            msg = "rows are compared as they are: how to read them, and users' ratings, go with files and releases."
            raise InputError(msg)
        if not hasattr(target, "__arrow_c_stream__"):
            msg = (
                f"a value of type {type(target).__name__} cannot be verified. Give a release, a file, "
                "'FILE.duckdb:TABLE', a DuckDB relation, a pyarrow Table or a data frame."
            )
            raise InputError(msg)
        return Verdict(verify_rows(target, Asked(k=k, **given)))  # type: ignore[arg-type]


def attack(
    release: FilePath | Release,
    *,
    original: FilePath | Sequence[FilePath] | None = None,
    known: Sequence[int] = (1, 2, 4, 8, 16, 32),
    noisy: bool = False,
    dates: bool = False,
    pool: Literal["all", "popular", "rare"] = "all",
    targets: int = 1000,
    seed: int = 0,
    attacks: Sequence[str] | None = None,
    shadows: int = 100,
    second: FilePath | Release | None = None,
    second_original: FilePath | Sequence[FilePath] | None = None,
    others: FilePath | None = None,
    on_original: bool = True,
    publish_seed: int = 0,
    second_publish_seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    hierarchies: Mapping[str, FilePath] | None = None,
    population: FilePath | None = None,
    sampling_fraction: float | None = None,
    progress: Progress | None = None,
    **load: Any,
) -> "AttackReport":
    """Attack a release the way somebody would who knows a few ratings of a person, or columns of a table of people.

    Runs on the publisher's side: what the release was made of says when a guess is right. Attackers do not have it.

    Args:
        release: The release, or its folder.
        original: What was published, a file or several, or the `work.duckdb` that `publish` kept with `keep_work`. May
            be left out for a `Release` that still has its `work_database`. From files the release is made again. Of a
            table the one file that was anonymized.
        known: How many ratings, or quasi-identifiers, of a target are known.
        noisy: Known ratings may be a step of the scale off.
        dates: When they were given is known, too, to the day: runs the attack `dated`.
        pool: Known are any of a user's items, or of the half with most ("popular") or fewest raters ("rare"): `--from`
            of the command line.
        targets: People who are attacked, drawn at random.
        seed: Draws the targets and what is known of them.
        attacks: Names of attacks, see docs/attacks.md; None: all that can be run and take no shadow releases.
        shadows: How many shadow releases `shadows` and `attribute` make.
        second: Another release of the same people, for `intersection` and `differences`.
        second_original: What that one was made of, as `original`.
        others: A file of ratings of people who are not in the release, for `membership`.
        on_original: Attack the ratings themselves, too, to compare.
        publish_seed: The seed of the publication, where files are given.
        second_publish_seed: That of the second one.
        settings: Settings that the release was made with and audit.json does not name, where files are given.
        hierarchies: Of a table: the files of its columns' hierarchies.
        population: Of a table: a file of the population, a row a person, for the attack `journalist`.
        sampling_fraction: Of a table: or the share of the population that is in it, which estimates that attack.
        progress: Called as `progress(step, done, total)`, from any thread.
        load: How to read the files: `user_column`, `delimiter` and so on, as for `publish`.

    Returns:
        What each attack found, beside what chance gives. `report.best()` are the strongest; shares are 0 to 1.
        `report.worst("group")` is the largest share of people whose group is named, for a limit of your own.

    Raises:
        InputError: Something cannot be read, does not belong together, or lacks what an attack needs.

    Example:
        >>> report = kgather.attack("release", original="ratings.csv", known=[4, 8])  # doctest: +SKIP
        >>> report.worst("user")[0] < 0.05  # doctest: +SKIP
        True
    """
    with _in_python():
        from kgather._release.reading import holds_table
        from kgather._republishing.opened import Sources, attack_release
        from kgather._tables.attacking import attack_table, refuse_of_ratings, refuse_of_tables

        names = None if attacks is None else list(_listed("attacks", attacks))
        of_tables = {
            "`hierarchies`": hierarchies, "`population`": population, "`sampling_fraction`": sampling_fraction
        }  # fmt: skip
        if holds_table(_folder(release)):
            refuse_of_ratings(
                {
                    "`noisy`": noisy, "`dates`": dates, "`pool`": pool != "all", "`second`": second,
                    "`second_original`": second_original, "`others`": others, "`settings`": settings,
                }
            )  # fmt: skip
            with _heard(progress) as report:
                return attack_table(
                    _folder(release),
                    _originals("original", release, original),
                    {name: fspath(file) for name, file in (hierarchies or {}).items()},
                    _load_options(load),
                    population=None if population is None else fspath(population),
                    sampling_fraction=sampling_fraction,
                    publish_seed=publish_seed,
                    known=known,
                    targets=targets,
                    seed=seed,
                    attacks=names,
                    original_too=on_original,
                    report=report,
                )
        refuse_of_tables(of_tables)
        sources = Sources(
            release=_folder(release),
            originals=_originals("original", release, original),
            seed=publish_seed,
            second=None if second is None else _folder(second),
            second_originals=[] if second is None and second_original is None
            else _originals("second_original", second, second_original),
            second_seed=second_publish_seed,
            others=None if others is None else fspath(others),
            load_options=_load_options(load),
            assignments=[f"{name}={json.dumps(value)}" for name, value in _settings(settings or {}).items()],
            dates=dates or "dated" in (names or ()),
        )  # fmt: skip
        with _heard(progress) as report:
            return attack_release(
                sources,
                report=report,
                known=known,
                noisy=noisy,
                pool=pool,
                targets=targets,
                seed=seed,
                attacks=names,
                original_too=on_original,
                shadows=shadows,
            )


@contextmanager
def _in_python() -> Iterator[None]:
    """Name arguments in errors as Python does, not as the shell, and let an interruption be one."""
    try:
        yield
    except StoppedError:
        raise KeyboardInterrupt from None
    except KgatherError as error:
        told = _OPTION.sub(lambda option: f"`{option[1].replace('-', '_')}`", str(error))
        error.args = (told.replace("Run again with -v", "Run again with `verbose=True`"),)
        raise


@contextmanager
def _heard(progress: Progress | None) -> Iterator[Progress]:
    """What reports the order of things, while kernels report their steps to the same listener."""
    from kgather._progress import listening

    with listening(progress) if progress else nullcontext():
        yield progress or (lambda *_: None)


def _names(given: FilePath | Sequence[FilePath]) -> list[str]:
    try:
        return [fspath(given)] if isinstance(given, str | PathLike) else [fspath(each) for each in given]
    except TypeError:
        msg = f"ratings are read from files, not from a {type(given).__name__}: write it to a Parquet file first."
        raise InputError(msg) from None


def _listed(argument: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        msg = f"`{argument}` is a list of names, not one text: give [{names!r}]."
        raise InputError(msg)
    return tuple(names)


def _folder(release: FilePath | Release) -> Path:
    return release.folder if isinstance(release, Release) else Path(release)


def _originals(
    argument: str, release: FilePath | Release | None, given: FilePath | Sequence[FilePath] | None
) -> list[str]:
    if given is not None:
        return _names(given)
    if isinstance(release, Release) and release.work_database is not None:
        return [str(release.work_database)]
    msg = f"give `{argument}`: what was published, or the work.duckdb that `publish` kept with `keep_work`."
    raise InputError(msg)


def _load_options(given: Mapping[str, Any]) -> "LoadOptions":
    from kgather._loaders import LoadOptions
    from kgather._settings.validation import validated

    unknown = [name for name in given if name not in LoadOptions.model_fields]
    if unknown:
        msg = f"there is no argument {quoted(unknown)}. Files are read with: {', '.join(LoadOptions.model_fields)}."
        raise InputError(msg)
    return validated(LoadOptions, given)


def _settings(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings by name, all of them known."""
    from kgather._settings.publication import PublishSettings

    unknown = [name for name in given if name not in PublishSettings.model_fields]
    if unknown:
        msg = f"there is no setting {quoted(unknown)}. The settings are: {', '.join(PublishSettings.model_fields)}."
        raise InputError(msg)
    return given


def _attributes(given: FilePath | Mapping[str, Any] | None) -> Any:
    from kgather._publishing.publish import AttributesSource

    if given is None:
        return None
    if not isinstance(given, Mapping):
        return AttributesSource(fspath(given))
    try:
        return AttributesSource(**{**given, "source": fspath(given["source"])})
    except (KeyError, TypeError):
        msg = "`user_attributes` is a file, or a mapping with source and, if need be, user_column, delimiter, header."
        raise InputError(msg) from None
