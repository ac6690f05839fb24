{#-
Finds the column of users in the relation of their attributes, and checks that every column exists that a var names.
Returns {user, others}: quoted names.
-#}
{% macro attribute_columns(relation) %}
  {% set names = {} %}
  {% for column in adapter.get_columns_in_relation(relation) %}
    {% do names.update({column.name | lower: column.name}) %}
  {% endfor %}
  {% set usual = kgather.usual_names('user') + ['id'] %}
  {% set hits = usual | select('in', names) | list %}
  {% if not hits %}
    {% do exceptions.raise_compiler_error(
      "kgather: " ~ relation ~ " has no column for the user. It has: " ~ names.values() | join(', ')
      ~ ". Name it user_id."
    ) %}
  {% endif %}
  {% set asked = kgather.setting('personal_columns') + kgather.setting('sensitive_columns') %}
  {% for name in asked + ([kgather.setting('level_column')] if kgather.setting('level_column') else []) if name | lower not in names %}
    {% do exceptions.raise_compiler_error(
      "kgather: " ~ relation ~ " has no column " ~ name ~ ". It has: " ~ names.values() | join(', ') ~ "."
    ) %}
  {% endfor %}
  {% set others = [] %}
  {% for lower, name in names.items() if lower not in (hits[0], 'user_id') %}
    {% do others.append(kgather.quoted_name(name)) %}
  {% endfor %}
  {{ return({'user': kgather.quoted_name(names[hits[0]]), 'others': others}) }}
{% endmacro %}
