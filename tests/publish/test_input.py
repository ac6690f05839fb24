"""What becomes of the rows of the input: staged, or set aside with source, line and reason."""

from pathlib import Path

import duckdb
import pytest

from kgather._errors import InputError
from kgather._publishing.publish import Published

HEADER = "user,item,rating,timestamp"


def write(folder: Path, lines: list[str], header: str = HEADER) -> Path:
    file = folder / "given.csv"
    file.write_text("\n".join([header, *lines]) + "\n")
    return file


def many(users: int = 12, items: int = 6) -> list[str]:
    return [f"u{u},i{i},{1 + (u * i) % 5},{1_000_000_000 + u * 100 + i}" for u in range(users) for i in range(items)]


def staged(published: Published) -> dict[tuple[str, str], float]:
    with duckdb.connect(published.work_database, read_only=True) as con:
        found = con.sql("select user_id, item_id, rating from stg_kgather__ratings").fetchall()
    return {(user, item): rating for user, item, rating in found}


def rejected(published: Published) -> list[tuple[str, int, str]]:
    with duckdb.connect(published.work_database, read_only=True) as con:
        return con.sql("select source, line, reason from int_kgather__rejected_ratings order by line").fetchall()


def test_every_row_is_staged_or_rejected_with_its_reason(publish_to, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        [
            *many(),  # lines 2 to 73
            "u1,i1,5,2000000000",  # repeats line 8: later, so it stays
            "u2,i1,1,1",  # repeats line 15: earlier
            "u3,i1,7,3",
            "u3,,4,3",
            ",i3,4,3",
            "u3,i2,nan,3",
            "u3,i2,good,3",
            "u3,i2",
            "u4,i9,2.5,3",
            "u5,i9,0,3",
        ],
    )
    published = publish_to(file, k=3, scale=(1, 5, 1), not_rated=0, max_rejected_share=0.2)
    kept = staged(published)
    assert kept["u1", "i1"] == 5
    assert kept["u2", "i1"] == 1 + 2 % 5
    assert rejected(published) == [
        ("given.csv", 9, "repeated pair: the latest is kept"),
        ("given.csv", 75, "repeated pair: the latest is kept"),
        ("given.csv", 76, "rating is off the scale"),
        ("given.csv", 77, "item id is empty"),
        ("given.csv", 78, "user id is empty"),
        ("given.csv", 79, "rating is not a finite number"),
        ("given.csv", 80, "rating is not a number"),
        ("given.csv", 81, "malformed line: expected 4 fields, found 2"),
        ("given.csv", 82, "rating is between two steps of the scale"),
        ("given.csv", 83, "not rated"),
    ]
    assert len(kept) + 10 == published.audit.counts["read_rows"] == 82


def test_without_times_a_repeated_pair_has_its_mean(publish_to, tmp_path: Path) -> None:
    lines = [line.rsplit(",", 1)[0] for line in many()]
    file = write(tmp_path, [*lines, "u1,i1,5", "u1,i1,5"], header="user,item,rating")
    published = publish_to(file, k=3, max_rejected_share=0.2)
    assert staged(published)["u1", "i1"] == pytest.approx((2 + 5 + 5) / 3)
    assert [reason for *_, reason in rejected(published)] == ["repeated pair: the mean is kept"] * 2


def test_users_with_few_ratings_are_set_aside(publish_to, tmp_path: Path) -> None:
    file = write(tmp_path, [*many(), "rare,i1,3,1", "rare,i2,3,1"])
    published = publish_to(file, k=3, min_ratings=3)
    assert ("rare", "i1") not in staged(published)
    assert [reason for *_, reason in rejected(published)] == ["user has fewer than 3 ratings"] * 2
    assert published.audit.counts["users"] == 12


@pytest.mark.parametrize(
    ("lines", "settings", "told"),
    [
        (many(), {"k": 13}, "k = 13 is larger than the number of users, 12"),
        (many(), {"k": 3, "scale": (1, 4)}, r"9 of 72 rows are rejected.*given.csv line \d+: rating is off the scale"),
        (["u1,i1,x,1", "u2,i1,y,1"], {"k": 1, "max_rejected_share": 1}, "every row is set aside.*not a number"),
        (many(), {"k": 3, "homogenize": "padded", "max_cells": 5}, "24 cells, more than max_cells = 5"),
    ],
)
def test_refused_before_any_work(publish_to, tmp_path: Path, lines, settings, told) -> None:
    with pytest.raises(InputError, match=f"(?s){told}"):
        publish_to(write(tmp_path, lines), **settings)


def test_a_refusal_tells_no_id(publish_to, tmp_path: Path) -> None:
    file = write(tmp_path, ["mallory@example.org,i1,x,1", *many()])
    with pytest.raises(InputError) as refusal:
        publish_to(file, k=3, max_rejected_share=0)
    assert "line 2" in str(refusal.value)
    assert "mallory" not in str(refusal.value)


@pytest.mark.parametrize(
    ("file", "users", "items", "staged_rows"),
    [
        ("ml-100k/u.data", 943, 1682, 100_000),
        ("ml-latest-small/ratings.csv", 610, 9724, 100_836),
        ("filmtrust/ratings.txt", 1508, 2071, 35_494),
        ("netflix/combined_excerpt.txt", 4700, 6, 4861),
        ("netflix/derived_combined_10k.txt", 9687, 3451, 10_000),
        ("ml-1m/ratings.csv", 6040, 3706, 1_000_209),
        ("jester/jester1_ratings.csv.gz", 24_983, 100, 1_810_455),
    ],
)
def test_real_data(publish_to, data_dir: Path, file: str, users: int, items: int, staged_rows: int) -> None:
    # No line of filmtrust names the columns, and it is no known format.
    load = {"fields": ("user", "item", "rating")} if file.startswith("filmtrust") else {}
    counts = publish_to(data_dir / file, load=load, k=10).audit.counts
    assert (counts["users"], counts["items"], counts["staged_rows"]) == (users, items, staged_rows)
    assert counts["groups"] <= users // 10


@pytest.mark.parametrize(
    ("rows", "k"),
    [
        ([(u, i, 5) for u in range(9) for i in range(4)], 3),  # ratings that all say the same
        ([(1, 1, 3)], 1),
        ([(u, 1, u % 5) for u in range(12)], 12),
        ([(u, u, 1 + u % 5) for u in range(12)], 3),  # items that nobody else rated
        ([(2**62 + u, 2**61 + i, u * i % 7 - 3.5) for u in range(12) for i in range(5)], 3),
    ],
)
def test_poor_input_is_published_all_the_same(publish_to, tmp_path: Path, rows: list[tuple], k: int) -> None:
    file = write(tmp_path, [",".join(map(str, row)) for row in rows], header="user,item,rating")
    published = publish_to(file, k=k)
    assert published.audit.passed
    assert published.audit.counts["users"] == len({user for user, *_ in rows})


def test_columns_of_a_files_own_do_not_matter(publish_to, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        [f"{line},web,none,x" for line in many()],
        header=f"{HEADER},source,problem,line",
    )
    assert publish_to(file, k=3).audit.counts["rejected_rows"] == 0
