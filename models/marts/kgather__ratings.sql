{% set low_rank = var("cells") == "low_rank" -%}
{{ config(materialized="view" if low_rank else "table") }}
{% set scale_min = "(select scale_min from " ~ ref("int_kgather__scale") ~ ")" -%}
{% set scale_max = "(select scale_max from " ~ ref("int_kgather__scale") ~ ")" -%}
{% set padded -%}
  kg_padded(
    '{{ ref("int_kgather__single_rater_cells") if var("homogenize") == "pure" else ref("int_kgather__cells") }}',
    '{{ ref("stg_kgather__ratings") }}', '{{ ref("int_kgather__groups") }}',
    '{{ ref("int_kgather__preferences") }}', '{{ ref("int_kgather__group_vectors") }}',
    '{{ ref("int_kgather__item_factors") }}', {{ scale_min }}, {{ scale_max }}
  )
{%- endset -%}
-- The release: what every member of a group is shown to think of an item.
with cells as (
  {% if low_rank -%}
  {% set scale = run_query("select scale_min, scale_max from " ~ ref("int_kgather__scale")).rows[0] if execute else [0, 1] -%}
  -- kg_cell in plain SQL: whoever opens the release needs neither macros nor the working database.
  select
    groups.group_id,
    items.item_id,
    least(
      greatest(groups.level + items.level + list_inner_product(groups.factor, items.factor), {{ scale[0] }}),
      {{ scale[1] }}
    ) as rating
  from {{ ref("kgather__group_vectors") }} as groups
  cross join {{ ref("kgather__item_vectors") }} as items
  {%- elif var("homogenize") == "pure" -%}
  select group_id, item_id, rating
  from {{ ref("int_kgather__rated_cells") }}
  semi join {{ ref("int_kgather__cells") }} using (group_id, item_id)
  {% if var("single_rater") != "keep" -%}
  where raters > 1
  {%- endif %}
  {% if var("single_rater") == "pad" -%}
  union all
  select group_id, item_id, rating from {{ padded }}
  {%- endif %}
  {%- elif var("homogenize") == "padded" -%}
  select group_id, item_id, rating from {{ padded }}
  {%- else -%}
  select group_id, item_id, rating
  from kg_predicted(
    '{{ ref("int_kgather__cells") }}', '{{ ref("int_kgather__group_vectors") }}',
    '{{ ref("int_kgather__item_factors") }}', {{ scale_min }}, {{ scale_max }}
  )
  {%- endif %}
)

select
  cast(group_id as bigint) as group_id,
  cast(item_id as {{ var("item_id_type") }}) as item_id,
  cast(rating as double) as rating
from cells
{% if not low_rank -%}
order by group_id, item_id
{%- endif %}
