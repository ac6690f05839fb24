-- The mean preference of each group, from which every prediction of the group follows.
select *
from kg_group_vectors('{{ ref("int_kgather__preferences") }}', '{{ ref("int_kgather__groups") }}')
