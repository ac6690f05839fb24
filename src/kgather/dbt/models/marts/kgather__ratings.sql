{% set low_rank = kgather.is_low_rank() -%}
{{ config(materialized="view" if low_rank else "table", enabled=kgather.has_cells()) }}
{% set form = kgather.homogenize() -%}
{% set scale_relation = ref("int_kgather__scale") -%}  {#- named even while dbt parses, so that it is built before -#}
-- The release: what every member of a group is shown to think of an item.
with cells as not materialized (
  {% if low_rank -%}
  {% set scale = run_query("select scale_min, scale_max from " ~ scale_relation).rows[0] if execute else [0, 1] -%}
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
  {%- elif form == "pure" and kgather.setting("single_rater") != "pad" -%}
  select cells.group_id, cells.item_id, cells.rating
  from {{ kgather.shown_rated_cells() }}
  {%- elif kgather.pads_rated_cells() -%}
  {{ kgather.padded_rated_cells(only_single_raters=form == "pure") }}
  {%- elif form == "microaggregated" and kgather.setting("fill") == "median" -%}
  select group_id, item_id, rating
  from kg_microaggregate(
    '{{ ref("int_kgather__cells") }}', '{{ ref("stg_kgather__ratings") }}', '{{ ref("int_kgather__groups") }}',
    {{ kgather.scale_median() }}
  )
  {%- elif form in ("padded", "microaggregated") -%}
  -- The centroid of ratings filled with predictions is the padded mean.
  select group_id, item_id, rating from {{ kgather.padded_cells(ref("int_kgather__cells")) }}
  {%- else -%}
  select group_id, item_id, rating from {{ kgather.predicted_cells(ref("int_kgather__cells")) }}
  {%- endif %}
  {% if kgather.adds_cells() -%}
  union all
  select group_id, item_id, rating
  from
    {% if form == "predicted" -%}
    {{ kgather.predicted_cells(ref("int_kgather__added_cells")) }}
    {%- else -%}
    {{ kgather.padded_cells(ref("int_kgather__added_cells")) }}
    {%- endif %}
  {%- endif %}
)

{% for slice in (["true"] if low_rank else kgather.group_slices()) -%}
{% if not loop.first %}union all{% endif %}
(
  select
    cast(group_id as bigint) as group_id,
    cast(item_id as {{ kgather.setting("item_id_type") }}) as item_id,
    cast(rating as double) as rating
  from cells
  {% if not low_rank -%}
  where {{ slice }}
  order by group_id, item_id
  {%- endif %}
)
{% endfor %}
