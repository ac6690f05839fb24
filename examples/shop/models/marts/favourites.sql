-- What each group likes best, from the release alone.
select group_id, arg_max(item_id, (rating, -item_id)) as favourite
from {{ ref("kgather", "kgather__ratings") }}
group by group_id
