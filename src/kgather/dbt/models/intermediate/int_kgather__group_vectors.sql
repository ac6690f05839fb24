{{ config(enabled=kgather.publishes()) }}
-- What is shown of each group, from which every prediction of the group follows.
select
  group_id,
  {{ kgather.rounded_vector("level", "factor") }}
from {{ ref("int_kgather__drawn_in") }}
cross join {{ kgather.vector_decimals() }}
