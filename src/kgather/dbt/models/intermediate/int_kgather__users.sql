{{ config(enabled=kgather.publishes()) }}
-- The users with the dense codes that the kernels know them by, and how many items each rated.
select
  cast(row_number() over (order by user_id asc) - 1 as integer) as user_code,
  user_id,
  count(*) as rated,
  -- A number for what the user rated how, in any order, whatever the user is called.
  sum(cast(hash(cast(item_id as varchar), rating) as hugeint)) as rated_so
from {{ ref("stg_kgather__ratings") }}
group by user_id
