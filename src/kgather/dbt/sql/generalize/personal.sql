{#- What is shown of the personal columns: generalize, separate, as_is, or none where there are none. -#}
{% macro personal() %}
  {%- do return(kgather.setting("personal") if kgather.setting("personal_columns") else "none") -%}
{% endmacro %}
