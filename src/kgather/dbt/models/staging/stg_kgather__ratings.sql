{% set repeated = ref("base_kgather__repeated_pairs") -%}
{% set repeats = kgather.has_rows(repeated) -%}
-- One row per user and item, in their order. Of a repeated pair the latest rating is kept, among equally late ones their
-- mean.
with usable as (
  select user_id, item_id, rating, rated_at
  from {{ kgather.usable_ratings() }}
),

one_per_pair as (
  {% if not repeats -%}
  select * from usable
  {%- else -%}
  select usable.*
  from usable
  anti join {{ repeated }} as repeated using (user_id, item_id)

  union all

  select user_id, item_id, avg(usable.rating) as rating, repeated.latest_at as rated_at
  from usable
  join {{ repeated }} as repeated using (user_id, item_id)
  where usable.rated_at is not distinct from repeated.latest_at
  group by user_id, item_id, repeated.latest_at
  {%- endif %}
)

select user_id, item_id, rating, rated_at
from one_per_pair
{% if kgather.setting("min_ratings") > 1 -%}
semi join (
  select user_id
  from one_per_pair
  group by user_id
  having count(*) >= {{ kgather.setting("min_ratings") }}
) as active using (user_id)
{% endif -%}
{% if repeats -%}
order by user_id, item_id
{%- endif %}
