{{ config(enabled=kgather.publishes(), materialized="view") }}
-- The ratings of the artifact table, in its long shape.
select
  users.user_id,
  users.user_code,
  artifact_items.position,
  artifact_items.item_id,
  ratings.rating
from {{ ref("stg_kgather__ratings") }} as ratings
join {{ ref("int_kgather__artifact_items") }} as artifact_items using (item_id)
join {{ ref("int_kgather__users") }} as users using (user_id)
where (select read_rows from {{ ref("int_kgather__checked_input") }}) > 0
order by users.user_code asc, artifact_items.position asc
