{#- The usable ratings in the order of user and item, as a subquery: sorted, or as they are read where that is sorted. -#}
{% macro usable_ratings() -%}
  {%- set sorted = kgather.ref_to("base_kgather__sorted_ratings") -%}
  {%- set read = kgather.ref_to("base_kgather__read_ratings") -%}
  {%- if kgather.has_rows(sorted) -%}
    {{ sorted }}
  {%- else -%}
    (select user_id, item_id, rating, rated_at from {{ read }} where reason is null)
  {%- endif -%}
{%- endmacro %}
