{% set best_items = kgather.best_items() | trim -%}
{% set popular_items = kgather.popular_items() | trim -%}
{#- Noise is drawn, and the best are chosen, once. -#}
{{ config(materialized="table" if popular_items or best_items else "view", enabled=kgather.publishes() and kgather.has_cells()) }}
-- Which cells of groups x items the release shows, but for those that are added for the diversity of items.
{% if kgather.shows_rated_cells() -%}
select cells.group_id, cells.item_id
from {{ kgather.shown_rated_cells() }}
{%- elif best_items -%}
-- By prediction alone: what its members rated does not say what a group shows.
select group_id, item_id
from kg_best({{ kgather.named(ref("int_kgather__group_vectors")) }}, {{ kgather.named(ref("int_kgather__item_factors")) }}, {{ best_items }})
{%- elif popular_items -%}
-- By counts of raters with noise, by which no single rating says much of what a group shows.
select group_id, item_id
from kg_popular(
  {{ kgather.named(ref("stg_kgather__ratings")) }}, {{ kgather.named(ref("int_kgather__groups")) }}, {{ kgather.named(ref("int_kgather__shown_items")) }},
  {{ popular_items }}, {{ kgather.setting("popular_noise") }}
)
{%- else -%}
select groups.group_id, items.item_id
from (select distinct group_id from {{ ref("int_kgather__groups") }}) as groups
cross join {{ ref("int_kgather__shown_items") }} as items
{%- endif %}
