"""`kgather verify` compares what stands in a file, and says how much of it was read."""

import json
from pathlib import Path

import duckdb
import pytest
from test_verify import verify

from kgather import verify as verify_in_python

CASES: list[tuple[str, tuple[str, ...], int]] = [
    ("x,age\n1,30\n1.0,30\n1,30\n1,30\n1.00,30\n", (), 3),
    ("x,age\n1,30\n1.0,30\n1,30\n1,30\n1.00,30\n", ("--types",), 0),
    ("x,age\ntrue,30\nTRUE,30\ntrue,30\n", (), 3),
    ("d,age\n2020-01-01,30\n2020-1-1,30\n2020-01-01,30\n", (), 3),
    ("x,age\na,30\na ,30\na,30\n", (), 3),
    ('x,age\na,30\n"a",30\na,30\n', (), 3),
    ("x,age\né,30\ne\u0301,30\né,30\n", (), 3),
    ("x,age\n,30\nNULL,30\n,30\n", (), 3),
    ("x,age\na,30\na,30\n", (), 0),
    # Whether the first line is a header is not clear: it may be a person who is alone.
    ("alice,berlin\nx,y\nx,y\n", (), 2),
    ("alice,berlin\nx,y\nx,y\n", ("--header",), 0),
    ("alice,berlin\nx,y\nx,y\n", ("--no-header",), 3),
    ("alice,unknown\nx,1\nx,1\n", (), 2),
    ("city,illness\na,b\na,b\n", ("--columns", "city"), 0),
    ("12,30\n12,30\n12,30\n", (), 0),
    ("12,31\n12,30\n12,30\n", (), 3),
    ("city\na\na\n", ("--header",), 0),
    ("alice,berlin,withheld\nbob,paris,34\nbob,paris,34\n", (), 2),
    ("anna,likes\nbert,3\nbert,3\n", (), 2),
    ("isbn,high\nean,low\nean,low\n", (), 2),
    ("age,17\n30,5\n30,5\n", ("--columns", "age"), 2),
    ("n,age\nflu,1\n flu,1\n", ("--types",), 3),
    ("n,age\n1,NA\n1,\n", ("--types",), 3),
    ("n,age\n0.50,1\n0.5,1\n", ("--types",), 0),
    ("a\n1\n1\n\u00a0\n1\n", ("--header",), 3),
    ("name,age\nx,30\nx,30\n\t\n", (), 3),
    ("g,u\na,7\na,7.0\n", ("--header", "--group-column", "g", "--user-column", "u"), 3),
    ("user_id,item_id,rating\n7,a,1\n8,a,1\n9,zz,NA\n", ("--m", "1"), 3),
    ("q,s\n1,1\n1,1.0\n2,x\n2,y\n", ("--header", "--columns", "q", "--sensitive", "s", "--l", "2"), 3),
    # Rows that cannot be read may hide somebody.
    ("x,age\na,30\na,30\na,b,30\n", (), 3),
    ("x,age\na,30\na,30\na,b,30\n", ("--max-rejected-share", "0.5"), 0),
    ('x,age\na,30\na,30\n"a,30\n', (), 3),
    ("# by A.\nx,age\na,30\na,30\n", ("--comment", "#"), 0),
    ("x;age\na;30\na;30\n", (), 0),
    ("x,age\n", (), 2),
]


@pytest.mark.parametrize(("text", "options", "code"), CASES)
def test_texts_are_compared_as_they_stand(text: str, options: tuple[str, ...], code: int, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text, encoding="utf-8")
    found, said = verify(file, "--k", 2, *options)
    assert found == code, said


def test_what_was_read_is_said(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("x,age\na,30\na,30\nb,c,30\n")
    _, said = verify(file, "--k", 2)
    assert "2 rows, 1 set aside (first: line 4: it has 3 fields, not 2)" in said
    read = json.loads(verify(file, "--k", 2, "--json")[1])["read"]
    assert (read["rows"], read["set_aside"], read["names"]) == (2, 1, ["x", "age"])
    verdict = verify_in_python(file, k=2)
    assert verdict.read is not None
    assert verdict.read.set_aside == 1
    assert not verdict


def test_a_name_with_brackets_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "part1.csv").write_text("x,y\n" + "a,1\n" * 5)
    (tmp_path / "part[1].csv").write_text("x,y\na,1\nb,2\n")
    assert verify(tmp_path / "part[1].csv", "--k", 2)[0] == 3
    for name, rows in (("part1.parquet", 5), ("part[1].parquet", 1)):
        duckdb.sql(f"select 'a' as x from range({rows})").write_parquet(str(tmp_path / "made.parquet"))
        (tmp_path / "made.parquet").rename(tmp_path / name)
    assert verify(tmp_path / "part[1].parquet", "--k", 2)[0] == 3


def test_what_a_database_takes_for_the_same_is_not(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "d.duckdb") as con:
        con.execute("create table texts (x varchar collate nocase)")
        con.execute("insert into texts values ('A'), ('a'), ('a')")
        con.execute("create table zeros as select * from (values (0.0::double), (-(0.0::double)), (0.0)) as t(x)")
        con.execute("create table same as select 'a' as x from range(2)")
    assert verify(f"{tmp_path}/d.duckdb:texts", "--k", 2)[0] == 3
    assert verify(f"{tmp_path}/d.duckdb:zeros", "--k", 2)[0] == 3
    assert verify(f"{tmp_path}/d.duckdb:same", "--k", 2)[0] == 0
    with duckdb.connect(tmp_path / "d.duckdb") as con:
        con.execute("create table pairs (user_id int, item_id varchar collate nocase, g varchar collate nocase)")
        con.execute("insert into pairs values (1, 'A', 'x'), (2, 'a', 'X')")
        con.execute("create table spelled as select * from (values ('7', 1), (' 7', 1)) as t(user_id, item_id)")
    assert verify(f"{tmp_path}/d.duckdb:pairs", "--k", 2, "--m", 1)[0] == 3
    assert verify(f"{tmp_path}/d.duckdb:pairs", "--k", 2, "--group-column", "g")[0] == 3
    assert verify(f"{tmp_path}/d.duckdb:spelled", "--k", 2, "--m", 1)[0] == 3


def test_one_person_is_one_however_the_id_is_written(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user_id,item_id,rating\n7,1,5\n7.0,1,5\n")
    assert verify(file, "--k", 2, "--m", 1)[0] == 3


@pytest.mark.parametrize("illness", ["1,1.0", "flu, flu"])
def test_a_sensitive_value_is_not_two_for_its_spelling(illness: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    one, other = illness.split(",")
    file.write_text(f"age,illness\n30,{one}\n30,{other}\n")
    options = ("--columns", "age", "--sensitive", "illness", "--l", 2)
    assert verify(file, "--k", 2, *options)[0] == 3
    assert verify(file, "--k", 2, *options, "--types")[0] == 3
