{{ config(enabled=kgather.publishes() and kgather.is_low_rank()) }}
{{ kgather.after_history() }}
-- The items' half of the low-rank form.
select
  cast(item_id as {{ kgather.setting("item_id_type") }}) as item_id,
  cast(level as float) as level,
  cast(factor as float[]) as factor,
  {{ kgather.stamp() }}
from {{ ref("int_kgather__item_factors") }}
order by item_id asc
