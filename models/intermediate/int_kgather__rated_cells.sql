{{ config(enabled=kgather.homogenize() == "pure" or var("cells") == "rated") }}
-- The items that some member of a group rated, with the members' mean and how many they are.
select *
from kg_pure('{{ ref("stg_kgather__ratings") }}', '{{ ref("int_kgather__groups") }}')
