-- Every row that was read and not staged, with its place and the reason.
with read_ratings as (
  select * from {{ ref("base_kgather__read_ratings") }}
),

repeated as (
  select
    read_ratings.*,
    row_number() over (
      partition by user_id, item_id
      order by read_ratings.rated_at desc nulls last, read_ratings.source, read_ratings.line
    ) as recency,
    repeated_pairs.latest_at
  from read_ratings
  join {{ ref("base_kgather__repeated_pairs") }} as repeated_pairs using (user_id, item_id)
  where read_ratings.reason is null
),

rejected as (
  select source, line, raw, reason
  from read_ratings
  where reason is not null

  union all

  select
    source,
    line,
    raw,
    case
      when rated_at is not distinct from latest_at then 'repeated pair: the mean is kept'
      else 'repeated pair: the latest is kept'
    end as reason
  from repeated
  where recency > 1

  {% if var("min_ratings") > 1 -%}
  union all

  select source, line, raw, 'user has fewer than {{ var("min_ratings") }} ratings' as reason
  from (
    select user_id, source, line, raw
    from read_ratings
    anti join {{ ref("base_kgather__repeated_pairs") }} as repeated_pairs using (user_id, item_id)
    where reason is null
    union all
    select user_id, source, line, raw
    from repeated
    where recency = 1
  ) as kept
  anti join {{ ref("stg_kgather__ratings") }} as staged using (user_id)
  {%- endif %}
)

select
  cast(source as varchar) as source,
  cast(line as bigint) as line,
  cast(raw as varchar) as raw,
  cast(reason as varchar) as reason
from rejected
order by source, line
