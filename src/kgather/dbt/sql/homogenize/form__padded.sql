{#- The form padded: the mean over all members of the rating, or of the prediction where there is none. -#}
{% macro form__padded() -%}
  {% if kgather.pads_rated_cells() -%}
  {{ kgather.padded_rated_cells() }}
  {%- else -%}
  select group_id, item_id, rating from {{ kgather.padded_cells(kgather.ref_to("int_kgather__cells")) }}
  {%- endif %}
{%- endmacro %}

{#- Whether the cells that members rated are padded one by one, which is less work than all of them. -#}
{% macro form__padded__pads() %}{{ return(kgather.setting("cells") == "rated") }}{% endmacro %}

{#- Cells that are added for the diversity of items. -#}
{% macro form__padded__added() -%}
  select group_id, item_id, rating from {{ kgather.padded_cells(kgather.ref_to("int_kgather__added_cells")) }}
{%- endmacro %}
