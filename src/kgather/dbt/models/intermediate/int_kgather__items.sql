-- The items with the dense codes that the kernels know them by, and how many users rated each.
select
  cast(row_number() over (order by item_id) - 1 as integer) as item_code,
  item_id,
  count(*) as raters
from {{ ref("stg_kgather__ratings") }}
group by item_id
