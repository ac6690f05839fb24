{#-
The value of a setting: the var with the prefix kgather_, else the one nested under `vars: kgather:`, else, of a name
that no other project would have, the var of that name, else the default. null is as good as nothing. A project's own
vars `k`, `seed` and the like are never read.
-#}
{% macro setting(name) %}
  {% set prefixed = var('kgather_' ~ name, none) %}
  {% if prefixed is not none %}{{ return(prefixed) }}{% endif %}
  {% set nested = var('kgather', none) %}
  {% if nested is mapping and nested.get(name) is not none %}{{ return(nested[name]) }}{% endif %}
  {% if name in kgather.old_setting_names() and var(name, none) is not none %}{{ return(var(name)) }}{% endif %}
  {{ return(kgather.setting_defaults()[name]) }}
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
