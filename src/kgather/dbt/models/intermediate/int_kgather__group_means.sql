{{ config(materialized="view") }}
-- The mean preference of each group.
select *
from kg_group_vectors('{{ ref("int_kgather__preferences") }}', '{{ ref("int_kgather__groups") }}')
