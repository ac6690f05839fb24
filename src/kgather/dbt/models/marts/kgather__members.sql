{{ config(enabled=kgather.publishes()) }}
{{ kgather.after_history() }}
-- One row per user under a random pseudonym, for recipients who need users. The order is the pseudonyms'.
select
  cast(pseudonym as varchar) as pseudonym,
  cast(group_id as bigint) as group_id,
  {{ kgather.stamp() }}
from {{ ref("int_kgather__gathered") }}
order by pseudonym asc
