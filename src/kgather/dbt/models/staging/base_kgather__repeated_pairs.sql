{{ config(enabled=kgather.publishes()) }}
{% set sorted = ref("base_kgather__sorted_ratings") -%}
-- The pairs of user and item that were rated more than once, each with the times of its first and latest rating. In ratings that
-- were not sorted, because they ascend, no pair is repeated.
with neighbours as (
  select
    user_id,
    item_id,
    lag(user_id) over () as user_before,
    lag(item_id) over () as item_before
  from {{ sorted }}
),

repeated as (
  select distinct user_id, item_id
  from neighbours
  where user_id = user_before and item_id = item_before
)

select user_id, item_id, min(ratings.rated_at) as first_at, max(ratings.rated_at) as latest_at
from {{ sorted }} as ratings
semi join repeated using (user_id, item_id)
group by user_id, item_id
