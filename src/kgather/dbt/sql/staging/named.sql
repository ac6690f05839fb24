{#-
The name of a relation as a text of SQL, for a macro of DuckDB that takes one. With --empty dbt writes a query in place
of a relation, which is no name: the relation was built empty in the same run.
-#}
{% macro named(relation) -%}
  '{{ (relation if relation is string else relation.render()) | replace("'", "''") }}'
{%- endmacro %}
