{#-
The value of a setting: the var with the prefix kgather_, else the one nested under `vars: kgather:`, else, of a name
that no other project would have, the var of that name, else the default. null is as good as nothing. A project's own
vars `k`, `seed` and the like are never read.
-#}
{% macro setting(name) %}
  {% set prefixed = var('kgather_' ~ name, none) %}
  {% if prefixed is not none %}{{ return(prefixed) }}{% endif %}
  {% set nested = kgather.nested_settings() %}
  {% if nested is mapping and nested.get(name) is not none %}{{ return(nested[name]) }}{% endif %}
  {% if name in kgather.old_setting_names() and var(name, none) is not none %}{{ return(var(name)) }}{% endif %}
  {{ return(kgather.setting_defaults()[name]) }}
{% endmacro %}

{#-
The settings under `vars: kgather:`, with what the entry of this release says instead. A checkout, which is a project of
its own, has some for its sample.
-#}
{% macro nested_settings() %}
  {% set said = var('kgather', none) or (var('checkout_settings', none) if project_name == 'kgather' else none) %}
  {% set release = kgather.release_name() %}
  {% if release is none %}{{ return(said) }}{% endif %}
  {% set entry = kgather.releases()[release] %}
  {{ return(dict(dict(said, **(entry if entry is mapping else {})), releases=none)) }}
{% endmacro %}

{#-
Whether the project wants a release of ratings: it says something under `vars: kgather:`, or which ratings, or k. A
project that only tests or anonymizes tables says nothing, and then this package has no models. Nor has it where there
are several releases, which have packages of their own. The configuration of the Python models says the same
(tools/generate.py).
-#}
{% macro publishes() %}
  {{ return(
    not (kgather.releases() and kgather.release_name() is none) and (
      project_name == 'kgather' or (kgather.nested_settings() or []) | length > 0
      or var('kgather_ratings', none) is not none or var('kgather_k', none) is not none
    )
  ) }}
{% endmacro %}

{#- Whether all items of a list are of a kind: texts, numbers, lists of numbers and the like, as the schema names them. -#}
{% macro all_are(items, kind) %}
  {% set wrong = [] %}
  {% for item in items %}
    {% set text = item is string and 'string' in kind %}
    {% set whole = item is integer and item is not boolean and 'integer' in kind %}
    {% set number = item is number and item is not boolean and 'number' in kind %}
    {% set list = item is sequence and item is not string and item is not mapping and 'list' in kind %}
    {% if not (text or whole or (number and item - item == 0) or list) %}{% do wrong.append(item) %}{% endif %}
  {% endfor %}
  {{ return(wrong | length == 0) }}
{% endmacro %}
