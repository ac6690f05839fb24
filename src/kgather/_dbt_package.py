"""Where the dbt package lies: beside this module, in a wheel and in an editable install alike."""

from pathlib import Path


def dbt_path() -> Path:
    """Return the folder to name in a packages.yml as `local:`."""
    return Path(__file__).parent / "dbt"
