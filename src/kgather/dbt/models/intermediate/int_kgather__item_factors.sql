{{ config(materialized="view") }}
-- The other half of the predictions: level and factor of each item.
select
  items.item_id,
  factors.level,
  factors.factor,
  items.raters
from {{ ref("int_kgather__factors") }} as factors
join {{ ref("int_kgather__items") }} as items on factors.code = items.item_code
where factors.side = 'item'
