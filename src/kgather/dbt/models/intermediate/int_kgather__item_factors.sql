{{ config(enabled=kgather.publishes()) }}
-- What is shown of each item, the other half of the predictions.
select
  items.item_id,
  {{ kgather.rounded_vector("factors.level", "factors.factor") }}
from {{ ref("int_kgather__factors") }} as factors
join {{ ref("int_kgather__items") }} as items on factors.code = items.item_code
cross join {{ kgather.vector_decimals() }}
where factors.side = 'shown'
