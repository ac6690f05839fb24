{% set low_rank = kgather.is_low_rank() -%}
{{ config(materialized="view" if low_rank else "table", enabled=kgather.publishes() and kgather.has_cells()) }}
{% set form = kgather.homogenize() -%}
{#- Predictions are as exact as their noise; what the others show are ratings and means of them. -#}
{% set rounds = kgather.form_facts(form).needs_solver and not low_rank -%}
{% set scale_relation = ref("int_kgather__scale") -%}  {#- named even while dbt parses, so that it is built before -#}
{{ kgather.after_history() }}
-- The release: what every member of a group is shown to think of an item.
with cells as not materialized (
  {% if low_rank -%}
  {% set ends = [kgather.shown_end("min"), kgather.shown_end("max"), kgather.shown_digits()] -%}
  {% set scale = run_query("select " ~ ends | join(", ")).rows[0] if execute else [0, 1, 2] -%}
  -- kg_cell in plain SQL: whoever opens the release needs neither macros nor the working database.
  select
    groups.group_id,
    items.item_id,
    round(
      least(
        greatest(
          cast(groups.level + items.level + list_inner_product(groups.factor, items.factor) as double), {{ scale[0] }}
        ),
        {{ scale[1] }}
      ),
      {{ scale[2] }}
    ) as rating
  from {{ ref("kgather__group_vectors") }} as groups
  cross join {{ ref("kgather__item_vectors") }} as items
  {%- else -%}
  {{ kgather["form__" ~ form]() }}
  {%- endif %}
  {% if kgather.adds_cells() -%}
  union all
  {{ kgather["form__" ~ form ~ "__added"]() }}
  {%- endif %}
)

{% for slice in (["true"] if low_rank else kgather.group_slices()) -%}
{% if not loop.first %}union all{% endif %}
(
  select
    cast(group_id as bigint) as group_id,
    cast(item_id as {{ kgather.setting("item_id_type") }}) as item_id,
    cast({{ kgather.rounded_rating("rating") if rounds else "rating" }} as double) as rating,
    {{ kgather.stamp() }}
  from cells
  {% if not low_rank -%}
  where {{ slice }}
  order by group_id asc, item_id asc
  {%- endif %}
)
{% endfor %}
