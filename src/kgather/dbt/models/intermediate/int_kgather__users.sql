-- The users with the dense codes that the kernels know them by, and how many items each rated.
select
  cast(row_number() over (order by user_id) - 1 as integer) as user_code,
  user_id,
  count(*) as rated
from {{ ref("stg_kgather__ratings") }}
group by user_id
