{{ config(enabled=kgather.publishes()) }}
{% set catalogue = ref("stg_kgather__items") -%}
-- The items with the dense codes that the kernels know them by, and how many users rated each: those of the catalogue,
-- or without one those that somebody rated.
with rated as (
  select
    item_id,
    count(*) as raters
  from {{ ref("stg_kgather__ratings") }}
  group by item_id
)

select
  cast(row_number() over (order by item_id asc) - 1 as integer) as item_code,
  item_id,
  {% if kgather.setting("items") -%}
  coalesce(rated.raters, 0) as raters
from {{ catalogue }}
left join rated using (item_id)
{%- else -%}
  raters
from rated
{%- endif %}
