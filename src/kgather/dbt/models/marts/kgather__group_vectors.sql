{{ config(enabled=kgather.publishes() and kgather.is_low_rank()) }}
{{ kgather.after_history() }}
-- The groups' half of the low-rank form: kg_cell of a group's and an item's vector is the cell's rating.
select
  cast(group_id as bigint) as group_id,
  cast(level as float) as level,
  cast(factor as float[]) as factor,
  {{ kgather.stamp() }}
from {{ ref("int_kgather__group_vectors") }}
order by group_id asc
