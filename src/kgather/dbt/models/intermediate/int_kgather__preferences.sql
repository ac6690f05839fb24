{{ config(enabled=kgather.publishes(), materialized="view") }}
-- What each user likes: the prediction for an item is the two levels and the product of preference and factor.
select
  users.user_id,
  factors.level,
  factors.factor as preference
from {{ ref("int_kgather__factors") }} as factors
join {{ ref("int_kgather__users") }} as users on factors.code = users.user_code
where factors.side = 'user'
