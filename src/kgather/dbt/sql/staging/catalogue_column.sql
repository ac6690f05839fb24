{#-
The quoted column of item ids in the relation of the catalogue: by the var item_column or its usual names, or the only
one.
-#}
{% macro catalogue_column(relation) %}
  {% set names = {} %}
  {% for column in adapter.get_columns_in_relation(relation) %}
    {% do names.update({column.name | lower: column.name}) %}
  {% endfor %}
  {% set usual = [(kgather.setting('item_column') or 'item_id') | lower] + kgather.usual_names('item') + ['id'] %}
  {% set hits = usual | select('in', names) | list %}
  {% if not hits and names | length == 1 %}{% set hits = names.keys() | list %}{% endif %}
  {% if not hits %}
    {% do exceptions.raise_compiler_error(
      "kgather: " ~ relation ~ " has no column for the item. It has: " ~ names.values() | join(', ')
      ~ ". Name it item_id."
    ) %}
  {% endif %}
  {{ return(adapter.quote(names[hits[0]])) }}
{% endmacro %}
