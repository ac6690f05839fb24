"""The guard as a database of PEP 249."""

import threading
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from guard_files import AMPLE, spend, truth, write_files
from numpy.typing import NDArray

from kgather._guard.guard import Guard
from kgather._guard.policy import load_policy
from kgather._guard.refused import TOO_FEW_MESSAGE
from kgather.guard import dbapi
from kgather.guard.dbapi import Connection, connect

PANDAS = (dbapi.TooFew, pd.errors.DatabaseError)
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(salary) AS mean FROM ratings_wide GROUP BY city ORDER BY city"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("dbapi"), mode="measured", budget=AMPLE)


@pytest.fixture(scope="module")
def connection(policy: Path) -> Connection:
    return connect(policy, "analyst")


def test_the_module_has_what_the_standard_asks_for() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    parents = {
        "Warning": Exception,
        "Error": Exception,
        "InterfaceError": dbapi.Error,
        "DatabaseError": dbapi.Error,
        "DataError": dbapi.DatabaseError,
        "OperationalError": dbapi.DatabaseError,
        "IntegrityError": dbapi.DatabaseError,
        "InternalError": dbapi.DatabaseError,
        "ProgrammingError": dbapi.DatabaseError,
        "NotSupportedError": dbapi.DatabaseError,
    }
    for name, parent in parents.items():
        assert issubclass(getattr(dbapi, name), parent)
        assert getattr(Connection, name) is getattr(dbapi, name)
    assert issubclass(dbapi.TooFew, dbapi.DatabaseError)


def test_rows_and_description(connection: Connection, policy: Path) -> None:
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.rowcount == -1
    assert cursor.execute(BY_CITY) is cursor
    names = [column[0] for column in cursor.description or []]
    types = [column[1] for column in cursor.description or []]
    assert names == ["city", "n", "mean"]
    assert types == [dbapi.STRING, dbapi.NUMBER, dbapi.NUMBER]
    assert types == ["VARCHAR", "BIGINT", "DOUBLE"]
    assert types[0] != dbapi.NUMBER
    assert all(len(column) == 7 for column in cursor.description or [])
    rows = cursor.fetchall()
    assert cursor.rowcount == len(rows) >= 3
    cities = {name for name, number in truth(policy.parent, "select city, count(*) from ratings_wide group by 1")}
    assert {row[0] for row in rows} <= cities
    assert rows == [tuple(row.values()) for row in Guard.from_policy(policy).query(BY_CITY).to_pylist()]
    assert {row[:2] for row in rows} == set(truth(policy.parent, f"select city, n from ({BY_CITY}) where n > 1"))


def test_rows_come_one_by_one(connection: Connection) -> None:
    rows = connection.execute(BY_CITY).fetchall()
    cursor = connection.execute(BY_CITY)
    assert cursor.fetchone() == rows[0]
    assert cursor.fetchmany() == rows[1:2]
    assert cursor.fetchmany(10) == rows[2:]
    assert cursor.fetchmany(10) == []
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []
    assert list(connection.execute(BY_CITY)) == rows
    cursor = connection.execute(BY_CITY)
    cursor.arraysize = 2
    assert cursor.fetchmany() == rows[:2]
    assert cursor.fetchmany(0) == []
    assert cursor.fetchone() == rows[2]
    assert cursor.fetch_arrow_table().num_rows == len(rows)


def test_dates_have_their_type(connection: Connection) -> None:
    cursor = connection.execute("SELECT DATE_TRUNC('month', rated_at) AS m, COUNT(*) FROM ratings GROUP BY 1")
    assert cursor.description is not None
    assert cursor.description[0][1] == dbapi.DATETIME
    assert isinstance(cursor.fetchall()[0][0], datetime)


TYPES = {
    "boolean": (pa.bool_(), dbapi.NUMBER),
    "decimal": (pa.decimal128(10, 2), dbapi.NUMBER),
    "date": (pa.date32(), dbapi.DATETIME),
    "binary": (pa.binary(), dbapi.BINARY),
    "text": (pa.large_string(), dbapi.STRING),
    "null": (pa.null(), dbapi.STRING),
}


@pytest.mark.parametrize("name", TYPES)
def test_types(name: str) -> None:
    kind, is_it = TYPES[name]
    kinds = [dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID]
    assert [of for of in kinds if of == dbapi._type(kind)] == [is_it]


def test_parameters(connection: Connection) -> None:
    ask = "SELECT COUNT(*) FROM ratings_wide WHERE warcross >= {}"
    expected = connection.execute(ask.format(3)).fetchall()
    assert connection.execute(ask.format("?"), [3]).fetchall() == expected
    assert connection.execute(ask.format("?"), (3,)).fetchall() == expected
    assert connection.execute(ask.format("$least"), {"least": 3}).fetchall() == expected
    for wrong in ("3", 3, None, {3}):
        with pytest.raises(dbapi.ProgrammingError, match="Parameters are a sequence"):
            connection.execute(ask.format("?"), wrong)  # type: ignore[arg-type]
    with pytest.raises(dbapi.ProgrammingError) as told:
        connection.execute(ask.format("?"), [])
    assert told.value.code == "07001"


def test_a_text_that_is_refused(connection: Connection) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="rows of people") as told:
        connection.execute("SELECT salary FROM ratings_wide")
    assert told.value.code
    assert told.value.__suppress_context__


def test_too_few(connection: Connection) -> None:
    with pytest.raises(dbapi.TooFew, match=TOO_FEW_MESSAGE) as told:
        connection.execute("SELECT COUNT(*) FROM ratings_wide WHERE warcross = 99")
    assert told.value.code == "KG001"
    assert not isinstance(told.value, dbapi.ProgrammingError)


def test_too_much(tmp_path: Path) -> None:
    hasty = connect(write_files(tmp_path, limits={"time_ms": 1}))
    many = ", ".join(f"(SELECT item_id FROM items) AS t{at}" for at in range(12))
    with pytest.raises(dbapi.OperationalError, match="more time or memory"):
        hasty.execute(f"SELECT SUM(t1.item_id + t2.item_id) FROM {many}")


def test_a_measurement_is_finished_however_long_it_takes(tmp_path: Path) -> None:
    """The limit is for what stands above it, which depends on no row of people."""

    def slow(count: int, _: float) -> NDArray[np.int64]:
        time.sleep(0.4)
        return np.zeros(count, dtype=np.int64)

    path = write_files(tmp_path, mode="measured", budget=AMPLE, limits={"time_ms": 300})
    connection = connect(Guard(load_policy(path), tmp_path, noise=slow))
    assert len(connection.execute("SELECT gender, COUNT(*) FROM users GROUP BY gender").fetchall()) == 2


def test_a_budget_that_is_spent(tmp_path: Path) -> None:
    policy = write_files(tmp_path, mode="measured", budget=AMPLE)
    spend(policy, BY_CITY)
    connection = connect(policy)
    with pytest.raises(dbapi.BudgetSpent, match="The budget of the ledger is spent") as told:
        connection.execute("SELECT gender, COUNT(*) FROM users GROUP BY gender")
    assert told.value.code == "KG002"
    assert isinstance(told.value, dbapi.OperationalError)
    assert len(connection.execute(BY_CITY).fetchall()) >= 3, "what was measured is answered"


def test_a_cursor_says_how_an_answer_came_about(connection: Connection) -> None:
    cursor = connection.execute(BY_CITY)
    ((kind, said),) = cursor.messages
    assert kind is dbapi.Warning is type(said)
    assert str(said).startswith("The numbers are measured; the largest standard error is ")
    assert len(cursor.fetchall()) == cursor.rowcount
    assert len(cursor.messages) == 1, "fetching leaves them"
    assert cursor.execute("SELECT COUNT(*) FROM items").messages == []
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute(BY_CITY).execute("SELECT salary FROM ratings_wide")
    assert cursor.messages == []


def test_after_a_refusal_there_is_no_result(connection: Connection) -> None:
    cursor = connection.execute(BY_CITY)
    with pytest.raises(dbapi.TooFew):
        cursor.execute("SELECT COUNT(*) FROM ratings_wide WHERE warcross = 99")
    assert cursor.description is None
    with pytest.raises(dbapi.ProgrammingError, match="no result"):
        cursor.fetchall()


def test_a_policy_that_is_wrong(tmp_path: Path, policy: Path) -> None:
    with pytest.raises(dbapi.OperationalError, match="cannot be read"):
        connect(tmp_path / "none.yml")
    with pytest.raises(dbapi.OperationalError, match="names no principal 'nobody'"):
        connect(policy, "nobody")
    (tmp_path / "policy.yml").write_text("version: 2\n")
    with pytest.raises(dbapi.OperationalError, match="version"):
        connect(tmp_path / "policy.yml")


def test_a_database_that_is_gone(tmp_path: Path) -> None:
    connection = connect(write_files(tmp_path))
    (tmp_path / "fixture.duckdb").unlink()
    with pytest.raises(dbapi.OperationalError, match="cannot be read"):
        connection.execute("SELECT COUNT(*) FROM ratings_wide")


def test_what_does_not_go_with_reading(connection: Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.NotSupportedError, match="executemany is for writing"):
        cursor.executemany("SELECT COUNT(*) FROM ratings_wide WHERE warcross = ?", [[1], [2]])
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("DELETE FROM ratings_wide")
    connection.commit()
    connection.rollback()
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)


def test_what_is_closed_is_closed(policy: Path) -> None:
    guard = Guard.from_policy(policy)
    with connect(guard, "analyst") as connection:
        with connection.cursor() as cursor:
            cursor.execute(BY_CITY)
        for use in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute(BY_CITY), lambda: list(cursor)):
            with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
                use()
        cursor.close()
        left = connection.execute(BY_CITY)
    for use in (connection.cursor, connection.commit, connection.rollback, left.fetchall):
        with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
            use()
    connection.close()
    assert connect(guard).execute("SELECT COUNT(*) FROM items").fetchall() != []


def test_a_statement_without_rows(connection: Connection) -> None:
    """What clients say when they connect has no columns."""
    cursor = connection.execute("SET client_encoding = utf8")
    assert cursor.description is None
    assert cursor.rowcount == -1
    assert cursor.fetchall() == []


def test_pandas_reads(connection: Connection) -> None:
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql(BY_CITY, connection)
    assert list(frame.columns) == ["city", "n", "mean"]
    assert frame["n"].tolist() == [row[1] for row in connection.execute(BY_CITY).fetchall()]
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql("SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= ?", connection, params=[3])
    assert len(frame) == 1
    with pytest.warns(UserWarning, match="SQLAlchemy"), pytest.raises(PANDAS, match=TOO_FEW_MESSAGE):
        pd.read_sql("SELECT COUNT(*) FROM ratings_wide WHERE warcross = 99", connection)


def test_threads_have_a_connection_in_common(connection: Connection) -> None:
    asked = [f"SELECT COUNT(*) FROM ratings_wide WHERE warcross >= {value}" for value in (1, 2, 3, 4)]
    expected = [connection.execute(sql).fetchall() for sql in asked]
    found: list[object] = [None] * 8

    def work(number: int) -> None:
        found[number] = [connection.execute(sql).fetchall() for sql in asked]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8
