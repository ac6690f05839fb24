{{ config(enabled=kgather.publishes() and kgather.generalize() == "dgh") }}
-- The domain generalization hierarchy: the ranges of each level above the ratings themselves.
select level, low, high
from {{ kgather.hierarchy_relation(kgather.setting("hierarchy"), "hierarchy", ref("int_kgather__scale")) }}
