"""Packages of dbt models for the releases of a project that has several: a file for each model, as dbt wants it.

dbt cannot make models of a setting, so each release has models of its own, which differ from those of the package in
their names alone. All macros, checks and shared models stay in the package kgather.
"""

import re
import shutil
from pathlib import Path

from kgather._dbt_package import dbt_path
from kgather._errors import InputError
from kgather._version import __version__

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""What a release may be called; the macro wrong_releases asks the same."""

FOLDER = Path("kgather_releases")
_HEAD = "Written by `kgather dbt-release`; do not edit."
_SHARED = "shared"
_NESTED = "(var('kgather', none) or (var('checkout_settings', none) if project_name == 'kgather' else none))"
_ENTRY = "(((var('kgather', none) or {{}}).get('releases') or {{}}).get('{name}') or {{}})"
_MERGED = "dict(dict(var('kgather', none) or {{}}, **{entry}), releases=none)"

_SETTINGS = re.compile("|".join(re.escape(text) for text in (_NESTED, "(var('kgather', none) or {})")))

# Vars have the prefix kgather_ too, and keep it. What is shared by all releases keeps its name.
_MODEL = re.compile(
    r"(?<!var\(')\b((?:base_|stg_|int_)?kgather)(?=__(?!noise_key\b)|_(?:history|chain|loaded)\b|_loaded_)"
)

_PROJECT = """\
# {head}
name: kgather_{name}
version: {version}
config-version: 2
profile: kgather

model-paths: [models]
macro-paths: [macros]
docs-paths: [models]
test-paths: []
seed-paths: []
analysis-paths: []
snapshot-paths: []

on-run-start: "{{{{ kgather.on_run_start_of_release() }}}}"

models:
  kgather_{name}:
    +materialized: table
    staging:
      +docs: {{node_color: "#6b7280"}}
    intermediate:
      +docs: {{node_color: "#b45309"}}
    marts:
      +docs: {{node_color: "#15803d"}}
"""

_MACRO = """\
{{#- {head} -#}}

{{#- The version of kgather that wrote this package. -#}}
{{% macro written_by() %}}{{{{ return('{version}') }}}}{{% endmacro %}}
"""


def write_package(name: str, folder: Path) -> Path:
    """Write the dbt package of the release `name` into folder/name, over what an earlier call wrote there.

    Returns where it is. Raises InputError where the name is none, or where something else is there.
    """
    if not NAME.fullmatch(name):
        msg = f"{name} is no name of a release. Use small letters, digits and single _, with a letter first."
        raise InputError(msg)
    target = folder / name
    _refuse_others_work(target)
    for part in ("models", "macros"):
        shutil.rmtree(target / part, ignore_errors=True)
    models = dbt_path() / "models"
    for file in sorted(models.rglob("*")):
        where = file.relative_to(models)
        if file.suffix in (".sql", ".py", ".yml", ".md") and _SHARED not in where.parts:
            copy = target / "models" / where.with_name(_renamed(file.name, name))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(release_text(file.read_text(encoding="utf-8"), name), encoding="utf-8")
    (target / "macros").mkdir()
    (target / "macros" / "written_by.sql").write_text(_MACRO.format(head=_HEAD, version=__version__), encoding="utf-8")
    text = _PROJECT.format(head=_HEAD, name=name, version=__version__)
    (target / "dbt_project.yml").write_text(text, encoding="utf-8")
    return target


def release_text(text: str, name: str) -> str:
    """The text of a file of the package, as the release has it: names of models, and where settings come from."""
    merged = _MERGED.format(entry=_ENTRY.format(name=name))
    # In one pass: what is put in has the shorter of the two texts in it.
    text = _SETTINGS.sub(lambda _: merged, text)
    return _renamed(text, name)


def _renamed(text: str, name: str) -> str:
    return _MODEL.sub(rf"\1_{name}", text)


def _refuse_others_work(target: Path) -> None:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    project = target / "dbt_project.yml"
    if not project.is_file() or not project.read_text(encoding="utf-8").startswith(f"# {_HEAD}"):
        msg = f"{target} is there and holds no package that kgather dbt-release wrote. Give another --out."
        raise InputError(msg)
