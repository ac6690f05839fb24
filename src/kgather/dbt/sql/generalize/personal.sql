{#- What is shown of the personal columns: generalize, separate, as_is, or none where there are none. -#}
{% macro personal() %}
  {%- do return(kgather.setting("personal") if kgather.setting("personal_columns") else "none") -%}
{% endmacro %}

{#- The personal columns that are shown beside the generalized artifacts. -#}
{% macro personal_beside() %}
  {%- set of = {"separate": "personal_shared", "generalize": "personal_columns", "as_is": "personal_columns"} -%}
  {%- do return(kgather.setting(of[kgather.personal()]) if kgather.personal() in of else []) -%}
{% endmacro %}
