{#-
The relation that a var names: a model of the project, or package.model. An ephemeral model has no columns to be found
before it is built, and its text would stand in what kgather keeps: it is refused by that word.
-#}
{% macro input_of(name) %}
  {% set relation = ref(*name.split('.')) if '.' in name else ref(project_name, name) %}
  {% if execute and relation.is_cte %}
    {% do exceptions.raise_compiler_error(
      "kgather: the model " ~ name ~ " is ephemeral, and kgather reads tables and views. Materialize it as a view: "
      ~ "config(materialized='view')."
    ) %}
  {% endif %}
  {{ return(relation) }}
{% endmacro %}
