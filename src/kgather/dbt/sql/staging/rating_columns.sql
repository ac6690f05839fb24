{#-
Finds the columns of a relation of ratings by their usual names, whatever their case, or by the vars that name them.
Returns {user, item, rating, time, source, line, raw, problem}: the quoted column, or none where there is none.
-#}
{% macro rating_columns(relation) %}
  {% set columns = {} %}
  {% for column in adapter.get_columns_in_relation(relation) %}
    {% do columns.update({column.name | lower: column.name}) %}
  {% endfor %}
  {% set usual = {} %}
  {% for role in ['user', 'item', 'rating', 'time'] %}
    {% do usual.update({role: kgather.usual_names(role)}) %}
  {% endfor %}
  {#- Where a row came from and what is wrong with it, only the command line's loaders know. -#}
  {% set loaders_own = ['source', 'line', 'raw', 'problem'] %}
  {% for role in loaders_own %}
    {% do usual.update({role: [role] if relation.identifier == 'kgather_loaded' else []}) %}
  {% endfor %}
  {% set named = {
    'user': kgather.setting('user_column'), 'item': kgather.setting('item_column'),
    'rating': kgather.setting('rating_column'), 'time': kgather.setting('time_column'),
  } %}
  {% set found = {} %}
  {% for role, names in usual.items() %}
    {% set wanted = [named[role]] if named.get(role) else names %}
    {% set hits = wanted | map('lower') | select('in', columns) | list %}
    {% if hits %}
      {% do found.update({role: adapter.quote(columns[hits[0]])}) %}
    {% elif role in ('user', 'item', 'rating') or named.get(role) %}
      {% do exceptions.raise_compiler_error(
        "kgather: " ~ relation ~ " has no column for the " ~ role ~ ". It has: " ~ columns.values() | join(', ')
        ~ ". Name it with the var " ~ role ~ "_column."
      ) %}
    {% else %}
      {% do found.update({role: none}) %}
    {% endif %}
  {% endfor %}
  {{ return(found) }}
{% endmacro %}
