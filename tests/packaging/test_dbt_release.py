"""The packages that `kgather dbt-release` writes: the package's own models under the name of a release."""

import re
from pathlib import Path

import pytest

from kgather._dbt_package import dbt_path
from kgather._dbt_release import release_text, write_package
from kgather._errors import InputError


def test_names_of_models_change_and_names_of_vars_do_not() -> None:
    text = """
    select * from {{ ref("int_kgather__groups") }} join {{ ref("kgather_history") }} using (user_id)
    -- {{ doc('kgather__ratings') }} {{ var('kgather_history', none) }} {{ kgather.setting("k") }}
    {{ ref("int_kgather__noise_key") }} {{ ref("int_kgather_" ~ origin ~ "__groups") }}
    """
    assert (
        release_text(text, "partner")
        == """
    select * from {{ ref("int_kgather_partner__groups") }} join {{ ref("kgather_partner_history") }} using (user_id)
    -- {{ doc('kgather_partner__ratings') }} {{ var('kgather_history', none) }} {{ kgather.setting("k") }}
    {{ ref("int_kgather__noise_key") }} {{ ref("int_kgather_" ~ origin ~ "__groups") }}
    """
    )


def test_every_model_has_one_in_the_release(tmp_path: Path) -> None:
    folder = write_package("a_b2", tmp_path)
    models = dbt_path() / "models"
    own = {file.relative_to(models).as_posix() for file in models.rglob("*.*") if "shared" not in file.parts}
    own = {name for name in own if "__pycache__" not in name}
    copies = {file.relative_to(folder / "models").as_posix() for file in (folder / "models").rglob("*.*")}
    assert copies == {re.sub(r"kgather(?=_)", "kgather_a_b2", name) for name in own}
    for file in (folder / "models").rglob("*.*"):
        # What is left of the package's own names is the key that all releases share.
        assert set(re.findall(r"\w*kgather__\w+", file.read_text(encoding="utf-8"))) <= {"int_kgather__noise_key"}
    assert "name: kgather_a_b2\n" in (folder / "dbt_project.yml").read_text(encoding="utf-8")


def test_a_package_is_written_anew_and_nothing_else_is_touched(tmp_path: Path) -> None:
    folder = write_package("partner", tmp_path)
    old = folder / "models" / "of_an_older_version.sql"
    old.write_text("select 1", encoding="utf-8")
    assert write_package("partner", tmp_path) == folder
    assert not old.exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "dbt_project.yml").write_text("name: mine\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no package that kgather dbt-release wrote"):
        write_package("mine", tmp_path)
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["dbt_project.yml"]


@pytest.mark.parametrize("name", ["", "Partner", "a__b", "_a", "a_", "1a", "a-b", "../a", "a/b"])
def test_what_is_no_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no name of a release"):
        write_package(name, tmp_path)
    assert list(tmp_path.iterdir()) == []
