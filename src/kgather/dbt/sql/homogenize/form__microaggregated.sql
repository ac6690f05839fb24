{#- The form microaggregated: the centroid of filled ratings. Filled with predictions, that is the padded mean. -#}
{% macro form__microaggregated() -%}
  {% if kgather.setting("fill") == "prediction" -%}
  {{ kgather.form__padded() }}
  {%- else -%}
  select group_id, item_id, rating
  from kg_microaggregate(
    {{ kgather.named(kgather.ref_to("int_kgather__cells")) }}, {{ kgather.named(kgather.ref_to("stg_kgather__ratings")) }}, {{ kgather.named(kgather.ref_to("int_kgather__groups")) }},
    {{ kgather.filling() }}
  )
  {%- endif %}
{%- endmacro %}

{% macro form__microaggregated__pads() %}
  {{ return(kgather.setting("fill") == "prediction" and kgather.setting("cells") == "rated") }}
{% endmacro %}
