{#- Whether a relation has been built and has rows; false while dbt only parses or compiles. -#}
{% macro has_rows(relation) %}
  {% if not execute or load_relation(relation) is none %}
    {{ return(false) }}
  {% endif %}
  {{ return(run_query("select 1 from " ~ relation ~ " limit 1").rows | length > 0) }}
{% endmacro %}
