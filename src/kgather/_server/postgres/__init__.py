"""PostgreSQL's protocol, version 3, over a guard. See docs/server.md."""

from kgather._server.postgres.server import PostgresServer

__all__ = ["PostgresServer"]
