-- The users with the dense codes that the kernels know them by.
select
  cast(row_number() over (order by user_id) - 1 as integer) as user_code,
  user_id
from (select distinct user_id from {{ ref("stg_kgather__ratings") }})
