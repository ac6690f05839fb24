{{ config(enabled=kgather.publishes()) }}
{{ kgather.after_history() }}
-- The groups and their sizes.
select
  cast(group_id as bigint) as group_id,
  cast(count(*) as bigint) as group_size,
  {{ kgather.stamp() }}
from {{ ref("int_kgather__groups") }}
group by group_id
order by group_id asc
