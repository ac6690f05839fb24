{#- The relation that a var names: a model of the project, or package.model. -#}
{% macro input_of(name) %}
  {{ return(ref(*name.split('.')) if '.' in name else ref(project_name, name)) }}
{% endmacro %}
