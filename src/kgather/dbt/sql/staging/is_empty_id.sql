{#- The condition that an id is missing; only a text can be there and blank. column: as `rating_columns` quotes it. -#}
{% macro is_empty_id(relation, column, name) -%}
  {%- set types = adapter.get_columns_in_relation(relation)
    | selectattr('quoted', 'equalto', column) | map(attribute='dtype') | map('upper') | list -%}
  {{ name }} is null
  {%- if not (types and (types[0].endswith('INT') or types[0].startswith(('INTEGER', 'DOUBLE', 'FLOAT', 'DECIMAL')))) %}
  or trim(cast({{ name }} as varchar)) = ''
  {%- endif -%}
{%- endmacro %}
