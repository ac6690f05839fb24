{{ config(enabled=kgather.publishes(), materialized="view") }}
-- The mean preference of each group.
select *
from kg_group_vectors({{ kgather.named(ref("int_kgather__preferences")) }}, {{ kgather.named(ref("int_kgather__groups")) }})
