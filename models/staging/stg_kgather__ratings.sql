-- One row per user and item. Of a repeated pair the latest rating is kept, among equally late ones their mean.
with usable as (
  select user_id, item_id, rating, rated_at
  from {{ ref("base_kgather__read_ratings") }}
  where reason is null
),

one_per_pair as (
  select usable.*
  from usable
  anti join {{ ref("base_kgather__repeated_pairs") }} as repeated using (user_id, item_id)

  union all

  select user_id, item_id, avg(usable.rating) as rating, repeated.latest_at as rated_at
  from usable
  join {{ ref("base_kgather__repeated_pairs") }} as repeated using (user_id, item_id)
  where usable.rated_at is not distinct from repeated.latest_at
  group by user_id, item_id, repeated.latest_at
)

select user_id, item_id, rating, rated_at
from one_per_pair
{% if var("min_ratings") > 1 -%}
semi join (
  select user_id
  from one_per_pair
  group by user_id
  having count(*) >= {{ var("min_ratings") }}
) as active using (user_id)
{% endif -%}
order by user_id, item_id
