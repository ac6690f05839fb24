"""How the personal attributes beside ratings are generalized: as the quasi-identifiers of a table of people."""

from kgather._settings.publication import PublishSettings
from kgather._settings.table import TableSettings, table_settings

PERSON, USER = "kgather_person", "kgather_user"
"""The columns that name people in that table: one that groups are looked up by, and one that is carried along."""


def recoding(settings: PublishSettings, k: int, *, within: str | None) -> TableSettings:
    """How the personal columns of a publication are generalized.

    k: people in the smallest class. within: a relation of groups that are shown alike.
    Raises InputError where a column is asked to be what none can be.
    """
    said = settings.personal_recoding
    known = {name.lower(): how for name, how in said.items()}
    return table_settings(
        {
            "k": k,
            "quasi_identifiers": {name: known.pop(name.lower(), {}) for name in settings.personal_columns} | known,
            "others": [USER],
            "unit": PERSON,
            "within": within,
        }
    )
