{{ config(materialized="view", enabled=kgather.publishes() and kgather.homogenize() == "noise") }}
-- Users x items with something in every cell, or the rated ones alone.
{% if kgather.setting("cells") == "rated" -%}
select user_id, item_id, rating
from {{ ref("stg_kgather__ratings") }}
{%- else -%}
select
  users.user_id,
  items.item_id,
  coalesce(
    ratings.rating,
    {% if kgather.setting("fill") == "prediction" -%}
    kg_cell(
      preferences.level, preferences.preference, factors.level, factors.factor,
      '-infinity'::double, 'infinity'::double
    )
    {%- else -%}
    {{ kgather.filling() }}
    {%- endif %}
  ) as rating
from {{ ref("int_kgather__users") }} as users
cross join {{ ref("int_kgather__shown_items") }} as items
left join {{ ref("stg_kgather__ratings") }} as ratings
  on ratings.user_id = users.user_id and ratings.item_id = items.item_id
{% if kgather.setting("fill") == "prediction" -%}
join {{ ref("int_kgather__preferences") }} as preferences on preferences.user_id = users.user_id
join {{ ref("int_kgather__item_factors") }} as factors on factors.item_id = items.item_id
{%- endif %}
{%- endif %}
