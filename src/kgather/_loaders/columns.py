"""Choosing the columns of users, items, ratings and times by their names."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kgather._errors import InputError
from kgather._loaders import shapes
from kgather._loaders.options import LoadOptions

Role = Literal["user", "item", "rating", "time"]
ROLES: tuple[Role, ...] = ("user", "item", "rating", "time")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# For each role the names that are clear, the surest first; compared in lower case without punctuation.
SYNONYMS: dict[Role, tuple[frozenset[str], ...]] = {
    "user": (
        _words(
            "userid uid customerid custid reviewerid memberid accountid personid viewerid raterid profileid "
            "clientid visitorid subjectid participantid patronid readerid listenerid playerid studentid "
            "userno usernumber useridx userindex userkey usersha1 userhash authorid authorsteamid steamid"
        ),
        _words(
            "user usr customer reviewer member account person viewer rater client visitor respondent "
            "participant reader listener player student username reviewername"
        ),
    ),
    "item": (
        _words(
            "itemid iid movieid filmid productid bookid isbn jokeid asin trackid songid artistid albumid "
            "animeid mangaid gameid appid businessid restaurantid recipeid beerid wineid articleid showid "
            "courseid hotelid placeid venueid videoid contentid titleid itemno itemnumber itemidx itemindex itemkey "
            "artistmbid artmbid trackmbid parentasin isbn13 imdbid tmdbid"
        ),
        _words(
            "item movie film product book joke track song album anime manga game app business "
            "restaurant recipe beer wine article show course hotel place venue video content sku ean upc "
            "itemname movietitle moviename filmtitle productname producttitle booktitle beername"
        ),
    ),
    "rating": (
        _words("rating ratings userrating bookrating movierating itemrating productrating ratingvalue ratingscore"),
        _words(
            "score stars star overall rate rated grade preference myrating userscore reviewscore "
            "starrating overallrating reviewrating reviewoverall"
        ),
    ),
    "time": (
        _words("timestamp ratedat ratingtime ratingtimestamp ratingdate unixreviewtime unixtimestamp unixtime"),
        _words("time date datetime ts reviewtime reviewtimestamp reviewdate eventtime createdat"),
        _words("when t updatedat dateadded dateupdated"),
    ),
}

# Names that may mean a role, and often mean something else: good for a proposal, not for being read unasked.
UNCLEAR: dict[Role, frozenset[str]] = {
    "user": _words("u author nickname login profilename name id"),
    "item": _words("i artist title"),
    "rating": _words("r value weight points vote votes plays playcount count hours listencount"),
    "time": frozenset(),
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


class RolesUnknownError(InputError):
    """Which columns hold users, items and ratings is not clear, and a guess could publish people's names.

    `proposal` is what would confirm the likeliest reading, as options of the command line.
    """

    def __init__(self, where: str, why: str, seen: str, proposal: str, count: int = 0) -> None:
        # Where nothing can be proposed, the names are to be filled in.
        ask = "Say which columns they are" if "NAME" in proposal else "If this is right, say so"
        lines = f" The first lines, with letters as A or a and digits as #:\n{seen}" if seen else ""
        super().__init__(
            f"{where}: {why}{lines}\n"
            f"{ask}: {proposal}\n"
            "Look twice which column holds the people: what is read as items is published."
        )
        self.where, self.why, self.seen, self.count = where, why, seen, count

    def beside(self, sibling: str, named: Sequence[str]) -> "RolesUnknownError":
        """The same, where another input names its columns: what its order would be for this one."""
        why = f"{self.why} {sibling} does, and has as many; this one may have the same order."
        return RolesUnknownError(self.where, why, self.seen, f"--fields {','.join(named)}", self.count)


def choose_by_name(
    where: str, names: Sequence[str], options: LoadOptions, rows: Sequence[Sequence[str]] = ()
) -> Columns:
    """Choose the columns of a table that names them.

    Args:
        where: The input, for messages.
        names: The names of all columns.
        options: What was said about them.
        rows: The first records, for messages; of their values only the shapes are told.

    Raises:
        InputError: A column named in the options is missing, two columns fit a role equally well, `fields` says
            something else than the names, or (RolesUnknownError) no name is clear for a role.
    """
    found = {role: _find(where, names, role, options) for role in ROLES}
    if times_ignored(options):
        found["time"] = None
    if options.fields is not None:
        found = _agreed(where, names, options, found)
    if options.no_rating:
        found["rating"] = len(names)  # past the last column: every row counts as 1
    if any(found[role] is None for role in ROLES[:3]):
        raise _unclear(where, names, found, rows)
    user, item, rating = (found[role] for role in ROLES[:3])
    assert user is not None
    assert item is not None
    assert rating is not None
    return _distinct(where, Columns(user, item, rating, found["time"]))


def _agreed(
    where: str, names: Sequence[str], options: LoadOptions, found: dict[Role, int | None]
) -> dict[Role, int | None]:
    """What `fields` says, where the names do not say otherwise."""
    said = _of_fields(where, len(names), options)
    for role in ROLES:
        named, at = found[role], said.get(role)
        if named is not None and at is not None and named != at:
            message = (
                f"{where}: --fields says that field {at + 1} holds the {role}s, and the first line that field "
                f"{named + 1} does ('{_shown(names[named])}'). Leave --fields out, or name the columns with "
                f"{option_name(role)}."
            )
            raise InputError(message)
    return {role: said[role] if role in said else found[role] for role in ROLES}


def _unclear(
    where: str, names: Sequence[str], found: dict[Role, int | None], rows: Sequence[Sequence[str]]
) -> RolesUnknownError:
    """What to say where names are not clear, with a proposal of the names that might be meant."""
    plains = [plain(name) for name in names]
    taken = {at for at in found.values() if at is not None}
    proposed: list[str] = []
    for role in ROLES[:3]:
        if found[role] is not None:
            continue
        may = [at for at, name in enumerate(plains) if name in UNCLEAR[role] and at not in taken]
        proposed.append(f"{option_name(role)} {_shown(names[may[0]]) if may else 'NAME'}")
    missing = " and ".join(f"{role}s" for role in ROLES[:3] if found[role] is None)
    why = f"no column is clearly named as that of the {missing}. The columns are: {listed(names)}."
    return RolesUnknownError(where, why, shapes.table_of(rows), " ".join(proposed))


def choose_by_position(where: str, count: int, options: LoadOptions) -> Columns | None:
    """Choose the columns of a file without a header, as the options say; None where they do not say it.

    Args:
        where: The input, for messages.
        count: How many fields a line has.
        options: What was said about the columns.

    Raises:
        InputError: A position is none, or there are too few fields.
    """
    said: dict[Role, int] = _of_fields(where, count, options) if options.fields is not None else {}
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
    if times_ignored(options):
        said.pop("time", None)
    for role, position in said.items():
        if not 0 <= position < count:
            message = (
                f"{where} has {count} fields a line, so there is no field {position + 1} for the {role}s. "
                f"Say which with {option_name(role)}, or what separates the fields with --delimiter."
            )
            raise InputError(message)
    if options.no_rating:
        said["rating"] = count
    if not said.keys() >= set(ROLES[:3]):
        return None
    return _distinct(where, Columns(said["user"], said["item"], said["rating"], said.get("time")))


def _of_fields(where: str, count: int, options: LoadOptions) -> dict[Role, int]:
    """The position of each role that `fields` names."""
    given = options.fields or ()
    if len(given) != count:
        message = (
            f"{where} has {count} fields a line, and --fields names {len(given)}. Name each, with - for those that "
            "are not read; or say what separates the fields with --delimiter."
        )
        raise InputError(message)
    return {role: given.index(role) for role in ROLES if role in given}


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


def may_name(names: Sequence[str]) -> bool:
    """Whether two roles or more have a column by a name that is clear or may mean them."""
    plains = {plain(name) for name in names} - {""}
    return sum(bool(plains & UNCLEAR[role].union(*SYNONYMS[role])) for role in ROLES) >= 2


def _find(where: str, names: Sequence[str], role: Role, options: LoadOptions) -> int | None:
    said = wanted(options, role)
    if role == "time" and times_ignored(options):
        return None
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


def distinct_names(where: str, given: Sequence[str]) -> list[str]:
    """The names of columns, trimmed, with one for those without; no two are the same but for upper and lower case."""
    names = [text.strip() or f"column_{at}" for at, text in enumerate(given, 1)]
    often = Counter(name.casefold() for name in names)
    for name in names:
        if often[name.casefold()] > 1:
            message = f"{where}: {often[name.casefold()]} columns are named '{name[:60]}'. Rename one."
            raise InputError(message)
    return names


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
    # RecBole writes the type of a column after its name, as in user_id:token.
    lowered = re.sub(r":(token|float)(_seq)?$", "", name.strip().lower())
    return re.sub(r"[^a-z0-9]", "", lowered) or lowered


def _shown(name: str) -> str:
    """A name for a message; a number is no name but likely data, which messages must not hold."""
    name = name.strip()
    if not name:
        return "(no name)"
    return "(a number)" if re.fullmatch(r"[+-]?[0-9.,]+", name) else name[:60]


def listed(names: Sequence[str], most: int = 40) -> str:
    """Names for a message."""
    # A line with a number in it is likely a row, of which only shapes are told.
    is_row = any(re.fullmatch(r"[+-]?[0-9.,]+", name.strip()) for name in names)
    shown = [shapes.shape(name) if is_row else _shown(name) for name in names[:most]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
