"""The dbt-duckdb plugin: `plugins: [{module: kgather.plugin}]` in a profile makes kgather's functions known to SQL."""

import duckdb
from dbt.adapters.duckdb.plugins import BasePlugin

from kgather._sql_functions import load


class Plugin(BasePlugin):
    """Registers kgather's macros and functions once for each database that dbt opens."""

    def configure_connection(self, conn: duckdb.DuckDBPyConnection) -> None:
        load(conn)
