{{ config(materialized="table", enabled=target.name == "with_plugin") }}
-- Visitors gathered by kgather's own function, which only a profile with its plugin knows. A table, not a view: group
-- numbers are drawn anew each time.
with places as (
  select age_band, district, visitor, [visitor, coalesce(length(district), 0)] as preference
  from {{ ref("visitors") }}
),

users as (
  select concat_ws('/', age_band, district, visitor) as user_id, preference
  from places
)

select unnest(kg_gather(list(users), 5), recursive := true)
from users
