{{ config(
  materialized="view",
  enabled=kgather.publishes() and (
    kgather.homogenize() == "padded"
    or (kgather.homogenize() == "microaggregated" and kgather.setting("fill") == "prediction")
  )
) }}
-- The ratings that cells are padded around. A rating of an item that few rated would stand out of its group's
-- predictions, so it counts as its item's vector is the item's own: see the macro own_share.
select
  ratings.user_id,
  ratings.item_id,
  predicted + {{ kgather.own_share("raters") }} * (ratings.rating - predicted) as rating
from (
  select
    ratings.*,
    items.raters,
    users.level + factors.level + list_inner_product(users.preference, factors.factor) as predicted
  from {{ ref("stg_kgather__ratings") }} as ratings
  join {{ ref("int_kgather__items") }} as items using (item_id)
  join {{ ref("int_kgather__preferences") }} as users using (user_id)
  join {{ ref("int_kgather__item_factors") }} as factors using (item_id)
) as ratings
