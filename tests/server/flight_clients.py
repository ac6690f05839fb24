"""Clients of Arrow Flight SQL: ADBC as analysts use it, and messages by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pyarrow.flight as flight
from server_process import PASSWORDS

from kgather._server.flight import wire


@contextmanager
def connected(port: int, name: str = "analyst", password: str | None = None, **options: str) -> Iterator[Any]:
    """A connection of ADBC."""
    given = {"username": name, "password": PASSWORDS[name] if password is None else password, **options}
    uri = given.pop("uri", f"grpc://127.0.0.1:{port}")
    with adbc.connect(uri, db_kwargs=given, autocommit=True) as connection:
        yield connection


def ask(port: int, sql: str, name: str = "analyst") -> pa.Table:
    """The answer to one statement."""
    with connected(port, name) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


class Raw:
    """A client that says what it is told to."""

    def __init__(self, port: int, name: str | None = "analyst") -> None:
        self.client = flight.connect(f"grpc://127.0.0.1:{port}")
        self.options = flight.FlightCallOptions()
        if name is not None:
            header, token = self.client.authenticate_basic_token(name, PASSWORDS[name])
            self.token = token
            self.options = flight.FlightCallOptions(headers=[(header, token)])

    def info(self, command: bytes) -> Any:
        return self.client.get_flight_info(flight.FlightDescriptor.for_command(command), self.options)

    def statement(self, sql: str) -> Any:
        return self.info(wire.packed("CommandStatementQuery", {1: sql.encode()}))

    def get(self, ticket: Any) -> pa.Table:
        return self.client.do_get(ticket, self.options).read_all()

    def act(self, kind: str, body: bytes) -> list[Any]:
        return list(self.client.do_action(flight.Action(kind, body), self.options))
