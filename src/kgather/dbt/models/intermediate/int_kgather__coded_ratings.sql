{{ config(enabled=kgather.publishes(), materialized="view") }}
-- The ratings as the kernels read them: dense codes, in the order of the staged ratings, which are not sorted again.
select users.user_code, items.item_code, ratings.rating
from {{ ref("stg_kgather__ratings") }} as ratings
join {{ ref("int_kgather__users") }} as users using (user_id)
join {{ ref("int_kgather__items") }} as items using (item_id)
-- Nothing is learnt from an input that was refused.
where (select read_rows from {{ ref("int_kgather__checked_input") }}) > 0
