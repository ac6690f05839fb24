"""What is to be verified, however it is given: a release, a file, a table, or rows that Arrow can stream."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from kgather._errors import InputError
from kgather._loaders import LoadOptions, as_written
from kgather._loaders.as_written import Read
from kgather._loaders.columns import distinct_names
from kgather._release.release import Check
from kgather._settings.validation import validated
from kgather._verify.asked import Asked
from kgather._verify.connection import bounded
from kgather._verify.folder import is_release, promised_parameters, promised_size, verify_release
from kgather._verify.models import verify_models
from kgather._verify.users_ratings import of_release
from kgather._verify.verdicts import at_most
from kgather.udfs._shared.options import real

SET_ASIDE = "share of rows that could not be read"

_ROWS = "kgather_rows"
# How any text is read; all other options of reading are about ratings.
_OF_TEXTS = {"header", "delimiter", "encoding", "skip_lines", "comment"}
_COLUMNS = ("user_column", "item_column", "rating_column")
_NAMES = {"words": "map"}  # options that are not called as the field is


@dataclass(frozen=True)
class Verified:
    """The checks of a target, and, of a file or table, how much of it was read and as what."""

    checks: tuple[Check, ...]
    read: Read | None = None


def verify_named(
    target: str,
    k: int | None,
    given: Mapping[str, Any],
    *,
    options: LoadOptions | None = None,
    types: bool = False,
    max_rejected_share: float | None = None,
    users_ratings: str | None = None,
) -> Verified:
    """Check a release folder, a text or Parquet file, or FILE.duckdb:TABLE.

    given: the other fields of `Asked`, by name; a release is checked as a whole and takes none. options: how to read a
    text file. types: compare numbers, dates and truth values of a text file, not their texts. max_rejected_share: the
    share of rows that may be set aside because they cannot be read; none where not given. users_ratings: the file of
    users' ratings of which (b, l)-diversity takes the sets of items; `options` say how it is read, too, as for publish.
    Those that only ratings are read with are of no use without it. Beside a release, the columns in `given` are those
    of this file.
    Raises InputError where the target cannot be read, or is not checked for what was asked.
    """
    options = options or LoadOptions()
    if users_ratings is not None and is_release(Path(target)):
        columns = {name: given[name] for name in _COLUMNS if given.get(name) is not None}
        said = {**given, "types": types or None, **dict.fromkeys(columns)}
        reading = validated(LoadOptions, options.model_dump(exclude_unset=True) | columns)
        share = None if max_rejected_share is None else real("--max-rejected-share", max_rejected_share, 0, 1)
        return Verified(_of_release_and_ratings(Path(target), k, said, (users_ratings, reading, share)))
    if is_release(Path(target)):
        said = {**given, "types": types or None, "max_rejected_share": max_rejected_share}
        said |= options.model_dump(exclude_unset=True)
        return Verified(_of_release(Path(target), k, said))
    if Path(target).is_dir():
        msg = f"{target} is a folder, but no release. To check a file in it, name the file."
        raise InputError(msg)
    asked = Asked(k=k, **given)
    if users_ratings is not None and asked.b is None:
        msg = "--ratings goes with --b and --l: it says which sets of items users rated."
        raise InputError(msg)
    of_ratings = [name for name in options.model_fields_set if name not in _OF_TEXTS]
    if of_ratings and users_ratings is None:
        asked_for = ", ".join(f"--{_NAMES.get(name, name).replace('_', '-')}" for name in sorted(of_ratings))
        msg = (
            f"{asked_for}: this says how ratings are read, and goes with --ratings. {target} is read as it is written."
        )
        raise InputError(msg)
    of_target = LoadOptions(**options.model_dump(include=_OF_TEXTS, exclude_unset=True))
    limit = real("--max-rejected-share", 0.0 if max_rejected_share is None else max_rejected_share, 0, 1)
    with (
        bounded() as con,
        _readable(target),
        as_written.opened(con, target, of_target, asked.named) as it,
    ):
        # Of a sensitive column other spellings of a value are no other value.
        typed = (*(["*"] if types else []), *asked.sensitive)
        relation = it.view(con, _ROWS, typed, ids=[asked.unit] if asked.unit else [])
        # One person is one, however the id is written; an item is what a reader sees.
        roles = {"user_id": asked.user_column, "rating": asked.rating_column, "group_id": asked.group_column}
        user, rating, group = (said or usual for usual, said in roles.items())
        pairs = it.view(con, f"{_ROWS}_pairs", [rating], ids=[user, group])
        members = it.view(con, f"{_ROWS}_members", typed, ids=[user])
        beside = None if users_ratings is None else (users_ratings, options, limit)
        checks = verify_models(con, relation, asked, pairs, members, beside)
        read = it.read
        if asked.long and (unread := it.unread(con, rating)):
            aside = read.set_aside + unread
            first = read.first or "a rating that is no number"
            read = replace(read, rows=read.rows - unread, set_aside=aside, first=first)
        if read.set_aside:
            checks = (at_most(SET_ASIDE, limit, read.share_set_aside), *checks)
        return Verified(checks, read)


def verify_rows(rows: Any, asked: Asked) -> tuple[Check, ...]:
    """Check rows that have `__arrow_c_stream__`. They are read once and kept where they may spill.

    Raises InputError where they cannot be read or are not what was asked for.
    """
    import pyarrow as pa  # it takes a moment, and the command line does not need it

    with bounded() as con, _readable("what was given", pa.ArrowException):
        # Checks look at the rows several times, and a stream can be read once.
        reader = pa.RecordBatchReader.from_stream(rows)
        distinct_names("the rows", reader.schema.names)
        con.register(f"{_ROWS}_stream", reader)
        con.execute(f"create temp table {_ROWS} as from {_ROWS}_stream")
        con.unregister(f"{_ROWS}_stream")
        return verify_models(con, _ROWS, asked)


def _of_release_and_ratings(
    folder: Path, k: int | None, given: Mapping[str, Any], users_ratings: tuple[str, LoadOptions, float | None]
) -> tuple[Check, ...]:
    """A release as a whole, and its (b, l)-diversity for the sets of items that users rated.

    users_ratings: the file, how it is read, and the share of its rows that may be unreadable.
    """
    b, least = given.get("b"), given.get("l")
    if (b is None) != (least is None):
        msg = "--b and --l go together: give both, or neither to check what the release promised."
        raise InputError(msg)
    if b is not None:
        Asked(b=b, l=least)  # refuses what they cannot be
    checks = _of_release(folder, k, {**given, "b": None, "l": None})
    wanted = None if least is None else int(least)
    source, options, share = users_ratings
    parameters = promised_parameters(folder)
    return (*checks, *of_release(folder, parameters, source, options, b, wanted, max_rejected_share=share))


def _of_release(folder: Path, k: int | None, given: Mapping[str, Any]) -> tuple[Check, ...]:
    asked = [f"--{name.replace('_', '-')}" for name, value in given.items() if value not in (None, ())]
    if asked:
        msg = (
            f"a release is checked as a whole, without {', '.join(asked)}. To check one of its tables, give it by "
            f"name, as {folder / 'members.parquet'}."
        )
        raise InputError(msg)
    return verify_release(folder, k if k is not None else promised_size(folder))


@contextmanager
def _readable(target: str, *others: type[Exception]) -> Iterator[None]:
    unreadable: tuple[type[Exception], ...] = (duckdb.Error, *others)
    try:
        yield
    except unreadable as error:
        # Its text may quote data.
        msg = f"{target} cannot be checked: its content cannot be read or compared ({type(error).__name__})."
        raise InputError(msg) from None
