{{ config(enabled=kgather.publishes()) }}
-- The secret map: which user went into which group. It never leaves the working database.
select users.user_id, gathered.group_id
from {{ ref("int_kgather__gathered") }} as gathered
join {{ ref("int_kgather__users") }} as users using (user_code)
