{#- The form predicted: the members' mean prediction, from the group's mean vector. -#}
{% macro form__predicted() -%}
  select group_id, item_id, rating from {{ kgather.predicted_cells(kgather.ref_to("int_kgather__cells")) }}
{%- endmacro %}

{#- Cells that are added for the diversity of items. -#}
{% macro form__predicted__added() -%}
  select group_id, item_id, rating from {{ kgather.predicted_cells(kgather.ref_to("int_kgather__added_cells")) }}
{%- endmacro %}
