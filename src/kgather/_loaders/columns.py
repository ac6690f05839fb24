"""Choosing the columns of users, items, ratings and times by their names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kgather._errors import InputError
from kgather._loaders.options import LoadOptions

Role = Literal["user", "item", "rating", "time"]
ROLES: tuple[Role, ...] = ("user", "item", "rating", "time")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# For each role the names known for it, the surest first; compared in lower case without punctuation.
SYNONYMS: dict[Role, tuple[frozenset[str], ...]] = {
    "user": (
        _words(
            "userid uid customerid custid reviewerid memberid accountid personid viewerid raterid profileid "
            "clientid visitorid subjectid participantid patronid readerid listenerid playerid studentid "
            "userno usernumber useridx userindex"
        ),
        _words(
            "user usr customer reviewer member account person viewer rater client visitor respondent "
            "participant reader listener player student userhash u"
        ),
        _words("username reviewername author authorid nickname login profilename"),
    ),
    "item": (
        _words(
            "itemid iid movieid filmid productid bookid isbn jokeid asin trackid songid artistid albumid "
            "animeid mangaid gameid appid businessid restaurantid recipeid beerid wineid articleid showid "
            "courseid hotelid placeid venueid videoid contentid titleid itemno itemnumber itemidx itemindex"
        ),
        _words(
            "item movie film product book joke track song artist album anime manga game app business "
            "restaurant recipe beer wine article show course hotel place venue video content parentasin "
            "sku ean upc isbn13 imdbid tmdbid i"
        ),
        _words("title itemname movietitle moviename filmtitle productname producttitle booktitle beername"),
    ),
    "rating": (
        _words("rating ratings userrating bookrating movierating itemrating productrating ratingvalue ratingscore"),
        _words(
            "score stars star overall rate rated grade preference myrating userscore reviewscore "
            "starrating overallrating reviewrating reviewoverall"
        ),
        _words("value weight points vote votes r"),
    ),
    "time": (
        _words("timestamp ratedat ratingtime ratingtimestamp ratingdate unixreviewtime unixtimestamp unixtime"),
        _words("time date datetime ts reviewtime reviewtimestamp reviewdate eventtime createdat"),
        _words("when t updatedat dateadded dateupdated"),
    ),
}


@dataclass(frozen=True)
class Columns:
    """The positions, from 0, of the columns chosen."""

    user: int
    item: int
    rating: int
    time: int | None

    def position(self, role: Role) -> int | None:
        """The position of one role's column."""
        positions: dict[Role, int | None] = {
            "user": self.user,
            "item": self.item,
            "rating": self.rating,
            "time": self.time,
        }
        return positions[role]

    def without_time(self) -> "Columns":
        """The same columns, without the times."""
        return Columns(self.user, self.item, self.rating, None)


def wanted(options: LoadOptions, role: Role) -> str | None:
    """What the options say about one role's column."""
    said: dict[Role, str | None] = {
        "user": options.user_column,
        "item": options.item_column,
        "rating": options.rating_column,
        "time": options.time_column,
    }
    return said[role]


def times_ignored(options: LoadOptions) -> bool:
    """Whether the options say to ignore the times."""
    return options.time_column is not None and options.time_column.strip().lower() == "none"


def option_name(role: Role) -> str:
    """The option of the command line that names one role's column."""
    return f"--{role}-column"


def choose_by_name(where: str, names: Sequence[str], options: LoadOptions) -> Columns:
    """Choose the columns of a table that names them.

    Args:
        where: The input, for messages.
        names: The names of all columns.
        options: What was said about them.

    Raises:
        InputError: A column named in the options is missing, two columns fit a role equally well, or none
            does.
    """
    user = _find(where, names, "user", options)
    item = _find(where, names, "item", options)
    rating = _find(where, names, "rating", options)
    time = None if times_ignored(options) else _find(where, names, "time", options)
    missing: list[Role] = [role for role in ROLES[:3] if {"user": user, "item": item, "rating": rating}[role] is None]
    if user is None or item is None or rating is None:
        lacking = " and ".join(f"{role}s" for role in missing)
        flags = ", ".join(option_name(role) for role in missing)
        message = f"{where}: no column of {lacking} found. The columns are: {listed(names)}. Say which with {flags}."
        raise InputError(message)
    return _distinct(where, Columns(user, item, rating, time))


def choose_by_position(where: str, count: int, options: LoadOptions, *, has_time: bool) -> Columns:
    """Choose the columns of a file without a header: user, item, rating, time, unless the options differ.

    Args:
        where: The input, for messages.
        count: How many fields a line has.
        options: What was said about the columns.
        has_time: The fourth field holds times.

    Raises:
        InputError: A position is none, or there are too few fields.
    """
    default: dict[Role, int] = {"user": 0, "item": 1, "rating": 2}
    if has_time and count > 3:
        default["time"] = 3
    said: dict[Role, int] = {}
    for role in ROLES:
        value = wanted(options, role)
        if value is None or (role == "time" and times_ignored(options)):
            continue
        if not re.fullmatch(r"[0-9]{1,6}", value.strip()):
            message = (
                f"{where} has no header, so {option_name(role)} must be a position (1 is the first field), "
                "not a name. If the first line names the columns, use --header."
            )
            raise InputError(message)
        said[role] = int(value) - 1
    if times_ignored(options) or ("time" in default and default["time"] in said.values()):
        default.pop("time", None)
    chosen = {**default, **said}
    for role, position in chosen.items():
        if not 0 <= position < count:
            message = (
                f"{where} has {count} fields a line, so there is no field {position + 1} for the {role}s. "
                f"Say which with {option_name(role)}, or what separates the fields with --delimiter."
            )
            raise InputError(message)
    return _distinct(where, Columns(chosen["user"], chosen["item"], chosen["rating"], chosen.get("time")))


def roles_named(names: Sequence[str], options: LoadOptions) -> int:
    """How many roles have a column by name: the more, the likelier that a line is a header."""
    plains = [plain(name) for name in names]
    count = 0
    for role in ROLES:
        said = wanted(options, role)
        asked = frozenset() if said is None or said.strip().isdecimal() else frozenset({plain(said)})
        known = asked.union(*SYNONYMS[role])
        count += any(name in known for name in plains if name)
    return count


def _find(where: str, names: Sequence[str], role: Role, options: LoadOptions) -> int | None:
    said = wanted(options, role)
    if said is not None:
        return _said(where, names, role, said.strip())
    plains = [plain(name) for name in names]
    for tier in SYNONYMS[role]:
        found = [position for position, name in enumerate(plains) if name in tier]
        if len(found) > 1:
            rival = " and ".join(f"'{names[position].strip()}'" for position in found)
            other = ' (or "none")' if role == "time" else ""
            message = f"{where}: {rival} fit the {role}s equally well. Say which with {option_name(role)}{other}."
            raise InputError(message)
        if found:
            return found[0]
    return None


def _said(where: str, names: Sequence[str], role: Role, said: str) -> int:
    found = position_of(where, names, said)
    if found is not None:
        return found
    if re.fullmatch(r"[0-9]{1,6}", said) and 1 <= int(said) <= len(names):
        return int(said) - 1
    message = f"{where}: no column '{said}' for the {role}s ({option_name(role)}). The columns are: {listed(names)}."
    raise InputError(message)


def position_of(where: str, names: Sequence[str], said: str) -> int | None:
    """The position, from 0, of the column of a name; upper and lower case, and punctuation if need be, are the same.

    Args:
        where: The input, for messages.
        names: The names of all columns.
        said: The name to find.

    Raises:
        InputError: Several columns have the name.
    """
    for reading in (str.strip, lambda name: name.strip().lower(), plain):
        found = [position for position, name in enumerate(names) if reading(name) and reading(name) == reading(said)]
        if len(found) == 1:
            return found[0]
        if found:
            message = f"{where}: {len(found)} columns are named '{said}'. Rename one."
            raise InputError(message)
    return None


def _distinct(where: str, columns: Columns) -> Columns:
    used: dict[int, Role] = {}
    for role in ROLES:
        position = columns.position(role)
        if position is None:
            continue
        if position in used:
            message = (
                f"{where}: the {used[position]}s and the {role}s are both taken from column {position + 1}. "
                f"Say which columns with {option_name(used[position])} and {option_name(role)}."
            )
            raise InputError(message)
        used[position] = role
    return columns


def plain(name: str) -> str:
    """A name in lower case without punctuation."""
    lowered = name.strip().lower()
    return re.sub(r"[^a-z0-9]", "", lowered) or lowered


def _shown(name: str) -> str:
    """A name for a message; a number is no name but likely data, which messages must not hold."""
    name = name.strip()
    if not name:
        return "(no name)"
    return "(a number)" if re.fullmatch(r"[+-]?[0-9.,]+", name) else name[:60]


def listed(names: Sequence[str], most: int = 40) -> str:
    """Names for a message."""
    shown = [_shown(name) for name in names[:most]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
