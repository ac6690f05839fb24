"""Several statements in a message, transactions, cursors, COPY, and what clients write in PostgreSQL's way."""

import struct
from collections.abc import Iterator

import pytest
from raw_client import Bind, Describe, Execute, Parse, RawClient, Sync, columns, errors, kinds, rows
from wire_files import USER, Running, guard, start

from kgather._guard.guard import Guard
from kgather._server.postgres.copying import Form, messages
from kgather._server.postgres.cursors import ALL, Direction, step
from kgather._server.postgres.lexer import split
from kgather._server.postgres.result import Column
from kgather._server.postgres.translation import template
from kgather._server.postgres.types import INT8, STRING

COUNT = "select count(*) as n from people"
CITIES = "select city, inhabitants from cities order by city"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    started = start()
    yield started
    started.stop()


def code(client: RawClient, text: str) -> str:
    (error,) = errors(client.query(text))
    return error["C"]


def asked(text: str, *values: bytes | None, formats: tuple[int, ...] = ()) -> list[object]:
    return [Parse(query=text), Bind(param_values=list(values), param_formats=list(formats)), Execute(), Sync()]


# Several statements


def test_several_statements_are_answered_in_their_order(client: RawClient) -> None:
    found = client.query("SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation")
    assert kinds(found) == "CCTDCZ"
    assert rows(client.query("select version(); select ';' as a, $$;$$ as b /* ; */; ;"))[1:] == [(b";", b";")]


def test_an_error_ends_the_message_and_undoes_what_it_set(client: RawClient) -> None:
    client.query("set application_name = 'before'")
    found = client.query("set application_name = 'after'; select nothing from people; select 1")
    assert kinds(found) == "CSESZ".replace("CS", "SC")
    assert found[-1] == (b"Z", b"I")
    assert rows(client.query("show application_name")) == [(b"before",)]


def test_what_cannot_be_read_runs_nothing(client: RawClient) -> None:
    assert kinds(client.query("set application_name = 'x'; select 'a")) == "EZ"
    (error,) = errors(client.query("select 1; select 'a"))
    assert (error["C"], error["P"]) == ("42601", "18")


def test_a_transaction_goes_on_behind_the_message_that_begins_it(client: RawClient) -> None:
    assert client.query("select 1; begin; select 2")[-1] == (b"Z", b"T")
    assert client.query("nonsense; select 1")[-1] == (b"Z", b"E")
    assert code(client, "select 1") == "25P02"
    found = client.query("rollback; select 3")
    assert (kinds(found), found[-1]) == ("CTDCZ", (b"Z", b"I"))


def test_begin_and_commit_where_they_do_nothing_are_warned_of(client: RawClient) -> None:
    assert kinds(client.query("commit")) == "NCZ"
    client.query("begin")
    assert kinds(client.query("begin")) == "NCZ"
    client.query("rollback; set client_min_messages = error")
    assert kinds(client.query("commit")) == "CZ"


def test_a_message_asks_about_data_once(client: RawClient) -> None:
    asked_twice = f"{COUNT}; begin; {COUNT}"
    (error,) = errors(client.query(asked_twice))
    assert (error["C"], int(error["P"])) == ("0A000", asked_twice.rindex("select") + 1)
    assert client.query("select 1")[-1] == (b"Z", b"I"), "nothing of it was run"
    found = client.query(f"begin; select count(*) from pg_class; {COUNT}; commit")
    assert kinds(found).replace("N", "") == "CTDCTDCCZ"


def test_settings_follow_transactions(client: RawClient) -> None:
    client.query("set lock_timeout = '1s'; begin; set lock_timeout = '2s'; savepoint s; set lock_timeout = '3s'")
    client.query("rollback to s")
    assert rows(client.query("show lock_timeout")) == [(b"2s",)]
    client.query("set local lock_timeout = '4s'")
    assert rows(client.query("show lock_timeout")) == [(b"4s",)]
    client.query("commit")
    assert rows(client.query("show lock_timeout")) == [(b"2s",)]
    client.query("begin; set lock_timeout = '5s'; rollback")
    assert rows(client.query("show lock_timeout")) == [(b"2s",)]
    assert kinds(client.query("set local lock_timeout = 1")) == "NCZ"


def test_a_pipeline_is_one_transaction(client: RawClient) -> None:
    client.query("set application_name = 'before'")
    setting = [Parse(query="set application_name = 'x'"), Bind(), Execute()]
    client.ask(*setting, Parse(query="select nothing from people"), Bind(), Execute(), Sync())
    assert rows(client.query("show application_name")) == [(b"before",)]
    assert errors(client.ask(Parse(query="select 1; select 2"), Sync()))[0]["C"] == "42601"


# Settings


@pytest.mark.parametrize(
    "setting",
    [
        "intervalstyle = iso_8601",
        "jit to off",
        "work_mem = '1GB'",
        "app.user = 'x'",
        "time zone interval '+02:00' hour to minute",
        "timezone = 2",
        "timezone to 'Etc/GMT+2'",
        "timezone to 'GMT-02:00'",
        "role none",
        "session characteristics as transaction isolation level serializable",
    ],
)
def test_settings_that_change_nothing_are_taken(client: RawClient, setting: str) -> None:
    assert kinds(client.query(f"set {setting}")).strip("S") == "CZ"


@pytest.mark.parametrize("setting", ["timezone = 'Mars/X'", "timezone = '+99:00'", "datestyle = 'SQL'", "role = admin"])
def test_settings_that_would_change_something_are_refused(client: RawClient, setting: str) -> None:
    (error,) = errors(client.query(f"set {setting}"))
    assert (error["C"], "H" in error) == ("22023", True)


# Cursors


def test_a_cursor_by_hand() -> None:
    places = [
        (Direction(), 0, [0], 1),
        (Direction("FORWARD", 2), 0, [0, 1], 2),
        (Direction("FORWARD", ALL), 1, [1, 2], 4),
        (Direction("FORWARD", 1), 3, [], 4),
        (Direction("FORWARD", 0), 2, [1], 2),
        (Direction("BACKWARD", 1), 4, [2], 3),
        (Direction("BACKWARD", 2), 3, [1, 0], 1),
        (Direction("BACKWARD", ALL), 4, [2, 1, 0], 0),
        (Direction("ABSOLUTE", 2), 0, [1], 2),
        (Direction("ABSOLUTE", -1), 0, [2], 3),
        (Direction("ABSOLUTE", 9), 0, [], 4),
        (Direction("ABSOLUTE", 0), 3, [], 0),
        (Direction("RELATIVE", -1), 3, [1], 2),
        (Direction("RELATIVE", 0), 2, [1], 2),
        (Direction("RELATIVE", -9), 3, [], 0),
    ]
    for direction, at, numbers, then in places:
        made = step(direction, at, 3)
        assert ([*made.rows], made.at) == (numbers, then), (direction, at)


def test_a_cursor_is_asked_once(client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[str] = []
    answer = Guard.answer
    monkeypatch.setattr(Guard, "answer", lambda self, sql, **more: (times.append(sql), answer(self, sql, **more))[1])
    client.query("begin; declare c scroll cursor for select city, count(*) from people group by city order by city")
    for text, cities in (
        ("fetch 2 from c", [b"Ghent", b"Graz"]),
        ("fetch prior from c", [b"Ghent"]),
        ("fetch all in c", [b"Graz", b"Lyon"]),
        ("fetch c", []),
        ("fetch backward 2 from c", [b"Lyon", b"Graz"]),
        ("fetch absolute 1 from c", [b"Ghent"]),
    ):
        assert [row[0] for row in rows(client.query(text))] == cities, text
    assert client.query("move last in c")[0] == (b"C", b"MOVE 1\0")
    client.query("commit")
    assert (len(times), code(client, "fetch c")) == (1, "34000")


def test_cursors_and_the_end_of_their_transaction(client: RawClient) -> None:
    assert code(client, "declare c cursor for select 1") == "25P01"
    client.query("begin; declare c cursor with hold for select 7; commit")
    assert rows(client.query("fetch c")) == [(b"7",)]
    assert kinds(client.query("close c")) == "CZ"
    client.query("begin; declare c cursor with hold for select 7; rollback")
    assert code(client, "fetch c") == "34000"
    client.query("begin; declare c no scroll cursor for select 7; fetch c")
    assert code(client, "fetch prior from c") == "55000"
    client.query("rollback; begin; savepoint s; declare c cursor for select 7; rollback to s")
    assert code(client, "fetch c") == "34000"
    client.query("rollback")
    assert kinds(client.query("declare c cursor for select 5; fetch all in c; close c")) == "CTDCCZ"


def test_cursors_in_the_extended_protocol(client: RawClient) -> None:
    text = "declare c cursor with hold for select city from cities where inhabitants > $1 order by city"
    client.ask(*asked(text, b"262219"))
    assert columns(client.ask(Describe(kind="P", name="c"), Sync())) == [("city", 25, 0)]
    found = client.ask(Parse(query="fetch 1 from c"), Describe(kind="S"), Bind(), Execute(), Sync())
    assert (kinds(found), rows(found)) == ("1tT2DCZ", [(b"Graz",)])
    client.query("begin; declare b binary cursor for select 5::integer")
    found = client.query("fetch b")
    assert (columns(found)[0][2], rows(found)) == (1, [(struct.pack("!i", 5),)])


# COPY


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("", [b"Ghent\t262219\n", b"Graz\t291072\n", b"Lyon\t522250\n"]),
        ("with csv header", [b"city,inhabitants\n", b"Ghent,262219\n", b"Graz,291072\n", b"Lyon,522250\n"]),
        (
            "(format csv, delimiter ';', force_quote *)",
            [b'"Ghent";"262219"\n', b'"Graz";"291072"\n', b'"Lyon";"522250"\n'],
        ),
    ],
)
def test_copy_writes_an_answer(client: RawClient, options: str, lines: list[bytes]) -> None:
    found = client.query(f"copy ({CITIES}) to stdout {options}")
    assert [content for kind, content in found if kind == b"d"] == lines
    assert found[-2] == (b"C", b"COPY 3\0")


def test_copy_in_binary(client: RawClient) -> None:
    found = client.query("copy (select 7::integer, null) to stdout (format binary)")
    data = [content for kind, content in found if kind == b"d"]
    head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    assert data == [head + struct.pack("!hiii", 2, 4, 7, -1), struct.pack("!h", -1)]
    empty = client.query("copy (select 7::integer where false) to stdout binary")
    assert [content for kind, content in empty if kind == b"d"] == [head + struct.pack("!h", -1)]


def test_copy_by_hand() -> None:
    text = [Column("a", STRING), Column("b", INT8)]
    (lines,) = messages(Form(), text, [[("x\ty\\z\n", None)]])
    assert lines == [b"x\\ty\\\\z\\n\t\\N\n"]
    (lines,) = messages(Form("csv"), text, [[('say "x", y', 1), ("", None), (None, 2)]])
    assert lines == [b'"say ""x"", y",1\n', b'"",\n', b",2\n"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("copy people to stdout", "42501"),
        ("copy people (zip) to stdout", "42501"),
        ("copy (select * from people) to stdout (format binary)", "42501"),
        ("copy people from stdin", "25006"),
        ("copy (select 1) to '/tmp/x'", "0A000"),
        ("copy (select 1) to program 'x'", "0A000"),
        ("copy (select 1) to stdout (format parquet)", "22023"),
        ("copy (select 1", "42601"),
        ("copy", "42601"),
    ],
)
def test_copies_that_are_refused(client: RawClient, text: str, told: str) -> None:
    assert code(client, text) == told
    assert rows(client.query("select 1")) == [(b"1",)]


# What PostgreSQL writes in its own way


@pytest.mark.parametrize(
    ("text", "oid"),
    [
        ("select count(*) from people where film_a in ($1,$1)", 20),
        ("select count(*) from people where film_a = any($1)", 1016),
        ("select count(*) from people where score <> all($1)", 1022),
        ("select city, count(*) from people group by city limit $1::integer", 20),
        ("select city, count(*) from people group by city limit cast($1 as integer)", 20),
        ("select city, count(*) from people group by city having count(*) > $1", 20),
        ("select count(*) filter (where film_a > $1) from people", 20),
        ("select case when film_a > $1 then 1 else 0 end, count(*) from people group by 1", 20),
        ("select count(*) from people where seen = $1", 16),
    ],
)
def test_parameters_are_described(client: RawClient, text: str, oid: int) -> None:
    found = client.ask(Parse(query=text), Describe(kind="S"), Sync())
    assert kinds(found) == "1tTZ"
    assert struct.unpack("!I", found[1][1][2:6]) == (oid,)


def test_an_array_is_as_its_values(client: RawClient) -> None:
    array = struct.pack("!iiIii", 1, 0, 20, 2, 1) + b"".join(struct.pack("!iq", 8, value) for value in (2, 3))
    text = "select count(*) from people where film_a = any($1)"
    found = [
        client.ask(*asked(text, array, formats=(1,))),
        client.ask(*asked(text, b"{2,3}")),
        client.query("select count(*) from people where film_a = any('{2,3}'::int[])"),
        client.query("select count(*) from people where film_a = any(array[2,3])"),
        client.query("select count(*) from people where film_a in (2,3)"),
    ]
    assert len({tuple(rows(one)) for one in found}) == 1
    assert len(rows(found[0])) == 1
    assert errors(client.ask(*asked(text, b"{}")))[0]["C"] == "0A000"


def test_numbers_beside_whole_ones(client: RawClient) -> None:
    text = "select count(*) from people where film_a > $1"
    assert rows(client.ask(*asked(text, b"2.5"))) == rows(client.ask(*asked(text, b"2")))
    for value in (b"x", b"NaN"):
        assert errors(client.ask(*asked(text, value)))[0]["C"] == "22P02"


def test_columns_are_named_as_postgresql_names_them(client: RawClient) -> None:
    text = (
        "select count(*), avg(age), case when film_a > $1 then 'x' else 'y' end, sum(age) + 1, 1::bigint "
        "from people group by 3"
    )
    names = ["count", "avg", "case", "?column?", "int8"]
    described = client.ask(Parse(query=text), Describe(kind="S"), Sync())
    executed = client.ask(Bind(param_values=[b"3"]), Describe(kind="P"), Execute(), Sync())
    assert [name for name, _, _ in columns(described)] == names
    assert [name for name, _, _ in columns(executed)] == names
    assert len(rows(executed)) == 2
    inner = client.query('select t."count" from (select city, count(*) from people group by city) as t')
    assert [name for name, _, _ in columns(inner)] == ["count"]


def test_a_place_is_told_in_the_client_s_own_text(client: RawClient) -> None:
    text = "select count(*) from people where film_a = any($1) and nope = 1"
    (error,) = errors(client.ask(*asked(text, b"{1,2,3}")))
    assert error["P"] == str(text.index("nope") + 1)
    (error,) = errors(client.query("select 1; select nope from people"))
    assert error["P"] == "18"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("select 1 where a in ($1,$2)", "select 1 where a in ($1 ,$2 )"),
        ('select * from "kgather"."main"."people"', 'select * from "people"'),
        ("select 1 limit all", "select 1 "),
        ("select 1 offset 2 rows fetch next 3 rows only", "select 1 offset 2 LIMIT 3"),
        ('select a = any(\'{"x""",NULL}\')', None),
        (r"select E'a\b\f\n\r\t\\\q'", "select 'a\b\f\n\r\t\\q'"),
        (r"select E'\101\x41\u0041\U00000041\x4 \xz'", "select 'AAAA\4 xz'"),
        (r"select E'\303\251\xc3\xa9\ud83d\ude00'", "select 'éé😀'"),
        ("select E'a\\'b', $$c'd$$", "select 'a''b', 'c''d'"),
        ("select 'x = any($1)'", "select 'x = any($1)'"),
        (r"select U&'d\0061t\+000061''s', u&'a\\b'", r"select 'data''s', 'a\b'"),
        ("select U&'d!0061ta \\' UESCAPE '!'", "select 'data \\'"),
        (r"select U&'\d83d\de00'", "select '\N{GRINNING FACE}'"),
        (r'select U&"c\0069ty" from people', 'select "city" from people'),
        ("values (1, 'a'), (f(2, 3), (4)) order by 1", None),
        ("table people limit 0", "SELECT * FROM people limit 0"),
        ("a >= to_date('2024-05-01', 'YYYY-MM-DD')", "a >= DATE '2024-05-01'"),
        ("to_timestamp('2024-05-01', 'yyyy-mm-dd') x", "TIMESTAMP '2024-05-01' x"),
        (
            "TO_TIMESTAMP('2024-05-01 10:00:00.5', 'YYYY-MM-DD HH24:MI:SS.US')",
            "TIMESTAMP '2024-05-01 10:00:00.5'",
        ),
        ("to_timestamp('01.05.2024', 'YYYY-MM-DD')", "to_timestamp('01.05.2024', 'YYYY-MM-DD')"),
        ("to_timestamp('2024-05-01', 'YYYY-DD-MM')", "to_timestamp('2024-05-01', 'YYYY-DD-MM')"),
        ("to_timestamp('2024-05-01 10', 'YYYY-MM-DD')", "to_timestamp('2024-05-01 10', 'YYYY-MM-DD')"),
        ("to_timestamp(1714521600)", "to_timestamp(1714521600)"),
        ("to_date", "to_date"),
    ],
)
def test_translation_by_hand(text: str, read: str | None) -> None:
    made = template(text, "kgather")
    if read is not None:
        assert made.said([1] * made.count).text.replace('"main".', "") == read


def test_rows_of_values_by_hand() -> None:
    made = template("values ($1, 'a'), (f(2, 3), (4)) order by 1").said([7])
    assert made.text.split() == (
        [
            "SELECT",
            "$1",
            "AS",
            "column1,",
            "'a'",
            "AS",
            "column2",
            "UNION",
            "ALL",
            "SELECT",
            "f(2,",
            "3),",
            "(4)",
            "order",
            "by",
            "1",
        ]
    )
    assert made.place(made.text.index("f(2") + 1) == 20


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r"select U&'\00'", 8),
        (r"select U&'\'", 8),
        (r"select U&'\0000'", 8),
        (r"select U&'\d83d'", 8),
        (r"select U&'\+110000'", 8),
        ("select U&'a' UESCAPE 'f'", 14),
        ("select U&'a' UESCAPE", 14),
        ("values (1), (2, 3)", 13),
        ("values (1, 2", 12),
    ],
)
def test_escapes_and_rows_that_are_none(client: RawClient, text: str, place: int) -> None:
    (error,) = errors(client.query(text))
    assert (error["C"], error["P"]) == ("42601", str(place))


def test_values_and_tables(client: RawClient) -> None:
    found = client.query("values (1, 'b'), (2, 'a') order by column2")
    assert [name for name, _, _ in columns(found)] == ["column1", "column2"]
    assert rows(found) == [(b"2", b"a"), (b"1", b"b")]
    assert rows(client.ask(*asked("values ($1::int)", b"3"))) == [(b"3",)]
    assert len(rows(client.query("table cities"))) == 3
    assert code(client, "table people") == "42501"
    assert rows(client.query(r"select U&'d\0061ta' as a, current_catalog")) == [(b"data", b"kgather")]


@pytest.mark.parametrize(
    ("call", "name", "oid", "value"),
    [
        ("json_agg(c order by city)", "json_agg", 114, b'[{"city":"Ghent"},{"city":"Graz"},{"city":"Lyon"}]'),
        ("json_build_object('n', count(*))", "json_build_object", 114, b'{"n":3}'),
        ("array_to_json(array_agg(city order by city))", "array_to_json", 114, b'["Ghent","Graz","Lyon"]'),
        ("array_agg(city order by city)", "array_agg", 1009, b"{Ghent,Graz,Lyon}"),
    ],
)
def test_answers_as_one_value(client: RawClient, call: str, name: str, oid: int, value: bytes) -> None:
    """The same name and type at Describe and at Execute, over the answer to a question about people."""
    text = f"select {call} from (select city from people group by city) as c"
    found = client.query(text)
    assert [(label, of) for label, of, _ in columns(found)] == [(name, oid)]
    assert rows(found) == [(value,)]
    described = client.ask(Parse(query=text), Describe(kind="S"), Sync())
    assert [(label, of) for label, of, _ in columns(described)] == [(name, oid)]


@pytest.mark.parametrize(
    ("text", "found", "told"),
    [
        ("select pg_try_advisory_lock(1)", "0A000", "Leave the call out"),
        ("select pg_advisory_unlock_shared(1, 2)", "0A000", "Leave the call out"),
        ("select pg_advisory_xact_lock($1)", "0A000", "Leave the call out"),
        ("select database()", "42883", "current_database()"),
    ],
)
def test_calls_of_others_say_what_to_write(client: RawClient, text: str, found: str, told: str) -> None:
    (error,) = errors(client.query(text))
    assert (error["C"], error["P"]) == (found, "8")
    assert told in error["H"]


def test_statements_are_cut_by_hand() -> None:
    assert [piece.text for piece in split("a ';' ; b $x$;$x$ ;; -- ;\n c /* ; /* ; */ */ \"d;\"")] == [
        "a ';'",
        "b $x$;$x$",
        'c /* ; /* ; */ */ "d;"',
    ]


# Columns only


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "select * from cities limit 0",
            ["city", "inhabitants", "area", "founded", "capital", "updated"],
        ),
        (
            "select * from people limit 0",
            ["person_id", "film_a", "film_b", "score", "seen", "salary", "age", "city", "born"],
        ),
        ('select true as "_" from main.people where 1 <> 1 limit 0', ["_"]),
        (
            "select * from (select * from people) t limit 0",
            ["person_id", "film_a", "film_b", "score", "seen", "salary", "age", "city", "born"],
        ),
        ("select t.age, city from (select * from (select city, age from people) as u) as t where 1=0", ["age", "city"]),
        ("select * from (select born as b, age from people where 1 = 0) as t", ["b", "age"]),
        ("select * from (select city, count(*) from people group by city) as q where false limit 0", ["city", "count"]),
    ],
)
def test_columns_are_told_without_asking(
    client: RawClient, monkeypatch: pytest.MonkeyPatch, text: str, names: list[str]
) -> None:
    monkeypatch.delattr(Guard, "answer")
    found = client.query(text)
    assert (kinds(found), [name for name, _, _ in columns(found)]) == ("TCZ", names)


def test_a_sample_of_people_has_no_rows_and_says_so(client: RawClient) -> None:
    assert kinds(client.query("select * from people limit 1")) == "NTCZ"
    assert kinds(client.query("table people limit 1")) == "NTCZ"
    assert kinds(client.query("select * from (select * from (select * from people) t) u limit 1")) == "NTCZ"
    assert code(client, "select * from (select * from people where age > 3) t limit 1") == "42501"
    assert code(client, "select * from (select * from people) t(a) limit 0") == "0A000"
    assert code(client, "select zip from (select * from people) t limit 0") == "42501"
    assert rows(client.query("select count(*) from (select * from cities where 1 = 0) t")) == [(b"0",)]
    assert code(client, "select * from people limit 2") == "42501"
    assert code(client, "select zip from people limit 0") == "42501"
    assert len(rows(client.query("select * from cities limit 1"))) == 1
    assert guard().catalog.table("people") is not None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("select city, count(*) from people group by city order by count, city", 1),
        ('select city, count(*) from people group by city order by "count" desc, city', 1),
        ("select city, avg(age) from people group by city order by avg", 1),
        (
            "select case when film_a > 3 then 'high' else 'low' end, count(*) from people group by 1 order by \"case\"",
            0,
        ),
        ("select upper(city), inhabitants from cities order by upper", 0),
        ("select *, lower(city) from cities order by lower", 6),
        (
            "select city, count(*) from people group by 1 union all select 'all', count(*) from people order by count",
            1,
        ),
    ],
)
def test_order_by_the_name_of_a_column_without_alias(client: RawClient, text: str, key: int) -> None:
    """A column can be ordered by the name that PostgreSQL gives to it."""
    found = client.query(text)
    values = [row[key] for row in rows(found)]
    assert len(values) > 1, found
    numbers = [float(one) for one in values] if key == 1 else values
    assert numbers == sorted(numbers, reverse="desc" in text)


@pytest.mark.parametrize(
    "text",
    [
        "select city, count(*), count(film_a) from people group by city order by count",
        "select city, count(*) from people group by city order by count + 1",
        "select city, count(*) from people group by city order by people.count",
        "select city, count(*) from people group by city having count > 1",
    ],
)
def test_such_a_name_stands_for_one_column_and_alone(client: RawClient, text: str) -> None:
    assert errors(client.query(text))[0]["C"] == "42703"


def test_an_alias_and_a_column_of_the_table_come_first(client: RawClient) -> None:
    found = rows(client.query("select city as count, count(*) from people group by city order by count"))
    assert [row[0] for row in found] == [b"Ghent", b"Graz", b"Lyon"]
    found = rows(client.query("select inhabitants, city::text, inhabitants::text from cities order by inhabitants"))
    assert [row[0] for row in found] == [b"262219", b"291072", b"522250"]


# What a statement may say without an end of the connection


@pytest.mark.parametrize(
    "text",
    [
        "select $1",
        "select count(*) from people where city = $1",
        "select count(*) from people where city = any($1)",
        "declare c cursor with hold for select $1",
        "copy (select $1) to stdout",
        "select oid from pg_class where relname = $1",
        "select $0",
    ],
)
def test_a_parameter_without_a_value(client: RawClient, text: str) -> None:
    found = client.query(text)
    (error,) = errors(found)
    assert (error["C"], int(error["P"])) == ("42P02", text.index("$") + 1)
    assert found[-1] == (b"Z", b"I")
    assert rows(client.query("select 1")) == [(b"1",)]


def test_a_parameter_in_what_cannot_be_read(client: RawClient) -> None:
    (error,) = errors(client.ask(*asked("select from where $1 $2", b"1", b"2")))
    assert error["C"] == "42601"
    (error,) = errors(client.ask(Parse(query="select from where $1"), Describe(kind="S"), Sync()))
    assert error["C"] == "42601"


FAR = [
    ("date '10000-01-01'", b"10000-01-01", 2932897 - 10957),
    ("date 'infinity'", b"infinity", 2**31 - 1),
    ("date '-infinity'", b"-infinity", -(2**31)),
    ("make_date(20000, 1, 1)", b"20000-01-01", 45 * 146_097),
    ("timestamp 'infinity'", b"infinity", 2**63 - 1),
    ("timestamp '-infinity'", b"-infinity", -(2**63)),
    ("timestamp '20000-02-29 01:02:03.5'", b"20000-02-29 01:02:03.5", None),
    ("[date 'infinity', date '2000-01-01', null]", b"{infinity,2000-01-01,NULL}", None),
]


@pytest.mark.parametrize(("text", "written", "number"), FAR)
def test_moments_beyond_those_of_python(client: RawClient, text: str, written: bytes, number: int | None) -> None:
    assert rows(client.query(f"select {text} as a")) == [(written,)]
    assert (b"d", written + b"\n") in client.query(f"copy (select {text} as a) to stdout")
    ((raw,),) = rows(client.ask(Parse(query=f"select {text} as a"), Bind(result_formats=[1]), Execute(), Sync()))
    assert raw is not None
    if number is not None:
        assert int.from_bytes(raw, "big", signed=True) == number


def test_an_error_that_nobody_foresaw(client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise IndexError(USER)

    with monkeypatch.context() as patch:
        patch.setattr("kgather._server.postgres.session.row_description", fail)
        found = client.query("select 1")
    (error,) = errors(found)
    assert (error["C"], USER in error["M"], found[-1]) == ("XX000", False, (b"Z", b"I"))
    assert rows(client.query("select 1")) == [(b"1",)]


@pytest.mark.parametrize("text", [r"E'a\0'", r"E'\xe9'", r"E'\ud83d'", r"E'\u12'", r"E'\U00110000'"])
def test_an_escape_that_stands_for_no_character(client: RawClient, text: str) -> None:
    (error,) = errors(client.query(f"select 1; select {text}"))
    assert (error["C"], error["P"]) == ("42601", "18")


def test_copy_with_an_escaped_delimiter(client: RawClient) -> None:
    assert (b"d", b"x\ty\n") in client.query(
        r"copy (select 'x' as a, 'y' as b) to stdout (delimiter E'\t', format csv)"
    )


@pytest.mark.parametrize(
    "text",
    ["set session authorization default", "set local session authorization default", "reset session authorization"],
)
def test_there_is_nobody_else_to_be(client: RawClient, text: str) -> None:
    assert kinds(client.query(text)).strip("NS") == "CZ"
    assert client.parameters["session_authorization"] == USER
    for show in ("show session_authorization", "show session authorization"):
        assert rows(client.query(show)) == [(USER.encode(),)]
    assert code(client, "set session authorization bob") == "22023"


def test_what_is_shown_and_cannot_be_set(client: RawClient, running: Running) -> None:
    shown = {"ssl": b"off", "port": str(running.port).encode(), "block_size": b"8192", "hot_standby": b"off"}
    for name, value in shown.items():
        assert rows(client.query(f"show {name}")) == [(value,)]
        assert code(client, f"set {name} = 1") == "22023"
    for name in ("enable_memoize", "track_io_timing", "log_duration"):
        assert kinds(client.query(f"set {name} = off")) == "CZ"


def test_behind_a_commit_the_next_transaction_begins(client: RawClient) -> None:
    client.query("set application_name = 'q1'; commit; set application_name = 'q2'; select nothing from people")
    assert rows(client.query("show application_name")) == [(b"q1",)]
    client.query("commit; set local application_name = 'leak'")
    assert rows(client.query("show application_name")) == [(b"q1",)]


def test_a_setting_for_the_transaction_by_a_function(client: RawClient) -> None:
    client.query("set application_name = 'before'; begin")
    client.query("select set_config('application_name', 'inside', true)")
    assert rows(client.query("show application_name")) == [(b"inside",)]
    client.query("commit")
    assert rows(client.query("show application_name")) == [(b"before",)]
    client.query("select set_config('application_name', 'alone', true)")
    assert rows(client.query("show application_name")) == [(b"before",)]
    client.ask(*asked("select set_config($1, $2, $3)", b"application_name", b"kept", b"false"))
    assert rows(client.query("show application_name")) == [(b"kept",)]


def test_cursors_outlive_their_statements(client: RawClient) -> None:
    client.query(f"begin; declare c cursor for {CITIES}")
    assert kinds(client.query("deallocate all; fetch c")) == "CTDCZ"
    assert kinds(client.query("commit; declare h cursor with hold for select 1")) == "CCZ"
    client.query("discard all")
    assert code(client, "fetch h") == "34000"


@pytest.mark.parametrize("text", ["'a' || chr(0)", "['a' || chr(0)]", "{'a': 'b' || chr(0)}"])
@pytest.mark.parametrize("form", [0, 1])
def test_a_text_with_a_zero_byte(client: RawClient, text: str, form: int) -> None:
    found = client.ask(Parse(query=f"select {text} as a"), Bind(result_formats=[form]), Execute(), Sync())
    assert [error["C"] for error in errors(found)] == ["22021"]
    assert rows(client.query("select 1")) == [(b"1",)]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[interval 1 day]", b'{"1 day"}'),
        ("[time '01:02']", b"{01:02:00}"),
        ("{'a': interval 1 day, 'b': 1.5::double}", b'{"a": "1 day", "b": 1.5}'),
        ("{'a': date 'infinity'}", b'{"a": "infinity"}'),
        ("map {'x': time '01:02'}", b'{"x": "01:02:00"}'),
        ("[[1, 2], [3]]", b"[[1, 2], [3]]"),
        ("[{'a': 1}]", b'{"{\\"a\\": 1}"}'),
    ],
)
def test_values_within_others(client: RawClient, text: str, written: bytes) -> None:
    assert rows(client.query(f"select {text} as a")) == [(written,)]


@pytest.mark.parametrize(
    ("text", "types", "values", "told", "found"),
    [
        ("select $1", (), ("5",), ("?column?", 25), b"5"),
        ("select $1", (20,), ("5",), ("?column?", 20), b"5"),
        ("select $1", (20,), ("5000000000",), ("?column?", 20), b"5000000000"),
        ("select $1 as n", (1700,), ("5",), ("n", 1700), b"5"),
        ("select $1", (701,), ("1.5",), ("?column?", 701), b"1.5"),
        ("select $1", (1082,), (None,), ("?column?", 1082), None),
        ("select $1 + 1", (20,), ("2",), ("?column?", 20), b"3"),
        ("select $1 + 1", (20,), ("5000000000",), ("?column?", 20), b"5000000001"),
        ("select count(*) * $1 from cities", (), ("1.5",), ("?column?", 1700), b"4.5"),
        ("select count(*) * $1 from cities", (), ("2",), ("?column?", 1700), b"6"),
        ("select count(*) * $1 from cities", (23,), ("2",), ("?column?", 20), b"6"),
        ("select format_type($1,$2)", (), ("23", "-1"), ("format_type", 25), b"integer"),
        ("select $1, current_user", (), ("5",), ("?column?", 25), b"5"),
        ("select date_trunc($1, timestamp '2020-05-06') from pg_am", (), ("year",), None, b"2020-01-01 00:00:00"),
    ],
)
def test_a_result_has_the_types_that_were_described(
    client: RawClient,
    text: str,
    types: tuple[int, ...],
    values: tuple[str | None, ...],
    told: tuple[str, int] | None,
    found: bytes | None,
) -> None:
    raw = [None if value is None else value.encode() for value in values]
    prepared = client.ask(Parse(query=text, param_types=list(types)), Describe(kind="S", name=""), Sync())
    bound = [Bind(param_values=raw), Describe(kind="P", name=""), Execute(), Sync()]
    answered = client.ask(*bound)
    assert not errors(prepared) + errors(answered)
    assert columns(prepared) == columns(answered)
    assert told is None or columns(answered)[0][:2] == told
    assert rows(answered)[0][0] == found


def test_a_message_says_where_in_the_whole_text_an_error_is(client: RawClient) -> None:
    text = "select 1;\nselect city,\n  no_such from cities"
    (error,) = errors(client.query(text))
    assert error["C"] == "42703"
    assert int(error["P"]) == text.index("no_such") + 1
    assert "(line 3, column 3)" in error["M"]
    (error,) = errors(client.query("select 1; select city from cities where"))
    assert error["C"] == "42601"
    assert int(error["P"]) == len("select 1; select city from cities where ") - len("where")


def test_columns_of_answers_are_named_as_postgresql_names_them(client: RawClient) -> None:
    parts = {
        "count(*)": "count",
        "current_date": "current_date",
        "mod(count(*), 7)": "mod",
        "count(*) % 7": "?column?",
        "power(count(*), 2)": "power",
        "true": "?column?",
        "case when count(*) > 1 then 1 end": "case",
        "coalesce(max(city), 'x')": "coalesce",
        "position('a' in max(city))": "position",
        "ltrim(max(city))": "ltrim",
        "trim(max(city))": "btrim",
        "date_part('year', max(founded))": "date_part",
        "extract(year from max(founded))": "extract",
        "to_char(max(founded), 'YYYY')": "to_char",
        "json_agg(city)": "json_agg",
        "max(city)::text": "max",
        "(array_agg(city))[1]": "array_agg",
    }
    text = f"select {', '.join(parts)} from cities"
    prepared = client.ask(Parse(query=text), Describe(kind="S", name=""), Sync())
    answered = client.query(text)
    assert not errors(prepared) + errors(answered)
    assert [name for name, *_ in columns(prepared)] == [name for name, *_ in columns(answered)] == list(parts.values())
