"""Pages for people: what a release promises, costs and gives away, each page one file that needs nothing else."""

from kgather._report.page import render
from kgather._report.sweep_page import render_sweep
from kgather._report.table_page import render_table
from kgather._report.table_sweep_page import render_table_sweep

__all__ = ["render", "render_sweep", "render_table", "render_table_sweep"]
