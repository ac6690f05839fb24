{{ config(enabled=kgather.publishes() and kgather.has_rows_of_users()) }}
{{ kgather.after_history() }}
-- One row per user and item, for the methods that leave users different from each other.
with user_ratings as (
  {{ kgather["form__" ~ kgather.homogenize()]() }}
)

select
  cast(gathered.pseudonym as varchar) as pseudonym,
  cast(user_ratings.item_id as {{ kgather.setting("item_id_type") }}) as item_id,
  cast(user_ratings.rating as double) as rating,
  {{ kgather.stamp() }}
from user_ratings
join {{ ref("int_kgather__users") }} as users using (user_id)
join {{ ref("int_kgather__gathered") }} as gathered using (user_code)
order by gathered.pseudonym asc, user_ratings.item_id asc
