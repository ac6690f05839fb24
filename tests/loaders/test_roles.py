"""Which column holds the people is never guessed: it is named, it is said, or the format fixes it."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kgather._errors import InputError
from kgather._loaders import LoadOptions, load
from kgather._loaders.columns import RolesUnknownError

FIELDS = ("user", "item", "rating")
AMAZON = (
    "B00X4WHP5E,A1B2C3D4E5F6G7,5.0,1252800000\n"
    "B00X4WHP5E,A2SUAM1J3GNN3B,4.0,1252800001\n"
    "0001393774,A1B2C3D4E5F6G7,1.0,1252800002\n"
)
MOVIELENS = "{0}1::1193::5::978300760\n1::661::3::978302109\n2::1193::4::978298413\n"


def refused(loaded: Callable[..., Any], content: str, **options: Any) -> RolesUnknownError:
    """The error with which a file is refused, looked at as all such errors are."""
    with pytest.raises(RolesUnknownError) as caught:
        loaded(content, **options)
    assert caught.value.exit_code == 2
    assert "Look twice which column holds the people" in str(caught.value)
    return caught.value


def proposal(error: InputError) -> dict[str, str]:
    """What a message says to say, as the options of the command line and their values."""
    (line,) = [each for each in str(error).splitlines() if each.startswith("If this is right, say so: ")]
    words = shlex.split(line.removeprefix("If this is right, say so: "))
    return dict(zip(words[::2], words[1::2], strict=True))


def said_so(error: InputError) -> dict[str, Any]:
    """The same, as options of the loader."""
    values: dict[str, Any] = {name.removeprefix("--").replace("-", "_"): text for name, text in proposal(error).items()}
    return {name: tuple(text.split(",")) if name == "fields" else text for name, text in values.items()}


@pytest.mark.parametrize(
    ("content", "proposed"),
    [
        ("anna,dune,4\nbob,dune,3.5\nbob,solaris,3.5\n", "user,item,rating"),
        ("71\t10\t4\n72\t10\t4\n73\t12\t3\n", "user,item,rating"),
        ("4;anna;dune\n3;bob;dune\n3;carl;solaris\n", "rating,user,item"),
        ("u1::m1::4::978300760\nu2::m1::4::978300761\nu3::m2::3::978300762\n", "user,item,rating,time"),
        ("978300760,u1,m1,4\n978300761,u2,m1,4\n978300762,u3,m2,3\n", "time,user,item,rating"),
        ("u1|m1|4|978300760|x\nu2|m1|4|978300761|x\n", "user,item,rating,time,-"),
    ],
)
def test_a_file_without_names_is_refused_and_the_proposal_works(
    loaded: Callable[..., Any], content: str, proposed: str
) -> None:
    error = refused(loaded, content)
    assert "no line names the columns, so which of them holds the people is not known" in str(error)
    assert proposal(error) == {"--fields": proposed}
    got = loaded(content, **said_so(error))
    assert got.problems() == []
    assert len(got.good()) == content.count("\n")
    at = {role: place for place, role in enumerate(proposed.split(","), 1)}
    assert got.report.inputs[0].columns == {
        role: str(at[role]) if role in at else None for role in ("user", "item", "rating", "time")
    }


@pytest.mark.parametrize(
    "said",
    [
        {"user_column": "2"},
        {"user_column": "2", "item_column": "1"},
        {"user_column": "2", "rating_column": "3"},
        {"rating_column": "3", "time_column": "4"},
        {"header": False},
        {"delimiter": ","},
        {"format": "csv"},
        {"time_column": "none"},
    ],
)
def test_less_than_all_three_positions_is_not_enough(loaded: Callable[..., Any], said: dict[str, str]) -> None:
    refused(loaded, AMAZON, **said)


@pytest.mark.parametrize(
    "said",
    [
        {"fields": ("item", "user", "rating", "time")},
        {"fields": (" Item", "USER", "rating ", "time")},
        {"user_column": "2", "item_column": "1", "rating_column": "3", "time_column": "4"},
    ],
)
def test_the_order_of_amazon(loaded: Callable[..., Any], said: dict[str, Any]) -> None:
    """Its first field holds the items; the people would be published if it were taken for the users."""
    got = loaded(AMAZON, **said)
    assert got.good() == [
        ("A1B2C3D4E5F6G7", "B00X4WHP5E", 5.0),
        ("A2SUAM1J3GNN3B", "B00X4WHP5E", 4.0),
        ("A1B2C3D4E5F6G7", "0001393774", 1.0),
    ]
    assert got.rows("epoch(rated_at)::bigint") == [(1252800000,), (1252800001,), (1252800002,)]
    assert got.report.inputs[0].columns == {"user": "2", "item": "1", "rating": "3", "time": "4"}


def test_a_field_may_be_left_out(loaded: Callable[..., Any]) -> None:
    got = loaded(AMAZON, fields=("item", "user", "rating", "-"))
    assert got.rows("rated_at, problem") == [(None, None)] * 3


@pytest.mark.parametrize(
    "content",
    [
        "Zdenka,quartz,4\nMilorad,quartz,3\n",
        "Zdenka,quartz,secret\nMilorad,secret,quartz\n",
        "Zdenka;quartz;4;978300760;zürich@quartz.example\nMilorad;quartz;3;978300761;secret\n",
        '"Zdenka, Milorad","quartz",4\n"secret","quartz",3\n',
        "# secret of Zdenka\nMilorad,quartz,4\nMilorad,secret,3\n",
        "4711::815::secret::quartz\n4712::815::secret::quartz\n",
        "Zdenka,quartz,NA\nMilorad,secret,3\n",
    ],
)
def test_no_value_is_told(loaded: Callable[..., Any], content: str) -> None:
    error = refused(loaded, content)
    told = str(error).removeprefix(error.where).lower()
    for value in ("zdenka", "milorad", "quartz", "secret", "zürich", "4711", "4712", "815", "978"):
        assert value not in told


def test_shapes_are_told(loaded: Callable[..., Any]) -> None:
    lines = str(refused(loaded, AMAZON)).splitlines()
    assert lines[1:4] == [
        "  A##A#AAA#A | A#A#A#A#A#A#A# | #.# | ##########",
        "  A##A#AAA#A | A#AAAA#A#AAA#A | #.# | ##########",
        "  ########## | A#A#A#A#A#A#A# | #.# | ##########",
    ]


@pytest.mark.parametrize("header", ["user,item,rating", "Reviewer_ID,asin,Overall", "# user,item,rating"])
def test_names_after_comments(loaded: Callable[..., Any], header: str) -> None:
    """The names may be below comments, and may be a comment themselves."""
    comments = "# Ratings of 2020, by hand\n#\n# see the notes\n"
    got = loaded(f"{header}\n7,10,4\n8,11,3.5\n")
    assert got.good() == [(7, 10, 4.0), (8, 11, 3.5)]
    got = loaded(f"{comments}{header}\n7,10,4\n8,11,3.5\n", skip_lines=3)
    assert got.good() == [(7, 10, 4.0), (8, 11, 3.5)]
    if not header.startswith("#"):
        content = f"{comments}{header}\n7,10,4\n# twice\n8,11,3.5\n"
        error = refused(loaded, content)
        assert proposal(error) == {"--comment": "#"}
        got = loaded(content, **said_so(error))
        assert got.good() == [(7, 10, 4.0), (8, 11, 3.5)]
        assert got.rows("line") == [(5,), (7,)]


@pytest.mark.parametrize("first", [True, False])
def test_a_sibling_without_names(con: duckdb.DuckDBPyConnection, write: Callable[..., Path], first: bool) -> None:
    """The order of a file that names its columns is proposed for one that does not, and is not taken."""
    named = write("movie,rating,person,note\n10,4,7,x\n", "named.csv")
    other = write("11,3.5,8,y\n12,2,8,z\n", "other.csv")
    inputs = [named, other] if first else [other, named]
    with pytest.raises(RolesUnknownError) as caught:
        load(con, inputs, LoadOptions())
    assert str(caught.value).startswith(f"{other}: no line names the columns")
    assert f"{named} does, and has as many; this one may have the same order." in str(caught.value)
    assert proposal(caught.value) == {"--fields": "item,rating,user,-"}
    assert con.execute("select table_name from duckdb_tables()").fetchall() == []
    load(con, inputs, LoadOptions(**said_so(caught.value)))
    rows = con.execute("select user_id, item_id, rating from loaded.ratings order by source, line").fetchall()
    assert rows == [(7, 10, 4.0), (8, 11, 3.5), (8, 12, 2.0)]


def test_a_sibling_of_other_width_is_no_example(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    named = write("movie,rating,person,note\n10,4,7,x\n", "named.csv")
    other = write("anna,dune,4\nbob,dune,3\ncarl,dune,3\n", "other.csv")
    with pytest.raises(RolesUnknownError) as caught:
        load(con, [named, other], LoadOptions())
    assert str(named) not in str(caught.value)
    assert proposal(caught.value) == {"--fields": "user,item,rating"}


@pytest.mark.parametrize(
    ("names", "told", "said", "columns"),
    [
        (("userid", "customer_id", "item", "rating"), "'userid' and 'customer_id' fit the users", "user", "1"),
        (("user", "movie", "book", "rating"), "'movie' and 'book' fit the items", "item", "2"),
        (("user", "item", "score", "stars"), "'score' and 'stars' fit the ratings", "rating", "4"),
    ],
)
def test_two_names_that_fit_a_role(
    loaded: Callable[..., Any], names: Sequence[str], told: str, said: str, columns: str
) -> None:
    content = ",".join(names) + "\n1,2,3,4\n"
    with pytest.raises(InputError, match=f"{told} equally well. Say which with --{said}-column"):
        loaded(content)
    name = names[int(columns) - 1]
    got = loaded(content, **{f"{said}_column": name})
    assert got.report.inputs[0].columns[said] == name


@pytest.mark.parametrize(
    ("names", "told", "proposed"),
    [
        ("author,item,rating", "users", {"--user-column": "author"}),
        ("user,title,rating", "items", {"--item-column": "title"}),
        ("user,item,Value", "ratings", {"--rating-column": "Value"}),
        ("user,item,plays", "ratings", {"--rating-column": "plays"}),
        ("name,artist,plays", "users and items and ratings",
         {"--user-column": "name", "--item-column": "artist", "--rating-column": "plays"}),
        ("id,title,rating", "users and items", {"--user-column": "id", "--item-column": "title"}),
    ],
)  # fmt: skip
def test_names_that_are_not_clear(loaded: Callable[..., Any], names: str, told: str, proposed: dict[str, str]) -> None:
    content = f"{names}\n7,10,4\n8,11,3.5\n"
    error = refused(loaded, content)
    listed = names.replace(",", ", ")
    assert f"no column is clearly named as that of the {told}. The columns are: {listed}." in str(error)
    assert proposal(error) == proposed
    assert loaded(content, **said_so(error)).good() == [(7, 10, 4.0), (8, 11, 3.5)]


def test_a_clear_name_goes_before_one_that_is_not(loaded: Callable[..., Any]) -> None:
    got = loaded("author,user_id,title,movieId,value,rating\na,7,t,10,9,4\nb,8,u,11,9,3.5\n")
    assert got.good() == [(7, 10, 4.0), (8, 11, 3.5)]


def test_names_of_a_table_that_are_not_clear(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    con.execute(f"copy (select 'Zdenka' as author, 10 as item, 4 as rating) to '{path}'")
    with pytest.raises(RolesUnknownError) as caught:
        load(con, [path], LoadOptions())
    assert proposal(caught.value) == {"--user-column": "author"}
    assert "Zdenka" not in str(caught.value)
    load(con, [path], LoadOptions(user_column="author"))
    assert con.execute("select user_id, item_id, rating from loaded.ratings").fetchall() == [("Zdenka", 10, 4.0)]


@pytest.mark.parametrize(
    ("content", "name", "form", "columns"),
    [
        (MOVIELENS.format(""), "ratings.txt", "movielens-dat", ("1", "2", "3", "4")),
        (MOVIELENS.format("\ufeff"), "x", "movielens-dat", ("1", "2", "3", "4")),
        (MOVIELENS.format("").replace("::", "\t"), "u.data", "u.data", ("1", "2", "3", "4")),
        (MOVIELENS.format("").replace("::", "\t"), "u1.base", "u.data", ("1", "2", "3", "4")),
        ("1193:\n1,5,2005-09-06\n661:\n1,3,2005-09-07\n1193:\n2,4,2005-09-08\n", "r.txt", "netflix",
         ("1", "block header", "2", "3")),
        ("%%MatrixMarket matrix coordinate real general\n% by hand\n2 1193 3\n1 1193 5\n1 661 3\n2 1193 4\n", "r",
         "matrix-market", ("1", "2", "3", None)),
    ],
)  # fmt: skip
def test_standard_formats(
    loaded: Callable[..., Any], content: str, name: str, form: str, columns: tuple[str | None, ...]
) -> None:
    got = loaded(content, name)
    assert got.good() == [(1, 1193, 5.0), (1, 661, 3.0), (2, 1193, 4.0)]
    assert got.report.inputs[0].format == form
    assert tuple(got.report.inputs[0].columns.values()) == columns


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (MOVIELENS.format("").replace("::", "\t"), "ratings.tsv"),
        (MOVIELENS.format("").replace("::", ","), "u.data"),
        (MOVIELENS.format("").replace("1193", "A1193"), "ratings.dat"),
        (MOVIELENS.format("").replace("::5::", "::50::").replace("::3::", "::30::"), "ratings.dat"),
        (MOVIELENS.format("").replace("::978", "::8"), "ratings.dat"),
        ("1::1193::5\n1::661::3\n2::1193::4\n", "ratings.dat"),
        ("1\t1193\t5\n1\t661\t3\n2\t1193\t4\n", "u.data"),
    ],
)
def test_what_only_looks_a_little_like_one_is_refused(loaded: Callable[..., Any], content: str, name: str) -> None:
    refused(loaded, content, name=name)


def test_a_format_that_is_said_fixes_the_columns(loaded: Callable[..., Any]) -> None:
    content = "1\t1193\t5\t978300760\n2\t661\t3\t978302109\n"
    got = loaded(content, "ratings.tsv", format="u.data")
    assert got.good() == [(1, 1193, 5.0), (2, 661, 3.0)]
    got = loaded(content.replace("\t", "::"), "r", fields=("item", "user", "rating", "time"))
    assert got.good() == [(1193, 1, 5.0), (661, 2, 3.0)]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            ("item", "user", "rating"),
            r"--fields says that field 2 holds the users, and the first line that field 1 does",
        ),
        (
            ("rating", "user", "item"),
            r"--fields says that field 2 holds the users, and the first line that field 1 does",
        ),
        (
            ("user", "rating", "item"),
            r"--fields says that field 3 holds the items, and the first line that field 2 does",
        ),
        (("user", "item", "rating", "-"), "has 3 fields a line, and --fields names 4"),
    ],
)
def test_fields_that_disagree_with_the_names(loaded: Callable[..., Any], fields: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        loaded("user,item,rating\n7,10,4\n", fields=fields)


@pytest.mark.parametrize("names", ["user,item,rating", "who,what,stars", "author,title,value"])
def test_fields_that_agree_with_the_names(loaded: Callable[..., Any], names: str) -> None:
    got = loaded(f"{names}\n7,10,4\n8,11,3.5\n", fields=FIELDS)
    assert got.good() == [(7, 10, 4.0), (8, 11, 3.5)]
    assert got.report.inputs[0].header is True


def test_fields_of_another_width_than_the_lines(loaded: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match=r"has 4 fields a line, and --fields names 3\. Name each, with - for those"):
        loaded(AMAZON, fields=("item", "user", "rating"))
