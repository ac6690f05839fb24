{#- A column of times as timestamp: unix seconds where it holds numbers, else what the engine can read. -#}
{% macro as_timestamp(relation, column) %}
  {%- set types = adapter.get_columns_in_relation(relation)
    | selectattr('quoted', 'equalto', column) | map(attribute='dtype') | map('upper') | list -%}
  {%- if types and (types[0].endswith('INT') or types[0].startswith(('INTEGER', 'DOUBLE', 'FLOAT', 'DECIMAL'))) -%}
    cast(to_timestamp({{ column }}) at time zone 'UTC' as timestamp)
  {%- else -%}
    try_cast({{ column }} as timestamp)
  {%- endif -%}
{% endmacro %}
