"""What settings of tables say of a value that they do not take: one sentence, whatever its types are."""

from typing import Any

import pytest

from kgather._errors import InputError
from kgather._settings.table import table_settings


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"step": 0}, "step is a number above 0 or, of a date or time, minute, hour, day, week"),
        ({"step": "abc"}, 'quarter, year or decade, not "abc".'),
        ({"step": float("nan")}, "step is a number above 0"),
        ({"step": [5]}, "step is a number above 0"),
        ({"hierarchy": 5}, "hierarchy is a file, a list of lines of labels, or a nested mapping of labels"),
        ({"hierarchy": [["a", 1]]}, "hierarchy is a file"),
    ],
)
def test_a_value_that_fits_none_of_several_types_is_wrong_once(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        table_settings({"k": 2, "quasi_identifiers": {"age": asked}})
    assert told in str(error.value)
    assert "Input should be" not in str(error.value)
    assert len(str(error.value).splitlines()) == 1
