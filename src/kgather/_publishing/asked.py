"""What the command line and the Python API share: the settings of a publication from what was given by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing.early import LOADED_ITEMS
from kgather._publishing.publish import LOADED_ATTRIBUTES, AttributesSource
from kgather._settings.publication import PublishSettings

NO_COARSER_K = "--k is missing: users in the smallest group, more than in the finer release."


def asked_settings(
    options: Mapping[str, Any],
    load_options: LoadOptions,
    user_attributes: AttributesSource | None,
    assignments: Sequence[str] = (),
) -> PublishSettings:
    """The settings from options by name (None: not given) and `VAR=VALUE` assignments.

    Users' attributes and the catalogue are read into tables of our own, the first whether they are a file or come with
    a wide table.
    Raises InputError naming what is wrong and what it may be, and where a setting is given both ways.
    """
    for assignment in assignments:
        name = assignment.partition("=")[0]
        if options.get(name) is not None:
            msg = f"{name} is given by an option and by --set, and only one of them can hold. Leave one out."
            raise InputError(msg)
    known = user_attributes is not None or load_options.artifact_columns is not None
    return PublishSettings.from_options(
        {
            **options,
            "user_attributes": LOADED_ATTRIBUTES if known else None,
            "items": None if load_options.items is None else LOADED_ITEMS,
        },
        list(assignments),
    )
