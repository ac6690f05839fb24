{{ config(materialized="view", enabled=kgather.homogenize() == "pure") }}
-- The cells whose mean is one person's own rating.
select group_id, item_id
from {{ ref("int_kgather__rated_cells") }}
semi join {{ ref("int_kgather__cells") }} using (group_id, item_id)
where raters = 1
