"""Writes a release: a folder that holds what anyone may have, whole or not at all."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from kgather import _stopping as stopping
from kgather._errors import InputError
from kgather._forms import forms
from kgather._methods import registered
from kgather._release.digits import shown_digits
from kgather._release.rounded import rounded
from kgather._sql_text import literal
from kgather._version import __version__

DATABASE = "release.duckdb"
AUDIT = "audit.json"
REPORT = "report.html"

# Mart, the columns that order it, and its file. What a release does not have is left out.
_RELATIONS = {
    "kgather__ratings": ("group_id, item_id", "ratings.parquet"),
    "kgather__groups": ("group_id", "groups.parquet"),
    "kgather__members": ("pseudonym", "members.parquet"),
    "kgather__user_ratings": ("pseudonym, item_id", "user_ratings.parquet"),
    "kgather__intervals": ("group_id, item_id", "intervals.parquet"),
    "kgather__generalized": ("group_id, random()", "generalized.parquet"),
    "kgather__personal": ("all", "personal.parquet"),
    "kgather__group_vectors": ("group_id", "group_vectors.parquet"),
    "kgather__item_vectors": ("item_id", "item_vectors.parquet"),
}

_ALWAYS_SORTED = ("group_id, random()", "all")

FILES = tuple(file for _, file in _RELATIONS.values())

# A release that is written is one as a whole: what the marts of a dbt project say in every row, it need not.
_UNSTAMPED = "select * exclude (release_id, released_on) from"

_PARQUET = "format parquet, compression zstd"
_MARTS = "select {name} from {function}() where database_name = 'marts' and not internal"
# Views name their tables without a database, so that they live in a file of any name.
_USER_RATINGS = """
create view kgather__user_ratings as
select members.pseudonym, ratings.item_id, ratings.rating
from kgather__members as members
join kgather__ratings as ratings using (group_id)
"""
# From the vectors, not from the view: looking up many pairs must not compute all cells.
_RATING = """
create macro kg_rating(p_group, p_item) as (
  select least(greatest(
    round(cast(groups.level + items.level + list_inner_product(groups.factor, items.factor) as double), {digits}),
    ceil({low} * 10.0 ^ {digits}) / 10.0 ^ {digits}
  ), floor({high} * 10.0 ^ {digits}) / 10.0 ^ {digits})
  from kgather__group_vectors as groups
  cross join kgather__item_vectors as items
  where groups.group_id = p_group and items.item_id = p_item
)
"""
_LISTED_RATING = """
create macro kg_rating(p_group, p_item) as (
  select ratings.rating from kgather__ratings as ratings where ratings.group_id = p_group and ratings.item_id = p_item
)
"""


_FRAME = "What the frame tells: without a catalogue of items, every item is there because somebody rated it."
_BARE = "That an item hides one of its raters from somebody who knows the others: it has no noise (item_noise 0)."
_SCALE = "What the scale tells: one that was not declared ends at the lowest and the highest rating given."
_GROUPS = (
    "A proven bound on what is shown of groups, on counts and on metrics: item_epsilon bounds what the items' vectors "
    "tell, and nothing else."
)
_LEVELS = "Anonymity for users who asked for a level of 1: they may stand alone, with what they rated."
_PERSONAL = (
    "Anonymity of the personal attributes: they are shown as they are, and a rare combination of them identifies by "
    "itself."
)
_SEPARATE = (
    "Anonymity of the personal attributes beside the ratings: k holds for their table and for the groups, and whoever "
    "knows a person's attributes and ratings looks among those who have both. The audit says how few they are."
)
_POPULAR = (
    "That the items a group shows tell nothing about its members: they are chosen by counts of raters with noise. One "
    "rating changes the odds of any choice by a factor of at most exp(1 / popular_noise), several by one each."
)
_UNATTACKED = (
    "What quick attackers get: the engine spark did not measure it, as one executor cannot hold all cells of the "
    "release."
)
_SAMPLED = (
    "What quick attackers get of everybody: the engine spark attacked the people of some groups, among all groups. "
    "Whether columns of rare items tell of their raters was not looked at."
)
_COUNTED = (
    "That a single rating does not decide which items a group shows: they are chosen by counts of raters without noise."
)


def not_promised(parameters: Mapping[str, Any]) -> list[str]:
    """What a release made with these parameters does not promise, in sentences."""
    form = forms().get(str(parameters.get("homogenize")))
    method = registered().get(str(parameters.get("method")))
    popular = str(parameters.get("cells")).startswith("popular")
    # Releases that do not say how were made when there was one way.
    personal, how = parameters.get("personal_columns"), parameters.get("personal", "as_is")
    told = {
        _GROUPS: parameters.get("item_epsilon") is not None,
        _FRAME: not parameters.get("items"),
        _SCALE: not parameters.get("scale"),
        _BARE: parameters.get("item_noise") == 0 and parameters.get("item_epsilon") is None,
        _LEVELS: method is not None and method.levels,
        _PERSONAL: bool(personal) and how == "as_is",
        _SEPARATE: bool(personal) and how == "separate",
        _POPULAR: popular and bool(parameters.get("popular_noise")),
        _COUNTED: popular and not parameters.get("popular_noise"),
        _UNATTACKED: parameters.get("attacked") == "nobody",
        _SAMPLED: parameters.get("attacked") == "some",
    }
    of_form = [form.not_promised] if form is not None and form.not_promised else []
    return of_form + [sentence for sentence, applies in told.items() if applies]


@dataclass(frozen=True)
class Check:
    """One line of an audit: what was checked, what was promised (None: nothing), what was measured."""

    check: str
    promised: float | None  # counts are int
    measured: float
    passed: bool


@dataclass(frozen=True)
class Audit:
    """What a release says of itself, as audit.json holds it.

    metrics: what it cost. attacks: what quick attackers get, None where nothing was tried. group_sizes: rows of size
    and groups. sweep: what other sizes of group would cost and give away, where that was asked for. read: what was
    read, see `kgather._loaders.seen`. item_privacy: what a private item side promises, and each measurement with what
    it cost; None where there is none.
    """

    parameters: Mapping[str, Any]
    counts: Mapping[str, Any]
    scale: Mapping[str, Any]
    checks: tuple[Check, ...]
    metrics: tuple[Mapping[str, Any], ...] = ()
    attacks: Mapping[str, Any] | None = None
    group_sizes: tuple[Mapping[str, int], ...] = ()
    sweep: tuple[Mapping[str, Any], ...] = ()
    read: Mapping[str, Any] | None = None
    item_privacy: Mapping[str, Any] | None = None

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return the audit as plain data."""
        return {
            "kgather_version": __version__,
            "passed": self.passed,
            **({} if self.read is None else {"read": dict(self.read)}),
            "parameters": dict(self.parameters),
            "counts": dict(self.counts),
            "scale": dict(self.scale),
            "checks": [asdict(check) for check in self.checks],
            **({} if self.item_privacy is None else {"item_privacy": dict(self.item_privacy)}),
            "not_promised": not_promised(self.parameters),
            "metrics": list(self.metrics),
            "attacks": self.attacks,
            "group_sizes": list(self.group_sizes),
            **({"sweep": list(self.sweep)} if self.sweep else {}),
        }


def write_release(con: duckdb.DuckDBPyConnection, folder: Path, audit: Audit, key: bytes | None = None) -> None:
    """Write the release into a new folder, from the database `marts` of the connection, which holds nothing else.

    key: that of the noise, under which the checksums of the files that were read are told; None: they are not told.

    Rows are written anew, in the order of random ids, into a fresh file: no dropped row, no order of the input and
    no statistics of either come along.
    """
    folder.mkdir()
    con.execute(f"attach {literal(folder / DATABASE)} as release")
    con.execute("use release")
    tables = {name for (name,) in con.sql(_MARTS.format(function="duckdb_tables", name="table_name")).fetchall()}
    files = []
    for name, (order, file) in _RELATIONS.items():
        if name in tables:
            # Most marts have that order already, and sorting a large one again takes as long as all else here.
            sort = order in _ALWAYS_SORTED or _any(con, unordered(f"marts.{name}", order.split(", ")))
            con.execute(f"create table {name} as {_UNSTAMPED} marts.{name}{f' order by {order}' if sort else ''}")
            # In the order in which it was just written.
            con.execute(f"copy {name} to {literal(folder / file)} ({_PARQUET})")
            files.append(file)
    for (view,) in con.sql(_MARTS.format(function="duckdb_views", name="sql")).fetchall():
        con.execute(_unstamped(re.sub(r'"?marts"?\."?main"?\.', "", view)))
    views = con.sql(_MARTS.format(function="duckdb_views", name="view_name")).fetchall()
    if "kgather__ratings" in {*tables, *(name for (name,) in views)}:
        con.execute(_USER_RATINGS)
        rating = _RATING if "kgather__group_vectors" in tables else _LISTED_RATING
        low, high = audit.scale["min"], audit.scale["max"]
        con.execute(rating.format(low=low, high=high, digits=shown_digits(high - low)))
    con.execute(f"create table kgather__audit as {_UNSTAMPED} marts.kgather__audit")
    con.execute(f"create table kgather__metrics as {_UNSTAMPED} marts.kgather__metrics")
    con.execute("checkpoint release")
    con.execute("use memory")
    con.execute("detach release")
    said = rounded(audit.as_dict(), key) | {"files": {file: _sha256(folder / file) for file in [*files, DATABASE]}}
    (folder / AUDIT).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    # Imported here: drawing takes a second to load, and only this needs it.
    from kgather._report import render

    (folder / REPORT).write_text(render(said), encoding="utf-8")


def _unstamped(view: str) -> str:
    """The statement that creates a view, without the columns that a release does not have."""
    name, body = re.split(r"\s+as\s+", view.strip().rstrip(";"), maxsplit=1, flags=re.IGNORECASE)
    return f"{name.split('(')[0]} as {_UNSTAMPED} ({body})"


def _any(con: duckdb.DuckDBPyConnection, count: str) -> bool:
    [(rows,)] = con.sql(count).fetchall()
    return bool(rows)


def unordered(relation: str, order: Sequence[str]) -> str:
    """Return a query for the number of rows that are less in the columns of `order` than the row before."""
    before = ", ".join(f"lag({column}) over () as before_{place}" for place, column in enumerate(order))
    columns = ", ".join(f"{column} as column_{place}" for place, column in enumerate(order))
    # Less in one column, and the same in all before it.
    same = [f"column_{place} is not distinct from before_{place}" for place in range(len(order))]
    falls = " or ".join(
        " and ".join([*same[:place], f"column_{place} < before_{place}"]) for place in range(len(order))
    )
    return f"select count(*) from (select {columns}, {before} from {relation}) where {falls}"


def put_in_place(folder: Path, target: Path, *, replace: bool) -> None:
    """Give a finished folder its final name, in one step; what it replaces is moved aside just before.

    Raises InputError where the name was taken meanwhile.
    """
    with stopping.whole:
        if not target.exists() or not any(target.iterdir()):
            folder.rename(target)  # over an empty folder, too
        elif replace:
            _replace(target, folder)
        else:
            msg = f"{target} was filled by somebody else meanwhile; nothing was written there."
            raise InputError(msg)
        stopping.written(target)


def _replace(target: Path, folder: Path) -> None:
    # Beside the new one, and gone with the workspace.
    replaced = folder.with_name("replaced")
    try:
        target.rename(replaced)
        folder.rename(target)
    except BaseException:
        # In a program of somebody else's, Ctrl-C may come in between.
        if replaced.exists() and not target.exists():
            replaced.rename(target)
        raise


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
