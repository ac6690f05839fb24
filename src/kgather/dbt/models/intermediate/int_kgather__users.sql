{{ config(enabled=kgather.publishes()) }}
{% set staged, takes_over = ref("stg_kgather__ratings"), kgather.takes_over() -%}
{% set added, presence = ref("base_kgather__added_ratings"), ref("int_kgather__presence") -%}
-- The users with the dense codes that the kernels know them by, and how many items each rated.
{% if takes_over -%}
-- What the last release knew of somebody holds where nothing was taken away: what came is added to it. Nobody who has
-- left is among those who are counted.
with counted as (
  select user_id, count(*) as rated
  from {{ staged }}
  group by user_id
),

came as (
  select user_id, count(*) as rated, {{ kgather.rated_so() }} as rated_so
  from {{ added }}
  group by user_id
),

known as (
  select
    counted.user_id,
    counted.rated,
    earlier.rated_so + coalesce(came.rated_so, 0) as rated_so
  from counted
  join {{ kgather.of_last("int_kgather__users") }} as earlier
    on cast(earlier.user_id as varchar) = cast(counted.user_id as varchar)
  left join came on came.user_id = counted.user_id
  join {{ presence }} as presence on cast(counted.user_id as varchar) = presence.user_id
  where presence.state = 'present'
    and counted.rated = earlier.rated + coalesce(came.rated, 0)
),

raters as (
  select user_id, rated, rated_so
  from known

  union all

  select user_id, count(*) as rated, {{ kgather.rated_so() }} as rated_so
  from {{ staged }}
  anti join known using (user_id)
  group by user_id
)
{%- else -%}
with raters as (
  select user_id, count(*) as rated, {{ kgather.rated_so() }} as rated_so
  from {{ staged }}
  group by user_id
)
{%- endif %}

select
  cast(row_number() over (order by user_id asc) - 1 as integer) as user_code,
  user_id,
  rated,
  rated_so
from raters
