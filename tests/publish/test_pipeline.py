"""How dbt is run: what it is told, and what becomes of what it says."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from kgather._errors import InputError, KgatherError, PromiseError
from kgather._publishing import pipeline


def test_spill_folder_is_set_once(tmp_path: Path) -> None:
    # As `settings` the adapter would set it again for every model, which fails once something was spilled.
    workspace = pipeline.Workspace(tmp_path, "1GB")
    workspace.write_profile()
    [output] = yaml.safe_load((tmp_path / "profiles.yml").read_text())["kgather"]["outputs"].values()
    assert output["config_options"]["temp_directory"] == str(tmp_path / "spill")
    assert "settings" not in output


def outcome(*results: tuple[str, str, str]) -> SimpleNamespace:
    """What dbt returns, for nodes of (name, status, message); tests have names that begin with test."""
    return SimpleNamespace(
        exception=None,
        result=SimpleNamespace(
            results=[
                SimpleNamespace(
                    status=status,
                    message=message,
                    node=SimpleNamespace(name=name, resource_type="test" if name.startswith("test") else "model"),
                )
                for name, status, message in results
            ]
        ),
    )


@pytest.mark.parametrize(
    ("results", "kind", "told"),
    [
        (
            [("m", "error", "Runtime Error\n  Invalid Input Error: kgather refuses the input: it is empty.")],
            InputError,
            "it is empty.",
        ),
        (
            [("m", "error", "Python model failed:\n  kgather._errors.InputError: 3 users are too few")],
            InputError,
            "3 users are too few",
        ),
        ([("m", "success", ""), ("test_it", "fail", "Got 1 result")], PromiseError, "test_it"),
        ([("m", "error", "Conversion Error: 'mallory' is no number")], KgatherError, "m (Conversion Error)"),
        ([("m", "error", "IO Error: No space left on device")], OSError, "No space left"),
    ],
)
def test_what_breaks_is_told_without_values(results: list, kind: type[Exception], told: str) -> None:
    error = pipeline._as_error(outcome(*results))
    assert type(error) is kind
    assert told in str(error)
    assert "mallory" not in str(error)
