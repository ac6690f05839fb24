{{ config(enabled=kgather.publishes() and kgather.homogenize() == "interval") }}
-- The window of each group and item that the members' ratings are moved into.
select group_id, item_id, low, high
from kg_intervals(
  {{ kgather.named(ref("int_kgather__interval_ratings")) }}, {{ kgather.named(ref("int_kgather__groups")) }}, {{ kgather.setting("epsilon") }}
)
