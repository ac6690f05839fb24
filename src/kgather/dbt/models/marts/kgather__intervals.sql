{{ config(enabled=kgather.publishes() and kgather.homogenize() == "interval") }}
{{ kgather.after_history() }}
-- The window in which all members of a group are shown to rate an item.
select
  cast(group_id as bigint) as group_id,
  cast(item_id as {{ kgather.setting("item_id_type") }}) as item_id,
  cast(low as double) as low,
  cast(high as double) as high,
  {{ kgather.stamp() }}
from {{ ref("int_kgather__intervals") }}
order by group_id asc, item_id asc
