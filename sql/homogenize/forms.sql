{#- The macros of homogenization, called on the pipeline's own relations for the cells asked for. -#}

{% macro predicted_cells(cells) -%}
  kg_predicted(
    '{{ cells }}', '{{ ref("int_kgather__group_vectors") }}', '{{ ref("int_kgather__item_factors") }}',
    {{ kgather.scale_end("min") }}, {{ kgather.scale_end("max") }}
  )
{%- endmacro %}

{% macro padded_cells(cells) -%}
  kg_padded(
    '{{ cells }}', '{{ ref("stg_kgather__ratings") }}', '{{ ref("int_kgather__groups") }}',
    '{{ ref("int_kgather__preferences") }}', '{{ ref("int_kgather__group_vectors") }}',
    '{{ ref("int_kgather__item_factors") }}', {{ kgather.scale_end("min") }}, {{ kgather.scale_end("max") }}
  )
{%- endmacro %}

{#- An end of the scale: min or max. -#}
{% macro scale_end(end) -%}
  (select scale_{{ end }} from {{ ref("int_kgather__scale") }})
{%- endmacro %}

{#- What stands for a rating that is not there, where fill is median: the middle of the scale. -#}
{% macro scale_median() -%}
  (select (scale_min + scale_max) / 2 from {{ ref("int_kgather__scale") }})
{%- endmacro %}
