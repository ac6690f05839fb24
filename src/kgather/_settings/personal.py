"""How the personal attributes beside ratings are generalized: as the quasi-identifiers of a table of people."""

from collections.abc import Sequence

from kgather._settings.publication import PublishSettings
from kgather._settings.table import TableSettings, table_settings

PERSON, USER = "kgather_person", "kgather_user"
"""The columns that name people in that table: one that groups are looked up by, and one that is carried along."""


def recoding(
    settings: PublishSettings, k: int, *, within: str | None, columns: Sequence[str] | None = None
) -> TableSettings:
    """How the personal columns of a publication are generalized.

    k: people in the smallest class. within: a relation of groups that are shown alike. columns: some of the personal
    columns; None: all. Raises InputError where a column is asked to be what none can be.
    """
    said = settings.personal_recoding
    known = {name.lower(): how for name, how in said.items()}
    if columns is not None:
        recoding(settings, k, within=within)  # what is said of no column at all
        known = {name.lower(): known[name.lower()] for name in columns if name.lower() in known}
    chosen = settings.personal_columns if columns is None else columns
    return table_settings(
        {
            "k": k,
            "quasi_identifiers": {name: known.pop(name.lower(), {}) for name in chosen} | known,
            "others": [USER],
            "unit": PERSON,
            "within": within,
        }
    )
