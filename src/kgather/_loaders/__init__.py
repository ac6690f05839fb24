"""Reading ratings from files into DuckDB, with a reason for every row that cannot be used."""

from kgather._loaders.load import load
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import InputReport, LoadReport, UserAttributesReport
from kgather._loaders.user_attributes import load_user_attributes

__all__ = ["InputReport", "LoadOptions", "LoadReport", "UserAttributesReport", "load", "load_user_attributes"]
