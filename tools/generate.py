"""Writes what follows from the settings, methods and forms: `make generate`. A test says where it is out of date.

The schema is `kgather._settings.project.ProjectSettings`. From it come the macros of `sql/hooks/settings.sql` (names,
defaults, checks, and what SQL has to know of methods and forms), the configuration of the Python models, the project
file at the top of the repository, docs/vars.md and the table of docs/methods/README.md.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgather._dbt_package import dbt_path
from kgather._forms import forms
from kgather._methods import built_in
from kgather._settings.fields import SECTIONS
from kgather._settings.project import DEFAULT_FACTS, OUTSIDE, PREFIX, ProjectSettings
from kgather._settings.publication import CHAIN
from kgather._settings.rules import rules
from kgather._settings.wording import described, schemas
from kgather._version import __version__

ROOT = Path(__file__).resolve().parent.parent
NAMES = list(ProjectSettings.model_fields)
OLD_NAMES = [
    name
    for name, field in ProjectSettings.model_fields.items()
    if dict(field.json_schema_extra or {}).get("own_name")  # type: ignore[arg-type]
]
_HEAD = "Written by `make generate` from src/kgather/_settings, _methods and _forms; do not edit."


def jinja(value: object) -> str:
    """A value as a literal of Jinja."""
    return (
        re.sub(r"\b(True|False|None)\b", lambda word: word[0].lower(), repr(value))
        if not isinstance(value, str)
        else repr(value)
    )


def condition(schema: Mapping[str, Any], value: str, depth: int = 0) -> str:
    """An expression of Jinja that is true where the value is of the schema; as strict as pydantic is with it."""
    if "anyOf" in schema:
        return "(" + " or ".join(condition(part, value, depth) for part in schema["anyOf"]) + ")"
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return f"({value} is string and {value} in {jinja(values)})"
    kind = schema.get("type")
    if kind == "null":
        return f"{value} is none"
    if kind == "boolean":
        return f"{value} is boolean"
    if kind == "string":
        found = f"{value} is string"
        if "minLength" in schema:
            found = f"({found} and {value} | length >= {schema['minLength']})"
        if "pattern" in schema:
            found = f"({found} and modules.re.fullmatch({jinja(schema['pattern'])}, {value}))"
        return found
    if kind in ("integer", "number"):
        parts = [f"{value} is {'integer' if kind == 'integer' else 'number'}", f"{value} is not boolean"]
        if kind == "number":
            parts.append(f"{value} - {value} == 0")  # neither infinite nor no number
        for name, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<")):
            if name in schema:
                # Versions of pydantic differ in whether the bound of a number is 0 or 0.0.
                bound = schema[name]
                parts.append(f"{value} {sign} {int(bound) if bound == int(bound) else bound}")
        return "(" + " and ".join(parts) + ")"
    if kind == "object":
        return f"{value} is mapping"
    assert kind == "array", schema
    # Whether all items are of their schema is asked by a macro of its own: expressions have no loops.
    parts = [f"{value} is sequence", f"{value} is not string", f"{value} is not mapping"]
    if "minItems" in schema:
        parts.append(f"{value} | length >= {schema['minItems']}")
    if "maxItems" in schema:
        parts.append(f"{value} | length <= {schema['maxItems']}")
    return "(" + " and ".join(parts) + f" and kgather.all_are({value}, {jinja(_item_kind(schema['items']))}))"


def _item_kind(schema: Mapping[str, Any]) -> str:
    """The name of what the items of a list are, as the macro `all_are` knows it."""
    if "anyOf" in schema:
        return " or ".join(sorted(str(part["type"]) for part in schema["anyOf"]))
    return "list" if schema["type"] == "array" else str(schema["type"])


def settings_macros() -> str:
    """The text of sql/hooks/settings.sql."""
    defaults = {
        name: None if field.is_required() else field.default for name, field in ProjectSettings.model_fields.items()
    }
    lines = [f"{{#- {_HEAD} -#}}", ""]
    lines += [
        "{#- The defaults of all settings; none where there is none. -#}",
        "{% macro setting_defaults() %}",
        "  {{ return({",
        *(f"    {name!r}: {jinja(value)}," for name, value in defaults.items()),
        "  }) }}",
        "{% endmacro %}",
        "",
        "{#- The version of this package, which packages of releases were written by. -#}",
        "{% macro package_version() %}",
        f"  {{{{ return({jinja(__version__)}) }}}}",
        "{% endmacro %}",
        "",
        "{#- Names that are no other project's: they are read without the prefix, too, with a warning. -#}",
        "{% macro old_setting_names() %}",
        "  {{ return([",
        *(f"    {name!r}," for name in OLD_NAMES),
        "  ]) }}",
        "{% endmacro %}",
        "",
        "{#- Vars that dbt reads before there are any models. -#}",
        "{% macro settings_outside() %}",
        f"  {{{{ return({jinja(list(OUTSIDE))}) }}}}",
        "{% endmacro %}",
        "",
        "{#- Settings that all releases of a chain have in common. -#}",
        "{% macro names_of_chain() %}",
        f"  {{{{ return({jinja(list(CHAIN))}) }}}}",
        "{% endmacro %}",
        "",
        "{#- What SQL has to know of the methods; of one that another package registers, `method_facts` says it. -#}",
        "{% macro method_facts(name) %}",
        "  {% set known = {",
        *(f"    {method.name!r}: {jinja(dict(method.facts))}," for method in built_in().values()),
        "  } %}",
        f"  {{% set other = {jinja(dict(DEFAULT_FACTS))} %}}",
        "  {% set other = kgather.setting('method_facts') or other %}",
        "  {{ return(known[name] if name is string and name in known else other) }}",
        "{% endmacro %}",
        "",
        "{#- What SQL has to know of the forms. -#}",
        "{% macro form_facts(name) %}",
        "  {% set known = {",
        *(f"    {form.name!r}: {jinja(dict(form.facts))}," for form in forms().values()),
        "  } %}",
        "  {{ return(known[name] if name is string and name in known else known['none']) }}",
        "{% endmacro %}",
        "",
        "{#- What is wrong with the values of single settings, in sentences. -#}",
        "{% macro wrong_settings() %}",
        "  {% set problems = [] %}",
    ]
    for name, schema in schemas(ProjectSettings).items():
        lines.append(f"  {{% set value = kgather.setting({name!r}) %}}")
        if ProjectSettings.model_fields[name].is_required():
            lines.append(f"  {{% if value is none %}}{{% do problems.append({name + ' is not set.'!r}) %}}")
            lines.append(f"  {{% elif not {_condition_of(name, schema)} %}}")
        else:
            lines.append(f"  {{% if value is not none and not {_condition_of(name, schema)} %}}")
        lines.append(
            f"    {{% do problems.append({name + ' is ' + described(schema) + ', not '!r} ~ tojson(value) ~ '.') %}}"
        )
        lines.append("  {% endif %}")
    lines += [
        "  {{ return(problems) }}",
        "{% endmacro %}",
        "",
        "{#- What settings say against each other, in sentences; only where each makes sense by itself. -#}",
        "{% macro contradicting_settings() %}",
        "  {% set problems = [] %}",
        *(f"  {{% set {name} = kgather.setting({name!r}) %}}" for name in _named_in_rules()),
        "  {% set form = kgather.homogenize() %}",
        "  {% set generalization = kgather.generalize() %}",
        "  {% set cells_kind = kgather.cells_kind() %}",
        "  {% set of_method = kgather.method_facts(method) %}",
        "  {% set of_form = kgather.form_facts(form) %}",
    ]
    for rule in rules():
        told = "'" + rule.told.replace("'", "\\'") + "'"
        told = re.sub(r"\{(\w+)\}", r"' ~ \1 ~ '", told).replace(" ~ ''", "")
        lines += [f"  {{% if {rule.wrong} %}}", f"    {{% do problems.append({told}) %}}", "  {% endif %}"]
    lines += ["  {% if not problems %}", *_options_of_methods(), "  {% endif %}"]
    lines += ["  {{ return(problems) }}", "{% endmacro %}"]
    return "\n".join(lines) + "\n"


def _options_of_methods() -> list[str]:
    """Jinja that adds to `problems` what is wrong with a method's options; Python checks those of other packages."""
    lines = ["    {% set options = kgather.setting('method_options') %}"]
    for method in built_in().values():
        known = schemas(method.options) if method.options.model_fields else {}
        unknown = f"method {method.name} has no option "
        names = f"; its options are: {', '.join(known)}." if known else "; it has none."
        lines += [
            f"    {{% if method == {method.name!r} %}}",
            f"      {{% for name in options if name not in {jinja(list(known))} %}}",
            f'        {{% do problems.append({unknown!r} ~ "\'" ~ name ~ "\'" ~ {names!r}) %}}',
            "      {% endfor %}",
        ]
        if known:
            lines.append("      {% set named_well = not problems %}")
        for name, schema in known.items():
            told = f"method {method.name}: {name} is {described(schema)}, not "
            lines += [
                f"      {{% set value = options[{name!r}] %}}",
                f"      {{% if named_well and {name!r} in options and not {condition(schema, 'value')} %}}",
                f"        {{% do problems.append({told!r} ~ tojson(value) ~ '.') %}}",
                "      {% endif %}",
            ]
        lines.append("    {% endif %}")
    return lines


def _condition_of(name: str, schema: Mapping[str, Any]) -> str:
    if name == "method":
        # Other packages may have more, of which the project then gives the facts. Whether there is one, Python says.
        return f"({condition(schema, 'value')} or (value is string and kgather.setting('method_facts') is not none))"
    found = condition(schema, "value")
    if "also" in schema:
        found = f"({found} and (value is none or ({schema['also']})))"
    return found


def _named_in_rules() -> list[str]:
    words = set(re.findall(r"\w+", " ".join(rule.wrong + " " + rule.told for rule in rules())))
    return [name for name in NAMES if name in words]


NESTED = "(var('kgather', none) or (var('checkout_settings', none) if project_name == 'kgather' else none))"
"""As the macro nested_settings has it; `kgather._dbt_release` puts that of a release in its place."""

# As the macros publishes and releases say, which cannot be called here.
_SAYS_SOMETHING = (
    f"(project_name == 'kgather' or ({NESTED} or []) | length > 0 or var('kgather_ratings', none) is not none"
    " or var('kgather_k', none) is not none)"
)
_PUBLISHES = f"(not ({NESTED} or {{}}).get('releases') and {_SAYS_SOMETHING})"


def shared_yml() -> str:
    """The text of models/intermediate/shared/_noise_key.yml: releases of one project have one key of the noise."""
    lines = [
        f"# {_HEAD}",
        "models:",
        "  - name: int_kgather__noise_key",
        "    description: The key of all noise, drawn by the first run and kept by all later ones.",
        "    config:",
        "      enabled: >-",
        f"        {{{{ {_SAYS_SOMETHING} | as_bool }}}}",
    ]
    return "\n".join(lines) + "\n"


def steps_yml() -> str:
    """The text of models/intermediate/_steps.yml: Python models get their settings from a configuration."""
    prefixed = ", ".join(f"{name!r}: var({PREFIX + name!r}, none)" for name in NAMES)
    old = ", ".join(f"{name!r}: var({name!r}, none)" for name in OLD_NAMES)
    nested, publishes = NESTED, _PUBLISHES
    says = "{{ tojson({'prefixed': {" + prefixed + "}, 'nested': " + nested + ", 'old': {" + old + "}}) }}"

    def value(name: str) -> str:
        default = ProjectSettings.model_fields[name].default
        fallback = f"({nested} or {{}}).get({name!r}) or {jinja(default)}"
        if name in OLD_NAMES:
            fallback = f"({nested} or {{}}).get({name!r}) or var({name!r}, none) or {jinja(default)}"
        return f"(var({PREFIX + name!r}, none) or {fallback})"

    own_form = {m.name: m.form for m in built_in().values()}
    adding = [form.name for form in forms().values() if form.rows == "groups"]
    by_method = f"{jinja(own_form)}.get({value('method')} | string, 'predicted')"
    form = f"({by_method} if {value('homogenize')} == 'auto' else {value('homogenize')})"
    adds_cells = (
        f"{value('diversity_l')} | string not in ['0', '1'] and {value('cells')} != 'low_rank' and {form} in {adding!r}"
    )
    has_personal = f"{value('personal_columns')} != [] and {value('personal')} != 'as_is'"
    has_shared = f"{has_personal} and {value('personal_shared')} != []"
    models: dict[str, tuple[str, str | None]] = {
        "int_kgather__item_noise": ("Noise in counts of raters, a function of the key and the ratings.", None),
        "int_kgather__factors": (
            "Levels and factors of users and items in codes, as the solver learnt them, and what is shown of items.",
            None,
        ),
        "int_kgather__drawn_in": ("The mean preference of each group, those farthest from the middle drawn in.", None),
        "int_kgather__gathered": ("The secret map in codes with the random ids that the release uses.", None),
        "int_kgather__added_cells": (
            "Cells added until every set of items that some user rated is shown by enough groups.",
            adds_cells,
        ),
        "int_kgather__item_coverage": (
            "The fewest groups of the release that show a set of items which some user rated.",
            adds_cells,
        ),
        "int_kgather__personal": ("What is shown of each user's personal attributes.", has_personal),
        "int_kgather__shared_personal": (
            "What is shown of each user's shared personal attributes beside the artifacts.",
            has_shared,
        ),
    }
    lines = [f"# {_HEAD}", "models:"]
    for name, (text, condition_of_model) in models.items():
        lines += [f"  - name: {name}", f"    description: {text}", "    config:"]
        # As the macros publishes, adds_cells and personal say, which cannot be called here.
        enabled = publishes if condition_of_model is None else f"{publishes} and {condition_of_model}"
        lines += ["      enabled: >-", f"        {{{{ ({enabled}) | as_bool }}}}"]
        lines += ["      meta:", "        settings: >-", f"          {says}"]
    return "\n".join(lines) + "\n"


_CHECKOUT = """\
vars:
  # What a checkout publishes when dbt runs in it. A project that has it as a package says what it publishes itself.
  checkout_settings: {ratings: sample_ratings, k: 5}
"""


def project_yml() -> str:
    """The project file at the top, for a repository that is a dbt package: the package's own but for the paths."""
    text = (dbt_path() / "dbt_project.yml").read_text(encoding="utf-8")
    where = dbt_path().relative_to(ROOT).as_posix()
    for folder in ("models", "sql"):
        text = text.replace(f"[{folder}]", f"[{where}/{folder}]")
    text = text.replace(f"[{where}/models]", f"[{where}/models, examples/checkout]", 1)
    return f"# {_HEAD}\n{text}\n{_CHECKOUT}"


def vars_md() -> str:
    """The text of docs/vars.md."""
    lines = [
        f"<!-- {_HEAD} -->",
        "",
        "# Vars",
        "",
        "Set them in your `dbt_project.yml`, nested under `vars: kgather:` or with the prefix `kgather_`:",
        "",
        "```yaml",
        "vars:",
        "  kgather:",
        "    ratings: my_ratings",
        "    k: 10",
        "  kgather_seed: 7       # the same as seed: 7 under kgather:",
        "```",
        "",
        "On dbt's command line use the prefix: `--vars '{kgather_k: 10}'`. A prefixed var beats a nested one.",
        "`--vars '{kgather: {k: 10}}'` is refused, as it would replace all that the project nests there. A var",
        "of yours that is named `k` or `seed` is yours: kgather never reads it. `null` stands for the default.",
        "",
        "On kgather's own command line these are options of the same name. Those without one are set by",
        "`--set VAR=VALUE`. How files are read has options of its own, and `ratings`, `item_id_type`, `method_facts`,",
        "`release_id`, `released_on`, `releases`, `within` and `release_database` are for dbt alone.",
        "",
        "These names are unlikely in any other project, so they are still read without the prefix, with a warning: "
        + ", ".join(f"`{name}`" for name in OLD_NAMES)
        + ".",
    ]
    for section in SECTIONS:
        lines += ["", f"## {section}", "", "| var | description | default |", "| --- | --- | --- |"]
        for name, field in ProjectSettings.model_fields.items():
            extra: dict[str, Any] = dict(field.json_schema_extra or {})  # type: ignore[arg-type]
            if extra["section"] == section:
                lines.append(f"| `{name}` | {_cell(extra['docs'])} | {_default(field, extra)} |")
        if section == SECTIONS[-1]:
            lines += [f"| `kgather_{name}` | {_cell(text)} | the target |" for name, text in OUTSIDE.items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(field: Any, extra: Mapping[str, Any]) -> str:
    if extra["shown_default"]:
        return str(extra["shown_default"])
    return "none" if field.default is None else f"`{json.dumps(field.default)}`".replace('"', "")


_TABLE = re.compile(r"(<!-- methods -->\n).*?(<!-- /methods -->)", re.DOTALL)


def methods_md() -> str:
    """docs/methods/README.md with its table of methods."""
    text = (ROOT / "docs" / "methods" / "README.md").read_text(encoding="utf-8")
    rows = ["| method | gathers on | groups | cost | choose it |", "| --- | --- | --- | --- | --- |"]
    for method in built_in().values():
        facts = " | ".join((method.looks_at, method.groups, method.cost, method.choose))
        rows.append(f"| [{method.name}]({method.name}.md) | {facts} |")
    table = "\n".join(rows)
    return _TABLE.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)


def files() -> dict[Path, str]:
    """Everything that is generated."""
    return {
        dbt_path() / "sql" / "hooks" / "settings.sql": settings_macros(),
        dbt_path() / "models" / "intermediate" / "_steps.yml": steps_yml(),
        dbt_path() / "models" / "intermediate" / "shared" / "_noise_key.yml": shared_yml(),
        ROOT / "dbt_project.yml": project_yml(),
        ROOT / "docs" / "vars.md": vars_md(),
        ROOT / "docs" / "methods" / "README.md": methods_md(),
    }


def main() -> None:
    """Write what is out of date."""
    for file, text in files().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"{file.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
